//! `cvt` between integers and floats of all widths.

use super::super::decode::{Bad, Cx};
use super::super::image::Code;
use super::super::types::{Ty, extend, low};
use super::float::{Round, clipped, flush, narrow, to_odd};
use super::half::{bf16_from_f64, from_f64, to_f32};
use super::{eight, exact, lanewise1, lanewise2, lanewise3};

/// Reads a value as an exact number.
#[derive(Clone, Copy)]
enum From {
    Signed(u32),
    Unsigned(u32),
    F16,
    Bf16,
    F32,
    F64,
}

fn from(ty: Ty) -> Option<From> {
    Some(match ty {
        Ty::S(bits) => From::Signed(bits),
        Ty::U(bits) | Ty::B(bits) => From::Unsigned(bits),
        Ty::F16 => From::F16,
        Ty::Bf16 => From::Bf16,
        Ty::F32 => From::F32,
        Ty::F64 => From::F64,
        _ => return None,
    })
}

impl From {
    fn is_float(self) -> bool {
        !matches!(self, Self::Signed(_) | Self::Unsigned(_))
    }

    fn float(self, value: u64, ftz: bool) -> f64 {
        match self {
            Self::F16 => f64::from(to_f32(value as u16)),
            Self::Bf16 => f64::from(f32::from_bits((value as u32) << 16)),
            Self::F64 => f64::from_bits(value),
            _ => {
                let value = f32::from_bits(value as u32);
                f64::from(if ftz { flush(value) } else { value })
            }
        }
    }

    fn integer(self, value: u64) -> i128 {
        match self {
            Self::Signed(bits) => i128::from(extend(value, bits).cast_signed()),
            Self::Unsigned(bits) => i128::from(low(value, bits)),
            _ => 0,
        }
    }
}

/// The limits of an integer type.
fn limits(ty: Ty) -> (i128, i128) {
    let bits = ty.bits();
    if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Rounds to an integer by `.rni`, `.rzi`, `.rmi`, `.rpi`.
fn integral(value: f64, round: Round) -> f64 {
    match round {
        Round::Nearest => value.round_ties_even(),
        Round::Zero => value.trunc(),
        Round::Down => value.floor(),
        Round::Up => value.ceil(),
    }
}

fn integral_round(cx: &Cx<'_, '_>) -> Option<Round> {
    Some(match cx.one_of(&["rni", "rzi", "rmi", "rpi"])? {
        "rni" => Round::Nearest,
        "rzi" => Round::Zero,
        "rmi" => Round::Down,
        _ => Round::Up,
    })
}

/// An integer as the 64-bit float whose further rounding is right, and exactly where it fits.
fn integer_to_f64(value: i128, round: Round, narrower: bool) -> f64 {
    if !narrower {
        return exact::integer(value, round);
    }
    let near = value as f64;
    to_odd(near, (value - near as i128) as f64)
}

/// Writes a float in the destination's format.
fn write_float(value: f64, ty: Ty, round: Round, shape: Shape) -> u64 {
    let value = clipped(value, shape.sat, shape.relu);
    match ty {
        Ty::F16 => shape.finite(u64::from(from_f64(value, round)), 0x8000, 0x7c00, 0x7bff),
        Ty::Bf16 => shape.finite(u64::from(bf16_from_f64(value, round)), 0x8000, 0x7f80, 0x7f7f),
        Ty::F64 => value.to_bits(),
        _ => {
            let value = narrow(value, round);
            let value = if shape.ftz { flush(value) } else { value };
            u64::from(super::float::canonical(value).to_bits())
        }
    }
}

/// Rounds to the 10 bits of fraction of `tf32`.
fn to_tf32(bits: u32, round: Round, shape: Shape) -> u64 {
    let value = f32::from_bits(bits);
    if value.is_nan() && !shape.away {
        return 0x7fff_e000;
    }
    // With ties away from zero, what is not finite is cut off, and the next below it counts as finite.
    if !value.is_finite() && shape.away {
        return u64::from((bits & !0x1fff) - if shape.finite { 0x2000 } else { 0 });
    }
    let bits = if shape.relu && value <= 0.0 { 0 } else { bits };
    let up = match round {
        Round::Zero => 0,
        _ if shape.away => 0x1000,
        _ => 0xfff + (bits >> 13 & 1),
    };
    shape.finite(u64::from(bits.wrapping_add(up) & !0x1fff), 0x8000_0000, 0x7f80_0000, 0x7f7f_e000)
}

/// What conversions make of what is no number, but for the NaN of the format: `None` where that is it.
fn nan(bits: u64, from: From, to: Ty, shape: Shape) -> Option<u64> {
    let (sign, fraction) = (bits >> 63, bits & ((1 << 52) - 1));
    Some(match (from, to) {
        _ if shape.sat => return None,
        (From::F64, Ty::F32) => sign << 31 | 0x7fc0_0000 | fraction >> 29,
        (From::F64, Ty::F16) => sign << 15 | 0x7e00 | fraction >> 42,
        (From::F64, Ty::Bf16) => sign << 15 | 0x7fc0 | fraction >> 45,
        (From::F64, Ty::F64) => bits | 1 << 51,
        (From::F32, Ty::F64) if shape.ftz => 0x7fff_ffff_e000_0000,
        (From::Bf16, Ty::F32) => bits << 16,
        _ => return None,
    })
}

#[derive(Clone, Copy)]
struct Shape {
    sat: bool,
    /// `.satfinite`
    finite: bool,
    relu: bool,
    ftz: bool,
    /// `.rna`: ties away from zero.
    away: bool,
}

impl Shape {
    fn of(cx: &Cx<'_, '_>) -> Self {
        Self {
            sat: cx.has("sat"),
            finite: cx.has("satfinite"),
            relu: cx.has("relu"),
            ftz: cx.has("ftz"),
            away: cx.has("rna"),
        }
    }

    /// Replaces infinity by the largest number, if so asked.
    fn finite(self, bits: u64, sign: u64, infinity: u64, most: u64) -> u64 {
        if self.finite && bits & !sign == infinity { bits & sign | most } else { bits }
    }
}

/// `cvt`
pub(super) fn cvt(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    if cx.has("pack") {
        return pack_integers(cx);
    }
    let (to, ty) = (cx.ty_at(0)?, cx.ty_at(1)?);
    if [to, ty].iter().any(|ty| matches!(ty, Ty::E4m3x2 | Ty::E5m2x2)) {
        return eight::cvt(cx);
    }
    let shape = Shape::of(cx);
    let round = Round::of(cx);
    if matches!(to, Ty::F16x2 | Ty::Bf16x2) {
        return pack(cx, to, ty, round, shape);
    }
    let Some(from) = from(ty) else { return cx.refuse() };
    let integral_to = integral_round(cx);
    let (d, a) = (cx.dst(0)?, cx.src(1, ty)?);
    match (from.is_float(), to.is_int()) {
        // Sign or zeros fill a wider register.
        (false, true) if !shape.sat => {
            let (own, bits) = (ty.bits(), to.bits());
            Ok(match (ty.is_signed() && own < bits, to.is_signed()) {
                (true, true) => lanewise1(d, a, move |a| extend(a, own)),
                (true, false) => lanewise1(d, a, move |a| low(extend(a, own), bits)),
                (false, true) if own >= bits => lanewise1(d, a, move |a| extend(a, bits)),
                (false, _) => lanewise1(d, a, move |a| low(a, own.min(bits))),
            })
        }
        (false, true) => {
            let (least, most) = limits(to);
            let signed = to.is_signed();
            let bits = to.bits();
            Ok(lanewise1(d, a, move |a| {
                let value = from.integer(a).clamp(least, most) as u64;
                if signed { extend(value, bits) } else { low(value, bits) }
            }))
        }
        (true, true) => {
            let round = integral_to.unwrap_or(Round::Zero);
            let (least, most) = limits(to);
            let (signed, bits) = (to.is_signed(), to.bits());
            // What is no number becomes 0, or the top bit where 64 bits are on either side, as the hardware has it.
            let top = if ty == Ty::F64 || bits == 64 { 1u64 << (bits - 1) } else { 0 };
            let nan = if signed { extend(top, bits) } else { top };
            Ok(lanewise1(d, a, move |a| {
                let value = from.float(a, shape.ftz);
                if value.is_nan() {
                    return nan;
                }
                let value = (integral(value, round) as i128).clamp(least, most) as u64;
                if signed { extend(value, bits) } else { low(value, bits) }
            }))
        }
        (false, false) => {
            let narrower = to != Ty::F64;
            Ok(lanewise1(d, a, move |a| {
                let value = integer_to_f64(from.integer(a), round, narrower);
                write_float(value, to, round, shape)
            }))
        }
        (true, false) if to == Ty::Tf32 => Ok(lanewise1(d, a, move |a| to_tf32(a as u32, round, shape))),
        (true, false) => Ok(lanewise1(d, a, move |a| {
            // Operands of 16-bit results are not flushed.
            let value = from.float(a, shape.ftz && to != Ty::F16);
            if value.is_nan()
                && let Some(nan) = nan(a, from, to, shape)
            {
                return nan;
            }
            let value = integral_to.map_or(value, |round| integral(value, round).copysign(value));
            write_float(value, to, round, shape)
        })),
    }
}

/// `cvt.rn.f16x2.f32 d, high, low`
fn pack(cx: &Cx<'_, '_>, to: Ty, ty: Ty, round: Round, shape: Shape) -> Result<Code, Bad> {
    if ty != Ty::F32 || cx.len() != 3 {
        return cx.refuse();
    }
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
    let half = if to == Ty::F16x2 { Ty::F16 } else { Ty::Bf16 };
    let part = move |bits: u64| write_float(f64::from(f32::from_bits(bits as u32)), half, round, shape);
    Ok(lanewise2(d, a, b, move |a, b| part(a) << 16 | part(b)))
}

/// `cvt.pack.sat.u8.s32.b32 d, a, b, c`: `a` above `b`, and above both what fits of `c`.
fn pack_integers(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let (signed, width) = match cx.one_of(&["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"]) {
        Some(name) => {
            (name.starts_with('s'), name.get(1..).and_then(|width| width.parse().ok()).unwrap_or(16))
        }
        None => return cx.refuse(),
    };
    let ty = Ty::S(32);
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
    let c = cx.src_or(3, Ty::B(32), 0)?;
    let half: i64 = 1 << (width - 1);
    let (least, most) = if signed { (-half, half - 1) } else { (0, 2 * half - 1) };
    let part = move |bits: u64| low(extend(bits, 32).cast_signed().clamp(least, most).cast_unsigned(), width);
    Ok(lanewise3(d, a, b, c, move |a, b, c| low(c << (2 * width) | part(a) << width | part(b), 32)))
}
