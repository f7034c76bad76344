//! `ptxrace run`: file in, report out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::hints;
use super::launch::{self, LaunchRequest, Resolved};
use super::schedules::{All, Job, Schedules};
use super::{Parts, Policy, record, tell};
use crate::backend::{Backend, BackendError, ElementType, Phase, Program, RunOptions};
use crate::diag::Diagnostic;
use crate::diag::nearest;
use crate::engine::Analysis;
use crate::explain::{Search, Sources};
use crate::instrument::SiteTable;
use crate::report::{Progress, Report};

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
    /// Where sources may be, besides beside the file.
    pub search: Search,
    /// Buffers whose final contents are wanted.
    pub dump: Vec<String>,
    /// The command that makes this run, without backend and seed.
    pub command: String,
    /// Where a trace of it goes.
    pub record: Option<PathBuf>,
    /// How what it does is analysed.
    pub analysis: Analysis,
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
    /// What took how long, from reading the module on. Only a backend that runs a single schedule tells its share.
    pub phases: Vec<Phase>,
    /// Why the trace could not be written to its end.
    pub unwritten: Option<Diagnostic>,
}

/// Runs a request. Errors are those of the user's input.
pub fn run(
    request: &Request,
    parts: &dyn Parts,
    progress: &dyn Progress,
) -> Result<Finished, Vec<Diagnostic>> {
    let begin = Instant::now();
    let source = super::read(&request.file).map_err(|error| vec![error])?;
    let module = super::parse(&source)?;
    let resolved = launch::resolve(&source, &module, &request.launch)?;
    let dumps = dumps(request, &resolved)?;
    let sites = Arc::new(SiteTable::new(&module));
    let program = Program { source: &source, module: &module, sites: &sites };
    let plan = &resolved.plan;
    let sources = Sources::beside(&request.file).with(&request.search);
    let read = Phase { name: "read", time: begin.elapsed() };
    let begin = Instant::now();
    let mut backend = open(request, parts)?;
    let opened = Phase { name: "open", time: begin.elapsed() };
    let name = backend.name();
    let analysis = request.analysis;
    let job =
        Job { program, sites: &sites, plan, sources: &sources, parts, progress, analysis, writer: None };
    let writer = match &request.record {
        Some(path) => {
            let command = format!("{} --backend {name}", request.command);
            let begun = record::begin(path, &job, name, command, request.options.seed, &resolved.notes);
            Some(begun.map_err(|error| vec![error])?)
        }
        None => None,
    };
    let job = Job { writer: writer.as_ref(), ..job };

    progress.begin(request.schedules);
    let begin = Instant::now();
    let ran = execute(request, &job, &mut *backend);
    let whole = begin.elapsed();
    progress.end();
    let all = tell::settled(ran, &job)?;

    let begin = Instant::now();
    // A GPU's schedule has no seed.
    let replay = |seed| match name {
        "gpu" => format!("{} --backend gpu", request.command),
        _ => format!("{} --backend {name} --seed {seed}", request.command),
    };
    let mut report = tell::report(&all, &job, name, &replay);
    report.notes = resolved.notes.clone();
    report.judge(&request.policy);
    report.notes.extend(hints::sources(&report.findings));
    let told = Phase { name: "report", time: begin.elapsed() };
    let known: Duration = all.phases.iter().map(|phase| phase.time).sum();
    let rest = Phase { name: "rest", time: whole.saturating_sub(known) };
    let phases = [read, opened].into_iter().chain(all.phases.iter().copied()).chain([rest, told]).collect();
    let finished = writer.map_or(Ok(()), |writer| writer.finish(all.schedules, None));
    let unwritten =
        request.record.iter().zip(finished.err()).map(|(path, error)| record::unwritten(path, &error));
    let unwritten = unwritten.last();
    let buffers = dumps
        .into_iter()
        .map(|(name, index)| FinalBuffer {
            name,
            ty: plan.buffers.get(index).map_or(ElementType::U8, |buffer| buffer.ty),
            contents: all.buffers.get(index).cloned().unwrap_or_default(),
        })
        .collect();
    Ok(Finished { report, buffers, phases, unwritten })
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
fn open(request: &Request, parts: &dyn Parts) -> Result<Box<dyn Backend>, Vec<Diagnostic>> {
    if request.schedules > 1 && request.backend == Choice::Gpu {
        let error =
            Diagnostic::error("`--schedules` needs the emulator, as the GPU's schedule cannot be chosen");
        return Err(vec![error.help("leave out `--backend gpu`, or run several times")]);
    }
    let opened = match request.backend {
        Choice::Gpu => parts.gpu(),
        Choice::Emulator => parts.emulator(),
        // Many schedules are something only the emulator has.
        Choice::Auto if request.schedules > 1 => parts.emulator(),
        Choice::Auto => parts.gpu().or_else(|_| parts.emulator()),
    };
    opened.map_err(|error| vec![tell::refused(&error)])
}

/// Without a wish for a number of schedules, a small program is run under this many on the emulator: what one schedule
/// orders by chance, as causality through observation does, another leaves open.
const CHEAP_SCHEDULES: u64 = 8;
/// A program is small if its first schedule gives at most so many records.
const CHEAP_RECORDS: u64 = 100_000;

fn execute(request: &Request, job: &Job<'_>, backend: &mut dyn Backend) -> Result<All, BackendError> {
    let options = &request.options;
    let seed = |index| options.seed.wrapping_add(index);
    let open = || job.parts.emulator();
    let schedules = |count| Schedules { count, seed: &seed, open: &open };
    if request.schedules > 1 {
        return job.many(options, &schedules(request.schedules), None);
    }
    let one = job.one(backend, options)?;
    let records: u64 = one.counts.iter().map(|(records, _)| records).sum();
    let small = records <= CHEAP_RECORDS && one.incomplete.is_empty();
    if request.schedules == 0 && backend.name() == "emu" && small {
        return job.many(options, &schedules(CHEAP_SCHEDULES), Some(one));
    }
    Ok(All::alone(one, options.seed))
}
