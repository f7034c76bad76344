//! The replay order.
//!
//! Each strong operation and fence carries two tickets of one counter, drawn before and after it, so it took effect
//! somewhere in that interval. An operation may be replayed when no other one ended before it began; among those that
//! overlap, the one that ended first goes first, unless the value it read says that another must come before. Weak
//! accesses and barriers need only the order of their own lanes.
//!
//! Approximations, and their direction: a load whose value is not the current one is taken as a stale read (the engine
//! looks for the write in its history). A read-modify-write that no order explains is forced in ticket order and,
//! unless a weak store explains it, counted in `degraded`: edges may then be missing (false reports) and the run says so.
//!
//! Operations on mbarriers are ordered alike: a wait goes when its phase is complete, before arrivals that would complete
//! another one. Copies carry no tickets: their bytes count when the copy is replayed, and a wait whose bytes have not
//! come yet stays until more records do, or the launch ends. Then it is forced and counted.

mod asynchronous;
mod doubts;
mod meet;
mod pool;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use self::doubts::Doubt;
use self::pool::{Candidate, Hints, PoolKey, WarpKey, Watermark};
use self::queue::{
    BlockState, Queue, all_ranks, is_retired, lanes_of, report_stuck, rest_mask, retire, unit_count,
};
use super::by_block::ByBlock;
use super::cluster::ClusterBarrier;
use super::mbarrier::Mbarriers;
use super::tensors::Tensors;
use super::values::Values;
use super::{Arrival, Event, Geometry, Handler, Place};
use crate::abi::{DecodeError, Record, Tagged, Unit, decode, records};
use crate::instrument::bundle::{Bundling, Member, expand};
use crate::instrument::{Site, SiteId, SiteKind, SiteTable};
use crate::isa::{self, Access, AsyncCopy, BarrierKind, Fill, Mbarrier, MbarrierOp, Tile};
use crate::tensor::TensorMap;

/// What replay needs to know of a site.
#[derive(Clone, Copy, Debug)]
enum Role {
    Weak(Access),
    Strong(Access),
    Fence,
    Barrier {
        kind: BarrierKind,
        aligned: bool,
    },
    WarpBarrier,
    Converge,
    Exit,
    SharedVariable,
    Copy(AsyncCopy),
    Coordinates,
    Mbarrier(Mbarrier),
    /// Of a warpgroup.
    Product,
    ClusterBarrier(isa::ClusterBarrier),
    Fill(Fill),
    TileStore(Tile),
    /// Concerns its own lanes only.
    Own,
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
            SiteKind::AsyncCopy(copy) => Self::Copy(*copy),
            SiteKind::Coordinates => Self::Coordinates,
            SiteKind::Mbarrier(mbarrier) => Self::Mbarrier(*mbarrier),
            SiteKind::ClusterBarrier(barrier) => Self::ClusterBarrier(*barrier),
            SiteKind::Product(_) => Self::Product,
            SiteKind::Fill(fill) => Self::Fill(*fill),
            SiteKind::Tile(tile) if tile.store => Self::TileStore(*tile),
            SiteKind::Group(_) | SiteKind::ProxyFence(_) | SiteKind::Tile(_) | SiteKind::Image(_) => {
                Self::Own
            }
            SiteKind::SharedVariable(_) => Self::SharedVariable,
        }
    }
}

/// The members of bundles, by the leader.
type Bundles = FxHashMap<u32, Arc<[Member]>>;

fn bundles(sites: &SiteTable) -> impl Iterator<Item = (u32, Arc<[Member]>)> {
    sites.sites().iter().filter_map(|site| match &site.bundling {
        Bundling::Leads(members) => Some((site.id.0, Arc::clone(members))),
        Bundling::Alone | Bundling::Follows => None,
    })
}

/// About what an operation takes that waits for others, with its record.
const CANDIDATE_BYTES: usize = 256;

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
    blocks: ByBlock<BlockState>,
    pool: BTreeMap<PoolKey, Candidate>,
    /// Operations of the pool that change nothing.
    readers: usize,
    watermark: Watermark,
    /// The counter of the launch's tickets, and how far those of others have come.
    counter: u32,
    others: FxHashMap<u32, Watermark>,
    values: Values,
    mbarriers: Mbarriers,
    tensors: Tensors,
    clusters: FxHashMap<u32, ClusterBarrier>,
    /// Some site is a cluster's barrier.
    has_cluster_barriers: bool,
    /// Something that arrives at mbarriers may not be logged, so that waits which nothing explains are no surprise.
    unseen: bool,
    /// The pool waits for what no record has told yet.
    stalled: bool,
    /// Warps whose queues may go on.
    ready: Vec<WarpKey>,
    flushing: bool,
    degraded: u64,
    doubts: Vec<Doubt>,
    damaged: Option<DecodeError>,
    bundles: Bundles,
    /// Records of a bundle's members, for the room.
    unbundled: Vec<Unit>,
}

impl Orderer {
    /// An orderer for records of these sites.
    pub fn new(sites: &SiteTable) -> Self {
        let roles: Vec<_> = sites.sites().iter().map(Role::of).collect();
        Self {
            has_cluster_barriers: roles.iter().any(|role| matches!(role, Role::ClusterBarrier(_))),
            unseen: sites.unlogged().iter().any(|unlogged| unlogged.orders),
            roles,
            geometry: Geometry::new(1),
            blocks: ByBlock::default(),
            pool: BTreeMap::new(),
            readers: 0,
            watermark: Watermark::default(),
            counter: 0,
            others: FxHashMap::default(),
            values: Values::default(),
            mbarriers: Mbarriers::default(),
            tensors: Tensors::default(),
            clusters: FxHashMap::default(),
            stalled: false,
            ready: Vec::new(),
            flushing: false,
            degraded: 0,
            doubts: Vec::new(),
            damaged: None,
            bundles: bundles(sites).collect(),
            unbundled: Vec::new(),
        }
    }

    /// About how much memory is taken by what grows with a launch.
    pub fn bytes(&self) -> usize {
        self.values.bytes() + self.pool.len() * CANDIDATE_BYTES
    }

    /// Adds sites, whose numbers follow those that are known.
    pub fn add(&mut self, sites: &SiteTable) {
        self.roles.extend(sites.sites().iter().map(Role::of));
        self.bundles.extend(bundles(sites));
        self.has_cluster_barriers |= self.roles.iter().any(|role| matches!(role, Role::ClusterBarrier(_)));
        self.unseen |= sites.unlogged().iter().any(|unlogged| unlogged.orders);
    }

    /// Tensor maps were encoded, by the digests of their bytes.
    pub fn add_tensor_maps(&mut self, maps: &[(u64, TensorMap)]) {
        self.tensors.add(maps);
    }

    /// Begins a launch.
    pub fn begin(&mut self, geometry: Geometry) {
        self.geometry = geometry;
        self.blocks.clear();
        self.pool.clear();
        self.readers = 0;
        self.values.clear();
        self.mbarriers.clear();
        self.tensors.clear();
        self.clusters.clear();
        self.ready.clear();
        self.flushing = false;
        self.stalled = false;
        self.degraded = self.degraded();
        self.doubts.clear();
    }

    /// The tickets of the launch that begins are drawn from this counter.
    pub fn counted_by(&mut self, counter: u32) {
        if counter != self.counter {
            let next = self.others.remove(&counter).unwrap_or_default();
            self.others.insert(self.counter, std::mem::replace(&mut self.watermark, next));
            self.counter = counter;
        }
    }

    /// Tickets of a counter up to this one were drawn, and their operations are not replayed.
    pub fn passed(&mut self, counter: u32, ticket: u64) {
        if counter == self.counter {
            self.watermark.pass(ticket);
        } else {
            self.others.entry(counter).or_default().pass(ticket);
        }
    }

    /// Operations that had to be forced, over all launches.
    pub fn degraded(&self) -> u64 {
        self.degraded + self.doubts.len() as u64
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
                    if record.is_bundle() {
                        self.unbundle(&record, handler);
                    } else {
                        self.ingest(&record, handler);
                    }
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
        self.stalled = false;
        self.settle(handler);
        // Tickets run on over launches; those that were lost with their records are not waited for again.
        self.watermark.skip();
        self.report_stuck_clusters(handler);
        for (block, state) in self.blocks.drain() {
            report_stuck(block, &state, handler);
            let stranded = state
                .warps
                .iter()
                .any(|warp| warp.queue.units.get(warp.queue.head..).is_some_and(|rest| !rest.is_empty()));
            self.degraded += u64::from(stranded || !state.products.is_empty());
        }
        self.pool.clear();
        self.readers = 0;
    }

    /// Takes the records that one of a bundle stands for.
    fn unbundle(&mut self, record: &Record<'_>, handler: &mut impl Handler) {
        let Some(members) = self.bundles.get(&record.site()) else {
            self.damaged = self.damaged.or(Some(DecodeError::Bundle { site: record.site() }));
            return;
        };
        let mut units = std::mem::take(&mut self.unbundled);
        units.clear();
        expand(record, members, &mut units);
        records(&units).for_each(|record| self.ingest(&record, handler));
        self.unbundled = units;
    }

    fn ingest(&mut self, record: &Record<'_>, handler: &mut impl Handler) {
        let key = WarpKey { block: record.block(), warp: record.warp() };
        if u32::from(key.warp) >= self.geometry.warps {
            let units = record.units().len();
            self.damaged = self.damaged.or(Some(DecodeError::Length { units, need: units }));
            return;
        }
        let geometry = self.geometry;
        let block = self.blocks.get_or_insert_with(key.block, || BlockState::new(geometry));
        let warp = &mut block.warps[usize::from(key.warp)];
        let mask = record.mask();
        let free = (warp.waiting | warp.queue.blocked) & mask == 0;
        let mut left = mask;
        if free {
            // Most records are such.
            let replayed = match self.roles.get(record.site() as usize) {
                Some(Role::Weak(access)) => {
                    let access = *access;
                    self.weak(&access, record, handler);
                    Replayed::Done
                }
                _ => self.replay(key, record, handler),
            };
            match replayed {
                Replayed::Done => {
                    // Mostly nothing waits for anything.
                    if !(self.ready.is_empty() && self.pool.is_empty()) {
                        self.settle(handler);
                    }
                    return;
                }
                Replayed::Left(lanes) => left = lanes,
            }
        }
        // `replay` may have replaced the block's state; look again.
        let block = self.blocks.get_or_insert_with(key.block, || BlockState::new(geometry));
        let queue = &mut block.warps[usize::from(key.warp)].queue;
        let at = queue.units.len();
        queue.units.extend_from_slice(record.units());
        queue.blocked |= mask;
        if free && record.tickets().is_some() {
            self.enter(record, key, at, left);
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
            // A wait only looked at the ticket before it, which another operation has.
            if !matches!(role, Role::Mbarrier(Mbarrier { op: MbarrierOp::Wait { .. }, .. })) {
                self.watermark.note(before);
            }
            self.watermark.note(after);
        }
        match role {
            Role::Weak(access) => self.weak(&access, record, handler),
            Role::Strong(_) | Role::Mbarrier(_) if !self.is_alone(record) => {
                return Replayed::Left(record.mask());
            }
            Role::Strong(access) => {
                let ranks = self.runnable(&access, record, record.mask(), Hints::none(true));
                let left = record.mask() & !lanes_of(record, &ranks);
                if !ranks.is_empty() {
                    handler.access(record, &ranks);
                }
                if left != 0 {
                    return Replayed::Left(left);
                }
            }
            // A fence acts on its own lanes' past and future only, so it is replayed in program order.
            Role::Fence => handler.event(Event::Fence { record: *record }),
            Role::Barrier { kind, aligned } => {
                let word = record.a(0);
                let (id, count) = (word as u8, (word >> 8) as u32);
                let arrival = Arrival { site, block: key.block, warp: key.warp, mask: record.mask(), id };
                self.arrive(arrival, kind, (count != 0).then_some(count), aligned, handler);
            }
            Role::WarpBarrier => self.gather(key, site, record, true, handler),
            Role::Converge => self.gather(key, site, record, false, handler),
            Role::Exit => self.exit(key, site, record.mask(), handler),
            Role::Copy(copy) => self.copy(&copy, record, handler),
            Role::Coordinates => self.tensors.note(record),
            Role::Mbarrier(mbarrier) => {
                let left = self.mbarrier(&mbarrier, record, record.mask(), false, handler);
                if left != 0 {
                    return Replayed::Left(left);
                }
            }
            Role::ClusterBarrier(barrier) => {
                let arrival = Arrival { site, block: key.block, warp: key.warp, mask: record.mask(), id: 0 };
                self.cluster_barrier(barrier, arrival, handler);
            }
            Role::Product => self.product(key, record, handler),
            Role::Fill(fill) => self.fill(&fill, record, handler),
            Role::TileStore(tile) => self.tile_store(&tile, record, handler),
            Role::Own => handler.event(Event::Own { record: *record }),
            Role::SharedVariable => {
                let offset = Tagged(record.a(0)).address();
                handler.event(Event::SharedVariable { site, offset });
            }
        }
        Replayed::Done
    }

    /// Whether a strong operation may go straight through, as the only one in flight, and not by the pool. A warp that is
    /// ready but has not gone on may hold an earlier one.
    fn is_alone(&self, record: &Record<'_>) -> bool {
        let after = record.tickets().map_or(0, |tickets| tickets.1);
        self.pool.is_empty() && self.ready.is_empty() && self.watermark.covers(after)
    }

    #[inline]
    fn weak(&mut self, access: &Access, record: &Record<'_>, handler: &mut impl Handler) {
        if access.writes() && !self.values.is_empty() {
            self.note_weak_store(access, record);
        }
        handler.access(record, all_ranks(record));
    }

    fn note_weak_store(&mut self, access: &Access, record: &Record<'_>) {
        let whole = access.count == 1;
        for (rank, _) in record.lanes().enumerate() {
            let place = Place::of(record, rank, &self.geometry);
            if whole {
                self.values.set_weak(place, record.written(rank));
            } else {
                self.note_copied(place, access.bytes());
            }
        }
        self.stalled = false;
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
        let Some(block) = self.blocks.get_mut(key.block) else { return };
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
                    Replayed::Left(left) => self.enter(&record, key, at, left),
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
        if let Some(block) = self.blocks.get_mut(key.block) {
            block.warps[usize::from(key.warp)].queue = queue;
            if block.is_finished() {
                self.end_block(key.block);
            }
        }
    }

    fn end_block(&mut self, block: u32) {
        self.blocks.remove(block);
        self.values.end_block(block);
        self.mbarriers.end_block(block);
    }

    fn waiting(&self, key: WarpKey) -> u32 {
        self.blocks.get(key.block).map_or(0, |block| block.warps[usize::from(key.warp)].waiting)
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
