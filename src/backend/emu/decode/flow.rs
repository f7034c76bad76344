//! Which registers an instruction reads and writes, for following values that nobody has written.

use super::operand::Cx;
use super::scope::Entity;
use crate::backend::emu::image::{Flow, Uses};
use crate::ptx::ast::Operand;

/// Opcodes whose first operand is no register that they write.
const WRITES_NOTHING: [&str; 16] = [
    "bar", "barrier", "bra", "brx", "call", "cp", "discard", "fence", "membar", "prefetch", "red", "ret",
    "st", "stmatrix", "sured", "sust",
];

/// Opcodes after which the bits that were never written may be gone, or that give another lane's value.
const MAY_NOT_MATTER: [&str; 19] = [
    "and", "bfe", "bfi", "call", "elect", "lop3", "match", "not", "or", "prmt", "redux", "selp", "shf",
    "shfl", "shl", "shr", "slct", "vote", "xor",
];

/// What an instruction does with registers.
pub(super) fn flow(cx: &Cx<'_, '_>) -> Flow {
    let opcode = cx.instruction.opcode.text;
    let uses = match opcode {
        "mov" | "cvt" | "ld" | "ldu" => Uses::Moved,
        "st" => Uses::Stored,
        _ if MAY_NOT_MATTER.contains(&opcode) => Uses::Nothing,
        _ => Uses::All,
    };
    let (mut reads, mut addresses, mut writes) = (Vec::new(), Vec::new(), Vec::new());
    for (index, operand) in cx.instruction.operands.iter().enumerate() {
        let written =
            index == 0 && (!WRITES_NOTHING.contains(&opcode) || opcode.starts_with("bar") && cx.has("red"));
        let to = if written { &mut writes } else { &mut reads };
        registers(cx, operand, to, &mut addresses);
    }
    Flow { reads: reads.into(), addresses: addresses.into(), writes: writes.into(), uses }
}

fn registers(cx: &Cx<'_, '_>, operand: &Operand<'_>, out: &mut Vec<u32>, addresses: &mut Vec<u32>) {
    if let Operand::Address(address) = operand {
        let base = address.base.and_then(|base| cx.find(base.text));
        if let Some(Entity::Register { slot, elements: 1, .. }) = base {
            addresses.push(slot);
        }
        // Coordinates.
        address.extra.iter().for_each(|extra| registers(cx, extra, out, addresses));
        return;
    }
    operand.each_name(&mut |name| {
        if let Some(Entity::Register { slot, elements, .. }) = cx.find(name) {
            out.extend(slot..slot.saturating_add(elements));
        }
    });
}
