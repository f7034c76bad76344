//! The arithmetic of matrix units: sums of products.
//!
//! The PTX ISA leaves order and rounding open. What an H200 does, found by its results: products are exact, they and the sum are
//! cut off at a bit `FRACTION` below the largest exponent among them (products of numbers `1.x` count as the sum of their
//! exponents), added, and the result is cut off to `f32` or rounded to `f16`. What its matrix units do not have, the
//! driver's compiler makes of other instructions, with the sum added last.
//!
//! Left out: the sign of zeros in `mma.m8n8k4` of `f16`; that `wmma` goes by way of `f32` where its sum and its result are of different
//! types; and that a sum of four products of `tf32` overflows before the next four are added.

use super::super::types::{Ty, extend, low};
use super::float::{Round, or_nan};
use super::{eight, exact, half};

/// Bits behind the point of the largest exponent that count.
pub(super) const FRACTION: i32 = 25;
/// The same of 8-bit floats, where `wgmma` multiplies them; its sums have no more bits either.
pub(super) const FRACTION_OF_EIGHT: i32 = 13;

/// In which steps products are added.
#[derive(Clone, Copy, Debug)]
pub(super) enum Steps {
    /// So many at once, together with the sum.
    Fused(usize),
    /// The first two of each four, then the others; the sum last.
    Pairs,
    /// One by one in `f32`, the sum last.
    Single,
}

/// How an instruction makes sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) steps: Steps,
    /// Bits below the largest exponent that count.
    pub(super) fraction: i32,
    /// How `f64` is rounded.
    pub(super) round: Round,
    /// Integers do not wrap.
    pub(super) saturates: bool,
    /// Bits are compared, not multiplied.
    pub(super) differs: bool,
}

impl Rule {
    pub(super) fn new(steps: Steps) -> Self {
        Self { steps, fraction: FRACTION, round: Round::Nearest, saturates: false, differs: false }
    }
}

/// What products and sums are made of.
pub(super) trait Number: Copy + Default + 'static {
    fn read(ty: Ty, bits: u64) -> Self;
    fn write(self, ty: Ty, rule: &Rule) -> u64;
    /// `sum` and the products of the pairs, for a result of this type.
    fn dot(sum: Self, a: &[Self], b: &[Self], ty: Ty, rule: &Rule) -> Self;
    fn negated(self) -> Self;
}

/// A float of at most 32 bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Short {
    value: f64,
    /// The power of two of its hidden bit, which subnormal numbers lack.
    exponent: i32,
}

/// The least exponent of a format.
fn least(ty: Ty) -> i32 {
    match ty {
        Ty::F16 | Ty::E5m2 => -14,
        Ty::E4m3 => -6,
        _ => -126,
    }
}

fn power(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent).max(1).cast_unsigned() as u64) << 52)
}

fn exponent_of(value: f64) -> i32 {
    (value.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

impl Number for Short {
    fn read(ty: Ty, bits: u64) -> Self {
        let value = match ty {
            Ty::F16 => f64::from(half::to_f32(bits as u16)),
            Ty::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
            // The low bits do not count.
            Ty::Tf32 => f64::from(f32::from_bits(bits as u32 & !0x1fff)),
            Ty::E4m3 | Ty::E5m2 => eight::value(ty, bits as u8),
            _ => f64::from(f32::from_bits(bits as u32)),
        };
        Self { value, exponent: exponent_of(value).max(least(ty)) }
    }

    fn write(self, ty: Ty, _: &Rule) -> u64 {
        match ty {
            Ty::F16 => half::from_f64(self.value, Round::Nearest).into(),
            _ if self.value.is_nan() => 0x7fff_ffff,
            _ => (self.value as f32).to_bits().into(),
        }
    }

    fn dot(sum: Self, a: &[Self], b: &[Self], ty: Ty, rule: &Rule) -> Self {
        let pairs = || a.iter().copied().zip(b.iter().copied());
        let none = Self { value: 0.0, exponent: 0 };
        match rule.steps {
            Steps::Fused(count) => a.chunks(count).zip(b.chunks(count)).fold(sum, |sum, (a, b)| {
                sum.add(a.iter().copied().zip(b.iter().copied()), rule.fraction).cut(ty, rule.fraction)
            }),
            Steps::Pairs => {
                let half = |which| {
                    pairs().enumerate().filter(move |(k, _)| k / 2 % 2 == which).map(|(_, pair)| pair)
                };
                let first = none.add(half(0), rule.fraction).cut(ty, rule.fraction);
                first.add(half(1), rule.fraction).cut(ty, rule.fraction).plus(sum, ty)
            }
            Steps::Single => {
                // Of no sum but the first product, whose zero may have a sign.
                let products =
                    pairs().fold(-0f32, |sum, (a, b)| (a.value as f32).mul_add(b.value as f32, sum));
                Self::of(f64::from(products)).plus(sum, Ty::F32).rounded(ty)
            }
        }
    }

    fn negated(self) -> Self {
        Self { value: -self.value, ..self }
    }
}

impl Short {
    fn of(value: f64) -> Self {
        Self { value, exponent: exponent_of(value).max(-126) }
    }

    /// Products are exact. All that is added is cut off at a bit so far below the largest exponent.
    fn add(self, pairs: impl Iterator<Item = (Self, Self)> + Clone, fraction: i32) -> Self {
        let mut top = if self.value == 0.0 { i32::MIN } else { self.exponent };
        let mut plain = self.value;
        for (a, b) in pairs.clone() {
            let product = a.value * b.value;
            plain += product;
            if product != 0.0 {
                top = top.max(a.exponent + b.exponent);
            }
        }
        if !plain.is_finite() {
            return Self::of(plain);
        }
        if top == i32::MIN {
            return Self::default();
        }
        let unit = power(top - fraction);
        let whole = |value: f64| (value / unit) as i64;
        let total = pairs.fold(whole(self.value), |sum, (a, b)| sum + whole(a.value * b.value));
        Self::of(total as f64 * unit)
    }

    /// As a result of a matrix unit, whose zeros have no sign.
    fn cut(self, ty: Ty, fraction: i32) -> Self {
        let value = match ty {
            Ty::F16 => self.rounded(ty).value,
            _ if !self.value.is_finite() => self.value,
            // What an `f32`, or a number of fewer bits, has none for is lost.
            _ => {
                let unit = power((exponent_of(self.value) - fraction.min(23)).max(-149));
                (self.value / unit).trunc() * unit
            }
        };
        Self::of(value + 0.0)
    }

    fn rounded(self, ty: Ty) -> Self {
        match ty {
            Ty::F16 => Self::of(half::to_f32(half::from_f64(self.value, Round::Nearest)).into()),
            _ => Self::of(f64::from(self.value as f32)),
        }
    }

    /// The rounded sum.
    fn plus(self, other: Self, ty: Ty) -> Self {
        Self::of(self.value + other.value).rounded(ty)
    }
}

impl Number for f64 {
    fn read(_: Ty, bits: u64) -> Self {
        Self::from_bits(bits)
    }

    fn write(self, _: Ty, _: &Rule) -> u64 {
        self.to_bits()
    }

    fn dot(sum: Self, a: &[Self], b: &[Self], _: Ty, rule: &Rule) -> Self {
        a.iter().zip(b).fold(sum, |sum, (a, b)| or_nan(or_nan(exact::fma(*a, *b, sum, rule.round), sum), *b))
    }

    fn negated(self) -> Self {
        -self
    }
}

impl Number for i64 {
    fn read(ty: Ty, bits: u64) -> Self {
        match ty {
            Ty::U(_) | Ty::B(_) => low(bits, ty.bits()).cast_signed(),
            _ => extend(bits, ty.bits()).cast_signed(),
        }
    }

    fn write(self, _: Ty, rule: &Rule) -> u64 {
        let value = if rule.saturates { self.clamp(i32::MIN.into(), i32::MAX.into()) } else { self };
        low(value.cast_unsigned(), 32)
    }

    fn dot(sum: Self, a: &[Self], b: &[Self], _: Ty, rule: &Rule) -> Self {
        let term = |(a, b): (&Self, &Self)| if rule.differs { a ^ b } else { a * b };
        sum + a.iter().zip(b).map(term).sum::<Self>()
    }

    fn negated(self) -> Self {
        -self
    }
}
