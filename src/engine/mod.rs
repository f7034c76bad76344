//! Decides races by the PTX memory model (memory model of the PTX ISA 9.1, chapter 8).
//!
//! The engine has no IO and no randomness: the same records give the same findings, in whatever order they come (`sequence`), as
//! long as a launch has no more than `MOST_SORTED` bytes of them.
//!
//! | file | rule of the model |
//! | --- | --- |
//! | `intake`, `kept`, `sequence` | none: a launch's records are kept to its end, and then taken in an order of their own |
//! | `clock` | base causality as vector clocks, the clocks of `fence.sc`, what is fenced towards the async proxy, and what convergence would order |
//! | `thread` | program order, CTA barriers and `bar.warp.sync` (synchronizes-with by barriers) |
//! | `gather` | what arrives at a CTA barrier and what its waiters know |
//! | `blocks` | `barrier.cluster`, and the end of a block's shared memory |
//! | `sync` | release and acquire patterns, observation, RMW chains (synchronizes-with by values), scopes |
//! | `mbarrier` | arrivals and waits of mbarriers (synchronizes-with by phases) |
//! | `copies`, `asynchronous` | asynchronous operations and their completion, proxy fences |
//! | `quiet` | words whose accesses are all ordered so far, record by record |
//! | `shadow` | which earlier accesses are kept for each byte of the others |
//! | `access` | what accesses observe and hand on |
//! | `conflict` | an access against the shadow: conflict, causality order, morally strong, proxies |
//! | `judge` | which rule and severity a race gets |
//! | `again` | conflicts that get what earlier ones got |
//! | `publish` | which half of a publication is wanting |
//! | `outward` | flags for the host whose scope leaves it out |
//! | `streams` | the order of launches, copies and the host: streams, events, waiting |
//! | `image` | accesses by textures and surfaces |
//! | `host` | copies and the like against launches and each other |
//! | `triage` | launches in which nothing can be found, told quickly |
//!
//! Forced `fence.sc` order: if a read that precedes fence F2 in base causality observed a write that fence F1 precedes, and
//! the fences are morally strong, then F1 comes before F2, since the other way round would violate the causality axiom.
//!
//! Convergence: shuffles, votes and their like bring lanes together and order no memory, but on all devices that there are the
//! order holds. A conflict that would be ordered by base causality and convergence together is a warning; nothing is ever
//! clean by it. Forced fence order and proxy fences do not count for that.
//!
//! What is approximated, axiom by axiom, and in which direction:
//! - *Observation.* Which write a strong read observed is told by its value (`event::order`); the latest of that value is
//!   taken. May miss. Of the strong accesses of a warp to a place, the last read, atomic and two stores are kept (`shadow`). Later
//!   accesses that only observation orders after those count as ordered after what was before them, too; the model orders
//!   them after the observed write alone. Misses that race, which takes a third store.
//! - *Fence-SC.* Unforced order (mere timing) is no order, as the model demands of a verdict over executions. A forced edge
//!   needs a *strong* read that observed the write; one through a weak read is not seen (the flag itself is a race then),
//!   nor one through a weak store to shared memory that no strong operation had touched (alike). May name more races where there is
//!   one.
//! - *Base causality.* Histories are bounded (`sync::HISTORY`, `sync::CHAINS`, `sync::NEAR_BLOCKS`, `access::PLACES`); beyond them
//!   edges are lost, and reports may be too many. Beyond `shadow::WEAK_WRITERS` accesses are lost, and the run says so. When its
//!   `Budget` is used up, the rest of a launch is not looked at, nor does the run count as clean.
//! - *Atomicity.* A compare-and-swap that succeeds and changes nothing counts as a read, as a failed one does. May miss.
//! - *mbarriers.* A wait of a phase counts as knowing all earlier phases of the same mbarrier; an operation without a scope has
//!   cluster scope, where the ISA says `.cta`; arrivals release what precedes them, never a later relaxed arrival of the
//!   same thread (pattern b). The first two may miss, the last may report too much. `event::mbarrier` tells when a phase is
//!   complete.
//! - *Asynchronous operations.* A copy's access that takes the place of earlier ones of the same bytes orders them with
//!   whatever its completion orders. Reductions count as morally strong whatever the proxies. A copy that was waited for
//!   by a group and by an mbarrier counts by either. A tensor store writes what is inside of the tensor, where an H200 goes on
//!   to the end of 16 bytes. May miss. A tensor copy whose map nobody saw being encoded has no accesses here, and the run says
//!   so. What a copy leaves in a strong location is unknown from its issue on.
//! - *Proxies.* Generic and async proxy only: a generic access and a later one in the async proxy need base causality with a
//!   proxy fence by any thread on the path, as the formal model has it. The completion of a copy orders it with generic
//!   accesses. Textures and surfaces are in `image`. The constant proxy makes a run inconclusive, and so does what changes a tensor map;
//!   `ld.global.nc` is R009.
//! - *Matrices.* Lanes that give addresses to `ldmatrix` and `stmatrix` count as those that access; of `wmma` tiles, all lanes
//!   access all elements. The last may report too much where a warp loads and stores a tile of one shape in place, which
//!   is a warning.
//! - *Observation order* (causality through observation) is kept for plain accesses, not for asynchronous ones.

mod access;
mod again;
mod asynchronous;
mod blocks;
mod budget;
mod clock;
mod collect;
mod conflict;
mod copies;
mod gather;
mod host;
mod image;
mod intake;
mod judge;
mod kept;
mod marks;
mod mbarrier;
mod misuse;
mod outward;
mod publish;
mod quiet;
mod sequence;
mod shadow;
mod stands;
mod streams;
mod sync;
mod thread;
mod triage;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::abi::{DecodeError, Record};
use crate::backend::{Images, LaunchEnd, Owner, Region};
use crate::event::{ByBlock, Event, Geometry, Handler};
use crate::finding::{Finding, ThreadId};
use crate::instrument::{Site, SiteId, SiteKind, SiteTable};
use crate::isa::{
    Access, AsyncCopy, Fence, FenceOrder, Fill, GroupOp, ImageAccess, Mbarrier, Product, ProxyFence, Scope,
    Tile,
};
pub use budget::{Analysis, Budget};
pub use host::HostAccess;
pub use intake::{Engine, Shortcomings};
use sequence::Part;
pub use streams::{Moment, Ordered, StreamId, Streams};
pub use triage::{OpenTriage, Triage};

/// Reasons that are kept at most why it is not known what instructions touch.
const MOST_UNRESOLVED: usize = 64;

/// What the analysis of a run gave.
#[derive(Debug, Default)]
pub struct Report {
    /// Findings, sorted.
    pub findings: Vec<Finding>,
    /// Launches, in order.
    pub launches: Vec<LaunchReport>,
    /// Strong operations whose order could not be told.
    pub degraded: u64,
    /// Accesses that were forgotten because too many unordered ones met at one word.
    pub lost: u64,
    /// Records that were not looked at because the memory for it was used up.
    pub unchecked: u64,
    /// Damage in the records.
    pub damaged: Option<DecodeError>,
    /// Instructions of which it is not known what they touch, and why.
    pub unresolved: Vec<(SiteId, String)>,
}

/// One launch, as analysed.
#[derive(Clone, Debug, Default)]
pub struct LaunchReport {
    /// Index in the plan.
    pub index: u32,
    /// Global memory regions at that time.
    pub regions: Vec<Region>,
    /// Shared variables, by their offset in a block's shared window.
    pub shared: Vec<Region>,
    /// Counts and what was not logged.
    pub end: LaunchEnd,
}

/// What the engine needs of a launch.
#[derive(Clone, Debug)]
struct Launch {
    geometry: Geometry,
    /// Earlier launches and operations of the host that may not have ended when this one starts, sorted.
    open: Vec<u32>,
    /// All before this one have ended when it starts, and when any later one does.
    oldest: u32,
    dynamic_shared: u32,
    device: u32,
}

impl Launch {
    /// Whether an earlier one ends before this one starts.
    fn follows(&self, earlier: u32) -> bool {
        self.open.is_empty() || self.open.binary_search(&earlier).is_err()
    }
}

/// The sites of all modules.
#[derive(Debug, Default)]
struct Sites(Vec<Arc<SiteTable>>);

impl Sites {
    fn get(&self, id: SiteId) -> Option<&Site> {
        self.table(id)?.get(id)
    }

    /// Those of the module that has this one.
    fn table(&self, id: SiteId) -> Option<&SiteTable> {
        let at = self.0.partition_point(|table| table.first() <= id.0).checked_sub(1)?;
        self.0.get(at).map(|table| &**table)
    }
}

/// Static facts of a site, small enough to copy.
#[derive(Clone, Copy, Debug)]
enum Role {
    Access(Access),
    Fence(Fence),
    Copy(AsyncCopy),
    Mbarrier(Mbarrier),
    Group(GroupOp),
    ProxyFence(ProxyFence),
    Fill(Fill),
    Tile(Tile),
    Product(Product),
    /// Of a block.
    Barrier,
    Exit,
    Image(ImageAccess),
    Other,
}

impl Role {
    /// What its records are to the order in which they are taken.
    fn part(&self) -> Part {
        match self {
            Self::Access(access) if !access.writes() => Part::Late,
            Self::Exit => Part::Late,
            Self::Barrier => Part::Barrier,
            _ => Part::Early,
        }
    }
}

#[derive(Debug)]
struct Core {
    sites: Sites,
    roles: Vec<Role>,
    launches: Vec<Launch>,
    current: u32,
    /// Of the current launch.
    geometry: Geometry,
    blocks: ByBlock<thread::Block>,
    global: shadow::Shadow,
    locations: sync::Locations,
    copies: copies::Copies,
    mbarriers: mbarrier::Mbarriers,
    clusters: FxHashMap<u32, blocks::Cluster>,
    /// Blocks that have ended, where others may still access their shared memory.
    ended: FxHashMap<u32, blocks::BlockEnd>,
    collector: collect::Collector,
    shared_variables: Vec<Region>,
    /// Events handled, to tell earlier from later.
    events: u64,
    explained: judge::Explained,
    /// Entries of the shadow that were lost although they mattered.
    lost: u64,
    /// Bytes that what is known of memory may take.
    room: usize,
    /// Bytes of it that are known of blocks' shared memory.
    of_blocks: usize,
    /// There is no room left: the rest of the launch is not looked at.
    full: bool,
    /// Records that were not.
    unchecked: u64,
    /// What the host has copied and set.
    host: host::Host,
    /// Not all launches are for the first device.
    several_devices: bool,
    /// What kernels write for the host to see while they run.
    outward: outward::Outward,
    /// Textures and surfaces of the current launch.
    images: Images,
    /// Instructions of which it is not known what they touch, each once with each reason.
    unresolved: Vec<(SiteId, String)>,
    /// How many of those were told of.
    told: usize,
    /// There are fences that causality may force into an order.
    has_sc_fences: bool,
}

impl Core {
    fn new() -> Self {
        Self {
            roles: Vec::new(),
            sites: Sites::default(),
            launches: Vec::new(),
            current: 0,
            geometry: Geometry::new(1),
            blocks: ByBlock::default(),
            global: shadow::Shadow::default(),
            locations: sync::Locations::default(),
            copies: copies::Copies::default(),
            mbarriers: mbarrier::Mbarriers::default(),
            clusters: FxHashMap::default(),
            ended: FxHashMap::default(),
            collector: collect::Collector::default(),
            shared_variables: Vec::new(),
            events: 0,
            explained: judge::Explained::default(),
            lost: 0,
            room: usize::MAX,
            of_blocks: 0,
            full: false,
            unchecked: 0,
            host: host::Host::default(),
            several_devices: false,
            outward: outward::Outward::default(),
            images: Images::default(),
            unresolved: Vec::new(),
            told: 0,
            has_sc_fences: false,
        }
    }

    /// Adds the sites of a module, whose numbers follow those that are known.
    fn add_sites(&mut self, sites: Arc<SiteTable>) {
        let is_sc =
            |site: &Site| matches!(&site.kind, SiteKind::Fence(fence) if fence.order == FenceOrder::Sc);
        self.has_sc_fences |= sites.sites().iter().any(is_sc);
        self.roles.extend(sites.sites().iter().map(|site| match &site.kind {
            SiteKind::Access(access) => Role::Access(*access),
            SiteKind::Fence(fence) => Role::Fence(*fence),
            SiteKind::AsyncCopy(copy) => Role::Copy(*copy),
            SiteKind::Mbarrier(mbarrier) => Role::Mbarrier(*mbarrier),
            SiteKind::Group(group) => Role::Group(*group),
            SiteKind::ProxyFence(fence) => Role::ProxyFence(*fence),
            SiteKind::Fill(fill) => Role::Fill(*fill),
            SiteKind::Tile(tile) => Role::Tile(*tile),
            SiteKind::Product(product) => Role::Product(*product),
            SiteKind::Barrier(_) => Role::Barrier,
            SiteKind::Exit => Role::Exit,
            SiteKind::Image(access) => Role::Image(*access),
            _ => Role::Other,
        }));
        self.sites.0.push(sites);
    }

    fn add_launch(&mut self, geometry: Geometry, dynamic_shared: u32, device: u32, order: Ordered) {
        let Ordered { index, open, oldest } = order;
        debug_assert_eq!(index as usize, self.launches.len());
        // Only the one that runs is asked what it follows.
        if let Some(before) = self.launches.last_mut() {
            before.open = Vec::new();
        }
        self.launches.push(Launch { geometry, open, oldest, dynamic_shared, device });
    }

    fn begin(&mut self, index: u32) -> Geometry {
        self.current = index;
        self.blocks.clear();
        self.locations.clear();
        self.copies.clear();
        self.mbarriers.clear();
        self.clusters.clear();
        self.ended.clear();
        // Accesses of finished launches matter only while a launch unordered with them may follow.
        let launch = self.launches.get(index as usize);
        if launch.is_none_or(|launch| launch.oldest >= index) {
            self.global.clear();
        }
        (self.of_blocks, self.full) = (0, false);
        self.host.begin(launch);
        self.outward.begin();
        self.geometry = launch.map_or(Geometry::new(1), |launch| launch.geometry);
        self.geometry
    }

    fn end(&mut self, unseen_order: bool) {
        if !self.full {
            self.published_outward();
        }
        self.blocks.clear();
        self.of_blocks = 0;
        self.collector.end_launch(unseen_order);
        // Dynamic shared memory is as large as the launch made it.
        let dynamic =
            self.launches.get(self.current as usize).map_or(0, |launch| u64::from(launch.dynamic_shared));
        for region in &mut self.shared_variables {
            if region.bytes == 0 {
                region.bytes = dynamic;
            }
        }
    }

    fn thread(&self, block: u32, warp: u8, lane: u8) -> ThreadId {
        ThreadId { launch: self.current, block, warp, lane }
    }

    #[inline]
    fn block(&mut self, index: u32) -> &mut thread::Block {
        let geometry = self.geometry;
        self.blocks.get_or_insert_with(index, || thread::Block::new(index, geometry))
    }

    fn fence(&mut self, record: &Record<'_>) {
        let Some(Role::Fence(fence)) = self.roles.get(record.site() as usize).copied() else { return };
        let (index, warp_index, events) = (record.block(), record.warp(), self.events);
        let home = sync::Home::new(index, self.geometry);
        let reach = home.reach(fence.scope);
        if fence.order.releases() && fence.scope == Scope::Sys && !self.outward.is_empty() {
            let time = self.blocks.get(index).and_then(|block| block.warps.get(usize::from(warp_index)));
            self.outward.fenced(index, warp_index, time.map_or(0, |warp| warp.time));
        }
        let block = self.block(index);
        let Some(warp) = block.warps.get_mut(usize::from(warp_index)) else { return };
        let live = warp.live();
        if fence.order.acquires() {
            for lane in record.lanes() {
                let lane_sync = warp.lane_sync(lane);
                lane_sync.acquire_fence = Some((events, fence.scope));
                let taken: Vec<_> = lane_sync.pending.eligible(home, reach).into_iter().cloned().collect();
                for know in taken {
                    warp.know.update(1 << lane, live, |own| clock::join(own, &know));
                }
            }
        }
        if fence.order == FenceOrder::Sc {
            let (peers, wide) = (home.peers(reach), reach == sync::Reach::Device);
            // Fences that causality forces to come before this one.
            warp.know.update(record.mask(), live, |own| {
                let Some(observed) = &own.observed else { return Arc::clone(own) };
                if observed.before(peers, wide).all(|forced| forced.precedes(&own.clock)) {
                    return Arc::clone(own);
                }
                let mut know = clock::Know::clone(own);
                observed.before(peers, wide).for_each(|forced| know.clock.join(forced));
                Arc::new(know)
            });
            if let thread::LaneKnow::All(know) = &warp.know {
                let know = Arc::clone(know);
                warp.note_sc_fence(record.mask(), home, reach, know);
            } else {
                for lane in record.lanes() {
                    let know = Arc::clone(warp.know.get(lane));
                    warp.note_sc_fence(1 << lane, home, reach, know);
                }
            }
        }
        if fence.order.releases() {
            for lane in record.lanes() {
                let know = warp.lane_know(index, warp_index, lane);
                let time = warp.time;
                let lane_sync = warp.lane_sync(lane);
                lane_sync.release_fence = Some((time, fence.scope));
                lane_sync.fresh = true;
                if fence.scope == Scope::Sys {
                    lane_sync.system = Some(Arc::clone(&know));
                }
                lane_sync.release(reach, &know);
            }
            warp.time += 1;
        }
    }
}

impl Handler for Core {
    #[inline]
    fn access(&mut self, record: &Record<'_>, ranks: &[u8]) {
        if self.is_full() {
            return;
        }
        self.events += 1;
        if let Some(Role::Access(access)) = self.roles.get(record.site() as usize) {
            let access = *access;
            let before = self.known_of(record.block());
            self.accessed(&access, record, ranks);
            self.grew(record.block(), before);
        }
    }

    fn event(&mut self, event: Event<'_>) {
        if !matches!(event, Event::SharedVariable { .. }) && self.is_full() {
            return;
        }
        self.events += 1;
        match event {
            Event::Fence { record } => self.fence(&record),
            Event::Copy { record, targets, boxes } => {
                if let Some(Role::Copy(copy)) = self.roles.get(record.site() as usize).copied() {
                    let before = self.known_of(record.block());
                    self.copy(&copy, &record, targets, boxes);
                    self.grew(record.block(), before);
                }
            }
            Event::Product { records } => self.product(records),
            Event::Mbarrier { record, ranks } => {
                if let Some(Role::Mbarrier(mbarrier)) = self.roles.get(record.site() as usize).copied() {
                    self.mbarrier(&mbarrier, &record, ranks);
                }
            }
            Event::Own { record } => match self.roles.get(record.site() as usize).copied() {
                Some(Role::Group(group)) => self.group(group, &record),
                Some(Role::ProxyFence(fence)) => self.proxy_fence(fence, &record),
                Some(Role::Fill(fill)) => self.fill(&fill, &record),
                Some(Role::Tile(tile)) => self.tile(&tile, &record),
                Some(Role::Image(access)) => self.image(&access, &record),
                _ => {}
            },
            Event::ClusterArrive { arrival, release } => self.cluster_arrive(arrival, release),
            Event::ClusterDone { cluster } => self.cluster_done(cluster),
            Event::ClusterWait { block, warp, mask } => self.cluster_wait(block, warp, mask),
            Event::Arrive(arrival) => {
                let block = self.block(arrival.block);
                block.arrive(arrival.block, arrival.id, arrival.warp, arrival.mask);
            }
            Event::BarrierDone { block, id, waiters, absent } => {
                self.block(block).release(block, id, waiters, absent);
            }
            Event::WarpBarrier { block, warp: warp_index, mask } => {
                let Some(warp) = self.block(block).warps.get_mut(usize::from(warp_index)) else { return };
                let mut know = clock::Know::new(block);
                warp.hand_on(block, warp_index, mask, &mut know);
                let know = Arc::new(know);
                let live = warp.live();
                warp.know.update(mask, live, |own| clock::join(&know, own));
                warp.time += 1;
            }
            Event::Converge { block, warp: index, mask } => {
                if let Some(warp) = self.block(block).warps.get_mut(usize::from(index)) {
                    warp.meet(block, index, mask);
                }
            }
            Event::Exit { site, block: index, warp, mask, last } => {
                if last {
                    let thread = self.thread(index, warp, (mask.trailing_zeros() & 31) as u8);
                    self.end_block(index, blocks::BlockEnd { site, thread });
                    return;
                }
                if let Some(warp) = self.block(index).warps.get_mut(usize::from(warp)) {
                    warp.exited |= mask;
                }
            }
            Event::SharedVariable { site, offset } => self.shared_variable(site, offset),
            Event::Misuse(misuse) => self.misuse(misuse),
        }
    }
}

/// About what is kept of a place that strong operations touch.
const LOCATION_BYTES: usize = 768;

impl Core {
    /// Whether the rest of the launch is not looked at. Without all accesses and all synchronisation, nothing more is told of it.
    #[inline]
    fn is_full(&mut self) -> bool {
        self.unchecked += u64::from(self.full);
        self.full
    }

    /// Bytes that are taken by what is known of the shared memory of a block.
    #[inline]
    fn known_of(&self, block: u32) -> usize {
        self.blocks.get(block).map_or(0, |block| block.shared.bytes())
    }

    /// Looks how much room there is left, after a record of a block of which so much was known before.
    #[inline]
    fn grew(&mut self, block: u32, before: usize) {
        self.of_blocks = (self.of_blocks + self.known_of(block)).saturating_sub(before);
        let locations = self.locations.len() * LOCATION_BYTES;
        self.full = self.global.bytes() + self.of_blocks + locations > self.room;
    }

    /// It is not known what an instruction touches.
    fn unresolved(&mut self, site: SiteId, why: &str) {
        let is_new = !self.unresolved.iter().any(|(other, said)| *other == site && said == why);
        if is_new && self.unresolved.len() < MOST_UNRESOLVED {
            self.unresolved.push((site, why.to_owned()));
        }
    }

    fn shared_variable(&mut self, site: SiteId, offset: u64) {
        let Some(SiteKind::SharedVariable(variable)) = self.sites.get(site).map(|site| &site.kind) else {
            return;
        };
        self.shared_variables.push(Region {
            name: variable.name.to_string(),
            base: offset,
            bytes: variable.bytes.unwrap_or(0),
            element: variable.element,
            owner: Owner::Device,
        });
    }
}
