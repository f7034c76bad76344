//! Operands as bits: what a store writes, what a load has read.

use super::code::Code;
use super::error::{InstrumentError, Result};
use super::symbols::{Symbol, Symbols};
use crate::ptx::ast::Operand;
use crate::span::Span;

/// Where the bits of one element come from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// A register with its width in bits.
    Register(String, u32),
    /// A constant.
    Bits(u128),
    /// A variable's address or another name that `mov` takes.
    Name(String),
    /// `_`
    Sink,
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
pub(super) fn elements(symbols: &Symbols<'_>, operand: &Operand<'_>, ty: Type<'_>) -> Result<Vec<Source>> {
    match operand {
        Operand::Vector(items, _) => items.iter().map(|item| source(symbols, item, ty)).collect(),
        Operand::Name(word) => match symbols.get(word.text) {
            Some(symbol @ Symbol::Register { vector, .. }) if vector > 1 => {
                let bits = symbol.bits().ok_or_else(|| not_loggable(operand.span()))?;
                let members = ["x", "y", "z", "w"].iter().take(vector as usize);
                Ok(members.map(|m| Source::Register(format!("{}.{m}", word.text), bits)).collect())
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
pub(super) fn source(symbols: &Symbols<'_>, operand: &Operand<'_>, ty: Type<'_>) -> Result<Source> {
    let mask = if ty.bits >= 128 { u128::MAX } else { (1 << ty.bits) - 1 };
    Ok(match operand {
        Operand::Name(word) if word.text == "_" => Source::Sink,
        Operand::Name(word) if word.text == "WARP_SZ" => Source::Bits(32),
        Operand::Name(word) => match symbols.get(word.text) {
            Some(symbol @ Symbol::Register { .. }) => match symbol.bits() {
                Some(bits) => Source::Register(word.text.into(), bits),
                None => return Err(not_loggable(word.span)),
            },
            _ => Source::Name(word.text.into()),
        },
        Operand::Offset(word, offset, _) => Source::Name(format!("{}+{offset}", word.text)),
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
pub(super) fn raw(code: &mut Code, source: &Source, bits: u32, at: Span) -> Result<String> {
    let ty = bit_type(bits);
    let temp = code.temp(ty);
    match source {
        Source::Register(name, width) if *width == bits => code.line(format_args!("mov.{ty} {temp}, {name}")),
        Source::Register(name, width @ (16 | 32 | 64)) if bits < 128 => {
            // Operands may be wider than the type.
            let whole = code.temp(bit_type(*width));
            code.line(format_args!("mov.{} {whole}, {name}", bit_type(*width)));
            code.line(format_args!("cvt.u{bits}.u{width} {temp}, {whole}"));
        }
        Source::Bits(value) if bits == 128 => {
            let (low, high) = (code.temp("b64"), code.temp("b64"));
            code.line(format_args!("mov.b64 {low}, {:#x}", *value as u64));
            code.line(format_args!("mov.b64 {high}, {:#x}", (*value >> 64) as u64));
            code.line(format_args!("mov.b128 {temp}, {{{low}, {high}}}"));
        }
        Source::Bits(value) => code.line(format_args!("mov.{ty} {temp}, {value:#x}")),
        Source::Name(name) if bits <= 64 => code.line(format_args!("mov.{ty} {temp}, {name}")),
        _ => return Err(not_loggable(at)),
    }
    Ok(temp)
}

/// A `.b64` temporary with the source's low `bits` (8 to 64), zero-extended.
pub(super) fn wide(code: &mut Code, source: &Source, bits: u32, at: Span) -> Result<String> {
    let temp = code.temp("b64");
    match source {
        Source::Register(name, width) => {
            match width {
                8 => code.line(format_args!("cvt.u64.u8 {temp}, {name}")),
                16 | 32 => {
                    let whole = code.temp(bit_type(*width));
                    code.line(format_args!("mov.b{width} {whole}, {name}"));
                    code.line(format_args!("cvt.u64.u{width} {temp}, {whole}"));
                }
                64 => code.line(format_args!("mov.b64 {temp}, {name}")),
                _ => return Err(not_loggable(at)),
            }
            if bits < *width {
                code.line(format_args!("and.b64 {temp}, {temp}, {:#x}", (1u64 << bits) - 1));
            }
        }
        Source::Bits(value) => code.line(format_args!("mov.b64 {temp}, {:#x}", *value as u64)),
        Source::Name(name) if bits == 64 => code.line(format_args!("mov.u64 {temp}, {name}")),
        Source::Name(name) if bits == 32 => {
            let whole = code.temp("b32");
            code.line(format_args!("mov.u32 {whole}, {name}"));
            code.line(format_args!("cvt.u64.u32 {temp}, {whole}"));
        }
        Source::Name(_) | Source::Sink => return Err(not_loggable(at)),
    }
    Ok(temp)
}

/// The value that stands for the elements in a record: packed into 64-bit words, further words mixed in, as
/// `abi::packed_value` does.
pub(super) fn packed(code: &mut Code, elements: &[Source], bits: u32, at: Span) -> Result<String> {
    let mut words = Vec::new();
    if bits == 128 {
        for element in elements {
            let whole = raw(code, element, 128, at)?;
            let (low, high) = (code.temp("b64"), code.temp("b64"));
            code.line(format_args!("mov.b128 {{{low}, {high}}}, {whole}"));
            words.extend([low, high]);
        }
    } else {
        for chunk in elements.chunks((64 / bits.max(1)).max(1) as usize) {
            words.push(packed_word(code, chunk, bits, at)?);
        }
    }
    mixed(code, words, at)
}

fn packed_word(code: &mut Code, elements: &[Source], bits: u32, at: Span) -> Result<String> {
    let mut word = None;
    for (index, element) in elements.iter().enumerate() {
        let value = wide(code, element, bits, at)?;
        let Some(so_far) = &word else {
            word = Some(value);
            continue;
        };
        code.line(format_args!("shl.b64 {value}, {value}, {}", index as u32 * bits));
        code.line(format_args!("or.b64 {so_far}, {so_far}, {value}"));
    }
    word.ok_or_else(|| not_loggable(at))
}

/// `abi::mix_value` over words.
fn mixed(code: &mut Code, words: Vec<String>, at: Span) -> Result<String> {
    let mut words = words.into_iter();
    let value = words.next().ok_or_else(|| not_loggable(at))?;
    for word in words {
        let shifted = code.temp("b64");
        code.line(format_args!("shr.u64 {shifted}, {value}, 29"));
        code.line(format_args!("mul.lo.u64 {value}, {value}, 0x9E3779B97F4A7C15"));
        code.line(format_args!("xor.b64 {value}, {value}, {shifted}"));
        code.line(format_args!("add.u64 {value}, {value}, {word}"));
    }
    Ok(value)
}
