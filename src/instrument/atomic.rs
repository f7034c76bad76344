//! Atomics. `red` becomes `atom`, so that the old value is known; the new value is computed from it.

use super::access::{Strong, name_sinks};
use super::code::{Code, Hex, Piece, Temp, line};
use super::error::Result;
use super::pass::Pass;
use super::value::{Source, Type, bit_type, elements, packed, raw};
use crate::abi::TAG_SHARED;
use crate::isa::{Access, AccessKind, AtomOp, Space};
use crate::ptx::ast::Operand;

/// Instruments an atomic.
pub(super) fn run(mut pass: Pass<'_, '_>, access: &Access) -> Result<()> {
    let ty = pass.ty()?;
    let first = usize::from(access.address) + 1;
    // The operands are saved: the result may go to their registers.
    let begun = Strong::begin_with(&mut pass, access, |pass, code| {
        let b = saved(pass, code, first, ty)?;
        let c = if access.op == Some(AtomOp::Cas) { saved(pass, code, first + 1, ty)? } else { Vec::new() };
        Ok((b, c))
    })?;
    let Some((mut strong, (b, c))) = begun else { return Ok(()) };
    let span = pass.instruction.span;
    let code = &mut strong.code;
    let old = old_values(&mut pass, code, access, ty, b.len())?;
    let read = packed(code, &old, ty.bits, span)?;
    let a = strong.a();
    let code = &mut strong.code;
    let mut new = Vec::new();
    for (index, old) in old.into_iter().enumerate() {
        let old = raw(code, old, ty.bits, span)?;
        let b = *b.get(index).ok_or_else(|| pass.fault("it has too few operands"))?;
        let op = access.op.ok_or_else(|| pass.fault("it has no operation"))?;
        let value = match (op, c.get(index)) {
            (AtomOp::Exch, _) => b,
            (AtomOp::Cas, Some(c)) => cas(code, old, b, *c, ty.bits),
            (AtomOp::Cas, None) => return Err(pass.fault("it has too few operands")),
            _ => computed(code, op, ty, old, b, access.space, a),
        };
        new.push(Source::Register(value.into(), ty.bits));
    }
    let written = packed(code, &new, ty.bits, span)?;
    strong.end(pass, Some(read), Some(written));
    Ok(())
}

/// The elements of an operand, in temporaries.
fn saved(pass: &Pass<'_, '_>, code: &mut Code, index: usize, ty: Type<'_>) -> Result<Vec<Temp>> {
    let operand = pass.operand(index)?;
    let sources = elements(pass.symbols, operand, ty)?;
    sources.into_iter().map(|source| raw(code, source, ty.bits, operand.span())).collect()
}

/// Where the old values are, after making the instruction keep them.
fn old_values<'a>(
    pass: &mut Pass<'_, 'a>,
    code: &mut Code,
    access: &Access,
    ty: Type<'_>,
    count: usize,
) -> Result<Vec<Source<'a>>> {
    if access.kind == AccessKind::Red {
        let names: Vec<_> = (0..count).map(|_| code.temp(bit_type(ty.bits))).collect();
        let place = pass.operand(access.address.into())?.span().start;
        let vector = pass.instruction.modifiers().iter().any(|word| matches!(word.text, "v2" | "v4" | "v8"));
        pass.edits.replace(pass.instruction.opcode.span, "atom");
        pass.edits.insert_with(place, |out| {
            put_list(out, &names, vector);
            out.push_str(", ");
        });
        return Ok(names.into_iter().map(|name| Source::Register(name.into(), ty.bits)).collect());
    }
    let operand = pass.operand(0)?;
    if let (Operand::Name(name, _), true) = (operand, count > 1)
        && *name == "_"
    {
        let names: Vec<_> = (0..count).map(|_| code.temp(bit_type(ty.bits))).collect();
        pass.edits.replace_with(operand.span(), |out| put_list(out, &names, true));
        return Ok(names.into_iter().map(|name| Source::Register(name.into(), ty.bits)).collect());
    }
    let mut old = elements(pass.symbols, operand, ty)?;
    name_sinks(code, &mut old, operand, ty.bits, pass.edits);
    Ok(old)
}

/// Writes names with commas, as a vector or bare.
fn put_list(out: &mut String, names: &[Temp], vector: bool) {
    out.push_str(if vector { "{" } else { "" });
    for (index, name) in names.iter().enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        name.put(out);
    }
    out.push_str(if vector { "}" } else { "" });
}

/// The new value of a compare-and-swap: a failed one leaves the old.
fn cas(code: &mut Code, old: Temp, compare: Temp, swap: Temp, bits: u32) -> Temp {
    let (out, same) = (code.temp(bit_type(bits)), code.temp("pred"));
    if bits < 128 {
        line!(code, "setp.eq.b", bits, " ", same, ", ", old, ", ", compare);
        line!(code, "selp.b", bits, " ", out, ", ", swap, ", ", old, ", ", same);
        return out;
    }
    let half = |code: &mut Code, whole: Temp| {
        let (low, high) = (code.temp("b64"), code.temp("b64"));
        line!(code, "mov.b128 {", low, ", ", high, "}, ", whole);
        [low, high]
    };
    let (old, compare, swap) = (half(code, old), half(code, compare), half(code, swap));
    line!(code, "setp.eq.b64 ", same, ", ", old[0], ", ", compare[0]);
    line!(code, "setp.eq.and.b64 ", same, ", ", old[1], ", ", compare[1], ", ", same);
    for (swap, old) in swap.iter().zip(&old) {
        line!(code, "selp.b64 ", swap, ", ", swap, ", ", old, ", ", same);
    }
    line!(code, "mov.b128 ", out, ", {", swap[0], ", ", swap[1], "}");
    out
}

/// The new value by operation.
fn computed(
    code: &mut Code,
    op: AtomOp,
    ty: Type<'_>,
    old: Temp,
    b: Temp,
    space: Space,
    address: Temp,
) -> Temp {
    let out = code.temp(bit_type(ty.bits));
    let name = ty.name;
    match op {
        AtomOp::And => line!(code, "and.b", ty.bits, " ", out, ", ", old, ", ", b),
        AtomOp::Or => line!(code, "or.b", ty.bits, " ", out, ", ", old, ", ", b),
        AtomOp::Xor => line!(code, "xor.b", ty.bits, " ", out, ", ", old, ", ", b),
        AtomOp::Min => line!(code, "min.", name, " ", out, ", ", old, ", ", b),
        AtomOp::Max => line!(code, "max.", name, " ", out, ", ", old, ", ", b),
        AtomOp::Add if name == "f32" => add_f32(code, out, old, b, space, address),
        AtomOp::Add if name.contains('f') => line!(code, "add.rn.", name, " ", out, ", ", old, ", ", b),
        AtomOp::Add => line!(code, "add.", name, " ", out, ", ", old, ", ", b),
        AtomOp::Inc | AtomOp::Dec => {
            let (wraps, zero) = (code.temp("pred"), code.temp("pred"));
            if op == AtomOp::Inc {
                line!(code, "setp.ge.u32 ", wraps, ", ", old, ", ", b);
                line!(code, "add.u32 ", out, ", ", old, ", 1");
                line!(code, "selp.b32 ", out, ", 0, ", out, ", ", wraps);
            } else {
                line!(code, "setp.gt.u32 ", wraps, ", ", old, ", ", b);
                line!(code, "setp.eq.u32 ", zero, ", ", old, ", 0");
                line!(code, "or.pred ", wraps, ", ", wraps, ", ", zero);
                line!(code, "add.u32 ", out, ", ", old, ", -1");
                line!(code, "selp.b32 ", out, ", ", b, ", ", out, ", ", wraps);
            }
        }
        AtomOp::Exch | AtomOp::Cas => line!(code, "mov.b", ty.bits, " ", out, ", ", b),
    }
    out
}

/// Single floats: the atomic unit of global memory flushes subnormal numbers to zero, that of shared memory keeps
/// them.
fn add_f32(code: &mut Code, out: Temp, old: Temp, b: Temp, space: Space, address: Temp) {
    match space {
        Space::Shared | Space::SharedCluster => line!(code, "add.rn.f32 ", out, ", ", old, ", ", b),
        Space::Generic => {
            let (kept, tag, shared) = (code.temp("b32"), code.temp("b64"), code.temp("pred"));
            line!(code, "add.rn.ftz.f32 ", out, ", ", old, ", ", b);
            line!(code, "add.rn.f32 ", kept, ", ", old, ", ", b);
            line!(code, "and.b64 ", tag, ", ", address, ", ", Hex(TAG_SHARED));
            line!(code, "setp.ne.s64 ", shared, ", ", tag, ", 0");
            line!(code, "selp.b32 ", out, ", ", kept, ", ", out, ", ", shared);
        }
        _ => line!(code, "add.rn.ftz.f32 ", out, ", ", old, ", ", b),
    }
}
