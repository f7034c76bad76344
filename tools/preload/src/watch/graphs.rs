//! Launches of graphs: two nodes without a path of edges between them are as unordered as what two streams are given. So each
//! chain of nodes is given to a stream of its own for the time of a launch, and edges are waited for.

use ptxrace::engine::Moment;

use super::{Stream, Watch};

/// Launches of graphs.
#[derive(Debug, Default)]
pub(super) struct Launches {
    count: u32,
    /// Which one the node at hand is of, and the stream that the graph was given to.
    at_hand: Option<(u32, Stream)>,
}

impl Launches {
    pub(super) fn number(&self) -> Option<u32> {
        self.at_hand.map(|(number, _)| number)
    }

    pub(super) fn given_to(&self) -> Option<Stream> {
        self.at_hand.map(|(_, stream)| stream)
    }
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
}

impl Watch {
    /// A graph is launched; `previous` is how its last launch ended, which this one waits for.
    pub(crate) fn begin_graph(&mut self, stream: Stream, previous: Option<&Moment>) -> Branches {
        if let Some(previous) = previous {
            self.streams.wait(stream, previous);
        }
        let start = self.streams.record(stream);
        let number = self.graphs.count;
        self.graphs.count += 1;
        Branches { number, stream, start, chains: Vec::new(), behind: Vec::new() }
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
                    false => self.streams.create(false),
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

    /// All steps that were begun are over, of which these come last. What the stream is given next comes after them. Gives how it ended.
    pub(crate) fn end_graph(&mut self, branches: Branches, last: impl Iterator<Item = usize>) -> Moment {
        self.graphs.at_hand = None;
        for moment in last.filter_map(|step| branches.behind.get(step)) {
            self.streams.wait(branches.stream, moment);
        }
        for (stream, _) in &branches.chains {
            if *stream != branches.stream {
                self.streams.destroy(*stream);
            }
        }
        self.streams.record(branches.stream)
    }
}
