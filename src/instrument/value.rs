//! Operands as bits: what a store writes, what a load has read.

use smallvec::SmallVec;

use super::code::{Code, Hex, Piece, Temp, line};
use super::error::{InstrumentError, Result};
use super::symbols::{Symbol, Symbols};
use crate::ptx::ast::Operand;
use crate::span::Span;

/// Where the bits of one element come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source<'a> {
    /// A register with its width in bits.
    Register(Name<'a>, u32),
    /// A constant.
    Bits(u128),
    /// A variable's address or another name that `mov` takes.
    Name(Name<'a>),
    /// `_`
    Sink,
}

/// A name that code uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Name<'a> {
    /// One of its own.
    Temp(Temp),
    /// One of the module.
    Given(&'a str),
    /// `v.x`
    Member(&'a str, &'static str),
    /// `tab+4`
    Offset(&'a str, i64),
}

impl From<Temp> for Name<'_> {
    fn from(temp: Temp) -> Self {
        Self::Temp(temp)
    }
}

impl Piece for Name<'_> {
    fn put(&self, out: &mut String) {
        match self {
            Self::Temp(temp) => temp.put(out),
            Self::Given(name) => out.push_str(name),
            Self::Member(name, member) => {
                out.push_str(name);
                out.push('.');
                out.push_str(member);
            }
            Self::Offset(name, offset) => {
                out.push_str(name);
                out.push('+');
                offset.put(out);
            }
        }
    }
}

/// The type of an element, as the instruction gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type<'a> {
    /// Its name without dot.
    pub(super) name: &'a str,
    /// Its bits.
    pub(super) bits: u32,
}

/// The elements of an operand: of a vector, of a vector register, or the one.
pub(super) fn elements<'a>(
    symbols: &Symbols<'_>,
    operand: &Operand<'a>,
    ty: Type<'_>,
) -> Result<Vec<Source<'a>>> {
    match operand {
        Operand::Vector(items) => items.iter().map(|item| source(symbols, item, ty)).collect(),
        Operand::Name(name, _) => match symbols.get(name) {
            Some(symbol @ Symbol::Register { vector, .. }) if vector > 1 => {
                let bits = symbol.bits().ok_or_else(|| not_loggable(operand.span()))?;
                let members = ["x", "y", "z", "w"].iter().take(vector as usize);
                Ok(members.map(|m| Source::Register(Name::Member(name, m), bits)).collect())
            }
            _ => Ok(vec![source(symbols, operand, ty)?]),
        },
        _ => Ok(vec![source(symbols, operand, ty)?]),
    }
}

fn not_loggable(at: Span) -> InstrumentError {
    InstrumentError::Operand { what: "this operand has no value in memory".into(), at }
}

/// One operand as a source.
pub(super) fn source<'a>(symbols: &Symbols<'_>, operand: &Operand<'a>, ty: Type<'_>) -> Result<Source<'a>> {
    let mask = if ty.bits >= 128 { u128::MAX } else { (1 << ty.bits) - 1 };
    Ok(match operand {
        Operand::Name(name, _) if *name == "_" => Source::Sink,
        Operand::Name(name, _) if *name == "WARP_SZ" => Source::Bits(32),
        Operand::Name(name, _) => match symbols.get(name) {
            Some(symbol @ Symbol::Register { .. }) => match symbol.bits() {
                Some(bits) => Source::Register(Name::Given(name), bits),
                None => return Err(not_loggable(operand.span())),
            },
            _ => Source::Name(Name::Given(name)),
        },
        Operand::Offset(offset, _) => Source::Name(Name::Offset(offset.0.text, offset.1)),
        Operand::Int(value, _) => Source::Bits(value.get().cast_unsigned() & mask),
        Operand::F32(bits, _) if ty.name == "f64" => {
            Source::Bits(f64::from(f32::from_bits(*bits)).to_bits().into())
        }
        Operand::F32(bits, _) => Source::Bits(u128::from(*bits) & mask),
        Operand::F64(bits, _) if ty.bits == 32 => {
            Source::Bits((f64::from_bits(*bits) as f32).to_bits().into())
        }
        Operand::F64(bits, _) => Source::Bits(u128::from(*bits) & mask),
        other => return Err(not_loggable(other.span())),
    })
}

/// The `.bN` type of a width.
pub(super) fn bit_type(bits: u32) -> &'static str {
    match bits {
        16 => "b16",
        32 => "b32",
        128 => "b128",
        _ => "b64",
    }
}

/// A temporary of `.b<bits>` (16, 32, 64 or 128) with the source's low bits.
pub(super) fn raw(code: &mut Code, source: Source<'_>, bits: u32, at: Span) -> Result<Temp> {
    let ty = bit_type(bits);
    let temp = code.temp(ty);
    match source {
        Source::Register(name, width) if width == bits => line!(code, "mov.", ty, " ", temp, ", ", name),
        Source::Register(name, width @ (16 | 32 | 64)) if bits < 128 => {
            // Operands may be wider than the type.
            let whole = code.temp(bit_type(width));
            line!(code, "mov.", bit_type(width), " ", whole, ", ", name);
            line!(code, "cvt.u", bits, ".u", width, " ", temp, ", ", whole);
        }
        Source::Bits(value) if bits == 128 => {
            let (low, high) = (code.temp("b64"), code.temp("b64"));
            line!(code, "mov.b64 ", low, ", ", Hex(value as u64));
            line!(code, "mov.b64 ", high, ", ", Hex((value >> 64) as u64));
            line!(code, "mov.b128 ", temp, ", {", low, ", ", high, "}");
        }
        Source::Bits(value) => line!(code, "mov.", ty, " ", temp, ", ", Hex(value as u64)),
        Source::Name(name) if bits <= 64 => line!(code, "mov.", ty, " ", temp, ", ", name),
        _ => return Err(not_loggable(at)),
    }
    Ok(temp)
}

/// A `.b64` temporary with the source's low `bits` (8 to 64), zero-extended.
pub(super) fn wide(code: &mut Code, source: Source<'_>, bits: u32, at: Span) -> Result<Temp> {
    let temp = code.temp("b64");
    match source {
        Source::Register(name, width) => {
            match width {
                8 => line!(code, "cvt.u64.u8 ", temp, ", ", name),
                16 | 32 => {
                    let whole = code.temp(bit_type(width));
                    line!(code, "mov.b", width, " ", whole, ", ", name);
                    line!(code, "cvt.u64.u", width, " ", temp, ", ", whole);
                }
                64 => line!(code, "mov.b64 ", temp, ", ", name),
                _ => return Err(not_loggable(at)),
            }
            if bits < width {
                line!(code, "and.b64 ", temp, ", ", temp, ", ", Hex((1u64 << bits) - 1));
            }
        }
        Source::Bits(value) => line!(code, "mov.b64 ", temp, ", ", Hex(value as u64)),
        Source::Name(name) if bits == 64 => line!(code, "mov.u64 ", temp, ", ", name),
        Source::Name(name) if bits == 32 => {
            let whole = code.temp("b32");
            line!(code, "mov.u32 ", whole, ", ", name);
            line!(code, "cvt.u64.u32 ", temp, ", ", whole);
        }
        Source::Name(_) | Source::Sink => return Err(not_loggable(at)),
    }
    Ok(temp)
}

/// The value that stands for the elements in a record: packed into 64-bit words, further words mixed in, as
/// `abi::packed_value` does.
pub(super) fn packed(code: &mut Code, elements: &[Source<'_>], bits: u32, at: Span) -> Result<Temp> {
    let mut words = SmallVec::<[_; 4]>::new();
    if bits == 128 {
        for element in elements {
            let whole = raw(code, *element, 128, at)?;
            let (low, high) = (code.temp("b64"), code.temp("b64"));
            line!(code, "mov.b128 {", low, ", ", high, "}, ", whole);
            words.extend([low, high]);
        }
    } else {
        for chunk in elements.chunks((64 / bits.max(1)).max(1) as usize) {
            words.push(packed_word(code, chunk, bits, at)?);
        }
    }
    mixed(code, &words, at)
}

fn packed_word(code: &mut Code, elements: &[Source<'_>], bits: u32, at: Span) -> Result<Temp> {
    let mut word = None;
    for (index, element) in elements.iter().enumerate() {
        let value = wide(code, *element, bits, at)?;
        let Some(so_far) = word else {
            word = Some(value);
            continue;
        };
        line!(code, "shl.b64 ", value, ", ", value, ", ", index as u32 * bits);
        line!(code, "or.b64 ", so_far, ", ", so_far, ", ", value);
    }
    word.ok_or_else(|| not_loggable(at))
}

/// `abi::mix_value` over words.
fn mixed(code: &mut Code, words: &[Temp], at: Span) -> Result<Temp> {
    let mut words = words.iter().copied();
    let value = words.next().ok_or_else(|| not_loggable(at))?;
    for word in words {
        let shifted = code.temp("b64");
        line!(code, "shr.u64 ", shifted, ", ", value, ", 29");
        line!(code, "mul.lo.u64 ", value, ", ", value, ", 0x9E3779B97F4A7C15");
        line!(code, "xor.b64 ", value, ", ", value, ", ", shifted);
        line!(code, "add.u64 ", value, ", ", value, ", ", word);
    }
    Ok(value)
}
