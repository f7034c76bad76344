//! What recording and checking cost, on everyday kernels: `cargo bench --bench pipeline`. How fast texts go through is in
//! `text.rs`.
//!
//! Every number is the best of several runs. A file that is dropped into `benches/kernels` becomes a row. Ratios are to
//! the emulator running the kernel without records.

mod traces;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ptxrace::abi::Unit;
use ptxrace::backend::emu::Emulator;
use ptxrace::instrument::SiteTable;
use ptxrace::ptx::ast::Module;

use traces::Kernel;

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

fn bench(name: &str, kernel: &Kernel<'_>, sites: &Arc<SiteTable>) {
    // The emulator records what the table names: with an empty one it only runs.
    let none = SiteTable::new(&Module::default());

    let bare = best(|| drop(black_box(kernel.run(Emulator::new(), &none, false))));
    let native = best(|| drop(black_box(kernel.run(Emulator::new(), sites, false))));
    let instrumented = {
        let start = Instant::now();
        black_box(kernel.run(Emulator::instrumented(), sites, false));
        start.elapsed()
    };
    let kept = kernel.run(Emulator::new(), sites, true);
    let trace = kept.trace();
    let mut findings = 0;
    let judging = best(|| findings = kernel.judge(sites, &trace));
    assert_eq!(findings, 0, "{name} has no race");

    let records = kept.records();
    let bytes = kept.units * size_of::<Unit>();
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
    traces::for_each_kernel(bench);
}
