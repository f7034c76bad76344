//! Records as they came, in case the engine has to see them.

use crate::abi::Unit;

/// Units of one piece of memory.
const PIECE: usize = 1 << 20;

/// Where something lies that came at once, and its place among all that came.
#[derive(Clone, Copy, Debug)]
struct Segment {
    number: u64,
    piece: usize,
    from: usize,
    to: usize,
}

/// What one worker keeps. Its memory is used again.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pieces: Vec<Vec<Unit>>,
    /// The piece that is filled.
    last: usize,
    segments: Vec<Segment>,
}

impl Kept {
    /// Keeps units as those of this number, which is above those before.
    pub(super) fn keep(&mut self, number: u64, units: &[Unit]) {
        let full = |piece: &Vec<Unit>| !piece.is_empty() && piece.len() + units.len() > piece.capacity();
        if self.pieces.get(self.last).is_some_and(full) {
            self.last += 1;
        }
        if self.last >= self.pieces.len() {
            self.pieces.push(Vec::with_capacity(PIECE.max(units.len())));
        }
        if let Some(piece) = self.pieces.get_mut(self.last) {
            let from = piece.len();
            piece.extend_from_slice(units);
            self.segments.push(Segment { number, piece: self.last, from, to: piece.len() });
        }
    }

    pub(super) fn clear(&mut self) {
        self.pieces.iter_mut().for_each(Vec::clear);
        self.segments.clear();
        self.last = 0;
    }
}

/// Hands over what several have kept of what came before a number, in the order in which it came.
pub(super) fn hand_over<'k>(all: impl Iterator<Item = &'k Kept>, before: u64, mut take: impl FnMut(&[Unit])) {
    let segments = |kept: &'k Kept| {
        let segments = kept.segments.iter().filter(move |segment| segment.number < before);
        segments.map(move |segment| (segment.number, kept, segment))
    };
    let mut all: Vec<_> = all.flat_map(segments).collect();
    all.sort_by_key(|(number, ..)| *number);
    for (_, kept, segment) in all {
        let units = kept.pieces.get(segment.piece).and_then(|piece| piece.get(segment.from..segment.to));
        take(units.unwrap_or(&[]));
    }
}
