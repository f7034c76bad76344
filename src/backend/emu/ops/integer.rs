//! Integer arithmetic. Division by zero and its remainder give all ones, as the hardware does.

use super::super::decode::{Bad, Cx};
use super::super::image::Code;
use super::super::types::{Ty, extend, low};
use super::{binary, carry, lanewise2, lanewise3, ternary, unary, with_int};

/// `add`, with `.sat` for `.s32` and `.cc`.
pub(super) fn add(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    if cx.has("cc") {
        return carry::add_cc(cx);
    }
    let ty = cx.ty()?;
    if cx.has("sat") {
        return binary(cx, ty, i32::saturating_add);
    }
    with_int!(cx, ty, T => binary(cx, ty, T::wrapping_add))
}

/// `sub`, likewise.
pub(super) fn sub(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    if cx.has("cc") {
        return carry::sub_cc(cx);
    }
    let ty = cx.ty()?;
    if cx.has("sat") {
        return binary(cx, ty, i32::saturating_sub);
    }
    with_int!(cx, ty, T => binary(cx, ty, T::wrapping_sub))
}

/// The high half of a product of two values.
pub(super) fn high(a: u64, b: u64, ty: Ty) -> u64 {
    let bits = ty.bits();
    if ty.is_signed() {
        let product = i128::from(extend(a, bits).cast_signed()) * i128::from(extend(b, bits).cast_signed());
        low((product >> bits) as u64, bits)
    } else {
        low(((u128::from(low(a, bits)) * u128::from(low(b, bits))) >> bits) as u64, bits)
    }
}

/// The product of two values at twice their width, at most 64 bits.
pub(super) fn wide(a: u64, b: u64, ty: Ty) -> u64 {
    let bits = ty.bits();
    let product = if ty.is_signed() {
        extend(a, bits).wrapping_mul(extend(b, bits))
    } else {
        low(a, bits).wrapping_mul(low(b, bits))
    };
    low(product, 2 * bits)
}

/// `mul.lo`, `mul.hi`, `mul.wide`
pub(super) fn mul(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    if cx.has("wide") {
        return match ty {
            Ty::S(32) => binary(cx, ty, |a: i32, b: i32| i64::from(a) * i64::from(b)),
            Ty::U(32) => binary(cx, ty, |a: u32, b: u32| u64::from(a) * u64::from(b)),
            _ => {
                let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
                Ok(lanewise2(d, a, b, move |a, b| wide(a, b, ty)))
            }
        };
    }
    if cx.has("hi") {
        let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
        return Ok(lanewise2(d, a, b, move |a, b| high(a, b, ty)));
    }
    with_int!(cx, ty, T => binary(cx, ty, T::wrapping_mul))
}

/// `mad.lo`, `mad.hi` (with `.sat`), `mad.wide`
pub(super) fn mad(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    if cx.has("cc") {
        return carry::mad_cc(cx);
    }
    let ty = cx.ty()?;
    if cx.has("lo") {
        return with_int!(cx, ty, T => ternary(cx, ty, |a: T, b: T, c: T| a.wrapping_mul(b).wrapping_add(c)));
    }
    let (d, a, b, c) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?, cx.src(3, ty)?);
    if cx.has("wide") {
        let bits = 2 * ty.bits();
        return Ok(lanewise3(d, a, b, c, move |a, b, c| low(wide(a, b, ty).wrapping_add(c), bits)));
    }
    if cx.has("sat") {
        return Ok(lanewise3(d, a, b, c, move |a, b, c| {
            let sum = (high(a, b, ty) as u32).cast_signed().saturating_add((c as u32).cast_signed());
            u64::from(sum.cast_unsigned())
        }));
    }
    Ok(lanewise3(d, a, b, c, move |a, b, c| low(high(a, b, ty).wrapping_add(c), ty.bits())))
}

fn product24(a: u64, b: u64, cx_hi: bool, signed: bool) -> u64 {
    let (a, b) = if signed { (extend(a, 24), extend(b, 24)) } else { (low(a, 24), low(b, 24)) };
    let product = a.wrapping_mul(b);
    low(if cx_hi { product >> 16 } else { product }, 32)
}

/// `mul24`
pub(super) fn mul24(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
    let (hi, signed) = (cx.has("hi"), ty.is_signed());
    Ok(lanewise2(d, a, b, move |a, b| product24(a, b, hi, signed)))
}

/// `mad24`
pub(super) fn mad24(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, b, c) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?, cx.src(3, ty)?);
    let (hi, signed, sat) = (cx.has("hi"), ty.is_signed(), cx.has("sat"));
    Ok(lanewise3(d, a, b, c, move |a, b, c| {
        let product = product24(a, b, hi, signed) as u32;
        let sum = if sat {
            product.cast_signed().saturating_add((c as u32).cast_signed()).cast_unsigned()
        } else {
            product.wrapping_add(c as u32)
        };
        u64::from(sum)
    }))
}

/// `div`
pub(super) fn div(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    with_int!(cx, ty, T => binary(cx, ty, |a: T, b: T| if b == 0 { !0 } else { a.wrapping_div(b) }))
}

/// `rem`
pub(super) fn rem(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    with_int!(cx, ty, T => binary(cx, ty, |a: T, b: T| if b == 0 { !0 } else { a.wrapping_rem(b) }))
}

/// `abs`
pub(super) fn abs(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    match ty {
        Ty::S(16) => unary(cx, ty, i16::wrapping_abs),
        Ty::S(32) => unary(cx, ty, i32::wrapping_abs),
        Ty::S(64) => unary(cx, ty, i64::wrapping_abs),
        _ => cx.refuse(),
    }
}

/// `neg`
pub(super) fn neg(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    with_int!(cx, ty, T => unary(cx, ty, T::wrapping_neg))
}

/// `min`, with `.relu` for `.s32`
pub(super) fn min(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    if cx.has("relu") {
        return binary(cx, ty, |a: i32, b: i32| a.min(b).max(0));
    }
    with_int!(cx, ty, T => binary(cx, ty, |a: T, b: T| a.min(b)))
}

/// `max`, likewise
pub(super) fn max(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    if cx.has("relu") {
        return binary(cx, ty, |a: i32, b: i32| a.max(b).max(0));
    }
    with_int!(cx, ty, T => binary(cx, ty, |a: T, b: T| a.max(b)))
}

/// `sad`
pub(super) fn sad(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    with_int!(cx, ty, T => ternary(cx, ty, |a: T, b: T, c: T| {
        let distance = if a < b { b.wrapping_sub(a) } else { a.wrapping_sub(b) };
        c.wrapping_add(distance)
    }))
}
