//! From what a process does to calls of the engine and lines of the log, and to the tape if there is one. It is the same while
//! the process runs and when its tape is replayed.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::event::Event;
use super::log::{Gap, Line, Lines};
use super::order::Steps;
use crate::abi::Unit;
use crate::backend::{Launch, LaunchEnd, LaunchInfo, Sink, Stop};
use crate::engine::{Analysis, HostAccess, OpenTriage, Ordered, Shortcomings};
use crate::explain::names::demangle;
use crate::finding::HOST_SITES;
use crate::instrument::{SiteId, SiteTable};
use crate::span::SourceFile;
use crate::trace::{ProcessTape, is_possible, sites_digest};

/// Has a process checked.
#[derive(Debug)]
pub struct Observer<L> {
    engine: OpenTriage,
    lines: L,
    tape: Option<Tape>,
    /// Names of calls that stand for operations of the host, in the order of their sites.
    calls: Vec<String>,
    /// Reasons that were given.
    given: FxHashSet<String>,
    shortcomings: Shortcomings,
}

#[derive(Debug)]
struct Tape {
    to: ProcessTape,
    steps: Steps,
}

impl<L: Lines> Observer<L> {
    /// Of a process that has done nothing yet.
    pub fn new(lines: L, analysis: Analysis) -> Self {
        let engine = if analysis.triage { OpenTriage::new() } else { OpenTriage::without() };
        Self {
            engine: engine.within(analysis.memory),
            lines,
            tape: None,
            calls: Vec::new(),
            given: FxHashSet::default(),
            shortcomings: Shortcomings::default(),
        }
    }

    /// The same, with a tape on which all is kept from now on.
    #[must_use]
    pub fn with(mut self, tape: io::Result<ProcessTape>) -> Self {
        match tape {
            Ok(to) => self.tape = Some(Tape { to, steps: Steps::default() }),
            Err(error) => self.unwritten(&error),
        }
        self
    }

    /// The log, when all is over.
    pub fn into_lines(self) -> L {
        self.lines
    }

    /// A line of the log that tells of no operation.
    pub fn say(&mut self, line: &Line) {
        self.keep(|_| Event::Line(Cow::Borrowed(line)));
        if let Line::Region(region) = line {
            self.engine.add_region(region);
        }
        self.lines.push(line);
    }

    /// Writes what there is.
    pub fn flush(&mut self) {
        let done = self.tape.as_mut().map_or(Ok(()), |tape| tape.to.flush());
        self.written(done);
        self.lines.flush();
    }

    /// Says why the run is not the whole truth, each reason once.
    pub fn gap(&mut self, kind: Gap, detail: String) {
        if self.given.insert(detail.clone()) {
            self.say(&Line::Incomplete { kind, detail });
            self.flush();
        }
    }

    /// The number that the first site of the next module has.
    pub fn next_site(&self) -> u32 {
        self.engine.next_site()
    }

    /// A module was loaded. Gives its number in the log.
    pub fn module(&mut self, source: &SourceFile, sites: Arc<SiteTable>) -> usize {
        let first_site = sites.first();
        self.keep(|_| Event::Module {
            path: source.path().to_string_lossy().into_owned(),
            text: Cow::Borrowed(source.text()),
            first_site,
            sites: sites_digest(&sites),
        });
        self.engine.add_module(sites);
        self.lines.module(source, first_site)
    }

    /// A launch of a kernel from the module of this number is given to a stream.
    pub fn launch(
        &mut self,
        launch: &Launch,
        order: Ordered,
        module: usize,
        checked: bool,
        test: Option<String>,
    ) {
        let index = order.index;
        self.keep(|steps| Event::Launch {
            launch: Cow::Borrowed(launch),
            step: steps.step(launch.stream, &order),
            module,
            checked,
            test: test.clone(),
        });
        self.lines.push(&Line::Launch {
            index,
            module,
            kernel: launch.kernel.clone(),
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            device: launch.device,
            stream: launch.stream,
            checked,
            test,
        });
        self.flush();
        if is_possible(launch) {
            self.engine.add_launch(launch, order);
        } else {
            // The driver will refuse it. There is nothing to compute with its shape.
            let never = Launch { grid: [1; 3], block: [1; 3], cluster: None, ..launch.clone() };
            self.engine.add_launch(&never, order);
        }
    }

    /// A launch is over, checked or not.
    pub fn over(&mut self, index: u32, end: LaunchEnd, stop: Option<Stop>) {
        self.keep(|_| Event::Over { index, end: Cow::Borrowed(&end), stop: Cow::Borrowed(&stop) });
        let shared = self.engine.shared_variables();
        self.lines.push(&Line::End { index, end, stop, shared });
        self.report(false);
    }

    /// An operation of the host in a stream.
    pub fn host(&mut self, call: &str, accesses: &[HostAccess], order: Ordered, stream: u32) {
        self.keep(|steps| Event::Host {
            call: Cow::Borrowed(call),
            stream,
            accesses: Cow::Borrowed(accesses),
            step: steps.step(stream, &order),
        });
        let kind = self.calls.iter().position(|other| other == call).unwrap_or_else(|| {
            self.calls.push(call.to_owned());
            self.calls.len() - 1
        });
        let site = SiteId(HOST_SITES.0.saturating_add(u32::try_from(kind).unwrap_or(u32::MAX)));
        self.lines.push(&Line::Host { index: order.index, call: call.to_owned(), stream });
        self.engine.host_operation(site, accesses, order);
        self.report(false);
    }

    /// The process ends in an orderly way: the final counts are known.
    pub fn leave(&mut self) {
        self.keep(|_| Event::Left);
        self.report(true);
    }

    /// Writes what was found since the last time; with `changes`, the final counts.
    fn report(&mut self, changes: bool) {
        for (number, finding) in self.engine.news(changes) {
            self.lines.push(&Line::Finding { number, finding });
        }
        let now = self.engine.shortcomings();
        let before = std::mem::replace(&mut self.shortcomings, now);
        if now.degraded > 0 && before.degraded == 0 {
            self.found_wanting(
                Gap::Degraded,
                "strong operations have no order that explains their values".into(),
            );
        }
        if now.lost > 0 && before.lost == 0 {
            self.found_wanting(Gap::Degraded, "writes of words with very many writers were forgotten".into());
        }
        if now.unchecked > 0 && before.unchecked == 0 {
            self.found_wanting(Gap::Memory, "the rest of a launch was not checked".into());
        }
        if let Some(damage) = now.damaged {
            self.found_wanting(Gap::Degraded, format!("records are damaged: {damage}"));
        }
        for (site, why) in self.engine.unresolved() {
            let kernel = demangle(&site.function).short;
            self.found_wanting(Gap::Instruction, format!("`{}` in `{kernel}`: {why}", site.opcode));
        }
        self.flush();
    }

    /// What the engine could not do, which it will say again of a tape.
    fn found_wanting(&mut self, kind: Gap, detail: String) {
        if self.given.insert(detail.clone()) {
            self.lines.push(&Line::Incomplete { kind, detail });
        }
    }

    /// Keeps an event, if there is a tape.
    fn keep<'e>(&mut self, event: impl FnOnce(&mut Steps) -> Event<'e>) {
        if let Some(Tape { to, steps }) = &mut self.tape {
            let done = to.event(&event(steps));
            self.written(done);
        }
    }

    fn written(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.unwritten(&error);
        }
    }

    /// The tape ends; the program goes on, and its log tells.
    fn unwritten(&mut self, error: &io::Error) {
        self.tape = None;
        self.lines.push(&Line::Unrecorded { why: error.to_string() });
        self.lines.flush();
    }
}

/// The records of a launch that is checked.
impl<L: Lines> Sink for Observer<L> {
    fn begin(&mut self, info: &LaunchInfo) {
        self.keep(|_| Event::Begin(Cow::Borrowed(info)));
        self.engine.begin(info);
    }

    fn records(&mut self, units: &[Unit]) {
        let done = self.tape.as_mut().map_or(Ok(()), |tape| tape.to.records(units));
        self.written(done);
        self.engine.records(units);
    }

    fn end(&mut self, end: &LaunchEnd) {
        self.keep(|_| Event::Ended(Cow::Borrowed(end)));
        self.engine.end(end);
    }
}
