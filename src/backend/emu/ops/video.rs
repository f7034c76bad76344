//! Video instructions: arithmetic on bytes and halves of words with a second operation or a merge, and the same on two
//! or four parts at once.
//!
//! No GPU of today has the scalar ones: the driver's compiler makes code of them, which is not what the pseudo-code of the PTX ISA
//! says, and the results here are those of that code, as an H200 gave them:
//!
//! - `vadd`, `vsub` and `vabsdiff` to `.u32` with `.sat` keep the low 32 bits of a sum above them; only below 0 is cut.
//! - Before a second operation `.min` or `.max`, `vadd` and `vsub` wrap to 32 bits; and a wrapped sum with its top bit set is the
//!   `.max` of `.u32`, whatever the other is.
//! - `vshl` with `.sat` takes 34 bits of its result for all of it.
//! - What is merged into `h1` is not moved there: it is bits 16 to 31. A merge with `.sat` cuts the 32 bits of the result as an
//!   unsigned number.
//! - `vmad` takes words for signed where more than the low 32 bits matter; below 0, `.u32` with `.sat` and a shift gives all ones.

use super::super::decode::{Bad, Cx};
use super::super::image::Code;
use super::super::regs::{Dst, Src};
use super::super::types::{Ty, extend, low};
use super::lanewise3;
use crate::ptx::ast::Operand;

type Operation = fn(i64, i64) -> i64;

/// Part of a word.
#[derive(Clone, Copy)]
struct Part {
    shift: u32,
    width: u32,
}

const WORD: Part = Part { shift: 0, width: 32 };

impl Part {
    /// By its selector.
    fn named(selector: &str) -> Option<Self> {
        Some(match selector {
            "b0" => Self { shift: 0, width: 8 },
            "b1" => Self { shift: 8, width: 8 },
            "b2" => Self { shift: 16, width: 8 },
            "b3" => Self { shift: 24, width: 8 },
            "h0" => Self { shift: 0, width: 16 },
            "h1" => Self { shift: 16, width: 16 },
            _ => return None,
        })
    }

    fn take(self, word: u64, signed: bool) -> i64 {
        let part = low(word >> self.shift, self.width);
        if signed { extend(part, self.width).cast_signed() } else { part.cast_signed() }
    }

    /// `word` with this part replaced by what a merge brings.
    fn merge(self, word: u64, value: u64) -> u64 {
        let moved = if self.shift == 16 && self.width == 16 { value } else { value << self.shift };
        let mask = low(u64::MAX, self.width) << self.shift;
        low(word & !mask | moved & mask, 32)
    }

    /// The largest number that it holds.
    fn most(self, signed: bool) -> i64 {
        (1i64 << (self.width - u32::from(signed))) - 1
    }

    /// `word` with this part replaced.
    fn put(self, word: u64, value: i64) -> u64 {
        let mask = low(u64::MAX, self.width) << self.shift;
        low(word & !mask | value.cast_unsigned() << self.shift & mask, 32)
    }

    /// The nearest value that this part can hold.
    fn clamp(self, value: i64, signed: bool) -> i64 {
        let most = self.most(signed);
        value.clamp(if signed { -most - 1 } else { 0 }, most)
    }
}

fn signed(ty: Ty) -> Option<bool> {
    match ty {
        Ty::S(32) => Some(true),
        Ty::U(32) => Some(false),
        _ => None,
    }
}

/// A register with what follows its last dot, if that is a selector.
fn selected<'a>(operand: &Operand<'a>) -> Option<(Operand<'a>, &'a str)> {
    let Operand::Name(name, at) = operand else { return None };
    let (base, selector) = name.rsplit_once('.')?;
    let selects = selector.starts_with(['b', 'h']) && selector.len() > 1;
    selects.then_some((Operand::Name(base, *at), selector))
}

/// A source and the part of it that is meant.
fn source(cx: &Cx<'_, '_>, index: usize) -> Result<(Src, Part), Bad> {
    match selected(cx.operand(index)?) {
        Some((base, selector)) => match Part::named(selector) {
            Some(part) => Ok((cx.value(&base, Ty::U(32))?, part)),
            None => cx.refuse(),
        },
        None => Ok((cx.src(index, Ty::U(32))?, WORD)),
    }
}

/// What is done with a result and the third operand.
#[derive(Clone, Copy)]
enum Second {
    Nothing,
    Add,
    Min,
    Max,
    Merge(Part),
}

/// Destination, part to clamp to, and what follows.
fn destination(cx: &Cx<'_, '_>, second: Option<&str>) -> Result<(Dst, Part, Second), Bad> {
    if let Some((base, selector)) = selected(cx.operand(0)?) {
        return match Part::named(selector) {
            Some(part) if cx.len() == 4 && second.is_none() => {
                Ok((cx.destination(&base)?, part, Second::Merge(part)))
            }
            _ => cx.refuse(),
        };
    }
    let second = match second {
        Some("add") => Second::Add,
        Some("min") => Second::Min,
        Some("max") => Second::Max,
        _ => Second::Nothing,
    };
    Ok((cx.dst(0)?, WORD, second))
}

/// How the first operation makes 32 bits of its result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `vadd`, `vsub`
    Sum,
    /// `vabsdiff`
    Difference,
    /// All others.
    Plain,
}

impl Second {
    fn apply(self, value: i64, c: u64, signed: bool, way: Way) -> u64 {
        let third = WORD.take(c, signed);
        let wrapped = if way == Way::Sum { WORD.take(value.cast_unsigned(), signed) } else { value };
        let result = match self {
            Self::Nothing => value,
            Self::Add => value.wrapping_add(third),
            Self::Min => wrapped.min(third),
            Self::Max if way == Way::Sum && !signed && wrapped >> 31 != 0 => wrapped,
            Self::Max => wrapped.max(third),
            Self::Merge(part) => return part.merge(c, low(value.cast_unsigned(), 32)),
        };
        low(result.cast_unsigned(), 32)
    }
}

fn scalar(
    cx: &Cx<'_, '_>,
    way: Way,
    f: impl Fn(i64, i64) -> i64 + Send + Sync + 'static,
) -> Result<Code, Bad> {
    let types = (signed(cx.ty_at(0)?), signed(cx.ty_at(1)?), signed(cx.ty_at(2)?));
    let (Some(to), Some(of_a), Some(of_b)) = types else { return cx.refuse() };
    let (d, whole, second) = destination(cx, cx.one_of(&["add", "min", "max"]))?;
    let ((a, pick_a), (b, pick_b)) = (source(cx, 1)?, source(cx, 2)?);
    let (c, sat) = (cx.src_or(3, Ty::U(32), 0)?, cx.has("sat"));
    let cut = move |value: i64| match second {
        _ if !sat => value,
        Second::Merge(part) => WORD.take(value.cast_unsigned(), false).min(part.most(to)),
        _ if way != Way::Plain && !to => value.max(0),
        _ => whole.clamp(value, to),
    };
    Ok(lanewise3(d, a, b, c, move |a, b, c| {
        let value = f(pick_a.take(a, of_a), pick_b.take(b, of_b));
        second.apply(cut(value), c, to, way)
    }))
}

/// `vadd`
pub(super) fn add(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    scalar(cx, Way::Sum, |a, b| a + b)
}

/// `vsub`
pub(super) fn sub(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    scalar(cx, Way::Sum, |a, b| a - b)
}

/// `vabsdiff`
pub(super) fn absdiff(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    scalar(cx, Way::Difference, |a, b| (a - b).abs())
}

/// `vmin`
pub(super) fn min(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    scalar(cx, Way::Plain, |a, b| a.min(b))
}

/// `vmax`
pub(super) fn max(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    scalar(cx, Way::Plain, |a, b| a.max(b))
}

/// A shift count as the mode has it.
fn count(b: i64, wrap: bool) -> u32 {
    (if wrap { b & 31 } else { b.clamp(0, 32) }) as u32
}

/// `vshl`
pub(super) fn shl(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let wrap = cx.has("wrap");
    scalar(cx, Way::Plain, move |a, b| extend((a << count(b, wrap)).cast_unsigned(), 34).cast_signed())
}

/// `vshr`
pub(super) fn shr(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let wrap = cx.has("wrap");
    scalar(cx, Way::Plain, move |a, b| a >> count(b, wrap))
}

/// The comparison that the modifiers name.
fn comparison(cx: &Cx<'_, '_>) -> Option<Operation> {
    Some(match cx.one_of(&["eq", "ne", "lt", "le", "gt", "ge"])? {
        "eq" => |a, b| i64::from(a == b),
        "ne" => |a, b| i64::from(a != b),
        "lt" => |a, b| i64::from(a < b),
        "le" => |a, b| i64::from(a <= b),
        "gt" => |a, b| i64::from(a > b),
        _ => |a, b| i64::from(a >= b),
    })
}

/// `vset`, whose result is unsigned
pub(super) fn set(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let types = (signed(cx.ty_at(0)?), signed(cx.ty_at(1)?), comparison(cx));
    let (Some(of_a), Some(of_b), Some(compare)) = types else { return cx.refuse() };
    let (d, _, second) = destination(cx, cx.one_of(&["add", "min", "max"]))?;
    let ((a, pick_a), (b, pick_b)) = (source(cx, 1)?, source(cx, 2)?);
    let c = cx.src_or(3, Ty::U(32), 0)?;
    Ok(lanewise3(d, a, b, c, move |a, b, c| {
        second.apply(compare(pick_a.take(a, of_a), pick_b.take(b, of_b)), c, false, Way::Plain)
    }))
}

/// A source that may be negated.
fn negatable(cx: &Cx<'_, '_>, index: usize) -> Result<(Src, Part, bool), Bad> {
    let Operand::Negated(inner, _) = cx.operand(index)? else {
        let (source, part) = source(cx, index)?;
        return Ok((source, part, false));
    };
    match selected(inner) {
        Some((base, selector)) => match Part::named(selector) {
            Some(part) => Ok((cx.value(&base, Ty::U(32))?, part, true)),
            None => cx.refuse(),
        },
        None => Ok((cx.value(inner, Ty::U(32))?, WORD, true)),
    }
}

/// `vmad`: the final result is signed if a factor is or something is negated.
pub(super) fn mad(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let types = (signed(cx.ty_at(1)?), signed(cx.ty_at(2)?));
    let (Some(of_a), Some(of_b)) = types else { return cx.refuse() };
    let d = cx.dst(0)?;
    let ((a, pick_a, minus_a), (b, pick_b, minus_b)) = (negatable(cx, 1)?, negatable(cx, 2)?);
    let (c, _, minus_c) = negatable(cx, 3)?;
    let minus = minus_a != minus_b;
    let is_signed = of_a || of_b || minus || minus_c;
    let (sat, one) = (cx.has("sat"), i128::from(cx.has("po")));
    let shift = match cx.one_of(&["shr7", "shr15"]) {
        Some("shr7") => 7,
        Some(_) => 15,
        None => 0,
    };
    Ok(lanewise3(d, a, b, c, move |a, b, c| {
        let factor = |part: Part, word, signed| i128::from(part.take(word, signed || part.width == 32));
        let product = factor(pick_a, a, of_a) * factor(pick_b, b, of_b);
        let third = i128::from(WORD.take(c, true));
        let sum = (if minus { -product } else { product }) + (if minus_c { -third } else { third }) + one;
        let result = sum >> shift;
        let result = match (sat, is_signed) {
            (false, _) => result,
            (true, true) => result.clamp(i128::from(i32::MIN), i128::from(i32::MAX)),
            (true, false) if shift != 0 && result < 0 => u32::MAX.into(),
            (true, false) => result.clamp(0, i128::from(u32::MAX)),
        };
        low(result as u64, 32)
    }))
}

/// Which parts of both sources an operation on parts takes, the lowest first.
fn selection(selector: &str, count: u32) -> Option<[u32; 4]> {
    let digits = selector.get(1..)?;
    if digits.len() != count as usize {
        return None;
    }
    let mut parts = [0; 4];
    for (slot, digit) in parts.iter_mut().zip(digits.chars().rev()) {
        *slot = digit.to_digit(2 * count)?;
    }
    Some(parts)
}

/// The sources of an operation on parts.
fn part_source(cx: &Cx<'_, '_>, index: usize, count: u32, first: u32) -> Result<(Src, [u32; 4]), Bad> {
    match selected(cx.operand(index)?) {
        Some((base, selector)) => match selection(selector, count) {
            Some(parts) => Ok((cx.value(&base, Ty::U(32))?, parts)),
            None => cx.refuse(),
        },
        None => Ok((cx.src(index, Ty::U(32))?, std::array::from_fn(|at| first + at as u32))),
    }
}

/// An operation on two or four parts. `types` are those of the result, if it has one, and the sources.
fn parts(
    cx: &Cx<'_, '_>,
    count: u32,
    types: (bool, Ty, Ty),
    f: impl Fn(i64, i64) -> i64 + Send + Sync + 'static,
) -> Result<Code, Bad> {
    let (to, of_a, of_b) = types;
    let (Some(of_a), Some(of_b)) = (signed(of_a), signed(of_b)) else { return cx.refuse() };
    let ((a, from_a), (b, from_b)) = (part_source(cx, 1, count, 0)?, part_source(cx, 2, count, count)?);
    let c = cx.src(3, Ty::U(32))?;
    let (d, mask) = match selected(cx.operand(0)?) {
        Some((base, selector)) => {
            let bit = |digit: char| digit.to_digit(count).map(|at| 1u32 << at);
            let bits: Option<Vec<u32>> = selector.chars().skip(1).map(bit).collect();
            let Some(bits) = bits else { return cx.refuse() };
            (cx.destination(&base)?, bits.iter().fold(0, |mask, bit| mask | bit))
        }
        None => (cx.dst(0)?, u32::MAX),
    };
    let (sat, add, width) = (cx.has("sat"), cx.has("add"), 32 / count);
    Ok(lanewise3(d, a, b, c, move |a, b, c| {
        let both = low(b, 32) << 32 | low(a, 32);
        let whole = |at: u32| Part { shift: at * width, width };
        (0..count).filter(|at| mask >> at & 1 != 0).fold(low(c, 32), |word, at| {
            let of = |parts: [u32; 4], signed: bool| {
                whole(parts.get(at as usize).copied().unwrap_or(0)).take(both, signed)
            };
            let value = f(of(from_a, of_a), of(from_b, of_b));
            let value = if sat { whole(at).clamp(value, to) } else { value };
            if add { low(word.wrapping_add(value.cast_unsigned()), 32) } else { whole(at).put(word, value) }
        })
    }))
}

/// `vadd2`, `vsub4` and so on
fn arithmetic(cx: &Cx<'_, '_>, count: u32, f: Operation) -> Result<Code, Bad> {
    let Some(to) = signed(cx.ty_at(0)?) else { return cx.refuse() };
    parts(cx, count, (to, cx.ty_at(1)?, cx.ty_at(2)?), f)
}

fn compared(cx: &Cx<'_, '_>, count: u32) -> Result<Code, Bad> {
    let Some(compare) = comparison(cx) else { return cx.refuse() };
    parts(cx, count, (false, cx.ty_at(0)?, cx.ty_at(1)?), compare)
}

/// The average, with halves away from zero.
fn average(a: i64, b: i64) -> i64 {
    let sum = a + b;
    if sum >= 0 { (sum + 1) >> 1 } else { sum >> 1 }
}

macro_rules! on_parts {
    ($($two:ident, $four:ident => $f:expr;)*) => {$(
        #[doc = "On two parts."]
        pub(super) fn $two(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
            arithmetic(cx, 2, $f)
        }
        #[doc = "On four parts."]
        pub(super) fn $four(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
            arithmetic(cx, 4, $f)
        }
    )*};
}

on_parts! {
    add2, add4 => |a, b| a + b;
    sub2, sub4 => |a, b| a - b;
    avrg2, avrg4 => average;
    absdiff2, absdiff4 => |a, b| (a - b).abs();
    min2, min4 => |a, b| a.min(b);
    max2, max4 => |a, b| a.max(b);
}

/// `vset2`
pub(super) fn set2(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    compared(cx, 2)
}

/// `vset4`
pub(super) fn set4(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    compared(cx, 4)
}
