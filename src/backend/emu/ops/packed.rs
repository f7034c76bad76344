//! Operations on bytes and halves of a word, and pairs of floats.

use super::super::decode::{Bad, Cx};
use super::super::image::Code;
use super::super::types::{Ty, extend, low};
use super::{lanewise2, lanewise3};

/// `prmt`, with its modes
pub(super) fn prmt(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = Ty::B(32);
    let (d, a, b, c) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?, cx.src(3, ty)?);
    let mode = match cx.one_of(&["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]) {
        Some("f4e") => 1,
        Some("b4e") => 2,
        Some("rc8") => 3,
        Some("ecl") => 4,
        Some("ecr") => 5,
        Some("rc16") => 6,
        _ => 0,
    };
    Ok(lanewise3(d, a, b, c, move |a, b, c| {
        let bytes = low(b, 32) << 32 | low(a, 32);
        let at = c & 3;
        (0..4).fold(0, |word, i| {
            let selector = match mode {
                0 => c >> (4 * i) & 15,
                1 => (at + i) & 7,
                2 => at.wrapping_sub(i) & 7,
                3 => at,
                4 => at.max(i),
                5 => at.min(i),
                _ => (at & 1) * 2 + (i & 1),
            };
            let byte = bytes >> (8 * (selector & 7)) & 255;
            let byte = if selector & 8 == 0 { byte } else { (byte >> 7) * 255 };
            word | byte << (8 * i)
        })
    }))
}

/// Sum of products of four bytes.
pub(super) fn dp4a(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let (at, bt) = (cx.ty_at(0)?, cx.ty_at(1)?);
    let (d, a, b, c) = (cx.dst(0)?, cx.src(1, at)?, cx.src(2, bt)?, cx.src(3, at)?);
    let byte = |word: u64, i: u32, signed: bool| {
        let byte = word >> (8 * i) & 255;
        if signed { extend(byte, 8) } else { byte }
    };
    Ok(lanewise3(d, a, b, c, move |a, b, c| {
        let dot = (0..4).fold(c, |sum, i| {
            sum.wrapping_add(byte(a, i, at.is_signed()).wrapping_mul(byte(b, i, bt.is_signed())))
        });
        low(dot, 32)
    }))
}

/// Sum of products of two halves and two bytes.
pub(super) fn dp2a(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let (at, bt) = (cx.ty_at(0)?, cx.ty_at(1)?);
    let (d, a, b, c) = (cx.dst(0)?, cx.src(1, at)?, cx.src(2, bt)?, cx.src(3, at)?);
    let hi = if cx.has("hi") { 16 } else { 0 };
    let part = |word: u64, shift: u32, width: u32, signed: bool| {
        let part = low(word >> shift, width);
        if signed { extend(part, width) } else { part }
    };
    Ok(lanewise3(d, a, b, c, move |a, b, c| {
        let dot = (0..2).fold(c, |sum, i| {
            let (a, b) = (part(a, 16 * i, 16, at.is_signed()), part(b, hi + 8 * i, 8, bt.is_signed()));
            sum.wrapping_add(a.wrapping_mul(b))
        });
        low(dot, 32)
    }))
}

fn halves(cx: &Cx<'_, '_>, f: fn(u64, u64) -> u64) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let signed = match ty {
        Ty::S16x2 => true,
        Ty::U16x2 => false,
        _ => return cx.refuse(),
    };
    let relu = cx.has("relu");
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
    // Offset by the sign bit, signed values compare as unsigned ones; sums do not mind.
    let flip = if signed { 0x8000 } else { 0 };
    Ok(lanewise2(d, a, b, move |a, b| {
        let half = |shift: u32| {
            let value = f(low(a >> shift, 16) ^ flip, low(b >> shift, 16) ^ flip) ^ flip;
            let value = low(value, 16);
            if relu && value & 0x8000 != 0 { 0 } else { value }
        };
        half(0) | half(16) << 16
    }))
}

/// `min` of packed halves
pub(super) fn min(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    halves(cx, |a, b| a.min(b))
}

/// `max` of packed halves
pub(super) fn max(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    halves(cx, |a, b| a.max(b))
}

/// `add` of packed halves or floats
pub(super) fn add(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    match cx.ty()? {
        Ty::F32x2 => floats(cx, |a, b| a + b),
        // Both flips of the sign bit cancel in a sum, the third puts it right.
        Ty::S16x2 => halves(cx, |a, b| (a ^ 0x8000).wrapping_add(b ^ 0x8000) ^ 0x8000),
        _ => halves(cx, u64::wrapping_add),
    }
}

/// `sub` of packed floats
pub(super) fn sub(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    floats(cx, |a, b| a - b)
}

/// `mul` of packed floats
pub(super) fn mul(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    floats(cx, |a, b| a * b)
}

fn floats(cx: &Cx<'_, '_>, f: fn(f32, f32) -> f32) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    if ty != Ty::F32x2 || cx.one_of(&["rz", "rm", "rp", "ftz"]).is_some() {
        return cx.refuse();
    }
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
    Ok(lanewise2(d, a, b, move |a, b| {
        let part = |shift: u32| {
            let value = f(f32::from_bits((a >> shift) as u32), f32::from_bits((b >> shift) as u32));
            u64::from(super::float::canonical(value).to_bits())
        };
        part(0) | part(32) << 32
    }))
}

/// No such packed form.
pub(super) fn abs(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    cx.refuse()
}

/// No such packed form.
pub(super) fn neg(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    cx.refuse()
}

/// No such packed form.
pub(super) fn mad(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    cx.refuse()
}

/// No such packed form.
pub(super) fn div(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    cx.refuse()
}
