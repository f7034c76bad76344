//! Which launches of a program are checked.

use std::num::NonZeroU64;

use glob::Pattern;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::explain::names::demangle;

/// What the user wants checked. By default it is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Globs of kernels' names, as PTX has them or demangled. None is all kernels.
    pub kernels: Vec<String>,
    /// Of each kernel, its first launches up to so many.
    pub most: Option<u64>,
    /// Of each kernel, one in so many launches, its first among them.
    pub one_in: Option<NonZeroU64>,
}

impl Wanted {
    fn names(&self, kernel: &str) -> bool {
        let name = demangle(kernel);
        let fits = |glob: &String| {
            Pattern::new(glob).is_ok_and(|glob| {
                [kernel, &name.short, &name.full].into_iter().any(|name| glob.matches(name))
            })
        };
        self.kernels.is_empty() || self.kernels.iter().any(fits)
    }
}

/// What is wanted, and how often kernels were launched.
#[derive(Debug, Default)]
pub struct Counted {
    wanted: Wanted,
    /// By kernel, whether its name is wanted, and its launches so far.
    launches: FxHashMap<String, (bool, u64)>,
}

impl Counted {
    /// Counts from zero.
    pub fn new(wanted: Wanted) -> Self {
        Self { wanted, launches: FxHashMap::default() }
    }

    /// Whether a kernel's name is wanted.
    pub fn names(&self, kernel: &str) -> bool {
        self.wanted.names(kernel)
    }

    /// Whether the next launch of a kernel is checked.
    pub fn next(&mut self, kernel: &str) -> bool {
        let Self { wanted, launches } = self;
        let (named, count) = launches.entry(kernel.to_owned()).or_insert_with(|| (wanted.names(kernel), 0));
        let (place, one_in) = (*count, wanted.one_in.map_or(1, NonZeroU64::get));
        *count += 1;
        *named && place.is_multiple_of(one_in) && wanted.most.is_none_or(|most| place / one_in < most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_wanted_by_name_and_number() {
        let wanted = Wanted { kernels: vec!["re*".into()], most: Some(2), ..Wanted::default() };
        let mut counted = Counted::new(wanted);
        let reduce = "_Z6reducePKiPi";
        let wanted = [reduce, reduce, reduce, "scan", "rest", "reduce"].map(|kernel| counted.next(kernel));
        assert_eq!(wanted, [true, true, false, false, true, true]);
        assert!(counted.names("rest") && !counted.names("scan"));
        let mut all = Counted::default();
        assert!(all.next("scan") && all.next("scan"));
    }

    #[test]
    fn one_launch_in_several_is_wanted() {
        let some = |most| Wanted { most, one_in: NonZeroU64::new(3), ..Wanted::default() };
        let mut counted = Counted::new(some(None));
        let wanted = ["a", "a", "b", "a", "a", "b"].map(|kernel| counted.next(kernel));
        assert_eq!(wanted, [true, false, true, false, true, false]);
        let mut counted = Counted::new(some(Some(2)));
        let checked = (0..100).filter(|_| counted.next("a")).count();
        assert_eq!(checked, 2);
    }
}
