//! Loads and stores.

use super::super::decode::{Bad, Cx};
use super::super::image::{Code, Space, Transfer, Values};
use super::super::regs::Src;
use super::super::types::Ty;
use super::asynchronous;

/// Vector registers hold 64 bits each, so a 128-bit element is two.
fn unit(ty: Ty) -> (u32, u32) {
    match ty.bytes() {
        16 => (8, 2),
        bytes => (bytes.max(1), 1),
    }
}

/// How many elements the modifiers say.
fn vector(cx: &Cx<'_, '_>) -> usize {
    match cx.one_of(&["v2", "v4", "v8"]) {
        Some("v2") => 2,
        Some("v4") => 4,
        Some("v8") => 8,
        _ => 1,
    }
}

fn strong(cx: &Cx<'_, '_>) -> bool {
    cx.one_of(&["volatile", "relaxed", "acquire", "release", "mmio"]).is_some()
}

/// `ld`, `ldu`
pub(super) fn ld(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let ty = cx.ty()?;
    let (unit, words) = unit(ty);
    let to = cx.dsts(0)?;
    if to.len() != vector(cx) * words as usize || to.len() > 8 {
        return cx.refuse();
    }
    let values = Values::Load(to.into());
    let address = cx.address(1)?;
    Ok(Code::Memory(Box::new(Transfer { address, unit, values, strong: strong(cx), signed: ty.is_signed() })))
}

/// `st`
pub(super) fn st(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    if cx.has("async") {
        return asynchronous::remote(cx);
    }
    if cx.has("bulk") {
        return asynchronous::fill(cx);
    }
    let ty = cx.ty()?;
    let (unit, words) = unit(ty);
    let from = cx.srcs(1, ty)?;
    if from.len() != vector(cx) * words as usize || from.len() > 8 {
        return cx.refuse();
    }
    if from.iter().any(|src| matches!(src, Src::Special(_))) {
        return Err("a special register cannot be stored".into());
    }
    let address = cx.address(0)?;
    if address.space == Space::Const {
        return cx.refuse();
    }
    let values = Values::Store(from.into());
    Ok(Code::Memory(Box::new(Transfer { address, unit, values, strong: strong(cx), signed: false })))
}
