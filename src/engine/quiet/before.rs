//! What else the writer of a quiet word stands for: what `Cell::add` says of stores in cells.

use super::kept::{Id, Kept};
use super::spans::Pattern;
use super::{Pass, Quiet};
use crate::abi::{Record, Tagged, lanes};
use crate::engine::clock::Time;
use crate::engine::stands::Stands;

/// In `Page::state`: the writer stands for accesses of its thread, for those of others.
const OWN: u16 = 1 << 8;
const OTHERS: u16 = 1 << 9;

/// What the writer of a word in this state stands for.
pub(super) fn stands(state: u16, kept: &Kept) -> Stands {
    Stands::weak((state & OWN != 0).then_some(kept.own_time), state & OTHERS != 0)
}

/// Whether readers of a chain are of the warp at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OwnReads {
    None,
    /// Of some words perhaps.
    Some,
    /// By the lanes that now store there, at this time.
    All(Time),
}

/// The words that a record stores to, and what they refer to.
#[derive(Clone, Copy)]
pub(super) struct Store {
    pub(super) writer: Id,
    pub(super) chain: Id,
    pub(super) state: u16,
    pub(super) own_reads: OwnReads,
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

    pub(super) fn own_reads(&self, kept: &Kept) -> OwnReads {
        match (kept.entry.same_warp(&self.now.entry), self.is_like(kept)) {
            (false, _) => OwnReads::None,
            (true, false) => OwnReads::Some,
            (true, true) => OwnReads::All(kept.entry.time),
        }
    }
}

impl Quiet {
    /// What the record will stand for at words that it stores to; `None` where that differs from word to word.
    pub(super) fn before(&self, pass: &mut Pass<'_>, store: Store) -> Option<u16> {
        let others = if pass.is_for_others() { OTHERS } else { 0 };
        let is_of_launch = |kept: &&Kept, pass: &Pass<'_>| kept.entry.launch == pass.now.entry.launch;
        let mut bits = match store.own_reads {
            OwnReads::None => 0,
            OwnReads::Some => return None,
            OwnReads::All(time) => {
                pass.own_time = pass.own_time.max(time);
                OWN
            }
        };
        if others != 0 && store.chain != 0 {
            let mut readers = self.links.chain(store.chain).filter_map(|link| self.records.get(link.record));
            let other = |kept: &Kept| is_of_launch(&kept, pass) && !kept.entry.same_warp(&pass.now.entry);
            bits |= if readers.any(other) { others } else { 0 };
        }
        let Some(kept) = self.records.get(store.writer).filter(|kept| is_of_launch(kept, pass)) else {
            return Some(bits);
        };
        let own = kept.entry.same_warp(&pass.now.entry);
        if own && !pass.is_like(kept) {
            return None;
        }
        bits |= behind(store.state, own, others);
        let differs = if own { OWN } else { others };
        let record = kept.record()?;
        let now = pass.now.record;
        let differ = match (record.one_value(), now.one_value()) {
            _ if bits & differs == differs => true,
            (Some(a), Some(b)) => a != b,
            _ if own || pass.is_like(kept) => {
                let first = record.written(0) != now.written(0);
                let mut ranks = 1..now.mask().count_ones() as usize;
                if ranks.any(|rank| (record.written(rank) != now.written(rank)) != first) {
                    return None;
                }
                first
            }
            _ => return None,
        };
        if own {
            pass.own_time = pass.own_time.max(if differ { kept.entry.time } else { kept.own_time });
        }
        Some(if differ { bits | differs } else { bits })
    }

    /// The same for one word.
    pub(super) fn before_at(&self, pass: &mut Pass<'_>, store: Store, word: u64) -> u16 {
        let others = if pass.is_for_others() { OTHERS } else { 0 };
        let readers = self.links.chain(store.chain).map(|link| (link.record, false));
        let (mut bits, mut time) = (0, 0);
        for (id, stores) in readers.chain([(store.writer, true)]) {
            let of_launch = |kept: &&Kept| kept.entry.launch == pass.now.entry.launch;
            let Some(kept) = self.records.get(id).filter(of_launch) else { continue };
            let Some(record) = kept.record() else { continue };
            let of_warp = kept.entry.same_warp(&pass.now.entry);
            for_pairs(&record, &kept.pattern, pass, word, |before, now, same_lane| {
                let own = of_warp && same_lane;
                let differ = !stores || record.written(before) != pass.now.record.written(now);
                if stores {
                    bits |= behind(store.state, own, others);
                }
                if differ {
                    bits |= if own { OWN } else { others };
                }
                if own {
                    time = time.max(if differ { kept.entry.time } else { kept.own_time });
                }
            });
        }
        pass.own_time = pass.own_time.max(time);
        bits
    }
}

/// `Stands::replace` for what the state of a word tells.
fn behind(state: u16, own: bool, others: u16) -> u16 {
    match state & (OWN | OTHERS) {
        0 => 0,
        bits if own => bits,
        _ => others,
    }
}

/// Goes through the pairs of an earlier and a present rank that touch a word, and tells of each whether it is one lane.
fn for_pairs(
    earlier: &Record<'_>,
    pattern: &Pattern,
    pass: &Pass<'_>,
    word: u64,
    mut found: impl FnMut(usize, usize, bool),
) {
    let (before, after) = (earlier.lanes_by_rank(), pass.now.record.lanes_by_rank());
    let now = pass.pattern.ranks_at(pass.now.record, word);
    for a in lanes(pattern.ranks_at(earlier, word)) {
        for b in lanes(now) {
            found(a, b, before[a] == after[b]);
        }
    }
}
