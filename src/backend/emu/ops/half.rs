//! 16-bit floats, alone and in pairs. Each operation is computed wider and rounded once.

use super::super::decode::{Bad, Cx};
use super::super::image::Code;
use super::super::types::Ty;
use super::float::{Round, clipped, extreme, to_odd};
use super::{lanewise1, lanewise2, lanewise3};
use crate::tensor::OUT_OF_BOUNDS;

/// An `f16` as `f32`, exactly.
pub(in super::super) fn to_f32(half: u16) -> f32 {
    let sign = u32::from(half >> 15) << 31;
    let (exponent, fraction) = (u32::from(half >> 10 & 31), u32::from(half & 0x3ff));
    match exponent {
        0 => f32::from_bits((fraction as f32 * 2f32.powi(-24)).to_bits() | sign),
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

/// Rounds to a float of `exponent` and `fraction` bits (5 and 10, or 8 and 7) in 16 bits.
fn round_to(value: f64, round: Round, exponent: u32, fraction: u32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 63) as u16;
    let top = (1u64 << exponent) - 1;
    let signed = |magnitude: u64| sign << 15 | magnitude as u16;
    if value.is_nan() {
        return 0x7fff;
    }
    if value.is_infinite() {
        return signed(top << fraction);
    }
    let bias = (1i64 << (exponent - 1)) - 1;
    let own = (bits >> 52 & 0x7ff).cast_signed() - 1023 + bias;
    let significand = bits & ((1 << 52) - 1) | if bits >> 52 & 0x7ff == 0 { 0 } else { 1 << 52 };
    // How many bits go; subnormal results lose more.
    let drop = 52 - i64::from(fraction) + if own < 1 { 1 - own } else { 0 };
    let drop = drop.clamp(0, 63).cast_unsigned() as u32;
    let kept = significand >> drop;
    let lost = significand & ((1u64 << drop) - 1);
    let half = 1u64 << (drop - 1);
    let up = round.is_up(sign == 1, kept & 1 != 0, lost & half != 0, lost & (half - 1) != 0);
    let kept = kept + u64::from(up);
    // The hidden bit carries into the exponent by itself.
    let base = if own < 1 { 0 } else { (own.cast_unsigned() - 1) << fraction };
    let magnitude = base + kept;
    if magnitude >= top << fraction {
        return signed((top << fraction) - u64::from(!round.is_to_infinity(sign == 1)));
    }
    signed(magnitude)
}

/// Rounds to `f16`.
pub(in super::super) fn from_f64(value: f64, round: Round) -> u16 {
    round_to(value, round, 5, 10)
}

/// Rounds to `bf16`.
pub(in super::super) fn bf16_from_f64(value: f64, round: Round) -> u16 {
    round_to(value, round, 8, 7)
}

/// How a 16-bit float is read and written.
#[derive(Clone, Copy)]
pub(in super::super) struct Format {
    pub(in super::super) read: fn(u16) -> f64,
    pub(in super::super) write: fn(f64) -> u16,
    pub(in super::super) pairs: bool,
}

/// The format of a type.
pub(in super::super) fn format(ty: Ty) -> Option<Format> {
    let half: fn(u16) -> f64 = |bits| f64::from(to_f32(bits));
    let brain: fn(u16) -> f64 = |bits| f64::from(f32::from_bits(u32::from(bits) << 16));
    let to_half: fn(f64) -> u16 = |value| from_f64(value, Round::Nearest);
    let to_brain: fn(f64) -> u16 = |value| bf16_from_f64(value, Round::Nearest);
    Some(match ty {
        Ty::F16 => Format { read: half, write: to_half, pairs: false },
        Ty::F16x2 => Format { read: half, write: to_half, pairs: true },
        Ty::Bf16 => Format { read: brain, write: to_brain, pairs: false },
        Ty::Bf16x2 => Format { read: brain, write: to_brain, pairs: true },
        _ => return None,
    })
}

/// Subnormal numbers of `f16` become zeros of their sign.
fn flush_half(bits: u16) -> u16 {
    if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }
}

/// Likewise of `bf16`.
fn flush_brain(bits: u16) -> u16 {
    if bits & 0x7f80 == 0 { bits & 0x8000 } else { bits }
}

/// A result that would be below the least normal number, were it rounded to so many bits and an exponent without bounds, becomes
/// zero.
fn flushed(value: f64, least: f64, bits: i32) -> f64 {
    if value.abs() < least * (1.0 - 2f64.powi(-bits - 1)) { 0f64.copysign(value) } else { value }
}

/// The format of a type where operands and results are flushed.
fn flushing(ty: Ty) -> Option<Format> {
    let format = format(ty)?;
    Some(match ty {
        Ty::F16 | Ty::F16x2 => Format {
            read: |bits| f64::from(to_f32(flush_half(bits))),
            write: |value| from_f64(flushed(value, 2f64.powi(-14), 11), Round::Nearest),
            ..format
        },
        _ => Format {
            read: |bits| f64::from(f32::from_bits(u32::from(flush_brain(bits)) << 16)),
            write: |value| bf16_from_f64(flushed(value, 2f64.powi(-126), 8), Round::Nearest),
            ..format
        },
    })
}

impl Format {
    /// Puts the elements of a word together, from what a function gives for the lowest bit of each.
    fn each(self, part: impl Fn(u32) -> u16) -> u64 {
        let part = |shift| u64::from(part(shift));
        if self.pairs { part(0) | part(16) << 16 } else { part(0) }
    }

    /// Applies a function to each element.
    pub(in super::super) fn map(self, words: [u64; 3], f: impl Fn([f64; 3]) -> f64) -> u64 {
        self.each(|shift| (self.write)(f(words.map(|word| (self.read)((word >> shift) as u16)))))
    }
}

/// Applies `.sat` and `.relu`.
fn finish(cx: &Cx<'_, '_>) -> impl Fn(f64) -> f64 + Send + Sync + use<> {
    let (sat, relu) = (cx.has("sat"), cx.has("relu"));
    move |value| clipped(value, sat, relu)
}

fn with_format(cx: &Cx<'_, '_>) -> Result<(Ty, Format), Bad> {
    let ty = cx.ty()?;
    Ok((ty, format_of(cx, ty)?))
}

/// The format of operands of a type, flushed if the instruction says so.
pub(super) fn format_of(cx: &Cx<'_, '_>, ty: Ty) -> Result<Format, Bad> {
    match if cx.has("ftz") { flushing(ty) } else { format(ty) } {
        Some(format) => Ok(format),
        None => cx.refuse(),
    }
}

fn two(cx: &Cx<'_, '_>, f: impl Fn(f64, f64) -> f64 + Send + Sync + 'static) -> Result<Code, Bad> {
    let (ty, format) = with_format(cx)?;
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
    let finish = finish(cx);
    Ok(lanewise2(d, a, b, move |a, b| format.map([a, b, 0], |[a, b, _]| finish(f(a, b)))))
}

/// `add`: 64 bits hold the sum of two 16-bit floats exactly, or to odd where they do not.
pub(super) fn add(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    two(cx, exact_sum)
}

/// The sum, exact enough to be rounded once more.
pub(in super::super) fn exact_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    to_odd(sum, (a - (sum - part)) + (b - part))
}

/// `sub`
pub(super) fn sub(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    two(cx, |a, b| exact_sum(a, -b))
}

/// `mul`
pub(super) fn mul(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    two(cx, |a, b| a * b)
}

/// `min` and `max`, with `.NaN` and `.xorsign.abs`.
fn extremes(cx: &Cx<'_, '_>, max: bool) -> Result<Code, Bad> {
    let nan = cx.has("NaN");
    if cx.has("xorsign") {
        return two(cx, move |a, b| {
            let value = extreme(a.abs(), b.abs(), max, nan);
            if a.is_sign_negative() == b.is_sign_negative() { value } else { -value }
        });
    }
    two(cx, move |a, b| extreme(a, b, max, nan))
}

/// `min`
pub(super) fn min(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    extremes(cx, false)
}

/// `max`
pub(super) fn max(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    extremes(cx, true)
}

/// `fma`
pub(super) fn fma(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let (ty, format) = with_format(cx)?;
    let (d, a, b, c) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?, cx.src(3, ty)?);
    let (finish, oob) = (finish(cx), cx.has("oob"));
    Ok(lanewise3(d, a, b, c, move |a, b, c| {
        let sum = format.map([a, b, c], |[a, b, c]| finish(exact_sum(a * b, c)));
        if !oob {
            return sum;
        }
        // Of either sign.
        let is_outside = |word: u64, shift: u32| (word >> shift) as u16 & 0x7fff == OUT_OF_BOUNDS;
        format.each(
            |shift| if is_outside(a, shift) || is_outside(b, shift) { 0 } else { (sum >> shift) as u16 },
        )
    }))
}

fn sign(cx: &Cx<'_, '_>, f: fn(u16) -> u16) -> Result<Code, Bad> {
    let (ty, format) = with_format(cx)?;
    let (d, a) = (cx.dst(0)?, cx.src(1, ty)?);
    let ftz = cx.has("ftz");
    let infinity = if matches!(ty, Ty::F16 | Ty::F16x2) { 0x7c00 } else { 0x7f80 };
    let part = move |bits: u16| {
        let bits = f(if ftz { flush_half(bits) } else { bits });
        if bits & 0x7fff > infinity { 0x7fff } else { bits }
    };
    Ok(lanewise1(d, a, move |a| format.each(|shift| part((a >> shift) as u16))))
}

/// `abs`
pub(super) fn abs(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    sign(cx, |a| a & 0x7fff)
}

/// `neg`
pub(super) fn neg(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    sign(cx, |a| a ^ 0x8000)
}

/// A function of one value: `ex2`, `tanh`.
pub(super) fn through(cx: &Cx<'_, '_>, f: fn(f64) -> f64) -> Result<Code, Bad> {
    let (ty, format) = with_format(cx)?;
    let (d, a) = (cx.dst(0)?, cx.src(1, ty)?);
    Ok(lanewise1(d, a, move |a| format.map([a, 0, 0], |[a, ..]| f(a))))
}

/// There is no such operation on 16-bit floats.
pub(super) fn refuse(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    cx.refuse()
}
