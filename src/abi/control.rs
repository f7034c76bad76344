//! The control block: where device code finds the rings. The host fills it before a launch; device code reads its
//! address from the module variable `CONTROL_SYMBOL`, and logs nothing while that is zero.
//!
//! A ring is a power of two of units. Its *head* counts the units ever reserved by writers, its *tail* those that the
//! reader has taken; both only grow, so `head - tail` is what may be in use, a position modulo the capacity is the
//! place of a unit, and `position / capacity` is its lap. The lap bit of a unit is 1 in even laps.
//!
//! A writer reserves all units of a record at once and then waits until `end - tail` fits the capacity; in drop mode it
//! looks for room first and moves the head by compare-and-swap, so that a record is either whole in the ring or only
//! counted. A block always writes to one ring. So the records of a warp lie there in the order it wrote them, and those of the
//! block from before a barrier lie before those from behind it.

use super::{LAP, Unit};

/// The module variable that holds the address of the control block.
pub const CONTROL_SYMBOL: &str = "__ptxrace_control";

/// Bytes from one ring's head to the next one's, and from tail to tail: a cache line each.
pub const COUNTER_STRIDE: u64 = 128;

/// The first ticket; zero is left for "none".
pub const FIRST_TICKET: u64 = 1;

/// What device code reads and counts. All addresses are device addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(128))]
pub struct Control {
    /// The first unit of ring 0; ring `i` lies `i * capacity` units behind.
    pub data: u64,
    /// The head of ring 0, 64 bits; that of ring `i` lies `i * COUNTER_STRIDE` bytes behind.
    pub heads: u64,
    /// The tail of ring 0, likewise.
    pub tails: u64,
    /// Units of one ring, a power of two.
    pub capacity: u64,
    /// Number of rings, a power of two, less one.
    pub ring_mask: u32,
    /// Not zero: a record that finds no room is dropped and counted instead of waiting.
    pub drop: u32,
    /// So many blocks that follow each other write to one ring, as a power of two.
    pub ring_shift: u32,
    /// Nothing. Device code reads four words at once.
    pub unused: u32,
    /// Counters, each on a line of its own because all warps write them.
    pub tickets: Line,
    /// Records dropped, and behind it the units they would have taken.
    pub dropped: Dropped,
}

/// A counter on a cache line of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(128))]
pub struct Line {
    /// The next value to draw.
    pub next: u64,
}

/// What drop mode lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(128))]
pub struct Dropped {
    /// Records.
    pub records: u64,
    /// Their units.
    pub units: u64,
}

/// Offset of `Control::data`; `heads` follows at once.
pub const OFFSET_DATA: usize = 0;
/// Offset of `Control::tails`; `capacity` follows at once.
pub const OFFSET_TAILS: usize = 16;
/// Offset of `Control::ring_mask`; `drop`, `ring_shift` and `unused` follow at once.
pub const OFFSET_RING_MASK: usize = 32;
/// Offset of `Control::ring_shift`.
pub const OFFSET_RING_SHIFT: usize = OFFSET_RING_MASK + 8;
/// Offset of the ticket counter.
pub const OFFSET_TICKETS: usize = 128;
/// Offset of the number of records dropped.
pub const OFFSET_DROPPED_RECORDS: usize = 256;
/// Offset of the number of units dropped.
pub const OFFSET_DROPPED_UNITS: usize = 264;
/// Bytes of the control block.
pub const CONTROL_BYTES: usize = 384;

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Control, data) == OFFSET_DATA);
    assert!(offset_of!(Control, heads) == OFFSET_DATA + 8);
    assert!(offset_of!(Control, tails) == OFFSET_TAILS);
    assert!(offset_of!(Control, capacity) == OFFSET_TAILS + 8);
    assert!(offset_of!(Control, ring_mask) == OFFSET_RING_MASK);
    assert!(offset_of!(Control, drop) == OFFSET_RING_MASK + 4);
    assert!(offset_of!(Control, ring_shift) == OFFSET_RING_SHIFT && OFFSET_RING_MASK.is_multiple_of(16));
    assert!(offset_of!(Control, tickets) == OFFSET_TICKETS);
    assert!(offset_of!(Control, dropped) + offset_of!(Dropped, records) == OFFSET_DROPPED_RECORDS);
    assert!(offset_of!(Control, dropped) + offset_of!(Dropped, units) == OFFSET_DROPPED_UNITS);
    assert!(size_of::<Control>() == CONTROL_BYTES && align_of::<Control>() == 128);
};

impl Control {
    /// The block in memory order, for writing it to a device.
    pub fn bytes(&self) -> [u8; CONTROL_BYTES] {
        let mut bytes = [0; CONTROL_BYTES];
        let mut put = |offset: usize, value: u64| {
            bytes[offset..offset + size_of::<u64>()].copy_from_slice(&value.to_le_bytes());
        };
        put(OFFSET_DATA, self.data);
        put(OFFSET_DATA + 8, self.heads);
        put(OFFSET_TAILS, self.tails);
        put(OFFSET_TAILS + 8, self.capacity);
        put(OFFSET_RING_MASK, u64::from(self.ring_mask) | u64::from(self.drop) << 32);
        put(OFFSET_RING_SHIFT, self.ring_shift.into());
        put(OFFSET_TICKETS, self.tickets.next);
        put(OFFSET_DROPPED_RECORDS, self.dropped.records);
        put(OFFSET_DROPPED_UNITS, self.dropped.units);
        bytes
    }
}

/// The ring that the warps of a block write to. Blocks that follow each other run side by side, so that rings are used alike.
pub fn ring_of(block: u32, ring_shift: u32, ring_mask: u32) -> u32 {
    block >> ring_shift & ring_mask
}

/// The shift for a launch of so many blocks. Blocks that follow each other often touch the same pages, which are cheaper to look at
/// for who gets the records of both; but all rings have to be in use at any time, and there is room on a device for some thousand
/// blocks.
pub fn ring_shift(blocks: u64, rings: u32) -> u32 {
    const MOST: u32 = 3;
    /// Times that each ring comes.
    const TURNS: u64 = 4;
    (blocks / (u64::from(rings) * TURNS)).checked_ilog2().map_or(0, |shift| shift.min(MOST))
}

/// Whether the unit read for this position of a ring has been written in its lap.
pub fn is_written(unit: Unit, position: u64, capacity: u64) -> bool {
    (unit.hi & LAP != 0) == (position & capacity == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lap_bit_is_one_in_even_laps() {
        let written = |hi, position| is_written(Unit { lo: 0, hi }, position, 8);
        assert!(!written(0, 0));
        assert!(written(LAP, 7));
        assert!(!written(LAP, 8));
        assert!(written(0, 15));
        assert!(written(LAP, 16));
    }

    #[test]
    fn blocks_lie_together_once_there_are_many() {
        let shifts =
            [0, 1, 1023, 1024, 2047, 2048, 4095, 4096, u64::MAX].map(|blocks| ring_shift(blocks, 128));
        assert_eq!(shifts, [0, 0, 0, 1, 1, 2, 2, 3, 3]);
        let ring = |block| ring_of(block, ring_shift(4096, 128), 127);
        assert_eq!((0..4096).map(ring).collect::<std::collections::BTreeSet<_>>().len(), 128);
        assert_eq!(ring(4088), ring(4095));
    }
}
