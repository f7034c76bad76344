//! What the engine takes a second, on recorded traces, all rules on: `cargo bench --bench engine`.
//!
//! A trace is what a kernel of `benches/kernels` left on the emulator. `exchange` has coalesced accesses and barriers alone,
//! `tickets` and `histogram` are full of atomics.

mod traces;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptxrace::backend::emu::Emulator;
use ptxrace::instrument::SiteTable;
use ptxrace::session::launch::{LaunchRequest, resolve};
use ptxrace::session::{parse, read};

use traces::Kernel;

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine");
    group.sample_size(10);
    for path in traces::kernels() {
        let source = read(&path).expect("a module");
        let module = parse(&source).expect("a module");
        let plan = resolve(&source, &module, &LaunchRequest::default()).expect("a launch").plan;
        let kernel = Kernel { source: &source, module: &module, plan: &plan };
        let sites = Arc::new(SiteTable::new(&module));
        let kept = kernel.run(Emulator::new(), &sites, true);
        let trace = kept.trace();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        group.throughput(Throughput::Elements(kept.records()));
        group.bench_function(&*name, |b| b.iter(|| black_box(kernel.judge(&sites, &trace))));
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
