//! Accesses to textures and surfaces: the handle and the coordinates, before the instruction. What lies behind a handle is the
//! host's to know.

use super::code::{Code, Temp, line};
use super::error::Result;
use super::pass::{Pass, Values};
use super::symbols::Symbol;
use super::value::{Type, source, wide};
use crate::isa::{ImageAccess, coordinates};
use crate::ptx::ast::Operand;

const B32: Type<'static> = Type { name: "b32", bits: 32 };

/// Instruments an access to a texture or a surface.
pub(super) fn run(pass: Pass<'_, '_>, access: &ImageAccess) -> Result<()> {
    pass.log_at(|pass, code, _| {
        let operand = pass.operand(access.address.into())?;
        let a = handle(pass, code, operand)?;
        let given = coordinates(operand).unwrap_or(&[]);
        let given =
            given.get(..access.shape.coordinates()).ok_or_else(|| pass.fault("a coordinate is missing"))?;
        let mut words = given.chunks(2).map(|pair| word(pass, code, pair));
        let read = words.next().transpose()?;
        let written = words.next().transpose()?;
        Ok(Some(Values { a: Some(a), read, written, before: None }))
    })
}

fn handle(pass: &Pass<'_, '_>, code: &mut Code, operand: &Operand<'_>) -> Result<Temp> {
    let Operand::Address(address) = operand else { return Err(pass.fault("it has no handle")) };
    let a = code.temp("b64");
    match address.base.map(|base| (base.text, pass.symbols.get(base.text))) {
        Some((name, Some(symbol @ Symbol::Register { .. }))) if symbol.bits() == Some(64) => {
            line!(code, "mov.b64 ", a, ", ", name);
        }
        _ => return Err(pass.fault("its handle is in no register of 64 bits")),
    }
    Ok(a)
}

/// One or two coordinates as the halves of a word.
fn word(pass: &Pass<'_, '_>, code: &mut Code, pair: &[Operand<'_>]) -> Result<Temp> {
    let mut halves = pair.iter().map(|operand| {
        let from = source(pass.symbols, operand, B32)?;
        wide(code, from, 32, operand.span())
    });
    let low = halves.next().transpose()?;
    let high = halves.next().transpose()?;
    let Some(low) = low else { return Err(pass.fault("a coordinate is missing")) };
    if let Some(high) = high {
        line!(code, "shl.b64 ", high, ", ", high, ", 32");
        line!(code, "or.b64 ", low, ", ", low, ", ", high);
    }
    Ok(low)
}
