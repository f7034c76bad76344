//! Names in a sentence.

use std::fmt::Display;

/// Names in backquotes, at most so many, and how many more there are.
pub fn quoted(names: impl IntoIterator<Item = impl Display>, most: usize) -> String {
    let mut names = names.into_iter().map(|name| format!("`{name}`"));
    let mut shown: Vec<_> = names.by_ref().take(most).collect();
    let more = names.count();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        assert_eq!(quoted(["a", "b"], 2), "`a`, `b`");
        assert_eq!(quoted(["a", "b", "c", "d"], 2), "`a`, `b`, 2 more");
    }
}
