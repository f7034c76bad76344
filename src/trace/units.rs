//! How records lie in a chunk: the first byte of all units, then the second of all, and so on. What is alike in one record and the
//! next so comes together: LZ4 leaves a third to four fifths of what it leaves of records as they are.

use super::chunk::MOST_UNITS;
use crate::abi::{MAX_UNITS, Unit, decode};

/// Bytes of a unit.
const BYTES: usize = size_of::<Unit>();

/// Units that are gathered before they are written.
const GATHERED: usize = MOST_UNITS / BYTES - MAX_UNITS;

/// Records on their way to a chunk.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    units: Vec<Unit>,
    bytes: Vec<u8>,
}

impl Gathered {
    /// Adds whole records. `full` gets the contents of each chunk that they fill.
    pub(super) fn add(&mut self, mut units: &[Unit], mut full: impl FnMut(&[u8])) {
        while !units.is_empty() {
            let room = GATHERED.saturating_sub(self.units.len());
            let (now, rest) = units.split_at(whole(units, room));
            self.units.extend_from_slice(now);
            units = rest;
            if self.units.len() >= GATHERED || !rest.is_empty() {
                self.flush(&mut full);
            }
        }
    }

    /// Hands on what is left.
    pub(super) fn flush(&mut self, mut full: impl FnMut(&[u8])) {
        if !self.units.is_empty() {
            lay(&self.units, &mut self.bytes);
            self.units.clear();
            full(&self.bytes);
        }
    }
}

/// How many units there is room for, but for whole records: the last one may reach over.
fn whole(units: &[Unit], room: usize) -> usize {
    if units.len() <= room {
        return units.len();
    }
    let mut at = 0;
    while at < room.max(1) {
        match decode(units.get(at..).unwrap_or(&[])) {
            Ok(Some(record)) => at += record.units().len(),
            // What is damaged stays so wherever it is cut.
            _ => return units.len().min(room.max(1)),
        }
    }
    at
}

/// Lays units out, in a buffer that is used again.
fn lay(units: &[Unit], bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.resize(units.len() * BYTES, 0);
    for (column, place) in bytes.chunks_exact_mut(units.len().max(1)).enumerate() {
        let shift = column % 8 * 8;
        if column < 8 {
            place.iter_mut().zip(units).for_each(|(byte, unit)| *byte = (unit.lo >> shift) as u8);
        } else {
            place.iter_mut().zip(units).for_each(|(byte, unit)| *byte = (unit.hi >> shift) as u8);
        }
    }
}

/// The units, into a buffer that is used again. Whether there were whole ones.
pub(super) fn gather(bytes: &[u8], units: &mut Vec<Unit>) -> bool {
    units.clear();
    if bytes.is_empty() || !bytes.len().is_multiple_of(BYTES) {
        return false;
    }
    units.resize(bytes.len() / BYTES, Unit::default());
    for (column, place) in bytes.chunks_exact(units.len()).enumerate() {
        let shift = column % 8 * 8;
        if column < 8 {
            place.iter().zip(&mut *units).for_each(|(byte, unit)| unit.lo |= u64::from(*byte) << shift);
        } else {
            place.iter().zip(&mut *units).for_each(|(byte, unit)| unit.hi |= u64::from(*byte) << shift);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn units_come_back(words in proptest::collection::vec((any::<u64>(), any::<u64>()), 1..80)) {
            let units: Vec<_> = words.into_iter().map(|(lo, hi)| Unit { lo, hi }).collect();
            let (mut bytes, mut again) = (Vec::new(), Vec::new());
            lay(&units, &mut bytes);
            prop_assert!(gather(&bytes, &mut again));
            prop_assert_eq!(units, again);
        }
    }
}
