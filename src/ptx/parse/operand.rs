//! Operands.

use super::{MAX_DEPTH, Parser, Result};
use crate::ptx::List;
use crate::ptx::ast::{Address, Operand, Sequence, Word};
use crate::ptx::lex::{self, Number};
use crate::span::Span;

impl<'a> Parser<'a> {
    /// Comma-separated operands up to `;`, which is left.
    #[inline]
    pub(super) fn operands(&mut self, out: &mut List<Operand<'a>>) -> Result<()> {
        if matches!(self.peek(), Some(b';' | b'}') | None) {
            return Ok(());
        }
        loop {
            let operand = self.operand()?;
            out.push(operand);
            if self.eat(b',').is_none() {
                return Ok(());
            }
        }
    }

    #[inline]
    fn operand(&mut self) -> Result<Operand<'a>> {
        let first = self.single()?;
        if self.eat(b'|').is_none() {
            return Ok(first);
        }
        let second = self.single()?;
        let span = first.span().to(second.span());
        Ok(Operand::Pair(Box::new([first, second]), span))
    }

    fn single(&mut self) -> Result<Operand<'a>> {
        let next = self.peek();
        match next {
            Some(b'W') if matches!(lex::identifier(self.rest()), Ok((_, "WARP_SZ"))) => self.literal(),
            Some(b'%' | b'a'..=b'z' | b'A'..=b'Z' | b'$') => self.name_or_offset(),
            Some(b'[') => self.nested(Self::address),
            Some(b'{') => {
                let items = self.sequence(b'{', b'}')?;
                Ok(Operand::Vector(items))
            }
            Some(b'(') if !self.is_expression_in_parentheses() => {
                let items = self.sequence(b'(', b')')?;
                Ok(Operand::List(items))
            }
            Some(b'!') => {
                let mark = self.expect(b'!')?;
                let inner = self.nested(Self::single)?;
                let span = mark.to(inner.span());
                Ok(Operand::Not(Box::new(inner), span))
            }
            Some(b'-') if self.negates_a_name() => {
                let mark = self.expect(b'-')?;
                let inner = self.nested(Self::single)?;
                let span = mark.to(inner.span());
                Ok(Operand::Negated(Box::new(inner), span))
            }
            Some(b'_') if lex::identifier(self.rest()).is_err() => self.sink().map(Operand::from),
            Some(b'_') => self.name_or_offset(),
            _ => self.literal(),
        }
    }

    /// `_`
    pub(super) fn sink(&mut self) -> Result<Word<'a>> {
        let span = self.expect(b'_')?;
        Ok(Word { text: self.slice(span.start as usize, span.end as usize), span })
    }

    /// A call's list starts like an expression; only numbers, signs, casts and parentheses make it one.
    fn is_expression_in_parentheses(&self) -> bool {
        // What is nested deeper is refused anyway, and looking at all of it each time would take forever.
        let opening = self.rest().bytes().take(MAX_DEPTH as usize).take_while(|byte| *byte == b'(').count();
        let inner = self.rest().get(opening..).unwrap_or("");
        let inner = lex::trivia(inner).map_or(inner, |(rest, _)| rest);
        let number =
            lex::number(inner).ok().map(|(rest, _)| lex::trivia(rest).map_or(rest, |(rest, _)| rest));
        inner.starts_with('.') || number.is_some_and(|rest| !rest.starts_with([',', ')']))
    }

    fn negates_a_name(&self) -> bool {
        let behind = self.rest().get(1..).unwrap_or("");
        behind.bytes().find(|byte| !byte.is_ascii_whitespace()).is_some_and(lex::starts_name)
    }

    fn sequence(&mut self, open: u8, close: u8) -> Result<Box<Sequence<'a>>> {
        let start = self.expect(open)?;
        let mut items = List::default();
        if let Some(end) = self.eat(close) {
            return Ok(Box::new(Sequence { items, span: start.to(end) }));
        }
        self.nested(|p| {
            loop {
                let item = p.operand()?;
                items.push(item);
                if p.eat(b',').is_none() {
                    return Ok(());
                }
            }
        })?;
        match self.eat(close) {
            Some(end) => Ok(Box::new(Sequence { items, span: start.to(end) })),
            None => self.fail(format_args!("`,` or `{}`", char::from(close))),
        }
    }

    /// A name with its member (`%tid.x`, `v.y`).
    #[inline]
    fn name(&mut self, what: &'static str) -> Result<Word<'a>> {
        let word = self.identifier(what)?;
        // A member follows without a blank; blanks around dots occur in opcodes only.
        if !self.is_next(".") {
            return Ok(word);
        }
        let member = lex::identifier(self.slice(self.pos + 1, self.text.len()));
        let Ok((rest, _)) = member else { return Ok(word) };
        self.pos = self.text.len() - rest.len();
        self.end_of_last = self.pos;
        let start = word.span.start as usize;
        Ok(Word { text: self.slice(start, self.pos), span: Span::new(start, self.pos) })
    }

    /// A name, an array element `tab[8]`, or `tab+16`.
    #[inline]
    fn name_or_offset(&mut self) -> Result<Operand<'a>> {
        let word = self.name("an operand")?;
        match self.peek() {
            Some(b'[') => {
                self.expect(b'[')?;
                let offset = self.offset_value()?;
                let span = word.span.to(self.expect(b']')?);
                Ok(Operand::Address(Box::new(Address {
                    base: Some(word),
                    offset,
                    extra: Box::default(),
                    span,
                })))
            }
            Some(b'+' | b'-') => {
                let offset = self.offset_value()?;
                let span = Span::new(word.span.start as usize, self.end_of_last);
                Ok(Operand::Offset(Box::new((word, offset)), span))
            }
            _ => Ok(word.into()),
        }
    }

    /// `[base]`, `[base+offset]`, `[offset]`, `[base, extra...]`.
    fn address(&mut self) -> Result<Operand<'a>> {
        let start = self.expect(b'[')?;
        let base = match self.peek() {
            Some(next) if lex::starts_name(next) => Some(self.name("a register or a variable")?),
            _ => None,
        };
        let has_offset = base.is_none() || matches!(self.peek(), Some(b'+' | b'-'));
        let offset = if has_offset { self.offset_value()? } else { 0 };
        let mut extra = Vec::new();
        while self.eat(b',').is_some() {
            let operand = self.operand()?;
            extra.push(operand);
        }
        match self.eat(b']') {
            Some(end) => {
                let span = start.to(end);
                Ok(Operand::Address(Box::new(Address { base, offset, extra: extra.into(), span })))
            }
            None => self.fail("`+`, `,` or `]`"),
        }
    }

    fn offset_value(&mut self) -> Result<i64> {
        // Offsets wrap to 64 bits, as ptxas reads them.
        self.constant().map(|value| value as i64)
    }

    /// Takes a floating-point literal with its sign.
    pub(super) fn float(&mut self) -> Option<(Number, Span)> {
        let start = self.pos;
        let negative = self.is_next("-");
        let digits = self.rest().get(usize::from(negative)..)?;
        let digits = digits.trim_start_matches([' ', '\t']);
        let (rest, number) = match lex::number(digits).ok()? {
            (rest, Number::F32(bits)) => (rest, Number::F32(bits ^ (u32::from(negative) << 31))),
            (rest, Number::F64(bits)) => (rest, Number::F64(bits ^ (u64::from(negative) << 63))),
            (_, Number::Int(_)) => return None,
        };
        self.pos = self.text.len() - rest.len();
        self.end_of_last = self.pos;
        Some((number, Span::new(start, self.pos)))
    }

    fn literal(&mut self) -> Result<Operand<'a>> {
        match self.peek() {
            Some(b'0'..=b'9' | b'-') => {}
            Some(b'+' | b'~' | b'(' | b'!' | b'W') => {}
            _ => return self.fail("an operand"),
        }
        match self.float() {
            Some((Number::F32(bits), span)) => return Ok(Operand::F32(bits, span)),
            Some((Number::F64(bits), span)) => return Ok(Operand::F64(bits, span)),
            _ => {}
        }
        let start = self.pos;
        let value = self.constant()?;
        Ok(Operand::Int(value.into(), Span::new(start, self.end_of_last)))
    }
}
