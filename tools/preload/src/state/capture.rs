//! Streams that are captured: what they are given becomes nodes of a graph. Events carry a capture from one stream to another.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::{Driver, Stream};
use crate::code::{Answer, Code};
use crate::graph::{Item, Work};

/// A place in a capture: which one, and the nodes that the next one comes after.
#[derive(Clone, Debug)]
struct Place {
    capture: u64,
    after: Vec<u64>,
}

#[derive(Debug)]
struct Capture {
    graph: u64,
    /// The stream that it began in, and ends in.
    origin: Stream,
}

/// All captures that have not ended.
#[derive(Debug, Default)]
pub(super) struct Captures {
    all: FxHashMap<u64, Capture>,
    streams: FxHashMap<Stream, Place>,
    events: FxHashMap<u64, Place>,
    /// The last number.
    count: u64,
}

/// What a program asks of a stream that is captured.
pub(crate) struct Captured {
    pub(crate) id: u64,
    pub(crate) graph: u64,
    /// Nodes that the next one comes after: where they lie until the stream is given more, and how many.
    pub(crate) after: (usize, usize),
}

impl Driver {
    pub(crate) fn is_capturing(&self, stream: Stream) -> bool {
        self.captures.streams.contains_key(&stream)
    }

    pub(crate) fn captured(&self, stream: Stream) -> Option<Captured> {
        let place = self.captures.streams.get(&stream)?;
        let graph = self.captures.all.get(&place.capture)?.graph;
        let after = (place.after.as_ptr() as usize, place.after.len());
        Some(Captured { id: place.capture, graph, after })
    }

    /// The host may not wait for what is only captured.
    pub(crate) fn not_captured(&self, stream: Stream) -> Answer {
        if self.is_capturing(stream) { Err(Code::CAPTURE_UNSUPPORTED) } else { Ok(()) }
    }

    /// The same of an event.
    pub(crate) fn event_not_captured(&self, event: u64) -> Answer {
        if self.captures.events.contains_key(&event) { Err(Code::CAPTURED_EVENT) } else { Ok(()) }
    }

    pub(crate) fn begin_capture(&mut self, stream: Stream) -> Answer {
        if self.watch.is_legacy(stream) {
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        if self.is_capturing(stream) {
            return Err(Code::ILLEGAL_STATE);
        }
        let graph = self.create_graph();
        self.captures.count += 1;
        let capture = self.captures.count;
        self.captures.all.insert(capture, Capture { graph, origin: stream });
        self.captures.streams.insert(stream, Place { capture, after: Vec::new() });
        Ok(())
    }

    /// A captured stream is given something.
    pub(crate) fn capture(&mut self, stream: Stream, work: Work) -> Answer {
        let place = self.captures.streams.get(&stream).ok_or(Code::ILLEGAL_STATE)?.clone();
        let graph = self.captures.all.get(&place.capture).ok_or(Code::ILLEGAL_STATE)?.graph;
        let node = self.add_node(graph, &place.after, Item::Work(work))?;
        self.captures.streams.insert(stream, Place { after: vec![node], ..place });
        Ok(())
    }

    pub(crate) fn record(&mut self, event: u64, stream: Stream) -> Answer {
        match self.captures.streams.get(&stream) {
            Some(place) => {
                self.captures.events.insert(event, place.clone());
                Ok(())
            }
            None => {
                self.captures.events.remove(&event);
                self.watch.record(event, stream)
            }
        }
    }

    pub(crate) fn wait(&mut self, stream: Stream, event: u64) -> Answer {
        let Captures { streams, events, .. } = &mut self.captures;
        match (streams.get_mut(&stream), events.get(&event)) {
            (None, None) => self.watch.wait(stream, event),
            (None, Some(_)) if self.watch.is_legacy(stream) => Err(Code::CAPTURE_IMPLICIT),
            (None, Some(place)) => {
                streams.insert(stream, place.clone());
                Ok(())
            }
            (Some(own), Some(place)) if own.capture == place.capture => {
                let more: Vec<_> = place.after.iter().filter(|node| !own.after.contains(node)).collect();
                own.after.extend(more);
                Ok(())
            }
            (Some(_), _) => Err(Code::CAPTURE_ISOLATION),
        }
    }

    /// Ends the capture that began in a stream. Gives its graph.
    pub(crate) fn end_capture(&mut self, stream: Stream) -> Answer<u64> {
        let place = self.captures.streams.get(&stream).ok_or(Code::ILLEGAL_STATE)?.clone();
        let capture = self.captures.all.get(&place.capture).ok_or(Code::ILLEGAL_STATE)?;
        if capture.origin != stream {
            return Err(Code::CAPTURE_UNMATCHED);
        }
        let graph = capture.graph;
        let joined = self.with_all_before(&place.after);
        let of_this = |other: &&Place| other.capture == place.capture;
        let is_joined = |other: &Place| other.after.iter().all(|node| joined.contains(node));
        let all_joined = self.captures.streams.values().filter(of_this).all(is_joined);
        self.captures.streams.retain(|_, other| other.capture != place.capture);
        self.captures.events.retain(|_, other| other.capture != place.capture);
        self.captures.all.remove(&place.capture);
        if !all_joined {
            self.destroy_graph(graph)?;
            return Err(Code::CAPTURE_UNJOINED);
        }
        Ok(graph)
    }

    /// Nodes, and all that come before them.
    fn with_all_before(&self, nodes: &[u64]) -> BTreeSet<u64> {
        let (mut all, mut open) = (BTreeSet::new(), nodes.to_vec());
        while let Some(node) = open.pop() {
            if all.insert(node) {
                open.extend(self.nodes_before(node));
            }
        }
        all
    }
}
