//! 8-bit floats, `e4m3` and `e5m2`: what matrices of them stand for, and `cvt` of pairs, from pairs of `f32` or from `f16x2`,
//! saturating, and to `f16x2`.

use super::super::decode::{Bad, Cx};
use super::super::image::Code;
use super::super::types::Ty;
use super::float::{Round, clipped};
use super::half::{from_f64, to_f32};
use super::{lanewise1, lanewise2};

/// One of the formats.
#[derive(Clone, Copy)]
struct Eight {
    fraction: u32,
    bias: i32,
    /// The largest finite number; what is above it, infinity too, becomes this.
    most: u8,
    /// Codes of this magnitude and above are no finite number: infinity first, where the format has it.
    special: u8,
    has_infinity: bool,
}

const NAN: u8 = 0x7f;

fn eight(ty: Ty) -> Option<Eight> {
    match ty {
        Ty::E4m3 | Ty::E4m3x2 => {
            Some(Eight { fraction: 3, bias: 7, most: 0x7e, special: 0x7f, has_infinity: false })
        }
        Ty::E5m2 | Ty::E5m2x2 => {
            Some(Eight { fraction: 2, bias: 15, most: 0x7b, special: 0x7c, has_infinity: true })
        }
        _ => None,
    }
}

impl Eight {
    /// Rounds to nearest, ties to even.
    fn write(self, value: f64) -> u8 {
        if value.is_nan() {
            return NAN;
        }
        let sign = u8::from(value.is_sign_negative()) << 7;
        let magnitude = value.abs();
        if magnitude >= 65536.0 {
            return sign | self.most;
        }
        // Below the normal numbers the unit of the last place stays what it is.
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - self.bias);
        let unit = 2f64.powi(exponent - self.fraction.cast_signed());
        let steps = (magnitude / unit).round_ties_even() as u32;
        // The hidden bit counts as one step of the exponent field, and so does a carry.
        let code = ((exponent + self.bias - 1).cast_unsigned() << self.fraction) + steps;
        sign | code.min(u32::from(self.most)) as u8
    }

    fn read(self, code: u8) -> f64 {
        let sign = if code >> 7 == 0 { 1.0 } else { -1.0 };
        let magnitude = code & 0x7f;
        if magnitude >= self.special {
            let infinite = self.has_infinity && magnitude == self.special;
            return if infinite { sign * f64::INFINITY } else { f64::NAN };
        }
        let (field, fraction) =
            (i32::from(magnitude >> self.fraction), magnitude & ((1 << self.fraction) - 1));
        let hidden = if field == 0 { 0.0 } else { f64::from(1u32 << self.fraction) };
        let unit = 2f64.powi(field.max(1) - self.bias - self.fraction.cast_signed());
        sign * (hidden + f64::from(fraction)) * unit
    }
}

/// The number that a code of this type stands for.
pub(super) fn value(ty: Ty, code: u8) -> f64 {
    eight(ty).map_or(f64::NAN, |format| format.read(code))
}

/// `cvt` to or from these formats.
pub(super) fn cvt(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let (to, ty, relu) = (cx.ty_at(0)?, cx.ty_at(1)?, cx.has("relu"));
    let clip = move |value| clipped(value, false, relu);
    match (eight(to), eight(ty)) {
        (Some(format), None) if ty == Ty::F32 => {
            let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
            let part = move |bits: u64| u64::from(format.write(clip(f64::from(f32::from_bits(bits as u32)))));
            Ok(lanewise2(d, a, b, move |a, b| part(a) << 8 | part(b)))
        }
        (Some(format), None) if ty == Ty::F16x2 => {
            let (d, a) = (cx.dst(0)?, cx.src(1, ty)?);
            let part = move |bits: u64| u64::from(format.write(clip(f64::from(to_f32(bits as u16)))));
            Ok(lanewise1(d, a, move |a| part(a >> 16) << 8 | part(a)))
        }
        (None, Some(format)) if to == Ty::F16x2 => {
            let (d, a) = (cx.dst(0)?, cx.src(1, ty)?);
            let part = move |code: u64| u64::from(from_f64(clip(format.read(code as u8)), Round::Nearest));
            Ok(lanewise1(d, a, move |a| part(a >> 8) << 16 | part(a)))
        }
        _ => cx.refuse(),
    }
}
