//! What takes launches and their records, and hands them to the rules: a launch's records are kept to its end, and then taken in
//! an order of their own.

use std::sync::Arc;

use super::kept::{Held, Kept};
use super::sequence::{Part, Sequence};
use super::{Budget, Core, HostAccess, Launch, LaunchReport, Ordered, Report, Role};
use crate::abi::{DecodeError, Unit, records};
use crate::backend::{self, LaunchEnd, LaunchInfo, Plan, Region, Sink};
use crate::event::{Geometry, Orderer, Place};
use crate::finding::Finding;
use crate::instrument::{Site, SiteId, SiteTable};
use crate::isa::AccessKind;

/// Takes records and finds races.
#[derive(Debug)]
pub struct Engine {
    orderer: Orderer,
    pub(super) core: Core,
    launches: Vec<LaunchReport>,
    /// Launches are reported on.
    reports: bool,
    /// Records of the launch at hand.
    held: Held,
    /// So many bytes of them are kept.
    most_held: usize,
    /// It has too many to be kept.
    streams: bool,
}

/// What an engine could not do, so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shortcomings {
    /// Strong operations whose order could not be told.
    pub degraded: u64,
    /// Accesses that were forgotten.
    pub lost: u64,
    /// Records that were not looked at.
    pub unchecked: u64,
    /// Damage in the records.
    pub damaged: Option<DecodeError>,
}

impl Engine {
    /// An engine for runs of this plan.
    pub fn new(sites: Arc<SiteTable>, plan: &Plan) -> Self {
        let mut engine = Self::of(Orderer::new(&sites), true);
        engine.core.add_sites(sites);
        engine.core.launches = launches(plan);
        engine.core.several_devices = plan.launches.iter().any(|launch| launch.device != 0);
        engine
    }

    /// An engine that learns of modules and launches as they come. It keeps no `LaunchReport`.
    pub fn open() -> Self {
        Self::of(Orderer::new(&SiteTable::default()), false)
    }

    fn of(orderer: Orderer, reports: bool) -> Self {
        Self {
            orderer,
            core: Core::new(),
            launches: Vec::new(),
            reports,
            held: Held::default(),
            most_held: Budget::UNLIMITED.sorted(),
            streams: false,
        }
    }

    /// The same with so much memory.
    #[must_use]
    pub fn within(mut self, memory: Budget) -> Self {
        self.set_memory(memory);
        self
    }

    pub(super) fn set_memory(&mut self, memory: Budget) {
        self.most_held = memory.sorted();
        self.core.room = memory.shadow();
    }

    /// The number that the first site of the next module has to have.
    pub fn next_site(&self) -> u32 {
        u32::try_from(self.core.roles.len()).unwrap_or(u32::MAX)
    }

    /// Adds a module.
    pub fn add_module(&mut self, sites: Arc<SiteTable>) {
        self.orderer.add(&sites);
        self.core.add_sites(sites);
    }

    /// Adds the launch that runs next, as number `order.index`.
    pub fn add_launch(&mut self, launch: &backend::Launch, order: Ordered) {
        self.core.several_devices |= launch.device != 0;
        self.core.add_launch(Geometry::of(launch), launch.shared, launch.device, order);
    }

    /// Tells of memory that launches may access from now on. What was known of the same addresses is gone.
    pub fn add_region(&mut self, region: &Region) {
        self.core.outward.region(region);
    }

    /// Takes what an operation of the host, such as a copy, does to memory. `site` stands for its kind.
    pub fn host_operation(&mut self, site: SiteId, accesses: &[HostAccess], order: Ordered) {
        let index = order.index;
        self.core.add_launch(Geometry::new(1), 0, 0, order);
        self.core.begin(index);
        self.core.host_operation(site, accesses);
        self.core.end(false);
    }

    /// Findings since the last call, each with a number that stays its own: new ones and, if `changes`, those that have
    /// grown.
    pub fn news(&mut self, changes: bool) -> Vec<(u32, Finding)> {
        self.core.collector.news(changes)
    }

    /// The shared variables of the last launch.
    pub fn shared_variables(&mut self) -> Vec<Region> {
        std::mem::take(&mut self.core.shared_variables)
    }

    /// What could not be done, so far.
    pub fn shortcomings(&self) -> Shortcomings {
        Shortcomings {
            degraded: self.orderer.degraded(),
            lost: self.core.lost,
            unchecked: self.core.unchecked,
            damaged: self.orderer.damaged(),
        }
    }

    /// Instructions since the last call of which it is not known what they touch, and why.
    pub fn unresolved(&mut self) -> Vec<(Site, String)> {
        let Core { unresolved, told, sites, .. } = &mut self.core;
        let news = unresolved.get(*told..).unwrap_or(&[]).iter();
        let news = news.filter_map(|(site, why)| Some((sites.get(*site)?.clone(), why.clone()))).collect();
        *told = unresolved.len();
        news
    }

    /// Whether all earlier launches of the plan have ended when this one starts, and it has when any later one does.
    pub(super) fn stands_alone(&self, index: u32) -> bool {
        let at = index as usize;
        self.core.launches.get(at).is_some_and(|launch| launch.open.is_empty())
            && self.core.launches.get(at + 1).is_none_or(|next| next.oldest > index)
    }

    /// Tickets of a counter up to this one were drawn by operations that nothing else is told of.
    pub(super) fn passed(&mut self, counter: u32, ticket: u64) {
        self.orderer.passed(counter, ticket);
    }

    /// Takes over what others have kept of all that came so far, `number` times.
    pub(super) fn adopt<'k>(&mut self, kept: impl Iterator<Item = &'k mut Kept>, number: u64) {
        self.held.adopt(kept, number);
    }

    /// Takes what is held.
    fn take_held(&mut self) {
        let Self { orderer, core, held, most_held, .. } = self;
        let segments = held.as_it_came();
        if held.bytes() > *most_held {
            segments.iter().for_each(|units| feed(orderer, core, units));
        } else {
            if core.has_sc_fences {
                announce(core, &segments);
            }
            let part = |site: u32| core.roles.get(site as usize).map_or(Part::Early, Role::part);
            Sequence::of(&segments, part).each(|units| feed(orderer, core, units));
        }
    }

    /// Ends the analysis.
    pub fn finish(self) -> Report {
        let Shortcomings { degraded, lost, unchecked, damaged } = self.shortcomings();
        Report {
            findings: self.core.collector.finish(),
            launches: self.launches,
            degraded,
            lost,
            unchecked,
            damaged,
            unresolved: self.core.unresolved,
        }
    }
}

impl Sink for Engine {
    fn begin(&mut self, info: &LaunchInfo) {
        info.regions.iter().for_each(|region| self.add_region(region));
        let geometry = self.core.begin(info.index);
        self.core.images = info.images.clone();
        self.orderer.begin(geometry);
        self.orderer.counted_by(info.counter);
        self.orderer.add_tensor_maps(&info.tensor_maps);
        self.held.clear();
        self.streams = false;
        if !self.reports {
            return;
        }
        let regions = info.regions.clone();
        self.launches.push(LaunchReport { index: info.index, regions, ..LaunchReport::default() });
    }

    fn records(&mut self, units: &[Unit]) {
        if !self.streams {
            if self.held.bytes() + size_of_val(units) <= self.most_held {
                self.held.keep(units);
                return;
            }
            self.take_held();
            self.held.clear();
            self.streams = true;
        }
        feed(&mut self.orderer, &mut self.core, units);
    }

    fn end(&mut self, end: &LaunchEnd) {
        self.take_held();
        self.orderer.end(&mut self.core);
        if self.orderer.has_doubts() {
            self.orderer.explain(&self.held.as_it_came());
        }
        self.held.clear();
        end.notices.iter().for_each(|notice| self.core.notice(notice));
        self.core.end(end.unseen_order);
        if let Some(launch) = self.launches.last_mut() {
            launch.shared = std::mem::take(&mut self.core.shared_variables);
            launch.end = end.clone();
        }
    }
}

/// Hands records on, unless there is no room for what they tell.
#[inline]
fn feed(orderer: &mut Orderer, core: &mut Core, units: &[Unit]) {
    if core.full {
        core.unchecked += records(units).count() as u64;
        return;
    }
    orderer.feed(units, core);
    core.full |= orderer.bytes() > core.room / 2;
}

/// Makes places of global memory known that strong operations will read, so that it is kept what weak stores leave there before:
/// which fences come before such a store may force an order.
fn announce(core: &mut Core, segments: &[&[Unit]]) {
    for record in segments.iter().flat_map(|units| records(units)) {
        let Some(Role::Access(access)) = core.roles.get(record.site() as usize) else { continue };
        if !access.order.is_strong() || access.kind == AccessKind::Store {
            continue;
        }
        for rank in 0..record.lane_count() {
            let place = Place::of(&record, rank, &core.geometry);
            if !place.is_shared() {
                core.locations.entry(place).or_default();
            }
        }
    }
}

/// Launch order: streams and events, closed transitively.
fn launches(plan: &Plan) -> Vec<Launch> {
    let mut launches: Vec<Launch> = Vec::new();
    for (index, launch) in plan.launches.iter().enumerate() {
        let mut open = vec![true; index];
        for (earlier, other) in plan.launches.iter().enumerate().take(index) {
            if other.stream == launch.stream || launch.after.contains(&earlier) {
                let through = launches.get(earlier);
                let ended = |at: usize| {
                    at == earlier || (at < earlier && through.is_some_and(|launch| launch.follows(at as u32)))
                };
                open.iter_mut().enumerate().for_each(|(at, open)| *open &= !ended(at));
            }
        }
        let open = (0..).zip(open).filter(|(_, open)| *open).map(|(at, _)| at).collect();
        let geometry = Geometry::of(launch);
        let (dynamic_shared, device) = (launch.shared, launch.device);
        launches.push(Launch { geometry, open, oldest: 0, dynamic_shared, device });
    }
    let mut oldest = u32::MAX;
    for launch in launches.iter_mut().rev() {
        oldest = launch.open.first().map_or(oldest, |first| oldest.min(*first));
        launch.oldest = oldest;
    }
    launches
}
