//! Every module of the repository is instrumented and compiled by ptxas.
//!
//! `PTXRACE_PTX` may name further folders, separated by `:`, such as a corpus too large for the repository.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ptxrace::instrument::{CallMode, SiteTable, instrument};
use ptxrace::ptx;
use ptxrace::ptx::ast::Module;

/// Folders whose modules ptxas must take. Those of `invalid` are no PTX.
const FOLDERS: [&str; 5] = ["ptx-samples", "tests/cases", "tests/forms", "tests/rules", "tests/runtime"];

/// The oldest target that ptxas 13 compiles for; older modules are compiled for a newer one, as the driver does.
const OLDEST_SM: u32 = 75;

#[test]
fn ptxas_takes_every_instrumented_module() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ptxas = ptxas(root).expect("no ptxas in target/cuda: run `cargo xtask cuda` first");
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files);
    }
    if let Some(more) = std::env::var_os("PTXRACE_PTX") {
        std::env::split_paths(&more).for_each(|folder| collect(&folder, &mut files));
    }
    files.sort();
    assert!(!files.is_empty(), "no .ptx files found");

    let scratch = tempfile::tempdir().unwrap();
    let (next, failures, by_abi) = (AtomicUsize::new(0), Mutex::new(Vec::new()), AtomicUsize::new(0));
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (ptxas, scratch) = (&ptxas, scratch.path().join(worker.to_string()));
            let (next, failures, files, by_abi) = (&next, &failures, &files, &by_abi);
            scope.spawn(move || {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match compile(ptxas, file, &scratch, CallMode::Local) {
                        Ok(CallMode::Local) => {}
                        Ok(CallMode::Abi) => drop(by_abi.fetch_add(1, Ordering::Relaxed)),
                        Err(why) => {
                            let name = file.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(file);
                            failures.lock().unwrap().push(format!("{}: {why}", name.display()));
                        }
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    println!("{} modules, {} of them by the ABI", files.len(), by_abi.into_inner());
    assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), files.len(), failures.join("\n"));
}

fn ptxas(root: &Path) -> Option<PathBuf> {
    let lib = root.join("target/cuda/lib").read_dir().ok()?;
    lib.filter_map(Result::ok)
        .map(|entry| entry.path().join("site-packages/nvidia/cu13/bin/ptxas"))
        .find(|path| path.exists())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = folder.read_dir() else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if path.is_dir() && path.file_name().is_none_or(|name| name != "invalid") {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            files.push(path);
        }
    }
}

#[test]
fn ptxas_takes_calls_by_the_abi() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ptxas = ptxas(root).expect("no ptxas in target/cuda: run `cargo xtask cuda` first");
    let scratch = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    collect(&root.join("tests/forms"), &mut files);
    // Those below are about syntax; some hold what cannot be compiled by the ABI, such as functions of two results.
    files.retain(|file| file.parent().is_some_and(|folder| folder.ends_with("forms")));
    for file in &files {
        let result = compile(&ptxas, file, &scratch.path().join("abi"), CallMode::Abi);
        assert_eq!(result, Ok(CallMode::Abi), "{}", file.display());
    }
}

/// Tries this way of calling and the one that may work instead, as the GPU backend does; gives the one that worked.
fn compile(ptxas: &Path, file: &Path, scratch: &Path, mut mode: CallMode) -> Result<CallMode, String> {
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    let parsed = ptx::parse(&text);
    if let Some(error) = parsed.errors.first() {
        return Err(format!("{error} at byte {}", error.span.start));
    }
    let sites = SiteTable::new(&parsed.module);
    loop {
        let instrumented = instrument(&text, &parsed.module, &sites, mode)
            .map_err(|e| format!("{e} at byte {:?}", e.span().map(|span| span.start)))?;
        let input = scratch.with_extension("ptx");
        std::fs::write(&input, &instrumented.text).map_err(|e| e.to_string())?;
        let output = Command::new(ptxas)
            .arg(format!("-arch={}", arch(&parsed.module)))
            .arg(&input)
            .arg("-o")
            .arg(scratch.with_extension("cubin"))
            .output()
            .map_err(|e| e.to_string())?;
        if output.status.success() {
            return Ok(mode);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        match mode.instead(&said) {
            Some(other) => mode = other,
            None => return Err(said.lines().take(4).collect::<Vec<_>>().join(" / ")),
        }
    }
}

/// `sm_90a` as it is; targets that ptxas no longer compiles for give the newest common one.
fn arch<'a>(module: &Module<'a>) -> &'a str {
    let target = module.target().filter(|_| module.target_sm().is_some_and(|sm| sm >= OLDEST_SM));
    target.unwrap_or("sm_90")
}
