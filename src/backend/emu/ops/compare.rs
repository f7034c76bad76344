//! Comparisons and selections.

use std::cmp::Ordering;

use super::super::decode::{Bad, Cx};
use super::super::image::Code;
use super::super::regs::{PredDst, PredSrc, Regs, Src, Word, bits};
use super::super::types::{Ty, low};
use super::float::flush;
use super::half::format_of;
use super::{compute, with_int};
use crate::ptx::ast::Operand;

/// What a comparison accepts.
#[derive(Clone, Copy)]
struct Accepts {
    less: bool,
    equal: bool,
    greater: bool,
    unordered: bool,
}

fn accepts(name: &str, float: bool) -> Option<Accepts> {
    let (name, unordered) = match name.strip_suffix('u') {
        Some(base) if float && !matches!(name, "u") => (base, true),
        _ => (name, false),
    };
    let (less, equal, greater) = match name {
        "eq" => (false, true, false),
        "ne" => (true, false, true),
        "lt" | "lo" => (true, false, false),
        "le" | "ls" => (true, true, false),
        "gt" | "hi" => (false, false, true),
        "ge" | "hs" => (false, true, true),
        "num" => (true, true, true),
        "nan" => return Some(Accepts { less: false, equal: false, greater: false, unordered: true }),
        _ => return None,
    };
    Some(Accepts { less, equal, greater, unordered })
}

impl Accepts {
    #[inline(always)]
    fn holds(self, ordering: Option<Ordering>) -> bool {
        match ordering {
            Some(Ordering::Less) => self.less,
            Some(Ordering::Equal) => self.equal,
            Some(Ordering::Greater) => self.greater,
            None => self.unordered,
        }
    }
}

/// Compares two rows: one bit per lane.
type Compare = Box<dyn Fn(&Regs<'_>) -> u32 + Send + Sync>;

fn ordered<T: Word + PartialOrd>(a: Src, b: Src, how: Accepts) -> Compare {
    fn test<T: Word>(a: Src, b: Src, f: impl Fn(T, T) -> bool + Send + Sync + 'static) -> Compare {
        Box::new(move |regs| {
            let (a, b) = (regs.get(a), regs.get(b));
            bits(|lane| f(T::of(a[lane]), T::of(b[lane])))
        })
    }
    match (how.less, how.equal, how.greater, how.unordered) {
        (false, true, false, false) => test(a, b, |a: T, b: T| a == b),
        (true, false, false, false) => test(a, b, |a: T, b: T| a < b),
        (true, true, false, false) => test(a, b, |a: T, b: T| a <= b),
        (false, false, true, false) => test(a, b, |a: T, b: T| a > b),
        (false, true, true, false) => test(a, b, |a: T, b: T| a >= b),
        _ => test(a, b, move |a: T, b: T| how.holds(a.partial_cmp(&b))),
    }
}

/// The comparison of operands `at` and `at + 1`.
fn comparison(cx: &Cx<'_, '_>, at: usize, ty: Ty) -> Result<Compare, Bad> {
    const NAMES: [&str; 18] = [
        "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu",
        "num", "nan",
    ];
    let how = cx.one_of(&NAMES).and_then(|name| accepts(name, !ty.is_int()));
    let Some(how) = how else { return cx.refuse() };
    let (a, b) = (cx.src(at, ty)?, cx.src(at + 1, ty)?);
    fn by<T: PartialOrd>(
        a: Src,
        b: Src,
        how: Accepts,
        value: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Compare {
        Box::new(move |regs| {
            let (a, b) = (regs.get(a), regs.get(b));
            bits(|lane| how.holds(value(a[lane]).partial_cmp(&value(b[lane]))))
        })
    }
    match ty {
        Ty::F32 if cx.has("ftz") => Ok(by(a, b, how, |v| flush(f32::from_bits(v as u32)))),
        Ty::F32 => Ok(ordered::<f32>(a, b, how)),
        Ty::F64 => Ok(ordered::<f64>(a, b, how)),
        Ty::F16 | Ty::Bf16 => {
            let read = format_of(cx, ty)?.read;
            Ok(by(a, b, how, move |v| read(v as u16)))
        }
        _ => compare_int(cx, ty, a, b, how),
    }
}

fn compare_int(cx: &Cx<'_, '_>, ty: Ty, a: Src, b: Src, how: Accepts) -> Result<Compare, Bad> {
    with_int!(cx, ty, T => Ok(ordered::<T>(a, b, how)))
}

/// `and`, `or`, `xor` with a further predicate.
#[derive(Clone, Copy)]
enum Combine {
    None,
    And(PredSrc),
    Or(PredSrc),
    Xor(PredSrc),
}

impl Combine {
    fn read(cx: &Cx<'_, '_>, at: usize) -> Result<Self, Bad> {
        Ok(match cx.one_of(&["and", "or", "xor"]) {
            Some("and") => Self::And(cx.pred_src(cx.operand(at)?)?),
            Some("or") => Self::Or(cx.pred_src(cx.operand(at)?)?),
            Some("xor") => Self::Xor(cx.pred_src(cx.operand(at)?)?),
            _ => Self::None,
        })
    }

    fn apply(self, regs: &Regs<'_>, bits: u32) -> u32 {
        match self {
            Self::None => bits,
            Self::And(p) => bits & regs.pred(p),
            Self::Or(p) => bits | regs.pred(p),
            Self::Xor(p) => bits ^ regs.pred(p),
        }
    }
}

/// `setp`
pub(super) fn setp(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (p, q) = match cx.operand(0)? {
        Operand::Pair(both, _) => (cx.pred_dst(&both[0])?, cx.pred_dst(&both[1])?),
        p => (cx.pred_dst(p)?, PredDst(None)),
    };
    if matches!(ty, Ty::F16x2 | Ty::Bf16x2) {
        return setp_packed(cx, ty, p, q);
    }
    let compare = comparison(cx, 1, ty)?;
    let combine = Combine::read(cx, 3)?;
    Ok(compute(move |regs, mask| {
        let bits = compare(regs);
        let (yes, no) = (combine.apply(regs, bits), combine.apply(regs, !bits));
        regs.set_pred(p, mask, yes);
        regs.set_pred(q, mask, no);
    }))
}

/// The comparison of two halves of words: one bit per lane for each.
fn halves(cx: &Cx<'_, '_>, ty: Ty) -> Result<impl Fn(&Regs<'_>) -> [u32; 2] + Send + Sync + use<>, Bad> {
    let how = cx.instruction.modifiers().first().and_then(|word| accepts(word.text, true));
    let Some(how) = how else { return cx.refuse() };
    let (a, b) = (cx.src(1, ty)?, cx.src(2, ty)?);
    let combine = Combine::read(cx, 3)?;
    let read = format_of(cx, ty)?.read;
    Ok(move |regs: &Regs<'_>| {
        let (a, b) = (regs.get(a), regs.get(b));
        [0u32, 16].map(|shift| {
            let value = |word: u64| read((word >> shift) as u16);
            let holds = |lane: usize| how.holds(value(a[lane]).partial_cmp(&value(b[lane])));
            combine.apply(regs, bits(holds))
        })
    })
}

/// Packed halves give a predicate each.
fn setp_packed(cx: &Cx<'_, '_>, ty: Ty, p: PredDst, q: PredDst) -> Result<Code, Bad> {
    let halves = halves(cx, ty)?;
    Ok(compute(move |regs, mask| {
        let [low, high] = halves(regs);
        regs.set_pred(p, mask, low);
        regs.set_pred(q, mask, high);
    }))
}

/// Packed halves give a half each, for integer results too.
fn set_packed(cx: &Cx<'_, '_>, result: Ty, ty: Ty) -> Result<Code, Bad> {
    let one = match result {
        Ty::F16x2 => 0x3c00,
        Ty::Bf16x2 => 0x3f80,
        Ty::U(32) | Ty::S(32) => 0xffff,
        _ => return cx.refuse(),
    };
    let (d, halves) = (cx.dst(0)?, halves(cx, ty)?);
    Ok(compute(move |regs, mask| {
        let bits = halves(regs);
        regs.set(d, mask, |lane| {
            let [low, high] = bits.map(|half| if half >> lane & 1 != 0 { one } else { 0 });
            low | high << 16
        });
    }))
}

/// `set`: all ones, or 1.0 for a float result
pub(super) fn set(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let (result, ty) = (cx.ty_at(0)?, cx.ty_at(1)?);
    if matches!(ty, Ty::F16x2 | Ty::Bf16x2) {
        return set_packed(cx, result, ty);
    }
    let d = cx.dst(0)?;
    let one = match result {
        Ty::F32 => u64::from(1f32.to_bits()),
        Ty::U(32) | Ty::S(32) | Ty::B(32) => 0xffff_ffff,
        Ty::F16 => 0x3c00,
        Ty::Bf16 => 0x3f80,
        Ty::U(16) | Ty::S(16) => 0xffff,
        _ => return cx.refuse(),
    };
    let compare = comparison(cx, 1, ty)?;
    let combine = Combine::read(cx, 3)?;
    Ok(compute(move |regs, mask| {
        let bits = compare(regs);
        let bits = combine.apply(regs, bits);
        regs.set(d, mask, |lane| if bits >> lane & 1 != 0 { one } else { 0 });
    }))
}

/// `selp`
pub(super) fn selp(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, a, b, p) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?, cx.pred_src(cx.operand(3)?)?);
    let width = ty.bits();
    Ok(compute(move |regs, mask| {
        let (a, b, p) = (regs.get(a), regs.get(b), regs.pred(p));
        regs.set(d, mask, |lane| low(if p >> lane & 1 != 0 { a[lane] } else { b[lane] }, width));
    }))
}

/// `slct`: by the sign of the third operand
pub(super) fn slct(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let (ty, by) = (cx.ty_at(0)?, cx.ty_at(1)?);
    let (d, a, b, c) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?, cx.src(3, by)?);
    let (width, float) = (ty.bits(), by == Ty::F32);
    let ftz = cx.has("ftz");
    Ok(compute(move |regs, mask| {
        let (a, b, c) = (regs.get(a), regs.get(b), regs.get(c));
        regs.set(d, mask, |lane| {
            let first = if float {
                let value = f32::from_bits(c[lane] as u32);
                (if ftz { flush(value) } else { value }) >= 0.0
            } else {
                (c[lane] as u32).cast_signed() >= 0
            };
            low(if first { a[lane] } else { b[lane] }, width)
        });
    }))
}
