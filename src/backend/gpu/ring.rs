//! The host's side of the rings: where they are, what has arrived in them, and how it is taken out while a kernel
//! runs.
//!
//! A round copies the heads, then what stands between tail and head of each ring, and takes the whole records at its
//! beginning. A unit whose lap bit is not yet right ends the ring's turn: its writer has reserved it and not stored it
//! so far. Then the tails go back, which frees the room, and the sink gets what came while the kernel goes on. All copies are on
//! a stream of their own.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::driver::{Context, DeviceMemory, Failure, Pinned, Stream};
use crate::abi::control::{
    COUNTER_STRIDE, Control, Dropped, FIRST_TICKET, Line, OFFSET_DROPPED_RECORDS, OFFSET_RING_SHIFT,
    is_written, ring_shift,
};
use crate::abi::{LAP, MAX_RESERVED, MAX_UNITS, UNITS_SHIFT, Unit};
use crate::backend::{BackendError, OnFull, Ring, Sink};

/// Number and size of the rings. Both are rounded up to powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// Number of rings. About as many as the device has multiprocessors keeps warps from waiting for each other.
    pub rings: u32,
    /// Units of one ring, 16 bytes each. At least one record of the largest kind must fit.
    pub units: u64,
}

impl Default for RingSizes {
    /// 128 rings of 1 MiB.
    fn default() -> Self {
        Self { rings: 128, units: 64 * 1024 }
    }
}

impl RingSizes {
    fn rounded(self) -> Self {
        Self {
            rings: self.rings.clamp(1, 1 << 16).next_power_of_two(),
            units: self.units.clamp(MAX_RESERVED as u64, 1 << 32).next_power_of_two(),
        }
    }

    fn bytes(self) -> usize {
        usize::try_from(u64::from(self.rings) * self.units)
            .unwrap_or(usize::MAX)
            .saturating_mul(size_of::<Unit>())
    }
}

/// Units copied in one round.
const STAGING_UNITS: usize = 2 * 1024 * 1024;

/// Fewer units than this are looked through by one thread.
const FEW: usize = 32 * 1024;

/// Words from one counter to the next.
const STRIDE: usize = COUNTER_STRIDE as usize / size_of::<u64>();

/// The rings of a run.
#[derive(Debug)]
pub(super) struct Rings<'c> {
    sizes: RingSizes,
    control: DeviceMemory<'c>,
    data: DeviceMemory<'c>,
    heads: DeviceMemory<'c>,
    tails: DeviceMemory<'c>,
    /// Copies of the heads, and the tails as they go back.
    seen: Pinned<'c>,
    taken: Pinned<'c>,
    staging: Pinned<'c>,
    stream: Stream<'c>,
    /// How far each ring has been read.
    positions: Vec<u64>,
    /// The ring that is served first, so that all get their turn.
    first: usize,
    dropped: u64,
}

/// Part of a ring in the staging memory, behind that of the chunk before.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    ring: usize,
    units: usize,
}

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    /// Records handed on.
    pub(super) records: u64,
    /// Whether units are reserved that have not been taken.
    pub(super) pending: bool,
    /// How long the sink took.
    pub(super) analysis: Duration,
}

/// Why a round failed.
#[derive(Debug)]
pub(super) enum RoundError {
    Driver(Failure),
    Damaged(Damaged),
}

impl From<Failure> for RoundError {
    fn from(failure: Failure) -> Self {
        Self::Driver(failure)
    }
}

impl<'c> Rings<'c> {
    /// Allocates them. If the device has too little memory, they get smaller.
    pub(super) fn new(context: &'c Context, sizes: RingSizes, on_full: OnFull) -> Result<Self, BackendError> {
        let mut sizes = sizes.rounded();
        let data = loop {
            match context.alloc(sizes.bytes()) {
                Err(failure) if failure.is_out_of_memory() && sizes.units > 2 * MAX_RESERVED as u64 => {
                    sizes.units /= 2;
                }
                result => break result?,
            }
        };
        let counters = sizes.rings as usize * STRIDE;
        let control = Control {
            capacity: sizes.units,
            ring_mask: sizes.rings - 1,
            drop: u32::from(on_full == OnFull::Drop),
            tickets: Line { next: FIRST_TICKET },
            dropped: Dropped::default(),
            ..Control::default()
        };
        let rings = Self {
            sizes,
            control: context.alloc(size_of::<Control>())?,
            data,
            heads: context.alloc(counters * size_of::<u64>())?,
            tails: context.alloc(counters * size_of::<u64>())?,
            seen: context.pinned(counters)?,
            taken: context.pinned(counters)?,
            staging: context.pinned(2 * STAGING_UNITS)?,
            stream: context.stream()?,
            positions: vec![0; sizes.rings as usize],
            first: 0,
            dropped: 0,
        };
        for memory in [&rings.data, &rings.heads, &rings.tails] {
            memory.clear()?;
        }
        let (data, heads, tails) = (rings.data.address(), rings.heads.address(), rings.tails.address());
        let control = Control { data, heads, tails, ..control };
        rings.control.upload(&control.bytes())?;
        Ok(rings)
    }

    /// The address of the control block.
    pub(super) fn control(&self) -> u64 {
        self.control.address()
    }

    /// A launch of so many blocks comes.
    pub(super) fn expect(&self, blocks: u64) -> Result<(), Failure> {
        let shift = ring_shift(blocks, self.sizes.rings);
        self.control.upload_at(OFFSET_RING_SHIFT, &shift.to_le_bytes())
    }

    /// Takes what has arrived.
    pub(super) fn round(&mut self, sink: &mut dyn Sink) -> Result<Round, RoundError> {
        let counters = self.seen.len();
        self.stream.fetch(&mut self.seen, 0, self.heads.address(), counters)?;
        self.stream.wait()?;
        let chunks = self.fetch()?;
        self.stream.wait()?;
        let (capacity, positions) = (self.sizes.units, &mut self.positions);
        let mut parts = parts(self.staging.units(), &chunks, positions);
        take_all(&mut parts, capacity);
        let mut round = Round::default();
        let mut rings = Vec::new();
        for part in parts {
            let taken = part.taken.map_err(RoundError::Damaged)?;
            if taken.units > 0 {
                rings.push(Ring { number: part.ring as u32, units: &part.units[..taken.units] });
                positions[part.ring] += taken.units as u64;
                self.taken.words()[part.ring * STRIDE] = positions[part.ring];
            }
            round.records += taken.records;
        }
        let heads = self.seen.words().iter().step_by(STRIDE);
        round.pending = heads.zip(positions.iter()).any(|(head, position)| head != position);
        if !rings.is_empty() {
            self.stream.send(self.tails.address(), &self.taken)?;
            self.stream.wait()?;
            let begin = Instant::now();
            sink.rings(&rings);
            round.analysis = begin.elapsed();
        }
        Ok(round)
    }

    /// Begins to copy what stands in the rings, as much as the staging memory holds.
    fn fetch(&mut self) -> Result<Vec<Chunk>, Failure> {
        let rings = self.positions.len();
        let heads = self.seen.words().iter().step_by(STRIDE);
        // All get the same share, since who looks at them does so ring by ring.
        let busy = heads.zip(&self.positions).filter(|(head, position)| head != position).count();
        let share = (STAGING_UNITS / busy.max(1)).max(MAX_RESERVED);
        let (mut chunks, mut at) = (Vec::new(), 0);
        for turn in 0..rings {
            let ring = (self.first + turn) % rings;
            let (head, position) = (self.seen.words()[ring * STRIDE], self.positions[ring]);
            // Writers that wait have reserved beyond the ring's end.
            let here = head.saturating_sub(position).min(self.sizes.units);
            let units = usize::try_from(here).unwrap_or(usize::MAX).min(share).min(STAGING_UNITS - at);
            if units == 0 {
                continue;
            }
            chunks.push(Chunk { ring, units });
            let start = position & (self.sizes.units - 1);
            let base = self.data.address() + ring as u64 * self.sizes.units * size_of::<Unit>() as u64;
            let straight = usize::try_from(self.sizes.units - start).unwrap_or(usize::MAX).min(units);
            let from = base + start * size_of::<Unit>() as u64;
            self.stream.fetch(&mut self.staging, 2 * at, from, 2 * straight)?;
            if straight < units {
                self.stream.fetch(&mut self.staging, 2 * (at + straight), base, 2 * (units - straight))?;
            }
            at += units;
            if at == STAGING_UNITS {
                self.first = ring;
                break;
            }
        }
        Ok(chunks)
    }

    /// Records dropped since the last call. Not while a kernel runs.
    pub(super) fn dropped(&mut self) -> Result<u64, Failure> {
        let mut block = [0; size_of::<Control>()];
        self.control.download(&mut block)?;
        let mut word = [0; 8];
        word.copy_from_slice(&block[OFFSET_DROPPED_RECORDS..OFFSET_DROPPED_RECORDS + 8]);
        let all = u64::from_le_bytes(word);
        let new = all - self.dropped;
        self.dropped = all;
        Ok(new)
    }
}

/// A chunk at hand, and what was taken of it.
#[derive(Debug)]
struct Part<'s> {
    ring: usize,
    position: u64,
    units: &'s mut [Unit],
    taken: Result<Taken, Damaged>,
}

/// The chunks, which follow each other from the beginning of `staging` on.
fn parts<'s>(mut staging: &'s mut [Unit], chunks: &[Chunk], positions: &[u64]) -> Vec<Part<'s>> {
    let mut parts = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let (units, rest) = std::mem::take(&mut staging).split_at_mut(chunk.units);
        staging = rest;
        let (ring, position) = (chunk.ring, positions[chunk.ring]);
        parts.push(Part { ring, position, units, taken: Ok(Taken::default()) });
    }
    parts
}

/// Looks through all parts, by several threads if there is enough.
fn take_all(parts: &mut [Part<'_>], capacity: u64) {
    let work = |part: &mut Part<'_>| part.taken = take(part.units, part.position, capacity);
    let units: usize = parts.iter().map(|part| part.units.len()).sum();
    if units < FEW { parts.iter_mut().for_each(work) } else { parts.par_iter_mut().for_each(work) }
}

/// What was taken from the beginning of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Units of whole records.
    pub units: usize,
    /// Those records.
    pub records: u64,
}

/// A header that no writer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unit {position} of a ring is no header: {:#x}, {:#x}", header.lo, header.hi)]
pub struct Damaged {
    /// Where in its ring.
    pub position: u64,
    /// The header.
    pub header: Unit,
}

/// Clears the lap bits of all whole records at the beginning of `units`, which begin at `position` of their ring.
pub fn take(units: &mut [Unit], position: u64, capacity: u64) -> Result<Taken, Damaged> {
    let mut taken = Taken::default();
    while let Some(header) = units.get(taken.units) {
        let at = position + taken.units as u64;
        if !is_written(*header, at, capacity) {
            break;
        }
        let length = (header.hi >> UNITS_SHIFT & 0x7f) as usize;
        if length == 0 || length > MAX_UNITS {
            return Err(Damaged { position: at, header: *header });
        }
        let Some(record) = units.get_mut(taken.units..taken.units + length) else { break };
        if !record.iter().zip(at..).all(|(unit, at)| is_written(*unit, at, capacity)) {
            break;
        }
        for unit in record {
            unit.hi &= !LAP;
        }
        taken.units += length;
        taken.records += 1;
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit(position: u64, capacity: u64, hi: u64) -> Unit {
        Unit { lo: position, hi: if position & capacity == 0 { hi | LAP } else { hi } }
    }

    fn record(position: u64, capacity: u64, length: u64) -> Vec<Unit> {
        let mut units = vec![unit(position, capacity, length << UNITS_SHIFT)];
        units.extend((1..length).map(|i| unit(position + i, capacity, 7)));
        units
    }

    #[test]
    fn sizes_are_powers_of_two_that_hold_a_record() {
        let sizes = RingSizes { rings: 100, units: 1 }.rounded();
        assert_eq!(sizes, RingSizes { rings: 128, units: 256 });
    }

    #[test]
    fn a_header_without_a_length_is_damage() {
        let mut units = vec![unit(3, 8, 0)];
        assert_eq!(take(&mut units, 3, 8), Err(Damaged { position: 3, header: unit(3, 8, 0) }));
    }

    proptest! {
        /// Whatever unit is missing, the whole records before it are taken, and no other.
        #[test]
        fn whole_records_are_taken(
            lengths in proptest::collection::vec(1u64..6, 1..8), start in 0u64..64, missing in 0usize..48,
        ) {
            let capacity = 64;
            let mut units = Vec::new();
            let mut ends = vec![0];
            for length in &lengths {
                units.extend(record(start + units.len() as u64, capacity, *length));
                ends.push(units.len());
            }
            if let Some(unit) = units.get_mut(missing) {
                unit.hi ^= LAP;
            }
            let whole = ends.iter().rev().find(|end| **end <= missing).copied().unwrap_or(0);
            let taken = take(&mut units, start, capacity).unwrap();
            prop_assert_eq!(taken.units, whole);
            prop_assert_eq!(taken.records, ends.iter().position(|end| *end == whole).unwrap() as u64);
            prop_assert!(units[..taken.units].iter().all(|unit| unit.hi & LAP == 0));
        }
    }
}
