//! Variables, parameters and initialisers.

use super::error::Context;
use super::{Parser, Result};
use crate::ptx::ast::{Init, InitValue, SymbolValue, VarSpace, Variable, Word};
use crate::ptx::lex::{self, Number};
use crate::span::Span;

const LINKAGE: [&str; 4] = [".extern", ".visible", ".weak", ".common"];

fn space_of(name: &str) -> Option<VarSpace> {
    Some(match name {
        ".global" => VarSpace::Global,
        ".shared" | ".shared::cta" | ".shared::cluster" => VarSpace::Shared,
        ".local" => VarSpace::Local,
        ".const" => VarSpace::Const,
        ".param" | ".param::entry" | ".param::func" => VarSpace::Param,
        ".reg" => VarSpace::Reg,
        ".tex" | ".surf" => VarSpace::Tex,
        _ => return None,
    })
}

/// Whether a directive begins a variable declaration.
pub(super) fn starts_variable(name: &str) -> bool {
    space_of(name).is_some()
}

/// What stands before the names of a declaration.
struct Prefix<'a> {
    linkage: Option<Word<'a>>,
    space: VarSpace,
    align: Option<u64>,
    vector: u32,
    ty: Word<'a>,
    ptr: bool,
    start: usize,
}

impl<'a> Parser<'a> {
    /// One declaration with all its names, up to and including `;`.
    pub(super) fn variables(
        &mut self,
        context: Context<'a>,
        mut out: impl FnMut(Variable<'a>),
    ) -> Result<()> {
        self.context = context;
        let prefix = self.prefix()?;
        loop {
            let mut variable = self.declarator(&prefix)?;
            if self.eat(b',').is_some() {
                out(variable);
                continue;
            }
            self.end_statement()?;
            variable.span.end = variable.span.end.max(Span::at(self.end_of_last).end);
            out(variable);
            return Ok(());
        }
    }

    /// `(param, param)`, parentheses included.
    pub(super) fn parameter_list(&mut self, out: &mut Vec<Variable<'a>>) -> Result<()> {
        self.expect(b'(')?;
        if self.eat(b')').is_some() {
            return Ok(());
        }
        loop {
            let prefix = self.prefix()?;
            let parameter = self.declarator(&prefix)?;
            out.push(parameter);
            if self.eat(b',').is_none() {
                break;
            }
        }
        out.shrink_to_fit();
        if self.eat(b')').is_none() { self.fail("`,` or `)`") } else { Ok(()) }
    }

    fn prefix(&mut self) -> Result<Prefix<'a>> {
        let mut linkage = None;
        while self.directive_ahead().is_some_and(|name| LINKAGE.contains(&name)) {
            linkage = linkage.or(self.take_word(lex::directive_name));
        }
        self.skip_trivia();
        let start = linkage.map_or(self.pos, |word| word.span.start as usize);
        let (mut space, mut align, mut vector, mut ptr) = (None, None, 1, false);
        loop {
            let Some(word) = self.take_word(lex::directive_name) else {
                return self.fail("a type such as `.b32`");
            };
            match word.text {
                // `.ptr .global .align 16` of a kernel parameter describes what it points to.
                ".ptr" => ptr = true,
                ".align" => {
                    let value = self.constant()?;
                    if !ptr {
                        align = u64::try_from(value).ok();
                    }
                }
                ".v2" => vector = 2,
                ".v4" => vector = 4,
                ".v8" => vector = 8,
                ".attribute" => self.skip_parentheses()?,
                name => match space_of(name) {
                    Some(found) => {
                        // `.const[2]`, the banks of PTX 1.
                        if found == VarSpace::Const && self.is_next("[") {
                            self.bank()?;
                        }
                        space = space.or(Some(found));
                    }
                    None if self.type_follows() => {}
                    None => {
                        // `.param .u64 .ptr .global .align 8 name`: the attributes may follow the type.
                        while let Some(attribute) = self.take_word(lex::directive_name) {
                            match attribute.text {
                                ".ptr" => ptr = true,
                                ".align" => {
                                    let value = self.constant()?;
                                    if !ptr {
                                        align = align.or(u64::try_from(value).ok());
                                    }
                                }
                                _ => {}
                            }
                        }
                        let space = space.unwrap_or(VarSpace::Param);
                        return Ok(Prefix { linkage, space, align, vector, ty: word, ptr, start });
                    }
                },
            }
        }
    }

    /// Whether a type comes next, so that the dot word just read was none.
    fn type_follows(&mut self) -> bool {
        self.directive_ahead().is_some_and(|name| crate::ptx::type_bytes(name).is_some())
    }

    /// `( ... )`, with parentheses inside.
    pub(super) fn skip_parentheses(&mut self) -> Result<()> {
        self.expect(b'(')?;
        let mut open = 1u32;
        while open > 0 {
            match self.peek() {
                None | Some(b';' | b'{' | b'}') => return self.fail("`)`"),
                Some(b'(') => open = open.saturating_add(1),
                Some(b')') => open -= 1,
                Some(_) => {}
            }
            self.step();
        }
        Ok(())
    }

    fn declarator(&mut self, prefix: &Prefix<'a>) -> Result<Variable<'a>> {
        let name = match self.take_word(lex::identifier) {
            Some(name) => name,
            // An unnamed parameter is legal in prototypes.
            None if self.peek() == Some(b'_') => self.sink()?,
            None => return self.fail("a name"),
        };
        let mut dims = Vec::new();
        while self.eat(b'[').is_some() {
            if self.eat(b']').is_some() {
                dims.push(None);
                continue;
            }
            let value = self.constant()?;
            dims.push(Some(u64::try_from(value).unwrap_or(0)));
            self.expect(b']')?;
        }
        let init = match self.eat(b'=') {
            Some(_) => Some(self.initialiser()?),
            None => None,
        };
        dims.shrink_to_fit();
        Ok(Variable {
            linkage: prefix.linkage,
            space: prefix.space,
            align: prefix.align,
            vector: prefix.vector,
            ty: prefix.ty,
            ptr: prefix.ptr,
            name,
            dims,
            init,
            span: Span::new(prefix.start, self.end_of_last),
        })
    }

    fn initialiser(&mut self) -> Result<Init<'a>> {
        self.skip_trivia();
        let start = self.pos;
        let mut values = Vec::new();
        self.init_values(&mut values)?;
        values.shrink_to_fit();
        Ok(Init { values, span: Span::new(start, self.end_of_last) })
    }

    fn init_values(&mut self, values: &mut Vec<InitValue<'a>>) -> Result<()> {
        if self.eat(b'{').is_none() {
            let value = self.init_value()?;
            values.push(value);
            return Ok(());
        }
        self.nested(|p| {
            if p.eat(b'}').is_some() {
                return Ok(());
            }
            loop {
                if !p.quick_value(values) {
                    p.init_values(values)?;
                }
                if p.eat(b',').is_none() {
                    break;
                }
            }
            if p.eat(b'}').is_none() { p.fail("`,` or `}`") } else { Ok(()) }
        })
    }

    fn init_value(&mut self) -> Result<InitValue<'a>> {
        self.skip_trivia();
        match self.float() {
            Some((Number::F32(bits), _)) => return Ok(InitValue::F32(bits)),
            Some((Number::F64(bits), _)) => return Ok(InitValue::F64(bits)),
            _ => {}
        }
        // `0xFF00(sym)`: a byte of an address.
        if let Ok((rest, Number::Int(mask))) = lex::number(self.rest())
            && rest.starts_with([' ', '\t', '('])
            && rest.trim_start().starts_with('(')
        {
            self.take(lex::number);
            return self.symbol_in_parentheses(false, Some(mask as u64));
        }
        match lex::identifier(self.rest()) {
            Ok((_, "WARP_SZ")) | Err(_) => self.constant().map(|value| InitValue::Int(value.into())),
            Ok((_, "generic")) => {
                self.take_word(lex::identifier);
                self.symbol_in_parentheses(true, None)
            }
            Ok(_) => {
                let name = self.identifier("a value")?;
                if self.eat(b'=').is_some() {
                    // A property of a sampler, such as `filter_mode = nearest`.
                    return self.init_value();
                }
                let offset = self.optional_offset()?;
                let symbol = SymbolValue { name, offset, generic: false, mask: None };
                Ok(InitValue::Symbol(Box::new(symbol)))
            }
        }
    }

    fn symbol_in_parentheses(&mut self, generic: bool, mask: Option<u64>) -> Result<InitValue<'a>> {
        self.expect(b'(')?;
        let mut name = self.identifier("a symbol")?;
        let mut generic = generic;
        if name.text == "generic" && self.eat(b'(').is_some() {
            name = self.identifier("a symbol")?;
            self.expect(b')')?;
            generic = true;
        }
        let inner = self.optional_offset()?;
        self.expect(b')')?;
        let outer = self.optional_offset()?;
        let symbol = SymbolValue { name, offset: inner.wrapping_add(outer), generic, mask };
        Ok(InitValue::Symbol(Box::new(symbol)))
    }

    fn optional_offset(&mut self) -> Result<i64> {
        match self.peek() {
            Some(b'+' | b'-') => self.constant().map(|value| value as i64),
            _ => Ok(0),
        }
    }
}
