//! Which lane holds which elements of a matrix. `mma` has the fragments of the PTX ISA, in which one rule covers all shapes but
//! the oldest; those of `wmma` are for each implementation to choose, and are as simple as can be.

use super::super::types::Ty;

/// Where the elements of an operand are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// First operand of `mma`.
    A,
    /// Second operand.
    B,
    /// Sum and result, also of `wgmma`.
    C,
    /// Of `mma.m8n8k4` of 16-bit floats, four products of eight lanes each: first operand, with its elements by columns.
    QuarterA(bool),
    /// Second operand, likewise.
    QuarterB(bool),
    /// Sum and result.
    QuarterC,
    /// `wmma`: element `i` of a lane is number `32 * i + lane`.
    Linear,
}

/// An operand of a product. Quarters are below each other, but side by side in the second operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment {
    pub(super) ty: Ty,
    pub(super) layout: Layout,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Fragment {
    /// Elements of a register.
    pub(super) fn packed(self) -> usize {
        (32 / self.ty.bits() as usize).max(1)
    }

    /// Row and column of an element, by lane, register and place in it; `None` if it holds none.
    fn place(self, lane: usize, register: usize, part: usize) -> Option<(usize, usize)> {
        let (group, member) = (lane / 4, lane % 4);
        let packed = self.packed();
        let number = register * packed + part;
        // Lanes of a quarter: its number, and whether they are the second four.
        let (quarter, upper) = (lane / 4 % 4, lane / 16 * 4);
        Some(match self.layout {
            Layout::A if self.rows == 16 => {
                (group + 8 * (register & 1), member * packed + part + 4 * packed * (register >> 1))
            }
            Layout::A => (group, member * packed + part + 4 * packed * register),
            Layout::B => (member * packed + part + 4 * packed * register, group),
            Layout::C => (group + 8 * (number >> 1 & 1), number / 4 * 8 + member * 2 + (number & 1)),
            Layout::QuarterA(false) => (quarter * 8 + member + upper, number),
            Layout::QuarterA(true) => (quarter * 8 + number + upper, member),
            Layout::QuarterB(false) => (member, quarter * 8 + number + upper),
            Layout::QuarterB(true) => (number, quarter * 8 + member + upper),
            Layout::QuarterC if packed == 2 => (quarter * 8 + member + upper, number),
            Layout::QuarterC => {
                let row = (lane & 1) + (number & 2) + upper;
                (quarter * 8 + row, (number & 4) + (lane & 2) + (number & 1))
            }
            Layout::Linear => {
                let number = number * 32 + lane;
                if number >= self.rows * self.columns {
                    return None;
                }
                (number / self.columns, number % self.columns)
            }
        })
    }

    /// Whether so many registers are right.
    pub(super) fn fits(self, registers: usize) -> bool {
        let elements = registers * self.packed() * 32;
        let all = self.rows * self.columns;
        if self.layout == Layout::Linear { elements >= all } else { elements == all }
    }

    /// Calls with row, column, lane, register and shift of each element.
    pub(super) fn each(self, registers: usize, mut f: impl FnMut((usize, usize), usize, usize, usize)) {
        let (packed, bits) = (self.packed(), self.ty.bits() as usize);
        for register in 0..registers {
            for lane in 0..32 {
                for part in 0..packed {
                    if let Some(place) = self.place(lane, register, part) {
                        f(place, lane, register, part * bits);
                    }
                }
            }
        }
    }
}
