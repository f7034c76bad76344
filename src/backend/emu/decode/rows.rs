//! Rows for registers. Compilers name a new register for every value; one that lives between two labels shares its
//! row with others that live there at other times, so that a warp's registers stay in the cache.

use rustc_hash::FxHashMap;

use super::scope::{Entity, Scopes};
use crate::ptx::ast::{Instruction, Operand};

/// Opcodes whose first operand is no destination.
const NO_DESTINATION: [&str; 17] = [
    "bar",
    "barrier",
    "bra",
    "brx",
    "call",
    "cp",
    "discard",
    "nanosleep",
    "prefetch",
    "prefetchu",
    "red",
    "st",
    "stackrestore",
    "sured",
    "sust",
    "setmaxnreg",
    "mbarrier",
];

/// Where a register occurs.
#[derive(Clone, Copy, Debug)]
struct Life {
    region: u32,
    first: u32,
    last: u32,
    /// Occurs in one region only, and is written there before it is read.
    short: bool,
}

/// The occurrences of a function's registers, found in a first walk over it.
#[derive(Debug, Default)]
pub(super) struct Rows {
    lives: FxHashMap<u32, Life>,
    region: u32,
    position: u32,
}

impl Rows {
    /// A label: control may come from elsewhere.
    pub(super) fn label(&mut self) {
        self.region += 1;
    }

    /// A register that needs a row throughout.
    pub(super) fn keep(&mut self, slot: u32) {
        self.lives.insert(slot, Life { region: 0, first: 0, last: 0, short: false });
    }

    /// Notes the registers of an instruction.
    pub(super) fn instruction(&mut self, instruction: &Instruction<'_>, scopes: &Scopes<'_>) {
        self.position += 1;
        let writes = !NO_DESTINATION.contains(&instruction.opcode.text);
        // Sources first: a register that is both is read before it is written.
        for operand in instruction.operands.iter().skip(usize::from(writes)) {
            self.operand(operand, scopes, false);
        }
        if let Some(operand) = instruction.operands.first().filter(|_| writes) {
            self.operand(operand, scopes, true);
        }
    }

    fn operand(&mut self, operand: &Operand<'_>, scopes: &Scopes<'_>, written: bool) {
        match operand {
            Operand::Name(name, _) => self.name(name, scopes, written),
            Operand::Offset(offset, _) => self.name(offset.0.text, scopes, written),
            Operand::Address(address) => {
                if let Some(word) = address.base {
                    self.name(word.text, scopes, false);
                }
                address.extra.iter().for_each(|o| self.operand(o, scopes, false));
            }
            Operand::Vector(items) | Operand::List(items) => {
                items.iter().for_each(|o| self.operand(o, scopes, written));
            }
            Operand::Pair(both, _) => both.iter().for_each(|o| self.operand(o, scopes, written)),
            Operand::Not(inner, _) | Operand::Negated(inner, _) => self.operand(inner, scopes, false),
            Operand::Int(..) | Operand::F32(..) | Operand::F64(..) => {}
        }
    }

    fn name(&mut self, name: &str, scopes: &Scopes<'_>, written: bool) {
        // `%r1.h0` is part of `%r1`.
        let found = scopes.find(name).or_else(|| scopes.find(name.rsplit_once('.')?.0));
        let Some(Entity::Register { slot, elements: 1, .. }) = found else { return };
        let (region, position) = (self.region, self.position);
        let life = self.lives.entry(slot).or_insert(Life {
            region,
            first: position,
            last: position,
            short: written,
        });
        life.last = position;
        life.short &= life.region == region;
    }

    /// The row of each of the function's registers, and the number of rows.
    pub(super) fn assign(&self, registers: u32) -> (Vec<u32>, u32) {
        let mut rows = vec![0; registers as usize];
        let mut next = 0;
        let mut short = Vec::new();
        for slot in 0..registers {
            match self.lives.get(&slot) {
                Some(life) if life.short => short.push((slot, *life)),
                Some(_) => {
                    rows[slot as usize] = next;
                    next += 1;
                }
                // Occurs nowhere.
                None => {}
            }
        }
        short.sort_unstable_by_key(|(slot, life)| (life.first, *slot));
        let mut busy: std::collections::BinaryHeap<std::cmp::Reverse<(u32, u32)>> = Default::default();
        let mut free = Vec::new();
        for (slot, life) in short {
            while let Some(std::cmp::Reverse((last, row))) = busy.peek().copied() {
                if last >= life.first {
                    break;
                }
                busy.pop();
                free.push(row);
            }
            let row = free.pop().unwrap_or_else(|| {
                next += 1;
                next - 1
            });
            rows[slot as usize] = row;
            busy.push(std::cmp::Reverse((life.last, row)));
        }
        (rows, next.max(1))
    }
}
