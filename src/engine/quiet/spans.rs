//! Which bytes the lanes of a record touch.

use smallvec::SmallVec;

use crate::abi::{PEER, Record, Tagged};
use crate::engine::shadow::WORD;

/// What tells whether two records touch the same bytes by the same lanes, and lets one find the lanes of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) first: u64,
    /// Between lanes; `None` where they lie at will.
    pub(super) stride: Option<i64>,
    /// Of each lane.
    pub(super) bytes: u8,
}

impl Pattern {
    pub(super) fn of(record: &Record<'_>, bytes: u8) -> Self {
        match record.a_progression() {
            Some((first, stride)) => Self { first, stride: Some(stride), bytes },
            None => Self { first: record.a(0), stride: None, bytes },
        }
    }

    /// Whether all lanes are at one place.
    pub(super) fn is_one_place(&self) -> bool {
        self.stride == Some(0)
    }

    /// Ranks of the lanes of a record that touch the word of this number.
    pub(super) fn ranks_at(&self, record: &Record<'_>, word: u64) -> u32 {
        let begin = word * WORD;
        let mut ranks = 0;
        for rank in 0..record.mask().count_ones() as usize {
            let at = record.a(rank);
            let touches = at < begin.saturating_add(WORD) && at.saturating_add(self.bytes.into()) > begin;
            ranks |= u32::from(touches) << rank;
        }
        ranks
    }
}

/// Ranges of bytes.
pub(super) type Spans = SmallVec<[(u64, u64); 32]>;

/// The bytes of all lanes; `None` where lanes get in each other's way or do not act in one memory.
pub(super) fn spans(record: &Record<'_>, pattern: &Pattern, writes: bool) -> Option<Spans> {
    let bytes = u64::from(pattern.bytes);
    let lanes = record.mask().count_ones() as usize;
    let mut spans = Spans::new();
    let Some(stride) = pattern.stride else {
        let mut starts: SmallVec<[u64; 32]> = (0..lanes).map(|rank| record.a(rank)).collect();
        if writes && !starts.is_sorted() {
            starts.sort_unstable();
        }
        let of_one = |at: u64| Tagged(at).is_shared() == Tagged(pattern.first).is_shared();
        for start in starts {
            if !of_one(start) || is_of_peer(start) {
                return None;
            }
            let end = start.checked_add(bytes)?;
            match spans.last_mut() {
                Some((_, last)) if *last == start => *last = end,
                Some((_, last)) if writes && *last > start => return None,
                Some(same) if *same == (start, end) => {}
                _ => spans.push((start, end)),
            }
        }
        return Some(spans);
    };
    let last = record.a(lanes.saturating_sub(1));
    let (low, high) = (pattern.first.min(last), pattern.first.max(last));
    let end = high.checked_add(bytes)?;
    let one_memory = Tagged(low).is_shared() == Tagged(end).is_shared();
    // The lanes lie between first and last only if nothing wrapped.
    let steps = stride.unsigned_abs().checked_mul(lanes as u64)?;
    if !one_memory || is_of_peer(low) || is_of_peer(high) || steps > 1 << 32 {
        return None;
    }
    if lanes > 1 && writes && stride.unsigned_abs() < bytes {
        return None;
    }
    if stride.unsigned_abs() <= bytes {
        spans.push((low, end));
        return Some(spans);
    }
    for rank in 0..lanes as u64 {
        let start = low.wrapping_add(rank.wrapping_mul(stride.unsigned_abs()));
        spans.push((start, start.wrapping_add(bytes)));
    }
    Some(spans)
}

fn is_of_peer(address: u64) -> bool {
    Tagged(address).is_shared() && address & PEER != 0
}
