//! Conversions between address spaces and between blocks of a cluster, and the stack of local memory.

use super::super::decode::{Bad, Cx};
use super::super::image::{Code, Space, StackOp};
use super::super::memory::{CONST_BASE, GLOBAL_BASE, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW};
use super::super::regs::{Src, bits};
use super::super::special::RANK_SHIFT;
use super::super::types::{Ty, low};
use super::{compute, lanewise1, lanewise2};
use crate::abi::SHARED_OFFSET;

/// The window of a space; global, constant and parameter addresses are generic as they are.
fn window(space: Space) -> u64 {
    match space {
        Space::Shared | Space::SharedCluster => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        _ => 0,
    }
}

/// `cvta`, `cvta.to`
pub(super) fn cvta(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let d = cx.dst(0)?;
    let a = match cx.src(1, ty)? {
        Src::Reg(slot) if ty.bits() == 32 => Src::Narrow(slot),
        a => a,
    };
    let base = window(cx.space());
    if cx.has("to") {
        return Ok(lanewise1(d, a, move |a| a.wrapping_sub(base)));
    }
    Ok(lanewise1(d, a, move |a| a.wrapping_add(base)))
}

/// `isspacep`
pub(super) fn isspacep(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let d = cx.pred_dst(cx.operand(0)?)?;
    let a = cx.src(1, Ty::U(64))?;
    let (first, size) = match cx.space() {
        // The own block's part of it, where there are others.
        Space::Shared => {
            return Ok(compute(move |regs, mask| {
                let a = regs.get(a);
                let position = *regs.env.position;
                regs.set_pred(
                    d,
                    mask,
                    bits(|lane| {
                        let at = a[lane].wrapping_sub(SHARED_WINDOW);
                        at < WINDOW && (position.alone || at >> RANK_SHIFT == u64::from(position.rank))
                    }),
                );
            }));
        }
        Space::SharedCluster => (SHARED_WINDOW, WINDOW),
        Space::Local => (LOCAL_WINDOW, WINDOW),
        Space::Param => (PARAM_WINDOW, WINDOW),
        Space::Const => (CONST_BASE, GLOBAL_BASE - CONST_BASE),
        Space::Global => (GLOBAL_BASE, u64::MAX - GLOBAL_BASE),
        Space::Generic => return cx.refuse(),
    };
    Ok(compute(move |regs, mask| {
        let a = regs.get(a);
        regs.set_pred(d, mask, bits(|lane| a[lane].wrapping_sub(first) < size));
    }))
}

/// `mapa`: the same place in another block of the cluster
pub(super) fn mapa(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let (d, a, rank) = (cx.dst(0)?, cx.src(1, cx.ty()?)?, cx.src(2, Ty::U(32))?);
    let base = if cx.space() == Space::Generic { SHARED_WINDOW } else { 0 };
    Ok(lanewise2(d, a, rank, move |a, rank| base | low(rank, 32) << RANK_SHIFT | a & SHARED_OFFSET))
}

/// `getctarank`: the block that an address is in
pub(super) fn getctarank(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let (d, a) = (cx.dst(0)?, cx.size(1)?);
    let base = if cx.space() == Space::Generic { SHARED_WINDOW } else { 0 };
    Ok(lanewise1(d, a, move |a| low(a.wrapping_sub(base) >> RANK_SHIFT, 32)))
}

/// `alloca`
pub(super) fn alloca(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let (to, bytes) = (cx.dst(0)?, cx.src(1, Ty::U(64))?);
    let Src::Const(align) = cx.src_or(2, Ty::U(64), 8)? else { return cx.refuse() };
    Ok(Code::Stack(StackOp::Alloca { to, bytes, align: align.max(1) }))
}

/// `stacksave`
pub(super) fn stacksave(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    Ok(Code::Stack(StackOp::Save(cx.dst(0)?)))
}

/// `stackrestore`
pub(super) fn stackrestore(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    Ok(Code::Stack(StackOp::Restore(cx.src(0, Ty::U(64))?)))
}
