//! What orders without touching memory: fences, barriers, warp instructions, and the end of threads.

use super::code::{Code, Temp, line};
use super::error::Result;
use super::pass::{Pass, Values};
use super::value::{Type, source, wide};
use crate::isa::Barrier;

const U32: Type<'static> = Type { name: "u32", bits: 32 };

/// A fence, between two tickets.
pub(super) fn fence(mut pass: Pass<'_, '_>) {
    let mut code = pass.new_code();
    let (skip, end) = (code.name(), code.name());
    let guarded = pass.instruction.guard.is_some();
    pass.guard(&mut code, skip);
    let before = pass.ticket(&mut code);
    if guarded {
        code.label(skip);
    }
    code.go_behind();
    pass.guard(&mut code, end);
    pass.log(&mut code, &Values { before: Some(before), ..Values::default() });
    if guarded {
        code.label(end);
    }
    pass.emit(code);
}

/// A CTA barrier: its number and count, before it waits.
pub(super) fn barrier(pass: Pass<'_, '_>, barrier: &Barrier) -> Result<()> {
    pass.log_before(|pass, code| {
        let word = number(pass, code, barrier.id.into())?;
        if let Some(count) = barrier.count {
            let count = number(pass, code, count.into())?;
            line!(code, "shl.b64 ", count, ", ", count, ", 8");
            line!(code, "or.b64 ", word, ", ", word, ", ", count);
        }
        Ok(Some(word))
    })
}

/// A warp instruction: its mask, before the lanes meet.
pub(super) fn warp(pass: Pass<'_, '_>, mask: usize) -> Result<()> {
    pass.log_before(|pass, code| number(pass, code, mask).map(Some))
}

/// What has nothing but its place in program order: the end of a thread, groups of copies, cluster barriers, proxy
/// fences.
pub(super) fn bare(pass: Pass<'_, '_>) -> Result<()> {
    pass.log_before(|_, _| Ok(None))
}

/// A 32-bit operand, zero-extended.
pub(super) fn number(pass: &Pass<'_, '_>, code: &mut Code, index: usize) -> Result<Temp> {
    let operand = pass.operand(index)?;
    let from = source(pass.symbols, operand, U32)?;
    wide(code, from, 32, operand.span())
}
