//! Atomics. `red` becomes `atom`, so that the old value is known; the new value is computed from it.

use super::access::{Strong, name_sinks};
use super::code::Code;
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
    let a = strong.a().to_owned();
    let code = &mut strong.code;
    let mut new = Vec::new();
    for (index, old) in old.iter().enumerate() {
        let old = raw(code, old, ty.bits, span)?;
        let b = b.get(index).ok_or_else(|| pass.fault("it has too few operands"))?;
        let op = access.op.ok_or_else(|| pass.fault("it has no operation"))?;
        let value = match (op, c.get(index)) {
            (AtomOp::Exch, _) => b.clone(),
            (AtomOp::Cas, Some(c)) => cas(code, &old, b, c, ty.bits),
            (AtomOp::Cas, None) => return Err(pass.fault("it has too few operands")),
            _ => computed(code, op, ty, &old, b, access.space, &a),
        };
        new.push(Source::Register(value, ty.bits));
    }
    let written = packed(code, &new, ty.bits, span)?;
    strong.end(pass, Some(read), Some(written));
    Ok(())
}

/// The elements of an operand, in temporaries.
fn saved(pass: &Pass<'_, '_>, code: &mut Code, index: usize, ty: Type<'_>) -> Result<Vec<String>> {
    let operand = pass.operand(index)?;
    let sources = elements(pass.symbols, operand, ty)?;
    sources.iter().map(|source| raw(code, source, ty.bits, operand.span())).collect()
}

/// Where the old values are, after making the instruction keep them.
fn old_values(
    pass: &mut Pass<'_, '_>,
    code: &mut Code,
    access: &Access,
    ty: Type<'_>,
    count: usize,
) -> Result<Vec<Source>> {
    if access.kind == AccessKind::Red {
        let names: Vec<_> = (0..count).map(|_| code.temp(bit_type(ty.bits))).collect();
        let place = pass.operand(access.address.into())?.span().start;
        let vector = pass.instruction.modifiers.iter().any(|word| matches!(word.text, "v2" | "v4" | "v8"));
        let list = names.join(", ");
        pass.edits.replace(pass.instruction.opcode.span, "atom");
        pass.edits.insert(place, if vector { format!("{{{list}}}, ") } else { format!("{list}, ") });
        return Ok(names.into_iter().map(|name| Source::Register(name, ty.bits)).collect());
    }
    let operand = pass.operand(0)?;
    if let (Operand::Name(word), true) = (operand, count > 1)
        && word.text == "_"
    {
        let names: Vec<_> = (0..count).map(|_| code.temp(bit_type(ty.bits))).collect();
        pass.edits.replace(word.span, format!("{{{}}}", names.join(", ")));
        return Ok(names.into_iter().map(|name| Source::Register(name, ty.bits)).collect());
    }
    let mut old = elements(pass.symbols, operand, ty)?;
    name_sinks(code, &mut old, operand, ty.bits, pass.edits);
    Ok(old)
}

/// The new value of a compare-and-swap: a failed one leaves the old.
fn cas(code: &mut Code, old: &str, compare: &str, swap: &str, bits: u32) -> String {
    let (out, same) = (code.temp(bit_type(bits)), code.temp("pred"));
    if bits < 128 {
        code.line(format_args!("setp.eq.b{bits} {same}, {old}, {compare}"));
        code.line(format_args!("selp.b{bits} {out}, {swap}, {old}, {same}"));
        return out;
    }
    let half = |code: &mut Code, whole: &str| {
        let (low, high) = (code.temp("b64"), code.temp("b64"));
        code.line(format_args!("mov.b128 {{{low}, {high}}}, {whole}"));
        [low, high]
    };
    let (old, compare, swap) = (half(code, old), half(code, compare), half(code, swap));
    code.line(format_args!("setp.eq.b64 {same}, {}, {}", old[0], compare[0]));
    code.line(format_args!("setp.eq.and.b64 {same}, {}, {}, {same}", old[1], compare[1]));
    for (swap, old) in swap.iter().zip(&old) {
        code.line(format_args!("selp.b64 {swap}, {swap}, {old}, {same}"));
    }
    code.line(format_args!("mov.b128 {out}, {{{}, {}}}", swap[0], swap[1]));
    out
}

/// The new value by operation.
fn computed(
    code: &mut Code,
    op: AtomOp,
    ty: Type<'_>,
    old: &str,
    b: &str,
    space: Space,
    address: &str,
) -> String {
    let out = code.temp(bit_type(ty.bits));
    let name = ty.name;
    let mut line = |text: std::fmt::Arguments<'_>| code.line(text);
    match op {
        AtomOp::And => line(format_args!("and.b{} {out}, {old}, {b}", ty.bits)),
        AtomOp::Or => line(format_args!("or.b{} {out}, {old}, {b}", ty.bits)),
        AtomOp::Xor => line(format_args!("xor.b{} {out}, {old}, {b}", ty.bits)),
        AtomOp::Min => line(format_args!("min.{name} {out}, {old}, {b}")),
        AtomOp::Max => line(format_args!("max.{name} {out}, {old}, {b}")),
        AtomOp::Add if name == "f32" => add_f32(code, &out, old, b, space, address),
        AtomOp::Add if name.contains('f') => line(format_args!("add.rn.{name} {out}, {old}, {b}")),
        AtomOp::Add => line(format_args!("add.{name} {out}, {old}, {b}")),
        AtomOp::Inc | AtomOp::Dec => {
            let (wraps, zero) = (code.temp("pred"), code.temp("pred"));
            if op == AtomOp::Inc {
                code.line(format_args!("setp.ge.u32 {wraps}, {old}, {b}"));
                code.line(format_args!("add.u32 {out}, {old}, 1"));
                code.line(format_args!("selp.b32 {out}, 0, {out}, {wraps}"));
            } else {
                code.line(format_args!("setp.gt.u32 {wraps}, {old}, {b}"));
                code.line(format_args!("setp.eq.u32 {zero}, {old}, 0"));
                code.line(format_args!("or.pred {wraps}, {wraps}, {zero}"));
                code.line(format_args!("add.u32 {out}, {old}, -1"));
                code.line(format_args!("selp.b32 {out}, {b}, {out}, {wraps}"));
            }
        }
        AtomOp::Exch | AtomOp::Cas => line(format_args!("mov.b{} {out}, {b}", ty.bits)),
    }
    out
}

/// Single floats: the atomic unit of global memory flushes subnormal numbers to zero, that of shared memory keeps
/// them.
fn add_f32(code: &mut Code, out: &str, old: &str, b: &str, space: Space, address: &str) {
    match space {
        Space::Shared | Space::SharedCluster => code.line(format_args!("add.rn.f32 {out}, {old}, {b}")),
        Space::Generic => {
            let (kept, tag, shared) = (code.temp("b32"), code.temp("b64"), code.temp("pred"));
            code.line(format_args!("add.rn.ftz.f32 {out}, {old}, {b}"));
            code.line(format_args!("add.rn.f32 {kept}, {old}, {b}"));
            code.line(format_args!("and.b64 {tag}, {address}, {TAG_SHARED:#x}"));
            code.line(format_args!("setp.ne.s64 {shared}, {tag}, 0"));
            code.line(format_args!("selp.b32 {out}, {kept}, {out}, {shared}"));
        }
        _ => code.line(format_args!("add.rn.ftz.f32 {out}, {old}, {b}")),
    }
}
