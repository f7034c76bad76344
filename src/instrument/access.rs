//! Loads and stores. A weak one logs before it executes; a strong one between two tickets, with its value.

use super::address::tagged;
use super::code::{Code, Piece, Temp, line};
use super::edit::Edits;
use super::error::Result;
use super::pass::{Pass, Values};
use super::value::{Source, bit_type, elements, packed};
use crate::isa::{Access, AccessKind, Space};
use crate::ptx::ast::Operand;

/// Instruments a load or a store.
pub(super) fn run(pass: Pass<'_, '_>, access: &Access) -> Result<()> {
    if access.order.is_strong() { strong(pass, access) } else { weak(pass, access) }
}

/// The tagged address of an operand; `None` if no lane ever logs it.
pub(super) fn place(
    pass: &Pass<'_, '_>,
    code: &mut Code,
    space: Space,
    operand: u8,
    skip: Temp,
) -> Result<Option<Temp>> {
    match pass.operand(operand.into())? {
        Operand::Address(address) => tagged(code, pass.symbols, pass.target, space, address, skip),
        _ => Err(pass.fault("it has no address")),
    }
}

fn weak(pass: Pass<'_, '_>, access: &Access) -> Result<()> {
    pass.log_at(|pass, code, skip| {
        if let Some(rows) = access.rows {
            pass.rows(code, rows, skip);
        }
        let Some(a) = place(pass, code, access.space, access.address, skip)? else { return Ok(None) };
        let stores = pass.site.payload().written;
        let written = stores.then(|| stored(pass, code, access)).transpose()?;
        Ok(Some(Values { a: Some(a), written, ..Values::default() }))
    })
}

fn strong(mut pass: Pass<'_, '_>, access: &Access) -> Result<()> {
    let Some(mut strong) = Strong::begin(&mut pass, access)? else { return Ok(()) };
    let (mut read, mut written) = (None, None);
    if access.kind == AccessKind::Store {
        written = Some(stored(&pass, &mut strong.code, access)?);
    } else {
        let operand = pass.operand(0)?;
        let (span, ty) = (operand.span(), pass.ty()?);
        let mut values = elements(pass.symbols, operand, ty)?;
        name_sinks(&mut strong.code, &mut values, operand, ty.bits, pass.edits);
        read = Some(packed(&mut strong.code, &values, ty.bits, span)?);
    }
    strong.end(pass, read, written);
    Ok(())
}

/// The value that a store writes.
fn stored(pass: &Pass<'_, '_>, code: &mut Code, access: &Access) -> Result<Temp> {
    let operand = pass.operand(usize::from(access.address) + 1)?;
    let ty = pass.ty()?;
    let values = elements(pass.symbols, operand, ty)?;
    packed(code, &values, ty.bits, operand.span())
}

/// Gives elements that are thrown away a temporary, in the instruction too, so that they can be logged.
pub(super) fn name_sinks(
    code: &mut Code,
    values: &mut [Source<'_>],
    operand: &Operand<'_>,
    bits: u32,
    edits: &mut Edits,
) {
    let items = match operand {
        Operand::Vector(items) => items,
        other => std::slice::from_ref(other),
    };
    for (value, item) in values.iter_mut().zip(items) {
        if *value == Source::Sink {
            // There are no registers of 8 bits; loads may have wider ones.
            let bits = bits.max(16);
            let temp = code.temp(bit_type(bits));
            edits.replace_with(item.span(), |out| temp.put(out));
            *value = Source::Register(temp.into(), bits);
        }
    }
}

/// The frame of a strong access: address, ticket, the instruction, then the record.
pub(super) struct Strong {
    pub(super) code: Code,
    a: Temp,
    before: Temp,
    /// Whether there may be lanes that do not log.
    is_partial: bool,
}

impl Strong {
    /// The code before the instruction; what is added then stands behind it. `None` if no lane ever logs.
    pub(super) fn begin(pass: &mut Pass<'_, '_>, access: &Access) -> Result<Option<Self>> {
        Self::begin_with(pass, access, |_, _| Ok(())).map(|strong| strong.map(|(strong, ())| strong))
    }

    /// As `begin`, with more code before the instruction.
    pub(super) fn begin_with<T>(
        pass: &mut Pass<'_, '_>,
        access: &Access,
        more: impl FnOnce(&mut Pass<'_, '_>, &mut Code) -> Result<T>,
    ) -> Result<Option<(Self, T)>> {
        Self::begin_at(pass, access.space, access.address, |pass, code| pass.ticket(code), more)
    }

    /// The frame for any operation with an address, with the way to its first ticket.
    pub(super) fn begin_at<T>(
        pass: &mut Pass<'_, '_>,
        space: Space,
        operand: u8,
        ticket: impl FnOnce(&mut Pass<'_, '_>, &mut Code) -> Temp,
        more: impl FnOnce(&mut Pass<'_, '_>, &mut Code) -> Result<T>,
    ) -> Result<Option<(Self, T)>> {
        let mut code = pass.new_code();
        let skip = code.name();
        let partial = pass.instruction.guard.is_some() || space == Space::Generic;
        let logs = partial.then(|| code.temp("pred"));
        if let Some(logs) = logs {
            line!(code, "mov.pred ", logs, ", 0");
        }
        pass.guard(&mut code, skip);
        let Some(a) = place(pass, &mut code, space, operand, skip)? else { return Ok(None) };
        if let Some(logs) = logs {
            line!(code, "mov.pred ", logs, ", -1");
        }
        let extra = more(pass, &mut code)?;
        let before = ticket(pass, &mut code);
        if logs.is_some() {
            code.label(skip);
        }
        code.go_behind();
        if let Some(logs) = logs {
            line!(code, "@!", logs, " bra __ptxrace_end");
        }
        Ok(Some((Self { code, a, before, is_partial: logs.is_some() }, extra)))
    }

    /// The temporary with the tagged address.
    pub(super) fn a(&self) -> Temp {
        self.a
    }

    /// Lanes in which this predicate register is false log nothing.
    pub(super) fn only_if(&mut self, predicate: &str) {
        line!(self.code, "@!", predicate, " bra __ptxrace_end");
        self.is_partial = true;
    }

    /// Writes the record and puts the code in.
    pub(super) fn end(mut self, mut pass: Pass<'_, '_>, read: Option<Temp>, written: Option<Temp>) {
        let values = Values { a: Some(self.a), read, written, before: Some(self.before) };
        pass.log(&mut self.code, &values);
        if self.is_partial {
            self.code.label("__ptxrace_end");
        }
        pass.emit(self.code);
    }
}
