//! Reading records. Nothing is copied: a `Record` looks into the units it was read from.

use super::encode::{count_lanes, lanes};
use super::{
    BUNDLE, BY_LANES, FORMS_SHIFT, HAS_A, HAS_READ, HAS_TICKETS, HAS_WRITTEN, LANES, LAP, MAX_UNITS, NARROW,
    PACKED_UNITS, Payload, UNITS_SHIFT, Unit, Value,
};

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'u> {
    units: &'u [Unit],
    /// The first unit.
    header: Unit,
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
    /// It stands for a bundle, and its site leads none.
    #[error("a record stands for a bundle of site {site}, which leads none")]
    Bundle {
        /// The site.
        site: u32,
    },
}

/// The records in `units`, up to the first damage.
pub fn records(mut units: &[Unit]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let record = decode(units).ok().flatten()?;
        units = units.get(record.units().len()..).unwrap_or(&[]);
        Some(record)
    })
}

/// Reads the record at the start of `units`; `None` when there are none.
#[inline]
pub fn decode(units: &[Unit]) -> Result<Option<Record<'_>>, DecodeError> {
    let Some(header) = units.first().copied() else { return Ok(None) };
    let record = Record { units, header };
    let length = (header.hi >> UNITS_SHIFT & 0x7f) as usize;
    let need = record.values_at() + record.value_units();
    if length != need || length > MAX_UNITS {
        return Err(DecodeError::Length { units: length, need });
    }
    match units.get(..length) {
        Some(units) => Ok(Some(Record { units, header })),
        None => Err(DecodeError::Truncated { units: length, have: units.len() }),
    }
}

impl<'u> Record<'u> {
    fn unit(&self, at: usize) -> Unit {
        self.units.get(at).copied().unwrap_or_default()
    }

    fn has(&self, flag: u64) -> bool {
        self.header.hi & flag != 0
    }

    /// The units it was read from.
    pub fn units(&self) -> &'u [Unit] {
        self.units
    }

    /// The site.
    pub fn site(&self) -> u32 {
        self.header.lo as u32
    }

    /// Lanes that executed it together.
    pub fn mask(&self) -> u32 {
        (self.header.lo >> 32) as u32
    }

    /// Linear index of the block.
    pub fn block(&self) -> u32 {
        self.header.hi as u32
    }

    /// Warp of the block.
    pub fn warp(&self) -> u8 {
        (self.header.hi >> 32) as u8
    }

    /// Whether it stands for a bundle.
    pub fn is_bundle(&self) -> bool {
        self.has(BUNDLE)
    }

    /// What it holds.
    pub fn payload(&self) -> Payload {
        Payload::from_flags(self.header.hi)
    }

    /// Tickets from before and after the operation.
    pub fn tickets(&self) -> Option<(u64, u64)> {
        self.has(HAS_TICKETS).then(|| (self.unit(1).lo, self.unit(1).hi & !LAP))
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
        1 + usize::from(self.has(HAS_TICKETS))
    }

    fn value_units(&self) -> usize {
        let forms = self.forms();
        match (self.by_lanes(), forms) {
            (false, 0) => self.values_logged(),
            (true, 0) => self.lane_count() * self.lane_units(),
            // Values of lanes that are not there, or in two forms at once.
            _ if self.by_lanes() || self.mask() != u32::MAX || forms & forms >> 1 & 0x15 != 0 => MAX_UNITS,
            _ => self.values_logged() + packed_units(forms),
        }
    }

    fn values_logged(&self) -> usize {
        usize::from(self.has(HAS_A)) + usize::from(self.has(HAS_READ)) + usize::from(self.has(HAS_WRITTEN))
    }

    fn by_lanes(&self) -> bool {
        self.has(BY_LANES)
    }

    /// The forms of the values, two bits each.
    fn forms(&self) -> u64 {
        self.header.hi >> FORMS_SHIFT & 0x3f
    }

    /// The value of a rank, of a record that is not by lanes.
    fn value(&self, which: Value, rank: usize) -> u64 {
        let unit = self.unit(self.values_at() + self.index(which));
        let forms = self.forms();
        match forms >> which.form_shift() & 3 {
            0 => {
                let stride = i64::from(unit.hi as u32 as i32);
                unit.lo.wrapping_add((rank as u64).wrapping_mul(stride.cast_unsigned()))
            }
            NARROW => {
                let four = self.unit(self.packed_at(which) + rank / 4);
                let pair = if rank & 2 == 0 { four.lo } else { four.hi };
                let half = pair >> (rank as u32 % 2 * 32) as u64 & u64::from(u32::MAX);
                let high = unit.lo & !u64::from(u32::MAX);
                high | if rank & 3 == 3 { half & !(1 << 31) | top(unit, rank) << 31 } else { half }
            }
            _ => {
                let two = self.unit(self.packed_at(which) + rank / 2);
                if rank & 1 == 0 { two.lo } else { two.hi & !LAP | top(unit, rank) << 63 }
            }
        }
    }

    /// Which of the values logged it is.
    fn index(&self, which: Value) -> usize {
        match which {
            Value::A => 0,
            Value::Read => usize::from(self.has(HAS_A)),
            Value::Written => usize::from(self.has(HAS_A)) + usize::from(self.has(HAS_READ)),
        }
    }

    /// Where its packed values begin.
    fn packed_at(&self, which: Value) -> usize {
        let before = self.forms() & ((1 << which.form_shift()) - 1);
        self.values_at() + self.values_logged() + packed_units(before)
    }

    fn is_packed(&self, which: Value) -> bool {
        self.forms() >> which.form_shift() & 3 != 0
    }

    fn lane_unit(&self, rank: usize, second: usize) -> Unit {
        self.unit(self.values_at() + rank * self.lane_units() + second)
    }

    /// How many units each lane takes when values stand lane by lane.
    fn lane_units(&self) -> usize {
        if self.has(HAS_READ) && self.has(HAS_WRITTEN) { 2 } else { 1 }
    }

    /// How many lanes take part.
    #[inline]
    pub fn lane_count(&self) -> usize {
        count_lanes(self.mask()) as usize
    }

    /// First value and stride of `a` by rank, if the record is compact.
    pub fn a_progression(&self) -> Option<(u64, i64)> {
        if self.by_lanes() || !self.has(HAS_A) || self.is_packed(Value::A) {
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
        let units = self.units.get(self.values_at()..)?;
        // Two loops, as the compiler makes a quick one only of a step that it knows.
        if self.lane_units() == 1 { steps::<1>(units) } else { steps::<2>(units) }
    }

    /// `a` of all active lanes, by rank, and how many there are.
    #[inline]
    pub fn all_a(&self) -> ([u64; LANES], usize) {
        let lanes = self.lane_count();
        let mut all = [0; LANES];
        if self.by_lanes() {
            let values = self.units.get(self.values_at()..).unwrap_or(&[]);
            for (a, units) in all.iter_mut().zip(values.chunks_exact(self.lane_units())) {
                *a = units.first().map_or(0, |unit| unit.hi & !LAP);
            }
        } else if self.is_packed(Value::A) {
            self.unpack_a(&mut all);
        } else {
            let (first, stride) = self.a_progression().unwrap_or_default();
            for (rank, a) in all.iter_mut().enumerate().take(lanes) {
                *a = first.wrapping_add((rank as u64).wrapping_mul(stride.cast_unsigned()));
            }
        }
        (all, lanes)
    }

    /// `a` of all lanes, packed.
    fn unpack_a(&self, all: &mut [u64; LANES]) {
        let unit = self.unit(self.values_at());
        let packed = self.units.get(self.packed_at(Value::A)..).unwrap_or(&[]);
        if self.forms() & 3 == NARROW {
            let (high, low) = (unit.lo & !u64::from(u32::MAX), u64::from(u32::MAX));
            for (lanes, four) in all.as_chunks_mut::<4>().0.iter_mut().zip(packed) {
                *lanes = [four.lo & low, four.lo >> 32, four.hi & low, four.hi >> 32 & !(1 << 31)];
                lanes.iter_mut().for_each(|lane| *lane |= high);
            }
            for rank in (3..LANES).step_by(4) {
                all[rank] |= top(unit, rank) << 31;
            }
        } else {
            // An address has 63 bits.
            for (lanes, two) in all.as_chunks_mut::<2>().0.iter_mut().zip(packed) {
                *lanes = [two.lo, two.hi & !LAP];
            }
        }
    }

    /// `a` of the active lane with this rank.
    pub fn a(&self, rank: usize) -> u64 {
        if self.by_lanes() { self.lane_unit(rank, 0).hi & !LAP } else { self.value(Value::A, rank) }
    }

    /// The value read by the lane with this rank.
    pub fn read(&self, rank: usize) -> Option<u64> {
        if !self.has(HAS_READ) {
            return None;
        }
        Some(if self.by_lanes() { self.lane_unit(rank, 0).lo } else { self.value(Value::Read, rank) })
    }

    /// The value that all lanes write, if that is easy to tell.
    pub fn one_value(&self) -> Option<u64> {
        let one = self.mask().is_power_of_two();
        if !self.has(HAS_WRITTEN) || self.is_packed(Value::Written) || (self.by_lanes() && !one) {
            return None;
        }
        let value = self.written(0);
        value.filter(|value| one || self.written(1) == Some(*value))
    }

    /// The value written by the lane with this rank.
    pub fn written(&self, rank: usize) -> Option<u64> {
        if !self.has(HAS_WRITTEN) {
            return None;
        }
        Some(if self.by_lanes() {
            self.lane_unit(rank, usize::from(self.has(HAS_READ))).lo
        } else {
            self.value(Value::Written, rank)
        })
    }
}

/// Units of packed values in these forms.
fn packed_units(forms: u64) -> usize {
    PACKED_UNITS * ((forms & 3) + (forms >> 2 & 3) + (forms >> 4 & 3)) as usize
}

/// The bit of a packed value that stands in the value's own unit.
fn top(unit: Unit, rank: usize) -> u64 {
    unit.hi >> (31 + rank) & 1
}

/// First value and stride of addresses that lie so many units apart.
fn steps<const STEP: usize>(units: &[Unit]) -> Option<(u64, i64)> {
    let (lanes, _) = units.as_chunks::<STEP>();
    let a = |lane: &[Unit; STEP]| lane[0].hi & !LAP;
    let first = a(lanes.first()?);
    let Some(second) = lanes.get(1) else { return Some((first, 0)) };
    let stride = a(second).wrapping_sub(first);
    // Without the lap bit, which no address has; neither does the last one, nor any between, as they lie in order.
    let distance = stride.cast_signed().checked_mul(lanes.len() as i64 - 1)?;
    if first.checked_add_signed(distance)? & LAP != 0 {
        return None;
    }
    let (mut expected, mut off) = (first, 0);
    let (fours, rest) = lanes.as_chunks::<4>();
    for four in fours {
        for (lane, distance) in four.iter().zip([0, stride, stride.wrapping_mul(2), stride.wrapping_mul(3)]) {
            off |= lane[0].hi ^ expected.wrapping_add(distance);
        }
        expected = expected.wrapping_add(stride.wrapping_mul(4));
    }
    for lane in rest {
        off |= lane[0].hi ^ expected;
        expected = expected.wrapping_add(stride);
    }
    (off & !LAP == 0).then_some((first, stride.cast_signed()))
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
            (any::<u64>(), proptest::array::uniform32(any::<u32>())).prop_map(|(high, low)| {
                low.map(|low| (high & !u64::from(u32::MAX) | u64::from(low)) & !LAP)
            }),
            proptest::array::uniform32(any::<u64>())
                .prop_map(|values: [u64; LANES]| values.map(|v| v & !LAP)),
        ]
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            site: u32, mask in prop_oneof![Just(u32::MAX), 1u32..], block: u32, warp in 0u8..32, bits in 0u8..16,
            a in lanes_strategy(), read in lanes_strategy(), written in lanes_strategy(), top in any::<u32>(),
            tickets in (0u64..1 << 60, 0u64..1 << 60),
        ) {
            let payload = Payload {
                a: bits & 1 != 0, read: bits & 2 != 0, written: bits & 4 != 0, tickets: bits & 8 != 0,
            };
            // A value has all 64 bits.
            let written: Lanes = std::array::from_fn(|lane| written[lane] | u64::from(top >> lane & 1) << 63);
            let mut units = Vec::new();
            Encoder { site, mask, block, warp, payload, tickets, a: &a, read: &read, written: &written }
                .encode(&mut units);
            // The reader of a ring leaves the lap bits in.
            units.iter_mut().for_each(|unit| unit.hi |= LAP);
            let record = decode(&units).unwrap().unwrap();
            prop_assert_eq!(record.units().len(), units.len());
            if payload.written && (1..LANES).any(|lane| mask >> lane & 1 != 0 && written[lane] != written[0]) && mask & 1 != 0 {
                prop_assert_eq!(record.one_value(), None);
            }
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
