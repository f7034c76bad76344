//! What the engine and the log are told of a program, whoever runs its kernels: modules, launches, copies, and the order that
//! streams, events and waiting give them. Nothing here reaches memory or a device.

mod copies;
mod graphs;
mod images;
mod launches;
mod order;
mod tensors;
mod textures;
mod values;

pub(crate) use copies::{Place, Rows, Timing, write};
pub(crate) use graphs::{Branches, Ended};
pub(crate) use images::{Found, HostMemory, file, find};
pub(crate) use order::{Caller, Stream, ThreadId};
pub(crate) use textures::{ArrayDescription, Reading, Resource, Textures};
pub(crate) use values::{BatchStep, Step, Value};

use std::sync::Arc;

use ptxrace::backend::Region;
use ptxrace::engine::Streams;
use ptxrace::instrument::SiteTable;
use ptxrace::ptx::ast::Module;
use ptxrace::session::exec::log::{Gap, Line, Writer};
use ptxrace::session::exec::{Counted, Observer, Wanted};
use ptxrace::span::SourceFile;
use rustc_hash::FxHashMap;

/// All that is known of a process.
pub(crate) struct Watch {
    observer: Observer<Option<Writer>>,
    /// The calls that led to memory are kept.
    backtraces: bool,
    streams: Streams,
    wanted: Counted,
    created: FxHashMap<u64, order::Created>,
    /// Default streams: of contexts, and of threads in them.
    legacy: FxHashMap<u64, Stream>,
    per_thread: FxHashMap<Caller, Stream>,
    events: FxHashMap<u64, order::Event>,
    graphs: graphs::Launches,
    pub(crate) textures: Textures,
    /// How often calls that make something were called, for its name.
    counts: FxHashMap<&'static str, u32>,
    tensors: tensors::Tensors,
    values: values::Values,
}

impl Watch {
    pub(crate) fn new(observer: Observer<Option<Writer>>, wanted: Wanted) -> Self {
        Self {
            observer,
            backtraces: false,
            streams: Streams::default(),
            wanted: Counted::new(wanted),
            created: FxHashMap::default(),
            legacy: FxHashMap::default(),
            per_thread: FxHashMap::default(),
            events: FxHashMap::default(),
            graphs: graphs::Launches::default(),
            textures: Textures::default(),
            counts: FxHashMap::default(),
            tensors: tensors::Tensors::default(),
            values: values::Values::default(),
        }
    }

    /// Keeps the calls that led to memory from now on.
    pub(crate) fn keep_backtraces(&mut self) {
        self.backtraces = true;
    }

    /// The program has made memory.
    pub(crate) fn made(&mut self, region: Region) {
        if self.backtraces {
            let line = Line::Backtrace { region: region.name.clone(), frames: crate::frames::frames() };
            self.observer.say(&line);
        }
        self.observer.say(&Line::Region(region));
    }

    pub(crate) fn say(&mut self, line: &Line) {
        self.observer.say(line);
    }

    pub(crate) fn flush(&mut self) {
        self.observer.flush();
    }

    /// Says why the run is not the whole truth, each reason once.
    pub(crate) fn gap(&mut self, kind: Gap, detail: String) {
        self.observer.gap(kind, detail);
    }

    /// The process ends.
    pub(crate) fn leave(&mut self) {
        self.observer.leave();
    }

    /// "cuMemAlloc #3"
    pub(crate) fn name(&mut self, call: &'static str) -> String {
        let count = self.counts.entry(call).or_insert(0);
        *count += 1;
        format!("{call} #{count}")
    }

    /// The number that the first site of the next module has.
    pub(crate) fn next_site(&self) -> u32 {
        self.observer.next_site()
    }

    /// A module was loaded. Gives its number in the log.
    pub(crate) fn module(&mut self, source: &SourceFile, sites: Arc<SiteTable>) -> usize {
        self.observer.module(source, sites)
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
