//! The address of an access as a record wants it: with its space tag, and only for lanes whose memory can be shared.

use super::Target;
use super::code::{Code, Hex, Temp, line};
use super::error::{InstrumentError, Result};
use super::symbols::{Symbol, Symbols};
use crate::abi::{PEER, SHARED_OFFSET, TAG_SHARED};
use crate::isa::Space;
use crate::ptx::ast::{Address, VarSpace};

/// Writes code that computes the tagged address and branches to `skip` in lanes that log nothing. `None` when no lane
/// ever logs: the address is a variable that no other thread sees, or that nobody writes.
pub(super) fn tagged(
    code: &mut Code,
    symbols: &Symbols<'_>,
    target: Target,
    space: Space,
    address: &Address<'_>,
    skip: Temp,
) -> Result<Option<Temp>> {
    let symbol = address.base.map(|word| (word, symbols.get(word.text)));
    // A variable's space is known even where the instruction leaves it open.
    let space = match (space, symbol) {
        (Space::Generic, Some((_, Some(Symbol::Variable(declared))))) => match declared {
            VarSpace::Shared => Space::Shared,
            VarSpace::Local => Space::Local,
            VarSpace::Const => Space::Const,
            VarSpace::Param => Space::Param,
            _ => Space::Global,
        },
        _ => space,
    };
    if matches!(space, Space::Local | Space::Const | Space::Param) {
        return Ok(None);
    }
    let out = code.temp("b64");
    let mut offset = address.offset;
    match symbol {
        None => {
            line!(code, "mov.b64 ", out, ", ", Hex(offset as u64));
            offset = 0;
        }
        Some((word, Some(symbol @ Symbol::Register { .. }))) => match symbol.bits() {
            Some(64) => line!(code, "mov.b64 ", out, ", ", word.text),
            Some(32) => {
                // Narrow addresses wrap at their width.
                let narrow = code.temp("b32");
                line!(code, "mov.b32 ", narrow, ", ", word.text);
                if offset != 0 {
                    line!(code, "add.s32 ", narrow, ", ", narrow, ", ", offset as i32);
                    offset = 0;
                }
                line!(code, "cvt.u64.u32 ", out, ", ", narrow);
            }
            _ => {
                let what = "its address is in a register of neither 32 nor 64 bits".into();
                return Err(InstrumentError::Operand { what, at: address.span });
            }
        },
        Some((word, Some(Symbol::Variable(_)))) => {
            line!(code, "mov.u64 ", out, ", ", word.text);
        }
        Some((word, None)) => {
            let what = format!("`{}` is neither a register nor a variable", word.text);
            return Err(InstrumentError::Operand { what, at: address.span });
        }
    }
    if offset != 0 {
        line!(code, "add.s64 ", out, ", ", out, ", ", offset);
    }
    match space {
        Space::Generic => generic(code, target, out, skip),
        Space::Shared => own(code, out),
        Space::SharedCluster => cluster(code, out),
        _ => {}
    }
    Ok(Some(out))
}

/// The generic address that an operand gives, which is one already or a parameter of the kernel.
pub(super) fn generic_of(code: &mut Code, symbols: &Symbols<'_>, address: &Address<'_>) -> Result<Temp> {
    let out = code.temp("b64");
    let Some(base) = address.base else {
        line!(code, "mov.b64 ", out, ", ", Hex(address.offset as u64));
        return Ok(out);
    };
    match symbols.get(base.text) {
        Some(symbol @ Symbol::Register { .. }) if symbol.bits() == Some(64) => {
            line!(code, "mov.b64 ", out, ", ", base.text);
        }
        Some(Symbol::Variable(space @ (VarSpace::Param | VarSpace::Const | VarSpace::Global))) => {
            let space = match space {
                VarSpace::Param => "param",
                VarSpace::Const => "const",
                _ => "global",
            };
            line!(code, "mov.b64 ", out, ", ", base.text);
            line!(code, "cvta.", space, ".u64 ", out, ", ", out);
        }
        _ => {
            let what = format!("`{}` is no generic address of 64 bits", base.text);
            return Err(InstrumentError::Operand { what, at: address.span });
        }
    }
    if address.offset != 0 {
        line!(code, "add.s64 ", out, ", ", out, ", ", address.offset);
    }
    Ok(out)
}

/// Tags an address of the own block's shared memory.
pub(super) fn own(code: &mut Code, address: Temp) {
    line!(code, "and.b64 ", address, ", ", address, ", ", Hex(SHARED_OFFSET));
    line!(code, "or.b64 ", address, ", ", address, ", ", Hex(TAG_SHARED));
}

/// Tags an address of the cluster's shared memory.
fn cluster(code: &mut Code, address: Temp) {
    let (rank, of, peer, is_peer) = (code.temp("b32"), code.temp("b32"), code.temp("b64"), code.temp("pred"));
    line!(code, "mov.u32 ", rank, ", %cluster_ctarank");
    line!(code, "cvt.u32.u64 ", of, ", ", address);
    line!(code, "shr.u32 ", of, ", ", of, ", ", SHARED_OFFSET.count_ones());
    line!(code, "setp.ne.u32 ", is_peer, ", ", of, ", ", rank);
    line!(code, "or.b64 ", peer, ", ", address, ", ", Hex(TAG_SHARED | PEER));
    own(code, address);
    line!(code, "selp.b64 ", address, ", ", peer, ", ", address, ", ", is_peer);
}

/// Decides by the address in `out`: private and read-only windows skip, the shared window gives a tagged offset.
fn generic(code: &mut Code, target: Target, out: Temp, skip: Temp) {
    let (hidden, other) = (code.temp("pred"), code.temp("pred"));
    line!(code, "isspacep.local ", hidden, ", ", out);
    line!(code, "isspacep.const ", other, ", ", out);
    line!(code, "or.pred ", hidden, ", ", hidden, ", ", other);
    if target.has(70, (7, 7)) {
        line!(code, "isspacep.param ", other, ", ", out);
        line!(code, "or.pred ", hidden, ", ", hidden, ", ", other);
    }
    line!(code, "@", hidden, " bra ", skip);
    let (offset, shared) = (code.temp("b64"), code.temp("pred"));
    line!(code, "isspacep.shared ", shared, ", ", out);
    line!(code, "cvta.to.shared.u64 ", offset, ", ", out);
    own(code, offset);
    if target.has(90, (7, 8)) {
        // In a cluster, the shared memory of the other blocks has a window too.
        let peer = code.temp("b64");
        line!(code, "isspacep.shared::cluster ", other, ", ", out);
        line!(code, "cvta.to.shared::cluster.u64 ", peer, ", ", out);
        line!(code, "or.b64 ", peer, ", ", peer, ", ", Hex(TAG_SHARED | PEER));
        line!(code, "selp.b64 ", out, ", ", peer, ", ", out, ", ", other);
    }
    line!(code, "selp.b64 ", out, ", ", offset, ", ", out, ", ", shared);
}
