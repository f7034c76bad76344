//! What else the writer of a quiet word stands for: what `Cell::add` says of stores in cells.

use super::kept::{Id, Kept};
use super::{Pass, Quiet};
use crate::abi::{Tagged, lanes};
use crate::engine::clock::Time;
use crate::engine::stands::Stands;

/// In `Word::state`: the writer stands for accesses of its warp, for those of others.
const OWN: u16 = 1 << 8;
const OTHERS: u16 = 1 << 9;

/// Whether the writer of a word in this state stands for accesses of its warp.
pub(super) fn has_own(state: u16) -> bool {
    state & OWN != 0
}

/// What the writer of a word in this state stands for.
pub(super) fn stands(state: u16, kept: &Kept) -> Stands {
    Stands::weak((state & OWN != 0).then_some(kept.own_time), state & OTHERS != 0)
}

/// Whose reads are in a chain, of the launch at hand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reads {
    /// When the warp at hand last read.
    own: Option<Time>,
    /// Other warps have read.
    others: bool,
}

impl Reads {
    pub(super) fn add(&mut self, pass: &Pass<'_>, kept: &Kept) {
        if kept.entry.same_warp(pass.now.entry) {
            self.own = self.own.max(Some(kept.entry.time));
        } else {
            self.others |= kept.entry.launch == pass.now.entry.launch;
        }
    }
}

/// The words that a record stores to, and what they refer to.
#[derive(Clone, Copy)]
pub(super) struct Store {
    pub(super) writer: Id,
    pub(super) state: u16,
    pub(super) reads: Reads,
}

impl Pass<'_> {
    fn is_like(&self, kept: &Kept) -> bool {
        kept.is_like(self.now.entry.mask, &self.pattern, self.now.record)
    }

    /// Whether other blocks may reach the memory.
    fn is_for_others(&self) -> bool {
        !Tagged(self.pattern.first).is_shared()
            || self.now.launch.is_some_and(|launch| launch.geometry.has_clusters())
    }
}

impl Quiet {
    /// What the record will stand for at words that it stores to; `None` where that differs from word to word.
    pub(super) fn before(&self, pass: &mut Pass<'_>, store: Store) -> Option<u16> {
        self.stood_for(pass, store, |pass, kept, counts| {
            let own = kept.entry.same_warp(pass.now.entry);
            if own && !pass.is_like(kept) {
                return None;
            }
            if counts {
                return Some(true);
            }
            let (record, now) = (kept.record()?, pass.now.record);
            match (record.one_value(), now.one_value()) {
                (Some(a), Some(b)) => Some(a != b),
                _ if own || pass.is_like(kept) => {
                    let first = record.written(0) != now.written(0);
                    let mut ranks = 1..now.lane_count();
                    ranks.all(|rank| (record.written(rank) != now.written(rank)) == first).then_some(first)
                }
                _ => None,
            }
        })
    }

    /// The same for one word.
    pub(super) fn before_at(&self, pass: &mut Pass<'_>, store: Store, word: u64) -> u16 {
        let bits =
            self.stood_for(pass, store, |pass, kept, _| {
                let record = kept.record()?;
                let now = pass.pattern.ranks_at(pass.now.record, word);
                let mut earlier = lanes(kept.pattern.ranks_at(&record, word));
                Some(earlier.any(|before| {
                    lanes(now).any(|now| record.written(before) != pass.now.record.written(now))
                }))
            });
        bits.unwrap_or(OWN | OTHERS)
    }

    /// What reads and the last store leave to stand for. `differ` says whether that store had another value, `None` if it
    /// cannot; it is told whether such a store counts already.
    fn stood_for(
        &self,
        pass: &mut Pass<'_>,
        store: Store,
        differ: impl FnOnce(&Pass<'_>, &Kept, bool) -> Option<bool>,
    ) -> Option<u16> {
        let others = if pass.is_for_others() { OTHERS } else { 0 };
        let mut bits = reads(pass, store, others);
        let of_launch = |kept: &&Kept| kept.entry.launch == pass.now.entry.launch;
        let Some(kept) = self.records.get(store.writer).filter(of_launch) else { return Some(bits) };
        let own = kept.entry.same_warp(pass.now.entry);
        bits |= behind(store.state, own, others);
        let differs = if own { OWN } else { others };
        let differ = differ(pass, kept, bits & differs == differs)?;
        if own {
            pass.own_time = pass.own_time.max(if differ { kept.entry.time } else { kept.own_time });
        }
        Some(if differ { bits | differs } else { bits })
    }
}

/// What the reads of a chain make it stand for.
fn reads(pass: &mut Pass<'_>, store: Store, others: u16) -> u16 {
    let Reads { own, others: by_others } = store.reads;
    pass.own_time = pass.own_time.max(own.unwrap_or(0));
    let own = if own.is_some() { OWN } else { 0 };
    own | if by_others { others } else { 0 }
}

/// `Stands::replace` for what the state of a word tells.
fn behind(state: u16, own: bool, others: u16) -> u16 {
    match state & (OWN | OTHERS) {
        0 => 0,
        bits if own => bits,
        _ => others,
    }
}
