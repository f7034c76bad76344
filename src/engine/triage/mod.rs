//! What is proven clean before the engine sees it.
//!
//! Most launches have weak accesses, atomics and barriers of whole blocks alone, and nobody touches what another has written
//! without a barrier between. Telling that takes no clocks, and blocks can be looked at by several threads: `Triage` does so,
//! and keeps what it is given. If all of a launch is clean, the engine never sees it. As soon as there is a doubt, the engine gets
//! everything that was kept and all that follows, so that a report is the same with triage and without.
//!
//! Triage decides no race. It knows of a launch that nothing in it can be found by the engine, or it doubts.
//!
//! | file | |
//! | --- | --- |
//! | `checker` | records, one after the other |
//! | `block` | warps, barriers and exits |
//! | `open` | the same where launches are not known beforehand |
//! | `shadow` | lines by address; what blocks of different workers have touched |
//! | `line`, `cell` | who has touched a line, and a word |
//!
//! What is a doubt: strong accesses but wide relaxed atomics, atomics of part of a word, asynchronous copies, mbarriers,
//! clusters, matrices; textures and surfaces that are not known, and surface reductions; barriers with a thread count or another
//! number than 0, or with part of a warp; threads that exit after accesses, where others go on to a barrier; a store whose lanes
//! meet in a word; a launch that another one may overlap; records that were dropped or are damaged; and records of a block that
//! come after those of a later interval.

mod block;
mod cell;
mod checker;
mod line;
mod open;
mod shadow;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use rayon::prelude::*;

use self::checker::{Checker, Roles};
pub use self::open::OpenTriage;
use super::kept::Kept;
use super::{Budget, Engine, Report};
use crate::abi::Unit;
use crate::backend::{self, Images, LaunchEnd, LaunchInfo, Plan, Ring, Sink};
use crate::event::Geometry;
use crate::instrument::SiteTable;

/// Fewer units than this are not worth threads.
const FEW: usize = 1 << 14;
/// So many rings are one worker's: blocks that follow each other touch the same pages.
const NEAR: usize = 8;
/// What a worker has at hand before the first records come: units, and bytes that kernels touch. Asked for while a launch is looked
/// at, by all threads at once, memory comes slowly: that took most of the time of small launches.
const WARM_UNITS: usize = 1 << 16;
const WARM_TOUCHED: usize = 8 << 20;
/// With less memory than this, nothing is kept at hand.
const AMPLE: u64 = 4 << 30;
/// More threads bring nothing: there are about so many rings for each.
const MOST_THREADS: usize = 32;

/// Why a launch is the engine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    /// Records are not what they should be.
    Damage,
    /// An instruction that is not understood.
    Instruction,
    /// A barrier that is none of all.
    Barrier,
    /// Threads exited after accesses, and others went on to a barrier.
    Exit,
    /// Lanes of a warp share a word.
    Lanes,
    /// Threads of a block share a word.
    Threads,
    /// Blocks share a word.
    Blocks,
    /// What was written is read by the read-only path.
    ReadOnly,
    /// A record comes after those of a later interval.
    Late,
    /// There is too much to remember.
    Memory,
}

/// What has to be known of a launch.
#[derive(Clone, Copy, Debug)]
struct Launch {
    geometry: Geometry,
    blocks: u64,
}

impl Launch {
    /// `None` for a launch that is the engine's anyhow.
    fn of(launch: &backend::Launch) -> Option<Self> {
        let geometry = Geometry::of(launch);
        let fits = !geometry.has_clusters() && geometry.threads > 0;
        fits.then(|| Self { geometry, blocks: launch.blocks() })
    }
}

/// Who checks some blocks' records and keeps them.
#[derive(Debug)]
struct Worker {
    checker: Checker,
    kept: Kept,
}

impl Worker {
    /// Of so many, which together have so much memory.
    fn new(roles: &Arc<Roles>, memory: Budget, count: usize) -> Self {
        Self { checker: Checker::new(Arc::clone(roles), memory.lines(count)), kept: Kept::default() }
    }

    /// One of so many, which has memory at hand that the first records need.
    fn warm(roles: &Arc<Roles>, memory: Budget, count: usize) -> Self {
        let mut worker = Self::new(roles, memory, count);
        worker.checker.warm(WARM_TOUCHED);
        worker.kept.warm(WARM_UNITS);
        worker
    }

    fn begin(&mut self, geometry: Geometry, images: &Images) {
        self.checker.begin(geometry, images);
        self.kept.clear();
    }

    /// Takes units as those of this number. What is doubtful is not kept.
    fn take(&mut self, number: u64, units: &[Unit]) -> Result<(), Doubt> {
        self.checker.feed(units)?;
        self.kept.keep(number, units);
        Ok(())
    }
}

/// An engine behind a triage.
#[derive(Debug)]
pub struct Triage {
    engine: Engine,
    roles: Arc<Roles>,
    /// Those of the plan that the engine need not see, if they are clean.
    launches: Vec<Option<Launch>>,
    /// The launch at hand, while there is no doubt.
    current: Option<Launch>,
    /// Where its tickets come from.
    counter: u32,
    workers: Vec<Worker>,
    /// Others, which are being made.
    warming: Option<Receiver<Vec<Worker>>>,
    /// Textures and surfaces of the launch at hand.
    images: Images,
    threads: usize,
    memory: Budget,
    /// How much has come of the launch at hand: bytes, and how often some.
    bytes: usize,
    number: u64,
    clean: u32,
}

impl Triage {
    /// A triage and an engine for runs of this plan.
    pub fn new(sites: Arc<SiteTable>, plan: &Plan) -> Self {
        let mut roles = Roles::default();
        roles.add(&sites);
        let roles = Arc::new(roles);
        let engine = Engine::new(sites, plan);
        let launches = (0..)
            .zip(&plan.launches)
            .map(|(index, launch)| Launch::of(launch).filter(|_| engine.stands_alone(index)));
        let (threads, memory) = (rayon::current_num_threads().min(MOST_THREADS), Budget::UNLIMITED);
        Self {
            launches: launches.collect(),
            workers: vec![Worker::new(&roles, memory, threads)],
            warming: None,
            images: Images::default(),
            engine,
            roles,
            current: None,
            counter: 0,
            threads,
            memory,
            bytes: 0,
            number: 0,
            clean: 0,
        }
    }

    /// The same with so much memory. A launch that takes more than there is for it here is the engine's.
    #[must_use]
    pub fn within(mut self, memory: Budget) -> Self {
        self.memory = memory;
        self.workers = vec![Worker::new(&self.roles, memory, self.threads)];
        self.engine.set_memory(memory);
        self
    }

    /// Launches that the engine did not see, so far.
    pub fn clean(&self) -> u32 {
        self.clean
    }

    /// Ends the analysis.
    pub fn finish(self) -> Report {
        self.engine.finish()
    }

    /// There is a doubt: the engine gets what was kept of what came before this number.
    fn doubt(&mut self) {
        self.current = None;
        self.engine.adopt(self.workers.iter_mut().map(|worker| &mut worker.kept), self.number);
        self.workers.iter_mut().for_each(|worker| worker.checker.shrink());
    }

    /// The launch at hand, if there is no doubt and so much more can be kept.
    fn checked(&mut self, units: usize) -> Option<Launch> {
        let launch = self.current?;
        if self.bytes + units * size_of::<Unit>() <= self.memory.kept() {
            return Some(launch);
        }
        self.doubt();
        None
    }

    /// Whether nothing can be found in the launch that has ended.
    fn is_clean(&self, launch: Launch, end: &LaunchEnd) -> bool {
        let ended: u64 = self.workers.iter().map(|worker| worker.checker.ended()).sum();
        end.dropped == 0 && ended == launch.blocks && self.workers_agree()
    }

    /// Has each worker check what came by its rings; tells whether there is no doubt.
    fn check(&mut self, launch: Launch, rings: &[Ring<'_>], units: usize) -> bool {
        if let Some(workers) = self.warming.take().and_then(|warming| warming.recv().ok()) {
            // One that has records stays.
            self.workers.truncate(usize::from(self.number > 0));
            let first = self.workers.len();
            self.workers.extend(workers.into_iter().skip(first));
            let fresh = self.workers.iter_mut().skip(first);
            fresh.for_each(|worker| worker.begin(launch.geometry, &self.images));
        }
        while self.workers.len() < self.threads {
            let mut worker = Worker::new(&self.roles, self.memory, self.threads);
            worker.begin(launch.geometry, &self.images);
            self.workers.push(worker);
        }
        let (first, count) = (self.number, self.workers.len());
        let of = |at: usize| {
            (first..).zip(rings).filter(move |(_, ring)| ring.number as usize / NEAR % count == at)
        };
        let work = |at: usize, worker: &mut Worker| {
            of(at).all(|(number, ring)| worker.take(number, ring.units).is_ok())
        };
        if units < FEW || count == 1 {
            return self.workers.iter_mut().enumerate().all(|(at, worker)| work(at, worker));
        }
        self.workers.par_iter_mut().enumerate().all(|(at, worker)| work(at, worker))
    }

    /// Whether no block has written what a block of another worker touched.
    fn workers_agree(&self) -> bool {
        let busy: Vec<_> = self.workers.iter().filter(|worker| worker.checker.ended() > 0).collect();
        if busy.len() < 2 {
            return true;
        }
        let globals: Vec<_> = busy.iter().map(|worker| worker.checker.global()).collect();
        let parts = self.threads as u64;
        let part = |part| {
            let mut rest = globals.as_slice();
            while let Some((first, others)) = rest.split_first() {
                if !first.goes_with(others, part, parts) {
                    return false;
                }
                rest = others;
            }
            true
        };
        (0..parts).into_par_iter().all(part)
    }
}

impl Sink for Triage {
    fn expect_rings(&mut self) {
        if self.workers.len() > 1 || self.warming.is_some() || self.memory.bytes() < AMPLE {
            return;
        }
        let (made, warming) = channel();
        self.warming = Some(warming);
        let (roles, memory, count) = (Arc::clone(&self.roles), self.memory, self.threads);
        rayon::spawn(move || {
            let workers = (0..count).into_par_iter().map(|_| Worker::warm(&roles, memory, count));
            // Whoever waits for them may be gone.
            let _ = made.send(workers.collect());
        });
    }

    fn begin(&mut self, info: &LaunchInfo) {
        self.engine.begin(info);
        (self.bytes, self.number, self.counter) = (0, 0, info.counter);
        self.current = self.launches.get(info.index as usize).copied().flatten();
        if let Some(launch) = self.current {
            self.images = info.images.clone();
            let images = &self.images;
            self.workers.iter_mut().for_each(|worker| worker.begin(launch.geometry, images));
        }
    }

    fn records(&mut self, units: &[Unit]) {
        let checked = self.checked(units.len()).is_some();
        let number = self.number;
        if checked && self.workers.first_mut().is_some_and(|worker| worker.take(number, units).is_ok()) {
            self.number += 1;
            self.bytes += size_of_val(units);
            return;
        }
        if self.current.is_some() {
            self.doubt();
        }
        self.engine.records(units);
    }

    fn rings(&mut self, rings: &[Ring<'_>]) {
        let units: usize = rings.iter().map(|ring| ring.units.len()).sum();
        let checked = self.checked(units);
        if checked.is_some_and(|launch| self.check(launch, rings, units)) {
            self.number += rings.len() as u64;
            self.bytes += units * size_of::<Unit>();
            return;
        }
        if self.current.is_some() {
            self.doubt();
        }
        rings.iter().for_each(|ring| self.engine.records(ring.units));
    }

    fn end(&mut self, end: &LaunchEnd) {
        if let Some(launch) = self.current {
            if self.is_clean(launch, end) {
                self.current = None;
                self.clean += 1;
                for worker in &self.workers {
                    self.engine.records(worker.checker.variables());
                }
                let tickets = self.workers.iter().map(|worker| worker.checker.ticket());
                self.engine.passed(self.counter, tickets.max().unwrap_or(0));
            } else {
                self.doubt();
            }
        }
        self.engine.end(end);
    }
}
