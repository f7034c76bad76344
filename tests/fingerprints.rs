//! Fingerprints: a finding keeps its own over edits above it, other addresses, other schedules, and whatever recorded it.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{Capture, Recorded, judge, name, programs, root};
use libtest_mimic::{Arguments, Failed, Trial};
use ptxrace::backend::emu::Emulator;
use ptxrace::backend::{Arg, Backend, Buffer, ElementType, Owner, Plan, PlanStorage, Program, RunOptions};
use ptxrace::explain::{Context, Memory, Sources, explain};
use ptxrace::finding::Rule;
use ptxrace::instrument::{SiteId, SiteTable};
use ptxrace::session::launch::{LaunchRequest, resolve};
use ptxrace::session::{parse, read};

/// Fingerprints by what the engine tells findings apart by: no place in a text, no address.
type Prints = BTreeMap<(Rule, Vec<SiteId>), String>;

/// What is done otherwise.
#[derive(Default)]
struct Otherwise {
    seed: u64,
    plan: Option<fn(&mut Plan)>,
    instrumented: bool,
}

fn prints(ptx: &Path, otherwise: &Otherwise) -> Result<Prints, Failed> {
    let said = |errors: Vec<ptxrace::diag::Diagnostic>| {
        errors.into_iter().map(|error| error.message).collect::<Vec<_>>().join("; ")
    };
    let source = read(ptx).map_err(|error| error.message)?;
    let module = parse(&source).map_err(said)?;
    let mut plan = resolve(&source, &module, &LaunchRequest::default()).map_err(said)?.plan;
    if let Some(change) = otherwise.plan {
        change(&mut plan);
    }
    let sites = Arc::new(SiteTable::new(&module));
    let program = Program { source: &source, module: &module, sites: &sites };
    let mut backend = if otherwise.instrumented { Emulator::instrumented() } else { Emulator::new() };
    let options = RunOptions { seed: otherwise.seed, ..RunOptions::default() };
    let mut capture = Capture::default();
    let outcome = backend.run(program, &plan, &options, &mut capture).map_err(|error| error.to_string())?;
    let run = Recorded { sites: Arc::clone(&sites), plan, capture, outcome };
    let report = judge(&run.sites, &run.plan, &run.capture.launches);
    let mut memory = vec![Memory::default(); run.plan.launches.len()];
    for (launch, captured) in report.launches.into_iter().zip(&run.capture.launches) {
        let global = captured.info.as_ref().map_or_else(Vec::new, |info| info.regions.clone());
        memory[launch.index as usize] = Memory { global, shared: launch.shared };
    }
    let sources = Sources::beside(ptx);
    let context = Context {
        programs: &[program],
        plan: &run.plan,
        graphs: &[],
        memory: &memory,
        regions: &[],
        sources: &sources,
        replay: "",
        schedules: None,
    };
    let print = |finding: &ptxrace::finding::Finding| {
        let mut sites: Vec<_> = finding.witnesses.iter().map(|witness| witness.site).collect();
        sites.sort_unstable();
        ((finding.rule, sites), explain(finding, &context).fingerprint)
    };
    Ok(report.findings.iter().map(print).collect())
}

/// Buffers lie elsewhere, in another order, with others between them.
fn elsewhere(plan: &mut Plan) {
    let count = plan.buffers.len();
    plan.buffers.reverse();
    let another = |n: usize| Buffer {
        name: format!("another{n}"),
        ty: ElementType::U8,
        contents: vec![0; 1000 * (n + 1)],
        unwritten: false,
        owner: Owner::Device,
    };
    let own = std::mem::take(&mut plan.buffers);
    plan.buffers = own.into_iter().enumerate().flat_map(|(n, buffer)| [another(n), buffer]).collect();
    let of_args = plan.launches.iter_mut().flat_map(|launch| &mut launch.args).filter_map(|arg| match arg {
        Arg::Buffer(index) | Arg::Tensor(index, _) => Some(index),
        Arg::Value(_) | Arg::Image(_) => None,
    });
    let of_images = plan.images.iter_mut().filter_map(|image| match &mut image.storage {
        PlanStorage::Buffer(index) | PlanStorage::Rows { buffer: index, .. } => Some(index),
        PlanStorage::Array(_) => None,
    });
    for index in of_args.chain(of_images).chain(plan.arrays.iter_mut().map(|array| &mut array.contents)) {
        *index = 2 * (count - 1 - *index) + 1;
    }
}

/// A copy of a program, with lines above everything in its PTX and in its source.
fn edited(launch: &Path, folder: &Path) -> Result<PathBuf, Failed> {
    const MORE: &str = "// one line more\n\n// and another\n";
    let file = |extension: &str| launch.with_extension(extension);
    let to = |path: &Path| folder.join(path.file_name().unwrap_or_default());
    let (ptx, source) = (file("ptx"), file("cu"));
    std::fs::copy(launch, to(launch))?;
    let own = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut text = std::fs::read_to_string(&ptx)?;
    if source.exists() {
        std::fs::write(to(&source), MORE.to_owned() + &std::fs::read_to_string(&source)?)?;
        let own = text.lines().filter_map(|line| line.trim().strip_prefix(".file")).find_map(|line| {
            let (number, name) = line.trim().split_once(char::is_whitespace)?;
            name.trim().trim_matches('"').ends_with(&own).then(|| number.to_owned())
        });
        text = shifted(&text, &own.ok_or("the module does not name its source")?, 3);
    }
    std::fs::write(to(&ptx), MORE.to_owned() + &text)?;
    Ok(to(&ptx))
}

/// The text with lines of one file moved: those of `.loc`, and those of the calls that code was inlined at.
fn shifted(text: &str, file: &str, by: u32) -> String {
    let shift = |line: &str| {
        if !line.trim_start().starts_with(".loc") {
            return line.to_owned();
        }
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        for at in 1..words.len().saturating_sub(1) {
            let names_file = words[at - 1] == ".loc" || words[at - 1] == "inlined_at";
            if let (true, Ok(number)) = (names_file && words[at] == file, words[at + 1].parse::<u32>()) {
                words[at + 1] = (number + by).to_string();
            }
        }
        words.join(" ")
    };
    text.lines().map(|line| shift(line) + "\n").collect()
}

fn differ(what: &str, before: &Prints, after: &Prints) -> Failed {
    format!("{what}: {after:#?}\nbefore {before:#?}").into()
}

/// Everything is found again under the same fingerprints.
fn stays(launch: &Path, is_race: bool) -> Result<(), Failed> {
    let ptx = launch.with_extension("ptx");
    // Not every schedule shows every race.
    let found = |seed: &u64| {
        prints(&ptx, &Otherwise { seed: *seed, ..Otherwise::default() })
            .is_ok_and(|prints| !prints.is_empty())
    };
    let seed = (0..8).find(found).unwrap_or(0);
    let same = || Otherwise { seed, ..Otherwise::default() };
    let before = prints(&ptx, &same())?;
    if before.is_empty() && is_race {
        return Err("nothing is found".into());
    }
    let folder = tempfile::tempdir()?;
    let edited = prints(&edited(launch, folder.path())?, &same())?;
    if before != edited {
        return Err(differ("after an edit", &before, &edited));
    }
    let moved = prints(&ptx, &Otherwise { plan: Some(elsewhere), ..same() })?;
    if before != moved {
        return Err(differ("at other addresses", &before, &moved));
    }
    let instrumented = prints(&ptx, &Otherwise { instrumented: true, ..same() })?;
    if before != instrumented {
        return Err(differ("instrumented", &before, &instrumented));
    }
    // Other schedules may find other pairs.
    for seed in 1..8 {
        let after = prints(&ptx, &Otherwise { seed, ..Otherwise::default() })?;
        if after.iter().any(|(key, print)| before.get(key).is_some_and(|other| other != print)) {
            return Err(differ(&format!("seed {seed}"), &before, &after));
        }
    }
    Ok(())
}

fn main() {
    let mut trials = Vec::new();
    for folder in ["ptx-samples/race", "tests/cases"] {
        for launch in programs(folder) {
            let is_race = folder == "ptx-samples/race";
            trials.push(Trial::test(name(&launch), move || stays(&launch, is_race)));
        }
    }
    assert!(trials.len() > 100, "only {} programs below {}", trials.len(), root().display());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
