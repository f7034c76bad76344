//! The replay order.
//!
//! Each strong operation and fence carries two tickets of one counter, drawn before and after it, so it took effect
//! somewhere in that interval. An operation may be replayed when no other one ended before it began; among those that
//! overlap, the one that ended first goes first, unless the value it read says that another must come before. Weak
//! accesses and barriers need only the order of their own lanes.
//!
//! Approximations, and their direction: a load whose value is not the current one is taken as a stale read (the engine
//! looks for the write in its history). A read-modify-write that no order explains is forced in ticket order and
//! counted in `degraded`: edges may then be missing (false reports) and the run says so.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::barrier::{Gathering, Phase, Threads};
use super::values::Values;
use super::{Arrival, Event, Handler, Misuse, Place};
use crate::abi::{DecodeError, Record, Tagged, Unit, decode};
use crate::instrument::{Site, SiteId, SiteKind, SiteTable};
use crate::isa::{Access, AccessKind, BarrierKind};

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Threads of a block.
    pub threads: u32,
    /// Warps of a block.
    pub warps: u32,
}

impl Geometry {
    /// Of blocks with this many threads.
    pub fn new(threads: u32) -> Self {
        Self { threads, warps: threads.div_ceil(32) }
    }

    /// Lanes of a warp that exist.
    pub fn lanes(self, warp: u32) -> u32 {
        let left = self.threads.saturating_sub(warp * 32).min(32);
        u32::MAX.checked_shr(32 - left).unwrap_or(0)
    }
}

type Ranks = SmallVec<[u8; 32]>;

/// Records that wait, in program order of the warp.
#[derive(Debug, Default)]
struct Queue {
    units: Vec<Unit>,
    head: usize,
    /// Lanes of queued records that are not done.
    blocked: u32,
}

#[derive(Debug, Default)]
struct WarpState {
    queue: Queue,
    /// Lanes that wait at a barrier.
    waiting: u32,
    gatherings: SmallVec<[Gathering; 1]>,
}

#[derive(Debug)]
struct BlockState {
    warps: Vec<WarpState>,
    exists: Vec<u32>,
    exited: Vec<u32>,
    phases: FxHashMap<u32, Phase>,
}

impl BlockState {
    fn new(geometry: Geometry) -> Self {
        let exists: Vec<u32> = (0..geometry.warps).map(|warp| geometry.lanes(warp)).collect();
        Self {
            warps: exists.iter().map(|_| WarpState::default()).collect(),
            exited: vec![0; exists.len()],
            exists,
            phases: FxHashMap::default(),
        }
    }

    fn threads(&self) -> Threads<'_> {
        Threads { exists: &self.exists, exited: &self.exited }
    }

    fn all_exited(&self) -> bool {
        self.exists == self.exited
    }

    fn is_finished(&self) -> bool {
        self.all_exited() && self.warps.iter().all(|warp| warp.queue.units.is_empty())
    }
}

/// A strong operation at the head of its lanes, by its end ticket.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    before: u64,
    warp: WarpKey,
    /// Where its record starts in the warp's queue.
    at: usize,
    /// Lanes not yet replayed.
    left: u32,
}

/// End ticket, warp, and where its record starts.
type PoolKey = (u64, WarpKey, usize);

/// A change that an operation will make.
#[derive(Clone, Copy, Debug)]
struct Change {
    place: Place,
    written: u64,
}

/// What helps to tell whether an operation can act now.
#[derive(Debug)]
struct Hints {
    /// Changes that overlapping operations of other warps will make.
    others: Vec<Change>,
    /// A place of which nothing is known may be taken to hold what was read.
    guess: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct WarpKey {
    block: u32,
    warp: u8,
}

/// Which tickets belong to operations that have been replayed or are in the pool. One that waits behind a barrier in its
/// queue has arrived, but what comes after it must wait as well.
#[derive(Debug)]
struct Watermark {
    next: u64,
    ahead: FxHashSet<u64>,
}

impl Watermark {
    fn note(&mut self, ticket: u64) {
        if ticket > self.next {
            self.ahead.insert(ticket);
        } else if ticket == self.next {
            self.next += 1;
            while !self.ahead.is_empty() && self.ahead.remove(&self.next) {
                self.next += 1;
            }
        }
    }

    /// Whether all tickets up to this one are.
    fn covers(&self, ticket: u64) -> bool {
        ticket < self.next
    }
}

/// What replay needs to know of a site.
#[derive(Clone, Copy, Debug)]
enum Role {
    Weak(Access),
    Strong(Access),
    Fence,
    Barrier { kind: BarrierKind, aligned: bool },
    WarpBarrier,
    Converge,
    Exit,
    SharedVariable,
}

impl Role {
    fn of(site: &Site) -> Self {
        match &site.kind {
            SiteKind::Access(access) if access.order.is_strong() => Self::Strong(*access),
            SiteKind::Access(access) => Self::Weak(*access),
            SiteKind::Fence(_) => Self::Fence,
            SiteKind::Barrier(barrier) => {
                Self::Barrier { kind: barrier.kind, aligned: is_aligned(&site.opcode) }
            }
            SiteKind::WarpBarrier => Self::WarpBarrier,
            SiteKind::Converge(_) => Self::Converge,
            SiteKind::Exit => Self::Exit,
            SiteKind::SharedVariable(_) => Self::SharedVariable,
        }
    }
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replayed {
    Done,
    /// These lanes have to wait for other operations.
    Left(u32),
}

/// Replays the records of one launch after another.
#[derive(Debug)]
pub struct Orderer {
    roles: Vec<Role>,
    geometry: Geometry,
    blocks: FxHashMap<u32, BlockState>,
    pool: BTreeMap<PoolKey, Candidate>,
    watermark: Watermark,
    values: Values,
    /// Warps whose queues may go on.
    ready: Vec<WarpKey>,
    flushing: bool,
    degraded: u64,
    records: u64,
    damaged: Option<DecodeError>,
}

impl Orderer {
    /// An orderer for records of these sites.
    pub fn new(sites: &SiteTable) -> Self {
        Self {
            roles: sites.sites().iter().map(Role::of).collect(),
            geometry: Geometry::new(1),
            blocks: FxHashMap::default(),
            pool: BTreeMap::new(),
            watermark: Watermark { next: 1, ahead: FxHashSet::default() },
            values: Values::default(),
            ready: Vec::new(),
            flushing: false,
            degraded: 0,
            records: 0,
            damaged: None,
        }
    }

    /// Begins a launch.
    pub fn begin(&mut self, geometry: Geometry) {
        self.geometry = geometry;
        self.blocks.clear();
        self.pool.clear();
        self.watermark = Watermark { next: 1, ahead: FxHashSet::default() };
        self.values.clear();
        self.ready.clear();
        self.flushing = false;
    }

    /// Operations that had to be forced, over all launches.
    pub fn degraded(&self) -> u64 {
        self.degraded
    }

    /// Records taken, over all launches.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The first damage in the records, if any. What followed it in its batch is lost.
    pub fn damaged(&self) -> Option<DecodeError> {
        self.damaged
    }

    /// Takes whole records.
    pub fn feed(&mut self, mut units: &[Unit], handler: &mut impl Handler) {
        loop {
            match decode(units) {
                Ok(None) => return,
                Ok(Some(record)) => {
                    units = units.get(record.units().len()..).unwrap_or(&[]);
                    self.ingest(&record, handler);
                }
                Err(error) => {
                    self.damaged = self.damaged.or(Some(error));
                    return;
                }
            }
        }
    }

    /// Ends a launch: replays what still waits, and says which barriers never completed.
    pub fn end(&mut self, handler: &mut impl Handler) {
        self.flushing = true;
        self.settle(handler);
        let mut blocks: Vec<_> = self.blocks.drain().collect();
        blocks.sort_by_key(|(block, _)| *block);
        for (block, state) in blocks {
            report_stuck(block, &state, handler);
            let stranded = state
                .warps
                .iter()
                .any(|warp| warp.queue.units.get(warp.queue.head..).is_some_and(|rest| !rest.is_empty()));
            self.degraded += u64::from(stranded);
        }
        self.pool.clear();
    }

    fn ingest(&mut self, record: &Record<'_>, handler: &mut impl Handler) {
        self.records += 1;
        let key = WarpKey { block: record.block(), warp: record.warp() };
        if u32::from(key.warp) >= self.geometry.warps {
            let units = record.units().len();
            self.damaged = self.damaged.or(Some(DecodeError::Length { units, need: units }));
            return;
        }
        let geometry = self.geometry;
        let block = self.blocks.entry(key.block).or_insert_with(|| BlockState::new(geometry));
        let warp = &mut block.warps[usize::from(key.warp)];
        let mask = record.mask();
        let free = (warp.waiting | warp.queue.blocked) & mask == 0;
        let mut left = mask;
        if free {
            match self.replay(key, record, handler) {
                Replayed::Done => {
                    self.settle(handler);
                    return;
                }
                Replayed::Left(lanes) => left = lanes,
            }
        }
        // `replay` may have replaced the block's state; look again.
        let block = self.blocks.entry(key.block).or_insert_with(|| BlockState::new(geometry));
        let queue = &mut block.warps[usize::from(key.warp)].queue;
        let at = queue.units.len();
        queue.units.extend_from_slice(record.units());
        queue.blocked |= mask;
        if free && let Some((before, after)) = record.tickets() {
            self.pool.insert((after, key, at), Candidate { before, warp: key, at, left });
        }
        self.settle(handler);
    }

    /// Replays one record as far as it can be. Only strong accesses may have to wait.
    fn replay(&mut self, key: WarpKey, record: &Record<'_>, handler: &mut impl Handler) -> Replayed {
        let site = SiteId(record.site());
        let Some(role) = self.roles.get(site.0 as usize).copied() else {
            let units = record.units().len();
            self.damaged = self.damaged.or(Some(DecodeError::Length { units, need: units }));
            return Replayed::Done;
        };
        if let Some((before, after)) = record.tickets() {
            self.watermark.note(before);
            self.watermark.note(after);
        }
        match role {
            Role::Weak(access) => {
                if access.writes() && !self.values.is_empty() {
                    self.note_weak_store(&access, record);
                }
                handler.event(Event::Access { record: *record, ranks: all_ranks(record) });
            }
            // A strong operation goes straight through when it is the only one in flight, else by the pool. A warp that
            // is ready but has not gone on may hold an earlier one.
            Role::Strong(access) => {
                let after = record.tickets().map_or(0, |tickets| tickets.1);
                let alone = self.pool.is_empty() && self.ready.is_empty();
                if !alone || !self.watermark.covers(after) {
                    return Replayed::Left(record.mask());
                }
                let ranks =
                    self.runnable(&access, record, record.mask(), &Hints { others: Vec::new(), guess: true });
                let left = record.mask() & !lanes_of(record, &ranks);
                if !ranks.is_empty() {
                    handler.event(Event::Access { record: *record, ranks: &ranks });
                }
                if left != 0 {
                    return Replayed::Left(left);
                }
            }
            // A fence acts on its own lanes' past and future only, so it is replayed in program order.
            Role::Fence => handler.event(Event::Fence { record: *record }),
            Role::Barrier { kind, aligned } => {
                let word = record.a(0);
                let (id, count) = (word as u32 & 0xff, (word >> 8) as u32);
                let arrival = Arrival { site, block: key.block, warp: key.warp, mask: record.mask(), id };
                self.arrive(arrival, kind, (count != 0).then_some(count), aligned, handler);
            }
            Role::WarpBarrier => self.gather(key, site, record, true, handler),
            Role::Converge => self.gather(key, site, record, false, handler),
            Role::Exit => self.exit(key, record.mask(), handler),
            Role::SharedVariable => {
                let offset = Tagged(record.a(0)).address();
                handler.event(Event::SharedVariable { site, offset });
            }
        }
        Replayed::Done
    }

    fn note_weak_store(&mut self, access: &Access, record: &Record<'_>) {
        let whole = access.count == 1;
        for (rank, _) in record.lanes().enumerate() {
            let value = if whole { record.written(rank) } else { None };
            self.values.set_weak(Place::of(record, rank, 0), value);
        }
    }

    /// Which of the lanes can act now, in which order, by the values they read. Notes what they leave.
    fn runnable(&mut self, access: &Access, record: &Record<'_>, lanes: u32, hints: &Hints) -> Ranks {
        let mut order = Ranks::new();
        let mut pending: SmallVec<[u8; 32]> = SmallVec::new();
        for (rank, lane) in record.lanes().enumerate() {
            if lanes >> lane & 1 != 0 {
                pending.push(rank as u8);
            }
        }
        // A failed compare-and-swap and a load leave the value as it was.
        let reads = access.kind != AccessKind::Store;
        loop {
            let before = order.len();
            let mut index = 0;
            while let Some(&rank) = pending.get(index) {
                let rank_index = usize::from(rank);
                let place = Place::of(record, rank_index, 0);
                let read = record.read(rank_index);
                let fits = !reads
                    || match self.values.current(place) {
                        Some(value) => Some(value) == read,
                        // Nothing is known: whoever reads what another is about to write comes later.
                        None if !hints.guess => false,
                        None if hints.others.iter().any(|c| c.place == place && Some(c.written) == read) => {
                            false
                        }
                        None => !pending.iter().any(|other| {
                            let other = usize::from(*other);
                            other != rank_index
                                && access.is_rmw()
                                && record.written(other) == read
                                && record.written(other) != record.read(other)
                                && Place::of(record, other, 0) == place
                        }),
                    };
                if fits {
                    self.values.set(place, record.written(rank_index).or(read));
                    order.push(rank);
                    pending.remove(index);
                } else {
                    index += 1;
                }
            }
            if pending.is_empty() || order.len() == before {
                return order;
            }
        }
    }

    /// Replays all that can be.
    fn settle(&mut self, handler: &mut impl Handler) {
        loop {
            while let Some(key) = self.ready.pop() {
                self.advance(key, handler);
            }
            if !self.step_pool(handler) && self.ready.is_empty() {
                return;
            }
        }
    }

    /// Goes through a warp's queue and replays what its lanes may.
    fn advance(&mut self, key: WarpKey, handler: &mut impl Handler) {
        let Some(block) = self.blocks.get_mut(&key.block) else { return };
        let full = block.exists[usize::from(key.warp)];
        let mut queue = std::mem::take(&mut block.warps[usize::from(key.warp)].queue);
        let mut at = queue.head;
        let mut blocked = 0;
        while let Some(header) = queue.units.get(at) {
            if is_retired(header) {
                at += unit_count(*header);
                continue;
            }
            let Some(record) = queue.units.get(at..).and_then(|units| decode(units).ok().flatten()) else {
                break;
            };
            let length = record.units().len();
            let waiting = self.waiting(key);
            if (blocked | waiting) & full == full {
                blocked |= rest_mask(&queue.units, at);
                break;
            }
            let mask = record.mask();
            if (blocked | waiting) & mask == 0 {
                let tickets = record.tickets().unwrap_or_default();
                let known = self.pool.contains_key(&(tickets.1, key, at));
                match if known { Replayed::Left(mask) } else { self.replay(key, &record, handler) } {
                    Replayed::Done => {
                        retire(&mut queue, at, length);
                        at += length;
                        continue;
                    }
                    Replayed::Left(_) if known => {}
                    Replayed::Left(left) => {
                        let (before, after) = tickets;
                        self.pool.insert((after, key, at), Candidate { before, warp: key, at, left });
                    }
                }
            }
            blocked |= mask;
            at += length;
        }
        queue.blocked = blocked;
        self.put_back(key, queue);
    }

    fn put_back(&mut self, key: WarpKey, mut queue: Queue) {
        while queue.units.get(queue.head).is_some_and(is_retired) {
            queue.head += unit_count(queue.units[queue.head]);
        }
        if queue.head >= queue.units.len() {
            queue.units.clear();
            (queue.head, queue.blocked) = (0, 0);
        }
        if let Some(block) = self.blocks.get_mut(&key.block) {
            block.warps[usize::from(key.warp)].queue = queue;
            if block.is_finished() {
                self.blocks.remove(&key.block);
            }
        }
    }

    fn waiting(&self, key: WarpKey) -> u32 {
        self.blocks.get(&key.block).map_or(0, |block| block.warps[usize::from(key.warp)].waiting)
    }

    /// Replays one strong operation of the pool, or lanes of one; tells whether anything happened.
    fn step_pool(&mut self, handler: &mut impl Handler) -> bool {
        let Some((&first_key, _)) = self.pool.first_key_value() else { return false };
        let after = first_key.0;
        if !self.flushing && !self.watermark.covers(after) {
            return false;
        }
        // Others whose intervals overlap may come first; its value tells, or theirs do.
        let overlapping: Vec<_> =
            self.pool.iter().filter(|(_, c)| c.before < after).map(|(key, _)| *key).collect();
        let changes = if overlapping.len() > 1 { self.changes(&overlapping) } else { Vec::new() };
        // Those that change nothing go first: a change may take away the value that they saw. A place of which nothing is
        // known takes the value of the first operation; of another only if that leads on.
        for (changing, guess) in [(false, false), (true, false), (true, true)] {
            for key in &overlapping {
                if changes.iter().any(|(of, _)| of == key) != changing {
                    continue;
                }
                let others = changes.iter().filter(|(of, _)| of != key).map(|(_, change)| *change).collect();
                let hints = Hints { others, guess: guess || *key == first_key };
                if self.attempt(*key, false, &hints, handler) {
                    return true;
                }
            }
        }
        // No order explains the values: without what others will do first, then by force.
        let hints = Hints { others: Vec::new(), guess: true };
        self.attempt(first_key, false, &hints, handler) || self.attempt(first_key, true, &hints, handler)
    }

    /// What operations of the pool will change.
    fn changes(&self, keys: &[PoolKey]) -> Vec<(PoolKey, Change)> {
        let mut changes = Vec::new();
        for key in keys {
            let Some(candidate) = self.pool.get(key) else { continue };
            let warp =
                self.blocks.get(&key.1.block).and_then(|block| block.warps.get(usize::from(key.1.warp)));
            let units = warp.and_then(|warp| warp.queue.units.get(candidate.at..));
            let Some(record) = units.and_then(|units| decode(units).ok().flatten()) else { continue };
            for (rank, lane) in record.lanes().enumerate() {
                let place = Place::of(&record, rank, 0);
                if let Some(written) = record.written(rank)
                    && candidate.left >> lane & 1 != 0
                    && record.read(rank) != Some(written)
                {
                    changes.push((*key, Change { place, written }));
                }
            }
        }
        changes
    }

    /// Replays lanes of a candidate that can act, or all of them when forced.
    fn attempt(&mut self, at: PoolKey, force: bool, hints: &Hints, handler: &mut impl Handler) -> bool {
        let Some(&candidate) = self.pool.get(&at) else { return false };
        let key = candidate.warp;
        let Some(block) = self.blocks.get_mut(&key.block) else {
            self.pool.remove(&at);
            return true;
        };
        let mut queue = std::mem::take(&mut block.warps[usize::from(key.warp)].queue);
        let mut left = candidate.left;
        let mut length = 0;
        if let Some(record) = queue.units.get(candidate.at..).and_then(|units| decode(units).ok().flatten()) {
            length = record.units().len();
            if let Some(Role::Strong(access)) = self.roles.get(record.site() as usize).copied() {
                let mut ranks = self.runnable(&access, &record, left, hints);
                if force && (ranks.len() as u32) < left.count_ones() {
                    self.degraded += u64::from(access.is_rmw());
                    self.force(&access, &record, left, &mut ranks);
                }
                if !ranks.is_empty() {
                    handler.event(Event::Access { record, ranks: &ranks });
                }
                left &= !lanes_of(&record, &ranks);
            } else {
                left = 0;
            }
        } else {
            left = 0;
        }
        let progressed = left != candidate.left;
        if left == 0 {
            self.pool.remove(&at);
            if length != 0 {
                retire(&mut queue, candidate.at, length);
            }
            self.ready.push(key);
        } else if let Some(entry) = self.pool.get_mut(&at) {
            entry.left = left;
        }
        self.put_back(key, queue);
        progressed
    }

    /// All lanes that no value explains, in lane order.
    fn force(&mut self, access: &Access, record: &Record<'_>, left: u32, ranks: &mut Ranks) {
        for (rank, lane) in record.lanes().enumerate() {
            if left >> lane & 1 != 0 && !ranks.contains(&(rank as u8)) {
                // A stale load says nothing of what the place holds now.
                if access.writes() {
                    self.values.set(Place::of(record, rank, 0), record.written(rank));
                }
                ranks.push(rank as u8);
            }
        }
    }

    fn arrive(
        &mut self,
        arrival: Arrival,
        kind: BarrierKind,
        count: Option<u32>,
        aligned: bool,
        handler: &mut impl Handler,
    ) {
        let Some(block) = self.blocks.get_mut(&arrival.block) else { return };
        let outcome = block.phases.entry(arrival.id).or_default().arrive(arrival, kind, count, aligned);
        if kind != BarrierKind::Arrive {
            block.warps[usize::from(arrival.warp)].waiting |= arrival.mask;
        }
        if let Some((what, other)) = outcome.misuse {
            handler.event(Event::Misuse(Misuse::Barrier { what, arrival, other }));
        }
        handler.event(Event::Arrive(arrival));
        self.complete(arrival.block, arrival.id, handler);
    }

    fn complete(&mut self, block_id: u32, id: u32, handler: &mut impl Handler) {
        let Some(block) = self.blocks.get_mut(&block_id) else { return };
        let threads = Threads { exists: &block.exists, exited: &block.exited };
        let Some(phase) = block.phases.get_mut(&id).filter(|phase| phase.is_complete(threads)) else {
            return;
        };
        let waiters = phase.waiters();
        let absent = phase.absent(threads);
        phase.reset();
        for (warp, mask) in &waiters {
            block.warps[usize::from(*warp)].waiting &= !mask;
            self.ready.push(WarpKey { block: block_id, warp: *warp });
        }
        handler.event(Event::BarrierDone { block: block_id, id, waiters: &waiters, absent: &absent });
    }

    fn gather(
        &mut self,
        key: WarpKey,
        site: SiteId,
        record: &Record<'_>,
        orders: bool,
        handler: &mut impl Handler,
    ) {
        let (block, warp) = (key.block, key.warp);
        for (rank, lane) in record.lanes().enumerate() {
            let given = record.a(rank) as u32;
            if given >> lane & 1 == 0 {
                let executing = record.mask();
                handler.event(Event::Misuse(Misuse::LaneOutsideMask { site, block, warp, given, executing }));
                continue;
            }
            let Some(state) = self.blocks.get_mut(&block) else { return };
            let warp_state = &mut state.warps[usize::from(warp)];
            let found = warp_state.gatherings.iter_mut().find(|g| g.mask == given && g.orders == orders);
            match found {
                Some(gathering) => gathering.came |= 1 << lane,
                None => warp_state.gatherings.push(Gathering { site, mask: given, came: 1 << lane, orders }),
            }
            warp_state.waiting |= 1 << lane;
        }
        self.complete_gatherings(key, handler);
    }

    fn complete_gatherings(&mut self, key: WarpKey, handler: &mut impl Handler) {
        let (block, warp) = (key.block, key.warp);
        let Some(state) = self.blocks.get_mut(&block) else { return };
        let absent = state.exited[usize::from(warp)] | !state.exists[usize::from(warp)];
        let warp_state = &mut state.warps[usize::from(warp)];
        let mut done: SmallVec<[Gathering; 1]> = SmallVec::new();
        warp_state.gatherings.retain(|gathering| {
            let complete = (gathering.came | absent) & gathering.mask == gathering.mask;
            if complete {
                done.push(*gathering);
            }
            !complete
        });
        for gathering in done {
            warp_state.waiting &= !gathering.came;
            let mask = gathering.came;
            let event = if gathering.orders {
                Event::WarpBarrier { block, warp, mask }
            } else {
                Event::Converge { block, warp, mask }
            };
            handler.event(event);
            self.ready.push(key);
        }
    }

    fn exit(&mut self, key: WarpKey, mask: u32, handler: &mut impl Handler) {
        let Some(block) = self.blocks.get_mut(&key.block) else { return };
        block.exited[usize::from(key.warp)] |= mask & block.exists[usize::from(key.warp)];
        let last = block.all_exited();
        let mut ids: Vec<u32> =
            block.phases.iter().filter(|(_, p)| !p.is_idle()).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        handler.event(Event::Exit { block: key.block, warp: key.warp, mask, last });
        for id in ids {
            self.complete(key.block, id, handler);
        }
        self.complete_gatherings(key, handler);
        if self.blocks.get(&key.block).is_some_and(BlockState::is_finished) {
            self.blocks.remove(&key.block);
        }
    }
}

/// `bar` is `barrier.aligned`.
fn is_aligned(opcode: &str) -> bool {
    let mut words = opcode.split('.');
    match words.next() {
        Some("bar") => true,
        Some("barrier") => words.any(|word| word == "aligned"),
        _ => false,
    }
}

const RANKS: [u8; 32] = {
    let mut ranks = [0; 32];
    let mut rank = 0;
    while rank < 32 {
        ranks[rank] = rank as u8;
        rank += 1;
    }
    ranks
};

fn all_ranks(record: &Record<'_>) -> &'static [u8] {
    RANKS.get(..record.mask().count_ones() as usize).unwrap_or(&RANKS)
}

/// The lanes of some ranks.
fn lanes_of(record: &Record<'_>, ranks: &[u8]) -> u32 {
    let lanes = record.lanes().enumerate().filter(|(rank, _)| ranks.contains(&(*rank as u8)));
    lanes.fold(0, |mask, (_, lane)| mask | 1 << lane)
}

/// A record that is done keeps its length and loses its lanes.
fn retire(queue: &mut Queue, at: usize, length: usize) {
    if let Some(header) = queue.units.get_mut(at) {
        *header = Unit { lo: 0, hi: (length as u64) << crate::abi::UNITS_SHIFT };
    }
}

fn is_retired(header: &Unit) -> bool {
    header.lo >> 32 == 0
}

fn unit_count(header: Unit) -> usize {
    ((header.hi >> crate::abi::UNITS_SHIFT) & 0x7f).max(1) as usize
}

/// Lanes of the records from `at` on that are not done.
fn rest_mask(units: &[Unit], mut at: usize) -> u32 {
    let mut mask = 0;
    while let Some(header) = units.get(at) {
        mask |= (header.lo >> 32) as u32;
        at += unit_count(*header);
    }
    mask
}

/// Barriers and masks that keep lanes waiting although no lane of the block runs any more.
fn report_stuck(block: u32, state: &BlockState, handler: &mut impl Handler) {
    let runs = state
        .warps
        .iter()
        .zip(&state.exists)
        .zip(&state.exited)
        .any(|((warp, exists), exited)| exists & !exited & !warp.waiting != 0);
    if runs {
        return;
    }
    let mut phases: Vec<_> = state.phases.iter().collect();
    phases.sort_by_key(|(id, _)| **id);
    for (_, phase) in phases {
        if let Some(arrival) = phase.first_waiting() {
            let (arrived, expected) = phase.progress(state.threads());
            handler.event(Event::Misuse(Misuse::NeverCompletes { arrival, arrived, expected }));
        }
    }
    for (warp, warp_state) in state.warps.iter().enumerate() {
        for gathering in &warp_state.gatherings {
            handler.event(Event::Misuse(Misuse::LaneNeverCame {
                site: gathering.site,
                block,
                warp: warp as u8,
                given: gathering.mask,
                came: gathering.came,
            }));
        }
    }
}
