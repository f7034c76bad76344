//! `wgmma`: products that a warpgroup of four warps makes beside its threads, of matrices in shared memory that descriptors tell of.
//!
//! Left out: the sparse form, which is not covered.

use std::ops::Range;

use super::Effect;
use super::asynchronous::{GroupKind, GroupOp};
use super::classify::{Classified, at, certain};
use crate::ptx::ast::{Instruction, Operand};

/// Lines of the first matrix that a warp multiplies.
pub const LINES: u64 = 16;
/// Bytes of a line, whatever its elements are.
pub const LINE: usize = 32;
/// Bytes that lie together in memory.
pub const PIECE: usize = 16;
/// Warps of a warpgroup.
pub const WARPS: u8 = 4;

/// `wgmma.mma_async`: what it reads of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// Operand of the first matrix' descriptor; `None`: it is in registers.
    pub a: Option<u8>,
    /// Operand of the second one's.
    pub b: u8,
    /// Columns of the second matrix.
    pub columns: u16,
    /// Whether the elements of a column of the first, and of a row of the second, lie next to each other.
    pub transposed: (bool, bool),
}

/// 16 bytes of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset in shared memory.
    pub address: u64,
    /// The line that it is of, or the first of eight.
    pub line: u64,
    /// Its first byte in that line. Of eight lines it has two bytes each.
    pub at: usize,
}

/// Where a matrix lies.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    start: u64,
    leading: u64,
    stride: u64,
    /// Bytes of a row of the pattern.
    wide: u64,
    /// The row of 128 bytes in which the pattern begins.
    base: u64,
}

/// Addresses in a descriptor have so many bits.
const REACH: u64 = (1 << 18) - 1;

impl Descriptor {
    fn of(bits: u64) -> Self {
        let field = |at: u32| (bits >> at & 0x3fff) << 4;
        let wide = match bits >> 62 {
            0 => 16,
            1 => 128,
            2 => 64,
            _ => 32,
        };
        Self { start: field(0), leading: field(16), stride: field(32), wide, base: bits >> 49 & 7 }
    }

    /// Swizzling moves the pieces of a row of 128 bytes by the number of that row in the pattern.
    fn place(self, offset: u64) -> u64 {
        let address = self.start.wrapping_add(offset);
        let row = (address >> 7).wrapping_sub(self.base);
        (address ^ (row & (self.wide / PIECE as u64 - 1)) << 4) & REACH
    }

    /// Eight lines lie below each other, and their second 16 bytes beside them.
    fn by_lines(self, line: u64, second: bool) -> u64 {
        let beside = if self.wide == 16 { self.leading } else { PIECE as u64 };
        self.place(line / 8 * self.stride + line % 8 * self.wide + u64::from(second) * beside)
    }

    /// Eight elements of as many lines lie together, those of the next eight beside them as far as a row of the pattern is wide.
    fn across(self, eight: u64, element: u64) -> u64 {
        let (beside, below) =
            if self.wide == 16 { (self.stride, self.leading) } else { (self.leading, self.stride) };
        let row = self.wide / PIECE as u64;
        let offset = eight % row * PIECE as u64 + eight / row * beside;
        self.place(offset + element % 8 * self.wide + element / 8 * below)
    }
}

/// The pieces of these lines. Lines are rows of the first matrix and columns of the second; of transposed ones, multiples of eight.
pub fn pieces(descriptor: u64, lines: Range<u64>, transposed: bool) -> impl Iterator<Item = Piece> {
    let matrix = Descriptor::of(descriptor);
    let along = (!transposed).then(|| {
        lines.clone().flat_map(move |line| {
            [false, true].map(|second| Piece {
                address: matrix.by_lines(line, second),
                line,
                at: usize::from(second) * PIECE,
            })
        })
    });
    let across = transposed.then(|| {
        (lines.start / 8..lines.end.div_ceil(8)).flat_map(move |eight| {
            (0..LINE as u64 / 2).map(move |element| Piece {
                address: matrix.across(eight, element),
                line: eight * 8,
                at: element as usize * 2,
            })
        })
    });
    along.into_iter().flatten().chain(across.into_iter().flatten())
}

/// Columns of `m64n8k16` and its like.
pub fn columns(instruction: &Instruction<'_>) -> Option<u16> {
    let columns = instruction.modifiers().iter().find_map(|word| {
        let (columns, _) = word.text.strip_prefix("m64n")?.split_once('k')?;
        columns.parse().ok()
    })?;
    (columns % 8 == 0 && (8..=256).contains(&columns)).then_some(columns)
}

/// `wgmma...`
pub(super) fn wgmma<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let has = |word| instruction.has(word);
    let operands = &instruction.operands[..];
    let constant = |index: usize| match operands.get(index) {
        Some(Operand::Int(value, _)) => Some(value.get()),
        _ => None,
    };
    let unknown = |what| certain(Effect::NotCovered { what, orders: false });
    if has("fence") {
        // Registers only.
        return certain(Effect::None);
    }
    if has("commit_group") {
        return certain(Effect::Group(GroupOp::Commit(GroupKind::Warpgroup)));
    }
    if has("wait_group") {
        let Some(pending) = constant(0) else {
            return unknown("a wait for groups whose number is no constant");
        };
        let pending = u32::try_from(pending).unwrap_or(u32::MAX);
        return certain(Effect::Group(GroupOp::Wait { kind: GroupKind::Warpgroup, pending, reads: false }));
    }
    let (Some(columns), true, false) = (columns(instruction), has("mma_async"), has("sp")) else {
        return unknown("a warpgroup matrix operation of unknown kind");
    };
    let in_registers = matches!(operands.get(1), Some(Operand::Vector(_)));
    let turned = |index: usize| constant(index).is_some_and(|way| way != 0);
    let transposed = match (operands.len(), in_registers) {
        (8, false) => (turned(6), turned(7)),
        (7, true) => (false, turned(6)),
        _ => (false, false),
    };
    certain(Effect::Product(Product { a: (!in_registers).then(|| at(1)), b: at(2), columns, transposed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(start: u64, leading: u64, stride: u64, swizzle: u64) -> u64 {
        start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62
    }

    #[test]
    fn every_piece_has_a_place_of_its_own() {
        // Strides with which nothing overlaps: by lines, and across.
        for (swizzle, wide) in [(0, 16), (1, 128), (2, 64), (3, 32)] {
            let by_lines = descriptor(1024, 128, if wide == 16 { 256 } else { 8 * wide }, swizzle);
            let across = descriptor(
                1024,
                if wide == 16 { 4096 } else { 16 * wide },
                if wide == 16 { 128 } else { 8 * wide },
                swizzle,
            );
            for (descriptor, transposed) in [(by_lines, false), (across, true)] {
                let mut places: Vec<_> =
                    pieces(descriptor, 0..64, transposed).map(|piece| piece.address).collect();
                places.sort_unstable();
                places.dedup();
                assert_eq!(places.len(), 64 * LINE / PIECE, "{swizzle} {transposed}");
                assert!(places.iter().all(|place| place % PIECE as u64 == 0 && *place >= 1024));
            }
        }
    }

    #[test]
    fn a_swizzle_goes_by_the_row_of_the_address() {
        let of = |start, swizzle| {
            let matrix = descriptor(start, 16, 1024, swizzle);
            pieces(matrix, 1..2, false).map(|piece| piece.address).collect::<Vec<_>>()
        };
        assert_eq!(of(0, 0), [16, 32]);
        assert_eq!(of(0, 1), [128 + 16, 128]);
        assert_eq!(of(32, 1), [128 + 48, 128 + 32]);
        assert_eq!(of(0, 2), [64, 80]);
        assert_eq!(of(128, 3), [128 + 32 + 16, 128 + 32]);
        // Of a pattern that begins a row later.
        let matrix = descriptor(128, 16, 1024, 1) | 1 << 49;
        assert_eq!(pieces(matrix, 0..1, false).map(|piece| piece.address).collect::<Vec<_>>(), [128, 144]);
    }
}
