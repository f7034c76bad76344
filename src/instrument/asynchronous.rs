//! Asynchronous copies, mbarriers, and accesses to ranges and tiles.
//!
//! A copy logs its issue; its completion is told by the group or the mbarrier that it completes by, which are logged
//! themselves. An mbarrier operation stands between two tickets, as strong accesses do. A wait is logged behind it, and only
//! where the phase was complete: a loop that polls gives one record.

use super::access::{Strong, place};
use super::address::generic_of as generic;
use super::code::{Code, Hex, Temp, line};
use super::error::Result;
use super::order::number;
use super::pass::{Pass, Values};
use super::site::COORDINATES;
use super::value::{Source, Type, elements, packed, raw, source, wide};
use crate::abi::{BULK_BITS, SHARED_OFFSET};
use crate::isa::{AsyncCopy, Completion, CopyBytes, Fill, Mbarrier, MbarrierOp, Product, Space, Tile};
use crate::ptx::ast::Operand;

const B64: Type<'static> = Type { name: "b64", bits: 64 };
const B32: Type<'static> = Type { name: "b32", bits: 32 };

/// Instruments a copy, an asynchronous store or a reduction.
pub(super) fn copy(pass: Pass<'_, '_>, copy: &AsyncCopy) -> Result<()> {
    if let CopyBytes::Tensor(rank) = copy.bytes {
        return tensor(pass, copy, rank.into());
    }
    pass.log_at(|pass, code, skip| {
        let a = place(pass, code, copy.to, copy.destination, skip)?;
        let (read, written) = match (copy.from, copy.completion) {
            (None, Completion::Mbarrier(mbarrier)) => {
                let read = place(pass, code, copy.to, mbarrier, skip)?;
                (read, Some(value(pass, code, copy)?))
            }
            (Some(from), _) => {
                let read = place(pass, code, from, copy.source, skip)?;
                let written = match copy.bytes {
                    CopyBytes::Limited(most, operand) => Some(limited(pass, code, most, operand.into())?),
                    _ if copy.bulk => Some(bulk_word(pass, code, copy, skip)?),
                    _ => None,
                };
                (read, written)
            }
            (None, _) => return Err(pass.fault("it has no source")),
        };
        if a.is_none() || read.is_none() {
            return Err(pass.fault("an address of it is private to the thread"));
        }
        Ok(Some(Values { a, read, written, ..Values::default() }))
    })
}

/// Instruments a copy of a box: its coordinates, then the copy.
fn tensor(pass: Pass<'_, '_>, copy: &AsyncCopy, rank: usize) -> Result<()> {
    pass.log_at(|pass, code, skip| {
        let (shared, in_shared, map) = match copy.from {
            Some(Space::Global) => (copy.to, copy.destination, copy.source),
            from => (from.unwrap_or(Space::Shared), copy.source, copy.destination),
        };
        let Operand::Address(map) = pass.operand(map.into())? else {
            return Err(pass.fault("it has no tensor map"));
        };
        let [Operand::Vector(at)] = &*map.extra else {
            return Err(pass.fault("it has no coordinates"));
        };
        if at.len() != rank {
            return Err(pass.fault("its coordinates are not those of its rank"));
        }
        let mut words = Vec::new();
        for two in at.chunks(2) {
            let sources: std::result::Result<Vec<_>, _> =
                two.iter().map(|operand| source(pass.symbols, operand, B32)).collect();
            words.push(packed(code, &sources?, B32.bits, map.span)?);
        }
        words.resize_with(3, || zero(code));
        // In the order of `abi::coordinate_words`.
        words.rotate_right(1);
        let coordinates = pass.runtime.log(COORDINATES);
        code.call(coordinates, pass.site.id.0 + 1, words.into_iter());

        let Some(a) = place(pass, code, shared, in_shared, skip)? else {
            return Err(pass.fault("an address of it is private to the thread"));
        };
        let map = generic(code, pass.symbols, map)?;
        let digest = code.temp("b64");
        line!(code, "call.uni (", digest, "), ", pass.runtime.tensor_map(), ", (", map, ")");
        let written = bulk_word(pass, code, copy, skip)?;
        Ok(Some(Values { a: Some(a), read: Some(digest), written: Some(written), ..Values::default() }))
    })
}

fn zero(code: &mut Code) -> Temp {
    let temp = code.temp("b64");
    line!(code, "mov.b64 ", temp, ", 0");
    temp
}

/// The value that an asynchronous store or reduction takes from registers.
fn value(pass: &Pass<'_, '_>, code: &mut Code, copy: &AsyncCopy) -> Result<Temp> {
    let (operand, ty) = (pass.operand(copy.source.into())?, pass.ty()?);
    packed(code, &elements(pass.symbols, operand, ty)?, ty.bits, operand.span())
}

/// Bytes that are read: at most what the operand says, or none where it is a predicate that holds.
fn limited(pass: &Pass<'_, '_>, code: &mut Code, most: u32, operand: usize) -> Result<Temp> {
    let operand = pass.operand(operand)?;
    let (name, negated) = match operand {
        Operand::Not(inner, _) => (inner.as_ref(), true),
        other => (other, false),
    };
    if let Operand::Name(name, _) = name
        && pass.symbols.is_predicate(name)
    {
        let bytes = code.temp("b64");
        let (holds, fails) = if negated { (most, 0) } else { (0, most) };
        line!(code, "selp.b64 ", bytes, ", ", holds, ", ", fails, ", ", name);
        return Ok(bytes);
    }
    let bytes = size(pass, code, operand)?;
    line!(code, "min.u64 ", bytes, ", ", bytes, ", ", most);
    Ok(bytes)
}

/// An operand that is a number of bytes, of 32 or 64 bits.
fn size(pass: &Pass<'_, '_>, code: &mut Code, operand: &Operand<'_>) -> Result<Temp> {
    let from = source(pass.symbols, operand, B64)?;
    let bits = match from {
        Source::Register(_, bits) => bits.min(64),
        _ => 64,
    };
    wide(code, from, bits, operand.span())
}

/// `abi::bulk_word`
fn bulk_word(pass: &Pass<'_, '_>, code: &mut Code, copy: &AsyncCopy, skip: Temp) -> Result<Temp> {
    let word = match copy.bytes {
        CopyBytes::Operand(operand) => size(pass, code, pass.operand(operand.into())?)?,
        _ => zero(code),
    };
    line!(code, "and.b64 ", word, ", ", word, ", ", Hex(SHARED_OFFSET));
    if let Completion::Mbarrier(operand) = copy.completion
        && let Some(mbarrier) = place(pass, code, Space::Shared, operand, skip)?
    {
        line!(code, "and.b64 ", mbarrier, ", ", mbarrier, ", ", Hex(SHARED_OFFSET));
        line!(code, "shl.b64 ", mbarrier, ", ", mbarrier, ", ", BULK_BITS);
        line!(code, "or.b64 ", word, ", ", word, ", ", mbarrier);
    }
    if let Some(operand) = copy.multicast {
        let operand = pass.operand(operand.into())?;
        let mask = source(pass.symbols, operand, Type { name: "b16", bits: 16 })?;
        let mask = wide(code, mask, 16, operand.span())?;
        line!(code, "shl.b64 ", mask, ", ", mask, ", 48");
        line!(code, "or.b64 ", word, ", ", word, ", ", mask);
    }
    Ok(word)
}

/// Instruments an mbarrier operation.
pub(super) fn mbarrier(mut pass: Pass<'_, '_>, mbarrier: &Mbarrier) -> Result<()> {
    let waits = matches!(mbarrier.op, MbarrierOp::Wait { .. });
    let ticket = |pass: &mut Pass<'_, '_>, code: &mut Code| {
        if waits { pass.last_ticket(code) } else { pass.ticket(code) }
    };
    let begun = Strong::begin_at(&mut pass, mbarrier.space, mbarrier.address, ticket, |pass, code| {
        let word = |code: &mut Code, operand: u8| number(pass, code, operand.into());
        Ok(match mbarrier.op {
            MbarrierOp::Init { count } => Some(word(code, count)?),
            MbarrierOp::ExpectTx { bytes } | MbarrierOp::CompleteTx { bytes } => {
                let bytes = word(code, bytes)?;
                line!(code, "shl.b64 ", bytes, ", ", bytes, ", 32");
                Some(bytes)
            }
            MbarrierOp::Arrive { count: Some(count), .. } => Some(word(code, count)?),
            MbarrierOp::Arrive { expect, .. } => {
                let one = zero(code);
                if let Some(bytes) = expect {
                    let bytes = word(code, bytes)?;
                    line!(code, "shl.b64 ", one, ", ", bytes, ", 32");
                }
                line!(code, "add.s64 ", one, ", ", one, ", 1");
                Some(one)
            }
            MbarrierOp::Wait { phase, .. } => Some(size(pass, code, pass.operand(phase.into())?)?),
            MbarrierOp::Inval | MbarrierOp::CopyArrive { .. } => None,
        })
    })?;
    let Some((mut strong, written)) = begun else { return Ok(()) };
    let mut read = None;
    match mbarrier.op {
        MbarrierOp::Arrive { .. } => {
            let operand = pass.operand(0)?;
            let state = match source(pass.symbols, operand, B64)? {
                Source::Sink => Source::Bits(0),
                state => state,
            };
            read = Some(raw(&mut strong.code, state, 64, operand.span())?);
        }
        MbarrierOp::Wait { .. } => match pass.operand(0)? {
            Operand::Name(name, _) if *name != "_" => strong.only_if(name),
            _ => return Err(pass.fault("the answer of this wait is thrown away")),
        },
        _ => {}
    }
    strong.end(pass, read, written);
    Ok(())
}

/// Instruments a write of a range.
pub(super) fn fill(pass: Pass<'_, '_>, fill: &Fill) -> Result<()> {
    pass.log_at(|pass, code, skip| {
        let Some(a) = place(pass, code, fill.space, fill.address, skip)? else { return Ok(None) };
        let written = match fill.bytes {
            Some(_) => None,
            None => Some(size(pass, code, pass.operand(usize::from(fill.address) + 1)?)?),
        };
        Ok(Some(Values { a: Some(a), written, ..Values::default() }))
    })
}

/// Instruments an access to a tile.
pub(super) fn tile(pass: Pass<'_, '_>, tile: &Tile) -> Result<()> {
    pass.log_at(|pass, code, skip| {
        let Some(a) = place(pass, code, tile.space, tile.address, skip)? else { return Ok(None) };
        let stride = match tile.stride {
            Some(operand) => number(pass, code, operand.into())?,
            None => {
                let temp = code.temp("b64");
                line!(code, "mov.b64 ", temp, ", ", tile.length);
                temp
            }
        };
        Ok(Some(Values { a: Some(a), read: Some(stride), ..Values::default() }))
    })
}

/// Instruments a product of a warpgroup.
pub(super) fn product(pass: Pass<'_, '_>, product: &Product) -> Result<()> {
    pass.log_at(|pass, code, _| {
        let descriptor = |code: &mut Code, operand: u8| size(pass, code, pass.operand(operand.into())?);
        let a = descriptor(code, product.b)?;
        let read = match product.a {
            Some(operand) => descriptor(code, operand)?,
            None => zero(code),
        };
        Ok(Some(Values { a: Some(a), read: Some(read), ..Values::default() }))
    })
}
