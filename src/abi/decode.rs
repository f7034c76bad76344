//! Reading records. Nothing is copied: a `Record` looks into the units it was read from.

use super::encode::lanes;
use super::{BY_LANES, LANES, LAP, MAX_UNITS, Payload, UNITS_SHIFT, Unit};

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'u> {
    units: &'u [Unit],
    payload: Payload,
}

/// Units that are no record: a defect of the writer or a damaged trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The record goes on behind the last unit.
    #[error("a record of {units} units is cut off after {have}")]
    Truncated {
        /// Units by the header.
        units: usize,
        /// Units that are there.
        have: usize,
    },
    /// The header's length does not fit what it says it holds.
    #[error("a record's header says {units} units where its flags need {need}")]
    Length {
        /// Units by the header.
        units: usize,
        /// Units by flags and mask.
        need: usize,
    },
}

/// Reads the record at the start of `units`; `None` when there are none.
pub fn decode(units: &[Unit]) -> Result<Option<Record<'_>>, DecodeError> {
    let Some(header) = units.first() else { return Ok(None) };
    let length = (header.hi >> UNITS_SHIFT & 0x7f) as usize;
    let payload = Payload::from_flags(header.hi);
    let active = (header.lo >> 32).count_ones() as usize;
    let values =
        if header.hi & BY_LANES != 0 { active * payload.lane_units() } else { payload.compact_units() };
    let need = 1 + usize::from(payload.tickets) + values;
    if length != need || length > MAX_UNITS {
        return Err(DecodeError::Length { units: length, need });
    }
    match units.get(..length) {
        Some(units) => Ok(Some(Record { units, payload })),
        None => Err(DecodeError::Truncated { units: length, have: units.len() }),
    }
}

impl<'u> Record<'u> {
    fn unit(&self, at: usize) -> Unit {
        self.units.get(at).copied().unwrap_or_default()
    }

    /// The units it was read from.
    pub fn units(&self) -> &'u [Unit] {
        self.units
    }

    /// The site.
    pub fn site(&self) -> u32 {
        self.unit(0).lo as u32
    }

    /// Lanes that executed it together.
    pub fn mask(&self) -> u32 {
        (self.unit(0).lo >> 32) as u32
    }

    /// Linear index of the block.
    pub fn block(&self) -> u32 {
        self.unit(0).hi as u32
    }

    /// Warp of the block.
    pub fn warp(&self) -> u8 {
        (self.unit(0).hi >> 32) as u8
    }

    /// What it holds.
    pub fn payload(&self) -> Payload {
        self.payload
    }

    /// Tickets from before and after the operation.
    pub fn tickets(&self) -> Option<(u64, u64)> {
        self.payload.tickets.then(|| (self.unit(1).lo, self.unit(1).hi & !LAP))
    }

    /// The active lanes, low to high.
    pub fn lanes(&self) -> impl Iterator<Item = usize> + use<> {
        lanes(self.mask())
    }

    /// The active lanes, by rank; behind them, zeros.
    pub fn lanes_by_rank(&self) -> [u8; LANES] {
        let mut by_rank = [0; LANES];
        for (place, lane) in by_rank.iter_mut().zip(self.lanes()) {
            *place = lane as u8;
        }
        by_rank
    }

    fn values_at(&self) -> usize {
        1 + usize::from(self.payload.tickets)
    }

    fn by_lanes(&self) -> bool {
        self.unit(0).hi & BY_LANES != 0
    }

    fn compact(&self, index: usize, rank: usize) -> u64 {
        let unit = self.unit(self.values_at() + index);
        let stride = i64::from(unit.hi as u32 as i32);
        unit.lo.wrapping_add((rank as u64).wrapping_mul(stride.cast_unsigned()))
    }

    fn lane_unit(&self, rank: usize, second: usize) -> Unit {
        self.unit(self.values_at() + rank * self.payload.lane_units() + second)
    }

    /// First value and stride of `a` by rank, if the record is compact.
    pub fn a_progression(&self) -> Option<(u64, i64)> {
        if self.by_lanes() || !self.payload.a {
            return None;
        }
        let unit = self.unit(self.values_at());
        Some((unit.lo, i64::from(unit.hi as u32 as i32)))
    }

    /// The same however the record is laid out.
    #[inline]
    pub fn a_steps(&self) -> Option<(u64, i64)> {
        if !self.by_lanes() {
            return self.a_progression();
        }
        let step = self.payload.lane_units();
        let mut values =
            self.units.get(self.values_at()..)?.chunks_exact(step.max(1)).map(|lane| lane[0].hi & !LAP);
        let first = values.next()?;
        let Some(second) = values.next() else { return Some((first, 0)) };
        let stride = second.wrapping_sub(first);
        // One loop without branches.
        let (_, off) = values.fold((second, 0), |(last, off), a| (a, off | (a.wrapping_sub(last) ^ stride)));
        (off == 0).then_some((first, stride.cast_signed()))
    }

    /// `a` of all active lanes, by rank, and how many there are.
    #[inline]
    pub fn all_a(&self) -> ([u64; LANES], usize) {
        let lanes = self.mask().count_ones() as usize;
        let mut all = [0; LANES];
        if self.by_lanes() {
            let values = self.units.get(self.values_at()..).unwrap_or(&[]);
            for (a, units) in all.iter_mut().zip(values.chunks_exact(self.payload.lane_units())) {
                *a = units.first().map_or(0, |unit| unit.hi & !LAP);
            }
        } else {
            let (first, stride) = self.a_progression().unwrap_or_default();
            for (rank, a) in all.iter_mut().enumerate().take(lanes) {
                *a = first.wrapping_add((rank as u64).wrapping_mul(stride.cast_unsigned()));
            }
        }
        (all, lanes)
    }

    /// `a` of the active lane with this rank.
    pub fn a(&self, rank: usize) -> u64 {
        if self.by_lanes() { self.lane_unit(rank, 0).hi & !LAP } else { self.compact(0, rank) }
    }

    /// The value read by the lane with this rank.
    pub fn read(&self, rank: usize) -> Option<u64> {
        if !self.payload.read {
            return None;
        }
        Some(if self.by_lanes() {
            self.lane_unit(rank, 0).lo
        } else {
            self.compact(usize::from(self.payload.a), rank)
        })
    }

    /// The value that all lanes write, if that is easy to tell.
    pub fn one_value(&self) -> Option<u64> {
        let one = self.mask().is_power_of_two();
        if !self.payload.written || (self.by_lanes() && !one) {
            return None;
        }
        let value = self.written(0);
        value.filter(|value| one || self.written(1) == Some(*value))
    }

    /// The value written by the lane with this rank.
    pub fn written(&self, rank: usize) -> Option<u64> {
        if !self.payload.written {
            return None;
        }
        Some(if self.by_lanes() {
            self.lane_unit(rank, usize::from(self.payload.read)).lo
        } else {
            self.compact(usize::from(self.payload.a) + usize::from(self.payload.read), rank)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Encoder, Lanes};
    use super::*;
    use proptest::prelude::*;

    fn lanes_strategy() -> impl Strategy<Value = Lanes> {
        prop_oneof![
            (any::<u64>(), -64i64..64).prop_map(|(base, stride)| {
                std::array::from_fn(|lane| base.wrapping_add((lane as i64 * stride) as u64) & !LAP)
            }),
            proptest::array::uniform32(any::<u64>())
                .prop_map(|values: [u64; LANES]| values.map(|v| v & !LAP)),
        ]
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            site: u32, mask in 1u32.., block: u32, warp in 0u8..32, bits in 0u8..16,
            a in lanes_strategy(), read in lanes_strategy(), written in lanes_strategy(),
            tickets in (0u64..1 << 60, 0u64..1 << 60),
        ) {
            let payload = Payload {
                a: bits & 1 != 0, read: bits & 2 != 0, written: bits & 4 != 0, tickets: bits & 8 != 0,
            };
            let mut units = Vec::new();
            Encoder { site, mask, block, warp, payload, tickets, a: &a, read: &read, written: &written }
                .encode(&mut units);
            // The reader of a ring leaves the lap bits in.
            units.iter_mut().for_each(|unit| unit.hi |= LAP);
            let record = decode(&units).unwrap().unwrap();
            prop_assert_eq!(record.units().len(), units.len());
            prop_assert_eq!((record.site(), record.mask(), record.block(), record.warp()), (site, mask, block, warp));
            prop_assert_eq!(record.tickets(), payload.tickets.then_some(tickets));
            let (all, lanes) = record.all_a();
            prop_assert_eq!(lanes, record.lanes().count());
            for (rank, lane) in record.lanes().enumerate() {
                if payload.a { prop_assert_eq!((record.a(rank), all[rank]), (a[lane], a[lane])); }
                prop_assert_eq!(record.read(rank), payload.read.then_some(read[lane]));
                prop_assert_eq!(record.written(rank), payload.written.then_some(written[lane]));
            }
        }

        #[test]
        fn any_units_give_a_record_or_an_error(words in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..80)) {
            let units: Vec<_> = words.into_iter().map(|(lo, hi)| Unit { lo, hi }).collect();
            if let Ok(Some(record)) = decode(&units) {
                for rank in 0..record.lanes().count() {
                    let _ = (record.a(rank), record.read(rank), record.written(rank));
                }
            }
        }
    }
}
