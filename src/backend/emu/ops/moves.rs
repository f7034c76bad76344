//! `mov`: registers, constants, addresses, predicates, and packing of vectors.

use super::super::decode::{Bad, Cx};
use super::super::image::Code;
use super::super::regs::{Dst, Src, bits};
use super::super::types::{Ty, low};
use super::{compute, lanewise1};

/// `mov`
pub(super) fn mov(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    if ty == Ty::Pred {
        let d = cx.pred_dst(cx.operand(0)?)?;
        if let Src::Special(special) = cx.src(1, ty)? {
            return Ok(compute(move |regs, mask| {
                let value = regs.get(Src::Special(special));
                regs.set_pred(d, mask, bits(|lane| value[lane] != 0));
            }));
        }
        let a = cx.pred_src(cx.operand(1)?)?;
        return Ok(compute(move |regs, mask| {
            let value = regs.pred(a);
            regs.set_pred(d, mask, value);
        }));
    }
    let (to, from) = (cx.dsts(0)?, cx.srcs(1, ty)?);
    let bits = ty.bits();
    match (to.as_slice(), from.as_slice()) {
        ([d], [a]) => Ok(plain(*d, *a, bits)),
        // Whole vector registers, `%tid`, 128 bits.
        (to, from) if to.len() == from.len() || (from.len() > to.len() && cx.has("v4")) => {
            let pairs: Vec<_> = to.iter().copied().zip(from.iter().copied()).collect();
            Ok(compute(move |regs, mask| {
                let mut rows = [[0; 32]; 8];
                for (row, (_, a)) in rows.iter_mut().zip(&pairs) {
                    *row = regs.get(*a);
                }
                for (row, (d, _)) in rows.iter().zip(&pairs) {
                    regs.set(*d, mask, |lane| row[lane]);
                }
            }))
        }
        // `mov.b64 d, {lo, hi}`
        ([d], parts) => {
            let (d, parts) = (*d, parts.to_vec());
            let width = bits / u32::try_from(parts.len()).unwrap_or(1).max(1);
            Ok(compute(move |regs, mask| {
                let mut packed = [0; 32];
                for (at, part) in (0u32..).zip(&parts) {
                    let part = regs.get(*part);
                    for (to, from) in packed.iter_mut().zip(part) {
                        *to |= low(from, width) << ((at * width) & 63);
                    }
                }
                regs.set(d, mask, |lane| packed[lane]);
            }))
        }
        // `mov.b64 {lo, hi}, a`; both halves of 128 bits may be split further.
        (parts, words) => unpack(cx, parts.to_vec(), words.to_vec(), bits),
    }
}

fn plain(d: Dst, a: Src, bits: u32) -> Code {
    if bits >= 64 {
        return compute(move |regs, mask| {
            let a = regs.get(a);
            regs.set(d, mask, |lane| a[lane]);
        });
    }
    lanewise1(d, a, move |a| low(a, bits))
}

fn unpack(cx: &Cx<'_, '_>, parts: Vec<Dst>, words: Vec<Src>, bits: u32) -> Result<Code, Bad> {
    let count = u32::try_from(parts.len()).unwrap_or(1).max(1);
    let width = bits / count;
    if width == 0 || width > 64 || !bits.min(64).is_multiple_of(width) {
        return cx.refuse();
    }
    let per_word = (bits.min(64) / width) as usize;
    if parts.len().div_ceil(per_word) > words.len() || words.len() > 8 {
        return cx.refuse();
    }
    Ok(compute(move |regs, mask| {
        let mut rows = [[0; 32]; 8];
        for (row, word) in rows.iter_mut().zip(&words) {
            *row = regs.get(*word);
        }
        for (at, d) in parts.iter().enumerate() {
            let row = &rows[at / per_word];
            let shift = (at % per_word) as u32 * width;
            regs.set(*d, mask, |lane| low(row[lane] >> shift, width));
        }
    }))
}

/// Instructions whose result matters to no value: cache policies.
pub(super) fn zero(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let d = cx.dst(0)?;
    Ok(compute(move |regs, mask| regs.set(d, mask, |_| 0)))
}
