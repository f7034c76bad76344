//! Variables, parameters and initialisers.

use super::{Parser, Result};
use crate::ptx::ast::{Init, InitValue, VarSpace, Variable, Word};
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
        ".tex" => VarSpace::Tex,
        _ => return None,
    })
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
    /// Whether a variable declaration comes next.
    pub(super) fn starts_variable(&self) -> bool {
        lex::directive_name(self.rest()).is_ok_and(|(_, name)| space_of(name).is_some())
    }

    /// Takes `.extern` and its like.
    pub(super) fn linkage(&mut self) -> Option<Word<'a>> {
        self.skip_trivia();
        let (_, name) = lex::directive_name(self.rest()).ok()?;
        if LINKAGE.contains(&name) { self.take_word(lex::directive_name) } else { None }
    }

    /// One declaration with all its names, up to and including `;`.
    pub(super) fn variables(&mut self, context: &str) -> Result<Vec<Variable<'a>>> {
        let prefix = self.prefix(context)?;
        let mut variables = Vec::new();
        loop {
            variables.push(self.declarator(&prefix, context)?);
            if self.eat(",").is_none() {
                break;
            }
        }
        self.end_statement(context)?;
        if let Some(last) = variables.last_mut() {
            last.span.end = last.span.end.max(Span::at(self.end_of_last).end);
        }
        Ok(variables)
    }

    /// `(param, param)`, parentheses included.
    pub(super) fn parameters(&mut self, context: &str) -> Result<Vec<Variable<'a>>> {
        self.expect("(", context)?;
        let mut parameters = Vec::new();
        if self.eat(")").is_some() {
            return Ok(parameters);
        }
        loop {
            let prefix = self.prefix(context)?;
            parameters.push(self.declarator(&prefix, context)?);
            if self.eat(",").is_none() {
                break;
            }
        }
        if self.eat(")").is_none() {
            return self.fail("`,` or `)`", context);
        }
        Ok(parameters)
    }

    fn prefix(&mut self, context: &str) -> Result<Prefix<'a>> {
        let linkage = self.linkage();
        self.skip_trivia();
        let start = linkage.map_or(self.pos, |word| word.span.start as usize);
        let (mut space, mut align, mut vector, mut ptr) = (None, None, 1, false);
        loop {
            let Some(word) = self.take_word(lex::directive_name) else {
                return self.fail("a type such as `.b32`", context);
            };
            match word.text {
                // `.ptr .global .align 16` of a kernel parameter describes what it points to.
                ".ptr" => ptr = true,
                ".align" => {
                    let value = self.constant(context)?;
                    if !ptr {
                        align = u64::try_from(value).ok();
                    }
                }
                ".v2" => vector = 2,
                ".v4" => vector = 4,
                ".v8" => vector = 8,
                ".attribute" => self.skip_parentheses(context)?,
                name if space.is_none() && space_of(name).is_some() => space = space_of(name),
                name if space_of(name).is_some() => {}
                _ if ptr_type_follows(self.rest()) => {}
                _ => {
                    // `.param .u64 .ptr .global .align 8 name`: the attributes may follow the type.
                    let mut attribute = self.take_attribute(context)?;
                    while let Some(found) = attribute {
                        ptr |= found;
                        attribute = self.take_attribute(context)?;
                    }
                    let space = space.unwrap_or(VarSpace::Param);
                    return Ok(Prefix { linkage, space, align, vector, ty: word, ptr, start });
                }
            }
        }
    }

    /// Takes one attribute behind the type; tells whether it was `.ptr`.
    fn take_attribute(&mut self, context: &str) -> Result<Option<bool>> {
        let Some(word) = self.take_word(lex::directive_name) else { return Ok(None) };
        match word.text {
            ".ptr" => Ok(Some(true)),
            ".align" => {
                self.constant(context)?;
                Ok(Some(false))
            }
            _ => Ok(Some(false)),
        }
    }

    fn skip_parentheses(&mut self, context: &str) -> Result<()> {
        self.expect("(", context)?;
        while !matches!(self.peek(), None | Some(')' | ';' | '{' | '}')) {
            self.pos += self.peek().map_or(0, char::len_utf8);
        }
        self.expect(")", context).map(drop)
    }

    fn declarator(&mut self, prefix: &Prefix<'a>, context: &str) -> Result<Variable<'a>> {
        // An unnamed parameter is legal in prototypes.
        let name = match self.take_word(lex::identifier) {
            Some(name) => name,
            None => match self.eat("_") {
                Some(span) => Word { text: "_", span },
                None => return self.fail("a name", context),
            },
        };
        let mut dims = Vec::new();
        while self.eat("[").is_some() {
            if self.eat("]").is_some() {
                dims.push(None);
                continue;
            }
            let value = self.constant(context)?;
            dims.push(Some(u64::try_from(value).unwrap_or(0)));
            self.expect("]", context)?;
        }
        let init = match self.eat("=") {
            Some(_) => Some(self.initialiser(context)?),
            None => None,
        };
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

    fn initialiser(&mut self, context: &str) -> Result<Init<'a>> {
        self.skip_trivia();
        let start = self.pos;
        let mut values = Vec::new();
        self.init_values(&mut values, context)?;
        Ok(Init { values, span: Span::new(start, self.end_of_last) })
    }

    fn init_values(&mut self, values: &mut Vec<InitValue<'a>>, context: &str) -> Result<()> {
        if self.eat("{").is_none() {
            let value = self.init_value(context)?;
            values.push(value);
            return Ok(());
        }
        self.nested(context, |p| {
            if p.eat("}").is_some() {
                return Ok(());
            }
            loop {
                p.init_values(values, context)?;
                if p.eat(",").is_none() {
                    break;
                }
            }
            if p.eat("}").is_none() {
                return p.fail("`,` or `}`", context);
            }
            Ok(())
        })
    }

    fn init_value(&mut self, context: &str) -> Result<InitValue<'a>> {
        self.skip_trivia();
        let negative = self.rest().starts_with('-');
        let digits = self.rest()[usize::from(negative)..].trim_start();
        match lex::number(digits) {
            Ok((rest, Number::F32(bits))) => {
                self.pos = self.text.len() - rest.len();
                self.end_of_last = self.pos;
                return Ok(InitValue::F32(bits ^ (u32::from(negative) << 31)));
            }
            Ok((rest, Number::F64(bits))) => {
                self.pos = self.text.len() - rest.len();
                self.end_of_last = self.pos;
                return Ok(InitValue::F64(bits ^ (u64::from(negative) << 63)));
            }
            // `0xFF00(sym)` masks a byte of an address; the mask is kept out of the tree, the text has it.
            Ok((rest, Number::Int(_))) if rest.trim_start().starts_with('(') && !negative => {
                self.pos = self.text.len() - rest.len();
                return self.symbol_in_parentheses(false, context);
            }
            _ => {}
        }
        if lex::identifier(self.rest()).is_ok() {
            let word = self.identifier("a value", context)?;
            if word.text == "generic" && self.peek() == Some('(') {
                return self.symbol_in_parentheses(true, context);
            }
            if word.text == "WARP_SZ" {
                return Ok(InitValue::Int(32));
            }
            let offset = self.optional_offset(context)?;
            return Ok(InitValue::Symbol { name: word, offset, generic: false });
        }
        self.constant(context).map(InitValue::Int)
    }

    fn symbol_in_parentheses(&mut self, generic: bool, context: &str) -> Result<InitValue<'a>> {
        self.expect("(", context)?;
        let mut name = self.identifier("a symbol", context)?;
        let mut generic = generic;
        let nested = name.text == "generic" && self.eat("(").is_some();
        if nested {
            name = self.identifier("a symbol", context)?;
            self.expect(")", context)?;
            generic = true;
        }
        let inner = self.optional_offset(context)?;
        self.expect(")", context)?;
        let outer = self.optional_offset(context)?;
        Ok(InitValue::Symbol { name, offset: inner.wrapping_add(outer), generic })
    }

    fn optional_offset(&mut self, context: &str) -> Result<i64> {
        match self.peek() {
            Some('+' | '-') => self.constant(context).map(|value| value as i64),
            _ => Ok(0),
        }
    }
}

/// Whether another dot word follows at once, so that the one just read was not the type.
fn ptr_type_follows(rest: &str) -> bool {
    let after = lex::trivia(rest).map_or(rest, |(rest, _)| rest);
    lex::directive_name(after).is_ok_and(|(_, name)| crate::ptx::type_bytes(name).is_some())
}
