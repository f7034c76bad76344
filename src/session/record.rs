//! `--record`: a trace is begun with all that is known before the run.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

use super::schedules::Job;
use crate::diag::Diagnostic;
use crate::explain::{Sources, frames};
use crate::instrument::SiteTable;
use crate::trace::{Head, MOST_LAUNCHES, Text, Writer, sites_digest};

/// Begins the trace of a run, in this file.
pub(super) fn begin(
    path: &Path,
    job: &Job<'_>,
    backend: &str,
    command: String,
    seed: u64,
    notes: &[Diagnostic],
) -> Result<Writer, Diagnostic> {
    let launches = &job.plan.launches;
    if launches.len() > MOST_LAUNCHES {
        let message = format!("a trace cannot have {} launches", launches.len());
        return Err(Diagnostic::error(message).help(format!("at most {MOST_LAUNCHES} are possible")));
    }
    let head = Head {
        tool: env!("CARGO_PKG_VERSION").into(),
        file: job.program.source.path().to_string_lossy().into_owned(),
        sites: sites_digest(job.sites),
        backend: backend.into(),
        command,
        seed,
        buffers: job.plan.buffers.iter().map(|buffer| buffer.name.clone()).collect(),
        launches: launches.clone(),
        notes: notes.iter().map(|note| note.message.clone()).collect(),
    };
    let file = File::create(path).map_err(|error| unwritten(path, &error))?;
    let sources = texts(named(job.sites).collect(), job.sources);
    let begun = Writer::new(Box::new(file), &head, job.program.source.text(), sources);
    begun.map_err(|error| unwritten(path, &error))
}

pub(super) fn unwritten(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error(format!("cannot write `{}`: {error}", path.display()))
}

/// The sources that a module's lines name.
pub(super) fn named(sites: &SiteTable) -> impl Iterator<Item = String> {
    let logged = sites.sites().iter().filter_map(|site| site.loc.as_deref());
    let unlogged = sites.unlogged().iter().filter_map(|unlogged| unlogged.loc.as_deref());
    logged.chain(unlogged).flat_map(frames).map(|frame| frame.file)
}

/// Their texts, of those that are found.
pub(super) fn texts(names: BTreeSet<String>, sources: &Sources) -> impl Iterator<Item = Text> {
    names.into_iter().filter_map(|name| {
        let file = sources.file(&name)?;
        Some(Text { name, path: file.path().to_string_lossy().into_owned(), text: file.text().to_owned() })
    })
}
