//! What the engine takes a second, on recorded traces, all rules on, and what the triage before it does:
//! `cargo bench --bench engine`.
//!
//! A trace is what a kernel of `benches/kernels` left on the emulator. `exchange` has coalesced accesses and barriers alone,
//! `tickets` and `histogram` are full of atomics.

mod traces;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptxrace::backend::emu::Emulator;

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine");
    group.sample_size(10);
    traces::for_each_kernel(|name, kernel, sites| {
        let kept = kernel.run(Emulator::new(), sites, true);
        let trace = kept.trace();
        group.throughput(Throughput::Elements(kept.records()));
        group.bench_function(name, |b| b.iter(|| black_box(kernel.judge(sites, &trace))));
    });
    group.finish();
    let mut group = c.benchmark_group("triage");
    group.sample_size(10);
    traces::for_each_kernel(|name, kernel, sites| {
        let kept = kernel.run(Emulator::new(), sites, true);
        let trace = kept.trace();
        // Of the others it only takes the first records.
        if kernel.triage(sites, &trace) {
            group.throughput(Throughput::Elements(kept.records()));
            group.bench_function(name, |b| b.iter(|| black_box(kernel.triage(sites, &trace))));
        }
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
