//! How fast texts go through: parsing, and all of parsing, sites, instrumentation and printing.
//!
//! `cargo bench --bench text`. The text is the repository's kernels, repeated; `PTXRACE_BENCH_PTX=FILE[:FILE...]` names real
//! files instead. The time is the clock's, and longer where others use the machine; it includes dropping the tree.
//!
//! Numbers of large files of many sources are in `results/2026-11-30-text.md`. The tree of compilers' output takes about 5
//! bytes for each byte of text (`the_tree_is_small` in `tests/limits.rs`).

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptxrace::instrument::{CallMode, SiteTable, instrument};
use ptxrace::ptx;

/// Bytes of a text made of the repository's kernels.
const LARGE: usize = 8 << 20;

/// Texts with their names.
fn texts() -> Vec<(String, String)> {
    let Some(paths) = std::env::var_os("PTXRACE_BENCH_PTX") else {
        return vec![("kernels".into(), kernels())];
    };
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("PTXRACE_BENCH_PTX names texts");
        // By the folder, which is a source in a corpus.
        let folder = path.parent().and_then(Path::file_name).unwrap_or(path.as_os_str());
        (folder.to_string_lossy().into_owned(), text)
    };
    std::env::split_paths(&paths).map(read).collect()
}

/// The repository's kernels, repeated.
fn kernels() -> String {
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
    text
}

fn benches(c: &mut Criterion) {
    for (name, text) in texts() {
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
}

criterion_group!(all, benches);
criterion_main!(all);
