//! Writing records, as the emulator does natively and device code does in PTX.

use super::{BY_LANES, FORMS_SHIFT, LANES, LAP, NARROW, Payload, UNITS_SHIFT, Unit, Value, WIDE};

/// One value per lane; only those of active lanes count.
pub type Lanes = [u64; LANES];

/// What one record says.
#[derive(Clone, Copy, Debug)]
pub struct Encoder<'v> {
    /// The site.
    pub site: u32,
    /// Lanes that execute it together.
    pub mask: u32,
    /// Linear index of the block in its grid.
    pub block: u32,
    /// Warp of the block.
    pub warp: u8,
    /// What is logged.
    pub payload: Payload,
    /// Tickets, if logged.
    pub tickets: (u64, u64),
    /// Addresses, if logged.
    pub a: &'v Lanes,
    /// Values read, if logged.
    pub read: &'v Lanes,
    /// Values written, if logged.
    pub written: &'v Lanes,
}

impl Encoder<'_> {
    /// Appends the record's units, without lap bits. A record with an empty mask is none.
    pub fn encode(&self, out: &mut Vec<Unit>) {
        if self.mask == 0 {
            return;
        }
        let start = out.len();
        out.push(Unit::default());
        if self.payload.tickets {
            out.push(Unit { lo: self.tickets.0, hi: self.tickets.1 });
        }
        let mut flags = self.payload.flags();
        if self.mask == u32::MAX {
            flags |= self.by_value(out) << FORMS_SHIFT;
        } else if !self.compact(out) {
            out.truncate(start + 1 + usize::from(self.payload.tickets));
            self.by_lanes(out);
            flags |= BY_LANES;
        }
        let units = (out.len() - start) as u64;
        let hi = u64::from(self.block) | u64::from(self.warp) << 32 | flags | units << UNITS_SHIFT;
        if let Some(header) = out.get_mut(start) {
            *header = Unit { lo: u64::from(self.site) | u64::from(self.mask) << 32, hi };
        }
    }

    /// The values that are logged, each with the place of its form.
    fn values(&self) -> impl Iterator<Item = (u32, &Lanes)> {
        self.payload.values().map(|value| match value {
            Value::A => (value.form_shift(), self.a),
            Value::Read => (value.form_shift(), self.read),
            Value::Written => (value.form_shift(), self.written),
        })
    }

    fn compact(&self, out: &mut Vec<Unit>) -> bool {
        for (_, values) in self.values() {
            let Some(unit) = progression(self.mask, values) else { return false };
            out.push(unit);
        }
        true
    }

    /// Each value of a whole warp in the form that fits; gives the forms.
    fn by_value(&self, out: &mut Vec<Unit>) -> u64 {
        let mut forms = 0;
        for (at, values) in self.values() {
            if let Some(unit) = progression(self.mask, values) {
                out.push(unit);
                continue;
            }
            let form = if values.iter().all(|value| value >> 32 == values[0] >> 32) { NARROW } else { WIDE };
            let top = if form == NARROW { 31 } else { 63 };
            let tops = (1..LANES).fold(0, |tops, lane| tops | (values[lane] >> top & 1) << (lane - 1));
            out.push(Unit { lo: values[0], hi: tops << 32 });
            forms |= form << at;
        }
        for (at, values) in self.values() {
            match forms >> at & 3 {
                NARROW => out.extend(values.as_chunks::<4>().0.iter().map(narrow)),
                WIDE => out.extend(values.as_chunks::<2>().0.iter().map(|[lo, hi]| wide(*lo, *hi))),
                _ => {}
            }
        }
        forms
    }

    fn by_lanes(&self, out: &mut Vec<Unit>) {
        let both = self.payload.read && self.payload.written;
        for lane in lanes(self.mask) {
            let value = if self.payload.read { self.read[lane] } else { self.written[lane] };
            let value = if self.payload.read || self.payload.written { value } else { 0 };
            out.push(Unit { lo: value, hi: if self.payload.a { self.a[lane] } else { 0 } });
            if both {
                out.push(Unit { lo: self.written[lane], hi: 0 });
            }
        }
    }
}

/// The lower halves of four values.
fn narrow(lanes: &[u64; 4]) -> Unit {
    let pair = |lo: u64, hi: u64| lo & u64::from(u32::MAX) | hi << 32;
    wide(pair(lanes[0], lanes[1]), pair(lanes[2], lanes[3]))
}

fn wide(lo: u64, hi: u64) -> Unit {
    Unit { lo, hi: hi & !LAP }
}

/// The unit of a progression, if the active lanes' values are one by rank.
fn progression(mask: u32, values: &Lanes) -> Option<Unit> {
    let mut active = lanes(mask);
    let first = values[active.next()?];
    let unit = |stride: i32| Unit { lo: first, hi: u64::from(stride.cast_unsigned()) };
    let Some(second) = active.next() else { return Some(unit(0)) };
    let stride = values[second].wrapping_sub(first).cast_signed();
    let stride = i32::try_from(stride).ok()?;
    if mask == u32::MAX {
        // All lanes: a loop without branches.
        let step = i64::from(stride).cast_unsigned();
        let mut off = 0;
        for lane in 1..LANES {
            off |= values[lane].wrapping_sub(values[lane - 1]) ^ step;
        }
        return (off == 0).then_some(unit(stride));
    }
    let mut expected = values[second];
    for lane in active {
        expected = expected.wrapping_add(i64::from(stride).cast_unsigned());
        if values[lane] != expected {
            return None;
        }
    }
    Some(unit(stride))
}

/// How many lanes a mask has. Mostly it is all of them, and counting bits takes a while on machines whose instruction for it is
/// not to be relied on.
#[inline]
pub fn count_lanes(mask: u32) -> u32 {
    #[inline(never)]
    fn count(mask: u32) -> u32 {
        mask.count_ones()
    }
    if mask == u32::MAX { u32::BITS } else { count(mask) }
}

/// The lanes of a mask, low to high.
#[inline(always)]
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        // A mask has 32 bits, so that the compiler sees an index below 32.
        let lane = left.trailing_zeros() as usize & 31;
        left &= left - 1;
        Some(lane)
    })
}
