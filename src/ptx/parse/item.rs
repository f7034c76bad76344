//! Module scope: directives, variables, functions, sections.

use memchr::{memchr, memchr3};

use super::error::Context;
use super::statement::trimmed;
use super::{Parser, Result};
use crate::ptx::ast::{Directive, Function, FunctionKind, Item, Module, Variable, Word, version_of};
use crate::ptx::{LISTED, lex};
use crate::span::Span;

/// What a line begins with where reading goes on after an error.
const STARTS: [&str; 12] = [
    ".visible", ".extern", ".weak", ".common", ".entry", ".func", ".global", ".const", ".section", ".file",
    ".version", ".target",
];

impl<'a> Parser<'a> {
    pub(super) fn module(&mut self) -> Module<'a> {
        let mut items = Vec::new();
        while !self.at_end() {
            let before = self.pos;
            self.context = Context::Is("the module");
            if self.item(&mut items).is_err() {
                self.skip_item(before);
            }
            if self.pos == before {
                self.step();
            }
        }
        items.shrink_to_fit();
        Module { items }
    }

    fn item(&mut self, items: &mut Vec<Item<'a>>) -> Result<()> {
        if self.is_next("@@DWARF") {
            items.push(Item::Directive(self.dwarf_line()));
            return Ok(());
        }
        let Some(name) = self.take_word(lex::directive_name) else {
            let brace =
                self.is_next("}").then(|| "this `}` closes nothing: is there one too many before it?".into());
            return self.fail_with("a directive such as `.entry`, `.func` or `.global`", None, brace);
        };
        match name.text {
            ".version" | ".target" | ".address_size" | ".file" | ".loc" => {
                let directive = self.line_directive(name);
                if name.text == ".version" {
                    self.knows_directives = version_of(directive.args.text).is_none_or(|it| it <= LISTED);
                }
                items.push(Item::Directive(directive));
            }
            ".section" => {
                let directive = self.section(name)?;
                items.push(Item::Directive(directive));
            }
            ".entry" | ".func" => {
                let function = self.function(None, name)?;
                items.push(Item::Function(function));
            }
            ".extern" | ".visible" | ".weak" | ".common" => match self.directive_ahead() {
                Some(".entry" | ".func") => {
                    let Some(kind) = self.take_word(lex::directive_name) else { return Ok(()) };
                    let function = self.function(Some(name), kind)?;
                    items.push(Item::Function(function));
                }
                _ => self.module_variables(name, items)?,
            },
            _ if super::declare::starts_variable(name.text) => self.module_variables(name, items)?,
            _ => {
                self.check_directive(name.text, name.span);
                let directive = self.directive_to_semicolon(name)?;
                items.push(Item::Directive(directive));
            }
        }
        Ok(())
    }

    fn module_variables(&mut self, first: Word<'a>, items: &mut Vec<Item<'a>>) -> Result<()> {
        self.pos = first.span.start as usize;
        self.variables(Context::Is("a module variable"), |variable| items.push(Item::Variable(variable)))
    }

    /// A line of debug data as compilers for PTX 1 wrote it.
    fn dwarf_line(&mut self) -> Directive<'a> {
        let start = self.pos;
        let text = lex::rest_of_line(self.rest()).map_or("", |(_, text)| text);
        self.pos += text.len();
        let (name, args) = text.split_at_checked("@@DWARF".len()).unwrap_or((text, ""));
        let args = trimmed(args, start + name.len());
        let name = Word { text: name, span: Span::new(start, start + name.len()) };
        self.end_of_last = args.span.end as usize;
        Directive { name, args, span: name.span.to(args.span) }
    }

    /// `.section name { data }`; the data stays text.
    fn section(&mut self, name: Word<'a>) -> Result<Directive<'a>> {
        self.context = Context::Is("a debug section");
        self.skip_trivia();
        let start = self.pos;
        if !self.skip_to_brace(b'{') {
            return self.fail("`{`");
        }
        let open = self.expect(b'{')?;
        if !self.skip_to_brace(b'}') {
            return self.fail_with("`}`", Some((open, "this `{` is not closed")), None);
        }
        self.expect(b'}')?;
        let args = trimmed(self.slice(start, self.pos), start);
        Ok(Directive { name, args, span: name.span.to(args.span) })
    }

    /// To the next brace outside of comments; whether it is this one.
    fn skip_to_brace(&mut self, brace: u8) -> bool {
        let bytes = self.text.as_bytes();
        loop {
            let ahead = bytes.get(self.pos..).unwrap_or(&[]);
            self.pos += memchr3(b'{', b'}', b'/', ahead).unwrap_or(ahead.len());
            // A comment is behind us now, with whatever came before the next mark.
            match self.peek() {
                Some(b'/') => self.step(),
                found @ (Some(b'{' | b'}') | None) => return found == Some(brace),
                Some(_) => {}
            }
        }
    }

    /// A function, behind `.entry` or `.func`.
    fn function(&mut self, linkage: Option<Word<'a>>, first: Word<'a>) -> Result<Function<'a>> {
        let kind = if first.text == ".entry" { FunctionKind::Entry } else { FunctionKind::Func };
        self.context = Context::Is("a function");
        // Attributes may stand between `.func` and the return list.
        let mut directives = Vec::new();
        while self.peek() == Some(b'.') {
            let Some(name) = self.take_word(lex::directive_name) else { return self.fail("a directive") };
            let start = self.pos;
            if self.peek() == Some(b'(') {
                self.skip_parentheses()?;
            }
            let args = trimmed(self.slice(start, self.end_of_last), start);
            directives.push(Directive { name, args, span: name.span.to(args.span) });
        }
        let returns = self.parameters(Context::Is("the return parameters"))?;
        self.context = Context::Is("a function");
        let name = self.identifier("a function name")?;
        let params = self.parameters(Context::Of("the parameters of", name.text))?;
        self.context = Context::Of("the header of", name.text);
        self.header_directives(&mut directives)?;
        directives.shrink_to_fit();
        let body = match self.peek() {
            Some(b'{') => Some(self.block(Context::Of("the body of", name.text))?),
            Some(b';') => {
                self.eat(b';');
                None
            }
            _ => return self.fail("`{` or `;`"),
        };
        let start = linkage.unwrap_or(first).span.start as usize;
        let span = Span::new(start, self.end_of_last);
        Ok(Function { linkage, kind, returns, name, params, directives, body, span })
    }

    /// `(param, param)`, or nothing.
    fn parameters(&mut self, context: Context<'a>) -> Result<Vec<Variable<'a>>> {
        let mut parameters = Vec::new();
        if self.peek() == Some(b'(') {
            self.context = context;
            self.parameter_list(&mut parameters)?;
        }
        Ok(parameters)
    }

    /// `.maxntid 256, 1, 1` and the like, up to the body or the `;`.
    fn header_directives(&mut self, directives: &mut Vec<Directive<'a>>) -> Result<()> {
        while self.peek() == Some(b'.') {
            let Some(name) = self.take_word(lex::directive_name) else { return self.fail("a directive") };
            self.check_directive(name.text, name.span);
            self.skip_trivia();
            let start = self.pos;
            loop {
                match self.peek() {
                    None | Some(b'.' | b'{' | b'}' | b';') => break,
                    Some(b'"') if lex::string(self.rest()).is_ok() => {
                        self.take(lex::string);
                    }
                    Some(b'0'..=b'9' | b',' | b'(' | b')' | b'+' | b'-' | b'*') => self.step(),
                    // An argument of a directive that is not known here; a word without one before it is a slip.
                    Some(byte)
                        if lex::starts_name(byte) && !super::super::directives::is_known(name.text) =>
                    {
                        self.step();
                    }
                    Some(_) => return self.fail("a directive, `{` or `;`"),
                }
            }
            let args = trimmed(self.slice(start, self.end_of_last.max(start)), start);
            // A pragma of the function has a `;` of its own; if it is the last thing, that is the declaration's.
            if name.text == ".pragma" && self.peek() == Some(b';') {
                let before = (self.pos, self.end_of_last);
                self.eat(b';');
                if !matches!(self.peek(), Some(b'{' | b'.')) {
                    (self.pos, self.end_of_last) = before;
                }
            }
            directives.push(Directive { name, args, span: name.span.to(args.span) });
        }
        Ok(())
    }

    /// After an error at module scope: to the next line that begins a top-level item.
    fn skip_item(&mut self, begun: usize) {
        // The item that failed began here, so that one is not it.
        if self.pos == begun {
            self.step();
        }
        while !self.at_end() {
            if self.starts_line() && STARTS.iter().any(|start| self.is_next(start)) {
                return;
            }
            let ahead = self.text.as_bytes().get(self.pos..).unwrap_or(&[]);
            self.pos += memchr(b'\n', ahead).unwrap_or(ahead.len());
            self.end_of_last = self.pos;
        }
    }
}
