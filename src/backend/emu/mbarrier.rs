//! The mbarrier object: what its 64 bits hold here. Programs only see it through the instructions.

/// Most arrivals that a phase may expect, and most bytes either way.
pub(super) const MOST: u32 = (1 << 20) - 1;

const PENDING: u32 = 0;
const EXPECTED: u32 = 20;
const BYTES: u32 = 40;
const PHASE: u32 = 61;
/// Set in objects: memory that was never initialised holds none.
const VALID: u64 = 1 << 62;

/// An mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mbarrier {
    /// Parity of the current phase.
    phase: u64,
    /// Arrivals that each phase expects.
    expected: u32,
    /// Arrivals that this phase still expects.
    pending: u32,
    /// Bytes that are expected, less those that have come.
    bytes: i32,
}

/// Why an operation may not be, in a sentence that follows "the mbarrier at ...".
type Wrong = String;

impl Mbarrier {
    /// One that expects so many arrivals.
    pub(super) fn new(count: u32) -> Result<Self, Wrong> {
        if count == 0 || count > MOST {
            return Err(format!("would expect {count} arrivals, where 1 to {MOST} are possible"));
        }
        Ok(Self { phase: 0, expected: count, pending: count, bytes: 0 })
    }

    /// From its bits.
    pub(super) fn unpack(word: u64) -> Option<Self> {
        let field = |at: u32| (word >> at) as u32 & MOST;
        // 21 bits with a sign.
        let bytes = ((word << (64 - PHASE)).cast_signed() >> (64 - PHASE + BYTES)) as i32;
        (word & VALID != 0 && word >> 63 == 0).then(|| Self {
            phase: phase(word),
            expected: field(EXPECTED),
            pending: field(PENDING),
            bytes,
        })
    }

    /// Its bits; those before an arrival are the state that the arrival gives.
    pub(super) fn pack(self) -> u64 {
        let bytes = u64::from(self.bytes.cast_unsigned()) & ((1 << (PHASE - BYTES)) - 1);
        u64::from(self.pending) << PENDING
            | u64::from(self.expected) << EXPECTED
            | bytes << BYTES
            | self.phase << PHASE
            | VALID
    }

    /// Whether the phase of this parity, the current or the one before, is complete.
    pub(super) fn is_complete(self, parity: u64) -> bool {
        self.phase != parity & 1
    }

    /// Arrives `count` times. `drop`: later phases expect as many fewer.
    pub(super) fn arrive(&mut self, count: u32, drop: bool) -> Result<(), Wrong> {
        if count == 0 || count > self.pending {
            return Err(format!("gets {count} arrivals, where it expects {} more", self.pending));
        }
        if drop && count > self.expected {
            return Err(format!("drops {count} arrivals, where it expects {} from now on", self.expected));
        }
        self.pending -= count;
        if drop {
            self.expected -= count;
        }
        self.settle();
        Ok(())
    }

    /// Expects one arrival more in this phase.
    pub(super) fn increment(&mut self) -> Result<(), Wrong> {
        if self.pending >= MOST {
            return Err(format!("would expect more than {MOST} arrivals"));
        }
        self.pending += 1;
        Ok(())
    }

    /// Expects more bytes (or, if negative, gets them).
    pub(super) fn expect(&mut self, bytes: i64) -> Result<(), Wrong> {
        let sum = i64::from(self.bytes) + bytes;
        match i32::try_from(sum) {
            Ok(sum) if sum.unsigned_abs() <= MOST => self.bytes = sum,
            _ => return Err(format!("would wait for {sum} bytes, where {MOST} are possible")),
        }
        Ok(())
    }

    /// Ends the phase if nothing is missing.
    pub(super) fn settle(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.phase ^= 1;
            self.pending = self.expected;
        }
    }
}

/// The parity of the phase that a state is of.
pub(super) fn phase(state: u64) -> u64 {
    state >> PHASE & 1
}

/// Arrivals that were missing in a state.
pub(super) fn pending(state: u64) -> u64 {
    state >> PENDING & u64::from(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_hold_everything() {
        let mut barrier = Mbarrier::new(MOST).unwrap();
        barrier.arrive(7, true).unwrap();
        for bytes in [0, 1, i64::from(MOST) - 1, -2 * i64::from(MOST), 5] {
            barrier.expect(bytes).unwrap();
            assert_eq!(Mbarrier::unpack(barrier.pack()), Some(barrier));
        }
        assert_eq!(pending(barrier.pack()), u64::from(MOST) - 7);
        assert_eq!(Mbarrier::unpack(0), None);
        assert!(Mbarrier::new(0).is_err() && Mbarrier::new(MOST + 1).is_err());
    }

    #[test]
    fn a_phase_ends_with_its_last_arrival_and_its_last_byte() {
        let mut barrier = Mbarrier::new(2).unwrap();
        barrier.arrive(1, true).unwrap();
        barrier.expect(16).unwrap();
        barrier.arrive(1, false).unwrap();
        assert!(!barrier.is_complete(0) && barrier.is_complete(1));
        assert!(barrier.arrive(1, false).is_err());
        barrier.expect(-16).unwrap();
        barrier.settle();
        assert!(barrier.is_complete(0) && !barrier.is_complete(1));
        // One of two had itself taken out.
        barrier.arrive(1, false).unwrap();
        assert!(barrier.is_complete(1));
    }
}
