//! `ptxrace run`: file in, report out.

use std::path::PathBuf;
use std::sync::Arc;

use super::incomplete::Why;
use super::launch::{self, LaunchRequest, Resolved};
use super::schedules::{All, Found, Job, One, distinct};
use super::{Parts, Policy};
use crate::backend::{Backend, BackendError, ElementType, Plan, Program, RunOptions};
use crate::diag::Diagnostic;
use crate::diag::nearest;
use crate::explain::{self, Context, Explained, Sources};
use crate::instrument::SiteTable;
use crate::report::{Incomplete, LaunchFacts, Progress, Report};

/// Which backend to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The GPU if there is a usable one, else the emulator.
    #[default]
    Auto,
    /// The GPU.
    Gpu,
    /// The emulator.
    Emulator,
}

/// What to run, and how.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The PTX file.
    pub file: PathBuf,
    /// What to launch.
    pub launch: LaunchRequest,
    /// What runs it.
    pub backend: Choice,
    /// How.
    pub options: RunOptions,
    /// How many schedules; 0 is as many as are cheap (`CHEAP_SCHEDULES`).
    pub schedules: u64,
    /// What counts.
    pub policy: Policy,
    /// Buffers whose final contents are wanted.
    pub dump: Vec<String>,
    /// The command that makes this run, without backend and seed.
    pub command: String,
}

/// A buffer after the run.
#[derive(Clone, Debug, PartialEq)]
pub struct FinalBuffer {
    /// The name it was asked for by.
    pub name: String,
    /// Element type.
    pub ty: ElementType,
    /// Contents; empty when the run did not come to its end.
    pub contents: Vec<u8>,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The report.
    pub report: Report,
    /// The buffers asked for, in that order.
    pub buffers: Vec<FinalBuffer>,
}

/// Runs a request. Errors are those of the user's input.
pub fn run(
    request: &Request,
    parts: &dyn Parts,
    progress: &dyn Progress,
) -> Result<Finished, Vec<Diagnostic>> {
    let source = super::read(&request.file).map_err(|error| vec![error])?;
    let module = super::parse(&source)?;
    let resolved = launch::resolve(&source, &module, &request.launch)?;
    let dumps = dumps(request, &resolved)?;
    let sites = Arc::new(SiteTable::new(&module));
    let program = Program { source: &source, module: &module, sites: &sites };
    let plan = &resolved.plan;
    let sources = Sources::beside(&request.file);
    let job = Job { program, sites: &sites, plan, sources: &sources, parts, progress };

    progress.begin(request.schedules);
    let ran = execute(request, &job);
    progress.end();
    let (backend, all) = ran?;

    let findings =
        all.found.iter().map(|found| explained(found, request, &job, backend, all.schedules)).collect();
    let mut report = Report {
        launches: launches(plan, &all, backend),
        findings,
        incomplete: all.incomplete,
        notes: resolved.notes.clone(),
        ..Report::default()
    };
    report.judge(&request.policy);
    let buffers = dumps
        .into_iter()
        .map(|(name, index)| FinalBuffer {
            name,
            ty: plan.buffers.get(index).map_or(ElementType::U8, |buffer| buffer.ty),
            contents: all.buffers.get(index).cloned().unwrap_or_default(),
        })
        .collect();
    Ok(Finished { report, buffers })
}

/// Indices of the buffers to dump.
fn dumps(request: &Request, resolved: &Resolved) -> Result<Vec<(String, usize)>, Vec<Diagnostic>> {
    let buffers = || resolved.plan.buffers.iter().map(|buffer| buffer.name.as_str());
    let names: Vec<_> = buffers()
        .enumerate()
        .map(|(index, name)| (name, index))
        .chain(resolved.aliases.iter().map(|(name, index)| (name.as_str(), *index)))
        .collect();
    let mut found = Vec::new();
    let mut errors = Vec::new();
    for wanted in &request.dump {
        match names.iter().find(|(name, _)| name == wanted) {
            Some((name, index)) => found.push(((*name).to_owned(), *index)),
            None => {
                let error = Diagnostic::error(format!("`--dump {wanted}`: there is no such buffer"));
                errors.push(match nearest(wanted, names.iter().map(|(name, _)| *name)) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => {
                        error.help(format!("the buffers are {}", buffers().collect::<Vec<_>>().join(", ")))
                    }
                });
            }
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

/// Opens the backend that was chosen.
fn open(request: &Request, parts: &dyn Parts) -> Result<Box<dyn Backend>, BackendError> {
    match request.backend {
        Choice::Gpu => parts.gpu(),
        Choice::Emulator => parts.emulator(),
        // Many schedules are something only the emulator has.
        Choice::Auto if request.schedules > 1 => parts.emulator(),
        Choice::Auto => parts.gpu().or_else(|_| parts.emulator()),
    }
}

/// Without a wish for a number of schedules, a small program is run under this many on the emulator: what one schedule
/// orders by chance, as causality through observation does, another leaves open.
const CHEAP_SCHEDULES: u64 = 8;
/// A program is small if its first schedule gives at most so many records.
const CHEAP_RECORDS: u64 = 100_000;

fn execute(request: &Request, job: &Job<'_>) -> Result<(&'static str, All), Vec<Diagnostic>> {
    if request.schedules > 1 && request.backend == Choice::Gpu {
        let error =
            Diagnostic::error("`--schedules` needs the emulator, as the GPU's schedule cannot be chosen");
        return Err(vec![error.help("leave out `--backend gpu`, or run several times")]);
    }
    let mut backend = open(request, job.parts).map_err(|error| vec![refused(&error)])?;
    let name = backend.name();
    let ran = if request.schedules > 1 {
        job.many(&request.options, request.schedules)
    } else {
        job.one(&mut *backend, &request.options).and_then(|one| {
            let records: u64 = one.counts.iter().map(|(records, _)| records).sum();
            let small = records <= CHEAP_RECORDS && one.incomplete.is_empty();
            if request.schedules == 0 && name == "emu" && small {
                return job.many(&request.options, CHEAP_SCHEDULES);
            }
            Ok(alone(one, request.options.seed))
        })
    };
    match ran {
        Ok(all) => Ok((name, all)),
        Err(error) => {
            let why = Why { program: job.program, plan: job.plan, sources: job.sources };
            let incomplete: Vec<Incomplete> = why.backend(&error).into_iter().collect();
            if incomplete.is_empty() {
                return Err(vec![refused(&error)]);
            }
            let (found, counts, buffers) = (Vec::new(), Vec::new(), Vec::new());
            Ok((name, All { found, counts, incomplete, buffers, schedules: 1 }))
        }
    }
}

/// One schedule as all there are.
fn alone(one: One, seed: u64) -> All {
    let memory = one.memory;
    let found = |finding| Found { finding, memory: memory.clone(), seed, schedules: 1 };
    All {
        found: one.findings.into_iter().map(found).collect(),
        counts: one.counts,
        incomplete: distinct(one.incomplete),
        buffers: one.buffers,
        schedules: 1,
    }
}

fn refused(error: &BackendError) -> Diagnostic {
    let diagnostic = Diagnostic::error(error.to_string());
    match error {
        BackendError::NoDevice(_) => {
            diagnostic.help("`--backend emu` runs without a GPU; `ptxrace doctor` tells what works")
        }
        _ => diagnostic,
    }
}

fn explained(found: &Found, request: &Request, job: &Job<'_>, backend: &str, schedules: u64) -> Explained {
    // A GPU's schedule has no seed.
    let replay = match backend {
        "gpu" => format!("{} --backend gpu", request.command),
        _ => format!("{} --backend {backend} --seed {}", request.command, found.seed),
    };
    let context = Context {
        programs: &[job.program],
        plan: job.plan,
        memory: &found.memory,
        regions: &[],
        sources: job.sources,
        replay: &replay,
        schedules: (schedules > 1).then_some((found.schedules, schedules)),
    };
    explain::explain(&found.finding, &context)
}

fn launches(plan: &Plan, all: &All, backend: &'static str) -> Vec<LaunchFacts> {
    let facts = |(index, launch): (usize, &crate::backend::Launch)| {
        let (records, dropped) = all.counts.get(index).copied().unwrap_or_default();
        LaunchFacts {
            id: u32::try_from(index).unwrap_or(u32::MAX),
            kernel: launch.kernel.clone(),
            grid: launch.grid,
            block: launch.block,
            stream: launch.stream,
            backend,
            records,
            dropped,
        }
    };
    plan.launches.iter().enumerate().map(facts).collect()
}
