//! Records as they came, until the engine takes them.

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

/// What is kept in one place. Its memory is used again.
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

    /// Has the memory for so many units at hand.
    pub(super) fn warm(&mut self, units: usize) {
        let mut piece = Vec::with_capacity(PIECE);
        piece.resize(units.min(PIECE), Unit::default());
        piece.clear();
        self.pieces.push(piece);
    }

    /// Forgets what has this number or a later one.
    pub(super) fn forget_from(&mut self, number: u64) {
        self.segments.truncate(self.segments.partition_point(|segment| segment.number < number));
    }

    pub(super) fn clear(&mut self) {
        self.pieces.iter_mut().for_each(Vec::clear);
        self.segments.clear();
        self.last = 0;
    }

    fn units(&self, segment: &Segment) -> &[Unit] {
        self.pieces.get(segment.piece).and_then(|piece| piece.get(segment.from..segment.to)).unwrap_or(&[])
    }
}

/// What several have kept, in the order in which it came.
pub(super) fn as_it_came<'k>(all: impl IntoIterator<Item = &'k Kept>) -> Vec<&'k [Unit]> {
    let numbered = |kept: &'k Kept| kept.segments.iter().map(|segment| (segment.number, kept.units(segment)));
    let mut all: Vec<_> = all.into_iter().flat_map(numbered).collect();
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, units)| units).collect()
}

/// All that came of a launch.
#[derive(Debug, Default)]
pub(super) struct Held {
    parts: Vec<Kept>,
    /// Memory that was used.
    spare: Vec<Kept>,
    /// How often something came.
    number: u64,
    bytes: usize,
}

impl Held {
    /// Keeps what comes next.
    pub(super) fn keep(&mut self, units: &[Unit]) {
        if self.parts.is_empty() {
            self.parts.push(self.spare.pop().unwrap_or_default());
        }
        if let Some(part) = self.parts.last_mut() {
            part.keep(self.number, units);
            self.number += 1;
            self.bytes += size_of_val(units);
        }
    }

    /// Takes over what others have kept of all that came before this number, and leaves them memory that is empty.
    pub(super) fn adopt<'k>(&mut self, all: impl Iterator<Item = &'k mut Kept>, number: u64) {
        for kept in all {
            let mut part = std::mem::replace(kept, self.spare.pop().unwrap_or_default());
            part.forget_from(number);
            self.bytes += part.segments.iter().map(|segment| segment.to - segment.from).sum::<usize>()
                * size_of::<Unit>();
            self.parts.push(part);
        }
        self.number = number;
    }

    /// Bytes of records.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn as_it_came(&self) -> Vec<&[Unit]> {
        as_it_came(&self.parts)
    }

    pub(super) fn clear(&mut self) {
        for mut part in self.parts.drain(..) {
            part.clear();
            self.spare.push(part);
        }
        (self.number, self.bytes) = (0, 0);
    }
}
