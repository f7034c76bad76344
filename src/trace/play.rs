//! A backend that runs nothing: it delivers what a trace has.

use super::chunk::Kind;
use super::read::{Break, Chunk, Trace};
use super::units::gather;
use super::wire::Done;
use crate::abi::{Unit, records};
use crate::backend::{
    Backend, BackendError, LaunchEnd, LaunchInfo, Outcome, Plan, Program, RunOptions, Sink,
};

/// Plays the schedules of a trace by their seeds. What is damaged ends a schedule, and the trace knows.
pub struct Player<'t> {
    trace: &'t Trace,
    name: &'static str,
    stored: Vec<u8>,
    bytes: Vec<u8>,
    units: Vec<Unit>,
}

/// A schedule that is played.
#[derive(Default)]
struct Playing {
    /// A launch has begun and not ended.
    open: bool,
    /// Records of that launch so far.
    records: u64,
}

impl<'t> Player<'t> {
    /// Plays a trace that was made by the backend of this name.
    pub fn new(trace: &'t Trace, name: &'static str) -> Self {
        Self { trace, name, stored: Vec::new(), bytes: Vec::new(), units: Vec::new() }
    }

    /// Delivers a chunk; says how the schedule ended if this is its end.
    fn play(
        &mut self,
        chunk: &Chunk,
        playing: &mut Playing,
        plan: &Plan,
        sink: &mut dyn Sink,
    ) -> Result<Option<Done>, Break> {
        let damaged = Break::Damaged(chunk.at);
        self.trace.load(chunk, &mut self.stored, &mut self.bytes)?;
        match (chunk.header.kind, playing.open) {
            (Kind::Begin, false) => {
                let info: LaunchInfo = serde_json::from_slice(&self.bytes).map_err(|_| damaged)?;
                if info.index as usize >= plan.launches.len() {
                    return Err(damaged);
                }
                sink.begin(&info);
                *playing = Playing { open: true, records: 0 };
            }
            (Kind::Units, true) => {
                if !gather(&self.bytes, &mut self.units) {
                    return Err(damaged);
                }
                playing.records += count(&self.units);
                sink.records(&self.units);
            }
            (Kind::End, true) => {
                let end: LaunchEnd = serde_json::from_slice(&self.bytes).map_err(|_| damaged)?;
                sink.end(&end);
                playing.open = false;
            }
            (Kind::Done, _) => return serde_json::from_slice(&self.bytes).map(Some).map_err(|_| damaged),
            _ => return Err(damaged),
        }
        Ok(None)
    }
}

/// What a process has done.
#[derive(Debug)]
pub enum Played<'p> {
    /// Events, one after the other, as its writer has laid them out.
    Events(&'p [u8]),
    /// Records of the launch at hand, and how many.
    Records(&'p [Unit], u64),
}

impl Trace {
    /// Plays the process of this number. What is damaged ends it, and the trace knows; so does what `take` makes no sense of.
    pub fn process(&self, number: u64, mut take: impl FnMut(Played<'_>) -> bool) {
        let (mut stored, mut bytes, mut units) = (Vec::new(), Vec::new(), Vec::new());
        for chunk in self.chunks(number) {
            let mut play = || {
                let damaged = Break::Damaged(chunk.at);
                self.load(chunk, &mut stored, &mut bytes)?;
                let taken = match chunk.header.kind {
                    Kind::Units if gather(&bytes, &mut units) => take(Played::Records(&units, count(&units))),
                    Kind::Event => take(Played::Events(&bytes)),
                    _ => false,
                };
                if taken { Ok(()) } else { Err(damaged) }
            };
            if let Err(broken) = play() {
                self.break_at(broken);
                return;
            }
        }
    }
}

/// How many records there are, for a launch whose end does not say so.
fn count(units: &[Unit]) -> u64 {
    records(units).count() as u64
}

impl Backend for Player<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(
        &mut self,
        _program: Program<'_>,
        plan: &Plan,
        options: &RunOptions,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, BackendError> {
        let trace = self.trace;
        let mut playing = Playing::default();
        let mut done = None;
        let chunks = trace.chunks(options.seed);
        for chunk in chunks {
            // Nothing follows the end.
            let played = match done {
                Some(_) => Err(Break::Damaged(chunk.at)),
                None => self.play(chunk, &mut playing, plan, sink),
            };
            match played {
                Ok(end) => done = end,
                Err(broken) => {
                    trace.break_at(broken);
                    break;
                }
            }
        }
        if playing.open && done.is_none() {
            sink.end(&LaunchEnd { records: playing.records, ..LaunchEnd::default() });
        }
        let Some(Done { stop, failure }) = done else {
            trace.break_at(Break::Damaged(chunks.last().map_or(0, |chunk| chunk.at)));
            return Ok(Outcome::default());
        };
        match failure {
            Some(error) => Err(error),
            None => Ok(Outcome { stop, ..Outcome::default() }),
        }
    }
}
