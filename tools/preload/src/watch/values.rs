//! Values in memory that streams write and wait for.
//!
//! A write comes after what its stream was given before, and a wait for its value makes another stream come after that. Which
//! write a wait has seen is told from the values: of those that calls brought there, the last that will do, or the first of
//! values that rise up to it, as those of counters do. So much order there is whichever of them it was.
//! A value that the host or a kernel has brought there is not seen: such a wait is said to be a gap.
//!
//! The flag itself is not checked: that a kernel reads it meanwhile is what it is for.

use std::collections::VecDeque;

use ptxrace::engine::Moment;
use ptxrace::session::exec::log::Gap;
use rustc_hash::FxHashMap;

use super::{Stream, Watch};

/// A value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) address: u64,
    pub(crate) bits: u64,
    /// 4 or 8.
    pub(crate) bytes: usize,
}

impl Value {
    pub(crate) fn word(address: u64, bits: u32) -> Self {
        Self { address, bits: bits.into(), bytes: 4 }
    }

    pub(crate) fn long(address: u64, bits: u64) -> Self {
        Self { address, bits, bytes: 8 }
    }

    /// Whether counting on from another of as many bytes leads here. Counters may start again at zero.
    fn is_beyond(self, other: u64) -> bool {
        let by = self.bits.wrapping_sub(other);
        if self.bytes == 4 { (by as u32).cast_signed() >= 0 } else { by.cast_signed() >= 0 }
    }
}

/// What a stream waits for in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    AtLeast,
    Equal,
    /// A common bit.
    And,
    /// A bit that neither has.
    Nor,
}

impl Condition {
    /// Whether a value will do where another is waited for.
    pub(crate) fn holds(self, bits: u64, wanted: Value) -> bool {
        let all = if wanted.bytes == 4 { u32::MAX.into() } else { u64::MAX };
        match self {
            Self::AtLeast => Value { bits, ..wanted }.is_beyond(wanted.bits),
            Self::Equal => bits == wanted.bits,
            Self::And => bits & wanted.bits != 0,
            Self::Nor => !(bits | wanted.bits) & all != 0,
        }
    }
}

/// What a stream is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Write a value, and let what came before be seen first, or not.
    Write { value: Value, publishes: bool },
    /// Wait for a value.
    Wait { value: Value, condition: Condition },
    /// Let what came before be seen before what comes after.
    Barrier,
    /// Something else.
    Unknown,
}

const NO_MEMORY_BARRIER: u32 = 1;

impl Step {
    pub(crate) fn write(value: Value, flags: u32) -> Self {
        Self::Write { value, publishes: flags & NO_MEMORY_BARRIER == 0 }
    }

    pub(crate) fn wait(value: Value, flags: u32) -> Self {
        let condition = match flags & 3 {
            0 => Condition::AtLeast,
            1 => Condition::Equal,
            2 => Condition::And,
            _ => Condition::Nor,
        };
        Self::Wait { value, condition }
    }
}

/// One of a batch, as the driver has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct BatchStep {
    operation: u32,
    /// Of a barrier, its reach; else nothing.
    reach: u32,
    address: u64,
    value: u64,
    flags: u32,
    rest: [u32; 5],
}

impl BatchStep {
    /// What it is.
    pub(crate) fn step(&self) -> Step {
        let word = Value::word(self.address, self.value as u32);
        let long = Value::long(self.address, self.value);
        match self.operation {
            1 => Step::wait(word, self.flags),
            2 => Step::write(word, self.flags),
            // Writes of other devices are let in.
            3 => Step::Barrier,
            4 => Step::wait(long, self.flags),
            5 => Step::write(long, self.flags),
            6 => Step::Barrier,
            _ => Step::Unknown,
        }
    }
}

/// So many writes of a place are kept.
const MOST: usize = 64;

/// What was written to places, the last at the end: the value, and what is known to come before it.
#[derive(Debug, Default)]
pub(super) struct Values {
    written: FxHashMap<(u64, usize), VecDeque<(u64, Moment)>>,
}

impl Values {
    fn write(&mut self, value: Value, before: Moment) {
        let written = self.written.entry((value.address, value.bytes)).or_default();
        if written.len() == MOST {
            written.pop_front();
        }
        written.push_back((value.bits, before));
    }

    /// What comes before the end of a wait, if any write that is known ends it.
    fn seen(&self, value: Value, condition: Condition) -> Option<Moment> {
        let written = self.written.get(&(value.address, value.bytes))?;
        let mut back = written.iter().rev().skip_while(|(bits, _)| !condition.holds(*bits, value));
        let (last, before) = back.next()?;
        let (mut next, mut before) = (*last, before.clone());
        for (bits, moment) in back {
            let rises = *bits != next && Value { bits: next, ..value }.is_beyond(*bits);
            if condition != Condition::AtLeast || !rises || !condition.holds(*bits, value) {
                break;
            }
            before.meet(moment);
            next = *bits;
        }
        Some(before)
    }
}

impl Watch {
    /// A stream writes values or waits for them, in this order.
    pub(crate) fn values(
        &mut self,
        call: &'static str,
        stream: Stream,
        steps: impl IntoIterator<Item = Step>,
    ) {
        let mut fenced = false;
        for step in steps {
            match step {
                Step::Write { value, publishes } => {
                    self.operate(call, &[], stream);
                    let seen = publishes || fenced;
                    let before = if seen { self.moment(stream) } else { Moment::default() };
                    self.values.write(value, before);
                }
                Step::Wait { value, condition } => {
                    let seen = self.values.seen(value, condition).unwrap_or_else(|| {
                        let what =
                            format!("`{call}` waits for a value that no call is known to have written");
                        self.gap(Gap::Call, what);
                        // It may come after anything.
                        self.streams.all()
                    });
                    self.streams.wait(stream, &seen);
                }
                Step::Barrier => fenced = true,
                Step::Unknown => self.gap(Gap::Call, format!("`{call}` is not followed in all it does")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ptxrace::engine::{StreamId, Streams};

    use super::*;

    const AT: u64 = 0x1000;

    /// Writes of one stream, an operation before each, and how many of these a wait comes after.
    fn ordered(written: &[u32], wanted: u32, condition: Condition) -> Option<usize> {
        let (mut streams, mut values) = (Streams::default(), Values::default());
        let (writer, waiter): (StreamId, StreamId) = (streams.create(false), streams.create(false));
        for bits in written {
            streams.enqueue(writer);
            values.write(Value::word(AT, *bits), streams.record(writer));
        }
        let seen = values.seen(Value::word(AT, wanted), condition)?;
        streams.wait(waiter, &seen);
        Some(written.len() - streams.enqueue(waiter).open.len())
    }

    #[test]
    fn a_wait_comes_after_the_write_that_it_saw() {
        assert_eq!(ordered(&[1], 1, Condition::Equal), Some(1));
        assert_eq!(ordered(&[1, 0, 1], 1, Condition::Equal), Some(3));
        assert_eq!(ordered(&[1, 2], 1, Condition::Equal), Some(1));
        assert_eq!(ordered(&[1, 0], 1, Condition::AtLeast), Some(1));
        assert_eq!(ordered(&[4, 8], 12, Condition::And), Some(2));
        assert_eq!(ordered(&[u32::MAX, 0], 0xf0, Condition::Nor), Some(2));
    }

    #[test]
    fn of_a_counter_the_first_value_that_will_do_counts() {
        assert_eq!(ordered(&[1, 2, 3], 2, Condition::AtLeast), Some(2));
        assert_eq!(ordered(&[1, 2, 3, 1, 2, 3], 1, Condition::AtLeast), Some(4));
        // It goes round.
        assert_eq!(ordered(&[u32::MAX - 1, u32::MAX, 0, 1], u32::MAX, Condition::AtLeast), Some(2));
    }

    #[test]
    fn what_no_write_brings_is_not_known() {
        assert_eq!(ordered(&[], 1, Condition::Equal), None);
        assert_eq!(ordered(&[1, 2], 3, Condition::AtLeast), None);
        assert_eq!(ordered(&[4], 3, Condition::And), None);
        assert_eq!(ordered(&[u32::MAX], 0, Condition::Nor), None);
        assert_eq!(Values::default().seen(Value::long(AT, 0), Condition::AtLeast), None);
    }

    #[test]
    fn batches_are_read() {
        assert_eq!(size_of::<BatchStep>(), 48);
        let batch = |operation, flags| {
            BatchStep { operation, reach: 0, address: AT, value: 1 << 32 | 7, flags, rest: [0; 5] }.step()
        };
        let (word, long) = (Value::word(AT, 7), Value::long(AT, 1 << 32 | 7));
        assert_eq!(batch(1, 1), Step::Wait { value: word, condition: Condition::Equal });
        assert_eq!(batch(2, 1), Step::Write { value: word, publishes: false });
        assert_eq!(batch(4, 1 << 30), Step::Wait { value: long, condition: Condition::AtLeast });
        assert_eq!(batch(5, 0), Step::Write { value: long, publishes: true });
        assert_eq!((batch(3, 0), batch(6, 0), batch(8, 0)), (Step::Barrier, Step::Barrier, Step::Unknown));
    }
}
