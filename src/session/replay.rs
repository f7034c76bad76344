//! `ptxrace replay`: trace in, the report of the recorded run or program out.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use super::exec::Ending;
use super::schedules::{All, Job, Schedules};
use super::{Parts, Policy, exec, hints, tell};
use crate::backend::{Backend, Buffer, ElementType, Owner, Plan, Program, RunOptions};
use crate::diag::Diagnostic;
use crate::engine::Analysis;
use crate::explain::Sources;
use crate::instrument::SiteTable;
use crate::report::{Incomplete, Progress, Reason, Report};
use crate::span::SourceFile;
use crate::trace::{Break, ExecHead, Head, Player, ReadAt, Trace, TraceError, VERSION, sites_digest};

/// What to check again.
#[derive(Clone, Debug, Default)]
pub struct ReplayRequest {
    /// The trace.
    pub file: PathBuf,
    /// What counts.
    pub policy: Policy,
    /// The command that does this.
    pub command: String,
    /// How it is analysed.
    pub analysis: Analysis,
}

/// What came of it.
#[derive(Debug)]
pub struct Replayed {
    /// The report.
    pub report: Report,
    /// Of a program under `exec`.
    pub ending: Option<Ending>,
}

/// Checks a recorded run or program again. Errors are those of the user's input.
pub fn replay(
    request: &ReplayRequest,
    parts: &dyn Parts,
    progress: &dyn Progress,
) -> Result<Replayed, Vec<Diagnostic>> {
    let path = request.file.display();
    let file = File::open(&request.file)
        .map_err(|error| vec![Diagnostic::error(format!("cannot read `{path}`: {error}"))])?;
    replay_bytes(request, Box::new(file), parts, progress)
}

/// The same with the trace at hand.
pub fn replay_bytes(
    request: &ReplayRequest,
    bytes: Box<dyn ReadAt>,
    parts: &dyn Parts,
    progress: &dyn Progress,
) -> Result<Replayed, Vec<Diagnostic>> {
    let trace = Trace::open(bytes).map_err(|error| vec![refused(request, &error)])?;
    let broken = || trace.broken().map(|broken| damaged(request, broken));
    if let Some(head) = trace.exec() {
        let (analysis, sources) = (request.analysis, sources(&trace)?);
        let replayed = exec::replay(&trace, analysis, &request.command, &sources, progress, broken);
        let mut report =
            replayed.map_err(|exec::Foreign| vec![other_version(request, &head.tool, &head.command)])?;
        settle(request, &mut report);
        report.notes.extend(head.notes.iter().map(Diagnostic::remark));
        let ExecHead { races, strict, .. } = *head;
        return Ok(Replayed { report, ending: Some(Ending { races, strict, status: trace.status() }) });
    }
    let mut report = match trace.run() {
        Some((head, module)) if !module.is_empty() => play(request, &trace, head, module, parts, progress)?,
        _ => Report::default(),
    };
    report.incomplete.extend(broken());
    settle(request, &mut report);
    Ok(Replayed { report, ending: None })
}

/// What counts.
fn settle(request: &ReplayRequest, report: &mut Report) {
    report.judge(&request.policy);
    report.notes.extend(hints::sources(&report.findings));
}

fn text(path: &str, text: &str) -> Result<SourceFile, Vec<Diagnostic>> {
    SourceFile::new(path, text).map_err(|error| vec![Diagnostic::error(error.to_string())])
}

/// The sources that a trace has.
fn sources(trace: &Trace) -> Result<Sources, Vec<Diagnostic>> {
    let mut files = Vec::new();
    for source in trace.sources() {
        files.push((source.name.clone(), text(&source.path, &source.text)?));
    }
    Ok(Sources::of(files))
}

fn play(
    request: &ReplayRequest,
    trace: &Trace,
    head: &Head,
    module: &str,
    parts: &dyn Parts,
    progress: &dyn Progress,
) -> Result<Report, Vec<Diagnostic>> {
    let source = text(&head.file, module)?;
    let module = super::parse(&source)?;
    let sites = Arc::new(SiteTable::new(&module));
    let backend = ["emu", "gpu"].into_iter().find(|name| *name == head.backend);
    let Some(backend) = backend.filter(|_| sites_digest(&sites) == head.sites) else {
        return Err(vec![other_version(request, &head.tool, &head.command)]);
    };
    let sources = sources(trace)?;
    let plan = plan(head);
    let program = Program { source: &source, module: &module, sites: &sites };
    let (sources, plan, sites, analysis) = (&sources, &plan, &sites, request.analysis);
    let job = Job { program, sites, plan, sources, parts, progress, analysis, writer: None };

    let seeds = trace.seeds();
    progress.begin(seeds.len() as u64);
    let seed = |number: u64| seeds.get(number as usize).copied().unwrap_or(head.seed);
    let open = || Ok(Box::new(Player::new(trace, backend)) as Box<dyn Backend + '_>);
    let ran = match seeds.as_slice() {
        [] => Ok(All::default()),
        [only] => {
            let options = RunOptions { seed: *only, ..RunOptions::default() };
            job.one(&mut Player::new(trace, backend), &options).map(|one| All::alone(one, *only))
        }
        all => {
            let schedules = Schedules { count: all.len() as u64, seed: &seed, open: &open };
            job.many(&RunOptions::default(), &schedules, None)
        }
    };
    progress.end();
    let all = tell::settled(ran, &job)?;
    let mut report = tell::report(&all, &job, backend, &|_| request.command.clone());
    report.notes = head.notes.iter().map(Diagnostic::remark).collect();
    Ok(report)
}

/// What was launched, as far as reports need it.
fn plan(head: &Head) -> Plan {
    let buffer = |name: &String| Buffer {
        name: name.clone(),
        ty: ElementType::U8,
        contents: Vec::new(),
        unwritten: false,
        owner: Owner::Device,
    };
    let buffers = head.buffers.iter().map(buffer).collect();
    Plan { buffers, launches: head.launches.clone(), ..Plan::default() }
}

fn refused(request: &ReplayRequest, error: &TraceError) -> Diagnostic {
    let path = request.file.display();
    let diagnostic = Diagnostic::error(format!("`{path}` cannot be replayed: {error}"));
    match error {
        TraceError::Io(_) => diagnostic,
        TraceError::Foreign => diagnostic.help("give a file that `--record` has written"),
        TraceError::Version(version) if *version > VERSION => {
            diagnostic.help("take the ptxrace that recorded it, or a newer one")
        }
        TraceError::Version(_) => diagnostic.help("record it again"),
    }
}

fn other_version(request: &ReplayRequest, tool: &str, command: &str) -> Diagnostic {
    let path = request.file.display();
    let message = format!(
        "`{path}` cannot be replayed: ptxrace {tool} recorded it, which numbers instructions otherwise"
    );
    Diagnostic::error(message).help(format!("take ptxrace {tool}, or record it again: `{command}`"))
}

fn damaged(request: &ReplayRequest, broken: Break) -> Incomplete {
    let path = request.file.display();
    let detail = match broken {
        Break::CutOff(at) => format!("`{path}` is cut off after byte {at}"),
        Break::Damaged(at) => format!("`{path}` is damaged from byte {at} on"),
    };
    let diagnostic = Diagnostic::warning(format!("inconclusive: {detail}"))
        .note("what would have followed was not checked")
        .help("a trace is whole when the `ptxrace` that records it has ended by itself; record it again");
    Incomplete { reason: Reason::DamagedTrace, detail, diagnostic }
}
