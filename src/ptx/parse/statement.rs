//! Statements of a function body.

use super::{Parser, Result};
use crate::ptx::ast::{Block, Directive, Guard, Instruction, Registers, Statement, Word};
use crate::ptx::lex;
use crate::span::Span;

impl<'a> Parser<'a> {
    /// A body or an inner scope, braces included.
    pub(super) fn block(&mut self, context: &str) -> Result<Block<'a>> {
        self.nested(context, |p| {
            let open = p.expect("{", context)?;
            let mut statements = Vec::new();
            loop {
                if let Some(close) = p.eat("}") {
                    return Ok(Block { statements, span: open.to(close) });
                }
                if p.at_end() {
                    // The tree keeps what was read; the error says that the brace is missing.
                    let _ = p.fail::<()>("`}`", context);
                    return Ok(Block { statements, span: Span::new(open.start as usize, p.end_of_last) });
                }
                let before = p.pos;
                if p.statement(&mut statements).is_err() {
                    p.resynchronise();
                    // A `{` that was refused without a step, as one nested too deep, must not be tried again.
                    if p.pos == before && p.peek() != Some('}') {
                        p.pos += p.peek().map_or(0, char::len_utf8);
                    }
                }
            }
        })
    }

    fn statement(&mut self, out: &mut Vec<Statement<'a>>) -> Result<()> {
        match self.peek() {
            Some('{') => {
                let block = self.block("a nested scope")?;
                out.push(Statement::Block(block));
                Ok(())
            }
            Some('.') => self.directive_statement(None, out),
            Some(';') => {
                self.eat(";");
                Ok(())
            }
            Some('@') => self.instruction(out),
            _ => match self.label() {
                Some(label) if self.peek() == Some('.') && self.labels_a_directive() => {
                    self.directive_statement(Some(label), out)
                }
                Some(label) => {
                    out.push(Statement::Label(label));
                    Ok(())
                }
                None => self.instruction(out),
            },
        }
    }

    /// `name:`, unless a second colon follows.
    fn label(&mut self) -> Option<Word<'a>> {
        self.skip_trivia();
        let (rest, _) = lex::identifier(self.rest()).ok()?;
        let (rest, _) = lex::trivia(rest).ok()?;
        if !rest.starts_with(':') || rest.starts_with("::") {
            return None;
        }
        let word = self.take_word(lex::identifier);
        self.eat(":");
        word
    }

    fn labels_a_directive(&self) -> bool {
        [".branchtargets", ".calltargets", ".callprototype"].iter().any(|name| self.rest().starts_with(name))
    }

    fn directive_statement(&mut self, label: Option<Word<'a>>, out: &mut Vec<Statement<'a>>) -> Result<()> {
        let Ok((_, name)) = lex::directive_name(self.rest()) else {
            return self.fail("a directive", "a function body");
        };
        match name {
            ".reg" => {
                let registers = self.registers()?;
                out.push(Statement::Registers(registers));
            }
            ".loc" | ".file" => {
                let directive = self.line_directive();
                out.push(Statement::Directive { label, directive });
            }
            _ if self.starts_variable() => {
                let variables = self.variables("a variable")?;
                out.extend(variables.into_iter().map(Statement::Variable));
            }
            _ => {
                let directive = self.directive_to_semicolon(name)?;
                out.push(Statement::Directive { label, directive });
            }
        }
        Ok(())
    }

    fn registers(&mut self) -> Result<Registers<'a>> {
        let context = "a register declaration";
        let start = self.expect(".reg", context)?;
        let mut vector = 1;
        let ty = loop {
            let Some(word) = self.take_word(lex::directive_name) else {
                return self.fail("a type such as `.b32`", context);
            };
            match word.text {
                ".v2" => vector = 2,
                ".v4" => vector = 4,
                ".v8" => vector = 8,
                _ => break word,
            }
        };
        let mut names = Vec::new();
        loop {
            let name = self.identifier("a register name", context)?;
            let mut count = None;
            if self.eat("<").is_some() {
                let value = self.constant_until(">", context)?;
                count = Some(u32::try_from(value).unwrap_or(u32::MAX));
            }
            names.push((name, count));
            if self.eat(",").is_none() {
                break;
            }
        }
        self.end_statement(context)?;
        Ok(Registers { ty, vector, names, span: Span::new(start.start as usize, self.end_of_last) })
    }

    /// A plain number and the closing text; `>` would otherwise be read as an operator.
    fn constant_until(&mut self, close: &str, context: &str) -> Result<i128> {
        let Some((lex::Number::Int(value), _)) = self.take(lex::number) else {
            return self.fail("a count", context);
        };
        self.expect(close, context)?;
        Ok(value)
    }

    fn guard(&mut self) -> Result<Option<Guard<'a>>> {
        let Some(start) = self.eat("@") else { return Ok(None) };
        let negated = self.eat("!").is_some();
        let register = self.identifier("a predicate register", "a guard")?;
        Ok(Some(Guard { register, negated, span: start.to(register.span) }))
    }

    fn instruction(&mut self, out: &mut Vec<Statement<'a>>) -> Result<()> {
        self.skip_trivia();
        let start = self.pos;
        let guard = self.guard()?;
        let opcode = self.identifier("an instruction", "a function body")?;
        let mut modifiers = Vec::new();
        while self.eat(".").is_some() {
            match self.take_word(lex::dot_word) {
                Some(word) => modifiers.push(word),
                None => return self.fail("a modifier after `.`", &format!("the opcode `{}`", opcode.text)),
            }
        }
        let name = modifiers.iter().fold(opcode.text.to_owned(), |name, word| name + "." + word.text);
        let context = format!("the operands of `{name}`");
        let mut operands = self.operands(&context)?;
        // `call (ret), fn, (args)` and texture forms put lists side by side without a comma now and then.
        while matches!(self.peek(), Some('(')) {
            operands.extend(self.operands(&context)?);
        }
        if self.peek() != Some(';') && !operands.is_empty() && !self.starts_line() {
            return self.fail("`,` or `;`", &context);
        }
        self.end_statement(&context)?;
        let span = Span::new(start, self.end_of_last);
        out.push(Statement::Instruction(Instruction { guard, opcode, modifiers, operands, span }));
        Ok(())
    }

    fn starts_line(&mut self) -> bool {
        self.skip_trivia();
        self.rest().is_empty()
            || self.text.get(self.end_of_last..self.pos).is_some_and(|gap| gap.contains('\n'))
    }

    /// A directive that ends with its line.
    pub(super) fn line_directive(&mut self) -> Directive<'a> {
        self.skip_trivia();
        let start = self.pos;
        let name = self.take_word(lex::directive_name);
        let name = name.unwrap_or(Word { text: "", span: Span::at(start) });
        let text = lex::rest_of_line(self.rest()).map_or("", |(_, text)| text);
        // A comment at the end of the line is no argument.
        let text = text.split("//").next().unwrap_or("");
        let args = trimmed(text, self.pos);
        self.pos += text.len();
        self.end_of_last = args.span.end as usize;
        Directive { name, args, span: name.span.to(args.span) }
    }

    /// A directive that ends with `;`.
    pub(super) fn directive_to_semicolon(&mut self, what: &str) -> Result<Directive<'a>> {
        let Some(name) = self.take_word(lex::directive_name) else {
            return self.fail("a directive", what);
        };
        self.skip_trivia();
        let start = self.pos;
        loop {
            match self.peek() {
                Some(';') => break,
                None | Some('{' | '}') => return self.fail("`;`", &format!("the directive `{what}`")),
                Some('"') if lex::string(self.rest()).is_ok() => {
                    self.take(lex::string);
                }
                Some(c) => {
                    self.pos += c.len_utf8();
                    self.end_of_last = self.pos;
                }
            }
        }
        let args = trimmed(&self.text[start..self.pos], start);
        let end = self.expect(";", what)?;
        Ok(Directive { name, args, span: name.span.to(end) })
    }
}

/// The text without blanks around it, with its span.
pub(super) fn trimmed(text: &str, start: usize) -> Word<'_> {
    let lead = text.len() - text.trim_start().len();
    let text = text.trim();
    Word { text, span: Span::new(start + lead, start + lead + text.len()) }
}
