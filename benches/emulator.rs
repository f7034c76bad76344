//! How many instructions a second the emulator executes on one core, each counted for each of its lanes: alone, with records,
//! and with what judges them: `cargo bench --bench emulator`.

mod traces;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptxrace::backend::emu::Emulator;
use ptxrace::instrument::SiteTable;
use ptxrace::ptx::ast::Module;

fn benches(c: &mut Criterion) {
    // The emulator records what the table names: with an empty one it only runs.
    let none = SiteTable::new(&Module::default());
    traces::for_each_kernel(|name, kernel, sites| {
        let mut group = c.benchmark_group(name);
        group.sample_size(10);
        group.throughput(Throughput::Elements(kernel.detect(sites)));
        group.bench_function("alone", |b| b.iter(|| black_box(kernel.run(Emulator::new(), &none, false))));
        group.bench_function("records", |b| b.iter(|| black_box(kernel.run(Emulator::new(), sites, false))));
        group.bench_function("detection", |b| b.iter(|| black_box(kernel.detect(sites))));
        group.finish();
    });
}

criterion_group!(all, benches);
criterion_main!(all);
