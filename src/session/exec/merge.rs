//! From the logs of all processes, or what their tapes gave, to one report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::log::{self, EXTENSION, Frame, Gap, Line, Lines};
use crate::backend::{Launch, LaunchEnd, Plan, Program, Region, Stop};
use crate::diag::{Diagnostic, quoted};
use crate::explain::names::demangle;
use crate::explain::{self, Context, Memory, Search, Sources};
use crate::finding::{Finding, Missing};
use crate::instrument::SiteTable;
use crate::ptx;
use crate::report::{Incomplete, LaunchFacts, Reason, Report};
use crate::session::Policy;
use crate::session::hints;
use crate::session::incomplete::{MEMORY_HELP, Why};
use crate::session::record;
use crate::session::schedules::distinct;
use crate::span::SourceFile;
use crate::trace::Text;

/// What all processes have left behind.
#[derive(Default)]
pub struct Logs {
    processes: Vec<Process>,
}

impl Logs {
    /// Reads all logs in a folder.
    pub fn read(folder: &Path) -> Result<Self, Diagnostic> {
        read(folder).map(|processes| Self { processes })
    }

    /// Of these processes, in their order.
    pub(super) fn of(processes: Vec<Process>) -> Self {
        Self { processes }
    }

    /// Why the tape of a process could not be written, and which process that is.
    pub(super) fn unrecorded(&self) -> Option<(&str, &str)> {
        self.processes
            .iter()
            .find_map(|process| Some((process.unrecorded.as_deref()?, process.name.as_str())))
    }

    /// The sources that reports may show.
    pub(super) fn sources(&self, sources: &Sources) -> Vec<Text> {
        let mut names = BTreeSet::new();
        for (source, first) in self.processes.iter().flat_map(|process| &process.modules) {
            names.extend(record::named(&SiteTable::numbered(&ptx::parse(source.text()).module, *first)));
        }
        record::texts(names, sources).collect()
    }

    /// The report, before anybody says what counts. `command` shows the findings again; `incomplete` is known beforehand.
    pub(super) fn report(self, sources: &Sources, command: &str, incomplete: Vec<Incomplete>) -> Report {
        let Self { processes } = self;
        let several = processes.iter().filter(|process| process.has_launches()).count() > 1;
        let launches =
            processes.iter().flat_map(|process| &process.operations).filter(|o| o.module.is_some());
        let (all, unchecked) = launches.fold((0, 0), |(all, un), o| (all + 1, un + u64::from(!o.checked)));
        let unwanted: BTreeSet<String> =
            processes.iter().flat_map(|process| process.unwanted.clone()).collect();
        let no_process = processes.is_empty();
        let mut merged = Merged::default();
        merged.report.incomplete = incomplete;
        for process in processes {
            merged.add(process, sources, command, several);
        }
        let mut report = merged.report;
        if all == unchecked && report.incomplete.is_empty() {
            let nothing = all == 0 && unwanted.is_empty();
            report.incomplete.push(if nothing { no_launch(no_process) } else { none_checked(all) });
        } else if unchecked > 0 {
            let message = format!("{unchecked} of {all} launches were not checked, as the command line asks");
            report.notes.push(Diagnostic::remark(message));
        }
        if !unwanted.is_empty() {
            let names = unwanted.iter().map(|kernel| demangle(kernel).short);
            let list = quoted(names, 5);
            let message = format!("not instrumented, and not checked, as the command line asks: {list}");
            report.notes.push(Diagnostic::remark(message));
        }
        report.incomplete = distinct(report.incomplete);
        report
    }
}

/// Where sources are looked for: modules name them by the folder that the compiler was run in.
pub(super) fn sources(search: &Search) -> Sources {
    Sources::beside(Path::new("")).with(search)
}

/// Makes the report of all processes. `command` shows the findings again.
pub fn merge(logs: Logs, policy: &Policy, search: &Search, command: &str) -> Report {
    let mut report = logs.report(&sources(search), command, Vec::new());
    report.judge(policy);
    report.notes.extend(hints::sources(&report.findings));
    report
}

fn read(folder: &Path) -> Result<Vec<Process>, Diagnostic> {
    let cannot = |path: &Path, error: std::io::Error| {
        Diagnostic::error(format!("cannot read `{}`: {error}", path.display()))
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| cannot(folder, error))? {
        let path = entry.map_err(|error| cannot(folder, error))?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            paths.push(path);
        }
    }
    paths.sort();
    let mut processes = Vec::new();
    for path in &paths {
        let (lines, bad) = log::read(path).map_err(|error| cannot(path, error))?;
        processes.push(Process::read(folder, lines, bad)?);
    }
    Ok(processes)
}

fn incomplete(reason: Reason, detail: String, help: Option<&str>) -> Incomplete {
    let diagnostic = Diagnostic::warning(format!("inconclusive: {detail}"));
    let diagnostic = match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    };
    Incomplete { reason, detail, diagnostic }
}

fn none_checked(all: u64) -> Incomplete {
    let detail = match all {
        0 => "no launch was checked".into(),
        _ => format!("none of {all} launches was checked"),
    };
    let help = "`--kernel` fits no kernel that was launched, or `--max-launches` is 0";
    incomplete(Reason::NoLaunch, detail, Some(help))
}

fn no_launch(no_process: bool) -> Incomplete {
    let detail = if no_process { "no process used the CUDA driver" } else { "no kernel was launched" };
    let help = "programs that use the CUDA runtime, as nvcc makes them, do not run on the emulator yet; those that are linked statically, or load the driver by its version (`libcuda.so.580.65.06`), are not seen";
    incomplete(Reason::NoLaunch, detail.into(), Some(help))
}

/// A launch or operation of the host, as logged.
struct Operation {
    /// `None` for the host.
    module: Option<usize>,
    checked: bool,
    launch: Launch,
    graph: Option<u32>,
    test: Option<String>,
    end: Option<(LaunchEnd, Option<Stop>)>,
    shared: Vec<Region>,
}

/// What a process has left behind.
#[derive(Default)]
pub(super) struct Process {
    name: String,
    backend: &'static str,
    modules: Vec<(SourceFile, u32)>,
    operations: Vec<Operation>,
    regions: Vec<Region>,
    /// By the names of regions, the calls that led to their making.
    backtraces: BTreeMap<String, Vec<String>>,
    /// By number; with how many regions there were.
    findings: BTreeMap<u32, (Finding, usize)>,
    /// Kernels that were not instrumented, and that nobody wants checked.
    unwanted: Vec<String>,
    incomplete: Vec<Incomplete>,
    /// Why its tape is not whole.
    unrecorded: Option<String>,
}

fn launch(kernel: String, grid: [u32; 3], block: [u32; 3], cluster: Option<[u32; 3]>, stream: u32) -> Launch {
    Launch { kernel, grid, block, cluster, shared: 0, device: 0, stream, after: Vec::new(), args: Vec::new() }
}

impl Process {
    fn read(folder: &Path, lines: Vec<Line>, bad: usize) -> Result<Self, Diagnostic> {
        let mut process = Self::default();
        if bad > 0 {
            let detail = format!("{bad} lines of a log could not be read");
            process.incomplete.push(incomplete(Reason::DroppedRecords, detail, None));
        }
        for line in lines {
            match line {
                Line::Process { version, .. } if version != env!("CARGO_PKG_VERSION") => {
                    return Err(Diagnostic::error(format!("the wrapper has version {version}"))
                        .help("take `ptxrace` and its wrapper from one build"));
                }
                Line::Module { path, text, first_site } => {
                    let refuse =
                        |error: String| Diagnostic::error(format!("cannot read a module's text: {error}"));
                    let text =
                        std::fs::read_to_string(folder.join(text)).map_err(|e| refuse(e.to_string()))?;
                    let source = SourceFile::new(path, text).map_err(|e| refuse(e.to_string()))?;
                    process.modules.push((source, first_site));
                }
                line => process.line(line),
            }
        }
        Ok(process)
    }

    fn has_launches(&self) -> bool {
        self.operations.iter().any(|operation| operation.module.is_some())
    }

    fn line(&mut self, line: Line) {
        match line {
            Line::Process { pid, version: _, backend, command } => {
                self.backend = if backend == "gpu" { "gpu" } else { "emu" };
                self.name = format!("process {pid}, `{}`", command.join(" "));
            }
            // It comes with its text.
            Line::Module { .. } => {}
            Line::Region(region) => self.regions.push(region),
            Line::Backtrace { region, frames } => {
                self.backtraces.insert(region, frames.iter().map(Frame::text).collect());
            }
            Line::Launch { module, kernel, grid, block, cluster, device, stream, checked, test, .. } => {
                let launch = Launch { device, ..launch(kernel, grid, block, cluster, stream) };
                self.operations.push(Operation {
                    module: Some(module),
                    checked,
                    launch,
                    graph: None,
                    test,
                    end: None,
                    shared: Vec::new(),
                });
            }
            Line::Host { call, stream, .. } => {
                let launch = launch(call, [1; 3], [1; 3], None, stream);
                self.operations.push(Operation {
                    module: None,
                    checked: true,
                    launch,
                    graph: None,
                    test: None,
                    end: None,
                    shared: Vec::new(),
                });
            }
            Line::Node { index, graph, stream } => {
                if let Some(operation) = self.operations.get_mut(index as usize) {
                    operation.graph = Some(graph);
                    operation.launch.stream = stream;
                }
            }
            Line::End { index, end, stop, shared } => {
                if let Some(operation) = self.operations.get_mut(index as usize) {
                    operation.end = Some((end, stop));
                    operation.shared = shared;
                }
            }
            Line::Finding { number, finding } => {
                self.findings.insert(number, (finding, self.regions.len()));
            }
            Line::Unwanted { kernel } => self.unwanted.push(kernel),
            Line::Incomplete { kind, detail } => {
                let (reason, help) = match kind {
                    Gap::Call => (Reason::UnsupportedCall, None),
                    Gap::Degraded => (Reason::DegradedOrder, None),
                    Gap::Instruction => (Reason::UnknownInstruction, None),
                    Gap::Memory => (Reason::MemoryLimit, Some(MEMORY_HELP)),
                    Gap::Opaque => (
                        Reason::OpaqueKernel,
                        Some(
                            "build it with `NVCC_APPEND_FLAGS=\"-gencode arch=compute_90,code=compute_90\"`, so that it has PTX",
                        ),
                    ),
                };
                self.incomplete.push(incomplete(reason, detail, help));
            }
            Line::Unrecorded { why } => self.unrecorded = Some(why),
        }
    }
}

impl Lines for Process {
    fn push(&mut self, line: &Line) {
        self.line(line.clone());
    }

    fn module(&mut self, source: &SourceFile, first_site: u32) -> usize {
        self.modules.push((source.clone(), first_site));
        self.modules.len() - 1
    }

    fn flush(&mut self) {}
}

/// Moves a finding's threads to the numbers that launches have in the report.
fn shift(finding: &mut Finding, base: u32) {
    finding.witnesses.iter_mut().for_each(|witness| witness.thread.launch += base);
    finding.spots.iter_mut().flat_map(|spot| &mut spot.threads).for_each(|thread| thread.launch += base);
    if let Missing::Apart { flag_write, flag_read, .. } | Missing::Publication { flag_write, flag_read, .. } =
        &mut finding.missing
    {
        flag_write.thread.launch += base;
        flag_read.thread.launch += base;
    }
}

#[derive(Default)]
struct Merged {
    plan: Plan,
    report: Report,
}

impl Merged {
    fn add(&mut self, process: Process, sources: &Sources, command: &str, several: bool) {
        let Process { name, backend, modules, operations, regions, backtraces, findings, incomplete, .. } =
            process;
        let base = u32::try_from(self.plan.launches.len()).unwrap_or(u32::MAX);
        self.report.incomplete.extend(incomplete);
        let parsed: Vec<_> = modules.iter().map(|(source, _)| ptx::parse(source.text()).module).collect();
        let sites: Vec<_> = parsed
            .iter()
            .zip(&modules)
            .map(|(module, (_, first))| SiteTable::numbered(module, *first))
            .collect();
        let programs: Vec<_> = modules
            .iter()
            .zip(&parsed)
            .zip(&sites)
            .map(|(((source, _), module), sites)| Program { source, module, sites })
            .collect();
        let mut memory = vec![Memory::default(); self.plan.launches.len()];
        let mut ends = Vec::new();
        let mut tests = vec![None; self.plan.launches.len()];
        let mut graphs = vec![None; self.plan.launches.len()];
        for Operation { module, checked, launch, graph, test, end, shared } in operations {
            memory.push(Memory { global: Vec::new(), shared });
            ends.push((module.filter(|_| checked), end));
            tests.push(test);
            graphs.push(graph);
            self.plan.launches.push(launch);
        }
        for (index, (module, end)) in (base..).zip(ends) {
            let Some(module) = module else { continue };
            let Some(launch) = self.plan.launches.get(index as usize) else { continue };
            let (records, dropped) = end.as_ref().map_or((0, 0), |(end, _)| (end.records, end.dropped));
            self.report.launches.push(LaunchFacts {
                id: index,
                kernel: launch.kernel.clone(),
                grid: launch.grid,
                block: launch.block,
                device: launch.device,
                stream: launch.stream,
                backend,
                records,
                dropped,
                test: tests.get(index as usize).cloned().flatten(),
            });
            let Some(program) = programs.get(module).copied() else { continue };
            let why = Why { program, plan: &self.plan, sources };
            match &end {
                Some((end, stop)) => {
                    self.report.incomplete.extend(why.end(index, end, stop.as_ref()));
                    self.report.incomplete.extend(stop.iter().map(|stop| why.stop(stop)));
                }
                None => {
                    let detail = format!("{name} ended during launch #{index}");
                    self.report.incomplete.push(self::incomplete(Reason::Fault, detail, None));
                }
            }
        }
        for (mut finding, known) in findings.into_values() {
            shift(&mut finding, base);
            let context = Context {
                programs: &programs,
                plan: &self.plan,
                graphs: &graphs,
                memory: &memory,
                regions: regions.get(..known).unwrap_or(&regions),
                sources,
                replay: command,
                schedules: None,
            };
            let mut explained = explain::explain(&finding, &context);
            let test = tests.get(explained.launch as usize).cloned().flatten();
            let whose =
                test.map(|test| format!("test `{test}`")).into_iter().chain(several.then(|| name.clone()));
            let made = explained.object.as_mut().and_then(|object| {
                object.allocated.clone_from(backtraces.get(&object.name)?);
                Some(format!("`{}` was allocated in {}", object.name, object.allocated.join(", called by ")))
            });
            // The replay command stays the last note.
            let at = explained.diagnostic.notes.len().saturating_sub(1);
            explained.diagnostic.notes.splice(at..at, made.into_iter().chain(whose));
            self.report.findings.push(explained);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::Writer;
    use super::*;
    use crate::report::Verdict;

    fn merged(lines: &[Line]) -> Report {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Writer::create(folder.path(), 1).unwrap();
        lines.iter().for_each(|line| log.push(line));
        log.flush();
        let logs = Logs::read(folder.path()).unwrap();
        merge(logs, &Policy::default(), &Search::default(), "again")
    }

    #[test]
    fn kernels_without_instrumentation_count_unless_they_are_unwanted() {
        let fill = Line::Unwanted { kernel: "_Z4fillPi".into() };
        let opaque =
            Line::Incomplete { kind: Gap::Opaque, detail: "kernel `copy` was not instrumented".into() };
        let reasons = |report: &Report| report.incomplete.iter().map(|why| why.reason).collect::<Vec<_>>();
        let report = merged(&[fill.clone(), fill.clone(), opaque]);
        assert_eq!(reasons(&report), [Reason::OpaqueKernel]);
        let notes: Vec<_> = report.notes.iter().map(|note| note.message.as_str()).collect();
        assert_eq!(notes, ["not instrumented, and not checked, as the command line asks: `fill`"]);
        // With nothing else, nothing was checked.
        let report = merged(&[fill]);
        assert_eq!((report.verdict, reasons(&report)), (Verdict::Inconclusive, vec![Reason::NoLaunch]));
    }
}
