//! Launches of graphs: two nodes without a path of edges between them are as unordered as what two streams are given. So each
//! chain of nodes is given to a stream of its own for the time of a launch, and edges are waited for.

use ptxrace::engine::Moment;

use super::{Stream, Watch};

/// A launch of a graph.
pub(crate) struct Branches {
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
        Branches { stream, start, chains: Vec::new(), behind: Vec::new() }
    }

    /// The stream that stands for the branch of the next step, which comes after some earlier ones.
    pub(crate) fn branch(&mut self, branches: &mut Branches, after: &[usize]) -> Stream {
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
    }

    /// All steps are over, of which these come last. What the stream is given next comes after them. Gives how it ended.
    pub(crate) fn end_graph(&mut self, branches: Branches, last: impl Iterator<Item = usize>) -> Moment {
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
