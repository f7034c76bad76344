//! Which bytes the lanes of a record touch.

use super::page::LINE;
use crate::abi::{PEER, Record, Tagged};

use crate::engine::shadow::WORD;

/// What tells whether two records touch the same bytes by the same lanes, and lets one find the lanes of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Pattern {
    pub(super) first: u64,
    /// Between lanes; `None` where they lie at will.
    pub(super) stride: Option<i64>,
    /// Of each lane.
    pub(super) bytes: u8,
}

impl Pattern {
    #[inline]
    pub(in crate::engine) fn of(record: &Record<'_>, bytes: u8) -> Self {
        match record.a_steps() {
            Some((first, stride)) => Self { first, stride: Some(stride), bytes },
            None => Self { first: record.a(0), stride: None, bytes },
        }
    }

    /// The first byte, where 32 lanes touch a line each byte of which is one lane's.
    #[inline]
    pub(in crate::engine) fn line(&self) -> Option<u64> {
        let whole = self.bytes == WORD as u8 && self.stride == Some(WORD as i64);
        (whole && self.first.is_multiple_of(WORD * LINE as u64)).then_some(self.first)
    }

    /// Whether all lanes are at one place.
    pub(super) fn is_one_place(&self) -> bool {
        self.stride == Some(0)
    }

    /// Ranks of the lanes of a record that touch the word of this number.
    pub(super) fn ranks_at(&self, record: &Record<'_>, word: u64) -> u32 {
        let begin = word * WORD;
        let mut ranks = 0;
        let (all, lanes) = record.all_a();
        for (rank, at) in all.into_iter().enumerate().take(lanes) {
            let touches = at < begin.saturating_add(WORD) && at.saturating_add(self.bytes.into()) > begin;
            ranks |= u32::from(touches) << rank;
        }
        ranks
    }
}

/// The bytes of all lanes.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) enum Spans {
    /// Without a gap.
    One(u64, u64),
    /// Each lane's apart: the lowest, the distance between lanes, how many lanes there are.
    Apart(u64, u64, u64),
    /// As they were listed.
    Listed,
}

/// The bytes of all lanes; `None` where lanes get in each other's way or do not act in one memory.
pub(super) fn spans(
    record: &Record<'_>,
    pattern: &Pattern,
    writes: bool,
    list: &mut Vec<(u64, u64)>,
) -> Option<Spans> {
    let bytes = u64::from(pattern.bytes);
    let lanes = record.lane_count();
    let Some(stride) = pattern.stride else { return listed(record, pattern, writes, list) };
    let last =
        pattern.first.wrapping_add((lanes as u64).wrapping_sub(1).wrapping_mul(stride.cast_unsigned()));
    let (low, high) = (pattern.first.min(last), pattern.first.max(last));
    let end = high.checked_add(bytes)?;
    let step = stride.unsigned_abs();
    // The lanes lie between first and last only if nothing wrapped.
    let far = step.checked_mul(lanes as u64)? > 1 << 32;
    let one_memory = Tagged(low).is_shared() == Tagged(end).is_shared();
    if far || !one_memory || is_of_peer(low) || is_of_peer(high) {
        return None;
    }
    if lanes > 1 && writes && step < bytes {
        return None;
    }
    Some(if step <= bytes { Spans::One(low, end) } else { Spans::Apart(low, step, lanes as u64) })
}

fn listed(record: &Record<'_>, pattern: &Pattern, writes: bool, list: &mut Vec<(u64, u64)>) -> Option<Spans> {
    let bytes = u64::from(pattern.bytes);
    let (mut all, lanes) = record.all_a();
    let all = all.get_mut(..lanes)?;
    // One memory for all, and none of it that of a peer.
    let shared = Tagged(pattern.first).is_shared();
    let other =
        |a: &u64| Tagged(*a).is_shared() != shared || is_of_peer(*a) || a.checked_add(bytes).is_none();
    if all.iter().any(other) {
        return None;
    }
    if writes && !all.is_sorted() {
        all.sort_unstable();
    }
    list.clear();
    let (mut start, mut end) = (pattern.first, pattern.first);
    if writes {
        start = *all.first()?;
        end = start;
    }
    for (at, a) in all.iter().enumerate() {
        if *a == end {
            end += bytes;
        } else if writes && *a < end {
            return None;
        } else if at == 0 || *a != start || end - start != bytes {
            list.push((start, end));
            (start, end) = (*a, a + bytes);
        }
    }
    list.push((start, end));
    Some(Spans::Listed)
}

fn is_of_peer(address: u64) -> bool {
    Tagged(address).is_shared() && address & PEER != 0
}
