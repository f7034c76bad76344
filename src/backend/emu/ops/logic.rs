//! Bitwise logic and shifts, on registers and predicates.

use super::super::decode::{Bad, Cx};
use super::super::image::Code;
use super::super::regs::{PredSrc, Regs, Src, bits};
use super::super::types::{Ty, extend, low};
use super::{compute, lanewise1, lanewise2, lanewise3};

fn bitwise(cx: &Cx<'_, '_>, f: impl Fn(u64, u64) -> u64 + Send + Sync + 'static) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    if ty == Ty::Pred {
        let d = cx.pred_dst(cx.operand(0)?)?;
        let (a, b) = (cx.pred_src(cx.operand(1)?)?, cx.pred_src(cx.operand(2)?)?);
        return Ok(compute(move |regs, mask| {
            let value = f(u64::from(regs.pred(a)), u64::from(regs.pred(b)));
            regs.set_pred(d, mask, value as u32);
        }));
    }
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
    let width = ty.bits();
    Ok(lanewise2(d, a, b, move |a, b| low(f(a, b), width)))
}

/// `and`
pub(super) fn and(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    bitwise(cx, |a, b| a & b)
}

/// `or`
pub(super) fn or(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    bitwise(cx, |a, b| a | b)
}

/// `xor`
pub(super) fn xor(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    bitwise(cx, |a, b| a ^ b)
}

/// `not`
pub(super) fn not(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    if ty == Ty::Pred {
        let (d, a) = (cx.pred_dst(cx.operand(0)?)?, cx.pred_src(cx.operand(1)?)?);
        return Ok(compute(move |regs, mask| {
            let value = !regs.pred(a);
            regs.set_pred(d, mask, value);
        }));
    }
    let (d, a) = (cx.dst(0)?, cx.src(1, ty)?);
    let width = ty.bits();
    Ok(lanewise1(d, a, move |a| low(!a, width)))
}

/// `cnot`: 1 for 0, else 0
pub(super) fn cnot(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a) = (cx.dst(0)?, cx.src(1, ty)?);
    let width = ty.bits();
    Ok(lanewise1(d, a, move |a| u64::from(low(a, width) == 0)))
}

/// `shl`: counts beyond the width give 0.
pub(super) fn shl(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, Ty::U(32))?);
    let width = ty.bits();
    Ok(lanewise2(d, a, b, move |a, b| {
        let count = b as u32;
        if count >= width { 0 } else { low(a << (count & 63), width) }
    }))
}

/// `shr`: counts beyond the width leave the sign, or 0.
pub(super) fn shr(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, Ty::U(32))?);
    let width = ty.bits();
    if ty.is_signed() {
        return Ok(lanewise2(d, a, b, move |a, b| {
            let value = extend(a, width).cast_signed();
            low((value >> (b as u32).min(63)).cast_unsigned(), width)
        }));
    }
    Ok(lanewise2(d, a, b, move |a, b| {
        let count = b as u32;
        if count >= width { 0 } else { low(a, width) >> (count & 63) }
    }))
}

/// `shf`: a funnel shift of `b:a`.
pub(super) fn shf(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = Ty::B(32);
    let (d, a, b, c) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?, cx.src(3, ty)?);
    let (left, wrap) = (cx.has("l"), cx.has("wrap"));
    Ok(lanewise3(d, a, b, c, move |a, b, c| {
        let count = if wrap { c as u32 & 31 } else { (c as u32).min(32) };
        let both = low(b, 32) << 32 | low(a, 32);
        low(if left { both << count >> 32 } else { both >> count }, 32)
    }))
}

fn lut(a: u64, b: u64, c: u64, table: u64) -> u64 {
    let term = |index: u64, value: u64| if table >> index & 1 != 0 { value } else { 0 };
    term(0, !a & !b & !c)
        | term(1, !a & !b & c)
        | term(2, !a & b & !c)
        | term(3, !a & b & c)
        | term(4, a & !b & !c)
        | term(5, a & !b & c)
        | term(6, a & b & !c)
        | term(7, a & b & c)
}

/// `lop3`, also with a predicate: `lop3.or.b32 d|p, a, b, c, table, q`
pub(super) fn lop3(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    use crate::ptx::ast::Operand;
    let ty = Ty::B(32);
    let (a, b, c) = (cx.src(1, ty)?, cx.src(2, ty)?, cx.src(3, ty)?);
    let Src::Const(table) = cx.src(4, ty)? else { return cx.refuse() };
    let value = move |regs: &Regs<'_>| {
        let (a, b, c) = (regs.get(a), regs.get(b), regs.get(c));
        std::array::from_fn::<u64, 32, _>(|lane| low(lut(a[lane], b[lane], c[lane], table), 32))
    };
    let Operand::Pair(both, _) = cx.operand(0)? else {
        let d = cx.dst(0)?;
        return Ok(compute(move |regs, mask| {
            let value = value(regs);
            regs.set(d, mask, |lane| value[lane]);
        }));
    };
    let (d, p) = (cx.destination(&both[0])?, cx.pred_dst(&both[1])?);
    let q = if cx.len() > 5 { cx.pred_src(cx.operand(5)?)? } else { PredSrc { slot: None, negated: false } };
    let or = !cx.has("and");
    Ok(compute(move |regs, mask| {
        let value = value(regs);
        let nonzero = bits(|lane| value[lane] != 0);
        let q = regs.pred(q);
        regs.set(d, mask, |lane| value[lane]);
        regs.set_pred(p, mask, if or { nonzero | q } else { nonzero & q });
    }))
}
