//! Kernels of `benches/kernels` and the traces they leave.

#![allow(dead_code, reason = "each bench uses a part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ptxrace::abi::{Unit, decode};
use ptxrace::backend::emu::Emulator;
use ptxrace::backend::{Backend, LaunchEnd, LaunchInfo, Plan, Program, RunOptions, Sink};
use ptxrace::engine::{Engine, Triage};
use ptxrace::instrument::SiteTable;
use ptxrace::ptx::ast::Module;
use ptxrace::session::launch::{LaunchRequest, resolve};
use ptxrace::session::{parse, read};
use ptxrace::span::SourceFile;

/// Keeps records, or only counts their bytes.
#[derive(Default)]
pub(crate) struct Kept {
    keep: bool,
    launches: Vec<(LaunchInfo, Vec<Unit>, LaunchEnd)>,
    pub(crate) units: usize,
}

impl Sink for Kept {
    fn begin(&mut self, info: &LaunchInfo) {
        self.launches.push((info.clone(), Vec::new(), LaunchEnd::default()));
    }

    fn records(&mut self, units: &[Unit]) {
        self.units += units.len();
        if self.keep {
            self.launches.last_mut().expect("a launch has begun").1.extend_from_slice(units);
        }
    }

    fn end(&mut self, end: &LaunchEnd) {
        self.launches.last_mut().expect("a launch has begun").2 = end.clone();
    }
}

/// One kernel with its launches.
pub(crate) struct Kernel<'k> {
    source: &'k SourceFile,
    module: &'k Module<'k>,
    plan: &'k Plan,
}

/// A launch's records in pieces, as a drained ring comes.
pub(crate) type Pieces<'t> = (&'t LaunchInfo, Vec<&'t [Unit]>, &'t LaunchEnd);

fn pieces(mut rest: &[Unit]) -> Vec<&[Unit]> {
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let mut at = 0;
        while at < rest.len().min(4096) {
            at += decode(&rest[at..]).expect("a record").map_or(rest.len() - at, |r| r.units().len());
        }
        let (piece, after) = rest.split_at(at);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

impl Kept {
    pub(crate) fn trace(&self) -> Vec<Pieces<'_>> {
        self.launches.iter().map(|(info, units, end)| (info, pieces(units), end)).collect()
    }

    pub(crate) fn records(&self) -> u64 {
        self.launches.iter().map(|(_, _, end)| end.records).sum()
    }
}

impl Kernel<'_> {
    pub(crate) fn run(&self, mut backend: Emulator, sites: &SiteTable, keep: bool) -> Kept {
        let mut kept = Kept { keep, ..Kept::default() };
        let program = Program { source: self.source, module: self.module, sites };
        let outcome = backend.run(program, self.plan, &RunOptions::default(), &mut kept).expect("it runs");
        assert!(outcome.stop.is_none(), "{:?}", outcome.stop);
        kept
    }

    /// Gives a trace to an engine; tells how many findings it has.
    #[inline(never)] // so that a profiler can tell it from what makes the trace
    pub(crate) fn judge(&self, sites: &Arc<SiteTable>, trace: &[Pieces<'_>]) -> usize {
        let mut engine = Engine::new(Arc::clone(sites), self.plan);
        for (info, pieces, end) in trace {
            engine.begin(info);
            pieces.iter().for_each(|piece| engine.records(piece));
            engine.end(end);
        }
        engine.finish().findings.len()
    }
}

impl Kernel<'_> {
    /// Gives a trace to a triage; tells whether all of it is clean.
    #[inline(never)] // as above
    pub(crate) fn triage(&self, sites: &Arc<SiteTable>, trace: &[Pieces<'_>]) -> bool {
        let mut triage = Triage::new(Arc::clone(sites), self.plan);
        for (info, pieces, end) in trace {
            triage.begin(info);
            pieces.iter().for_each(|piece| triage.records(piece));
            triage.end(end);
        }
        triage.clean() as usize == trace.len()
    }
}

impl Kernel<'_> {
    /// Runs it with what judges its records; tells how many instructions its lanes executed.
    pub(crate) fn detect(&self, sites: &Arc<SiteTable>) -> u64 {
        let mut triage = Triage::new(Arc::clone(sites), self.plan);
        let program = Program { source: self.source, module: self.module, sites };
        let outcome = Emulator::new().run(program, self.plan, &RunOptions::default(), &mut triage);
        assert!(triage.finish().findings.is_empty(), "a race");
        outcome.expect("it runs").executed
    }
}

/// Hands over each kernel, by name, and the table of its sites.
pub(crate) fn for_each_kernel(mut f: impl FnMut(&str, &Kernel<'_>, &Arc<SiteTable>)) {
    for path in kernels() {
        let source = read(&path).expect("a module");
        let module = parse(&source).expect("a module");
        let plan = resolve(&source, &module, &LaunchRequest::default()).expect("a launch").plan;
        let kernel = Kernel { source: &source, module: &module, plan: &plan };
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        f(&name, &kernel, &Arc::new(SiteTable::new(&module)));
    }
}

/// The kernels, sorted.
fn kernels() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/kernels");
    let files = fs::read_dir(folder).expect("the kernels");
    let mut paths: Vec<_> = files.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "ptx"));
    paths.sort();
    paths
}
