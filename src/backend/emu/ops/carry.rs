//! Arithmetic with the carry flag. The flag of a thread is a predicate of its frame that no name reaches.

use super::super::decode::{Bad, Cx};
use super::super::image::Code;
use super::super::regs::{CARRY, PredDst, PredSrc, bits};
use super::super::types::{extend, low};
use super::compute;

const FLAG: PredSrc = PredSrc { slot: Some(CARRY), negated: false };

/// `a + b + carry` (or with `b` complemented), setting the flag if `.cc` is there.
fn sum(cx: &Cx<'_, '_>, complement: bool, takes: bool) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
    let (width, sets) = (ty.bits(), cx.has("cc"));
    Ok(compute(move |regs, mask| {
        let (a, b) = (regs.get(a), regs.get(b));
        let flag = if takes { regs.pred(FLAG) } else { 0 };
        let totals: [u128; 32] = std::array::from_fn(|lane| {
            let carry = flag >> lane & 1;
            let b = low(if complement { !b[lane] } else { b[lane] }, width);
            // The flag of a subtraction is the borrow.
            let carry = if complement { 1 - carry } else { carry };
            u128::from(low(a[lane], width)) + u128::from(b) + u128::from(carry)
        });
        regs.set(d, mask, |lane| low(totals[lane] as u64, width));
        if sets {
            let out = bits(|lane| (totals[lane] >> width & 1 != 0) != complement);
            regs.set_pred(PredDst(Some(CARRY)), mask, out);
        }
    }))
}

/// `add.cc`
pub(super) fn add_cc(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    sum(cx, false, false)
}

/// `addc`
pub(super) fn addc(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    sum(cx, false, true)
}

/// `sub.cc`
pub(super) fn sub_cc(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    sum(cx, true, false)
}

/// `subc`
pub(super) fn subc(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    sum(cx, true, true)
}

fn product(cx: &Cx<'_, '_>, takes: bool) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, b, c) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?, cx.src(3, ty)?);
    let (width, sets, hi, signed) = (ty.bits(), cx.has("cc"), cx.has("hi"), ty.is_signed());
    Ok(compute(move |regs, mask| {
        let (a, b, c) = (regs.get(a), regs.get(b), regs.get(c));
        let flag = if takes { regs.pred(FLAG) } else { 0 };
        let totals: [u128; 32] = std::array::from_fn(|lane| {
            let value = |v: u64| {
                let wide = if signed { extend(v, width).cast_signed() } else { low(v, width).cast_signed() };
                if signed { i128::from(wide) } else { i128::from(wide.cast_unsigned()) }
            };
            // 64-bit unsigned factors may exceed `i128`; the bits wrap to the right ones.
            let full = value(a[lane]).wrapping_mul(value(b[lane])).cast_unsigned();
            let part = if hi { (full >> width) as u64 } else { full as u64 };
            u128::from(low(part, width)) + u128::from(low(c[lane], width)) + u128::from(flag >> lane & 1)
        });
        regs.set(d, mask, |lane| low(totals[lane] as u64, width));
        if sets {
            regs.set_pred(PredDst(Some(CARRY)), mask, bits(|lane| totals[lane] >> width & 1 != 0));
        }
    }))
}

/// `mad.cc`
pub(super) fn mad_cc(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    product(cx, false)
}

/// `madc`
pub(super) fn madc(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    product(cx, true)
}
