//! Running a plan under one schedule or many, and uniting what they found.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use dashmap::DashMap;
use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;

use super::incomplete::Why;
use super::{Detector, Parts};
use crate::abi::Unit;
use crate::backend::{
    Backend, BackendError, LaunchEnd, LaunchInfo, Outcome, Phase, Plan, Program, Ring, RunOptions, Sink,
};
use crate::diag::Severity;
use crate::engine::Analysis;
use crate::explain::{Memory, Sources};
use crate::finding::{Finding, Rule};
use crate::instrument::{SiteId, SiteTable};
use crate::report::{Incomplete, Progress, Reason};
use crate::trace::{Tape, Writer};

/// What one schedule gave.
pub(super) struct One {
    pub(super) findings: Vec<Finding>,
    pub(super) memory: Arc<Vec<Memory>>,
    /// Records and drops of each launch.
    pub(super) counts: Vec<(u64, u64)>,
    pub(super) incomplete: Vec<Incomplete>,
    pub(super) buffers: Vec<Vec<u8>>,
    pub(super) phases: Vec<Phase>,
}

/// A finding, where it was found first, and how often.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) finding: Finding,
    pub(super) memory: Arc<Vec<Memory>>,
    pub(super) seed: u64,
    pub(super) schedules: u64,
}

/// What all schedules gave.
#[derive(Default)]
pub(super) struct All {
    pub(super) found: Vec<Found>,
    pub(super) counts: Vec<(u64, u64)>,
    pub(super) incomplete: Vec<Incomplete>,
    /// Of the first schedule.
    pub(super) buffers: Vec<Vec<u8>>,
    /// How many there were.
    pub(super) schedules: u64,
    /// What took how long, if there was one.
    pub(super) phases: Vec<Phase>,
}

impl All {
    /// One schedule as all there are.
    pub(super) fn alone(one: One, seed: u64) -> Self {
        let memory = one.memory;
        let found = |finding| Found { finding, memory: memory.clone(), seed, schedules: 1 };
        Self {
            found: one.findings.into_iter().map(found).collect(),
            counts: one.counts,
            incomplete: distinct(one.incomplete),
            buffers: one.buffers,
            schedules: 1,
            phases: one.phases,
        }
    }
}

/// What is the same for all schedules.
#[derive(Clone, Copy)]
pub(super) struct Job<'j> {
    pub(super) program: Program<'j>,
    pub(super) sites: &'j Arc<SiteTable>,
    pub(super) plan: &'j Plan,
    pub(super) sources: &'j Sources,
    pub(super) parts: &'j dyn Parts,
    pub(super) progress: &'j dyn Progress,
    pub(super) analysis: Analysis,
    /// Where records go besides.
    pub(super) writer: Option<&'j Writer>,
}

/// Which schedules are run, by what.
pub(super) struct Schedules<'s> {
    pub(super) count: u64,
    /// The seed of each, by its number.
    pub(super) seed: &'s (dyn Fn(u64) -> u64 + Sync),
    /// Every worker has a backend of its own.
    pub(super) open: &'s (dyn Fn() -> Result<Box<dyn Backend + 's>, BackendError> + Sync),
}

impl<'j> Job<'j> {
    /// Runs one schedule.
    pub(super) fn one(&self, backend: &mut dyn Backend, options: &RunOptions) -> Result<One, BackendError> {
        let mut detector = self.parts.detector(self.sites, self.plan, self.analysis);
        let mut tap = Tap {
            inner: &mut *detector,
            progress: self.progress,
            tape: self.writer.map(|writer| writer.schedule(options.seed)),
            infos: Vec::new(),
            ends: Vec::new(),
        };
        let ran = backend.run(self.program, self.plan, options, &mut tap);
        let Tap { infos, ends, tape, .. } = tap;
        if let Some(tape) = tape {
            tape.done(&ran);
        }
        let why = Why { program: self.program, plan: self.plan, sources: self.sources };
        let (outcome, failure) = match ran {
            Ok(outcome) => (outcome, None),
            // What was found before a later launch failed stays found.
            Err(error) if !infos.is_empty() => (Outcome::default(), why.backend(&error)),
            Err(error) => return Err(error),
        };
        let observed = detector.finish();
        let mut one = self.gather(&why, &infos, &ends, observed, outcome);
        one.incomplete.extend(failure);
        Ok(one)
    }

    fn gather(
        &self,
        why: &Why<'_>,
        infos: &[LaunchInfo],
        ends: &[(u32, LaunchEnd)],
        observed: super::Observed,
        outcome: Outcome,
    ) -> One {
        let launches = self.plan.launches.len();
        let mut memory = vec![Memory::default(); launches];
        let mut counts = vec![(0, 0); launches];
        for info in infos {
            if let Some(memory) = memory.get_mut(info.index as usize) {
                memory.global.clone_from(&info.regions);
            }
        }
        for (memory, shared) in memory.iter_mut().zip(observed.shared) {
            memory.shared = shared;
        }
        let mut incomplete = Vec::new();
        for (launch, end) in ends {
            if let Some(count) = counts.get_mut(*launch as usize) {
                count.0 += end.records;
                count.1 += end.dropped;
            }
            incomplete.extend(why.end(*launch, end, outcome.stop.as_ref()));
        }
        incomplete.extend(outcome.stop.iter().map(|stop| why.stop(stop)));
        incomplete.extend(observed.unresolved.iter().filter_map(|(site, what)| why.unresolved(*site, what)));
        incomplete.extend(observed.degraded.iter().map(|detail| why.degraded(detail)));
        incomplete.extend((observed.unchecked > 0).then(|| why.unchecked(observed.unchecked)));
        One {
            findings: observed.findings,
            memory: Arc::new(memory),
            counts,
            incomplete,
            buffers: outcome.buffers,
            phases: outcome.phases,
        }
    }

    /// Runs schedules on as many threads as there are processors. The first one may have been run already.
    pub(super) fn many(
        &self,
        options: &RunOptions,
        schedules: &Schedules<'_>,
        first: Option<One>,
    ) -> Result<All, BackendError> {
        let united = United::default();
        let next = AtomicU64::new(u64::from(first.is_some()));
        if let Some(one) = first {
            united.add(0, (schedules.seed)(0), one);
            self.progress.schedule();
        }
        let failed = Mutex::new(None::<BackendError>);
        let workers = thread::available_parallelism().map_or(1, |n| n.get() as u64).min(schedules.count);
        let memory = self.analysis.memory.shared_by(workers);
        let job = Job { analysis: Analysis { memory, ..self.analysis }, ..*self };
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    let work = || {
                        let mut backend = (schedules.open)()?;
                        loop {
                            let index = next.fetch_add(1, Ordering::Relaxed);
                            if index >= schedules.count || failed.lock().is_some() {
                                return Ok(());
                            }
                            let seed = (schedules.seed)(index);
                            let one = job.one(&mut *backend, &RunOptions { seed, ..*options })?;
                            united.add(index, seed, one);
                            self.progress.schedule();
                        }
                    };
                    if let Err(error) = work() {
                        failed.lock().get_or_insert(error);
                    }
                });
            }
        });
        match failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(united.finish(schedules.count)),
        }
    }
}

type Key = (Rule, Severity, Vec<SiteId>);

/// Findings of many schedules by rule, severity and sites, which is how the engine groups those of one.
#[derive(Default)]
struct United {
    found: DashMap<Key, Found, FxBuildHasher>,
    rest: Mutex<Rest>,
}

#[derive(Default)]
struct Rest {
    counts: Vec<(u64, u64)>,
    incomplete: Vec<(u64, Incomplete)>,
    buffers: Option<(u64, Vec<Vec<u8>>)>,
}

impl United {
    fn add(&self, index: u64, seed: u64, one: One) {
        let mut seen = Vec::new();
        for finding in one.findings {
            let mut sites: Vec<_> = finding.witnesses.iter().map(|witness| witness.site).collect();
            sites.sort_unstable();
            let key = (finding.rule, finding.severity, sites);
            let again = seen.contains(&key);
            let new = Found { finding, memory: one.memory.clone(), seed, schedules: 1 };
            match self.found.entry(key.clone()) {
                dashmap::Entry::Vacant(slot) => {
                    slot.insert(new);
                }
                dashmap::Entry::Occupied(mut slot) => {
                    let schedules = slot.get().schedules + u64::from(!again);
                    if rank(&new) < rank(slot.get()) {
                        slot.insert(new);
                    }
                    slot.get_mut().schedules = schedules;
                }
            }
            seen.push(key);
        }
        let mut rest = self.rest.lock();
        rest.counts.resize(one.counts.len(), (0, 0));
        for (sum, count) in rest.counts.iter_mut().zip(&one.counts) {
            *sum = (sum.0 + count.0, sum.1 + count.1);
        }
        rest.incomplete.extend(one.incomplete.into_iter().map(|incomplete| (index, incomplete)));
        if rest.buffers.as_ref().is_none_or(|(first, _)| index < *first) {
            rest.buffers = Some((index, one.buffers));
        }
    }

    fn finish(self, schedules: u64) -> All {
        let Rest { counts, mut incomplete, buffers } = self.rest.into_inner();
        incomplete.sort_by_key(|(index, _)| *index);
        let mut found: Vec<_> = self.found.into_iter().collect();
        // The map has no order of its own.
        found.sort_by(|a, b| a.0.cmp(&b.0));
        All {
            found: found.into_iter().map(|(_, found)| found).collect(),
            counts,
            incomplete: distinct(incomplete.into_iter().map(|(_, incomplete)| incomplete).collect()),
            buffers: buffers.map(|(_, buffers)| buffers).unwrap_or_default(),
            schedules,
            phases: Vec::new(),
        }
    }
}

/// What is shown of several: the widest distance, then the first seed; so its replay shows just that.
fn rank(found: &Found) -> impl Ord {
    (std::cmp::Reverse(found.finding.relation), found.seed)
}

/// Each reason once. Positions of a stopped run differ between schedules and say nothing new.
pub(super) fn distinct(incomplete: Vec<Incomplete>) -> Vec<Incomplete> {
    let mut kept: Vec<Incomplete> = Vec::new();
    for new in incomplete {
        let stops = |reason| matches!(reason, Reason::Timeout | Reason::Deadlock | Reason::DroppedRecords);
        if !kept.iter().any(|old| old.reason == new.reason && (stops(new.reason) || old.detail == new.detail))
        {
            kept.push(new);
        }
    }
    kept
}

/// Hands everything on, and keeps what the session needs.
struct Tap<'t> {
    inner: &'t mut dyn Detector,
    progress: &'t dyn Progress,
    tape: Option<Tape<'t>>,
    infos: Vec<LaunchInfo>,
    ends: Vec<(u32, LaunchEnd)>,
}

impl Sink for Tap<'_> {
    fn expect_rings(&mut self) {
        self.inner.expect_rings();
    }

    fn begin(&mut self, info: &LaunchInfo) {
        self.infos.push(info.clone());
        if let Some(tape) = &mut self.tape {
            tape.begin(info);
        }
        self.inner.begin(info);
    }

    fn records(&mut self, units: &[Unit]) {
        if let Some(tape) = &mut self.tape {
            tape.records(units);
        }
        self.inner.records(units);
        self.progress.checked(std::mem::size_of_val(units) as u64);
    }

    fn rings(&mut self, rings: &[Ring<'_>]) {
        if let Some(tape) = &mut self.tape {
            rings.iter().for_each(|ring| tape.records(ring.units));
        }
        self.inner.rings(rings);
        let bytes: usize = rings.iter().map(|ring| size_of_val(ring.units)).sum();
        self.progress.checked(bytes as u64);
    }

    fn end(&mut self, end: &LaunchEnd) {
        let launch = self.infos.last().map_or(0, |info| info.index);
        self.ends.push((launch, end.clone()));
        if let Some(tape) = &mut self.tape {
            tape.end(end);
        }
        self.inner.end(end);
    }
}
