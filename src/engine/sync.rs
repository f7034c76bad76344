//! Strong locations: what was written there, what each write hands on, and who has observed it.
//!
//! A write hands on a *message*: what its release patterns cover. A message keeps apart how far each part was released,
//! to the block, to the cluster or to the device, and remembers that block or cluster, since scopes are checked for each
//! edge. Where clusters have one block, cluster scope is block scope, and no part is kept for clusters.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::clock::{self, Know, ScClocks, Time};
use crate::event::{Geometry, Place};
use crate::finding::{ThreadId, Witness};
use crate::isa::{Marking, Scope};

/// How far a scope reaches in a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// The block.
    Block,
    /// The cluster, where clusters have several blocks.
    Cluster,
    /// The device.
    Device,
}

/// A block, and what it takes to tell who is near it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    pub(super) block: u32,
    /// The first block of its cluster, where clusters have several.
    cluster: Option<u32>,
}

impl Home {
    pub(super) fn new(block: u32, geometry: Geometry) -> Self {
        Self { block, cluster: geometry.has_clusters().then(|| geometry.cluster(block)) }
    }

    /// Whether its cluster has other blocks.
    pub(super) fn has_peers(self) -> bool {
        self.cluster.is_some()
    }

    /// The cluster, where it has other blocks and what reaches so far reaches them.
    pub(super) fn peers(self, reach: Reach) -> Option<u32> {
        self.cluster.filter(|_| reach >= Reach::Cluster)
    }

    /// How far a scope reaches from here.
    pub(super) fn reach(self, scope: Scope) -> Reach {
        match scope {
            Scope::Cta => Reach::Block,
            Scope::Cluster if self.cluster.is_some() => Reach::Cluster,
            Scope::Cluster => Reach::Block,
            Scope::Gpu | Scope::Sys => Reach::Device,
        }
    }

    /// How far it is to another block of the launch.
    pub(super) fn distance(self, other: Self) -> Reach {
        if self.block == other.block {
            Reach::Block
        } else if self.cluster.is_some() && self.cluster == other.cluster {
            Reach::Cluster
        } else {
            Reach::Device
        }
    }
}

/// Knowledge by block or cluster.
type Parts = SmallVec<[(u32, Arc<Know>); 1]>;

/// What a write hands on to those who acquire it.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    /// Released at device scope or wider, by anyone.
    pub(super) wide: Option<Arc<Know>>,
    /// Released at cluster scope or wider, by cluster.
    clusters: Parts,
    /// Released at any scope, by block.
    near: Parts,
}

/// A message remembers at most this many blocks apart. Beyond, an acquire of block scope may miss an edge that came
/// through a chain of that many blocks.
const NEAR_BLOCKS: usize = 32;

fn add_part(parts: &mut Parts, of: u32, know: &Arc<Know>) {
    match parts.iter_mut().find(|(own, _)| *own == of) {
        Some((_, own)) => *own = clock::join(own, know),
        None => {
            if parts.len() >= NEAR_BLOCKS {
                parts.remove(0);
            }
            parts.push((of, Arc::clone(know)));
        }
    }
}

impl Message {
    pub(super) fn is_empty(&self) -> bool {
        self.wide.is_none() && self.near.is_empty()
    }

    /// Adds what a thread released, so far.
    pub(super) fn add(&mut self, home: Home, reach: Reach, know: &Arc<Know>) {
        add_part(&mut self.near, home.block, know);
        if let Some(cluster) = home.peers(reach) {
            add_part(&mut self.clusters, cluster, know);
        }
        if reach == Reach::Device {
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
        for (cluster, know) in &other.clusters {
            add_part(&mut self.clusters, *cluster, know);
        }
        for (block, know) in &other.near {
            add_part(&mut self.near, *block, know);
        }
    }

    /// What a thread may take by an acquire that reaches so far.
    pub(super) fn eligible(&self, home: Home, reach: Reach) -> SmallVec<[&Arc<Know>; 2]> {
        let near = self.near.iter().filter(|(block, _)| *block == home.block).map(|(_, know)| know);
        let peers = home.peers(reach);
        let clusters = self.clusters.iter().filter(|(of, _)| Some(*of) == peers);
        let wide = self.wide.as_ref().filter(|_| reach == Reach::Device);
        near.chain(clusters.map(|(_, know)| know)).chain(wide).collect()
    }

    /// How far the widest part of it reaches that covers lanes of a warp up to `time`.
    pub(super) fn covers(&self, block: u32, warp: u8, mask: u32, time: Time) -> Option<Reach> {
        let known = |know: &Arc<Know>| know.clock.known(block, warp, mask, time) == mask;
        let any = |parts: &Parts| parts.iter().any(|(_, know)| known(know));
        if self.wide.as_ref().is_some_and(known) {
            Some(Reach::Device)
        } else if any(&self.clusters) {
            Some(Reach::Cluster)
        } else {
            any(&self.near).then_some(Reach::Block)
        }
    }
}

/// Whether a scope reaches other clusters.
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
    /// What the writer knew. A perfect publication would hand on that, and its own accesses up to `time`.
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
