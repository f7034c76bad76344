//! Element values: from text to bytes and back, and the generators `iota` and `random:SEED`.

use crate::backend::ElementType;

/// A name of every element type, in the order of the documentation.
pub const TYPE_NAMES: [(&str, ElementType); 12] = [
    ("i8", ElementType::I8),
    ("u8", ElementType::U8),
    ("i16", ElementType::I16),
    ("u16", ElementType::U16),
    ("i32", ElementType::I32),
    ("u32", ElementType::U32),
    ("i64", ElementType::I64),
    ("u64", ElementType::U64),
    ("f16", ElementType::F16),
    ("bf16", ElementType::Bf16),
    ("f32", ElementType::F32),
    ("f64", ElementType::F64),
];

/// The name of an element type.
pub fn type_name(ty: ElementType) -> &'static str {
    TYPE_NAMES.iter().find(|(_, t)| *t == ty).map_or("?", |(name, _)| name)
}

/// Whether it is a floating-point type.
pub fn is_float(ty: ElementType) -> bool {
    matches!(ty, ElementType::F16 | ElementType::Bf16 | ElementType::F32 | ElementType::F64)
}

fn is_signed(ty: ElementType) -> bool {
    matches!(ty, ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64)
}

/// Reads a constant of a type; the error says what is wrong with it.
///
/// Integers are decimal, `0x`, `0o` or `0b`, with `_` between digits; all but decimal ones may use the whole width
/// of a signed type. Floats are decimal, `nan`, `inf`, or bits as PTX writes them (`0f3F800000`, `0d...`).
pub fn constant(text: &str, ty: ElementType) -> Result<Vec<u8>, String> {
    if is_float(ty) { float(text, ty) } else { integer(text, ty) }
}

fn integer(text: &str, ty: ElementType) -> Result<Vec<u8>, String> {
    let (value, decimal) = parse_integer(text).ok_or_else(|| format!("`{text}` is not an integer"))?;
    let bits = u32::try_from(ty.bytes()).unwrap_or(8) * 8;
    let (low, high) = if is_signed(ty) {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    let top = if decimal { high } else { (1i128 << bits) - 1 };
    if value < low || value > top {
        return Err(format!("`{text}` does not fit `{}` ({low} to {high})", type_name(ty)));
    }
    Ok(value.to_le_bytes().iter().take(ty.bytes()).copied().collect())
}

/// An integer, and whether it was decimal.
pub fn parse_integer(text: &str) -> Option<(i128, bool)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, digits.get(2..)?),
        Some("0b" | "0B") => (2, digits.get(2..)?),
        Some("0o" | "0O") => (8, digits.get(2..)?),
        _ => (10, digits),
    };
    // `from_str_radix` takes a sign of its own.
    if digits.starts_with(['+', '-', '_']) {
        return None;
    }
    let value = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some((if negative { -value } else { value }, radix == 10))
}

fn float(text: &str, ty: ElementType) -> Result<Vec<u8>, String> {
    let wrong = || format!("`{text}` is not a number");
    let hex = |digits: &str| u64::from_str_radix(digits, 16).map_err(|_| wrong());
    let value = match text.get(..2) {
        Some("0f" | "0F") if text.len() == 10 => {
            let bits = u32::try_from(hex(&text[2..])?).map_err(|_| wrong())?;
            f64::from(f32::from_bits(bits))
        }
        Some("0d" | "0D") if text.len() == 18 => f64::from_bits(hex(&text[2..])?),
        _ => match parse_integer(text) {
            Some((value, _)) => value as f64,
            None => text.parse::<f64>().map_err(|_| wrong())?,
        },
    };
    Ok(encode_float(value, ty))
}

fn encode_float(value: f64, ty: ElementType) -> Vec<u8> {
    match ty {
        ElementType::F16 => narrow(value, 5, 10).to_le_bytes().to_vec(),
        ElementType::Bf16 => narrow(value, 8, 7).to_le_bytes().to_vec(),
        ElementType::F32 => (value as f32).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    }
}

/// Rounds to a 16-bit float with these field widths, to nearest, ties to even.
fn narrow(value: f64, exponent_bits: u32, mantissa_bits: u32) -> u16 {
    let sign = u16::from(value.is_sign_negative()) << 15;
    let infinity = ((1u16 << exponent_bits) - 1) << mantissa_bits;
    if value.is_nan() {
        return sign | infinity | 1 << (mantissa_bits - 1);
    }
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let magnitude = value.abs();
    // The exponent of the unit in the last place, which stops shrinking where subnormals begin.
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    let unit = f64::powi(2.0, exponent - mantissa_bits as i32);
    let steps = (magnitude / unit).round_ties_even();
    let largest = f64::from((1u32 << (mantissa_bits + 1)) - 1);
    if !steps.is_finite() || exponent > bias || (exponent == bias && steps > largest) {
        return sign | infinity;
    }
    // A carry out of the mantissa runs into the exponent field, as it should.
    let field = (exponent - (1 - bias)) as u32;
    sign | ((field << mantissa_bits) + steps as u32) as u16
}

fn widen(bits: u16, exponent_bits: u32, mantissa_bits: u32) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let field = i32::from(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    let mantissa = f64::from(bits & ((1 << mantissa_bits) - 1));
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    if field == (1 << exponent_bits) - 1 {
        return if mantissa == 0.0 { sign * f64::INFINITY } else { f64::NAN };
    }
    let unit = f64::powi(2.0, field.max(1) - bias - mantissa_bits as i32);
    let hidden = if field == 0 { 0.0 } else { f64::from(1u32 << mantissa_bits) };
    sign * (hidden + mantissa) * unit
}

/// 0, 1, 2 and so on; integers wrap.
pub fn iota(ty: ElementType, count: usize) -> Vec<u8> {
    (0..count as u64)
        .flat_map(|i| {
            if is_float(ty) {
                encode_float(i as f64, ty)
            } else {
                i.to_le_bytes().iter().take(ty.bytes()).copied().collect()
            }
        })
        .collect()
}

/// Numbers of the SplitMix64 generator. Integers take the low bits of each output; floats are uniform in [0, 1).
pub fn random(ty: ElementType, count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    (0..count)
        .flat_map(|_| {
            let bits = split_mix(&mut state);
            // As many bits as the mantissa holds, so that rounding never gives 1.
            let keep = match ty {
                ElementType::F16 => 11,
                ElementType::Bf16 => 8,
                ElementType::F32 => 24,
                _ => 53,
            };
            if is_float(ty) {
                encode_float((bits >> (64 - keep)) as f64 / f64::powi(2.0, keep), ty)
            } else {
                bits.to_le_bytes().iter().take(ty.bytes()).copied().collect()
            }
        })
        .collect()
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// One element as text; the shortest that reads back the same.
pub fn display(bytes: &[u8], ty: ElementType) -> String {
    let mut word = [0u8; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    let raw = u64::from_le_bytes(word);
    match ty {
        ElementType::I8 => (raw as i8).to_string(),
        ElementType::I16 => (raw as i16).to_string(),
        ElementType::I32 => (raw as i32).to_string(),
        ElementType::I64 => (raw as i64).to_string(),
        ElementType::F16 => widen(raw as u16, 5, 10).to_string(),
        ElementType::Bf16 => widen(raw as u16, 8, 7).to_string(),
        ElementType::F32 => f32::from_bits(raw as u32).to_string(),
        ElementType::F64 => f64::from_bits(raw).to_string(),
        ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => raw.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f16(value: f64) -> u16 {
        narrow(value, 5, 10)
    }

    #[test]
    fn integers_keep_to_their_width() {
        assert_eq!(constant("-1", ElementType::I16), Ok(vec![0xff, 0xff]));
        assert_eq!(constant("0xffff_ffff", ElementType::I32), Ok(vec![0xff; 4]));
        assert_eq!(constant("300", ElementType::U8), Err("`300` does not fit `u8` (0 to 255)".into()));
        assert_eq!(constant("-1", ElementType::U32), Err("`-1` does not fit `u32` (0 to 4294967295)".into()));
        assert_eq!(constant("many", ElementType::U32), Err("`many` is not an integer".into()));
        assert_eq!(constant("0x-1", ElementType::I32), Err("`0x-1` is not an integer".into()));
    }

    #[test]
    fn floats_come_in_every_spelling() {
        for text in ["1", "1.0", "0x1", "1e0", "0f3F800000", "0d3FF0000000000000"] {
            assert_eq!(constant(text, ElementType::F32), Ok(1f32.to_le_bytes().to_vec()), "{text}");
        }
        assert_eq!(constant("-inf", ElementType::F64), Ok(f64::NEG_INFINITY.to_le_bytes().to_vec()));
        assert!(constant("nan", ElementType::F32).is_ok());
        assert!(constant("one", ElementType::F32).is_err());
    }

    #[test]
    fn half_precision_rounds_to_even() {
        assert_eq!(f16(1.0), 0x3c00);
        assert_eq!(f16(-2.0), 0xc000);
        assert_eq!(f16(65504.0), 0x7bff);
        assert_eq!(f16(65520.0), 0x7c00);
        assert_eq!(f16(2049.0), f16(2048.0));
        assert_eq!(f16(f64::powi(2.0, -24)), 1);
        assert_eq!(f16(f64::powi(2.0, -26)), 0);
        assert_eq!(f16(f64::INFINITY), 0x7c00);
        assert_eq!(narrow(1.0, 8, 7), 0x3f80);
        for bits in (0..0x7c00).chain(0x8000..0xfc00) {
            assert_eq!(f16(widen(bits, 5, 10)), bits);
        }
    }

    #[test]
    fn generators_are_fixed() {
        assert_eq!(iota(ElementType::U16, 3), [0, 0, 1, 0, 2, 0]);
        // The first output of SplitMix64 for seed 0 is 0xE220A8397B1DCDAF.
        assert_eq!(random(ElementType::U64, 1, 0), 0xE220_A839_7B1D_CDAFu64.to_le_bytes());
        let floats = random(ElementType::F32, 100, 7);
        assert!(floats.chunks(4).all(|b| (0.0..1.0).contains(&f32::from_le_bytes(b.try_into().unwrap()))));
    }
}
