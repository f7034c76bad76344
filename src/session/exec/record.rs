//! `exec --record`: the trace of a program, made of the tapes of its processes. Those lie beside it until the program has ended.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Logs;
use super::log::TAPE;
use super::merge;
use crate::diag::Diagnostic;
use crate::explain::Search;
use crate::session::record::unwritten;
use crate::trace::{ExecHead, Writer};

/// A trace that is being made.
pub struct Recording {
    path: PathBuf,
    writer: Writer,
    tapes: TempDir,
}

impl Recording {
    /// Begins a trace in this file.
    pub fn begin(path: &Path, head: &ExecHead) -> Result<Self, Diagnostic> {
        let begin = || {
            let writer = Writer::exec(Box::new(File::create(path)?), head)?;
            let folder = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
            // The program may change its folder.
            let tapes = tempfile::Builder::new().prefix(".ptxrace-").tempdir_in(folder.canonicalize()?)?;
            Ok(Self { path: path.to_owned(), writer, tapes })
        };
        begin().map_err(|error| unwritten(path, &error))
    }

    /// Where the tapes go.
    pub fn tapes(&self) -> &Path {
        self.tapes.path()
    }

    /// Nothing was run that could have been recorded.
    pub fn discard(self) {
        if self.path.is_file() {
            // What stays says of itself that it was cut off.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Makes the trace of what the program has left, which ended with this status.
    pub fn finish(self, logs: &Logs, search: &Search, status: u8) -> Result<(), Diagnostic> {
        let Self { path, writer, tapes } = self;
        let gathered = gather(&writer, tapes.path(), logs, search);
        let refused = |error: &io::Error| unwritten(&path, error);
        // Without its end, a trace is one that was cut off.
        if let Some((why, process)) = logs.unrecorded() {
            return Err(refused(&io::Error::other(why)).note(format!("in {process}")));
        }
        let processes = gathered.map_err(|error| refused(&error))?;
        writer.finish(processes, Some(status)).map_err(|error| refused(&error))
    }
}

/// Puts sources and tapes into the trace. Gives the number of processes.
fn gather(writer: &Writer, tapes: &Path, logs: &Logs, search: &Search) -> io::Result<u64> {
    logs.sources(&merge::sources(search)).iter().for_each(|source| writer.source(source));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(tapes)? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == TAPE));
    paths.sort();
    let mut processes = 0;
    for path in paths {
        processes += u64::from(writer.append(&File::open(&path)?)?);
        // Both need not have room at once.
        std::fs::remove_file(&path)?;
    }
    Ok(processes)
}
