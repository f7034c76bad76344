//! Vector clocks over the threads of a launch, compressed along the hierarchy: a block whose threads are all known up
//! to one time is one number, a warp likewise, and only a warp whose lanes differ has 32.
//!
//! Times are per warp: lanes of a warp count with one counter, which only has to grow for each of them. Clocks are
//! shared by `Arc` and joined without copying what is equal.

use std::sync::Arc;

use smallvec::SmallVec;

/// A warp's clock value.
pub(super) type Time = u32;

#[derive(Clone, Debug, PartialEq, Eq)]
enum WarpClock {
    All(Time),
    Lanes(Box<[Time; 32]>),
}

impl WarpClock {
    fn get(&self, lane: u8) -> Time {
        match self {
            Self::All(time) => *time,
            Self::Lanes(times) => times.get(usize::from(lane)).copied().unwrap_or(0),
        }
    }

    fn raise(&mut self, mask: u32, time: Time) {
        if mask == u32::MAX {
            match self {
                Self::All(own) => *own = (*own).max(time),
                Self::Lanes(times) if times.iter().all(|t| *t <= time) => *self = Self::All(time),
                Self::Lanes(times) => times.iter_mut().for_each(|t| *t = (*t).max(time)),
            }
            return;
        }
        if let Self::All(own) = self {
            if *own >= time {
                return;
            }
            *self = Self::Lanes(Box::new([*own; 32]));
        }
        if let Self::Lanes(times) = self {
            for (lane, own) in times.iter_mut().enumerate() {
                if mask >> lane & 1 != 0 {
                    *own = (*own).max(time);
                }
            }
        }
    }

    fn join(&mut self, other: &Self) {
        match other {
            Self::All(time) => self.raise(u32::MAX, *time),
            Self::Lanes(theirs) => {
                let own: [Time; 32] = std::array::from_fn(|lane| self.get(lane as u8).max(theirs[lane]));
                *self = if own.iter().all(|t| *t == own[0]) {
                    Self::All(own[0])
                } else {
                    Self::Lanes(Box::new(own))
                };
            }
        }
    }

    fn is_within(&self, time: Time) -> bool {
        match self {
            Self::All(own) => *own <= time,
            Self::Lanes(times) => times.iter().all(|t| *t <= time),
        }
    }

    fn precedes(&self, other: &Self) -> bool {
        (0..32).all(|lane| self.get(lane) <= other.get(lane))
    }
}

/// What is known of one block: every thread up to `base`, some warps further.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct BlockClock {
    base: Time,
    warps: SmallVec<[(u8, WarpClock); 1]>,
}

impl BlockClock {
    #[cfg(test)]
    fn get(&self, warp: u8, lane: u8) -> Time {
        match self.warps.binary_search_by_key(&warp, |(w, _)| *w) {
            Ok(at) => self.warps[at].1.get(lane).max(self.base),
            Err(_) => self.base,
        }
    }

    fn raise(&mut self, warp: u8, mask: u32, time: Time) {
        if time <= self.base {
            return;
        }
        match self.warps.binary_search_by_key(&warp, |(w, _)| *w) {
            Ok(at) => self.warps[at].1.raise(mask, time),
            Err(at) => {
                let mut clock = WarpClock::All(self.base);
                clock.raise(mask, time);
                self.warps.insert(at, (warp, clock));
            }
        }
    }

    fn raise_base(&mut self, time: Time) {
        self.base = self.base.max(time);
        let base = self.base;
        self.warps.retain(|(_, clock)| !clock.is_within(base));
    }

    fn join(&mut self, other: &Self) {
        for (warp, theirs) in &other.warps {
            match self.warps.binary_search_by_key(warp, |(w, _)| *w) {
                Ok(at) => self.warps[at].1.join(theirs),
                Err(at) => {
                    let mut clock = WarpClock::All(self.base);
                    clock.join(theirs);
                    self.warps.insert(at, (*warp, clock));
                }
            }
        }
        self.raise_base(other.base);
    }

    fn precedes(&self, other: &Self) -> bool {
        self.base <= other.base
            && self.warps.iter().all(|(warp, clock)| {
                match other.warps.binary_search_by_key(warp, |(w, _)| *w) {
                    Ok(at) => {
                        let theirs = &other.warps[at].1;
                        clock.is_within(other.base) || clock.precedes(theirs) || {
                            (0..32).all(|lane| clock.get(lane) <= theirs.get(lane).max(other.base))
                        }
                    }
                    Err(_) => clock.is_within(other.base),
                }
            })
    }
}

/// A thread's knowledge of others, by block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    blocks: SmallVec<[(u32, Arc<BlockClock>); 1]>,
}

impl Clock {
    fn find(&self, block: u32) -> Result<usize, usize> {
        match self.blocks.as_slice() {
            [(only, _)] if *only == block => Ok(0),
            blocks => blocks.binary_search_by_key(&block, |(b, _)| *b),
        }
    }

    /// The time up to which a thread is known; 0 when not at all.
    #[cfg(test)]
    pub(super) fn get(&self, block: u32, warp: u8, lane: u8) -> Time {
        self.find(block).map_or(0, |at| self.blocks[at].1.get(warp, lane))
    }

    /// Whether anything of a block is known.
    pub(super) fn knows_of(&self, block: u32) -> bool {
        self.find(block).is_ok()
    }

    /// Whether nothing of other blocks is known.
    #[inline]
    pub(super) fn is_of(&self, block: u32) -> bool {
        self.blocks.iter().all(|(own, _)| *own == block)
    }

    /// The time up to which all threads of a block are known.
    #[inline]
    pub(super) fn base(&self, block: u32) -> Time {
        self.find(block).map_or(0, |at| self.blocks[at].1.base)
    }

    /// Lanes of `mask` that are known up to `time`.
    #[inline]
    pub(super) fn known(&self, block: u32, warp: u8, mask: u32, time: Time) -> u32 {
        let Ok(at) = self.find(block) else { return 0 };
        let clock = &self.blocks[at].1;
        if time <= clock.base {
            return mask;
        }
        match clock.warps.binary_search_by_key(&warp, |(w, _)| *w) {
            Err(_) => 0,
            Ok(at) => match &clock.warps[at].1 {
                WarpClock::All(own) => {
                    if *own >= time {
                        mask
                    } else {
                        0
                    }
                }
                WarpClock::Lanes(times) => {
                    let known = times.iter().enumerate().filter(|(_, own)| **own >= time);
                    known.fold(0, |all, (lane, _)| all | 1 << lane) & mask
                }
            },
        }
    }

    fn block_mut(&mut self, block: u32) -> &mut BlockClock {
        let at = match self.find(block) {
            Ok(at) => at,
            Err(at) => {
                self.blocks.insert(at, (block, Arc::default()));
                at
            }
        };
        Arc::make_mut(&mut self.blocks[at].1)
    }

    /// Knows these lanes of a warp up to `time`.
    pub(super) fn raise(&mut self, block: u32, warp: u8, mask: u32, time: Time) {
        self.block_mut(block).raise(warp, mask, time);
    }

    /// Knows every thread of a block up to `time`.
    pub(super) fn raise_block(&mut self, block: u32, time: Time) {
        self.block_mut(block).raise_base(time);
    }

    /// Knows all that `other` knows.
    pub(super) fn join(&mut self, other: &Self) {
        for (block, theirs) in &other.blocks {
            match self.find(*block) {
                Err(at) => self.blocks.insert(at, (*block, Arc::clone(theirs))),
                Ok(at) => {
                    let own = &mut self.blocks[at].1;
                    if Arc::ptr_eq(own, theirs) || theirs.precedes(own) {
                        continue;
                    }
                    if own.precedes(theirs) {
                        *own = Arc::clone(theirs);
                    } else {
                        Arc::make_mut(own).join(theirs);
                    }
                }
            }
        }
    }

    /// Whether `other` knows all that this does.
    pub(super) fn precedes(&self, other: &Self) -> bool {
        self.blocks.iter().all(|(block, own)| match other.find(*block) {
            Ok(at) => Arc::ptr_eq(own, &other.blocks[at].1) || own.precedes(&other.blocks[at].1),
            Err(_) => own.base == 0 && own.warps.is_empty(),
        })
    }
}

/// Clocks of `fence.sc` fences, for the order that causality forces between them.
/// `near` counts fences of any scope by threads of the own block, `wide` those of device scope by anyone, `clusters` those of
/// cluster scope or wider, by cluster, where clusters have several blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScClocks {
    pub(super) near: Clock,
    pub(super) wide: Clock,
    clusters: SmallVec<[(u32, Clock); 1]>,
}

impl ScClocks {
    /// The fences of a cluster.
    pub(super) fn cluster_mut(&mut self, cluster: u32) -> &mut Clock {
        let known = self.clusters.iter().position(|(of, _)| *of == cluster);
        let at = known.unwrap_or_else(|| {
            self.clusters.push((cluster, Clock::default()));
            self.clusters.len() - 1
        });
        &mut self.clusters[at].1
    }

    /// What comes before a fence of the own block that reaches its cluster, if given, and the device, if it is wide.
    pub(super) fn before(&self, cluster: Option<u32>, wide: bool) -> impl Iterator<Item = &Clock> {
        let peers = self.clusters.iter().filter(move |(of, _)| Some(*of) == cluster).map(|(_, clock)| clock);
        peers.chain(wide.then_some(&self.wide)).chain([&self.near])
    }

    fn join(&mut self, other: &Self, same_block: bool) {
        if same_block {
            self.near.join(&other.near);
        }
        self.wide.join(&other.wide);
        for (cluster, clock) in &other.clusters {
            self.cluster_mut(*cluster).join(clock);
        }
    }
}

/// Completed phases of mbarriers, by the engine's numbers of both: for each the latest, sorted by mbarrier. Earlier phases
/// of the same mbarrier count as known with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Phases {
    latest: SmallVec<[(u32, u32); 2]>,
}

impl Phases {
    /// The latest phase of an mbarrier that is known to be complete; 0 is none.
    pub(super) fn latest(&self, mbarrier: u32) -> u32 {
        match self.latest.binary_search_by_key(&mbarrier, |(own, _)| *own) {
            Ok(at) => self.latest[at].1,
            Err(_) => 0,
        }
    }

    pub(super) fn raise(&mut self, mbarrier: u32, phase: u32) {
        match self.latest.binary_search_by_key(&mbarrier, |(own, _)| *own) {
            Ok(at) => self.latest[at].1 = self.latest[at].1.max(phase),
            Err(at) => self.latest.insert(at, (mbarrier, phase)),
        }
    }

    fn join(&mut self, other: &Self) {
        other.latest.iter().for_each(|(mbarrier, phase)| self.raise(*mbarrier, *phase));
    }

    fn precedes(&self, other: &Self) -> bool {
        self.latest.iter().all(|(mbarrier, phase)| *phase <= other.latest(*mbarrier))
    }
}

/// What is known, for one kind of access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) clock: Clock,
    pub(super) phases: Phases,
}

impl Seen {
    fn join(&mut self, other: &Self) {
        self.clock.join(&other.clock);
        self.phases.join(&other.phases);
    }

    fn precedes(&self, other: &Self) -> bool {
        self.clock.precedes(&other.clock) && self.phases.precedes(&other.phases)
    }
}

/// What only asynchronous operations bring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asynchronous {
    /// Phases that precede in base causality.
    pub(super) phases: Phases,
    /// What precedes with a proxy fence on the path, for shared memory. A thread's own accesses are in it, and those of lanes
    /// that fenced with it: it says something only together with base causality.
    pub(super) shared: Seen,
    /// The same for global memory.
    pub(super) global: Seen,
    /// Initialisations of mbarriers behind which `fence.mbarrier_init` stands.
    pub(super) inits: Clock,
}

impl Asynchronous {
    fn join(&mut self, other: &Self) {
        self.phases.join(&other.phases);
        self.shared.join(&other.shared);
        self.global.join(&other.global);
        self.inits.join(&other.inits);
    }

    fn precedes(&self, other: &Self) -> bool {
        self.phases.precedes(&other.phases)
            && self.shared.precedes(&other.shared)
            && self.global.precedes(&other.global)
            && self.inits.precedes(&other.inits)
    }
}

/// All that a thread knows and hands on when it synchronises.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Know {
    /// Base causality.
    pub(super) clock: Clock,
    /// Fences that precede in base causality.
    pub(super) fences: Option<Arc<ScClocks>>,
    /// Fences that precede a write which a read that precedes in base causality has observed.
    pub(super) observed: Option<Arc<ScClocks>>,
    /// Of asynchronous operations; `None` where there are none.
    pub(super) asynchronous: Option<Arc<Asynchronous>>,
    /// What would precede besides, if lanes that only converge at a `.sync` instruction were ordered by that. It orders
    /// nothing; `None` where all of it precedes anyhow.
    pub(super) converged: Option<Arc<Seen>>,
    /// The block `near` belongs to.
    pub(super) block: u32,
}

impl Know {
    /// Knowing nothing, in a block.
    pub(super) fn new(block: u32) -> Self {
        Self { block, ..Self::default() }
    }

    /// Takes over what another knows.
    pub(super) fn join(&mut self, other: &Self) {
        self.clock.join(&other.clock);
        let same_block = self.block == other.block;
        join_sc(&mut self.fences, other.fences.as_ref(), same_block);
        join_sc(&mut self.observed, other.observed.as_ref(), same_block);
        match (&mut self.asynchronous, &other.asynchronous) {
            (_, None) => {}
            (own @ None, theirs) => own.clone_from(theirs),
            (Some(own), Some(theirs)) if Arc::ptr_eq(own, theirs) || theirs.precedes(own) => {}
            (Some(own), Some(theirs)) if own.precedes(theirs) => *own = Arc::clone(theirs),
            (Some(own), Some(theirs)) => Arc::make_mut(own).join(theirs),
        }
        match (&mut self.converged, &other.converged) {
            (None, None) => return,
            (_, None) => {}
            (own @ None, theirs) => own.clone_from(theirs),
            (Some(own), Some(theirs)) if Arc::ptr_eq(own, theirs) => {}
            (Some(own), Some(theirs)) => Arc::make_mut(own).join(theirs),
        }
        self.settle();
    }

    /// Forgets what convergence would bring once it precedes anyhow.
    pub(super) fn settle(&mut self) {
        if self.converged.as_ref().is_some_and(|seen| self.precedes(seen)) {
            self.converged = None;
        }
    }

    /// Whether all of this precedes in base causality.
    fn precedes(&self, seen: &Seen) -> bool {
        let phases = || match &self.asynchronous {
            Some(own) => seen.phases.precedes(&own.phases),
            None => seen.phases.latest.is_empty(),
        };
        seen.clock.precedes(&self.clock) && phases()
    }

    /// Whether this would precede if convergence ordered memory.
    fn would_precede(&self, seen: &Seen) -> bool {
        self.converged.as_ref().is_some_and(|own| seen.precedes(own)) || self.precedes(seen)
    }

    /// What is known when what lanes knew that this one met would precede.
    pub(super) fn meeting(own: &Arc<Self>, seen: &Seen) -> Arc<Self> {
        if own.would_precede(seen) {
            return Arc::clone(own);
        }
        let mut know = Self::clone(own);
        Arc::make_mut(know.converged.get_or_insert_default()).join(seen);
        Arc::new(know)
    }

    /// Lanes that were met would precede up to `time`.
    pub(super) fn met(&mut self, block: u32, warp: u8, mask: u32, time: Time) {
        if self.clock.known(block, warp, mask, time) != mask {
            Arc::make_mut(self.converged.get_or_insert_default()).clock.raise(block, warp, mask, time);
        }
    }

    /// Adds what precedes, and would precede.
    pub(super) fn add_to(&self, seen: &mut Seen) {
        seen.clock.join(&self.clock);
        if let Some(asynchronous) = &self.asynchronous {
            seen.phases.join(&asynchronous.phases);
        }
        if let Some(converged) = &self.converged {
            seen.join(converged);
        }
    }

    /// To change what is known of asynchronous operations.
    pub(super) fn asynchronous_mut(&mut self) -> &mut Asynchronous {
        Arc::make_mut(self.asynchronous.get_or_insert_default())
    }

    /// Whether joining it would change nothing.
    pub(super) fn includes(&self, other: &Self) -> bool {
        let no_news = |own: &Option<Arc<ScClocks>>, theirs: &Option<Arc<ScClocks>>| match (own, theirs) {
            (_, None) => true,
            (Some(own), Some(theirs)) => Arc::ptr_eq(own, theirs),
            (None, Some(_)) => false,
        };
        other.clock.precedes(&self.clock)
            && no_news(&self.fences, &other.fences)
            && no_news(&self.observed, &other.observed)
            && match (&self.asynchronous, &other.asynchronous) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(own), Some(theirs)) => Arc::ptr_eq(own, theirs) || theirs.precedes(own),
            }
            && other.converged.as_ref().is_none_or(|theirs| self.would_precede(theirs))
    }
}

/// Joins fence clocks.
pub(super) fn join_sc(own: &mut Option<Arc<ScClocks>>, theirs: Option<&Arc<ScClocks>>, same_block: bool) {
    let Some(theirs) = theirs else { return };
    match own {
        None if same_block => *own = Some(Arc::clone(theirs)),
        None => *own = Some(Arc::new(ScClocks { near: Clock::default(), ..ScClocks::clone(theirs) })),
        Some(own) if Arc::ptr_eq(own, theirs) => {}
        Some(own) => Arc::make_mut(own).join(theirs, same_block),
    }
}

/// Joins shared knowledge, sharing either side where it already holds the other.
pub(super) fn join(a: &Arc<Know>, b: &Arc<Know>) -> Arc<Know> {
    if Arc::ptr_eq(a, b) || a.includes(b) {
        return Arc::clone(a);
    }
    if a.block == b.block && b.includes(a) {
        return Arc::clone(b);
    }
    let mut joined = Know::clone(a);
    joined.join(b);
    Arc::new(joined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Raise(u32, u8, u32, Time),
        RaiseBlock(u32, Time),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let mask = prop_oneof![Just(u32::MAX), any::<u32>()];
        let step = prop_oneof![
            (0u32..3, 0u8..3, mask, 1u32..9).prop_map(|(b, w, m, t)| Step::Raise(b, w, m, t)),
            (0u32..3, 1u32..9).prop_map(|(b, t)| Step::RaiseBlock(b, t)),
        ];
        proptest::collection::vec(step, 0..8)
    }

    /// The plain array that a clock stands for.
    type Plain = [[[Time; 32]; 3]; 3];

    fn run(steps: &[Step]) -> (Clock, Plain) {
        let (mut clock, mut plain) = (Clock::default(), [[[0; 32]; 3]; 3]);
        for step in steps {
            match *step {
                Step::Raise(block, warp, mask, time) => {
                    clock.raise(block, warp, mask, time);
                    for (lane, own) in plain[block as usize][warp as usize].iter_mut().enumerate() {
                        if mask >> lane & 1 != 0 {
                            *own = (*own).max(time);
                        }
                    }
                }
                Step::RaiseBlock(block, time) => {
                    clock.raise_block(block, time);
                    plain[block as usize].iter_mut().flatten().for_each(|own| *own = (*own).max(time));
                }
            }
        }
        (clock, plain)
    }

    fn read(clock: &Clock) -> Plain {
        std::array::from_fn(|b| {
            std::array::from_fn(|w| std::array::from_fn(|l| clock.get(b as u32, w as u8, l as u8)))
        })
    }

    proptest! {
        #[test]
        fn compression_changes_no_value(a in steps(), b in steps(), time in 0u32..9) {
            let ((mut clock, plain), (other, theirs)) = (run(&a), run(&b));
            prop_assert_eq!(read(&clock), plain);
            for (block, warps) in plain.iter().enumerate() {
                for (warp, lanes) in warps.iter().enumerate() {
                    let known = lanes.iter().enumerate().filter(|(_, t)| **t >= time).fold(0, |m, (l, _)| m | 1 << l);
                    if time > 0 {
                        prop_assert_eq!(clock.known(block as u32, warp as u8, u32::MAX, time), known);
                    }
                }
            }
            let within = plain.iter().flatten().flatten().zip(theirs.iter().flatten().flatten()).all(|(a, b)| a <= b);
            prop_assert_eq!(clock.precedes(&other), within);
            clock.join(&other);
            let joined: Plain = std::array::from_fn(|b| std::array::from_fn(|w| std::array::from_fn(|l| {
                plain[b][w][l].max(theirs[b][w][l])
            })));
            prop_assert_eq!(read(&clock), joined);
        }
    }
}
