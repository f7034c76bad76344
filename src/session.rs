//! The wiring: from a PTX file and what the user asked for to a report. Everything else is told what it needs.

pub mod exec;
mod hints;
mod incomplete;
pub mod launch;
mod linked;
mod record;
mod replay;
mod run;
mod schedules;
mod tell;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::backend::{Backend, BackendError, Plan, Program, Region, Sink};
use crate::diag::Diagnostic;
use crate::engine::Analysis;
pub use crate::explain::Policy;
use crate::finding::Finding;
use crate::instrument::{SiteId, SiteTable};
use crate::ptx;
use crate::ptx::ast::Module;
use crate::span::{SourceError, SourceFile, Span};
pub use linked::Linked;
pub use replay::{ReplayRequest, Replayed, replay, replay_bytes};
pub use run::{Choice, FinalBuffer, Finished, Request, run};

/// The pieces a session puts together. `Linked` is those of this build; tests have others.
pub trait Parts: Sync {
    /// The GPU backend, if there is a usable device.
    fn gpu(&self) -> Result<Box<dyn Backend>, BackendError>;
    /// The name of that device.
    fn gpu_name(&self) -> Result<String, BackendError>;
    /// An emulator. Every worker thread makes its own.
    fn emulator(&self) -> Result<Box<dyn Backend>, BackendError>;
    /// A fresh engine for one run of a plan.
    fn detector(&self, sites: &Arc<SiteTable>, plan: &Plan, analysis: Analysis) -> Box<dyn Detector>;
    /// The instrumented text of a program.
    fn instrument(&self, program: Program<'_>) -> Result<String, Box<Diagnostic>>;
}

/// Takes the records of a run and says what it found.
pub trait Detector: Sink {
    /// The findings, once the run is over.
    fn finish(self: Box<Self>) -> Observed;
}

/// What an engine saw.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Findings in a fixed order.
    pub findings: Vec<Finding>,
    /// Shared variables of each launch of the plan. Bases are offsets in the block's window, tagged or not.
    pub shared: Vec<Vec<Region>>,
    /// Why the order of synchronisation could not be replayed, one sentence each.
    pub degraded: Vec<String>,
    /// Records that were not looked at because the memory for it was used up.
    pub unchecked: u64,
    /// Instructions of which it is not known what they touch, and why.
    pub unresolved: Vec<(SiteId, String)>,
}

/// Reads a PTX file. Zero bytes at its end, as fatbins have them, are cut off.
pub fn read(path: &Path) -> Result<SourceFile, Diagnostic> {
    let refuse = |error: SourceError| {
        let help = match &error {
            SourceError::NotText { .. } => {
                if let Some(foreign) = head(path).and_then(|head| ptx::foreign(&head)) {
                    return not_ptx(path, foreign);
                }
                "PTX is ASCII text, as `nvcc -ptx` writes it"
            }
            _ => "give the path of a PTX file",
        };
        Diagnostic::error(error.to_string()).help(help)
    };
    let file = SourceFile::read(path).map_err(refuse)?;
    match file.text().trim_end_matches('\0') {
        text if text.len() < file.text().len() => SourceFile::new(path, text).map_err(refuse),
        _ => Ok(file),
    }
}

/// The first bytes of a file.
fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    std::fs::File::open(path).ok()?.take(1 << 16).read_to_end(&mut head).ok()?;
    Some(head)
}

/// Parses a module, or says everything that is wrong with it.
pub fn parse(source: &SourceFile) -> Result<Module<'_>, Vec<Diagnostic>> {
    if let Some(foreign) = ptx::foreign(source.text().as_bytes()) {
        return Err(vec![not_ptx(source.path(), foreign)]);
    }
    let parsed = ptx::parse(source.text());
    let mut errors: Vec<_> = parsed.errors.iter().map(|error| syntax_error(source, error)).collect();
    if parsed.more_errors > 0 {
        let (more, path) = (parsed.more_errors, source.path().display());
        errors.push(Diagnostic::error(format!("{more} more syntax errors in `{path}`")));
    }
    if errors.is_empty() {
        errors.extend(header_error(source, &parsed.module));
    }
    if errors.is_empty() {
        errors.extend(ptx::check_names(&parsed.module).iter().map(|error| name_error(source, error)));
    }
    if errors.is_empty() { Ok(parsed.module) } else { Err(errors) }
}

fn not_ptx(path: &Path, foreign: ptx::Foreign) -> Diagnostic {
    let (path, what) = (path.display(), foreign.what);
    Diagnostic::error(format!("`{path}` is no PTX, but {what}")).help(foreign.help)
}

fn syntax_error(source: &SourceFile, error: &ptx::SyntaxError) -> Diagnostic {
    let context = if error.context.is_empty() { String::new() } else { format!(" in {}", error.context) };
    let message = format!("syntax error{context}: expected {}, found {}", error.expected, error.found);
    let diagnostic =
        Diagnostic::error(message).at(source, error.span, format!("expected {}", error.expected));
    further(source, diagnostic, error.related, error.help.as_deref())
}

fn name_error(source: &SourceFile, error: &ptx::NameError) -> Diagnostic {
    let diagnostic = Diagnostic::error(error.to_string()).at(source, error.span, error.label);
    further(source, diagnostic, error.related, error.help.as_deref())
}

fn further(
    source: &SourceFile,
    mut diagnostic: Diagnostic,
    related: Option<(Span, &'static str)>,
    help: Option<&str>,
) -> Diagnostic {
    if let Some((at, why)) = related {
        diagnostic = diagnostic.at(source, at, why);
    }
    match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// What a module must begin with.
fn header_error(source: &SourceFile, module: &Module<'_>) -> Option<Diagnostic> {
    let path = source.path().display();
    if source.text().trim().is_empty() {
        let error = Diagnostic::error(format!("`{path}` is empty")).at(
            source,
            Span::default(),
            "expected `.version`",
        );
        return Some(error.help("a PTX module begins with lines such as `.version 8.0`"));
    }
    let first = Span::at(source.text().len() - source.text().trim_start().len());
    for (name, like) in [(".version", ".version 8.0"), (".target", ".target sm_80")] {
        if module.directive(name).is_none() {
            return Some(
                Diagnostic::error(format!("`{path}` has no `{name}` directive"))
                    .at(source, first, format!("expected `{name}`"))
                    .help(format!("a PTX module begins with lines such as `{like}`")),
            );
        }
    }
    let size = module.directive(".address_size").filter(|size| size.args.text.trim() == "32")?;
    let error = Diagnostic::error(format!("`{path}` has 32-bit addresses")).at(
        source,
        size.span,
        "only 64 is supported",
    );
    Some(error.help("compile for 64 bits"))
}

#[cfg(test)]
mod tests;
