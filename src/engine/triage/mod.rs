//! What is proven clean before the engine sees it.
//!
//! Most launches have weak accesses, atomics and barriers of whole blocks alone, and nobody touches what another has written
//! without a barrier between. Telling that takes no clocks, and blocks can be looked at by several threads: `Triage` does so,
//! and keeps what it is given. If all of a launch is clean, the engine never sees it. As soon as there is a doubt, the engine gets
//! everything that was kept and all that follows, in the order in which it came, so that a report is the same with triage and without.
//!
//! Triage decides no race. It knows of a launch that nothing in it can be found by the engine, or it doubts.
//!
//! | file | |
//! | --- | --- |
//! | `checker` | records, one after the other |
//! | `block` | warps, barriers and exits |
//! | `shadow` | lines by address; what blocks of different workers have touched |
//! | `line`, `cell` | who has touched a line, and a word |
//!
//! What is a doubt: strong accesses but wide relaxed atomics, atomics of part of a word, asynchronous copies, mbarriers,
//! clusters, matrices; barriers with a thread count or another number than 0, or with part of a warp; threads that exit after accesses,
//! where others go on to a barrier; a store whose lanes meet in a word; a launch that another one may overlap; records that
//! were dropped or are damaged; and records of a block that come after those of a later interval.

mod block;
mod cell;
mod checker;
mod line;
mod shadow;

use std::sync::Arc;
use std::thread;

use self::checker::{Checker, Role};
use super::{Engine, Report};
use crate::abi::Unit;
use crate::backend::{LaunchEnd, LaunchInfo, Plan, Ring, Sink};
use crate::event::Geometry;
use crate::instrument::SiteTable;

/// Bytes of records that are kept for the engine at most. A launch with more is the engine's.
const MOST_KEPT: usize = 4 << 30;
/// Records that came one by one are kept together up to so many units.
const PIECE: usize = 1 << 16;
/// Fewer units than this are not worth threads.
const FEW: usize = 1 << 14;
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

/// An engine behind a triage.
#[derive(Debug)]
pub struct Triage {
    engine: Engine,
    roles: Arc<[Role]>,
    /// Those of the plan that the engine need not see, if they are clean.
    launches: Vec<Option<Launch>>,
    /// The launch at hand, while there is no doubt.
    current: Option<Launch>,
    workers: Vec<Checker>,
    threads: usize,
    kept: Vec<Vec<Unit>>,
    kept_bytes: usize,
    clean: u32,
}

impl Triage {
    /// A triage and an engine for runs of this plan.
    pub fn new(sites: Arc<SiteTable>, plan: &Plan) -> Self {
        let roles: Arc<[Role]> = sites.sites().iter().map(Role::of).collect();
        let engine = Engine::new(sites, plan);
        let launches = (0..).zip(&plan.launches).map(|(index, launch)| {
            let geometry = Geometry::of(launch);
            let fits = engine.stands_alone(index) && !geometry.has_clusters() && geometry.threads > 0;
            fits.then(|| Launch { geometry, blocks: launch.blocks() })
        });
        Self {
            launches: launches.collect(),
            workers: vec![Checker::new(Arc::clone(&roles))],
            engine,
            roles,
            current: None,
            threads: thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS)),
            kept: Vec::new(),
            kept_bytes: 0,
            clean: 0,
        }
    }

    /// Launches that the engine did not see, so far.
    pub fn clean(&self) -> u32 {
        self.clean
    }

    /// Ends the analysis.
    pub fn finish(self) -> Report {
        self.engine.finish()
    }

    /// There is a doubt: the engine gets what was kept.
    fn doubt(&mut self) {
        self.current = None;
        self.kept_bytes = 0;
        for units in std::mem::take(&mut self.kept) {
            self.engine.records(&units);
        }
    }

    fn keep(&mut self, units: &[Unit]) {
        self.kept_bytes += size_of_val(units);
        match self.kept.last_mut() {
            Some(last) if last.len() + units.len() <= PIECE => last.extend_from_slice(units),
            _ => {
                let mut piece = Vec::with_capacity(PIECE.max(units.len()));
                piece.extend_from_slice(units);
                self.kept.push(piece);
            }
        }
    }

    /// Whether nothing can be found in the launch that has ended.
    fn is_clean(&self, launch: Launch, end: &LaunchEnd) -> bool {
        let ended: u64 = self.workers.iter().map(Checker::ended).sum();
        end.dropped == 0 && ended == launch.blocks && self.workers_agree()
    }

    /// Whether no block has written what a block of another worker touched.
    fn workers_agree(&self) -> bool {
        let busy: Vec<_> = self.workers.iter().filter(|worker| worker.ended() > 0).collect();
        if busy.len() < 2 {
            return true;
        }
        let globals: Vec<_> = busy.iter().map(|worker| worker.global()).collect();
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
        thread::scope(|scope| {
            let parts: Vec<_> = (0..parts).map(|at| scope.spawn(move || part(at))).collect();
            parts.into_iter().all(|part| part.join().unwrap_or(false))
        })
    }
}

impl Sink for Triage {
    fn begin(&mut self, info: &LaunchInfo) {
        self.engine.begin(info);
        self.kept.clear();
        self.kept_bytes = 0;
        self.current = self.launches.get(info.index as usize).copied().flatten();
        if let Some(launch) = self.current {
            self.workers.iter_mut().for_each(|worker| worker.begin(launch.geometry));
        }
    }

    fn records(&mut self, units: &[Unit]) {
        let fits = self.kept_bytes + size_of_val(units) <= MOST_KEPT;
        let clean = self.current.is_some()
            && fits
            && self.workers.first_mut().is_some_and(|worker| worker.feed(units).is_ok());
        if clean {
            self.keep(units);
            return;
        }
        if self.current.is_some() {
            self.doubt();
        }
        self.engine.records(units);
    }

    fn rings(&mut self, rings: &[Ring<'_>]) {
        let units: usize = rings.iter().map(|ring| ring.units.len()).sum();
        let fits = self.kept_bytes + units * size_of::<Unit>() <= MOST_KEPT;
        let Some(launch) = self.current.filter(|_| fits) else {
            if self.current.is_some() {
                self.doubt();
            }
            rings.iter().for_each(|ring| self.engine.records(ring.units));
            return;
        };
        while self.workers.len() < self.threads {
            let mut worker = Checker::new(Arc::clone(&self.roles));
            worker.begin(launch.geometry);
            self.workers.push(worker);
        }
        let count = self.workers.len();
        let mine =
            |worker: usize| (0..).zip(rings).filter(move |(_, ring)| ring.number as usize % count == worker);
        let work = |worker: usize, checker: &mut Checker| {
            let mut kept = Vec::new();
            for (at, ring) in mine(worker) {
                checker.feed(ring.units).ok()?;
                kept.push((at, ring.units.to_vec()));
            }
            Some(kept)
        };
        let workers = self.workers.iter_mut().enumerate();
        let kept: Option<Vec<Vec<(usize, Vec<Unit>)>>> = if units < FEW {
            workers.map(|(at, worker)| work(at, worker)).collect()
        } else {
            thread::scope(|scope| {
                let work = &work;
                let with_work = workers.filter(|(at, _)| mine(*at).next().is_some());
                let threads: Vec<_> =
                    with_work.map(|(at, worker)| scope.spawn(move || work(at, worker))).collect();
                threads.into_iter().map(|thread| thread.join().ok().flatten()).collect()
            })
        };
        let Some(kept) = kept else {
            self.doubt();
            rings.iter().for_each(|ring| self.engine.records(ring.units));
            return;
        };
        self.kept_bytes += units * size_of::<Unit>();
        let mut kept: Vec<_> = kept.into_iter().flatten().collect();
        kept.sort_by_key(|(at, _)| *at);
        self.kept.extend(kept.into_iter().map(|(_, units)| units));
    }

    fn end(&mut self, end: &LaunchEnd) {
        if let Some(launch) = self.current {
            if self.is_clean(launch, end) {
                self.current = None;
                self.clean += 1;
                self.kept.clear();
                for worker in &self.workers {
                    self.engine.records(worker.variables());
                }
                self.engine.passed(self.workers.iter().map(Checker::ticket).max().unwrap_or(0));
            } else {
                self.doubt();
            }
        }
        self.engine.end(end);
    }
}
