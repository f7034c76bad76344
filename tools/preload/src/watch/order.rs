//! Streams, events and waiting.

use std::time::Instant;

use ptxrace::engine::{Moment, StreamId};

use super::Watch;
use crate::code::{Answer, Code};

/// A thread of the program, by a number.
pub(crate) type ThreadId = u64;

/// Who makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Caller {
    pub(crate) thread: ThreadId,
    /// Its current context, or 0.
    pub(crate) context: u64,
}

/// A stream, as resolved from a handle.
pub(crate) type Stream = StreamId;

/// The handles that stand for default streams.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

/// A stream that the program made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Created {
    id: StreamId,
    flags: u32,
    priority: i32,
}

/// An event.
#[derive(Debug)]
pub(super) struct Event {
    recorded: Option<(Moment, Instant)>,
    timed: bool,
}

const NON_BLOCKING: u32 = 1;
const DISABLE_TIMING: u32 = 2;

impl Watch {
    /// The stream of a handle. For calls of per-thread variants, none is the stream of the thread.
    pub(crate) fn stream(&mut self, handle: u64, per_thread: bool, caller: Caller) -> Answer<Stream> {
        match handle {
            0 if !per_thread => Ok(self.legacy(caller.context)),
            LEGACY => Ok(self.legacy(caller.context)),
            0 | PER_THREAD => {
                if let Some(stream) = self.per_thread.get(&caller) {
                    return Ok(*stream);
                }
                let legacy = self.legacy(caller.context);
                let stream = self.streams.create_beside(legacy, true);
                self.per_thread.insert(caller, stream);
                Ok(stream)
            }
            _ => self.created.get(&handle).map(|created| created.id).ok_or(Code::INVALID_HANDLE),
        }
    }

    /// The legacy default stream of a context.
    fn legacy(&mut self, context: u64) -> Stream {
        if let Some(stream) = self.legacy.get(&context) {
            return *stream;
        }
        let stream = if self.legacy.is_empty() { StreamId::LEGACY } else { self.streams.create_legacy() };
        self.legacy.insert(context, stream);
        stream
    }

    /// The program has made a stream in a context.
    pub(crate) fn create_stream(&mut self, handle: u64, flags: u32, priority: i32, context: u64) {
        let legacy = self.legacy(context);
        let id = self.streams.create_beside(legacy, flags & NON_BLOCKING == 0);
        self.created.insert(handle, Created { id, flags, priority });
    }

    pub(crate) fn destroy_stream(&mut self, handle: u64) -> Answer {
        let created = self.created.remove(&handle).ok_or(Code::INVALID_HANDLE)?;
        self.streams.destroy(created.id);
        Ok(())
    }

    /// Whether this is the legacy default stream of a context.
    pub(crate) fn is_legacy(&self, stream: Stream) -> bool {
        self.streams.is_legacy(stream)
    }

    /// Flags and priority.
    pub(crate) fn stream_facts(&self, handle: u64) -> Answer<(u32, i32)> {
        match handle {
            0..=PER_THREAD => Ok((0, 0)),
            _ => self.created.get(&handle).map(|c| (c.flags, c.priority)).ok_or(Code::INVALID_HANDLE),
        }
    }

    /// The host waits for a stream, or finds that it is idle.
    pub(crate) fn synchronize(&mut self, stream: Stream) {
        self.streams.synchronize(stream);
    }

    /// The host waits for all of a context.
    pub(crate) fn synchronize_context(&mut self, context: u64) {
        let legacy = self.legacy(context);
        self.streams.synchronize_context(legacy);
    }

    /// A context is gone, after all that it was given.
    pub(crate) fn end_context(&mut self, context: u64) {
        self.streams.synchronize_all();
        if let Some(stream) = self.legacy.remove(&context)
            && stream != StreamId::LEGACY
        {
            self.streams.end_context(stream);
            self.per_thread.retain(|caller, _| caller.context != context);
        }
    }

    /// The host waits for everything.
    pub(crate) fn synchronize_all(&mut self) {
        self.streams.synchronize_all();
    }

    /// The program has made an event.
    pub(crate) fn create_event(&mut self, handle: u64, flags: u32) {
        self.events.insert(handle, Event { recorded: None, timed: flags & DISABLE_TIMING == 0 });
    }

    pub(crate) fn destroy_event(&mut self, handle: u64) -> Answer {
        self.events.remove(&handle).map(|_| ()).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn record(&mut self, event: u64, stream: Stream) -> Answer {
        let moment = self.streams.record(stream);
        let event = self.events.get_mut(&event).ok_or(Code::INVALID_HANDLE)?;
        event.recorded = Some((moment, Instant::now()));
        Ok(())
    }

    pub(crate) fn wait(&mut self, stream: Stream, event: u64) -> Answer {
        let event = self.events.get(&event).ok_or(Code::INVALID_HANDLE)?;
        if let Some((moment, _)) = &event.recorded {
            self.streams.wait(stream, moment);
        }
        Ok(())
    }

    /// The host waits for an event, or finds that it has come.
    pub(crate) fn wait_for(&mut self, event: u64) -> Answer {
        let event = self.events.get(&event).ok_or(Code::INVALID_HANDLE)?;
        if let Some((moment, _)) = &event.recorded {
            self.streams.host_waits(moment);
        }
        Ok(())
    }

    /// What comes before the next operation of a stream.
    pub(crate) fn moment(&self, stream: Stream) -> Moment {
        self.streams.record(stream)
    }

    /// The host knows that this has come.
    pub(crate) fn reached(&mut self, moment: &Moment) {
        self.streams.host_waits(moment);
    }

    /// Milliseconds between two events.
    pub(crate) fn elapsed(&self, start: u64, end: u64) -> Answer<f32> {
        let at = |event| {
            let event = self.events.get(&event).filter(|event| event.timed).ok_or(Code::INVALID_HANDLE)?;
            event.recorded.as_ref().map(|(_, at)| *at).ok_or(Code::INVALID_HANDLE)
        };
        Ok(at(end)?.saturating_duration_since(at(start)?).as_secs_f32() * 1000.0)
    }
}
