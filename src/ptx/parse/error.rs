//! Syntax errors: what was expected where, what stands there, and advice where the slip is a common one.

use std::fmt::{self, Display, Write};

use super::{Failed, Parser, Result};
use crate::diag::nearest_within;
use crate::ptx::directives;
use crate::ptx::lex;
use crate::span::Span;

/// Errors kept of one text; the rest is counted.
pub const MAX_ERRORS: usize = 100;

/// Characters shown of a token; one may be as long as the file.
const MAX_TOKEN: usize = 40;

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
    /// Another place that matters, and why, such as the `{` that is not closed.
    pub related: Option<(Span, &'static str)>,
    /// What to do, where there is a likely answer.
    pub help: Option<String>,
}

/// What is being read. Cheap to set: it becomes a text only when there is an error.
#[derive(Clone, Copy, Debug)]
pub(super) enum Context<'a> {
    /// Said as it is.
    Is(&'static str),
    /// What, and of which name; blanks in the name are left out.
    Of(&'static str, &'a str),
}

impl Display for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(text) => f.write_str(text),
            Self::Of(what, name) => {
                write!(f, "{what} `")?;
                name.chars()
                    .filter(|c| !c.is_whitespace())
                    .take(MAX_TOKEN)
                    .try_for_each(|c| f.write_char(c))?;
                f.write_char('`')
            }
        }
    }
}

impl<'a> Parser<'a> {
    /// Records an error at the next token.
    #[cold]
    pub(super) fn fail<T>(&mut self, expected: impl Display) -> Result<T> {
        self.fail_with(expected, None, None)
    }

    /// Records an error at the next token, with advice.
    #[cold]
    pub(super) fn fail_with<T>(
        &mut self,
        expected: impl Display,
        related: Option<(Span, &'static str)>,
        help: Option<String>,
    ) -> Result<T> {
        // What is only counted needs no words: there may be millions.
        if self.errors.len() < MAX_ERRORS {
            let (span, found) = self.next_token();
            let error = SyntaxError { related, help, ..self.error(span, expected, found) };
            self.record(error);
        } else {
            self.more_errors += 1;
        }
        Err(Failed)
    }

    /// Records that something is missing behind the last token.
    #[cold]
    pub(super) fn fail_behind_last(&mut self, expected: impl Display) {
        if self.errors.len() >= MAX_ERRORS {
            self.more_errors += 1;
            return;
        }
        let (_, found) = self.next_token();
        let error = self.error(Span::at(self.end_of_last), expected, found);
        self.record(error);
    }

    /// Records that a comment goes to the end of the text.
    pub(super) fn unclosed_comment(&mut self, open: Span) {
        if self.unclosed_at == Some(self.text.len()) {
            // Said already: the parser went back.
            return;
        }
        let error = self.error(open, "`*/`", "end of file".into());
        self.record(SyntaxError { context: "a comment".into(), ..error });
        // Braces inside of it are not missing.
        self.unclosed_at = Some(self.text.len());
    }

    /// Records a directive that nobody knows and that is nearly one that is known. Others pass, and so do all of modules
    /// newer than the list: PTX grows.
    pub(super) fn check_directive(&mut self, name: &str, span: Span) {
        if !self.knows_directives || directives::is_known(name) || name.len() > MAX_TOKEN {
            return;
        }
        let slips = if name.len() > 6 { 2 } else { 1 };
        let Some(near) = nearest_within(name, slips, directives::names()) else { return };
        let error = self.error(span, "a directive of PTX", format!("`{name}`"));
        self.record(SyntaxError { help: Some(format!("did you mean `{near}`?")), ..error });
    }

    fn error(&self, span: Span, expected: impl Display, found: String) -> SyntaxError {
        let (expected, context) = (expected.to_string(), self.context.to_string());
        SyntaxError { span, expected, found, context, related: None, help: None }
    }

    fn record(&mut self, error: SyntaxError) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        } else {
            self.more_errors += 1;
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
            .or_else(|| {
                lex::number(rest).ok().map(|(after, _)| self.slice(start, start + rest.len() - after.len()))
            })
            .or_else(|| rest.chars().next().map(|c| self.slice(start, start + c.len_utf8())));
        let Some(token) = token else { return (Span::at(self.text.len()), "end of file".into()) };
        let span = Span::new(start, start + token.len());
        match token.char_indices().nth(MAX_TOKEN) {
            Some((end, _)) => (span, format!("`{}...`", token.get(..end).unwrap_or("").escape_debug())),
            None => (span, format!("`{}`", token.escape_debug())),
        }
    }
}
