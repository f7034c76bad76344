//! The order of operations as a tape has it: against that of the operation before it in its stream. A program that never waits
//! has ever more operations open.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::engine::Ordered;

/// An operation's place in the order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    index: u32,
    oldest: u32,
    /// What is open and was not, sorted.
    opened: Vec<u32>,
    /// What was open and is not any more, sorted.
    closed: Vec<u32>,
}

/// What was open when the last operation of each stream came.
#[derive(Debug, Default)]
pub(super) struct Steps(FxHashMap<u32, Vec<u32>>);

/// What is in the first list and not in the second; both are sorted.
fn without(list: &[u32], other: &[u32]) -> Vec<u32> {
    list.iter().filter(|number| other.binary_search(number).is_err()).copied().collect()
}

impl Steps {
    /// The next operation of a stream, for the tape.
    pub(super) fn step(&mut self, stream: u32, order: &Ordered) -> Step {
        let last = self.0.entry(stream).or_default();
        // Mostly the new list is the old one and a few more.
        let same = last.iter().zip(&order.open).take_while(|(a, b)| a == b).count();
        let new = order.open.get(same..).unwrap_or_default();
        let old = last.split_off(same);
        let (opened, closed) = (without(new, &old), without(&old, new));
        last.extend_from_slice(new);
        Step { index: order.index, oldest: order.oldest, opened, closed }
    }

    /// The same from the tape, for the operation that has to have this number. `None` if there is no such order.
    pub(super) fn order(&mut self, stream: u32, step: &Step, index: u32) -> Option<Ordered> {
        let last = self.0.entry(stream).or_default();
        let sorted = |list: &[u32]| list.is_sorted_by(|a, b| a < b);
        let sound = step.index == index
            && step.oldest <= index
            && sorted(&step.opened)
            && sorted(&step.closed)
            && step.opened.last().is_none_or(|number| *number < index);
        if !sound {
            return None;
        }
        let mut open = without(last, &step.closed);
        open.extend_from_slice(&step.opened);
        open.sort_unstable();
        if !sorted(&open) {
            return None;
        }
        last.clone_from(&open);
        Some(Ordered { index, open, oldest: step.oldest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Streams;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn orders_come_back(choices in proptest::collection::vec((0u8..6, 0usize..4), 1..60)) {
            let mut streams = Streams::default();
            let all: Vec<_> = (0..4).map(|n| streams.create(n == 0)).collect();
            let (mut there, mut back) = (Steps::default(), Steps::default());
            for (what, which) in choices {
                let stream = all[which];
                match what {
                    0 => streams.synchronize(stream),
                    1 => streams.wait(stream, &streams.record(all[(which + 1) % 4])),
                    _ => {
                        let order = streams.enqueue(stream);
                        let step = there.step(stream.0, &order);
                        prop_assert_eq!(back.order(stream.0, &step, order.index), Some(order));
                    }
                }
            }
        }
    }

    #[test]
    fn the_steps_of_streams_that_never_wait_stay_small() {
        let mut streams = Streams::default();
        let (a, b) = (streams.create(false), streams.create(false));
        let mut steps = Steps::default();
        for _ in 0..100 {
            for stream in [a, b] {
                let step = steps.step(stream.0, &streams.enqueue(stream));
                assert!(step.opened.len() <= 1 && step.closed.is_empty());
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_no_order() {
        let step = |index, oldest, opened: &[u32], closed: &[u32]| Step {
            index,
            oldest,
            opened: opened.into(),
            closed: closed.into(),
        };
        for (wrong, index) in [
            (step(0, 0, &[], &[]), 1),
            (step(1, 2, &[], &[]), 1),
            (step(2, 0, &[1, 0], &[]), 2),
            (step(2, 0, &[2], &[]), 2),
            (step(2, 0, &[1, 1], &[]), 2),
            (step(2, 0, &[], &[1, 0]), 2),
        ] {
            assert_eq!(Steps::default().order(0, &wrong, index), None);
        }
        let mut steps = Steps::default();
        assert!(steps.order(0, &step(1, 0, &[0], &[]), 1).is_some());
        // It is open already.
        assert_eq!(steps.order(0, &step(2, 0, &[0], &[]), 2), None);
    }
}
