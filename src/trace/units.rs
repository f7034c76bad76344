//! How records lie in a chunk: the first byte of all units, then the second of all, and so on. What is alike in one record and the
//! next so comes together: LZ4 leaves a third to four fifths of what it leaves of records as they are.

use crate::abi::Unit;

/// Bytes of a unit.
const BYTES: usize = size_of::<Unit>();

/// Lays units out, in a buffer that is used again.
pub(super) fn lay(units: &[Unit], bytes: &mut Vec<u8>) {
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
