//! What each warp and block knows.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use super::clock::{self, Know, ScClocks, Seen, Time};
use super::copies::Groups;
use super::gather::Gathered;
use super::publish::{OBSERVATIONS, Observation};
use super::shadow::Shadow;
use super::sync::{Home, Message, Reach};
use crate::abi::lanes;
use crate::event::{Geometry, Place};
use crate::isa::Scope;

/// Knowledge of a warp's lanes: one for all while they are alike.
#[derive(Clone, Debug)]
pub(super) enum LaneKnow {
    All(Arc<Know>),
    Each(Box<[Arc<Know>; 32]>),
}

impl LaneKnow {
    pub(super) fn get(&self, lane: usize) -> &Arc<Know> {
        match self {
            Self::All(know) => know,
            Self::Each(knows) => &knows[lane & 31],
        }
    }

    /// Changes what the lanes of a mask know. `live` are all lanes of the warp that can still act.
    pub(super) fn update(&mut self, mask: u32, live: u32, mut f: impl FnMut(&Arc<Know>) -> Arc<Know>) {
        match self {
            Self::All(know) if mask & live == live => *know = f(know),
            Self::All(know) => {
                let changed = f(know);
                if Arc::ptr_eq(&changed, know) {
                    return;
                }
                let each = std::array::from_fn(|lane| {
                    Arc::clone(if mask >> lane & 1 != 0 { &changed } else { know })
                });
                *self = Self::Each(Box::new(each));
            }
            Self::Each(knows) => {
                let mut last: Option<(Arc<Know>, Arc<Know>)> = None;
                for (lane, know) in knows.iter_mut().enumerate() {
                    if mask >> lane & 1 == 0 {
                        continue;
                    }
                    let changed = match &last {
                        Some((from, to)) if Arc::ptr_eq(from, know) => Arc::clone(to),
                        _ => f(know),
                    };
                    last = Some((std::mem::replace(know, Arc::clone(&changed)), changed));
                }
                let first = live.trailing_zeros() as usize & 31;
                let alike = (0..32).all(|l| live >> l & 1 == 0 || Arc::ptr_eq(&knows[l], &knows[first]));
                if alike {
                    *self = Self::All(Arc::clone(&knows[first]));
                }
            }
        }
    }

    /// The lanes of a mask, those together that know the same.
    pub(super) fn alike(&self, mask: u32) -> SmallVec<[u32; 4]> {
        let Self::Each(knows) = self else { return std::iter::once(mask).collect() };
        let mut groups: SmallVec<[u32; 4]> = SmallVec::new();
        for lane in lanes(mask) {
            let same =
                |group: &&mut u32| Arc::ptr_eq(&knows[group.trailing_zeros() as usize & 31], &knows[lane]);
            match groups.iter_mut().find(same) {
                Some(group) => *group |= 1 << lane,
                None => groups.push(1 << lane),
            }
        }
        groups
    }

    /// Every different knowledge among the lanes of a mask.
    pub(super) fn distinct(&self, mask: u32) -> SmallVec<[&Arc<Know>; 4]> {
        match self {
            Self::All(know) => std::iter::once(know).collect(),
            Self::Each(knows) => {
                let mut out: SmallVec<[&Arc<Know>; 4]> = SmallVec::new();
                for (lane, know) in knows.iter().enumerate() {
                    if mask >> lane & 1 != 0 && !out.iter().any(|seen| Arc::ptr_eq(seen, know)) {
                        out.push(know);
                    }
                }
                out
            }
        }
    }
}

/// The last `fence.sc` of some lanes.
#[derive(Clone, Debug)]
struct ScFence {
    mask: u32,
    time: Time,
    know: Arc<Know>,
    reach: Reach,
    /// The cluster that it reaches, where clusters have several blocks.
    cluster: Option<u32>,
}

/// What a lane has fenced and seen, knowledge with its own accesses up to then: the open ends of release and acquire patterns.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneSync {
    /// At the last release-capable fence that reaches at least so far, by `Reach`.
    pub(super) released: [Option<Arc<Know>>; 3],
    /// At the last release operation on a place, and how far its scope reaches.
    pub(super) released_on: SmallVec<[(Place, Arc<Know>, Reach); 1]>,
    /// What strong reads have seen and no acquire has taken yet.
    pub(super) pending: Message,
    /// The same by place.
    pub(super) pending_on: SmallVec<[(Place, Message); 1]>,
    /// The last acquire-capable fence: when, by the engine's count of events, and its scope.
    pub(super) acquire_fence: Option<(u64, Scope)>,
    /// The last release-capable fence: when and its scope.
    pub(super) release_fence: Option<(Time, Scope)>,
    /// No strong access came since then.
    pub(super) fresh: bool,
    /// At the last release-capable fence of scope `.sys`.
    pub(super) system: Option<Arc<Know>>,
}

/// Fences by how far they reach.
const REACHES: [Reach; 3] = [Reach::Block, Reach::Cluster, Reach::Device];

impl LaneSync {
    /// A release-capable fence.
    pub(super) fn release(&mut self, reach: Reach, know: &Arc<Know>) {
        for (released, of) in self.released.iter_mut().zip(REACHES) {
            if of <= reach {
                *released = Some(Arc::clone(know));
            }
        }
    }

    /// Adds to a message what fences have released.
    pub(super) fn hand_on(&self, home: Home, message: &mut Message) {
        for (released, reach) in self.released.iter().zip(REACHES) {
            if let Some(released) = released
                && (reach != Reach::Cluster || home.has_peers())
            {
                message.add(home, reach, released);
            }
        }
    }
}

/// A warp.
#[derive(Debug)]
pub(super) struct Warp {
    pub(super) exists: u32,
    pub(super) time: Time,
    pub(super) know: LaneKnow,
    pub(super) sync: Option<Box<[LaneSync; 32]>>,
    sc_fences: SmallVec<[ScFence; 1]>,
    /// Copies that complete by groups.
    pub(super) groups: Option<Box<Groups>>,
    pub(super) exited: u32,
    /// CTA barriers passed.
    pub(super) interval: u32,
    /// Lanes that met at a `.sync` instruction, and when they last did. No lane is in two of these; what a lane learned of
    /// others by convergence besides is in its knowledge.
    pub(super) met: SmallVec<[(u32, Time); 1]>,
    /// For each exited lane, the block's count of completed barriers at the first one that it counted as arrived for.
    absent_phase: Option<Box<[u32; 32]>>,
    /// The block's count of completed barriers when this warp last passed one.
    pub(super) passed_phase: u32,
}

impl Warp {
    fn new(block: u32, exists: u32) -> Self {
        Self {
            exists,
            time: 1,
            know: LaneKnow::All(Arc::new(Know::new(block))),
            sync: None,
            sc_fences: SmallVec::new(),
            groups: None,
            exited: 0,
            interval: 0,
            met: SmallVec::new(),
            absent_phase: None,
            passed_phase: 0,
        }
    }

    /// Lanes that can still act.
    pub(super) fn live(&self) -> u32 {
        self.exists & !self.exited
    }

    pub(super) fn lane_sync(&mut self, lane: usize) -> &mut LaneSync {
        let lanes = self.sync.get_or_insert_with(|| Box::new(std::array::from_fn(|_| LaneSync::default())));
        &mut lanes[lane & 31]
    }

    /// Adds to `target` all that lanes of this warp hand on when they synchronise now.
    pub(super) fn hand_on(&self, block: u32, warp: u8, mask: u32, target: &mut Know) {
        for know in self.know.distinct(mask) {
            target.join(know);
        }
        target.clock.raise(block, warp, mask, self.time);
        let fences = self.fences(block, warp, mask);
        clock::join_sc(&mut target.fences, fences.as_ref(), target.block == block);
        for (met, time) in &self.met {
            if met & mask != 0 && met & !mask != 0 {
                target.met(block, warp, met & !mask, *time);
            }
        }
    }

    /// Clocks of the `fence.sc` that these lanes executed themselves.
    fn fences(&self, block: u32, warp: u8, mask: u32) -> Option<Arc<ScClocks>> {
        let mut all: Option<ScClocks> = None;
        for fence in self.sc_fences.iter().filter(|fence| fence.mask & mask != 0) {
            let all = all.get_or_insert_default();
            let add = |clock: &mut clock::Clock| {
                clock.join(&fence.know.clock);
                clock.raise(block, warp, fence.mask & mask, fence.time);
            };
            add(&mut all.near);
            if let Some(cluster) = fence.cluster {
                add(all.cluster_mut(cluster));
            }
            if fence.reach == Reach::Device {
                add(&mut all.wide);
            }
        }
        all.map(Arc::new)
    }

    /// Clocks of the `fence.sc` that precede what a lane does now.
    pub(super) fn fences_before(&self, block: u32, warp: u8, lane: usize) -> Option<Arc<ScClocks>> {
        let mut fences = self.know.get(lane).fences.clone();
        if !self.sc_fences.is_empty() {
            clock::join_sc(&mut fences, self.fences(block, warp, 1 << lane).as_ref(), true);
        }
        fences
    }

    /// Notes a `fence.sc` of lanes that know `know`.
    pub(super) fn note_sc_fence(&mut self, mask: u32, home: Home, reach: Reach, know: Arc<Know>) {
        let (time, cluster) = (self.time, home.peers(reach));
        // A narrow fence does not replace a wide one, which still orders with other blocks.
        for fence in &mut self.sc_fences {
            if reach >= fence.reach {
                fence.mask &= !mask;
            }
        }
        self.sc_fences.retain(|fence| fence.mask != 0);
        self.sc_fences.push(ScFence { mask, time, know, reach, cluster });
    }

    /// All that one lane hands on.
    pub(super) fn lane_know(&self, block: u32, warp: u8, lane: usize) -> Arc<Know> {
        let mut know = Know::new(block);
        self.hand_on(block, warp, 1 << lane, &mut know);
        Arc::new(know)
    }

    /// Lanes have met without memory order.
    pub(super) fn meet(&mut self, block: u32, warp: u8, mask: u32) {
        let live = self.live();
        // Who met others before brings what it learned of them.
        for (met, time) in self.met.iter().filter(|(met, _)| met & mask != 0 && met & !mask != 0) {
            let mut seen = Seen::default();
            seen.clock.raise(block, warp, *met, *time);
            self.know.update(*met, live, |own| Know::meeting(own, &seen));
        }
        self.met.retain(|(met, _)| *met & mask == 0);
        let apart = self.know.distinct(mask);
        if apart.len() > 1 {
            let mut seen = Seen::default();
            apart.iter().for_each(|know| know.add_to(&mut seen));
            drop(apart);
            self.know.update(mask, live, |own| Know::meeting(own, &seen));
        }
        self.met.push((mask, self.time));
        // What lanes do next must be told from what they did before they met.
        self.time += 1;
    }

    /// Whether all lanes know the same, and hand on no more than that and their own accesses.
    pub(super) fn is_plain(&self, mask: u32) -> Option<&Arc<Know>> {
        match &self.know {
            LaneKnow::All(know) if mask == self.exists && self.sc_fences.is_empty() => Some(know),
            _ => None,
        }
    }

    /// Exited lanes counted as arrived at the block's barrier number `phase`.
    pub(super) fn absent(&mut self, mask: u32, phase: u32) {
        let phases = self.absent_phase.get_or_insert_with(|| Box::new([u32::MAX; 32]));
        for (lane, at) in phases.iter_mut().enumerate() {
            if mask >> lane & 1 != 0 {
                *at = phase.min(*at);
            }
        }
    }

    /// Whether a barrier counted exited lanes as arrived.
    pub(super) fn has_absent(&self) -> bool {
        self.absent_phase.is_some()
    }

    /// The first barrier of the block that counted this lane as arrived because it had exited.
    pub(super) fn absent_phase(&self, lane: u8) -> Option<u32> {
        self.absent_phase.as_ref().map(|phases| phases[usize::from(lane) & 31])
    }
}

/// A block.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) warps: Vec<Warp>,
    pub(super) shared: Shadow,
    /// What has arrived at each barrier in its current phase, as far as any was used.
    pub(super) barriers: Vec<Gathered>,
    /// Strong locations of its shared memory, to be forgotten with it.
    pub(super) locations: Vec<Place>,
    /// Its mbarriers, by the engine's numbers.
    pub(super) mbarriers: Vec<u32>,
    /// Barriers completed.
    pub(super) phase: u32,
    /// The latest reads that saw another thread's write.
    pub(super) observations: VecDeque<Observation>,
}

/// A block without its shadow, which is written while the rest is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'b> {
    pub(super) warps: &'b [Warp],
    pub(super) observations: &'b VecDeque<Observation>,
}

impl Block {
    pub(super) fn new(index: u32, geometry: Geometry) -> Self {
        Self {
            warps: (0..geometry.warps).map(|warp| Warp::new(index, geometry.lanes(warp))).collect(),
            shared: Shadow::default(),
            barriers: Vec::new(),
            locations: Vec::new(),
            mbarriers: Vec::new(),
            phase: 0,
            observations: VecDeque::new(),
        }
    }

    /// Notes that a thread saw another's write.
    pub(super) fn observe(&mut self, seen: Observation) {
        if self.observations.len() >= OBSERVATIONS {
            self.observations.pop_front();
        }
        self.observations.push_back(seen);
    }
}
