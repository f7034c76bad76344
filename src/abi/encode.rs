//! Writing records, as the emulator does natively and device code does in PTX.

use super::{BY_LANES, LANES, Payload, UNITS_SHIFT, Unit};

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
        let compact = self.compact(out);
        let mut flags = self.payload.flags();
        if !compact {
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

    fn compact(&self, out: &mut Vec<Unit>) -> bool {
        let parts =
            [(self.payload.a, self.a), (self.payload.read, self.read), (self.payload.written, self.written)];
        for (_, values) in parts.iter().filter(|(logged, _)| *logged) {
            let Some((first, stride)) = progression(self.mask, values) else { return false };
            out.push(Unit { lo: first, hi: u64::from(stride.cast_unsigned()) });
        }
        true
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

/// First value and stride, if the active lanes' values are such a progression by rank.
fn progression(mask: u32, values: &Lanes) -> Option<(u64, i32)> {
    let mut active = lanes(mask);
    let first = values[active.next()?];
    let Some(second) = active.next() else { return Some((first, 0)) };
    let stride = values[second].wrapping_sub(first).cast_signed();
    let stride = i32::try_from(stride).ok()?;
    if mask == u32::MAX {
        // All lanes: a loop without branches.
        let step = i64::from(stride).cast_unsigned();
        let mut off = 0;
        for lane in 1..LANES {
            off |= values[lane].wrapping_sub(values[lane - 1]) ^ step;
        }
        return (off == 0).then_some((first, stride));
    }
    let mut expected = values[second];
    for lane in active {
        expected = expected.wrapping_add(i64::from(stride).cast_unsigned());
        if values[lane] != expected {
            return None;
        }
    }
    Some((first, stride))
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
