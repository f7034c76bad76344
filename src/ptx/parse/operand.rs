//! Operands.

use super::{Parser, Result};
use crate::ptx::ast::{Address, Operand, Word};
use crate::ptx::lex::{self, Number};
use crate::span::Span;

impl<'a> Parser<'a> {
    /// Comma-separated operands up to `;`, which is left.
    pub(super) fn operands(&mut self, context: &str) -> Result<Vec<Operand<'a>>> {
        let mut operands = Vec::new();
        if matches!(self.peek(), Some(';' | '}') | None) {
            return Ok(operands);
        }
        loop {
            operands.push(self.operand(context)?);
            if self.eat(",").is_none() {
                return Ok(operands);
            }
        }
    }

    fn operand(&mut self, context: &str) -> Result<Operand<'a>> {
        self.nested(context, |p| {
            let first = p.single(context)?;
            let Some(_) = p.eat("|") else { return Ok(first) };
            let second = p.single(context)?;
            let span = first.span().to(second.span());
            Ok(Operand::Pair(Box::new(first), Box::new(second), span))
        })
    }

    fn single(&mut self, context: &str) -> Result<Operand<'a>> {
        match self.peek() {
            Some('[') => self.address(context).map(Operand::Address),
            Some('{') => {
                let (items, span) = self.sequence("{", "}", context)?;
                Ok(Operand::Vector(items, span))
            }
            Some('(') if !self.is_expression_in_parentheses() => {
                let (items, span) = self.sequence("(", ")", context)?;
                Ok(Operand::List(items, span))
            }
            Some('!') => {
                let mark = self.expect("!", context)?;
                let inner = self.single(context)?;
                let span = mark.to(inner.span());
                Ok(Operand::Not(Box::new(inner), span))
            }
            Some('-') if self.negates_a_name() => {
                let mark = self.expect("-", context)?;
                let inner = self.single(context)?;
                let span = mark.to(inner.span());
                Ok(Operand::Negated(Box::new(inner), span))
            }
            Some('_') if lex::identifier(self.rest()).is_err() => {
                let span = self.expect("_", context)?;
                Ok(Operand::Name(Word { text: &self.text[span.range()], span }))
            }
            Some(c) if c.is_ascii_alphabetic() || "_$%".contains(c) => self.name_or_offset(context),
            _ => self.literal(context),
        }
    }

    /// A call's list starts like an expression; only numbers, signs, casts and parentheses make it one.
    fn is_expression_in_parentheses(&self) -> bool {
        let inner = self.rest().trim_start_matches('(');
        let inner = lex::trivia(inner).map_or(inner, |(rest, _)| rest);
        let number = lex::number(inner).ok().map(|(rest, _)| rest.trim_start());
        inner.starts_with('.') || number.is_some_and(|rest| !rest.starts_with([',', ')']))
    }

    fn negates_a_name(&self) -> bool {
        lex::identifier(self.rest()[1..].trim_start()).is_ok()
    }

    fn sequence(&mut self, open: &str, close: &str, context: &str) -> Result<(Vec<Operand<'a>>, Span)> {
        let start = self.expect(open, context)?;
        let mut items = Vec::new();
        if let Some(end) = self.eat(close) {
            return Ok((items, start.to(end)));
        }
        loop {
            items.push(self.operand(context)?);
            if self.eat(",").is_none() {
                break;
            }
        }
        let end = match self.eat(close) {
            Some(end) => end,
            None => return self.fail(&format!("`,` or `{close}`"), context),
        };
        Ok((items, start.to(end)))
    }

    /// A name with its member (`%tid.x`, `v.y`), an array element `tab[8]`, or `tab+16`.
    fn name_or_offset(&mut self, context: &str) -> Result<Operand<'a>> {
        let mut word = self.identifier("an operand", context)?;
        // A member follows without a blank; blanks around dots occur in opcodes only.
        if self.rest().starts_with('.')
            && let Ok((rest, _)) = lex::identifier(&self.rest()[1..])
        {
            self.pos = self.text.len() - rest.len();
            self.end_of_last = self.pos;
            let span = Span::new(word.span.start as usize, self.pos);
            word = Word { text: &self.text[span.range()], span };
        }
        if self.eat("[").is_some() {
            let offset = self.offset_value(context)?;
            let end = self.expect("]", context)?;
            let span = word.span.to(end);
            return Ok(Operand::Address(Address { base: Some(word), offset, extra: Vec::new(), span }));
        }
        if matches!(self.peek(), Some('+' | '-')) {
            let offset = self.offset_value(context)?;
            let span = Span::new(word.span.start as usize, self.end_of_last);
            return Ok(Operand::Offset(word, offset, span));
        }
        Ok(Operand::Name(word))
    }

    /// `[base]`, `[base+offset]`, `[offset]`, `[base, extra...]`.
    fn address(&mut self, context: &str) -> Result<Address<'a>> {
        let start = self.expect("[", context)?;
        let base = match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || "_$%".contains(c) => {
                Some(self.identifier("a register or a variable", context)?)
            }
            _ => None,
        };
        let has_offset = base.is_none() || matches!(self.peek(), Some('+' | '-'));
        let offset = if has_offset { self.offset_value(context)? } else { 0 };
        let mut extra = Vec::new();
        while self.eat(",").is_some() {
            extra.push(self.operand(context)?);
        }
        let end = match self.eat("]") {
            Some(end) => end,
            None => return self.fail("`+`, `,` or `]`", context),
        };
        Ok(Address { base, offset, extra, span: start.to(end) })
    }

    fn offset_value(&mut self, context: &str) -> Result<i64> {
        let value = self.constant(context)?;
        // Offsets wrap to 64 bits, as ptxas reads them.
        Ok(value as i64)
    }

    fn literal(&mut self, context: &str) -> Result<Operand<'a>> {
        self.skip_trivia();
        let start = self.pos;
        let negative = self.rest().starts_with('-');
        let digits = self.rest()[usize::from(negative)..].trim_start();
        let float = match lex::number(digits) {
            Ok((rest, Number::F32(bits))) => Some((rest, Number::F32(bits ^ (u32::from(negative) << 31)))),
            Ok((rest, Number::F64(bits))) => Some((rest, Number::F64(bits ^ (u64::from(negative) << 63)))),
            _ => None,
        };
        if let Some((rest, number)) = float {
            self.pos = self.text.len() - rest.len();
            self.end_of_last = self.pos;
            let span = Span::new(start, self.pos);
            return Ok(match number {
                Number::F32(bits) => Operand::F32(bits, span),
                Number::F64(bits) => Operand::F64(bits, span),
                Number::Int(value) => Operand::Int(value, span),
            });
        }
        if !matches!(self.peek(), Some(c) if c.is_ascii_digit() || "-+~(!".contains(c)) {
            return self.fail("an operand", context);
        }
        let value = self.constant(context)?;
        Ok(Operand::Int(value, Span::new(start, self.end_of_last)))
    }
}
