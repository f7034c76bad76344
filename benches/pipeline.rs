//! What recording and checking cost, on everyday kernels: `cargo bench --bench pipeline`. How fast texts go through is in
//! `text.rs`.
//!
//! Every number is the best of several runs. A file that is dropped into `benches/kernels` becomes a row. Ratios are to
//! the emulator running the kernel without records.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ptxrace::abi::{Unit, decode};
use ptxrace::backend::emu::Emulator;
use ptxrace::backend::{Backend, LaunchEnd, LaunchInfo, Plan, Program, RunOptions, Sink};
use ptxrace::engine::Engine;
use ptxrace::instrument::SiteTable;
use ptxrace::ptx::ast::Module;
use ptxrace::session::launch::{LaunchRequest, resolve};
use ptxrace::session::{parse, read};
use ptxrace::span::SourceFile;

/// Runs of each measurement; the best counts.
const RUNS: u32 = 3;

fn best(mut f: impl FnMut()) -> Duration {
    let run = |_| {
        let start = Instant::now();
        f();
        start.elapsed()
    };
    (0..RUNS).map(run).min().unwrap_or_default()
}

/// Keeps records, or only counts their bytes.
#[derive(Default)]
struct Kept {
    keep: bool,
    launches: Vec<(LaunchInfo, Vec<Unit>, LaunchEnd)>,
    units: usize,
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
struct Kernel<'k> {
    source: &'k SourceFile,
    module: &'k Module<'k>,
    plan: &'k Plan,
}

impl Kernel<'_> {
    fn run(&self, mut backend: Emulator, sites: &SiteTable, keep: bool) -> Kept {
        let mut kept = Kept { keep, ..Kept::default() };
        let program = Program { source: self.source, module: self.module, sites };
        let outcome = backend.run(program, self.plan, &RunOptions::default(), &mut kept).expect("it runs");
        assert!(outcome.stop.is_none(), "{:?}", outcome.stop);
        kept
    }

    fn judge(&self, sites: &Arc<SiteTable>, kept: &Kept) -> usize {
        let mut engine = Engine::new(Arc::clone(sites), self.plan);
        for (info, units, end) in &kept.launches {
            engine.begin(info);
            // In pieces, as a drained ring comes.
            let mut rest = &units[..];
            while !rest.is_empty() {
                let mut at = 0;
                while at < rest.len().min(4096) {
                    at += decode(&rest[at..]).expect("a record").map_or(rest.len() - at, |r| r.units().len());
                }
                let (piece, after) = rest.split_at(at);
                engine.records(piece);
                rest = after;
            }
            engine.end(end);
        }
        engine.finish().findings.len()
    }
}

fn kernel(path: &Path) {
    let source = read(path).expect("a module");
    let module = parse(&source).expect("a module");
    let plan = resolve(&source, &module, &LaunchRequest::default()).expect("a launch").plan;
    let kernel = Kernel { source: &source, module: &module, plan: &plan };
    let sites = Arc::new(SiteTable::new(&module));
    // The emulator records what the table names: with an empty one it only runs.
    let none = SiteTable::new(&Module::default());

    let bare = best(|| drop(black_box(kernel.run(Emulator::new(), &none, false))));
    let native = best(|| drop(black_box(kernel.run(Emulator::new(), &sites, false))));
    let instrumented = {
        let start = Instant::now();
        black_box(kernel.run(Emulator::instrumented(), &sites, false));
        start.elapsed()
    };
    let kept = kernel.run(Emulator::new(), &sites, true);
    let mut findings = 0;
    let judging = best(|| findings = kernel.judge(&sites, &kept));
    assert_eq!(findings, 0, "{} has no race", path.display());

    let records: u64 = kept.launches.iter().map(|(_, _, end)| end.records).sum();
    let bytes = kept.units * size_of::<Unit>();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let ratio = |time: Duration| time.as_secs_f64() / bare.as_secs_f64();
    println!(
        "{name:<12}{:>10.1}{:>10.1}{:>8.2}x{:>12.1}{:>8.2}x{records:>10}{:>7.1}{:>10.1}{:>8.2}x{:>9.2}",
        ms(bare),
        ms(native),
        ratio(native),
        ms(instrumented),
        ratio(instrumented),
        bytes as f64 / records as f64,
        ms(judging),
        ratio(native + judging),
        records as f64 / 1e6 / judging.as_secs_f64()
    );
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    println!(
        "{:<12}{:>10}{:>19}{:>21}{:>10}{:>7}{:>19}{:>9}",
        "kernel",
        "emulator",
        "with records",
        "instrumented",
        "records",
        "bytes",
        "engine  + records",
        "engine"
    );
    println!(
        "{:<12}{:>10}{:>10}{:>9}{:>12}{:>9}{:>10}{:>7}{:>10}{:>9}{:>9}",
        "", "ms", "ms", "", "ms", "", "", "each", "ms", "", "M rec/s"
    );
    let folder = fs::read_dir(root.join("benches/kernels")).expect("the kernels");
    let mut paths: Vec<_> = folder.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "ptx"));
    paths.sort();
    paths.iter().for_each(|path| kernel(path));
}
