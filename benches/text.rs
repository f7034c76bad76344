//! How fast texts go through: parsing, and all of parsing, sites, instrumentation and printing.
//!
//! `cargo bench --bench text`. The text is the repository's kernels, repeated; `PTXRACE_BENCH_PTX=FILE` names a real file
//! instead.
//!
//! MB of input for a second of CPU time (best of many, one core of a Xeon; the time that this bench shows is the clock's, and
//! longer where others use the machine), dropping the tree included: a module of 5.5 MB
//! that nvcc 13 made of Thrust's and CUB's sorts and scans with `-lineinfo`, and one of 1.6 MB without:
//!
//! | | 5.5 MB | 1.6 MB |
//! | --- | --- | --- |
//! | parse | 250 | 170 |
//! | parse, sites, instrument, print | 104 | 73 |
//!
//! The tree of compilers' output takes 8 bytes for each byte of text (`the_tree_is_small` in `tests/parser.rs`).

use std::fs;
use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptxrace::instrument::{CallMode, SiteTable, instrument};
use ptxrace::ptx;

/// Bytes of a text made of the repository's kernels.
const LARGE: usize = 8 << 20;

fn text() -> (String, String) {
    if let Some(path) = std::env::var_os("PTXRACE_BENCH_PTX") {
        let text = fs::read_to_string(&path).expect("PTXRACE_BENCH_PTX names a text");
        let name = Path::new(&path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        return (name, text);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/kernels");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("the kernels").map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "ptx"));
    paths.sort();
    let kernels: Vec<_> = paths.iter().map(|path| fs::read_to_string(path).expect("a kernel")).collect();
    // One header, and names of its own for each copy.
    let mut text = String::from(".version 9.0\n.target sm_80\n.address_size 64\n");
    for copy in 0.. {
        for kernel in &kernels {
            let body = kernel.find(".address_size 64").map_or(0, |at| at + ".address_size 64".len());
            let at = kernel.find(".entry ").expect("a kernel") + ".entry ".len();
            let name = &kernel[at..at + kernel[at..].find('(').expect("parameters")];
            text.push_str(&kernel[body..].replace(name, &format!("{name}_{copy}")));
        }
        if text.len() >= LARGE {
            break;
        }
    }
    ("kernels".into(), text)
}

fn benches(c: &mut Criterion) {
    let (name, text) = text();
    let mut group = c.benchmark_group(name);
    group.sample_size(10).throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("parse", |b| b.iter(|| black_box(ptx::parse(&text)).errors.len()));
    group.bench_function("parse, instrument, print", |b| {
        b.iter(|| {
            let module = ptx::parse(&text).module;
            let sites = SiteTable::new(&module);
            instrument(&text, &module, &sites, CallMode::Local).map(|done| done.text.len())
        });
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
