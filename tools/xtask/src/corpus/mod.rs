//! `cargo xtask corpus DIR...`: what parser and instrumentation make of folders of PTX.
//!
//! Nothing that it reads is kept in the repository; a table of what it found may be. Two passes: the first, on one thread,
//! parses, prints and instruments each file and measures CPU time; the second asks ptxas, on many threads. Files with the
//! same content count once. One file at a time is in memory, per thread.

mod cover;
mod examine;
mod files;
mod ptxas;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use examine::Examined;
use files::File;
use ptxas::{Compiled, Ptxas};

/// What to examine and what to write.
#[derive(clap::Parser)]
#[command(name = "cargo xtask corpus", about = "Run parser and instrumentation over folders of PTX")]
pub(crate) struct Args {
    /// Folders with .ptx files (and .cu files, if nvcc is there); each folder directly below is a source of its own
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// The nvcc for .cu files; target/cuda has one after `cargo xtask cuda`
    #[arg(long, value_name = "PATH")]
    nvcc: Option<PathBuf>,
    /// Compile each file by ptxas, as it is and instrumented
    #[arg(long)]
    ptxas: bool,
    /// The ptxas to ask; target/cuda has one after `cargo xtask cuda`
    #[arg(long, value_name = "PATH", requires = "ptxas")]
    ptxas_bin: Option<PathBuf>,
    /// Give up on a compilation after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    ptxas_timeout: u64,
    /// Ask ptxas about files up to this size only
    #[arg(long, value_name = "BYTES", default_value_t = u64::MAX, hide_default_value = true)]
    ptxas_limit: u64,
    /// Begin no compilation after this many seconds of them; files left over count as not asked
    #[arg(long, value_name = "SECONDS")]
    ptxas_budget: Option<u64>,
    /// How many compilations run at once
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Write everything about every file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table by source as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// One distinct file with all that is known of it.
#[derive(Serialize)]
struct Entry {
    #[serde(flatten)]
    file: File,
    #[serde(flatten)]
    examined: Examined,
    /// Nothing when ptxas was not asked.
    ptxas: Option<Compiled>,
}

/// Runs the chore.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|error| format!("failed to make a scratch folder: {error}"))?;
    let jobs =
        args.jobs.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1).max(1);
    let ptxas = match (args.ptxas, &args.ptxas_bin) {
        (false, _) => None,
        (true, Some(bin)) => Some(bin.clone()),
        (true, None) => Some(crate::cuda::install()?.join("bin/ptxas")),
    };
    let ptxas = ptxas
        .map(|bin| Ptxas::new(bin, Duration::from_secs(args.ptxas_timeout), args.ptxas_limit))
        .transpose()?;

    let mut found = files::find(&args.folders)?;
    let compiled = compile_sources(&mut found, args.nvcc.as_deref(), scratch.path(), jobs);
    let found = files::distinct(found)?;
    let mut entries: Vec<Entry> = Vec::with_capacity(found.files.len());
    for file in found.files {
        let examined = examine::examine(&file.read_from);
        entries.push(Entry { file, examined, ptxas: None });
    }
    if let Some(ptxas) = &ptxas {
        let deadline = args.ptxas_budget.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        ask_ptxas(ptxas, &mut entries, scratch.path(), jobs, deadline);
    }

    let mut notes =
        vec![format!("{} files have the same content as another and are left out", found.duplicates)];
    notes.extend(compiled);
    let asked = entries.iter().filter(|entry| entry.ptxas.is_some()).count();
    notes.push(match &ptxas {
        Some(ptxas) => format!("{}, {jobs} at once, asked about {asked} files", ptxas.version),
        None => "ptxas was not asked (`--ptxas` asks it)".to_owned(),
    });
    print!("{}", report::terminal(&entries, &notes));
    if let Some(path) = &args.markdown {
        write(path, &report::markdown(&entries, &notes))?;
    }
    if let Some(path) = &args.json {
        write(path, &report::json(&entries).map_err(|error| error.to_string())?)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("failed to write {}: {error}", path.display()))
}

/// Compiles the `.cu` files to PTX in the scratch folder and puts that in their place; those that do not compile are left
/// out. Returns what to tell.
fn compile_sources(
    found: &mut Vec<File>,
    nvcc: Option<&Path>,
    scratch: &Path,
    jobs: usize,
) -> Option<String> {
    let is_source = |file: &File| file.path.extension().is_some_and(|extension| extension == "cu");
    let count = found.iter().filter(|file| is_source(file)).count();
    if count == 0 {
        return None;
    }
    let nvcc = match nvcc {
        Some(path) if path.exists() => Ok(path.to_owned()),
        Some(path) => Err(format!("no nvcc at {}", path.display())),
        None => crate::cuda::installed()
            .map(|home| home.join("bin/nvcc"))
            .ok_or_else(|| "no nvcc (`cargo xtask cuda` brings it)".to_owned()),
    };
    let nvcc = match nvcc {
        Ok(nvcc) => nvcc,
        Err(why) => {
            found.retain(|file| !is_source(file));
            return Some(format!("{count} .cu files are left out: {why}"));
        }
    };
    let sources: Vec<(usize, &mut File)> =
        found.iter_mut().filter(|file| is_source(file)).enumerate().collect();
    parallel(sources, jobs, |(index, file)| {
        let target = scratch.join(format!("{index}.ptx"));
        let output = ["-ptx", "-arch=sm_90", "-lineinfo", "-w", "-o"];
        let done = crate::run(Command::new(&nvcc).args(output).args([&target, &file.path]));
        if done.is_ok() {
            file.read_from = target;
        }
    });
    found.retain(|file| !is_source(file) || file.read_from != file.path);
    let left = found.iter().filter(|file| is_source(file)).count();
    Some(format!("{left} of {count} .cu files compiled by nvcc for sm_90; the others are left out"))
}

fn ask_ptxas(ptxas: &Ptxas, entries: &mut [Entry], scratch: &Path, jobs: usize, deadline: Option<Instant>) {
    let workers = AtomicUsize::new(0);
    let mut large_first: Vec<&mut Entry> = entries.iter_mut().collect();
    // A large file begun last would keep one core busy alone.
    large_first.sort_by_key(|entry| std::cmp::Reverse(entry.file.bytes));
    parallel(large_first, jobs, |entry| {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return;
        }
        let scratch = scratch.join(format!("ptxas-{}", workers.fetch_add(1, Ordering::Relaxed)));
        entry.ptxas = ptxas.compile(&entry.file.read_from, &scratch);
    });
}

/// Does the work on each item, on this many threads.
fn parallel<T: Send>(items: Vec<T>, jobs: usize, work: impl Fn(T) + Sync) {
    let queue = Mutex::new(items.into_iter());
    let next = || queue.lock().ok()?.next();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(item) = next() {
                    work(item);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests;
