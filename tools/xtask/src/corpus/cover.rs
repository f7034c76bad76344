//! The text of a module, put together from its tree.
//!
//! The tree has no blanks and comments; these are taken from the text between two nodes. Anything else there is text that
//! the tree has lost.

use ptxrace::ptx::ast::{Block, Function, Item, Module, Statement};
use ptxrace::span::Span;

/// Prints the nodes in order. `Err` gives the first byte that no node covers although it is neither blank nor comment.
pub(super) fn print(text: &str, module: &Module<'_>) -> Result<String, usize> {
    let mut printer = Printer { text, out: String::with_capacity(text.len()), at: 0 };
    for item in &module.items {
        match item {
            Item::Directive(directive) => printer.node(directive.span)?,
            Item::Variable(variable) => printer.node(variable.span)?,
            Item::Function(function) => printer.function(function)?,
        }
    }
    printer.trivia(text.len())?;
    Ok(printer.out)
}

struct Printer<'t> {
    text: &'t str,
    out: String,
    /// All before this byte is printed.
    at: usize,
}

impl Printer<'_> {
    fn function(&mut self, function: &Function<'_>) -> Result<(), usize> {
        let Some(body) = &function.body else { return self.node(function.span) };
        self.node(Span { start: function.span.start, end: body.span.start })?;
        self.block(body)
    }

    fn block(&mut self, block: &Block<'_>) -> Result<(), usize> {
        self.trivia(block.span.range().start)?;
        self.word("{")?;
        for statement in &block.statements {
            match statement {
                Statement::Block(inner) => self.block(inner)?,
                Statement::Label(label) => {
                    self.node(label.span)?;
                    // The colon may stand apart.
                    let colon = self.text.get(self.at..).and_then(|rest| rest.find(':')).ok_or(self.at)?;
                    self.trivia(self.at + colon)?;
                    self.word(":")?;
                }
                Statement::Registers(registers) => self.node(registers.span)?,
                Statement::Variable(variable) => self.node(variable.span)?,
                Statement::Instruction(instruction) => self.node(instruction.span)?,
                Statement::Directive { label, directive } => {
                    let start = label.map_or(directive.span.start, |label| label.span.start);
                    self.node(Span { start, end: directive.span.end })?;
                }
            }
        }
        let end = block.span.range().end.checked_sub(1).ok_or(self.at)?;
        self.trivia(end)?;
        self.word("}")
    }

    /// What the tree knows to be between these bytes, with the blanks before it.
    fn node(&mut self, span: Span) -> Result<(), usize> {
        let range = span.range();
        self.trivia(range.start)?;
        self.out.push_str(self.text.get(range.clone()).ok_or(self.at)?);
        self.at = range.end;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), usize> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.at);
        }
        self.out.push_str(word);
        self.at += word.len();
        Ok(())
    }

    fn trivia(&mut self, end: usize) -> Result<(), usize> {
        let text = self.text.get(self.at..end).ok_or(self.at)?;
        let rest = skip_trivia(text);
        if !rest.is_empty() {
            return Err(end - rest.len());
        }
        self.out.push_str(text);
        self.at = end;
        Ok(())
    }
}

/// What is left behind blanks, empty statements, comments and the lines of a preprocessor.
fn skip_trivia(mut text: &str) -> &str {
    loop {
        let before = text.len();
        text = text
            .trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}' || c == '\0' || c == ';');
        if let Some(comment) = text.strip_prefix("/*") {
            text = comment.find("*/").and_then(|at| comment.get(at + 2..)).unwrap_or("");
        } else if text.starts_with("//") || text.starts_with('#') {
            text = text.find('\n').and_then(|at| text.get(at..)).unwrap_or("");
        }
        if text.len() == before {
            return text;
        }
    }
}
