//! The machine: blocks, warps and the schedule of one launch.
//!
//! Modelled: independent thread scheduling (lanes part and meet again), CTA barriers by warp, warp barriers by mask,
//! blocks that start in order as others end, clusters, asynchronous copies that land late. Memory is sequentially consistent
//! or weak, and every instruction of a group is one step. The schedule is random and follows from the seed alone: a walk on
//! which all warps go on together, or one by priorities (`priorities`); or it is chosen step by step (`chosen`).

mod access;
mod barrier;
mod call;
mod chosen;
mod cluster;
mod common;
mod converge;
mod copies;
mod fill;
mod image;
mod issue;
mod matrix;
mod mbarrier;
mod place;
mod priorities;
mod starve;
mod step;
mod tensor;
mod unwritten;
mod warp;
mod weak;

use std::time::{Duration, Instant};

use super::image::{Code, Image, Part};
use super::instrumented::Ring;
use super::memory::Memory;
use super::record::{Recorder, Who};
use super::rng::Rng;
use super::schedule::{Preference, Schedule, Strategy};
use super::special::{LaunchEnv, Position};
use super::weak::Weak;
use crate::abi::{LANES, TAG_SHARED, lanes};
use crate::backend::plan::Launch;
use crate::backend::{Fault, FaultKind, Images, Notice, Stop, WarpPosition};
use crate::isa::BarrierKind;
use crate::span::Span;
use barrier::BarrierState;
use cluster::Cluster;
use copies::Copies;
use priorities::Points;
use warp::{State, Warp};

/// Blocks that are resident at once, if memory allows.
const RESIDENT: u64 = 264;
/// Blocks that are resident at once of a larger grid.
const WINDOW: u64 = 64;
/// Bytes of registers, shared and local memory of resident blocks.
const RESIDENT_BYTES: u64 = 512 << 20;
/// Resident warps up to which the schedule is fine-grained.
const FINE_WARPS: u64 = 128;
/// Steps between two looks at the clock.
const STEPS_PER_LOOK: u64 = 4096;

/// Why a launch stopped.
#[derive(Debug)]
pub(super) enum Halt {
    Fault { kind: FaultKind, lane: Option<usize>, detail: String },
    Unsupported { what: String },
    Timeout,
}

/// A resident block.
struct Block {
    position: Position,
    /// Its cluster, among the machine's.
    cluster: usize,
    barriers: Vec<BarrierState>,
    warps: Vec<Warp>,
}

impl Block {
    fn who(&self, warp: usize) -> Who {
        Who { block: self.position.linear, warp: warp as u32 }
    }
}

/// What all blocks share.
struct Core<'m> {
    image: &'m Image,
    memory: &'m mut Memory,
    /// Clusters with resident blocks, in places that are used again.
    clusters: Vec<Cluster>,
    /// Clusters whose barrier phase has ended, and whose warps do not know it.
    passed_clusters: Vec<usize>,
    /// Asynchronous copies on their way.
    copies: Copies,
    recorder: Recorder<'m>,
    env: LaunchEnv,
    params: Vec<u8>,
    rng: Rng,
    clock: u64,
    /// When memory last changed, or threads ended or met.
    changed: u64,
    /// Instructions, counted for each of their lanes.
    executed: u64,
    /// Accesses of memory that others see.
    accesses: u64,
    /// Where the warp that runs is put last.
    points: Points,
    /// Who goes first, if somebody does.
    preference: Option<Preference>,
    /// Somebody who waited can go on.
    released: bool,
    watch: starve::Watch,
    notices: Vec<Notice>,
    /// Unlogged instructions that were executed.
    unlogged: Vec<u32>,
    /// Where inserted code writes records.
    ring: Option<Ring>,
    deadline: Option<Instant>,
    /// What reads may see, where memory is weak.
    weak: Option<Weak>,
    schedule: Option<&'m mut dyn Schedule>,
    images: Images,
}

/// One launch.
pub(super) struct Machine<'m> {
    core: Core<'m>,
    launch: &'m Launch,
    blocks: Vec<Block>,
    next_block: u64,
    resident: usize,
    /// Few warps, so that short bursts do not cost much.
    fine: bool,
    timeout: Option<Duration>,
}

/// What a launch is given.
pub(super) struct Setup<'m> {
    pub(super) image: &'m Image,
    pub(super) launch: &'m Launch,
    pub(super) index: u32,
    pub(super) params: Vec<u8>,
    pub(super) seed: u64,
    pub(super) deadline: Option<Instant>,
    pub(super) timeout: Option<Duration>,
    pub(super) ring: Option<Ring>,
    pub(super) weak: Option<Weak>,
    pub(super) schedule: Option<&'m mut dyn Schedule>,
    pub(super) images: Images,
}

impl<'m> Machine<'m> {
    pub(super) fn new(setup: Setup<'m>, memory: &'m mut Memory, recorder: Recorder<'m>) -> Self {
        let Setup { image, launch, index, params, seed, deadline, timeout, ring, weak, schedule, images } =
            setup;
        let total = (image.dynamic_base + u64::from(launch.shared)).max(image.shared_bytes);
        let env = LaunchEnv {
            grid: launch.grid,
            block: launch.block,
            index,
            dynamic_shared: launch.shared,
            total_shared: u32::try_from(total).unwrap_or(u32::MAX),
            clusters: launch.clusters(),
            explicit_cluster: launch.cluster.is_some(),
        };
        let kernel = &image.functions[image.kernel as usize];
        let warp = u64::from(kernel.own_registers) * 256 + kernel.local_bytes * 32 + 4096;
        let block = warp * u64::from(launch.warps()) + total;
        let fits = (RESIDENT_BYTES / block.max(1)).max(1);
        let blocks = launch.blocks();
        let resident = if blocks <= RESIDENT.min(fits) { blocks } else { fits.min(WINDOW) };
        // A cluster is resident as a whole.
        let resident = resident.max(u64::from(env.clusters.size()));
        let mut rng = Rng::new(seed ^ u64::from(index).wrapping_mul(0xA076_1D64_78BD_642F));
        let text = image.ops.iter().filter(|op| op.visible).count() as u64;
        let accesses = text.saturating_mul(blocks).saturating_mul(u64::from(launch.warps()));
        let (preference, points) = match Strategy::of(seed) {
            Strategy::Priorities(preference, count) if schedule.is_none() => {
                (Some(preference), Points::draw(&mut rng, count, accesses))
            }
            _ => (None, Points::default()),
        };
        let core = Core {
            image,
            memory,
            clusters: Vec::new(),
            passed_clusters: Vec::new(),
            copies: Copies::default(),
            recorder,
            env,
            params,
            rng,
            clock: 0,
            changed: 0,
            executed: 0,
            accesses: 0,
            points,
            preference,
            released: false,
            watch: starve::Watch::default(),
            notices: Vec::new(),
            unlogged: Vec::new(),
            ring,
            deadline,
            weak,
            schedule,
            images,
        };
        Self {
            core,
            launch,
            blocks: Vec::new(),
            next_block: 0,
            resident: usize::try_from(resident).unwrap_or(1),
            fine: resident.saturating_mul(u64::from(launch.warps())) <= FINE_WARPS,
            timeout,
        }
    }

    /// Runs the launch to its end, or to where it stops.
    pub(super) fn run(&mut self) -> Option<Stop> {
        match self.core.preference {
            Some(preference) => self.run_by_priority(preference),
            None => self.walk(),
        }
    }

    /// Runs it with all warps in turn, in random order and for random times.
    fn walk(&mut self) -> Option<Stop> {
        let mut order: Vec<(usize, usize)> = Vec::new();
        let mut looked = 0;
        loop {
            self.start_blocks();
            if self.blocks.is_empty() {
                return None;
            }
            order.clear();
            for (slot, block) in self.blocks.iter().enumerate() {
                let ready = block.warps.iter().enumerate().filter(|(_, warp)| warp.is_ready());
                order.extend(ready.map(|(warp, _)| (slot, warp)));
            }
            if order.is_empty() {
                return Some(Stop::Deadlock { warps: self.positions() });
            }
            self.core.rng.shuffle(&mut order);
            for &(slot, warp) in &order {
                let turn = self.turn(slot, warp);
                self.core.drain();
                self.wake_clusters();
                if let Err(halt) = turn {
                    return Some(self.stop(halt, slot, warp));
                }
            }
            self.end_blocks();
            if let Some(stop) = self.ends_between_turns(&mut looked) {
                return Some(stop);
            }
        }
    }

    /// Between turns: what ends the run although warps could go on.
    fn ends_between_turns(&mut self, looked: &mut u64) -> Option<Stop> {
        match self.starved() {
            Ok(false) => self.look_at_clock(looked),
            Ok(true) => Some(self.livelock()),
            Err((halt, slot, warp)) => Some(self.stop(halt, slot, warp)),
        }
    }

    /// Now and then, whether the time is over.
    fn look_at_clock(&self, looked: &mut u64) -> Option<Stop> {
        if self.core.clock.wrapping_sub(*looked) < STEPS_PER_LOOK {
            return None;
        }
        *looked = self.core.clock;
        self.core.deadline.is_some_and(|deadline| Instant::now() > deadline).then(|| self.timed_out())
    }

    /// Delivers the last records and ends the launch; tells how many instructions its lanes have executed.
    pub(super) fn finish(mut self) -> u64 {
        self.core.unlogged.sort_unstable();
        self.core.recorder.end(self.core.unlogged, self.core.notices);
        self.core.executed
    }

    /// One burst of a warp.
    fn turn(&mut self, slot: usize, warp: usize) -> Result<(), Halt> {
        let rng = &mut self.core.rng;
        let Some(block) = self.blocks.get_mut(slot) else { return Ok(()) };
        let at = &mut block.warps[warp];
        if at.delay > 0 {
            at.delay -= 1;
            return Ok(());
        }
        if rng.one_in(128) {
            at.delay = 1 + rng.below(24);
        }
        // Fine interleavings where they are cheap; long bursts where warps would push each other out of the cache.
        let burst = match (rng.below(8), self.fine) {
            (0..=2, true) | (0, false) => 1 + rng.below(4),
            (3..=5, true) => 1 + rng.below(24),
            (6, true) | (1..=4, false) => 8 + rng.below(56),
            _ => 64 + rng.below(448),
        };
        if !at.started {
            at.started = true;
            self.core.shared_variables(block, warp);
        }
        self.core.burst(block, warp, burst).map(drop)
    }

    /// Starts clusters in the order of their first blocks, as long as there is room.
    fn start_blocks(&mut self) {
        let clusters = self.core.env.clusters;
        let size = clusters.size();
        while self.blocks.len() + size as usize <= self.resident && self.next_block < self.launch.blocks() {
            let first = self.next_block as u32;
            self.next_block += 1;
            if clusters.rank(first) != 0 {
                continue;
            }
            let cluster = Cluster::new(size, self.core.env.total_shared, self.launch.threads());
            let free = self.core.clusters.iter().position(|cluster| cluster.alive == 0);
            let at = free.unwrap_or(self.core.clusters.len());
            match self.core.clusters.get_mut(at) {
                Some(place) => *place = cluster,
                None => self.core.clusters.push(cluster),
            }
            for rank in 0..size {
                let linear = clusters.peer(first, rank).unwrap_or(first);
                self.start_block(linear, rank, at);
            }
        }
    }

    fn start_block(&mut self, linear: u32, rank: u32, cluster: usize) {
        self.core.changed = self.core.clock;
        let image = self.core.image;
        let kernel = &image.functions[image.kernel as usize];
        let threads = self.launch.threads();
        let index = self.launch.block_index(linear);
        let position = Position { index, linear, rank, alone: self.core.env.clusters.size() == 1 };
        let warps = (0..self.launch.warps()).map(|warp| {
            let live = threads.saturating_sub(warp * 32).min(32);
            let mask = if live >= 32 { u32::MAX } else { (1 << live) - 1 };
            let threads =
                std::array::from_fn::<_, LANES, _>(|lane| self.launch.thread_index(warp, lane as u32));
            let tid = std::array::from_fn(|axis| threads.map(|thread| u64::from(thread[axis])));
            let sizes = (kernel.registers, kernel.predicates, kernel.local_bytes);
            let mut warp = Warp::new(warp, mask, tid, kernel.entry, sizes);
            warp.shared_base = position.shared_base();
            warp
        });
        let warps = warps.collect();
        self.blocks.push(Block { position, cluster, barriers: vec![BarrierState::default(); 16], warps });
    }

    /// Forgets blocks that have ended.
    fn end_blocks(&mut self) {
        let clusters = &mut self.core.clusters;
        self.blocks.retain(|block| {
            let live = block.warps.iter().any(|warp| warp.live != 0);
            if !live && clusters[block.cluster].alive == 0 {
                clusters[block.cluster] = Cluster::default();
            }
            live
        });
    }

    /// Lets warps go on whose cluster barrier has been passed.
    fn wake_clusters(&mut self) {
        while let Some(cluster) = self.core.passed_clusters.pop() {
            for block in self.blocks.iter_mut().filter(|block| block.cluster == cluster) {
                for warp in &mut block.warps {
                    warp.pass_cluster_barrier(&self.core.clusters[cluster]);
                }
            }
        }
    }

    fn timed_out(&self) -> Stop {
        Stop::Timeout { after: self.timeout.unwrap_or_default(), warps: self.positions() }
    }

    fn stop(&self, halt: Halt, slot: usize, warp: usize) -> Stop {
        let group = self.core.running(self.blocks.get(slot), warp);
        let at = group.map(|(span, _)| span);
        match halt {
            Halt::Timeout => self.timed_out(),
            Halt::Unsupported { what } => Stop::Unsupported { at: at.unwrap_or_default(), what },
            Halt::Fault { kind, lane, detail } => {
                let lane = lane.or(group.map(|(_, mask)| mask.trailing_zeros() as usize));
                let thread = self.blocks.get(slot).zip(lane).map(|(block, lane)| {
                    (block.position.index, self.launch.thread_index(warp as u32, lane as u32))
                });
                Stop::Fault(Fault { kind, launch: self.core.env.index, thread, at, detail })
            }
        }
    }

    /// Where every group of every resident block is.
    fn positions(&self) -> Vec<WarpPosition> {
        let mut positions = Vec::new();
        for block in &self.blocks {
            for warp in &block.warps {
                for group in &warp.groups {
                    let at = Warp::op(&self.core.image.ops, group).map_or(Span::default(), |op| op.span);
                    let waiting = match group.state {
                        State::Ready => String::new(),
                        State::Barrier { id, count, .. } => block.describe_barrier(id, count),
                        State::Cluster => self.core.clusters[block.cluster].describe_barrier(),
                        State::Converge { mask, .. } => {
                            let there = warp.arrived(group.state).count_ones();
                            let all = (mask & warp.live).count_ones();
                            format!("the lanes of mask {mask:#x} ({there} of {all} lanes arrived)")
                        }
                    };
                    positions.push(WarpPosition {
                        block: block.position.index,
                        warp: warp.index,
                        mask: group.mask,
                        at,
                        waiting,
                    });
                }
            }
        }
        positions
    }
}

impl Core<'_> {
    /// The records that say where shared variables are.
    fn shared_variables(&mut self, block: &Block, warp: usize) {
        if block.position.linear != 0 || warp != 0 {
            return;
        }
        for (site, offset) in &self.image.shared_sites {
            self.recorder.a[0] = TAG_SHARED | offset;
            self.recorder.write(*site, 1, block.who(0), (0, 0));
        }
    }

    /// Takes the records that inserted code has written.
    fn drain(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.drain(self.memory, &mut self.recorder);
        }
    }

    /// The instruction that was executed last, with its lanes.
    fn running(&self, block: Option<&Block>, warp: usize) -> Option<(Span, u32)> {
        let warp = block?.warps.get(warp)?;
        let group = warp.groups.iter().max_by_key(|group| group.ran)?;
        Some((Warp::op(&self.image.ops, group)?.span, group.mask))
    }

    /// Notes what no record tells of: of one kind and instruction once, with how often, and at most so many.
    fn notice(&mut self, notice: Notice, most: usize) {
        let has_room = self.notices.len() < most;
        match self.notices.iter_mut().find(|known| known.site == notice.site && known.kind == notice.kind) {
            Some(known) => known.count += notice.count,
            None if has_room => self.notices.push(notice),
            None => {}
        }
    }

    /// Lanes end.
    fn exit(&mut self, block: &mut Block, warp: usize, group: usize) -> Result<(), Halt> {
        self.changed = self.clock;
        let at = &mut block.warps[warp];
        let mask = at.groups[group].mask;
        at.live &= !mask;
        at.groups.swap_remove(group);
        if at.live == 0 {
            // Nothing of it is needed any more.
            at.file = Vec::new();
            at.local = Vec::new();
        }
        self.lanes_left(block, warp)?;
        self.left_cluster(block, warp, mask)
    }
}

fn is_arrive(code: &Code) -> bool {
    matches!(code, Code::Barrier(op) if op.kind == BarrierKind::Arrive)
}

/// Groups a mask's lanes by a value that each has.
fn by_value<T: Copy + PartialEq>(mask: u32, value: impl Fn(usize) -> T) -> Vec<(T, u32)> {
    let mut out: Vec<(T, u32)> = Vec::new();
    for lane in lanes(mask) {
        let v = value(lane);
        match out.iter_mut().find(|(other, _)| *other == v) {
            Some((_, lanes)) => *lanes |= 1 << lane,
            None => out.push((v, 1 << lane)),
        }
    }
    out
}

/// Whether a group at this part of the program has finished a step.
fn is_boundary(part: Part) -> bool {
    matches!(part, Part::Original | Part::Before)
}
