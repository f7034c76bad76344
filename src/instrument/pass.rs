//! What the passes share: one site, what is known around it, and the edits it makes.

use super::Target;
use super::bundle::Bundling;
use super::code::{Code, Temp, line};
use super::edit::Edits;
use super::error::{InstrumentError, Result};
use super::runtime::Runtime;
use super::site::Site;
use super::symbols::Symbols;
use super::value::Type;
use crate::ptx::ast::{Instruction, Operand};
use crate::ptx::type_bytes;

/// One logged instruction and what its pass may use.
pub(super) struct Pass<'p, 'a> {
    pub(super) symbols: &'p Symbols<'a>,
    pub(super) target: Target,
    pub(super) site: &'p Site,
    pub(super) instruction: &'p Instruction<'a>,
    pub(super) runtime: &'p mut Runtime,
    pub(super) edits: &'p mut Edits,
    /// Code of the last site, for its room.
    pub(super) spare: &'p mut Code,
    /// Where code before the instruction goes.
    pub(super) at: u32,
}

/// The values of a record, as names of temporaries, in the order that the runtime's functions take them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Values {
    pub(super) a: Option<Temp>,
    pub(super) read: Option<Temp>,
    pub(super) written: Option<Temp>,
    pub(super) before: Option<Temp>,
}

impl<'p, 'a> Pass<'p, 'a> {
    /// Code for this site, empty as yet.
    pub(super) fn new_code(&mut self) -> Code {
        std::mem::take(self.spare)
    }

    /// Lanes whose guard is false go to `skip`.
    pub(super) fn guard(&self, code: &mut Code, skip: Temp) {
        if let Some(guard) = &self.instruction.guard {
            let unless = if guard.negated { "" } else { "!" };
            line!(code, "@", unless, guard.register.text, " bra ", skip);
        }
    }

    /// Lanes beyond the first `rows` go to `skip`: their addresses do not count.
    pub(super) fn rows(&self, code: &mut Code, rows: u8, skip: Temp) {
        let (lane, beyond) = (code.temp("b32"), code.temp("pred"));
        line!(code, "mov.u32 ", lane, ", %laneid");
        line!(code, "setp.ge.u32 ", beyond, ", ", lane, ", ", rows);
        line!(code, "@", beyond, " bra ", skip);
    }

    /// Writes the record.
    pub(super) fn log(&mut self, code: &mut Code, values: &Values) {
        let function = match self.site.bundling {
            Bundling::Leads(_) => self.runtime.log_bundle(),
            _ => self.runtime.log(self.site.payload()),
        };
        let all = [values.a, values.read, values.written, values.before];
        code.call(function, self.site.id.0, all.into_iter().flatten());
    }

    /// Draws a ticket.
    pub(super) fn ticket(&mut self, code: &mut Code) -> Temp {
        let ticket = code.temp("b64");
        line!(code, "call.uni (", ticket, "), ", self.runtime.ticket());
        ticket
    }

    /// Gives the last ticket drawn so far.
    pub(super) fn last_ticket(&mut self, code: &mut Code) -> Temp {
        let ticket = code.temp("b64");
        line!(code, "call.uni (", ticket, "), ", self.runtime.last_ticket());
        ticket
    }

    /// Puts the code in.
    pub(super) fn emit(&mut self, mut code: Code) {
        self.edits.insert_with(self.at, |out| code.put_before(out));
        if code.is_behind() {
            self.edits.insert_with(self.instruction.span.end, |out| code.put_behind(out));
        }
        code.clear();
        *self.spare = code;
    }

    /// A record of nothing, or of one operand-made value, before the instruction.
    pub(super) fn log_before(
        mut self,
        a: impl FnOnce(&mut Self, &mut Code) -> Result<Option<Temp>>,
    ) -> Result<()> {
        let mut code = self.new_code();
        let skip = code.name();
        self.guard(&mut code, skip);
        let a = a(&mut self, &mut code)?;
        self.log(&mut code, &Values { a, ..Values::default() });
        if self.instruction.guard.is_some() {
            code.label(skip);
        }
        self.emit(code);
        Ok(())
    }

    /// A record before the instruction, of lanes whose address counts; `values` sends the others to the label that it is
    /// given. Without values, no lane ever logs.
    pub(super) fn log_at(
        mut self,
        values: impl FnOnce(&mut Self, &mut Code, Temp) -> Result<Option<Values>>,
    ) -> Result<()> {
        let mut code = self.new_code();
        let skip = code.name();
        self.guard(&mut code, skip);
        let Some(values) = values(&mut self, &mut code, skip)? else { return Ok(()) };
        self.log(&mut code, &values);
        code.label(skip);
        self.emit(code);
        Ok(())
    }

    /// An operand that must be there.
    pub(super) fn operand(&self, index: usize) -> Result<&'p Operand<'a>> {
        let instruction: &'p Instruction<'a> = self.instruction;
        instruction.operands.get(index).ok_or_else(|| self.fault("an operand is missing"))
    }

    /// The type of the data: the last dot word that is one.
    pub(super) fn ty(&self) -> Result<Type<'a>> {
        let word = self.instruction.modifiers().iter().filter(|word| type_bytes(word.text).is_some()).last();
        let word = word.ok_or_else(|| self.fault("it has no type"))?;
        Ok(Type { name: word.text, bits: type_bytes(word.text).unwrap_or(0) * 8 })
    }

    /// An error about the instruction.
    pub(super) fn fault(&self, what: &str) -> InstrumentError {
        InstrumentError::Operand { what: what.into(), at: self.instruction.span }
    }
}
