//! Statements of a function body.

use super::error::Context;
use super::{Parser, Result};
use crate::ptx::ast::{Block, Directive, Guard, Instruction, Operand, Registers, Statement, Word};
use crate::ptx::{List, lex};
use crate::span::Span;

/// Directives that stand only at module scope: one in a body means that a `}` is missing before it.
const MODULE_ONLY: [&str; 9] =
    [".version", ".target", ".address_size", ".visible", ".extern", ".weak", ".entry", ".func", ".section"];

impl<'a> Parser<'a> {
    /// A body or an inner scope, braces included.
    pub(super) fn block(&mut self, context: Context<'a>) -> Result<Block<'a>> {
        self.nested(|p| {
            let open = p.expect(b'{')?;
            let mut statements = Vec::new();
            loop {
                p.context = context;
                match p.peek() {
                    Some(b'}') => {
                        let close = p.expect(b'}')?;
                        statements.shrink_to_fit();
                        return Ok(Block { statements, span: open.to(close) });
                    }
                    // The tree keeps what was read; the error says that the brace is missing.
                    None => return Ok(p.unclosed(open, statements)),
                    Some(b'.') if p.at_module_only() => return Ok(p.unclosed(open, statements)),
                    _ => {}
                }
                if p.quick_statement(&mut statements) {
                    continue;
                }
                let before = p.pos;
                if p.statement(&mut statements).is_err() {
                    p.resynchronise();
                    // A `{` that was refused without a step, as one nested too deep, must not be tried again.
                    if p.pos == before && p.peek() != Some(b'}') {
                        p.step();
                    }
                }
            }
        })
    }

    #[cold]
    fn unclosed(&mut self, open: Span, statements: Vec<Statement<'a>>) -> Block<'a> {
        // One report for all scopes that the end of the text leaves open.
        if self.unclosed_at != Some(self.pos) {
            self.unclosed_at = Some(self.pos);
            let _ = self.fail_with::<()>("`}`", Some((open, "this `{` is not closed")), None);
        }
        Block { statements, span: Span::new(open.start as usize, self.end_of_last) }
    }

    fn at_module_only(&mut self) -> bool {
        self.directive_ahead().is_some_and(|name| MODULE_ONLY.contains(&name))
    }

    fn statement(&mut self, out: &mut Vec<Statement<'a>>) -> Result<()> {
        match self.peek() {
            Some(b'{') => {
                let block = self.block(Context::Is("a nested scope"))?;
                out.push(Statement::Block(block));
                Ok(())
            }
            Some(b'.') => self.directive_statement(None, out),
            Some(b';') => {
                self.eat(b';');
                Ok(())
            }
            Some(b'@') => {
                let start = self.pos;
                let guard = self.guard()?;
                let opcode = self.identifier("an instruction")?;
                self.instruction(start, Some(Box::new(guard)), opcode, out)
            }
            _ => {
                let word = self.identifier("an instruction")?;
                if self.peek() != Some(b':') || self.is_next("::") {
                    return self.instruction(word.span.start as usize, None, word, out);
                }
                self.eat(b':');
                if self.peek() == Some(b'.') && self.labels_a_directive() {
                    return self.directive_statement(Some(word), out);
                }
                out.push(Statement::Label(word));
                Ok(())
            }
        }
    }

    fn labels_a_directive(&self) -> bool {
        [".branchtargets", ".calltargets", ".callprototype"].iter().any(|name| self.is_next(name))
    }

    fn directive_statement(&mut self, label: Option<Word<'a>>, out: &mut Vec<Statement<'a>>) -> Result<()> {
        let Some(name) = self.take_word(lex::directive_name) else {
            return self.fail("a directive");
        };
        match name.text {
            ".loc" | ".file" => {
                let directive = self.line_directive(name);
                out.push(Statement::Directive { label, directive });
            }
            ".reg" => {
                let registers = self.registers(name)?;
                out.push(Statement::Registers(registers));
            }
            _ if super::declare::starts_variable(name.text) => {
                self.pos = name.span.start as usize;
                let context = Context::Is("a variable");
                self.variables(context, |variable| out.push(Statement::Variable(Box::new(variable))))?;
            }
            _ => {
                self.check_directive(name.text, name.span);
                let directive = self.directive_to_semicolon(name)?;
                out.push(Statement::Directive { label, directive });
            }
        }
        Ok(())
    }

    fn registers(&mut self, start: Word<'a>) -> Result<Registers<'a>> {
        self.context = Context::Is("a register declaration");
        let mut vector = 1;
        let ty = loop {
            let Some(word) = self.take_word(lex::directive_name) else {
                return self.fail("a type such as `.b32`");
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
            let name = self.identifier("a register name")?;
            let mut count = None;
            if self.eat(b'<').is_some() {
                // A plain number: `>` would otherwise be read as an operator.
                let Some((lex::Number::Int(value), _)) = self.take(lex::number) else {
                    return self.fail("a count");
                };
                self.expect(b'>')?;
                count = Some(u32::try_from(value).unwrap_or(u32::MAX));
            }
            names.push((name, count));
            if self.eat(b',').is_none() {
                break;
            }
        }
        self.end_statement()?;
        names.shrink_to_fit();
        Ok(Registers { ty, vector, names, span: Span::new(start.span.start as usize, self.end_of_last) })
    }

    /// `@p` or `@!p`
    fn guard(&mut self) -> Result<Guard<'a>> {
        let start = self.expect(b'@')?;
        let negated = self.eat(b'!').is_some();
        let outer = std::mem::replace(&mut self.context, Context::Is("a guard"));
        let register = self.identifier("a predicate register")?;
        self.context = outer;
        Ok(Guard { register, negated, span: start.to(register.span) })
    }

    /// What follows an opcode's first word.
    fn instruction(
        &mut self,
        start: usize,
        guard: Option<Box<Guard<'a>>>,
        opcode: Word<'a>,
        out: &mut Vec<Statement<'a>>,
    ) -> Result<()> {
        out.push(Statement::Instruction(Instruction::BLANK));
        let Some(Statement::Instruction(instruction)) = out.last_mut() else { return Ok(()) };
        (instruction.guard, instruction.opcode) = (guard, opcode);
        let read = self.words_and_operands(instruction);
        instruction.span = Span::new(start, self.end_of_last.max(start));
        if read.is_err() {
            out.pop();
        }
        read
    }

    fn words_and_operands(&mut self, instruction: &mut Instruction<'a>) -> Result<()> {
        let opcode = instruction.opcode;
        while self.eat(b'.').is_some() {
            let Some(word) = self.take_word(lex::dot_word) else {
                self.context = Context::Of("the opcode", opcode.text);
                return self.fail("a modifier after `.`");
            };
            instruction.words = self.slice(opcode.span.end as usize, word.span.end as usize);
            // `ld.const[2].u32`, the banks of PTX 1: no word of its own.
            if self.is_next("[") && word.text == "const" {
                self.bank()?;
            }
        }
        self.context =
            Context::Of("the operands of", self.slice(opcode.span.start as usize, self.end_of_last));
        self.operands(&mut instruction.operands)?;
        if self.eat(b';').is_some() { Ok(()) } else { self.without_semicolon(&mut instruction.operands) }
    }

    /// The bank in brackets behind `.const`.
    pub(super) fn bank(&mut self) -> Result<()> {
        self.expect(b'[')?;
        self.constant()?;
        self.expect(b']').map(drop)
    }

    /// What may stand where a `;` was expected.
    #[cold]
    fn without_semicolon(&mut self, operands: &mut List<Operand<'a>>) -> Result<()> {
        // `call (ret), fn, (args)` and texture forms put lists side by side without a comma now and then.
        while self.peek() == Some(b'(') {
            self.operands(operands)?;
        }
        if self.peek() != Some(b';') && !operands.is_empty() && !self.starts_line() {
            return self.fail("`,` or `;`");
        }
        self.end_statement()
    }

    /// A directive without `;`, behind its name.
    pub(super) fn line_directive(&mut self, name: Word<'a>) -> Directive<'a> {
        let args = match self.take_word(lex::line_arguments) {
            Some(args) if !args.text.is_empty() => args,
            _ => {
                // What follows is not of this directive.
                self.end_of_last = name.span.end as usize;
                Word { text: "", span: Span::at(name.span.end as usize) }
            }
        };
        Directive { name, args, span: name.span.to(args.span) }
    }

    /// A directive that ends with `;`, behind its name.
    pub(super) fn directive_to_semicolon(&mut self, name: Word<'a>) -> Result<Directive<'a>> {
        self.context = Context::Of("the directive", name.text);
        self.skip_trivia();
        let start = self.pos;
        loop {
            match self.peek() {
                Some(b';') => break,
                None | Some(b'{' | b'}') => return self.fail("`;`"),
                Some(b'"') if lex::string(self.rest()).is_ok() => {
                    self.take(lex::string);
                }
                Some(b',') => self.step(),
                // A pragma is texts, nothing else.
                Some(_) if name.text == ".pragma" => break,
                Some(_) => self.step(),
            }
        }
        let args = trimmed(self.slice(start, self.end_of_last.max(start)), start);
        self.end_statement()?;
        Ok(Directive { name, args, span: Span::new(name.span.start as usize, self.end_of_last) })
    }
}

/// The text without blanks around it, with its span.
pub(super) fn trimmed(text: &str, start: usize) -> Word<'_> {
    let lead = text.len() - text.trim_start().len();
    let text = text.trim();
    Word { text, span: Span::new(start + lead, start + lead + text.len()) }
}
