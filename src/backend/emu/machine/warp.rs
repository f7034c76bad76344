//! A warp: registers, and groups of lanes that run together. Every lane has its own call stack; a group is the lanes
//! that are at one place of one frame.

use super::cluster::Arrivals;
use super::unwritten::Unwritten;
use crate::abi::{LANES, Lanes};
use crate::backend::emu::image::Op;
use crate::backend::emu::rng::Rng;
use crate::backend::emu::schedule::Preference;

/// Steps that a group may make once it has waited too long.
const AFTER_WAITING: u64 = 64;

/// Steps for which some lanes go before others of their warp, at most, where there are priorities.
const BY_PRIORITY: u32 = 1 << 13;

/// Rounds of a loop in which nothing changes, until others go first.
const ROUNDS: u32 = 4;

/// Where a lane returns to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The call.
    pub(super) call: u32,
    pub(super) base: u32,
    pub(super) pred_base: u32,
    pub(super) local_base: u64,
    pub(super) local_top: u64,
}

/// What a group does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// At a CTA barrier; `counted` once the warp has arrived.
    Barrier {
        id: u8,
        count: u32,
        counted: bool,
    },
    /// At the wait of the cluster barrier.
    Cluster,
    /// At a warp instruction that waits for the lanes of a mask.
    Converge {
        mask: u32,
        class: u32,
    },
}

/// Lanes at one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) pc: u32,
    /// Calls above the kernel.
    pub(super) depth: u32,
    /// First register of the frame.
    pub(super) base: u32,
    /// First predicate of the frame.
    pub(super) pred_base: u32,
    pub(super) mask: u32,
    pub(super) state: State,
    /// The warp's step count when it last ran.
    pub(super) ran: u64,
}

impl Group {
    pub(super) fn place(&self) -> (u32, u32, u32, u32) {
        (self.pc, self.depth, self.base, self.pred_base)
    }
}

/// A warp.
pub(super) struct Warp {
    pub(super) index: u32,
    /// Lanes that have not exited.
    pub(super) live: u32,
    pub(super) groups: Vec<Group>,
    pub(super) file: Vec<Lanes>,
    pub(super) preds: Vec<u32>,
    pub(super) frames: Vec<Vec<Frame>>,
    /// Local memory by lane.
    pub(super) local: Vec<Vec<u8>>,
    pub(super) local_base: Lanes,
    pub(super) local_top: Lanes,
    pub(super) tid: [Lanes; 3],
    /// What addresses of shared variables begin with.
    pub(super) shared_base: u64,
    /// At the cluster barrier.
    pub(super) arrivals: Arrivals,
    /// What waiting lanes brought to a converging instruction.
    pub(super) inputs: [Lanes; 3],
    /// Schedule points executed.
    pub(super) steps: u64,
    /// What it holds that nobody has written, if anything.
    pub(super) unwritten: Option<Box<Unwritten>>,
    pub(super) started: bool,
    /// Rounds in which the warp does not run.
    pub(super) delay: u32,
    /// How often it has tried an operation in vain that it tries again.
    pub(super) tries: u32,
    /// Of such operations: where, lanes, and the ticket before.
    again: Vec<(u32, u32, u64)>,
    /// Lanes that go first until this step.
    favour: (u32, u64),
    /// How long a group may be kept waiting by others of the warp.
    patience: u64,
    /// When it last went round a loop that may wait for others, and how often while nothing changed.
    went_round: (u64, u32),
}

impl Warp {
    pub(super) fn new(index: u32, live: u32, tid: [Lanes; 3], entry: u32, sizes: (u32, u32, u64)) -> Self {
        let (registers, predicates, local) = sizes;
        let bytes = usize::try_from(local).unwrap_or(0);
        Self {
            index,
            live,
            groups: vec![Group {
                pc: entry,
                depth: 0,
                base: 0,
                pred_base: 0,
                mask: live,
                state: State::Ready,
                ran: 0,
            }],
            file: vec![[0; LANES]; registers as usize],
            preds: vec![0; predicates as usize],
            frames: vec![Vec::new(); LANES],
            local: vec![vec![0; bytes]; LANES],
            local_base: [0; LANES],
            local_top: [local; LANES],
            tid,
            shared_base: 0,
            arrivals: Arrivals::default(),
            inputs: [[0; LANES]; 3],
            steps: 0,
            unwritten: None,
            started: false,
            delay: 0,
            tries: 0,
            again: Vec::new(),
            favour: (0, 0),
            patience: 256,
            went_round: (0, 0),
        }
    }

    /// Whether some group can run.
    pub(super) fn is_ready(&self) -> bool {
        self.groups.iter().any(|group| group.state == State::Ready)
    }

    /// The group to run next: deepest frame first, then lowest position, so that structured code meets again. The
    /// schedule lets others go first now and then, and nobody waits for ever.
    pub(super) fn pick(&mut self) -> Option<usize> {
        if let [group] = self.groups.as_slice() {
            return (group.state == State::Ready).then_some(0);
        }
        let ready = || self.groups.iter().enumerate().filter(|(_, g)| g.state == State::Ready);
        let (lanes, until) = self.favour;
        if self.steps < until
            && let Some((at, _)) = ready().find(|(_, g)| g.mask & lanes != 0)
        {
            return Some(at);
        }
        let (oldest, group) = ready().min_by_key(|(_, g)| g.ran)?;
        if self.steps.saturating_sub(group.ran) > self.patience {
            self.favour = (group.mask, self.steps + AFTER_WAITING);
            return Some(oldest);
        }
        ready().min_by_key(|(_, g)| (u32::MAX - g.depth, g.pc)).map(|(at, _)| at)
    }

    /// These lanes will try the operation here again.
    pub(super) fn try_again(&mut self, pc: u32, lanes: u32, ticket: u64) {
        self.again.push((pc, lanes, ticket));
    }

    /// The ticket before, if some of these lanes have tried the operation here before.
    pub(super) fn tried(&mut self, pc: u32, lanes: u32) -> Option<u64> {
        if self.again.is_empty() {
            return None;
        }
        let here = |(at, of, _): &(u32, u32, u64)| *at == pc && of & lanes != 0;
        let ticket = self.again.iter().find(|again| here(again)).map(|(_, _, ticket)| *ticket);
        self.again.retain(|again| !here(again));
        ticket
    }

    /// Called when lanes part: sometimes others than the usual ones go first, and always and for long those that are preferred.
    pub(super) fn parted(&mut self, rng: &mut Rng, preference: Option<Preference>) {
        if let Some(preference) = preference {
            self.patience = u64::from(BY_PRIORITY);
            let place = |group: &&Group| preference.place(u64::from(group.mask.trailing_zeros()));
            if let Some(first) = self.groups.iter().min_by_key(place) {
                self.favour = (first.mask, self.steps + u64::from(BY_PRIORITY));
            }
            return;
        }
        if rng.one_in(4)
            && let Some(group) =
                self.groups.get(rng.below(u32::try_from(self.groups.len()).unwrap_or(1)) as usize)
        {
            self.favour = (group.mask, self.steps + 1 + u64::from(rng.below(96)));
        }
        self.patience = 128 << rng.below(6);
    }

    /// Lets others of its lanes go first, or nobody; tells whether somebody does.
    pub(super) fn turns_to_others(&mut self, rng: &mut Rng) -> bool {
        let running = self.groups.iter().max_by_key(|group| group.ran).map_or(0, |group| group.mask);
        let others = self.groups.iter().filter(|g| g.state == State::Ready && g.mask & running == 0);
        let chosen = others.clone().nth(rng.below(u32::try_from(others.count()).unwrap_or(1)) as usize);
        match chosen.filter(|_| rng.one_in(2)) {
            Some(group) => {
                self.favour = (group.mask, self.steps + 1 + u64::from(rng.below(BY_PRIORITY)));
                true
            }
            None => false,
        }
    }

    /// Called when a group goes round a loop that may wait for others; tells whether it has done so for some time while
    /// nothing changed, the last time being given.
    pub(super) fn goes_round(&mut self, changed: u64, clock: u64) -> bool {
        let (last, times) = self.went_round;
        let times = if changed >= last { 0 } else { times + 1 };
        self.went_round = if times < ROUNDS { (clock, times) } else { (clock, 0) };
        if times >= ROUNDS {
            self.makes_room();
        }
        times >= ROUNDS
    }

    /// Lets those lanes go first that have waited longest, for as long as others would have.
    pub(super) fn makes_room(&mut self) {
        let ready = self.groups.iter().filter(|group| group.state == State::Ready);
        if let Some(oldest) = ready.min_by_key(|group| group.ran) {
            self.favour = (oldest.mask, self.steps + u64::from(BY_PRIORITY));
        }
    }

    /// Called when a group may have waited in vain for others: sometimes it makes room for the one that ran last
    /// the longest time ago.
    pub(super) fn spun(&mut self, rng: &mut Rng) {
        if self.steps >= self.favour.1 && rng.one_in(2) {
            let ready = self.groups.iter().filter(|g| g.state == State::Ready);
            if let Some(oldest) = ready.min_by_key(|g| g.ran) {
                self.favour = (oldest.mask, self.steps + 1 + u64::from(rng.below(48)));
            }
        }
    }

    /// Unites ready groups that are at the same place.
    pub(super) fn merge(&mut self) {
        if self.groups.len() == 1 {
            return;
        }
        let mut at = 0;
        while at < self.groups.len() {
            let group = self.groups[at];
            let mut other = at + 1;
            while group.state == State::Ready && other < self.groups.len() {
                let with = self.groups[other];
                if with.state == State::Ready && with.place() == group.place() {
                    self.groups[at].mask |= with.mask;
                    self.groups[at].ran = self.groups[at].ran.max(with.ran);
                    self.groups.remove(other);
                } else {
                    other += 1;
                }
            }
            at += 1;
        }
        self.groups.retain(|group| group.mask != 0);
        // One order, whatever way led here: the schedule must not depend on it.
        self.groups.sort_unstable_by_key(|group| group.mask.trailing_zeros());
    }

    /// Leaves only the lanes of the mask in a group; the others go on at `pc` in a group of their own.
    pub(super) fn split(&mut self, group: usize, mask: u32, pc: u32) {
        let Some(whole) = self.groups.get_mut(group) else { return };
        let rest = whole.mask & !mask;
        if rest == 0 {
            return;
        }
        let other = Group { mask: rest, pc, ran: self.steps, ..*whole };
        whole.mask &= mask;
        self.groups.push(other);
    }

    /// The operation that a group stands at.
    pub(super) fn op<'o>(ops: &'o [Op], group: &Group) -> Option<&'o Op> {
        ops.get(group.pc as usize)
    }
}
