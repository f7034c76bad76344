//! The arithmetic of matrix units: sums of products.

use super::super::types::{Ty, extend, low};
use super::float::Round;
use super::{eight, half};

/// How an instruction makes sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// Products that are added at once.
    pub(super) group: usize,
    /// Bits behind the point of the largest exponent that count in such a sum.
    pub(super) fraction: i32,
    /// How `f64` is rounded.
    pub(super) round: Round,
    /// Integers do not wrap.
    pub(super) saturates: bool,
    /// Bits are compared, not multiplied.
    pub(super) differs: bool,
}

/// What products and sums are made of.
pub(super) trait Number: Copy + Default + 'static {
    fn read(ty: Ty, bits: u64) -> Self;
    fn write(self, ty: Ty, rule: &Rule) -> u64;
    /// `sum` and the products of the pairs, for a result of this type.
    fn dot(sum: Self, a: &[Self], b: &[Self], ty: Ty, rule: &Rule) -> Self;
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

/// Cuts off what an `f32` has no bits for.
fn cut(value: f64) -> f64 {
    let unit = power((exponent_of(value) - 23).max(-149));
    (value / unit).trunc() * unit
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
        let mut sum = sum;
        for (a, b) in a.chunks(rule.group).zip(b.chunks(rule.group)) {
            sum = sum.add(a, b, rule.fraction);
            if ty == Ty::F32 {
                let value = cut(sum.value);
                sum = Self { value, exponent: exponent_of(value).max(-126) };
            }
        }
        sum
    }
}

impl Short {
    /// Products are exact. All that is added is cut off at a bit so far below the largest exponent.
    fn add(self, a: &[Self], b: &[Self], fraction: i32) -> Self {
        let mut top = if self.value == 0.0 { i32::MIN } else { self.exponent };
        let mut plain = self.value;
        for (a, b) in a.iter().zip(b) {
            let product = a.value * b.value;
            plain += product;
            if product != 0.0 {
                top = top.max(a.exponent + b.exponent);
            }
        }
        if !plain.is_finite() || top == i32::MIN {
            return Self { value: plain, exponent: 0 };
        }
        let unit = power(top - fraction);
        let whole = |value: f64| (value / unit) as i64;
        let total = a.iter().zip(b).fold(whole(self.value), |sum, (a, b)| sum + whole(a.value * b.value));
        let value = total as f64 * unit;
        Self { value, exponent: exponent_of(value) }
    }
}

impl Number for f64 {
    fn read(_: Ty, bits: u64) -> Self {
        Self::from_bits(bits)
    }

    fn write(self, _: Ty, _: &Rule) -> u64 {
        self.to_bits()
    }

    fn dot(sum: Self, a: &[Self], b: &[Self], _: Ty, _: &Rule) -> Self {
        a.iter().zip(b).fold(sum, |sum, (a, b)| a.mul_add(*b, sum))
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
}
