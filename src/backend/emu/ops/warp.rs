//! Warp instructions: shuffles, votes, matches, reductions, elections. The `.sync` forms wait for the lanes of their
//! mask; the old forms run with the lanes that are there.

use super::super::decode::{Bad, Cx};
use super::super::image::{Code, ConvergeOp, Exchange, Met};
use super::super::regs::{Regs, Src};
use super::super::types::{Ty, extend, low};
use super::compute;
use crate::abi::lanes;
use crate::ptx::ast::Operand;

fn converge(
    mask: Option<Src>,
    class: u32,
    inputs: [Src; 3],
    exchange: impl Fn(&mut Regs<'_>, u32, &Met<'_>) + Send + Sync + 'static,
) -> Code {
    let exchange: Exchange = Box::new(exchange);
    Code::Converge(Box::new(ConvergeOp { mask, class, inputs, exchange }))
}

const NONE: Src = Src::Const(0);

/// Instructions meet those of the same opcode and modifiers.
fn class(cx: &Cx<'_, '_>) -> u32 {
    // FNV-1a over the words, which is stable and good enough to tell a few forms apart.
    let words = std::iter::once(cx.instruction.opcode).chain(cx.instruction.modifiers());
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    words.flat_map(|word| word.text.bytes().chain([b'.'])).fold(0x811c_9dc5, step)
}

/// `bar.warp.sync`
pub(super) fn barrier(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let mask = cx.src(0, Ty::B(32))?;
    Ok(converge(Some(mask), class(cx), [NONE; 3], |_, _, _| {}))
}

/// `activemask`
pub(super) fn activemask(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let d = cx.dst(0)?;
    Ok(compute(move |regs, mask| regs.set(d, mask, |_| u64::from(mask))))
}

/// `shfl`, with `d|p` and clamp operand
pub(super) fn shfl(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = Ty::B(32);
    let (d, p) = match cx.operand(0)? {
        Operand::Pair(both, _) => (cx.destination(&both[0])?, Some(cx.pred_dst(&both[1])?)),
        _ => (cx.dst(0)?, None),
    };
    let inputs = [cx.src(1, ty)?, cx.src(2, ty)?, cx.src(3, ty)?];
    let mask = if cx.has("sync") { Some(cx.src(4, ty)?) } else { None };
    let mode = match cx.one_of(&["up", "down", "bfly", "idx"]) {
        Some("up") => 0,
        Some("down") => 1,
        Some("bfly") => 2,
        Some("idx") => 3,
        _ => return cx.refuse(),
    };
    Ok(converge(mask, class(cx), inputs, move |regs, mask, met| {
        let mut values = [0; 32];
        let mut valid = 0;
        for lane in lanes(mask) {
            let (b, c) = (met.inputs[1][lane] as u32 & 31, met.inputs[2][lane] as u32);
            let (clamp, segment) = (c & 31, c >> 8 & 31);
            let at = lane as u32;
            let most = at & segment | clamp & !segment;
            let least = at & segment;
            // An index out of the segment leaves the lane with its own value.
            let (source, inside) = match mode {
                0 => {
                    let source = at.wrapping_sub(b);
                    (source, source.cast_signed() >= most.cast_signed())
                }
                1 => (at + b, at + b <= most),
                2 => (at ^ b, at ^ b <= most),
                _ => {
                    let source = least | b & !segment;
                    (source, source <= most)
                }
            };
            let source = if inside { source & 31 } else { at };
            // The value of a lane that is not there is undefined; an H200 gives zero.
            if met.lanes >> source & 1 != 0 {
                values[lane] = low(met.inputs[0][source as usize], 32);
            }
            valid |= u32::from(inside) << lane;
        }
        regs.set(d, mask, |lane| values[lane]);
        if let Some(p) = p {
            regs.set_pred(p, mask, valid);
        }
    }))
}

/// `vote`
pub(super) fn vote(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let input = Src::Pred(cx.pred_src(cx.operand(1)?)?);
    let mask = if cx.has("sync") { Some(cx.src(2, Ty::B(32))?) } else { None };
    let votes =
        |met: &Met<'_>| lanes(met.lanes).fold(0u32, |v, lane| v | (met.inputs[0][lane] as u32 & 1) << lane);
    if cx.has("ballot") {
        let d = cx.dst(0)?;
        return Ok(converge(mask, class(cx), [input, NONE, NONE], move |regs, mask, met| {
            let votes = votes(met);
            regs.set(d, mask, |_| u64::from(votes));
        }));
    }
    let d = cx.pred_dst(cx.operand(0)?)?;
    let mode = match cx.one_of(&["all", "any", "uni"]) {
        Some("all") => 0,
        Some("any") => 1,
        Some("uni") => 2,
        _ => return cx.refuse(),
    };
    Ok(converge(mask, class(cx), [input, NONE, NONE], move |regs, mask, met| {
        let votes = votes(met);
        let holds = match mode {
            0 => votes == met.lanes,
            1 => votes != 0,
            _ => votes == 0 || votes == met.lanes,
        };
        regs.set_pred(d, mask, if holds { u32::MAX } else { 0 });
    }))
}

/// `match.any.sync`, `match.all.sync`
pub(super) fn matching(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let inputs = [cx.src(1, ty)?, NONE, NONE];
    let mask = Some(cx.src(2, Ty::B(32))?);
    let width = ty.bits();
    let alike = move |met: &Met<'_>, lane: usize| {
        let value = low(met.inputs[0][lane], width);
        lanes(met.lanes).filter(|l| low(met.inputs[0][*l], width) == value).fold(0u32, |m, l| m | 1 << l)
    };
    if cx.has("any") {
        let d = cx.dst(0)?;
        return Ok(converge(mask, class(cx), inputs, move |regs, mask, met| {
            regs.set(d, mask, |lane| u64::from(alike(met, lane)));
        }));
    }
    let (d, p) = match cx.operand(0)? {
        Operand::Pair(both, _) => (cx.destination(&both[0])?, Some(cx.pred_dst(&both[1])?)),
        _ => (cx.dst(0)?, None),
    };
    Ok(converge(mask, class(cx), inputs, move |regs, mask, met| {
        let all = alike(met, met.lanes.trailing_zeros() as usize & 31) == met.lanes;
        regs.set(d, mask, |_| if all { u64::from(met.lanes) } else { 0 });
        if let Some(p) = p {
            regs.set_pred(p, mask, if all { u32::MAX } else { 0 });
        }
    }))
}

/// `redux.sync`
pub(super) fn redux(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (d, inputs, mask) = (cx.dst(0)?, [cx.src(1, ty)?, NONE, NONE], Some(cx.src(2, Ty::B(32))?));
    if ty == Ty::F32 {
        let (max, abs, nan) = (cx.has("max"), cx.has("abs"), cx.has("NaN"));
        return Ok(converge(mask, class(cx), inputs, move |regs, mask, met| {
            let value = |lane: usize| {
                let value = f32::from_bits(met.inputs[0][lane] as u32);
                if abs { value.abs() } else { value }
            };
            let pick = |a: f32, b: f32| if max { a.max(b) } else { a.min(b) };
            let poisoned = nan && lanes(met.lanes).any(|lane| value(lane).is_nan());
            let result = lanes(met.lanes).map(value).fold(f32::NAN, pick);
            let result = if poisoned { f32::NAN } else { result };
            let bits = if result.is_nan() { 0x7fff_ffff } else { result.to_bits() };
            regs.set(d, mask, |_| u64::from(bits));
        }));
    }
    type Fold = fn(u64, u64, bool) -> u64;
    let fold: Fold = match cx.one_of(&["add", "min", "max", "and", "or", "xor"]) {
        Some("add") => |a, b, _| a.wrapping_add(b),
        Some("and") => |a, b, _| a & b,
        Some("or") => |a, b, _| a | b,
        Some("xor") => |a, b, _| a ^ b,
        Some("min") => {
            |a, b, s| if s { a.cast_signed().min(b.cast_signed()).cast_unsigned() } else { a.min(b) }
        }
        Some("max") => {
            |a, b, s| if s { a.cast_signed().max(b.cast_signed()).cast_unsigned() } else { a.max(b) }
        }
        _ => return cx.refuse(),
    };
    let signed = ty.is_signed();
    Ok(converge(mask, class(cx), inputs, move |regs, mask, met| {
        let value = |lane: usize| {
            let value = met.inputs[0][lane];
            if signed { extend(value, 32) } else { low(value, 32) }
        };
        let result = lanes(met.lanes).map(value).reduce(|a, b| fold(a, b, signed)).unwrap_or(0);
        regs.set(d, mask, |_| low(result, 32));
    }))
}

/// `elect.sync d|p, mask`
pub(super) fn elect(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let (d, p) = match cx.operand(0)? {
        Operand::Pair(both, _) => (cx.destination(&both[0])?, cx.pred_dst(&both[1])?),
        _ => return cx.refuse(),
    };
    let mask = Some(cx.src(1, Ty::B(32))?);
    Ok(converge(mask, class(cx), [NONE; 3], move |regs, mask, met| {
        let leader = met.lanes.trailing_zeros();
        regs.set(d, mask, |_| u64::from(leader));
        regs.set_pred(p, mask, 1u32.checked_shl(leader).unwrap_or(0));
    }))
}
