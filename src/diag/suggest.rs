//! "Did you mean": the nearest of some names.

/// The name nearest to `wanted`, if one is near enough to be a slip of the hand.
pub fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    nearest_within(wanted, wanted.chars().count().div_ceil(3), names)
}

/// The name nearest to `wanted`, if it takes at most `limit` slips to write one for the other.
pub fn nearest_within<'n>(
    wanted: &str,
    limit: usize,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    names
        .into_iter()
        .map(|name| (distance(wanted, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        assert_eq!(nearest("scael", ["reduce", "scale"]), Some("scale"));
        assert_eq!(nearest("gird", ["grid", "block"]), Some("grid"));
        assert_eq!(nearest("x", ["reduce"]), None);
        assert_eq!(nearest("dta", ["data", "n"]), Some("data"));
    }
}
