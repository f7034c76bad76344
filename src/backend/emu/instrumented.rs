//! The ring that inserted code writes its records to, in emulated memory.
//!
//! There is one ring, emptied after every turn of a warp and large enough for all records of one turn: inserted code
//! never waits for room, and whole records stand in it whenever it is read.

use super::memory::{Kind, Memory};
use super::record::Recorder;
use crate::abi::control::{COUNTER_STRIDE, Control, FIRST_TICKET, Line, is_written};
use crate::abi::{LAP, MAX_UNITS, UNITS_SHIFT, Unit};

/// Units of the ring: room for a turn's longest burst with the largest records.
const CAPACITY: u64 = 1 << 16;

/// The ring of a launch.
#[derive(Debug)]
pub(super) struct Ring {
    data: u64,
    heads: u64,
    tails: u64,
    position: u64,
    /// Whole records, without lap bits.
    taken: Vec<Unit>,
}

/// What all launches of a run use.
#[derive(Debug)]
pub(super) struct Room {
    control: u64,
    data: u64,
    heads: u64,
    tails: u64,
}

impl Room {
    /// Allocates control block and ring.
    pub(super) fn new(memory: &mut Memory) -> Self {
        let mut allocate =
            |bytes: u64| memory.allocate("", 1, vec![0; bytes as usize], Kind::Runtime, COUNTER_STRIDE);
        Self {
            control: allocate(size_of::<Control>() as u64),
            data: allocate(CAPACITY * size_of::<Unit>() as u64),
            heads: allocate(COUNTER_STRIDE),
            tails: allocate(COUNTER_STRIDE),
        }
    }

    /// An empty ring for a launch; `symbol` is the variable that tells inserted code where the control block is.
    pub(super) fn ring(&self, memory: &mut Memory, symbol: u64) -> Ring {
        let control = Control {
            data: self.data,
            heads: self.heads,
            tails: self.tails,
            capacity: CAPACITY,
            tickets: Line { next: FIRST_TICKET },
            ..Control::default()
        };
        fill(memory, self.control, &control.bytes());
        for place in [self.data, self.heads, self.tails] {
            if let Some(allocation) = memory.at_mut(place) {
                allocation.data.fill(0);
            }
        }
        fill(memory, symbol, &self.control.to_le_bytes());
        Ring { data: self.data, heads: self.heads, tails: self.tails, position: 0, taken: Vec::new() }
    }
}

fn fill(memory: &mut Memory, place: u64, bytes: &[u8]) {
    if let Ok(room) = memory.bytes(place, bytes.len(), true) {
        room.copy_from_slice(bytes);
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl Ring {
    /// Hands on what is there.
    pub(super) fn drain(&mut self, memory: &mut Memory, recorder: &mut Recorder<'_>) {
        let head = memory.at(self.heads).map_or(0, |heads| word(&heads.data));
        if head == self.position {
            return;
        }
        let Some(data) = memory.at(self.data) else { return };
        self.taken.clear();
        let mut records = 0;
        while self.position < head {
            let Some(units) = self.record(&data.data) else { break };
            self.position += units;
            records += 1;
        }
        recorder.pass(&self.taken, records);
        fill(memory, self.tails, &self.position.to_le_bytes());
    }

    /// Takes the record at the position, if it is whole.
    fn record(&mut self, data: &[u8]) -> Option<u64> {
        let unit = |position: u64| {
            let at = (position % CAPACITY) as usize * size_of::<Unit>();
            let bytes = data.get(at..at + size_of::<Unit>())?;
            let unit = Unit { lo: word(bytes), hi: word(&bytes[8..]) };
            is_written(unit, position, CAPACITY).then_some(Unit { hi: unit.hi & !LAP, ..unit })
        };
        let units = unit(self.position)?.hi >> UNITS_SHIFT & 0x7f;
        if units == 0 || units > MAX_UNITS as u64 {
            return None;
        }
        let start = self.taken.len();
        for position in self.position..self.position + units {
            match unit(position) {
                Some(unit) => self.taken.push(unit),
                None => {
                    self.taken.truncate(start);
                    return None;
                }
            }
        }
        Some(units)
    }
}
