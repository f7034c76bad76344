//! The order of what a host program gives to a device: launches, copies and the like in streams, events, and what the host
//! has waited for.
//!
//! Each stream has a clock, which says how many operations of every stream come before what is enqueued next; so has the
//! host, and an event keeps one. Each context has a legacy default stream of its own. All threads of the host share one clock: how they wait for each other is not seen, and to
//! take the order of their calls for order may miss races and invents none.

use std::collections::VecDeque;

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u32);

impl StreamId {
    /// The legacy default stream of the first context, which waits for all its blocking streams, as they wait for it.
    pub const LEGACY: Self = Self(0);
}

/// How many operations of each stream are known; of those missing, none.
type Clock = Vec<u32>;

/// What an event has recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment(Clock);

impl Moment {
    /// Keeps what comes before another as well.
    pub fn meet(&mut self, other: &Self) {
        self.0.truncate(other.0.len());
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own = (*own).min(*other));
    }
}

/// An operation's place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// Its number: operations count from 0.
    pub index: u32,
    /// Earlier operations that may not have ended when it starts, sorted.
    pub open: Vec<u32>,
    /// Those before this number have ended for whatever is enqueued from now on.
    pub oldest: u32,
}

#[derive(Debug)]
struct Line {
    clock: Clock,
    /// Operations that the host knows to have ended.
    ended: u32,
    /// Numbers of the others.
    open: VecDeque<u32>,
    blocking: bool,
    in_use: bool,
    /// The legacy stream of its context.
    legacy: StreamId,
}

/// All streams of a process.
#[derive(Debug)]
pub struct Streams {
    lines: Vec<Line>,
    host: Clock,
    /// What streams that are made from now on come after, too.
    met: Clock,
    next: u32,
}

impl Default for Streams {
    fn default() -> Self {
        let mut streams = Self { lines: Vec::new(), host: Clock::new(), met: Clock::new(), next: 0 };
        streams.create(true);
        streams
    }
}

fn join(own: &mut Clock, other: &Clock) {
    if own.len() < other.len() {
        own.resize(other.len(), 0);
    }
    own.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
}

fn known(clock: &Clock, line: usize) -> u32 {
    clock.get(line).copied().unwrap_or(0)
}

impl Streams {
    /// A new stream of the first context. One that is not blocking does not wait for the legacy default stream.
    pub fn create(&mut self, blocking: bool) -> StreamId {
        self.create_in(StreamId::LEGACY, blocking)
    }

    /// The legacy default stream of another context.
    pub fn create_legacy(&mut self) -> StreamId {
        let own = self.create(true);
        if let Some(line) = self.lines.get_mut(own.0 as usize) {
            line.legacy = own;
        }
        own
    }

    /// A new stream in the context of another one.
    pub fn create_beside(&mut self, stream: StreamId, blocking: bool) -> StreamId {
        let legacy = self.lines.get(stream.0 as usize).map_or(StreamId::LEGACY, |line| line.legacy);
        self.create_in(legacy, blocking)
    }

    fn create_in(&mut self, legacy: StreamId, blocking: bool) -> StreamId {
        let (clock, open) = (self.met.clone(), VecDeque::new());
        let fresh = Line { clock, ended: 0, open, blocking, in_use: true, legacy };
        // A stream that is gone, and of which nothing is left to wait for, hands its place on.
        match self.lines.iter().position(|line| !line.in_use && line.open.is_empty()) {
            Some(at) => {
                let line = &mut self.lines[at];
                *line = Line { ended: line.ended, ..fresh };
                StreamId(at as u32)
            }
            None => {
                self.lines.push(fresh);
                StreamId((self.lines.len() - 1) as u32)
            }
        }
    }

    /// A stream is gone; what it was given still runs.
    pub fn destroy(&mut self, stream: StreamId) {
        if let Some(line) = self.lines.get_mut(stream.0 as usize)
            && stream != line.legacy
        {
            line.in_use = false;
        }
    }

    /// A context is gone; what its streams were given still runs.
    pub fn end_context(&mut self, legacy: StreamId) {
        let lines = self.lines.iter_mut().filter(|line| line.legacy == legacy);
        lines.for_each(|line| line.in_use = false);
    }

    /// Whether this is the legacy default stream of a context.
    pub fn is_legacy(&self, stream: StreamId) -> bool {
        self.lines.get(stream.0 as usize).is_some_and(|line| line.legacy == stream)
    }

    /// What comes before the next operation of a stream.
    fn before(&self, stream: StreamId) -> Clock {
        let Some(line) = self.lines.get(stream.0 as usize) else { return self.host.clone() };
        let mut clock = line.clock.clone();
        join(&mut clock, &self.host);
        if stream == line.legacy {
            let beside = self.lines.iter().filter(|other| other.blocking && other.legacy == stream);
            beside.for_each(|line| join(&mut clock, &line.clock));
        } else if line.blocking
            && let Some(legacy) = self.lines.get(line.legacy.0 as usize)
        {
            join(&mut clock, &legacy.clock);
        }
        clock
    }

    /// An operation is given to a stream.
    pub fn enqueue(&mut self, stream: StreamId) -> Ordered {
        let mut clock = self.before(stream);
        let mut open = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let after = known(&clock, at).saturating_sub(line.ended) as usize;
            open.extend(line.open.iter().skip(after));
        }
        open.sort_unstable();
        let index = self.next;
        self.next += 1;
        let at = stream.0 as usize;
        if let Some(line) = self.lines.get_mut(at) {
            line.open.push_back(index);
            if clock.len() <= at {
                clock.resize(at + 1, 0);
            }
            clock[at] = line.ended + line.open.len() as u32;
            line.clock = clock;
        }
        let oldest = self.lines.iter().filter_map(|line| line.open.front()).min().copied();
        Ordered { index, open, oldest: oldest.unwrap_or(index) }
    }

    /// The number of the next operation.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// An event is recorded in a stream.
    pub fn record(&self, stream: StreamId) -> Moment {
        Moment(self.before(stream))
    }

    /// A stream waits for an event.
    pub fn wait(&mut self, stream: StreamId, event: &Moment) {
        let mut clock = self.before(stream);
        join(&mut clock, &event.0);
        if let Some(line) = self.lines.get_mut(stream.0 as usize) {
            line.clock = clock;
        }
    }

    /// The host has waited for an event.
    pub fn host_waits(&mut self, event: &Moment) {
        join(&mut self.host, &event.0);
        for (at, line) in self.lines.iter_mut().enumerate() {
            let more = known(&self.host, at).saturating_sub(line.ended) as usize;
            line.open.drain(..more.min(line.open.len()));
            line.ended += more as u32;
        }
    }

    /// The host has waited for a stream.
    pub fn synchronize(&mut self, stream: StreamId) {
        self.host_waits(&self.record(stream));
    }

    /// The host has waited for all of the context of this stream.
    pub fn synchronize_context(&mut self, of: StreamId) {
        let mut all = Clock::new();
        let legacy = self.lines.get(of.0 as usize).map(|line| line.legacy);
        let lines = self.lines.iter().filter(|line| Some(line.legacy) == legacy);
        lines.for_each(|line| join(&mut all, &line.clock));
        self.host_waits(&Moment(all));
    }

    /// The host has waited for everything.
    pub fn synchronize_all(&mut self) {
        let all = self.all();
        self.host_waits(&all);
    }

    /// All that was given to any stream.
    pub fn all(&self) -> Moment {
        let mut all = Clock::new();
        self.lines.iter().for_each(|line| join(&mut all, &line.clock));
        Moment(all)
    }

    /// What any stream is given next comes after this, also where it is made later.
    pub fn all_wait(&mut self, event: &Moment) {
        join(&mut self.met, &event.0);
        self.lines.iter_mut().for_each(|line| join(&mut line.clock, &event.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(streams: &mut Streams, stream: StreamId) -> Vec<u32> {
        streams.enqueue(stream).open
    }

    #[test]
    fn streams_are_unordered_until_an_event_or_the_host_orders_them() {
        let mut streams = Streams::default();
        let (a, b) = (streams.create(false), streams.create(false));
        assert_eq!(open(&mut streams, a), [0u32; 0]);
        assert_eq!(open(&mut streams, b), [0]);
        let event = streams.record(a);
        assert_eq!(open(&mut streams, a), [1]);
        streams.wait(b, &event);
        // Operation 0 is before the event, operation 2 is not.
        assert_eq!(open(&mut streams, b), [2]);
        streams.synchronize(a);
        let next = streams.enqueue(b);
        assert_eq!((next.open, next.oldest), (vec![0u32; 0], 1));
        streams.synchronize_all();
        let next = streams.enqueue(a);
        assert_eq!((next.index, next.open, next.oldest), (5, vec![], 5));
    }

    #[test]
    fn the_legacy_stream_waits_for_blocking_streams_and_they_for_it() {
        let mut streams = Streams::default();
        let (blocking, free) = (streams.create(true), streams.create(false));
        assert_eq!(open(&mut streams, blocking), [0u32; 0]);
        assert_eq!(open(&mut streams, free), [0]);
        assert_eq!(open(&mut streams, StreamId::LEGACY), [1]);
        assert_eq!(open(&mut streams, blocking), [1]);
        assert_eq!(open(&mut streams, free), [0, 2, 3]);
    }

    #[test]
    fn each_context_has_its_legacy_stream() {
        let mut streams = Streams::default();
        let (own, other) = (streams.create(true), streams.create_legacy());
        let beside = streams.create_beside(other, true);
        assert_eq!(open(&mut streams, own), [0u32; 0]);
        assert_eq!(open(&mut streams, other), [0]);
        assert_eq!(open(&mut streams, beside), [0]);
        assert_eq!(open(&mut streams, StreamId::LEGACY), [1, 2]);
        streams.synchronize_context(beside);
        assert_eq!(open(&mut streams, other), [0, 3]);
        let all = streams.all();
        streams.wait(other, &all);
        assert_eq!(open(&mut streams, other), [0u32; 0]);
        streams.all_wait(&streams.record(other));
        assert_eq!(open(&mut streams, own), [0u32; 0]);
        let later = streams.create_beside(other, false);
        assert_eq!(open(&mut streams, later), [6]);
        // It stays as long as its context, and what is destroyed is another's.
        streams.destroy(other);
        assert_ne!(streams.create(false), other);
    }

    #[test]
    fn order_goes_through_events_of_third_streams() {
        let mut streams = Streams::default();
        let all: Vec<_> = (0..3).map(|_| streams.create(false)).collect();
        streams.enqueue(all[0]);
        let first = streams.record(all[0]);
        streams.wait(all[1], &first);
        let second = streams.record(all[1]);
        streams.wait(all[2], &second);
        assert_eq!(open(&mut streams, all[2]), [0u32; 0]);
    }

    #[test]
    fn the_place_of_a_stream_that_is_gone_is_used_again_once_its_work_is_over() {
        let mut streams = Streams::default();
        let gone = streams.create(false);
        streams.enqueue(gone);
        streams.destroy(gone);
        let other = streams.create(false);
        assert_ne!(other, gone);
        assert_eq!(open(&mut streams, other), [0]);
        streams.synchronize_all();
        let again = streams.create(false);
        assert_eq!(again, gone);
        assert_eq!(open(&mut streams, again), [0u32; 0]);
        assert_eq!(open(&mut streams, other), [2]);
    }
}
