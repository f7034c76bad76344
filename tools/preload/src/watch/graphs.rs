//! Launches of graphs: two nodes without a path of edges between them are as unordered as what two streams are given. So each
//! chain of nodes is given to a stream of its own for the time of a launch, and edges are waited for.

use ptxrace::engine::Moment;
use ptxrace::session::exec::log::Line;

use super::{Stream, Watch};

/// Launches of graphs.
#[derive(Debug, Default)]
pub(super) struct Launches {
    count: u32,
    /// Which one the node at hand is of, and the stream that the graph was given to.
    at_hand: Option<(u32, Stream)>,
}

/// How a graph ended when it was launched last, which its next launch waits for.
#[derive(Debug)]
pub(crate) struct Ended {
    moment: Moment,
    /// Streams of its branches, for those of the next launch.
    spare: Vec<Stream>,
}

/// A launch of a graph.
pub(crate) struct Branches {
    number: u32,
    /// The stream that the graph is given to.
    stream: Stream,
    /// What comes before all nodes.
    start: Moment,
    /// Streams, each with the step that it had last.
    chains: Vec<(Stream, usize)>,
    /// What is known behind each step.
    behind: Vec<Moment>,
    spare: Vec<Stream>,
}

impl Watch {
    /// A graph is launched, not for the first time if it has ended before.
    pub(crate) fn begin_graph(&mut self, stream: Stream, previous: Option<Ended>) -> Branches {
        let mut spare = Vec::new();
        if let Some(previous) = previous {
            self.streams.wait(stream, &previous.moment);
            spare = previous.spare;
        }
        let start = self.streams.record(stream);
        let number = self.graphs.count;
        self.graphs.count += 1;
        Branches { number, stream, start, chains: Vec::new(), behind: Vec::new(), spare }
    }

    /// The stream that stands for the branch of the next step, which comes after some earlier ones.
    pub(crate) fn branch(&mut self, branches: &mut Branches, after: &[usize]) -> Stream {
        self.graphs.at_hand = Some((branches.number, branches.stream));
        let step = branches.behind.len();
        let found = branches.chains.iter_mut().find(|(_, last)| after.contains(last));
        let stream = match found {
            Some((stream, last)) => {
                *last = step;
                *stream
            }
            None => {
                // A graph without branches needs no stream but its own.
                let stream = match branches.chains.is_empty() {
                    true => branches.stream,
                    false => branches
                        .spare
                        .pop()
                        .unwrap_or_else(|| self.streams.create_beside(branches.stream, false)),
                };
                branches.chains.push((stream, step));
                self.streams.wait(stream, &branches.start);
                stream
            }
        };
        for earlier in after {
            if let Some(moment) = branches.behind.get(*earlier) {
                self.streams.wait(stream, moment);
            }
        }
        stream
    }

    /// The step that was given to this stream is over.
    pub(crate) fn stepped(&mut self, branches: &mut Branches, stream: Stream) {
        branches.behind.push(self.streams.record(stream));
        self.graphs.at_hand = None;
    }

    /// An operation was begun, which may be what a node does.
    pub(super) fn begun(&mut self, index: u32) {
        if let Some((graph, stream)) = self.graphs.at_hand {
            self.say(&Line::Node { index, graph, stream: stream.0 });
        }
    }

    /// All steps that were begun are over, of which these come last. What the stream is given next comes after them.
    pub(crate) fn end_graph(&mut self, branches: Branches, last: impl Iterator<Item = usize>) -> Ended {
        self.graphs.at_hand = None;
        for moment in last.filter_map(|step| branches.behind.get(step)) {
            self.streams.wait(branches.stream, moment);
        }
        let made =
            branches.chains.iter().map(|(stream, _)| *stream).filter(|stream| *stream != branches.stream);
        let spare = made.chain(branches.spare.iter().copied()).collect();
        Ended { moment: self.streams.record(branches.stream), spare }
    }

    /// A graph is gone, or is launched in a way that is not followed.
    pub(crate) fn forget_graph(&mut self, ended: Ended) {
        ended.spare.into_iter().for_each(|stream| self.streams.destroy(stream));
    }
}
