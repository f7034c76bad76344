//! Triage where launches are not known beforehand: later ones, or operations of the host, may overlap a launch that was clean. So
//! its records are kept until all that comes later comes after it, and the engine gets them if something does not.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Launch, Worker};
use crate::abi::Unit;
use crate::backend::{self, LaunchEnd, LaunchInfo, Region, Sink};
use crate::engine::kept::as_it_came;
use crate::engine::{Budget, Engine, HostAccess, Ordered, Shortcomings};
use crate::finding::Finding;
use crate::instrument::{Site, SiteId, SiteTable};

/// Bytes of records that are kept at most, of the launch at hand and of those before it: the memory is the program's. If there
/// are more, the engine gets them.
const MOST_KEPT: usize = 1 << 30;

/// A launch that was clean.
#[derive(Debug)]
struct Past {
    info: LaunchInfo,
    units: Vec<Unit>,
    end: LaunchEnd,
    /// The last of its tickets.
    ticket: u64,
}

impl Past {
    fn bytes(&self) -> usize {
        size_of_val(self.units.as_slice())
    }
}

/// An engine that learns of modules and launches as they come (`Engine::open`), behind a triage.
#[derive(Debug)]
pub struct OpenTriage {
    engine: Engine,
    worker: Worker,
    /// Bytes of records that are kept at most.
    most_kept: usize,
    /// Launches are checked here first.
    triage: bool,
    /// The launch that was added last, if nothing before it may overlap it.
    next: Option<Launch>,
    /// The launch at hand, while there is no doubt.
    current: Option<(Launch, LaunchInfo)>,
    /// How often records of it have come, and their bytes.
    number: u64,
    bytes: usize,
    /// What the engine has not seen, in order.
    past: VecDeque<Past>,
    past_bytes: usize,
    clean: u64,
}

impl Default for OpenTriage {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenTriage {
    /// Without modules.
    pub fn new() -> Self {
        Self {
            engine: Engine::open(),
            worker: Worker::new(&Arc::default(), Budget::UNLIMITED, 1),
            most_kept: MOST_KEPT,
            triage: true,
            next: None,
            current: None,
            number: 0,
            bytes: 0,
            past: VecDeque::new(),
            past_bytes: 0,
            clean: 0,
        }
    }

    /// The same without a triage: the engine gets all records.
    pub fn without() -> Self {
        Self { triage: false, ..Self::new() }
    }

    /// The same with so much memory, before any module is added.
    #[must_use]
    pub fn within(mut self, memory: Budget) -> Self {
        self.worker = Worker::new(&Arc::default(), memory, 1);
        self.most_kept = memory.kept().min(MOST_KEPT);
        self.engine.set_memory(memory);
        self
    }

    /// See `Engine::next_site`.
    pub fn next_site(&self) -> u32 {
        self.engine.next_site()
    }

    /// See `Engine::add_module`.
    pub fn add_module(&mut self, sites: Arc<SiteTable>) {
        self.worker.checker.add_module(&sites);
        self.engine.add_module(sites);
    }

    /// See `Engine::add_region`.
    pub fn add_region(&mut self, region: &Region) {
        self.engine.add_region(region);
    }

    /// See `Engine::add_launch`.
    pub fn add_launch(&mut self, launch: &backend::Launch, order: Ordered) {
        self.arrive(&order);
        self.next = Launch::of(launch).filter(|_| self.triage && order.open.is_empty());
        self.engine.add_launch(launch, order);
    }

    /// See `Engine::host_operation`.
    pub fn host_operation(&mut self, site: SiteId, accesses: &[HostAccess], order: Ordered) {
        self.arrive(&order);
        self.engine.host_operation(site, accesses, order);
    }

    /// See `Engine::news`.
    pub fn news(&mut self, changes: bool) -> Vec<(u32, Finding)> {
        self.engine.news(changes)
    }

    /// See `Engine::shared_variables`.
    pub fn shared_variables(&mut self) -> Vec<Region> {
        self.engine.shared_variables()
    }

    /// See `Engine::shortcomings`.
    pub fn shortcomings(&self) -> Shortcomings {
        self.engine.shortcomings()
    }

    /// See `Engine::unresolved`.
    pub fn unresolved(&mut self) -> Vec<(Site, String)> {
        self.engine.unresolved()
    }

    /// Launches that were clean, so far.
    pub fn clean(&self) -> u64 {
        self.clean
    }

    /// Something new comes. What all that is to come follows is forgotten; what may overlap the new, the engine has to know.
    fn arrive(&mut self, order: &Ordered) {
        while self.past.front().is_some_and(|past| past.info.index < order.oldest)
            && let Some(past) = self.past.pop_front()
        {
            self.past_bytes -= past.bytes();
            self.engine.passed(past.info.counter, past.ticket);
        }
        if self.past.iter().any(|past| order.open.binary_search(&past.info.index).is_ok()) {
            self.catch_up();
        }
    }

    /// The engine gets all that it has not seen.
    fn catch_up(&mut self) {
        self.past_bytes = 0;
        for past in std::mem::take(&mut self.past) {
            self.engine.begin(&past.info);
            self.engine.records(&past.units);
            // Its notices, as its shared variables, were told of when it ended.
            self.engine.end(&LaunchEnd { notices: Vec::new(), ..past.end });
            let _ = self.engine.shared_variables();
        }
    }

    /// There is a doubt: the engine gets what came so far.
    fn doubt(&mut self) {
        let Some((_, info)) = self.current.take() else { return };
        self.catch_up();
        self.engine.begin(&info);
        self.engine.adopt(std::iter::once(&mut self.worker.kept), self.number);
        self.worker.checker.shrink();
    }

    /// Nothing can be found in the launch that has ended.
    fn passes(&mut self, info: LaunchInfo, end: &LaunchEnd) {
        self.clean += 1;
        self.engine.begin(&info);
        self.engine.records(self.worker.checker.variables());
        self.engine.end(end);
        let units = as_it_came([&self.worker.kept]).concat();
        let past = Past { info, units, end: end.clone(), ticket: self.worker.checker.ticket() };
        self.past_bytes += past.bytes();
        self.past.push_back(past);
    }
}

impl Sink for OpenTriage {
    fn begin(&mut self, info: &LaunchInfo) {
        (self.number, self.bytes) = (0, 0);
        match self.next.take() {
            Some(launch) => {
                self.worker.begin(launch.geometry, &info.images);
                self.current = Some((launch, info.clone()));
            }
            None => {
                self.catch_up();
                self.engine.begin(info);
            }
        }
    }

    fn records(&mut self, units: &[Unit]) {
        let bytes = self.bytes + size_of_val(units);
        let checked = self.current.is_some() && bytes <= self.most_kept;
        if checked && self.worker.take(self.number, units).is_ok() {
            self.number += 1;
            self.bytes = bytes;
            return;
        }
        self.doubt();
        self.engine.records(units);
    }

    fn end(&mut self, end: &LaunchEnd) {
        let has_room = self.past_bytes + self.bytes <= self.most_kept;
        let is_clean = |launch: &Launch| end.dropped == 0 && self.worker.checker.ended() == launch.blocks;
        match self.current.take_if(|(launch, _)| has_room && is_clean(launch)) {
            Some((_, info)) => self.passes(info, end),
            None => {
                self.doubt();
                self.engine.end(end);
            }
        }
    }
}
