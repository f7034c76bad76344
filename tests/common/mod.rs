//! What the data-driven tests share: finding samples, loading them, running them on the emulator, blessed texts.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod reorder;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::Failed;
use ptxrace::abi::{Unit, decode};
use ptxrace::backend::{Backend, LaunchEnd, LaunchInfo, Outcome, Plan, Program, RunOptions, Sink};
use ptxrace::cli::{self, Streams};
use ptxrace::engine::{Engine, Report};
use ptxrace::instrument::SiteTable;
use ptxrace::session::launch::{LaunchRequest, resolve};
use ptxrace::session::{Linked, parse, read};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files of this extension under a folder of the repository, sorted.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    fn walk(dir: &Path, extension: &str, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, extension, out);
            } else if path.extension().is_some_and(|e| e == extension) {
                out.push(path);
            }
        }
    }
    let mut out = Vec::new();
    walk(&root().join(folder), extension, &mut out);
    out.sort();
    out
}

/// All programs with a launch file under a folder, sorted, by their launch file.
pub(crate) fn programs(folder: &str) -> Vec<PathBuf> {
    files(folder, "toml").into_iter().filter(|launch| launch.with_extension("ptx").exists()).collect()
}

/// Every module of the repository that is PTX.
pub(crate) fn modules() -> Vec<PathBuf> {
    let folders = ["ptx-samples", "tests/cases", "tests/forms", "tests/rules", "tests/runtime"];
    let mut out: Vec<_> = folders.into_iter().flat_map(|folder| files(folder, "ptx")).collect();
    out.sort();
    assert!(out.len() > 150, "only {} modules", out.len());
    out
}

/// A short name for a launch file.
pub(crate) fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).with_extension("").display().to_string()
}

/// A path from the repository's root, where `main` goes first: reports name files as they were given.
pub(crate) fn within(path: &Path) -> PathBuf {
    path.strip_prefix(root()).unwrap_or(path).to_owned()
}

/// Runs a command line in this process: exit code, standard output, standard error.
pub(crate) fn ptxrace(words: impl IntoIterator<Item = OsString>) -> Result<(u8, String, String), Failed> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = Streams {
        out: &mut out,
        err: &mut err,
        out_is_terminal: false,
        err_is_terminal: false,
        width: None,
        no_color: true,
        workspace: None,
        step_summary: None,
    };
    let code = cli::run(words, streams, &Linked)?;
    Ok((code, String::from_utf8(out)?, String::from_utf8(err)?))
}

/// Records of one launch, with what was said around them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Launched {
    pub(crate) info: Option<LaunchInfo>,
    pub(crate) units: Vec<Unit>,
    pub(crate) end: LaunchEnd,
}

/// Keeps the records of a run.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    pub(crate) launches: Vec<Launched>,
}

impl Sink for Capture {
    fn begin(&mut self, info: &LaunchInfo) {
        self.launches.push(Launched { info: Some(info.clone()), ..Launched::default() });
    }

    fn records(&mut self, units: &[Unit]) {
        self.launches.last_mut().expect("a launch has begun").units.extend_from_slice(units);
    }

    fn end(&mut self, end: &LaunchEnd) {
        self.launches.last_mut().expect("a launch has begun").end = end.clone();
    }
}

/// A program that has run, with its records.
pub(crate) struct Recorded {
    pub(crate) sites: Arc<SiteTable>,
    pub(crate) plan: Plan,
    pub(crate) capture: Capture,
    pub(crate) outcome: Outcome,
}

/// Runs a program by its launch file.
pub(crate) fn record(
    launch: &Path,
    backend: &mut dyn Backend,
    options: &RunOptions,
) -> Result<Recorded, String> {
    record_as(&launch.with_extension("ptx"), &LaunchRequest::default(), backend, options)
}

/// The same, where each site logs for itself.
pub(crate) fn record_single(
    launch: &Path,
    backend: &mut dyn Backend,
    options: &RunOptions,
) -> Result<Recorded, String> {
    let (ptx, request) = (launch.with_extension("ptx"), LaunchRequest::default());
    record_with(&ptx, &request, backend, options, SiteTable::without_bundles)
}

/// Runs a program as it is asked for.
pub(crate) fn record_as(
    ptx: &Path,
    request: &LaunchRequest,
    backend: &mut dyn Backend,
    options: &RunOptions,
) -> Result<Recorded, String> {
    record_with(ptx, request, backend, options, |sites| sites)
}

fn record_with(
    ptx: &Path,
    request: &LaunchRequest,
    backend: &mut dyn Backend,
    options: &RunOptions,
    sites: impl FnOnce(SiteTable) -> SiteTable,
) -> Result<Recorded, String> {
    let say = |errors: Vec<ptxrace::diag::Diagnostic>| {
        errors.into_iter().map(|e| e.message).collect::<Vec<_>>().join("; ")
    };
    let source = read(ptx).map_err(|e| e.message)?;
    let module = parse(&source).map_err(say)?;
    let plan = resolve(&source, &module, request).map_err(say)?.plan;
    let sites = Arc::new(sites(SiteTable::new(&module)));
    let mut capture = Capture::default();
    let program = Program { source: &source, module: &module, sites: &sites };
    let outcome = backend.run(program, &plan, options, &mut capture).map_err(|e| e.to_string())?;
    Ok(Recorded { sites, plan, capture, outcome })
}

/// Lets the engine judge records.
pub(crate) fn judge(sites: &Arc<SiteTable>, plan: &Plan, launches: &[Launched]) -> Report {
    let mut engine = Engine::new(Arc::clone(sites), plan);
    for launch in launches {
        engine.begin(launch.info.as_ref().expect("a launch has begun"));
        engine.records(&launch.units);
        engine.end(&launch.end);
    }
    engine.finish()
}

/// Splits units into records.
pub(crate) fn records(units: &[Unit]) -> Vec<&[Unit]> {
    let mut rest = units;
    let mut out = Vec::new();
    while let Some(record) = decode(rest).expect("whole records") {
        let (own, after) = rest.split_at(record.units().len());
        out.push(own);
        rest = after;
    }
    out
}

/// Compares a text with that of a file of the repository; with `PTXRACE_BLESS=1` writes it there instead.
pub(crate) fn blessed(file: &Path, text: &str) -> Result<(), Failed> {
    let shown = file.strip_prefix(root()).unwrap_or(file).display();
    if std::env::var_os("PTXRACE_BLESS").is_some_and(|value| value == "1") {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        return Ok(std::fs::write(file, text)?);
    }
    let Ok(expected) = std::fs::read_to_string(file) else {
        return Err(format!("`{shown}` is missing; with PTXRACE_BLESS=1 it is written:\n{text}").into());
    };
    if expected == text {
        return Ok(());
    }
    let differs = expected.lines().zip(text.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or(expected.lines().count().min(text.lines().count())) + 1;
    Err(format!(
        "`{shown}` differs from line {line} on; PTXRACE_BLESS=1 rewrites it, then review the change\n\
         -- blessed\n{expected}\n-- now\n{text}"
    )
    .into())
}

/// A deterministic generator (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}
