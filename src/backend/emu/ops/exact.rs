//! 64-bit arithmetic with directed rounding, on whole numbers: every bit of a result is known before it is rounded, also
//! where it overflows or is subnormal.

use super::float::Round;

/// `mantissa * 2^exponent`, and a little more in magnitude if `more`.
#[derive(Clone, Copy)]
struct Number {
    negative: bool,
    mantissa: u128,
    exponent: i32,
    more: bool,
}

/// Bits of a fraction with the hidden one, and the exponents of the last bit of subnormal and of the largest numbers.
const BITS: i32 = 53;
const LEAST: i32 = -1074;
const MOST: i32 = 971;
/// Where the top bit stands before numbers are added, so that a carry fits.
const TOP: u32 = 125;

impl Number {
    /// Of a finite number.
    fn of(value: f64) -> Self {
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        let (mantissa, exponent) =
            if exponent == 0 { (fraction, LEAST) } else { (fraction | 1 << 52, exponent - 1075) };
        Self { negative: value.is_sign_negative(), mantissa: mantissa.into(), exponent, more: false }
    }

    /// With the top bit there. Not for zero.
    fn at_top(mut self, top: u32) -> Self {
        let shift = top - self.mantissa.ilog2();
        self.mantissa <<= shift;
        self.exponent -= shift.cast_signed();
        self
    }

    /// Rounded once. Where there is `more`, the mantissa has more bits than fit.
    fn round(self, round: Round) -> f64 {
        let Self { negative, mantissa, exponent, more } = self;
        let signed = |bits: u64| f64::from_bits(bits | u64::from(negative) << 63);
        if mantissa == 0 {
            return signed(0);
        }
        let length = mantissa.ilog2() as i32 + 1;
        let mut last = (exponent + length - BITS).max(LEAST);
        let drop = last - exponent;
        let (kept, half, rest) = match u32::try_from(drop).unwrap_or(0) {
            0 => (mantissa << (-drop).clamp(0, 127), false, more),
            shift @ 1..128 => {
                let half = mantissa >> (shift - 1) & 1 != 0;
                let rest = mantissa & ((1 << (shift - 1)) - 1) != 0;
                (mantissa >> shift, half, rest || more)
            }
            _ => (0, false, true),
        };
        let up = round.is_up(negative, kept & 1 != 0, half, rest);
        let mut kept = kept as u64 + u64::from(up);
        if kept >> BITS != 0 {
            kept >>= 1;
            last += 1;
        }
        if last > MOST {
            return signed(f64::INFINITY.to_bits() - u64::from(!round.is_to_infinity(negative)));
        }
        if kept >> (BITS - 1) == 0 {
            return signed(kept);
        }
        signed(u64::from((last + 1075).unsigned_abs()) << 52 | kept & ((1 << 52) - 1))
    }

    fn times(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            mantissa: self.mantissa * other.mantissa,
            exponent: self.exponent + other.exponent,
            more: false,
        }
    }

    /// The sum of two numbers that are not zero, of at most 106 bits each; `None` if it is zero.
    fn plus(self, other: Self) -> Option<Self> {
        let (one, two) = (self.at_top(TOP), other.at_top(TOP));
        let (large, small) = if (one.exponent, one.mantissa) >= (two.exponent, two.mantissa) {
            (one, two)
        } else {
            (two, one)
        };
        let distance = large.exponent.abs_diff(small.exponent);
        let shifted = small.mantissa.checked_shr(distance).unwrap_or(0);
        let more = shifted.checked_shl(distance).unwrap_or(0) != small.mantissa;
        let mantissa = if large.negative == small.negative {
            large.mantissa + shifted
        } else {
            // What was shifted out is borrowed, and what is left of that is more.
            large.mantissa - shifted - u128::from(more)
        };
        (mantissa != 0).then_some(Self { mantissa, more, ..large })
    }
}

/// An integer.
pub(super) fn integer(value: i128, round: Round) -> f64 {
    let (negative, mantissa) = (value < 0, value.unsigned_abs());
    Number { negative, mantissa, exponent: 0, more: false }.round(round)
}

/// `a * b + c`
pub(super) fn fma(a: f64, b: f64, c: f64, round: Round) -> f64 {
    if !(a.is_finite() && b.is_finite() && c.is_finite()) {
        return a.mul_add(b, c);
    }
    let (product, c_number) = (Number::of(a).times(Number::of(b)), Number::of(c));
    // A zero that is a sum has the sign of both, or that of the rounding.
    let zero = || if round == Round::Down { -0.0 } else { 0.0 };
    match (product.mantissa, c_number.mantissa) {
        (0, 0) if product.negative == c_number.negative => c,
        (0, 0) => zero(),
        (0, _) => c,
        (_, 0) => product.round(round),
        _ => product.plus(c_number).map_or_else(zero, |sum| sum.round(round)),
    }
}

/// `a * b`
pub(super) fn mul(a: f64, b: f64, round: Round) -> f64 {
    if !(a.is_finite() && b.is_finite()) {
        return a * b;
    }
    Number::of(a).times(Number::of(b)).round(round)
}

/// `a / b`
pub(super) fn div(a: f64, b: f64, round: Round) -> f64 {
    if !(a.is_finite() && b.is_finite()) || a == 0.0 || b == 0.0 {
        return a / b;
    }
    let (a, b) = (Number::of(a).at_top(126), Number::of(b).at_top(52));
    Number {
        negative: a.negative != b.negative,
        mantissa: a.mantissa / b.mantissa,
        exponent: a.exponent - b.exponent,
        more: !a.mantissa.is_multiple_of(b.mantissa),
    }
    .round(round)
}

/// The square root.
pub(super) fn sqrt(a: f64, round: Round) -> f64 {
    if !a.is_finite() || a <= 0.0 {
        return a.sqrt();
    }
    let mut a = Number::of(a).at_top(TOP);
    if a.exponent % 2 != 0 {
        a.mantissa <<= 1;
        a.exponent -= 1;
    }
    let root = a.mantissa.isqrt();
    Number { mantissa: root, exponent: a.exponent / 2, more: root * root != a.mantissa, ..a }.round(round)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The nearest is what the machine gives, and the directed results lie around it.
        #[test]
        fn results_are_around_the_nearest(a: u64, b: u64, c: u64) {
            let [a, b, c] = [a, b, c].map(f64::from_bits);
            let check = |nearest: f64, f: &dyn Fn(Round) -> f64| {
                let [own, zero, down, up] = [Round::Nearest, Round::Zero, Round::Down, Round::Up].map(f);
                prop_assert!(own.to_bits() == nearest.to_bits() || own.is_nan() && nearest.is_nan());
                if !nearest.is_nan() {
                    prop_assert!(down <= nearest && nearest <= up && (up == down || up == down.next_up()));
                    prop_assert_eq!(zero, if nearest.is_sign_negative() { up } else { down });
                }
                Ok(())
            };
            check(a * b, &|round| mul(a, b, round))?;
            check(a + c, &|round| fma(a, 1.0, c, round))?;
            check(a.mul_add(b, c), &|round| fma(a, b, c, round))?;
            check(a / b, &|round| div(a, b, round))?;
            check(a.sqrt(), &|round| sqrt(a, round))?;
        }
    }
}
