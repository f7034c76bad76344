//! A set of numbers, cheap where many are side by side: addresses that conflict mostly are.

use rustc_hash::FxHashMap;

/// Numbers of one page, a bit each: 512.
type Page = [u64; 8];

/// Numbers of some kind, each in a block (0 where blocks do not matter).
#[derive(Debug, Default)]
pub(super) struct Marks {
    index: FxHashMap<(u64, u32), u32>,
    pages: Vec<Page>,
    /// The last page found: its number and place.
    last: Option<((u64, u32), u32)>,
    len: usize,
}

impl Marks {
    /// Adds a number; tells whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, number: u64, block: u32) -> bool {
        let page = (number >> 9, block);
        let at = match self.last {
            Some((last, at)) if last == page => at,
            _ => self.page(page),
        };
        let bit = 1 << (number & 63);
        let Some(bits) = self.pages.get_mut(at as usize).map(|page| &mut page[(number >> 6 & 7) as usize])
        else {
            return false;
        };
        let new = *bits & bit == 0;
        *bits |= bit;
        self.len += usize::from(new);
        new
    }

    #[inline(never)]
    fn page(&mut self, page: (u64, u32)) -> u32 {
        let at = *self.index.entry(page).or_insert_with(|| {
            self.pages.push(Page::default());
            (self.pages.len() - 1) as u32
        });
        self.last = Some((page, at));
        at
    }

    pub(super) fn contains(&self, number: u64, block: u32) -> bool {
        let page = self.index.get(&(number >> 9, block)).and_then(|at| self.pages.get(*at as usize));
        page.is_some_and(|page| page[(number >> 6 & 7) as usize] >> (number & 63) & 1 != 0)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many numbers are in both.
    pub(super) fn common(&self, other: &Self) -> u64 {
        let both = self.index.iter().filter_map(|(page, at)| {
            let own = self.pages.get(*at as usize)?;
            let theirs = other.pages.get(*other.index.get(page)? as usize)?;
            Some(own.iter().zip(theirs).map(|(a, b)| u64::from((a & b).count_ones())).sum::<u64>())
        });
        both.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_set(
            numbers in proptest::collection::vec((0u64..2000, 0u32..2), 0..200),
            others in proptest::collection::vec((0u64..2000, 0u32..2), 0..200),
        ) {
            let (mut marks, mut set) = (Marks::default(), BTreeSet::new());
            for (number, block) in numbers {
                prop_assert_eq!(marks.insert(number, block), set.insert((number, block)));
            }
            let (mut theirs, mut other) = (Marks::default(), BTreeSet::new());
            for (number, block) in others {
                theirs.insert(number, block);
                other.insert((number, block));
                prop_assert_eq!(marks.contains(number, block), set.contains(&(number, block)));
            }
            prop_assert_eq!(marks.len(), set.len());
            prop_assert_eq!(marks.common(&theirs), set.intersection(&other).count() as u64);
        }
    }
}
