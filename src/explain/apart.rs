//! Sentences about publications whose threads are not those of the accesses, and about mbarriers.

use super::advice::Told;
use crate::finding::{Side, Witness};
use crate::instrument::SiteKind;

impl Told<'_, '_> {
    fn flag(&self, write: &Witness) -> String {
        match self.context.object(write, write.address) {
            object if object.name.ends_with(" memory") => "the flag".to_owned(),
            object => format!("`{}`", object.name),
        }
    }

    /// What a release and an acquire between other threads leave open.
    pub(super) fn apart(&self, before: bool, after: bool, write: &Witness, read: &Witness) -> String {
        let flag = self.flag(write);
        let release =
            format!("the release by the write of {flag} ({}, {})", self.op(write), self.place(write));
        let acquire = format!("the acquire by the read of {flag} ({}, {})", self.op(read), self.place(read));
        let first = |barrier| {
            format!(
                "(1) is not ordered before {release}, which another thread of its block executes: no {barrier} lies between"
            )
        };
        let second = |barrier| {
            format!(
                "(2) is not ordered after {acquire}, which another thread of its block executes: no {barrier} lies between"
            )
        };
        match (before, after) {
            (true, true) => {
                format!(
                    "(1) is not ordered before {release}, nor (2) after {acquire}; other threads of their blocks execute these"
                )
            }
            (true, false) => first(barrier(self.first(), write).0),
            (false, _) => second(barrier(self.last(), read).0),
        }
    }

    pub(super) fn together(&self, before: bool, after: bool, write: &Witness, read: &Witness) -> String {
        let flag = self.flag(write);
        let (first, call) = barrier(self.first(), write);
        let release = format!("put a {first}, {call}, between (1) and the write of {flag}");
        let (second, call) = barrier(self.last(), read);
        let acquire = format!("put a {second}, {call}, between the read of {flag} and (2)");
        match (before, after) {
            (true, true) => {
                let (second, call) = barrier(self.last(), read);
                format!("{release}, and a {second}, {call}, between its read and (2)")
            }
            (true, false) => release,
            (false, _) => acquire,
        }
    }

    pub(super) fn is_mbarrier(&self, witness: &Witness) -> bool {
        self.context.site(witness).is_some_and(|site| matches!(site.kind, SiteKind::Mbarrier(_)))
    }

    /// Which scope of an arrival and a wait is too narrow.
    pub(super) fn mbarrier_scopes(
        &self,
        side: Side,
        mbarrier: &str,
        arrival: &Witness,
        wait: &Witness,
    ) -> String {
        let arrives = format!("the arrival at {mbarrier} ({}, {})", self.op(arrival), self.place(arrival));
        let waits = format!("the wait for {mbarrier} ({}, {})", self.op(wait), self.place(wait));
        match side {
            Side::Release => format!("{arrives} has a scope that leaves the waiting thread out"),
            Side::Acquire => format!("{waits} has a scope that leaves the arriving thread out"),
            Side::Both => format!("{arrives} and {waits} have scopes that leave each other's threads out"),
        }
    }
}

/// The barrier that orders an access and another thread of its block.
fn barrier(access: Option<&Witness>, flag: &Witness) -> (&'static str, &'static str) {
    if access.is_some_and(|access| access.thread.warp == flag.thread.warp) {
        ("warp barrier", "`__syncwarp()`")
    } else {
        ("block barrier", "`__syncthreads()`")
    }
}
