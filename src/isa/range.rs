//! Accesses to more than elements: writes of a range, and matrices that a warp accesses together.

use super::classify::{Classified, at, certain, is_address, spaces, unordered};
use super::{Effect, Space};
use crate::ptx::ast::Instruction;
use crate::ptx::type_bytes;

/// A weak write of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fill {
    /// Where.
    pub space: Space,
    /// Operand of the address.
    pub address: u8,
    /// Bytes; `None`: operand 1 says how many.
    pub bytes: Option<u32>,
}

/// A matrix in memory that a warp loads or stores together (`wmma.load`, `wmma.store`). Which lane touches which element
/// is not specified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Stores, else loads.
    pub store: bool,
    /// Where.
    pub space: Space,
    /// Operand of the address.
    pub address: u8,
    /// Operand of the stride in elements; `None`: the lines are dense.
    pub stride: Option<u8>,
    /// Lines of consecutive elements.
    pub lines: u8,
    /// Elements of a line.
    pub length: u8,
    /// Bits of an element.
    pub element_bits: u8,
}

impl Tile {
    /// Address and bytes of each line of a tile at this address, where lines are so many elements apart.
    pub fn spans(self, base: u64, stride: u64) -> impl Iterator<Item = (u64, u32)> {
        let bytes = move |elements: u64| elements.wrapping_mul(self.element_bits.into()).div_ceil(8);
        (0..u64::from(self.lines)).map(move |line| {
            (base.wrapping_add(bytes(line.wrapping_mul(stride))), bytes(self.length.into()) as u32)
        })
    }
}

/// `st.bulk [a], bytes, 0`; `discard.global.L2 [a], 128`
pub(super) fn fill<'a>(instruction: &Instruction<'a>, bytes: Option<u32>) -> Classified<'a> {
    if !instruction.operands.first().is_some_and(is_address) {
        return certain(Effect::Unknown);
    }
    let space = spaces(instruction).next().unwrap_or(Space::Generic);
    certain(Effect::Fill(Fill { space, address: 0, bytes }))
}

/// `wmma.load`, `wmma.store`
pub(super) fn tile<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    if instruction.has("mma") {
        return certain(Effect::None);
    }
    let operands = &instruction.operands[..];
    let Some(address) = operands.iter().position(is_address) else { return certain(Effect::Unknown) };
    let store = instruction.has("store");
    let part = ["a", "b", "c", "d"].into_iter().find(|part| instruction.has(part));
    let shape = instruction.modifiers().iter().find_map(|word| shape(word.text));
    let element = instruction.modifiers().iter().filter_map(|word| element_bits(word.text)).last();
    let (Some(part), Some((m, n, k)), Some(element_bits)) = (part, shape, element) else {
        return unordered("a matrix access of unknown shape");
    };
    let (rows, columns) = match part {
        "a" => (m, k),
        "b" => (k, n),
        _ => (m, n),
    };
    let (lines, length) = if instruction.has("col") { (columns, rows) } else { (rows, columns) };
    let stride = if store { address + 2 } else { address + 1 };
    let tile = Tile {
        store,
        space: spaces(instruction).next().unwrap_or(Space::Generic),
        address: at(address),
        stride: (operands.len() > stride).then(|| at(stride)),
        lines,
        length,
        element_bits,
    };
    certain(Effect::Tile(tile))
}

/// `m16n16k16`
fn shape(word: &str) -> Option<(u8, u8, u8)> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    let size = |text: &str| text.parse::<u8>().ok().filter(|size| *size > 0);
    Some((size(m)?, size(n)?, size(k)?))
}

fn element_bits(word: &str) -> Option<u8> {
    Some(match word {
        "b1" => 1,
        "s4" | "u4" => 4,
        "tf32" => 32,
        _ => u8::try_from(type_bytes(word)? * 8).ok()?,
    })
}
