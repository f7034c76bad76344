//! The parser: recursive descent over the lexer's words. It never fails; it returns a tree and every syntax error.
//!
//! Recovery: an error inside a statement drops that statement up to its `;` (or to a brace), and a `;` that is
//! missing at the end of a line costs nothing but the report, so one slip does not hide the next.

mod declare;
mod expr;
mod item;
mod operand;
mod statement;

use super::ast::{Module, Word};
use super::lex;
use crate::span::Span;

/// A syntax error, as data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub struct SyntaxError {
    /// The offending token, or the place after the last good one when something is missing.
    pub span: Span,
    /// What would have been right.
    pub expected: String,
    /// What stands there: a token in backticks or `end of file`.
    pub found: String,
    /// The statement or declaration it is in, such as "the operands of `add.s32`".
    pub context: String,
}

/// What parsing gives: always a tree, with all errors.
#[derive(Clone, Debug, Default)]
pub struct Parsed<'a> {
    /// The tree of all that could be read.
    pub module: Module<'a>,
    /// Every syntax error in order.
    pub errors: Vec<SyntaxError>,
}

/// Parses a PTX module.
pub fn parse(text: &str) -> Parsed<'_> {
    let mut parser = Parser { text, pos: 0, end_of_last: 0, errors: Vec::new(), depth: 0 };
    let module = parser.module();
    Parsed { module, errors: parser.errors }
}

/// Nesting beyond this is an error: it is deeper than any compiler writes and keeps the stack bounded.
const MAX_DEPTH: u32 = 200;

/// Marker: an error was recorded, the caller should resynchronise.
#[derive(Debug)]
struct Failed;

type Result<T> = std::result::Result<T, Failed>;

struct Parser<'a> {
    text: &'a str,
    pos: usize,
    /// End of the last token taken, so that "missing" can point behind it.
    end_of_last: usize,
    errors: Vec<SyntaxError>,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.pos..).unwrap_or("")
    }

    fn skip_trivia(&mut self) {
        if let Ok((_, skipped)) = lex::trivia(self.rest()) {
            self.pos += skipped.len();
        }
    }

    /// What comes next after trivia.
    fn peek(&mut self) -> Option<char> {
        self.skip_trivia();
        self.rest().chars().next()
    }

    fn at_end(&mut self) -> bool {
        self.skip_trivia();
        lex::at_end(self.rest())
    }

    /// Takes what a nom parser accepts, trivia before it skipped.
    fn take<T>(&mut self, parser: impl Fn(&'a str) -> nom::IResult<&'a str, T>) -> Option<(T, Span)> {
        self.skip_trivia();
        let (rest, out) = parser(self.rest()).ok()?;
        let start = self.pos;
        self.pos = self.text.len() - rest.len();
        self.end_of_last = self.pos;
        Some((out, Span::new(start, self.pos)))
    }

    fn take_word(&mut self, parser: impl Fn(&'a str) -> nom::IResult<&'a str, &'a str>) -> Option<Word<'a>> {
        self.take(parser).map(|(text, span)| Word { text, span })
    }

    /// Takes a punctuation text if it comes next.
    fn eat(&mut self, text: &str) -> Option<Span> {
        self.skip_trivia();
        if !self.rest().starts_with(text) {
            return None;
        }
        let span = Span::new(self.pos, self.pos + text.len());
        self.pos += text.len();
        self.end_of_last = self.pos;
        Some(span)
    }

    fn expect(&mut self, text: &str, context: &str) -> Result<Span> {
        match self.eat(text) {
            Some(span) => Ok(span),
            None => self.fail(&format!("`{text}`"), context),
        }
    }

    fn identifier(&mut self, what: &str, context: &str) -> Result<Word<'a>> {
        match self.take_word(lex::identifier) {
            Some(word) => Ok(word),
            None => self.fail(what, context),
        }
    }

    /// The token that comes next, for messages.
    fn next_token(&mut self) -> (Span, String) {
        self.skip_trivia();
        let (start, rest) = (self.pos, self.rest());
        let token = lex::identifier(rest)
            .or_else(|_| lex::directive_name(rest))
            .or_else(|_| lex::string(rest))
            .map(|(_, token)| token)
            .ok()
            .or_else(|| lex::number(rest).ok().map(|(after, _)| &rest[..rest.len() - after.len()]))
            .or_else(|| rest.chars().next().map(|c| &rest[..c.len_utf8()]));
        match token {
            Some(token) => (Span::new(start, start + token.len()), format!("`{}`", token.escape_debug())),
            None => (Span::at(self.text.len()), "end of file".into()),
        }
    }

    /// Records an error at the next token.
    fn fail<T>(&mut self, expected: &str, context: &str) -> Result<T> {
        let (span, found) = self.next_token();
        self.errors.push(SyntaxError { span, expected: expected.into(), found, context: context.into() });
        Err(Failed)
    }

    /// Takes the `;` that ends a statement. One that is missing at the end of its line is reported behind the last
    /// token and otherwise taken as written.
    fn end_statement(&mut self, context: &str) -> Result<()> {
        if self.eat(";").is_some() {
            return Ok(());
        }
        let gap = self.text.get(self.end_of_last..self.pos).unwrap_or("");
        let starts_line = gap.contains('\n') || self.rest().is_empty();
        if !starts_line {
            return self.fail("`;`", context);
        }
        let (_, found) = self.next_token();
        self.errors.push(SyntaxError {
            span: Span::at(self.end_of_last),
            expected: "`;`".into(),
            found,
            context: context.into(),
        });
        Ok(())
    }

    /// Skips to behind the next `;`, or to a brace, whichever comes first.
    fn resynchronise(&mut self) {
        loop {
            match self.peek() {
                None | Some('{' | '}') => return,
                Some(';') => {
                    self.pos += 1;
                    self.end_of_last = self.pos;
                    return;
                }
                Some('"') if lex::string(self.rest()).is_ok() => {
                    self.take(lex::string);
                }
                Some(c) => self.pos += c.len_utf8(),
            }
        }
    }

    /// Runs `f` one level deeper, or fails when that is too deep.
    fn nested<T>(&mut self, context: &str, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return self.fail(&format!("at most {MAX_DEPTH} levels of nesting"), context);
        }
        self.depth += 1;
        let out = f(self);
        self.depth -= 1;
        out
    }
}
