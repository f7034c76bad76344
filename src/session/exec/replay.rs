//! The trace of a program, replayed: each process is observed once more, by its tape.

use std::path::Path;
use std::sync::Arc;

use super::event::Event;
use super::log::{Line, Lines};
use super::merge::{Logs, Process};
use super::observer::Observer;
use super::order::Steps;
use crate::backend::{LaunchEnd, Sink};
use crate::engine::Analysis;
use crate::explain::Sources;
use crate::instrument::SiteTable;
use crate::ptx;
use crate::report::{Incomplete, Progress, Report};
use crate::span::SourceFile;
use crate::trace::{Played, Trace, is_possible, sites_digest};

/// Sites of a module are numbers that another version of ptxrace gave.
#[derive(Debug)]
pub(in crate::session) struct Foreign;

/// Checks the processes of a trace again. `damaged` tells of a break that is known when all have been played.
pub(in crate::session) fn replay(
    trace: &Trace,
    analysis: Analysis,
    command: &str,
    sources: &Sources,
    progress: &dyn Progress,
    damaged: impl FnOnce() -> Option<Incomplete>,
) -> Result<Report, Foreign> {
    let mut processes = Vec::new();
    progress.begin(trace.processes().count() as u64);
    for number in trace.processes() {
        let mut tape = Tape {
            observer: Observer::new(Process::default(), analysis),
            steps: Steps::default(),
            operations: 0,
            last: None,
            open: None,
            foreign: false,
        };
        trace.process(number, |played| match played {
            Played::Events(events) => tape.events(events),
            Played::Records(units, count) => {
                progress.checked(size_of_val(units) as u64);
                tape.records(units, count)
            }
        });
        if tape.foreign {
            progress.end();
            return Err(Foreign);
        }
        if trace.broken().is_some() {
            tape.cut_off();
        }
        processes.push(tape.observer.into_lines());
        progress.schedule();
    }
    progress.end();
    Ok(Logs::of(processes).report(sources, command, damaged().into_iter().collect()))
}

/// A process as its tape is played. What is played is made sense of here, as far as others rely on it.
struct Tape<L> {
    observer: Observer<L>,
    steps: Steps,
    /// Launches and operations of the host so far.
    operations: u32,
    /// The launch that was given to a stream last, if it may begin.
    last: Option<u32>,
    /// The launch that has begun and not ended, and its records.
    open: Option<(u32, u64)>,
    foreign: bool,
}

impl<L: Lines> Tape<L> {
    /// Whether all of these make sense.
    fn events(&mut self, events: &[u8]) -> bool {
        serde_json::Deserializer::from_slice(events)
            .into_iter::<Event<'_>>()
            .all(|event| event.is_ok_and(|event| self.event(event).is_some()))
    }

    fn records(&mut self, units: &[crate::abi::Unit], count: u64) -> bool {
        let Some((_, records)) = &mut self.open else { return false };
        *records += count;
        self.observer.records(units);
        true
    }

    fn event(&mut self, event: Event<'_>) -> Option<()> {
        match event {
            Event::Line(line) => self.line(&line)?,
            Event::Module { path, text, first_site, sites } => {
                self.module(&path, &text, first_site, sites)?;
            }
            Event::Launch { launch, step, module, checked, test } => {
                let order = self.steps.order(launch.stream, &step, self.operations)?;
                self.last = (checked && is_possible(&launch)).then_some(order.index);
                self.operations = self.operations.checked_add(1)?;
                self.observer.launch(&launch, order, module, checked, test);
            }
            Event::Begin(info) => {
                self.last.filter(|index| *index == info.index)?;
                self.open = Some((info.index, 0));
                self.observer.begin(&info);
            }
            Event::Ended(end) => {
                self.open.take()?;
                self.observer.end(&end);
            }
            Event::Over { index, end, stop } => {
                self.observer.over(index, end.into_owned(), stop.into_owned());
            }
            Event::Host { call, stream, accesses, step } => {
                let order = self.steps.order(stream, &step, self.operations)?;
                self.last = None;
                self.operations = self.operations.checked_add(1)?;
                self.observer.host(&call, &accesses, order, stream);
            }
            Event::Left => self.observer.leave(),
        }
        Some(())
    }

    fn line(&mut self, line: &Line) -> Option<()> {
        match line {
            // Those are made of other events.
            Line::Module { .. }
            | Line::Launch { .. }
            | Line::End { .. }
            | Line::Host { .. }
            | Line::Finding { .. }
            | Line::Unrecorded { .. } => return None,
            Line::Incomplete { kind, detail } => self.observer.gap(*kind, detail.clone()),
            line => self.observer.say(line),
        }
        Some(())
    }

    fn module(&mut self, path: &str, text: &str, first_site: u32, sites: u32) -> Option<()> {
        if first_site != self.observer.next_site() {
            return None;
        }
        let source = SourceFile::new(Path::new(path), text).ok()?;
        let module = ptx::parse(source.text()).module;
        let table = SiteTable::numbered(&module, first_site);
        if sites_digest(&table) != sites {
            self.foreign = true;
            return None;
        }
        self.observer.module(&source, Arc::new(table));
        Some(())
    }

    /// The trace breaks off: what is known until here is reported.
    fn cut_off(&mut self) {
        if let Some((index, records)) = self.open.take() {
            let end = LaunchEnd { records, ..LaunchEnd::default() };
            self.observer.end(&end);
            self.observer.over(index, end, None);
        }
        self.observer.leave();
    }
}
