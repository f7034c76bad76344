//! Bit fields, counts and searches.

use super::super::decode::{Bad, Cx};
use super::super::image::Code;

use super::super::types::{Ty, extend, low};
use super::{compute, lanewise1, lanewise2, lanewise3};

/// `popc`
pub(super) fn popc(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, width) = (cx.dst(0)?, cx.src(1, ty)?, ty.bits());
    Ok(lanewise1(d, a, move |a| u64::from(low(a, width).count_ones())))
}

/// `clz`
pub(super) fn clz(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, width) = (cx.dst(0)?, cx.src(1, ty)?, ty.bits());
    Ok(lanewise1(d, a, move |a| u64::from(low(a, width).leading_zeros() - (64 - width))))
}

/// `brev`
pub(super) fn brev(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, width) = (cx.dst(0)?, cx.src(1, ty)?, ty.bits());
    Ok(lanewise1(d, a, move |a| low(a, width).reverse_bits() >> (64 - width)))
}

/// `bfind`, with `.shiftamt`
pub(super) fn bfind(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, width) = (cx.dst(0)?, cx.src(1, ty)?, ty.bits());
    let (signed, shift) = (ty.is_signed(), cx.has("shiftamt"));
    Ok(lanewise1(d, a, move |a| {
        let wide = if signed { extend(a, width) } else { low(a, width) };
        let value = if signed && wide.cast_signed() < 0 { !wide } else { wide };
        if value == 0 {
            return 0xffff_ffff;
        }
        let at = 63 - value.leading_zeros();
        u64::from(if shift { width - 1 - at } else { at })
    }))
}

/// Where a field begins, or how long it is: the hardware takes 8 bits of that for words, and all for 64-bit ones.
fn counts(width: u32) -> impl Fn(u64) -> u32 + Copy {
    move |count| if width == 64 { (count as u32).min(255) } else { count as u32 & 255 }
}

/// `bfe`
pub(super) fn bfe(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let word = Ty::U(32);
    let (d, a, b, c) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, word)?, cx.src(3, word)?);
    let (signed, width) = (ty.is_signed(), ty.bits());
    let count = counts(width);
    Ok(lanewise3(d, a, b, c, move |a, b, c| {
        let (start, length) = (count(b), count(c));
        let a = low(a, width);
        if length == 0 {
            return 0;
        }
        let field = if start >= 64 { 0 } else { a >> start };
        if !signed {
            return low(field, length.min(64));
        }
        // The sign is the field's highest bit that exists.
        let top = (start + length - 1).min(width - 1);
        let sign = a >> top & 1 != 0;
        let bits = length.min(width.saturating_sub(start));
        let value = low(field, bits.min(64));
        low(if sign && bits < 64 { value | u64::MAX << bits } else { value }, width)
    }))
}

/// `bfi d, a, b, start, length`
pub(super) fn bfi(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let word = Ty::U(32);
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
    let (c, e, width) = (cx.src(3, word)?, cx.src(4, word)?, ty.bits());
    let count = counts(width);
    Ok(compute(move |regs, mask| {
        let (a, b, c, e) = (regs.get(a), regs.get(b), regs.get(c), regs.get(e));
        regs.set(d, mask, |lane| {
            let (start, length) = (count(c[lane]), count(e[lane]));
            let field = if start >= width { 0 } else { low(u64::MAX, length.min(64)) << start };
            low(b[lane] & !field | a[lane].checked_shl(start).unwrap_or(0) & field, width)
        });
    }))
}

/// `bmsk`: ones from a bit on
pub(super) fn bmsk(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = Ty::B(32);
    let (d, a, b, wrap) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?, cx.has("wrap"));
    Ok(lanewise2(d, a, b, move |a, b| {
        let (start, length) = if wrap { (a & 31, b & 31) } else { (low(a, 32).min(32), low(b, 32).min(32)) };
        low(low(u64::MAX, length as u32) << start, 32)
    }))
}

/// `szext`: extends from a width
pub(super) fn szext(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, Ty::U(32))?);
    let (signed, wrap) = (ty.is_signed(), cx.has("wrap"));
    Ok(lanewise2(d, a, b, move |a, b| {
        let length = if wrap { b as u32 & 31 } else { (b as u32).min(32) };
        match length {
            0 => 0,
            _ if signed => low(extend(a, length), 32),
            _ => low(a, length),
        }
    }))
}

/// `fns`: the n-th set bit from a base. The hardware has no answer to the least number.
pub(super) fn fns(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = Ty::B(32);
    let (d, a, b, c) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?, cx.src(3, ty)?);
    Ok(lanewise3(d, a, b, c, |a, b, c| {
        let (value, base, nth) = (a as u32, b as u32, (c as u32).cast_signed());
        let set = |at: &u32| value >> at & 1 != 0;
        if nth == i32::MIN {
            return 0;
        }
        let found = match nth {
            0 => Some(base).filter(|at| *at < 32 && set(at)),
            1.. => (base..32).filter(set).nth(nth.unsigned_abs() as usize - 1),
            _ => (0..=base.min(31)).rev().filter(set).nth(nth.unsigned_abs() as usize - 1),
        };
        u64::from(found.unwrap_or(u32::MAX))
    }))
}
