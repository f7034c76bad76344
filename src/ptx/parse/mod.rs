//! The parser: recursive descent over the lexer's words. It never fails; it returns a tree and the syntax errors.
//!
//! Recovery: an error inside a statement drops that statement up to its `;` (or to a brace), and a `;` that is
//! missing at the end of a line costs nothing but the report, so one slip does not hide the next.
//!
//! Every step looks at a byte a bounded number of times, so that time and memory are linear in the text, whatever it is.

mod declare;
mod error;
mod expr;
mod item;
mod operand;
mod quick;
mod statement;

use super::ast::{Module, Word};
use super::lex;
use crate::span::Span;
use error::Context;
pub use error::{MAX_ERRORS, SyntaxError};

/// What parsing gives: always a tree, with the errors.
#[derive(Clone, Debug, Default)]
pub struct Parsed<'a> {
    /// The tree of all that could be read.
    pub module: Module<'a>,
    /// The syntax errors in the order they were met, at most `MAX_ERRORS`.
    pub errors: Vec<SyntaxError>,
    /// How many more there were.
    pub more_errors: usize,
}

/// Parses a PTX module.
pub fn parse(text: &str) -> Parsed<'_> {
    parse_by(text, true)
}

/// With or without the short ways of `quick`, which change nothing but the time.
fn parse_by(text: &str, is_quick: bool) -> Parsed<'_> {
    let mut parser = Parser {
        text,
        pos: 0,
        end_of_last: 0,
        context: Context::Is("the module"),
        errors: Vec::new(),
        more_errors: 0,
        unclosed_at: None,
        depth: 0,
        knows_directives: true,
        is_quick,
    };
    let module = parser.module();
    Parsed { module, errors: parser.errors, more_errors: parser.more_errors }
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
    /// What is being read, for errors.
    context: Context<'a>,
    errors: Vec<SyntaxError>,
    more_errors: usize,
    /// Where the last missing `}` was reported, so that it is reported once for all scopes that it leaves open.
    unclosed_at: Option<usize>,
    depth: u32,
    /// Whether the module's version is one whose directives are all listed.
    knows_directives: bool,
    is_quick: bool,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.pos..).unwrap_or("")
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or("")
    }

    #[inline]
    fn skip_trivia(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.pos) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.pos += 1,
                Some(b'/' | b'#' | 0 | 0x0b | 0x0c | 0x80..) => return self.skip_rare_trivia(),
                _ => return,
            }
        }
    }

    #[cold]
    fn skip_rare_trivia(&mut self) {
        let Ok((rest, skipped)) = lex::trivia(self.rest()) else { return };
        let start = self.pos;
        self.pos += skipped.len();
        if rest.is_empty()
            && let Some(at) = lex::open_comment(skipped)
        {
            self.unclosed_comment(Span::new(start + at, start + at + "/*".len()));
        }
    }

    /// The byte that comes next after trivia.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        self.skip_trivia();
        self.text.as_bytes().get(self.pos).copied()
    }

    fn at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Whether the text of a token comes next, where `peek` has been.
    fn is_next(&self, text: &str) -> bool {
        self.text.as_bytes().get(self.pos..).is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    /// Goes over one character.
    fn step(&mut self) {
        self.pos += self.rest().chars().next().map_or(0, char::len_utf8);
        self.end_of_last = self.pos;
    }

    /// Takes what a nom parser accepts, trivia before it skipped.
    #[inline]
    fn take<T>(&mut self, parser: impl Fn(&'a str) -> nom::IResult<&'a str, T>) -> Option<(T, Span)> {
        self.skip_trivia();
        let (rest, out) = parser(self.rest()).ok()?;
        let start = self.pos;
        self.pos = self.text.len() - rest.len();
        self.end_of_last = self.pos;
        Some((out, Span::new(start, self.pos)))
    }

    #[inline]
    fn take_word(&mut self, parser: impl Fn(&'a str) -> nom::IResult<&'a str, &'a str>) -> Option<Word<'a>> {
        self.take(parser).map(|(text, span)| Word { text, span })
    }

    /// Takes a mark if it comes next.
    #[inline]
    fn eat(&mut self, mark: u8) -> Option<Span> {
        if self.peek() != Some(mark) {
            return None;
        }
        let span = Span::new(self.pos, self.pos + 1);
        self.pos += 1;
        self.end_of_last = self.pos;
        Some(span)
    }

    fn expect(&mut self, mark: u8) -> Result<Span> {
        match self.eat(mark) {
            Some(span) => Ok(span),
            None => self.fail(format_args!("`{}`", char::from(mark))),
        }
    }

    #[inline]
    fn identifier(&mut self, what: &'static str) -> Result<Word<'a>> {
        match self.take_word(lex::identifier) {
            Some(word) => Ok(word),
            None => self.fail(what),
        }
    }

    /// The name of the directive that comes next.
    fn directive_ahead(&mut self) -> Option<&'a str> {
        match self.peek() {
            Some(b'.') => lex::directive_name(self.rest()).ok().map(|(_, name)| name),
            _ => None,
        }
    }

    /// Takes the `;` that ends a statement. One that is missing at the end of its line is reported behind the last
    /// token and otherwise taken as written.
    #[inline]
    fn end_statement(&mut self) -> Result<()> {
        if self.eat(b';').is_some() { Ok(()) } else { self.missing_semicolon() }
    }

    #[cold]
    fn missing_semicolon(&mut self) -> Result<()> {
        if !self.starts_line() {
            return self.fail("`;`");
        }
        self.fail_behind_last("`;`");
        Ok(())
    }

    /// Whether what comes next is the first of its line, or nothing comes.
    fn starts_line(&mut self) -> bool {
        self.skip_trivia();
        self.pos >= self.text.len() || self.slice(self.end_of_last, self.pos).contains('\n')
    }

    /// Skips to behind the next `;`, or to a brace, whichever comes first.
    fn resynchronise(&mut self) {
        loop {
            match self.peek() {
                None | Some(b'{' | b'}') => return,
                Some(b';') => {
                    self.step();
                    return;
                }
                Some(b'"') if lex::string(self.rest()).is_ok() => {
                    self.take(lex::string);
                }
                Some(_) => self.step(),
            }
        }
    }

    /// Runs `f` one level deeper, or fails when that is too deep.
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return self.fail(format_args!("at most {MAX_DEPTH} levels of nesting"));
        }
        self.depth += 1;
        let out = f(self);
        self.depth -= 1;
        out
    }
}
