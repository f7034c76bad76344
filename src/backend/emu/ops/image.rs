//! Textures and surfaces. `isa` has read the instruction: which operand is what.

use super::super::decode::{Bad, Cx};
use super::super::image::{Code, ImageCode, Query, Values};
use super::super::regs::Src;
use super::super::types::Ty;
use crate::isa::{self, Effect, ImageOp};
use crate::ptx::ast::Operand;

/// `tex`, `tld4`, `suld`, `sust`
pub(super) fn access(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let classified = isa::classify(cx.instruction);
    let (Effect::Image(access), None) = (classified.effect, classified.unknown) else { return cx.refuse() };
    let operand = cx.operand(access.address.into())?;
    let (Operand::Address(address), Some(given)) = (operand, isa::coordinates(operand)) else {
        return cx.refuse();
    };
    let Some(base) = address.base else { return cx.refuse() };
    let handle = cx.value(&Operand::from(base), Ty::B(64))?;
    let ty = if access.floats { Ty::F32 } else { Ty::S(32) };
    let given = given.iter().take(access.shape.coordinates());
    let coordinates = given.map(|one| cx.value(one, ty)).collect::<Result<Vec<_>, _>>()?;
    let ty = if access.is_surface() { cx.types.last() } else { cx.types.first() };
    let Some(ty) = ty.copied() else { return cx.refuse() };
    if coordinates.iter().chain([&handle]).any(|src| matches!(src, Src::Special(_))) {
        return cx.refuse();
    }
    let values = match access.op {
        ImageOp::Fetch | ImageOp::Gather => {
            if ty.bits() != 32 || matches!(ty, Ty::F16x2) || matches!(cx.operand(0)?, Operand::Pair(..)) {
                return cx.refuse();
            }
            Values::Load(cx.dsts(0)?.into())
        }
        ImageOp::Load if access.bytes.is_some() => Values::Load(cx.dsts(0)?.into()),
        ImageOp::Store if access.bytes.is_some() => {
            let from = cx.srcs(1, ty)?;
            if from.iter().any(|src| matches!(src, Src::Special(_))) {
                return cx.refuse();
            }
            Values::Store(from.into())
        }
        // What formatted stores and reductions do is not modelled.
        ImageOp::Load | ImageOp::Store | ImageOp::Reduce(_) => return cx.refuse(),
    };
    let unit = ty.bytes();
    let fits = match access.bytes {
        Some(bytes) => values.len() * unit as usize == usize::from(bytes),
        None => values.len() == 4,
    };
    if !fits {
        return cx.refuse();
    }
    let channel = ["r", "g", "b", "a"].into_iter().position(|name| cx.has(name)).unwrap_or(0);
    let coordinates = coordinates.into();
    Ok(Code::Image(Box::new(ImageCode { access, handle, coordinates, values, unit, channel })))
}

/// `txq`, `suq`
pub(super) fn query(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let Operand::Address(address) = cx.operand(1)? else { return cx.refuse() };
    let (Some(base), true) = (address.base, cx.len() == 2 && address.extra.is_empty()) else {
        return cx.refuse();
    };
    let axis = match cx.one_of(&["width", "height", "depth"]) {
        Some("width") => 0,
        Some("height") => 1,
        Some("depth") => 2,
        _ => return cx.refuse(),
    };
    let surface = cx.instruction.opcode.text == "suq";
    let handle = cx.value(&Operand::from(base), Ty::B(64))?;
    Ok(Code::Query(Box::new(Query { surface, handle, axis, to: cx.dst(0)? })))
}
