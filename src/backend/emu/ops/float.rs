//! 32- and 64-bit floats. Arithmetic rounds as the modifiers say, and 32-bit results that are no number are the
//! hardware's one NaN. The approximate forms are computed by the 64-bit (or, for 64 bits, the library's) function.

use super::super::decode::{Bad, Cx};
use super::super::image::Code;
use super::super::regs::{Word, bits};
use super::super::types::Ty;
use super::{binary, compute, exact, lanewise2, ternary, unary};

/// Rounding of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Nearest,
    Zero,
    Down,
    Up,
}

impl Round {
    pub(super) fn of(cx: &Cx<'_, '_>) -> Self {
        match cx.one_of(&["rz", "rm", "rp"]) {
            Some("rz") => Self::Zero,
            Some("rm") => Self::Down,
            Some("rp") => Self::Up,
            _ => Self::Nearest,
        }
    }

    /// Whether a magnitude that was cut off goes up by one: `odd` is its last bit, `half` the first one that was lost, and `rest`
    /// whether any other was.
    pub(super) fn is_up(self, negative: bool, odd: bool, half: bool, rest: bool) -> bool {
        match self {
            Self::Nearest => half && (rest || odd),
            Self::Zero => false,
            Self::Down => negative && (half || rest),
            Self::Up => !negative && (half || rest),
        }
    }

    /// Whether what is beyond the largest number becomes infinity.
    pub(super) fn is_to_infinity(self, negative: bool) -> bool {
        match self {
            Self::Nearest => true,
            Self::Zero => false,
            Self::Down => negative,
            Self::Up => !negative,
        }
    }
}

/// The NaN that 32-bit arithmetic gives.
#[inline(always)]
pub(super) fn canonical(value: f32) -> f32 {
    // By bits: for the compiler, one NaN is as good as another.
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { 0x7fff_ffff } else { bits })
}

/// A NaN that 64-bit arithmetic hands on.
fn quiet(nan: f64) -> f64 {
    f64::from_bits(nan.to_bits() | 1 << 51)
}

/// A result, or the operand whose NaN the hardware prefers.
#[inline(always)]
pub(super) fn or_nan(result: f64, preferred: f64) -> f64 {
    if result.is_nan() && preferred.is_nan() { quiet(preferred) } else { result }
}

/// Subnormal numbers become zeros of their sign.
#[inline(always)]
pub(super) fn flush(value: f32) -> f32 {
    if value.is_subnormal() { value * 0.0 } else { value }
}

#[inline(always)]
fn saturate(value: f32) -> f32 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) + 0.0 }
}

/// `.sat` and `.relu` of what is computed wider: both come after the rounding but are exact before it as well.
#[inline(always)]
pub(super) fn clipped(value: f64, sat: bool, relu: bool) -> f64 {
    if sat {
        if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) + 0.0 }
    } else if relu && value <= 0.0 {
        0.0
    } else {
        value
    }
}

/// `a / b` for rounding once more.
fn quotient(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    let residual = (-quotient).mul_add(b, a);
    to_odd(quotient, if b < 0.0 { -residual } else { residual })
}

/// A value between two 64-bit floats as the one of them whose last bit is set, so that rounding it once more is right
/// (it has more than twice the bits of what it is rounded to). `error` has the sign of what was lost.
#[inline(always)]
pub(super) fn to_odd(value: f64, error: f64) -> f64 {
    let bits = value.to_bits();
    if error != 0.0 && value.is_finite() && bits & 1 == 0 && !error.is_nan() {
        if value == 0.0 {
            return f64::from_bits(1).copysign(error);
        }
        let away = (error > 0.0) == (value > 0.0);
        f64::from_bits(if away { bits + 1 } else { bits - 1 })
    } else {
        value
    }
}

/// Rounds to 32 bits.
pub(super) fn narrow(value: f64, round: Round) -> f32 {
    let near = value as f32;
    if round == Round::Nearest || value.is_nan() {
        return near;
    }
    let back = f64::from(near);
    match round {
        Round::Down if back > value => near.next_down(),
        Round::Up if back < value => near.next_up(),
        Round::Zero if back.abs() > value.abs() => {
            if value > 0.0 {
                near.next_down()
            } else {
                near.next_up()
            }
        }
        _ => near,
    }
}

/// Rounds to 32 bits; if `ftz`, what would be below the normal numbers, were the exponent without bounds, becomes zero.
fn narrow_flushed(value: f64, round: Round, ftz: bool) -> f32 {
    let far = 2f32.powi(64);
    if ftz && narrow(value * f64::from(far), round).abs() < f32::MIN_POSITIVE * far {
        return 0f32.copysign(value as f32);
    }
    narrow(value, round)
}

#[inline(always)]
fn sum_error(a: f64, b: f64, sum: f64) -> f64 {
    let part = sum - a;
    (a - (sum - part)) + (b - part)
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub(super) fn fma32(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    let error = sum_error(product, c, sum);
    // As `to_odd`, without branches: a sum of two exact values that is zero has no error.
    let inexact = (error > 0.0) | (error < 0.0);
    let towards_zero = (error < 0.0) != (sum < 0.0);
    let bits = sum.to_bits();
    let down = inexact & towards_zero & (bits & 1 == 0);
    f64::from_bits(bits.wrapping_sub(u64::from(down)) | u64::from(inexact)) as f32
}

fn fma32_rounded(a: f32, b: f32, c: f32, round: Round) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    if sum == 0.0 {
        return zero_sum(product, c, round) as f32;
    }
    narrow(to_odd(sum, sum_error(product, c, sum)), round)
}

/// The sign of a sum that is zero.
fn zero_sum(a: f64, b: f64, round: Round) -> f64 {
    let negative = a != 0.0 || a.is_sign_negative() || b.is_sign_negative();
    if round == Round::Down && negative { -0.0 } else { a + b }
}

/// A 32-bit operation with the modifiers `.ftz` and `.sat` applied.
fn shaped2(cx: &Cx<'_, '_>, f: impl Fn(f32, f32) -> f32 + Send + Sync + 'static) -> Result<Code, Bad> {
    let (ftz, sat) = (cx.has("ftz"), cx.has("sat"));
    if !ftz && !sat {
        return binary(cx, Ty::F32, move |a: f32, b: f32| canonical(f(a, b)));
    }
    binary(cx, Ty::F32, move |a: f32, b: f32| {
        let value = if ftz { flush(f(flush(a), flush(b))) } else { f(a, b) };
        if sat { saturate(value) } else { canonical(value) }
    })
}

fn shaped1(cx: &Cx<'_, '_>, f: impl Fn(f32) -> f32 + Send + Sync + 'static) -> Result<Code, Bad> {
    let ftz = cx.has("ftz");
    unary(cx, Ty::F32, move |a: f32| if ftz { canonical(flush(f(flush(a)))) } else { canonical(f(a)) })
}

/// `add`
pub(super) fn add(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    sum(cx, 1.0)
}

/// `sub`
pub(super) fn sub(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    sum(cx, -1.0)
}

fn sum(cx: &Cx<'_, '_>, sign: f64) -> Result<Code, Bad> {
    let round = Round::of(cx);
    match (cx.ty()?, round, sign > 0.0) {
        (Ty::F32, Round::Nearest, true) => shaped2(cx, |a, b| a + b),
        (Ty::F32, Round::Nearest, false) => shaped2(cx, |a, b| a - b),
        (Ty::F32, ..) => {
            let sign = sign as f32;
            shaped2(cx, move |a, b| fma32_rounded(sign, b, a, round))
        }
        (_, Round::Nearest, _) => binary(cx, Ty::F64, move |a: f64, b: f64| or_nan(a + sign * b, b)),
        _ => binary(cx, Ty::F64, move |a: f64, b: f64| or_nan(exact::fma(a, 1.0, sign * b, round), b)),
    }
}

/// `mul`
pub(super) fn mul(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let round = Round::of(cx);
    match (cx.ty()?, round) {
        (Ty::F32, Round::Nearest) if !cx.has("ftz") => shaped2(cx, |a, b| a * b),
        (Ty::F32, _) => {
            let ftz = cx.has("ftz");
            shaped2(cx, move |a, b| narrow_flushed(f64::from(a) * f64::from(b), round, ftz))
        }
        (_, Round::Nearest) => binary(cx, Ty::F64, |a: f64, b: f64| a * b),
        _ => binary(cx, Ty::F64, move |a: f64, b: f64| exact::mul(a, b, round)),
    }
}

/// `fma`, and `mad` of floats
pub(super) fn fma(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let round = Round::of(cx);
    let ty = cx.ty()?;
    match (ty, round) {
        (Ty::F32, _) => {
            let (ftz, sat) = (cx.has("ftz"), cx.has("sat"));
            if round == Round::Nearest && !ftz && !sat {
                return ternary(cx, ty, |a: f32, b: f32, c: f32| canonical(fma32(a, b, c)));
            }
            ternary(cx, ty, move |a: f32, b: f32, c: f32| {
                let (a, b, c) = if ftz { (flush(a), flush(b), flush(c)) } else { (a, b, c) };
                let value = fma32_rounded(a, b, c, round);
                let value = if ftz { flush(value) } else { value };
                if sat { saturate(value) } else { canonical(value) }
            })
        }
        (Ty::F64, Round::Nearest) => {
            ternary(cx, ty, |a: f64, b: f64, c: f64| or_nan(or_nan(a.mul_add(b, c), c), b))
        }
        (Ty::F64, _) => {
            ternary(cx, ty, move |a: f64, b: f64, c: f64| or_nan(or_nan(exact::fma(a, b, c, round), c), b))
        }
        _ => super::half::fma(cx),
    }
}

/// `div`
pub(super) fn div(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let round = Round::of(cx);
    match (cx.ty()?, round) {
        // For divisors that large the approximation's reciprocal is zero.
        (Ty::F32, Round::Nearest) if cx.has("approx") => shaped2(cx, |a, b| {
            let is_large = b.is_finite() && b.abs() > 2f32.powi(126);
            if is_large { a * 0f32.copysign(b) } else { a / b }
        }),
        (Ty::F32, Round::Nearest) => shaped2(cx, |a, b| a / b),
        (Ty::F32, _) => shaped2(cx, move |a, b| narrow(quotient(a.into(), b.into()), round)),
        (_, Round::Nearest) => binary(cx, Ty::F64, |a: f64, b: f64| a / b),
        _ => binary(cx, Ty::F64, move |a: f64, b: f64| exact::div(a, b, round)),
    }
}

/// An approximation of 64 bits: the upper halves of operand and result count, the lower half of the result is zero.
fn upper_half(cx: &Cx<'_, '_>, f: fn(f64) -> f64) -> Result<Code, Bad> {
    let kept = |value: f64| {
        let value = f64::from_bits(value.to_bits() >> 32 << 32);
        if value.is_subnormal() { value * 0.0 } else { value }
    };
    unary(cx, Ty::F64, move |a: f64| {
        let value = f(kept(a));
        if value.is_nan() { f64::from_bits(0x7fff_ffff << 32) } else { kept(value) }
    })
}

/// `rcp`
pub(super) fn rcp(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    if cx.ty()? == Ty::F64 && cx.has("ftz") {
        return upper_half(cx, |a| 1.0 / a);
    }
    let round = Round::of(cx);
    match cx.ty()? {
        Ty::F32 if round == Round::Nearest => shaped1(cx, |a| 1.0 / a),
        Ty::F32 => {
            let ftz = cx.has("ftz");
            shaped1(cx, move |a| narrow_flushed(quotient(1.0, a.into()), round, ftz))
        }
        _ if round == Round::Nearest => unary(cx, Ty::F64, |a: f64| 1.0 / a),
        _ => unary(cx, Ty::F64, move |a: f64| exact::div(1.0, a, round)),
    }
}

/// `sqrt`
pub(super) fn sqrt(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let round = Round::of(cx);
    match cx.ty()? {
        Ty::F32 if round == Round::Nearest => shaped1(cx, f32::sqrt),
        Ty::F32 => shaped1(cx, move |a| {
            let a = f64::from(a);
            let root = a.sqrt();
            narrow(to_odd(root, (-root).mul_add(root, a)), round)
        }),
        _ if round == Round::Nearest => unary(cx, Ty::F64, f64::sqrt),
        _ => unary(cx, Ty::F64, move |a: f64| exact::sqrt(a, round)),
    }
}

/// A function of 32-bit floats, by its 64-bit form.
fn through(cx: &Cx<'_, '_>, f: fn(f64) -> f64) -> Result<Code, Bad> {
    match cx.ty()? {
        Ty::F32 => shaped1(cx, move |a| f(f64::from(a)) as f32),
        Ty::F64 => unary(cx, Ty::F64, f),
        _ => super::half::through(cx, f),
    }
}

/// `rsqrt`
pub(super) fn rsqrt(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    if cx.ty()? == Ty::F64 && cx.has("ftz") {
        return upper_half(cx, |a| 1.0 / a.sqrt());
    }
    through(cx, |a| 1.0 / a.sqrt())
}

/// `sin`
pub(super) fn sin(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    through(cx, f64::sin)
}

/// `cos`
pub(super) fn cos(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    through(cx, f64::cos)
}

/// `ex2`
pub(super) fn ex2(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    through(cx, f64::exp2)
}

/// `lg2`
pub(super) fn lg2(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    through(cx, f64::log2)
}

/// `tanh`
pub(super) fn tanh(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    through(cx, f64::tanh)
}

/// `abs`
pub(super) fn abs(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    match cx.ty()? {
        Ty::F32 if cx.has("ftz") => unary(cx, Ty::F32, |a: f32| canonical(flush(a).abs())),
        Ty::F32 => unary(cx, Ty::F32, |a: f32| canonical(a.abs())),
        _ => unary(cx, Ty::F64, |a: f64| if a.is_nan() { quiet(a) } else { a.abs() }),
    }
}

/// `neg`
pub(super) fn neg(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    match cx.ty()? {
        Ty::F32 if cx.has("ftz") => unary(cx, Ty::F32, |a: f32| canonical(-flush(a))),
        Ty::F32 => unary(cx, Ty::F32, |a: f32| canonical(-a)),
        _ => unary(cx, Ty::F64, |a: f64| if a.is_nan() { quiet(a) } else { -a }),
    }
}

/// The smaller or larger; zeros are ordered, and a number wins over NaN unless `.NaN` is there.
pub(super) fn extreme(a: f64, b: f64, max: bool, nan: bool) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => quiet(b),
        (true, _) | (_, true) if nan => f64::NAN,
        (true, false) => b,
        (false, true) => a,
        _ => {
            let a_first = if a == b { a.is_sign_negative() } else { a < b };
            if a_first != max { a } else { b }
        }
    }
}

fn extremes(cx: &Cx<'_, '_>, max: bool) -> Result<Code, Bad> {
    let (nan, xor) = (cx.has("NaN"), cx.has("xorsign"));
    match cx.ty()? {
        Ty::F32 if cx.has("abs") || xor => shaped2(cx, move |a, b| {
            let sign = (a.to_bits() ^ b.to_bits()) >> 31 << 31;
            let value = extreme(f64::from(a.abs()), f64::from(b.abs()), max, nan) as f32;
            if xor { f32::from_bits(value.to_bits() | sign) } else { value }
        }),
        Ty::F32 => shaped2(cx, move |a, b| extreme(f64::from(a), f64::from(b), max, nan) as f32),
        _ => binary(cx, Ty::F64, move |a: f64, b: f64| extreme(a, b, max, nan)),
    }
}

/// `min`
pub(super) fn min(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    extremes(cx, false)
}

/// `max`
pub(super) fn max(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    extremes(cx, true)
}

/// `copysign d, sign, magnitude`
pub(super) fn copysign(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
    let sign = 1u64 << (ty.bits() - 1);
    let all = if ty == Ty::F64 { u64::MAX } else { 0xffff_ffff };
    Ok(lanewise2(d, a, b, move |a, b| (a & sign | b & !sign) & all))
}

/// `testp`
pub(super) fn testp(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let d = cx.pred_dst(cx.operand(0)?)?;
    let a = cx.src(1, ty)?;
    let test: fn(f64, bool) -> bool =
        match cx.one_of(&["finite", "infinite", "number", "notanumber", "normal", "subnormal"]) {
            Some("finite") => |a, _| a.is_finite(),
            Some("infinite") => |a, _| a.is_infinite(),
            Some("number") => |a, _| !a.is_nan(),
            Some("notanumber") => |a, _| a.is_nan(),
            // Zeros count as normal.
            Some("normal") => |a, subnormal| a.is_finite() && !subnormal,
            Some("subnormal") => |_, subnormal| subnormal,
            _ => return cx.refuse(),
        };
    Ok(compute(move |regs, mask| {
        let a = regs.get(a);
        let holds = |lane: usize| match ty {
            Ty::F64 => {
                let value = f64::of(a[lane]);
                test(value, value.is_subnormal())
            }
            _ => {
                let value = f32::of(a[lane]);
                test(f64::from(value), value.is_subnormal())
            }
        };
        regs.set_pred(d, mask, bits(holds));
    }))
}
