//! What the engine and the log are told of a program, whoever runs its kernels: modules, launches, copies, and the order that
//! streams, events and waiting give them. Nothing here reaches memory or a device.

mod copies;
mod images;
mod launches;
mod order;

pub(crate) use copies::{Place, Rows, Timing, write};
pub(crate) use images::{Found, HostMemory, file, find};
pub(crate) use order::{Stream, ThreadId};

use std::path::PathBuf;
use std::sync::Arc;

use ptxrace::engine::{OpenTriage, Streams};
use ptxrace::instrument::SiteTable;
use ptxrace::ptx::ast::Module;
use ptxrace::session::exec::log::{Gap, Line, Writer};
use ptxrace::session::exec::{Counted, Wanted};
use ptxrace::span::SourceFile;
use rustc_hash::{FxHashMap, FxHashSet};

/// All that is known of a process.
pub(crate) struct Watch {
    engine: OpenTriage,
    streams: Streams,
    log: Option<Writer>,
    wanted: Counted,
    created: FxHashMap<u64, order::Created>,
    per_thread: FxHashMap<ThreadId, Stream>,
    events: FxHashMap<u64, order::Event>,
    /// How often calls that make something were called, for its name.
    counts: FxHashMap<&'static str, u32>,
    /// Names of calls that stand for operations, in the order of their sites.
    calls: Vec<&'static str>,
    /// Reasons that were given.
    wanting: FxHashSet<String>,
    shortcomings: (u64, u64),
}

impl Watch {
    pub(crate) fn new(log: Option<Writer>, wanted: Wanted) -> Self {
        Self {
            engine: OpenTriage::new(),
            streams: Streams::default(),
            log,
            wanted: Counted::new(wanted),
            created: FxHashMap::default(),
            per_thread: FxHashMap::default(),
            events: FxHashMap::default(),
            counts: FxHashMap::default(),
            calls: Vec::new(),
            wanting: FxHashSet::default(),
            shortcomings: (0, 0),
        }
    }

    pub(crate) fn say(&mut self, line: &Line) {
        if let Some(log) = &mut self.log {
            log.push(line);
        }
    }

    pub(crate) fn flush(&mut self) {
        // Where logs cannot be written, the program goes on; the report will lack what they would have said.
        if let Some(log) = &mut self.log {
            let _ = log.flush();
        }
    }

    /// Says why the run is not the whole truth, each reason once.
    pub(crate) fn gap(&mut self, kind: Gap, detail: String) {
        if self.wanting.insert(detail.clone()) {
            self.say(&Line::Incomplete { kind, detail });
            self.flush();
        }
    }

    /// Writes what was found since the last time; with `changes`, the final counts.
    pub(crate) fn report(&mut self, changes: bool) {
        for (number, finding) in self.engine.news(changes) {
            self.say(&Line::Finding { number, finding });
        }
        let (degraded, lost, damaged) = self.engine.shortcomings();
        if degraded > 0 && self.shortcomings.0 == 0 {
            self.gap(Gap::Degraded, "strong operations have no order that explains their values".into());
        }
        if lost > 0 && self.shortcomings.1 == 0 {
            self.gap(Gap::Degraded, "writes of words with very many writers were forgotten".into());
        }
        if let Some(damage) = damaged {
            self.gap(Gap::Degraded, format!("records are damaged: {damage}"));
        }
        self.shortcomings = (degraded, lost);
        self.flush();
    }

    /// "cuMemAlloc #3"
    pub(crate) fn name(&mut self, call: &'static str) -> String {
        let count = self.counts.entry(call).or_insert(0);
        *count += 1;
        format!("{call} #{count}")
    }

    /// The number that the first site of the next module has.
    pub(crate) fn next_site(&self) -> u32 {
        self.engine.next_site()
    }

    /// A module was loaded. Gives its number in the log.
    pub(crate) fn module(&mut self, source: &SourceFile, sites: Arc<SiteTable>, first_site: u32) -> usize {
        self.engine.add_module(sites);
        let path = PathBuf::from(source.path());
        match &mut self.log {
            Some(log) => log.module(path, source.text(), first_site).unwrap_or(usize::MAX),
            None => 0,
        }
    }

    /// Parses a module, or says why it cannot be used.
    pub(crate) fn parse<'s>(&mut self, source: &'s SourceFile) -> Option<Module<'s>> {
        match ptxrace::session::parse(source) {
            Ok(module) => Some(module),
            Err(errors) => {
                let first = errors.first().map_or("", |error| error.message.as_str());
                self.gap(Gap::Call, format!("module `{}` was refused: {first}", source.path().display()));
                None
            }
        }
    }
}
