//! A program under many schedules: what the engine finds in each, united, and the final states.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ptxrace::backend::emu::{Schedule, Scripted};
use ptxrace::backend::{LaunchEnd, LaunchInfo, MemoryOrder, Program as Loaded, RunOptions, Sink};
use ptxrace::diag::Severity;
use ptxrace::engine::{Engine, Report};
use ptxrace::finding::Finding;
use ptxrace::instrument::{SiteId, SiteTable};
use ptxrace::ptx;
use ptxrace::span::SourceFile;

use crate::compile::{Compiled, Placing, Rounds, compile};
use crate::explore::{Explorer, Lottery};
use crate::program::{Program, Question, State};
use crate::random::Random;

/// How to run a program.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Random schedules, or all there are.
    pub schedules: Schedules,
    /// Where threads of a block run.
    pub placing: Placing,
    /// How often a thread takes a jump backwards.
    pub rounds: Rounds,
    /// What reads may see.
    pub memory: MemoryOrder,
}

/// Which schedules to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedules {
    /// All, up to a number of runs.
    All {
        /// Runs after which it is given up.
        most: u64,
    },
    /// So many random ones.
    Random(u64),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schedules: Schedules::All { most: 1 << 20 },
            placing: Placing::Warps,
            rounds: Rounds(1),
            memory: MemoryOrder::Sequential,
        }
    }
}

/// Two instructions that race, each a thread with its number in it, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Race {
    /// The location.
    pub at: usize,
    /// One side.
    pub a: (usize, usize),
    /// The other.
    pub b: (usize, usize),
}

/// What all schedules of a program gave. Executions in which a thread gave up or waits for ever do not count.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    /// Complete executions.
    pub complete: u64,
    /// Executions that did not come to their end.
    pub incomplete: u64,
    /// Runs that were given up because others show the same.
    pub redundant: u64,
    /// There are more.
    pub cut: bool,
    /// Final states.
    pub states: BTreeSet<State>,
    /// Races, and the executions in which each was reported.
    pub races: BTreeMap<Race, u64>,
    /// Executions with at least one race.
    pub racy: u64,
    /// Reports that are not about a race: their rules.
    pub remarks: BTreeMap<&'static str, u64>,
    /// What went wrong, each once. There should be none.
    pub trouble: BTreeSet<String>,
}

impl Explored {
    /// Whether the program's question is answered with yes.
    pub fn holds(&self, program: &Program) -> bool {
        let mut satisfied = self.states.iter().map(|state| program.satisfies(state));
        match program.question {
            Question::Exists => satisfied.any(|yes| yes),
            Question::NotExists => !satisfied.any(|yes| yes),
            Question::Forall => satisfied.all(|yes| yes),
        }
    }

    /// The verdict; none without a complete execution.
    pub fn verdict(&self) -> Option<Verdict> {
        match (self.complete, self.racy) {
            (0, _) => None,
            (_, 0) => Some(Verdict::Drf),
            _ => Some(Verdict::Racy),
        }
    }
}

/// Whether a program has races.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Data-race free.
    Drf,
    /// Some execution has a race.
    Racy,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drf => "DRF",
            Self::Racy => "RACY",
        })
    }
}

impl Race {
    /// As text: what of strength there is, the location, and both sides.
    pub fn show(&self, program: &Program) -> String {
        let side = |side: (usize, usize)| {
            let instruction = program.threads.get(side.0).and_then(|thread| thread.code.get(side.1));
            format!("P{}:{}", side.0, instruction.map_or_else(String::new, |i| program.show(i)))
        };
        let name = program.locations.get(self.at).map_or("?", |(name, _)| name);
        format!("{} {name}: {} / {}", self.kind(program), side(self.a), side(self.b))
    }

    /// `weak-weak`, `weak-strong`, or `scope` when both are strong.
    pub fn kind(&self, program: &Program) -> &'static str {
        let strong = |side: (usize, usize)| {
            let access = program.threads.get(side.0).and_then(|thread| thread.code.get(side.1)?.access());
            access.is_some_and(|access| access.scope.is_some())
        };
        match (strong(self.a), strong(self.b)) {
            (false, false) => "weak-weak",
            (true, true) => "scope",
            _ => "weak-strong",
        }
    }
}

/// Runs a program; an error says why it cannot be.
pub fn explore(program: &Program, options: &Options) -> Result<Explored, String> {
    let compiled = compile(program, options.placing, options.rounds)?;
    let source =
        SourceFile::new(Path::new("litmus.ptx"), compiled.text.as_str()).map_err(|e| e.to_string())?;
    let parsed = ptx::parse(source.text());
    if let Some(error) = parsed.errors.first() {
        return Err(format!(
            "the PTX is wrong: expected {}, found {}\n{}",
            error.expected, error.found, compiled.text
        ));
    }
    let sites = Arc::new(SiteTable::new(&parsed.module));
    let loaded = Loaded { source: &source, module: &parsed.module, sites: &sites };
    let scripted = Scripted::new(loaded, &compiled.plan).map_err(|error| error.to_string())?;
    let mut runner = Runner {
        program,
        compiled: &compiled,
        origins: origins(&source, &sites, &compiled),
        sites: &sites,
        scripted: &scripted,
        memory: options.memory,
        explored: Explored::default(),
    };
    match options.schedules {
        Schedules::Random(count) => {
            for seed in 0..count {
                let mut lottery = Lottery(Random(seed));
                runner.run(&mut lottery, |_| false)?;
            }
        }
        Schedules::All { most } => {
            let mut explorer = Explorer::default();
            for done in 0.. {
                if done == most {
                    runner.explored.cut = true;
                    break;
                }
                runner.run(&mut explorer, Explorer::is_redundant)?;
                if !explorer.advance() {
                    break;
                }
            }
        }
    }
    Ok(runner.explored)
}

/// The thread and instruction of each site.
fn origins(source: &SourceFile, sites: &SiteTable, compiled: &Compiled) -> BTreeMap<SiteId, (usize, usize)> {
    let origin = |site: &ptxrace::instrument::Site| {
        let before = source.text().get(..site.span.start as usize)?;
        let line = before.bytes().filter(|byte| *byte == b'\n').count();
        Some((site.id, compiled.lines.get(line).copied().flatten()?))
    };
    sites.sites().iter().filter_map(origin).collect()
}

struct Runner<'r> {
    program: &'r Program,
    compiled: &'r Compiled,
    origins: BTreeMap<SiteId, (usize, usize)>,
    sites: &'r Arc<SiteTable>,
    scripted: &'r Scripted<'r>,
    memory: MemoryOrder,
    explored: Explored,
}

/// Hands records on, and notes where memory is.
struct Base<'e> {
    engine: &'e mut Engine,
    base: u64,
}

impl Sink for Base<'_> {
    fn begin(&mut self, info: &LaunchInfo) {
        self.base = info.regions.first().map_or(0, |region| region.base);
        self.engine.begin(info);
    }

    fn records(&mut self, units: &[ptxrace::abi::Unit]) {
        self.engine.records(units);
    }

    fn end(&mut self, end: &LaunchEnd) {
        self.engine.end(end);
    }
}

impl Runner<'_> {
    fn run<S: Schedule>(&mut self, schedule: &mut S, redundant: impl Fn(&S) -> bool) -> Result<(), String> {
        let mut engine = Engine::new(Arc::clone(self.sites), &self.compiled.plan);
        let mut sink = Base { engine: &mut engine, base: 0 };
        let ran = self.scripted.run(
            &RunOptions { memory: self.memory, ..RunOptions::default() },
            schedule,
            &mut sink,
        );
        let outcome = ran.map_err(|error| error.to_string())?;
        let base = sink.base;
        if redundant(schedule) {
            self.explored.redundant += 1;
            return Ok(());
        }
        let state = outcome.buffers.first().and_then(|buffer| self.compiled.state(buffer));
        let Some(state) = state else {
            self.explored.incomplete += 1;
            return Ok(());
        };
        self.explored.complete += 1;
        self.explored.states.insert(state);
        let report = engine.finish();
        self.unite(&report, base);
        Ok(())
    }

    fn unite(&mut self, report: &Report, base: u64) {
        if report.degraded != 0 || report.damaged.is_some() || report.lost != 0 {
            let trouble = format!(
                "{} operations without order, {} accesses lost, {:?}",
                report.degraded, report.lost, report.damaged
            );
            self.explored.trouble.insert(trouble);
        }
        let mut racy = false;
        for finding in &report.findings {
            match self.race(finding, base) {
                Some(race) => {
                    racy = true;
                    *self.explored.races.entry(race).or_default() += 1;
                }
                None if finding.severity == Severity::Error => {
                    self.explored.trouble.insert(format!("{} is no race: {finding:?}", finding.rule.id()));
                }
                None => *self.explored.remarks.entry(finding.rule.id()).or_default() += 1,
            }
        }
        self.explored.racy += u64::from(racy);
    }

    /// The race that a finding tells of. One about two accesses that are morally strong is none: a remark on data that nobody
    /// published, or on lockstep.
    fn race(&self, finding: &Finding, base: u64) -> Option<Race> {
        let [first, second] = finding.witnesses.as_slice() else { return None };
        let (a, b) = (*self.origins.get(&first.site)?, *self.origins.get(&second.site)?);
        let access = |side: (usize, usize)| self.program.threads.get(side.0)?.code.get(side.1)?.access();
        let (one, other) = (access(a)?, access(b)?);
        if self.program.morally_strong((a.0, &one), (b.0, &other)) {
            return None;
        }
        let at = self.compiled.location(first.address.wrapping_sub(base))?;
        Some(Race { at, a: a.min(b), b: a.max(b) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executions and final states of a program of these rows.
    fn count(rows: &str, heads: usize) -> (u64, usize) {
        let heads: Vec<String> = (0..heads).map(|n| format!("P{n}@cta {n},gpu 0")).collect();
        let text = format!("PTX t\n{{ x=0; y=0; }}\n{} ;\n{rows}\nexists (x == 0)", heads.join(" | "));
        let program = crate::parse::parse(&text).expect("a program");
        let explored = explore(&program, &Options::default()).expect("it runs");
        (explored.complete, explored.states.len())
    }

    #[test]
    fn each_order_of_conflicting_steps_is_run_once() {
        // A write before, between and after two reads, whose own order says nothing.
        assert_eq!(count("st.relaxed.gpu x, 1 | ld.relaxed.gpu r0, x | ld.relaxed.gpu r0, x ;", 3), (4, 4));
        assert_eq!(count("st.relaxed.gpu x, 1 | st.relaxed.gpu x, 2 | st.relaxed.gpu x, 3 ;", 3), (6, 3));
        assert_eq!(count("st.relaxed.gpu x, 1 | st.relaxed.gpu y, 1 ;", 2), (1, 1));
        let buffering =
            "st.relaxed.gpu x, 1 | st.relaxed.gpu y, 1 ;\nld.relaxed.gpu r0, y | ld.relaxed.gpu r0, x ;";
        assert_eq!(count(buffering, 2), (3, 3));
    }
}
