//! Conversions between address spaces, and the stack of local memory.

use super::super::decode::{Bad, Cx};
use super::super::image::{Code, Space, StackOp};
use super::super::memory::{CONST_BASE, GLOBAL_BASE, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW};
use super::super::regs::{Src, bits};
use super::super::types::Ty;
use super::{compute, lanewise1};

/// The window of a space; global, constant and parameter addresses are generic as they are.
fn window(space: Space) -> u64 {
    match space {
        Space::Shared => SHARED_WINDOW,
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
        Space::Shared => (SHARED_WINDOW, WINDOW),
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
