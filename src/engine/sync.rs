//! Strong locations: what was written there, what each write hands on, and who has observed it.
//!
//! A write hands on a *message*: what its release patterns cover. A message keeps apart what
//! was released at device scope or wider from what was released in one block only, and remembers that block, since
//! scopes are checked for each edge. Cluster scope counts as block scope here until clusters are covered: that can only
//! give reports too many, and only for launches with clusters.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::clock::{self, Know, ScClocks, Time};
use crate::event::Place;
use crate::finding::{ThreadId, Witness};
use crate::isa::{Marking, Scope};

/// What a write hands on to those who acquire it.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    /// Released at device scope or wider, by anyone.
    pub(super) wide: Option<Arc<Know>>,
    /// Released at any scope, by block.
    pub(super) near: SmallVec<[(u32, Arc<Know>); 1]>,
}

/// A message remembers at most this many blocks apart. Beyond, an acquire of block scope may miss an edge that came
/// through a chain of that many blocks.
const NEAR_BLOCKS: usize = 32;

impl Message {
    pub(super) fn is_empty(&self) -> bool {
        self.wide.is_none() && self.near.is_empty()
    }

    /// Adds what a thread of `block` released.
    pub(super) fn add(&mut self, block: u32, wide: bool, know: &Arc<Know>) {
        match self.near.iter_mut().find(|(b, _)| *b == block) {
            Some((_, own)) => *own = clock::join(own, know),
            None => {
                if self.near.len() >= NEAR_BLOCKS {
                    self.near.remove(0);
                }
                self.near.push((block, Arc::clone(know)));
            }
        }
        if wide {
            self.add_wide(know);
        }
    }

    fn add_wide(&mut self, know: &Arc<Know>) {
        self.wide = Some(match &self.wide {
            Some(own) => clock::join(own, know),
            None => Arc::clone(know),
        });
    }

    /// Adds all of another message.
    pub(super) fn join(&mut self, other: &Self) {
        if let Some(wide) = &other.wide {
            self.add_wide(wide);
        }
        for (block, know) in &other.near {
            self.add(*block, false, know);
        }
    }

    /// What a thread of `block` may take by an acquire of this scope.
    pub(super) fn eligible(&self, block: u32, wide: bool) -> SmallVec<[&Arc<Know>; 2]> {
        let near = self.near.iter().filter(|(b, _)| *b == block).map(|(_, know)| know);
        near.chain(self.wide.as_ref().filter(|_| wide)).collect()
    }

    /// Whether any part of it covers lanes of a warp up to `time`, and whether a wide part does.
    pub(super) fn covers(&self, block: u32, warp: u8, mask: u32, time: Time) -> (bool, bool) {
        let known = |know: &Arc<Know>| know.clock.known(block, warp, mask, time) == mask;
        let wide = self.wide.as_ref().is_some_and(known);
        (wide || self.near.iter().any(|(_, know)| known(know)), wide)
    }
}

/// Whether a scope reaches other blocks.
pub(super) fn is_wide(scope: Scope) -> bool {
    scope >= Scope::Gpu
}

/// A write to a strong location.
#[derive(Clone, Debug)]
pub(super) struct Write {
    /// Its place in the location's order of writes.
    pub(super) order: u32,
    pub(super) value: Option<u64>,
    pub(super) thread: ThreadId,
    pub(super) time: Time,
    /// What the writer handed on, its own accesses before the write included: what a perfect publication would give.
    pub(super) know: Arc<Know>,
    pub(super) message: Message,
    /// Fences that precede it.
    pub(super) fences: Option<Arc<ScClocks>>,
    /// `None` for a weak store.
    pub(super) scope: Option<Scope>,
    pub(super) rmw: bool,
    pub(super) marking: Marking,
    pub(super) witness: Witness,
    /// The writer has executed a release-capable fence somewhere before, for the explanation only.
    pub(super) fenced_elsewhere: bool,
}

/// A run of writes in which each read-modify-write observed the one before: who observes a later one has observed the
/// earlier ones too.
#[derive(Clone, Debug, Default)]
struct Chain {
    start: u32,
    /// By thread: the latest write of the chain it observed, and when it did.
    observers: FxHashMap<ThreadId, (u32, Time)>,
}

/// A location that strong operations touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Location {
    pub(super) writes: VecDeque<Write>,
    chains: VecDeque<Chain>,
    next: u32,
}

/// Writes kept for matching values and for explaining. A read of an older value gets no edge.
const HISTORY: usize = 64;
/// Chains kept. A write of an older chain is no longer ordered by observation.
const CHAINS: usize = 16;

impl Location {
    /// The write whose value a read saw: the latest of that value.
    pub(super) fn observed(&self, value: Option<u64>) -> Option<&Write> {
        match value {
            Some(value) => self.writes.iter().rev().find(|write| write.value == Some(value)),
            None => self.writes.back(),
        }
    }

    /// The write of this order, if it is still known.
    pub(super) fn write(&self, order: u32) -> Option<&Write> {
        self.writes.iter().find(|write| write.order == order)
    }

    /// The order number that the next write will get.
    pub(super) fn next_order(&self) -> u32 {
        self.next
    }

    /// Adds a write. `continues` says that it is a read-modify-write that observed the last one, morally strong.
    pub(super) fn push(&mut self, mut write: Write, continues: bool) {
        write.order = self.next;
        if !continues || self.chains.is_empty() {
            if self.chains.len() >= CHAINS {
                self.chains.pop_front();
            }
            self.chains.push_back(Chain { start: self.next, observers: FxHashMap::default() });
        }
        self.next = self.next.wrapping_add(1);
        if self.writes.len() >= HISTORY {
            self.writes.pop_front();
        }
        self.writes.push_back(write);
    }

    /// Notes that a thread observed a write, morally strong.
    pub(super) fn note_observer(&mut self, order: u32, thread: ThreadId, time: Time) {
        if let Some(chain) = self.chains.iter_mut().rev().find(|chain| chain.start <= order) {
            let seen = chain.observers.entry(thread).or_insert((order, time));
            // An earlier time is enough for the same write; a later write says more.
            if order > seen.0 {
                *seen = (order, time);
            }
        }
    }

    /// Whether the write of this order was observed by a thread that `ordered` says comes before the access in
    /// question.
    pub(super) fn observed_before(&self, order: u32, ordered: impl Fn(ThreadId, Time) -> bool) -> bool {
        let mut chains = self.chains.iter().rev().skip_while(|chain| chain.start > order);
        chains.next().is_some_and(|chain| {
            chain.observers.iter().any(|(thread, (seen, time))| *seen >= order && ordered(*thread, *time))
        })
    }
}

/// All strong locations.
pub(super) type Locations = FxHashMap<Place, Location>;
