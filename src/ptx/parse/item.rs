//! Module scope: directives, variables, functions, sections.

use super::statement::trimmed;
use super::{Parser, Result};
use crate::ptx::ast::{Directive, Function, FunctionKind, Item, Module, Word};
use crate::ptx::lex;
use crate::span::Span;

impl<'a> Parser<'a> {
    pub(super) fn module(&mut self) -> Module<'a> {
        let mut items = Vec::new();
        while !self.at_end() {
            let before = self.pos;
            if self.item(&mut items).is_err() {
                self.skip_item();
            }
            if self.pos == before {
                self.pos += self.peek().map_or(1, char::len_utf8);
            }
        }
        Module { items }
    }

    fn item(&mut self, items: &mut Vec<Item<'a>>) -> Result<()> {
        if self.rest().starts_with("@@DWARF") {
            let start = self.pos;
            let text = lex::rest_of_line(self.rest()).map_or("", |(_, text)| text);
            self.pos += text.len();
            self.end_of_last = self.pos;
            let name = Word { text: &text[..7], span: Span::new(start, start + 7) };
            let args = trimmed(&text[7..], start + 7);
            items.push(Item::Directive(Directive { name, args, span: name.span.to(args.span) }));
            return Ok(());
        }
        let Ok((_, name)) = lex::directive_name(self.rest()) else {
            return self.fail("a directive such as `.entry`, `.func` or `.global`", "the module");
        };
        match name {
            ".version" | ".target" | ".address_size" | ".file" | ".loc" => {
                let directive = self.line_directive();
                items.push(Item::Directive(directive));
            }
            ".section" => {
                let directive = self.section()?;
                items.push(Item::Directive(directive));
            }
            ".entry" | ".func" => {
                let function = self.function(None)?;
                items.push(Item::Function(function));
            }
            ".extern" | ".visible" | ".weak" | ".common" => {
                let start = self.pos;
                let linkage = self.linkage();
                self.skip_trivia();
                if lex::directive_name(self.rest()).is_ok_and(|(_, name)| matches!(name, ".entry" | ".func"))
                {
                    let function = self.function(linkage)?;
                    items.push(Item::Function(function));
                } else {
                    self.pos = start;
                    let variables = self.variables("a module variable")?;
                    items.extend(variables.into_iter().map(Item::Variable));
                }
            }
            _ if self.starts_variable() => {
                let variables = self.variables("a module variable")?;
                items.extend(variables.into_iter().map(Item::Variable));
            }
            _ => {
                let directive = self.directive_to_semicolon(name)?;
                items.push(Item::Directive(directive));
            }
        }
        Ok(())
    }

    /// `.section name { data }`; the data stays text.
    fn section(&mut self) -> Result<Directive<'a>> {
        let name = self.take_word(lex::directive_name);
        let Some(name) = name else { return self.fail("`.section`", "the module") };
        self.skip_trivia();
        let start = self.pos;
        match self.rest().find(['{', '}']) {
            Some(at) if self.rest()[at..].starts_with('{') => self.pos += at + 1,
            _ => return self.fail("`{`", "a debug section"),
        }
        match self.rest().find('}') {
            Some(at) => self.pos += at + 1,
            None => {
                self.pos = self.text.len();
                return self.fail("`}`", "a debug section");
            }
        }
        self.end_of_last = self.pos;
        let args = trimmed(&self.text[start..self.pos], start);
        Ok(Directive { name, args, span: name.span.to(args.span) })
    }

    fn function(&mut self, linkage: Option<Word<'a>>) -> Result<Function<'a>> {
        self.skip_trivia();
        let start = linkage.map_or(self.pos, |word| word.span.start as usize);
        let kind = if self.eat(".entry").is_some() {
            FunctionKind::Entry
        } else {
            self.expect(".func", "a function")?;
            FunctionKind::Func
        };
        // Attributes may stand between `.func` and the return list.
        let mut directives = Vec::new();
        self.function_directives(&mut directives)?;
        let returns = match self.peek() {
            Some('(') => self.parameters("the return parameters")?,
            _ => Vec::new(),
        };
        let name = self.identifier("a function name", "a function")?;
        let context = format!("the parameters of `{}`", name.text);
        let params = match self.peek() {
            Some('(') => self.parameters(&context)?,
            _ => Vec::new(),
        };
        self.function_directives(&mut directives)?;
        let body = match self.peek() {
            Some('{') => Some(self.block(&format!("the body of `{}`", name.text))?),
            _ => {
                if self.eat(";").is_none() {
                    return self.fail("`{` or `;`", &format!("the header of `{}`", name.text));
                }
                None
            }
        };
        let span = Span::new(start, self.end_of_last);
        Ok(Function { linkage, kind, returns, name, params, directives, body, span })
    }

    fn function_directives(&mut self, directives: &mut Vec<Directive<'a>>) -> Result<()> {
        while self.peek() == Some('.') {
            let Some(name) = self.take_word(lex::directive_name) else {
                return self.fail("a directive", "a function header");
            };
            self.skip_trivia();
            let start = self.pos;
            while !matches!(self.peek(), None | Some('.' | '{' | '}' | ';' | '(' | '%' | '_' | '$'))
                && !self.peek().is_some_and(|c| c.is_ascii_alphabetic())
            {
                match lex::string(self.rest()) {
                    Ok(_) => {
                        self.take(lex::string);
                    }
                    Err(_) => {
                        self.pos += self.peek().map_or(0, char::len_utf8);
                        self.end_of_last = self.pos;
                    }
                }
            }
            let args = trimmed(&self.text[start..self.end_of_last.max(start)], start);
            if name.text == ".pragma" {
                self.eat(";");
            }
            directives.push(Directive { name, args, span: name.span.to(args.span) });
        }
        Ok(())
    }

    /// After an error at module scope: to the next line that begins a top-level item.
    fn skip_item(&mut self) {
        const STARTS: [&str; 12] = [
            ".visible", ".extern", ".weak", ".common", ".entry", ".func", ".global", ".const", ".section",
            ".file", ".version", ".target",
        ];
        while !self.at_end() {
            let here = self.rest();
            let line_starts = self.text[..self.pos].ends_with('\n')
                || self.text[..self.pos].trim_end_matches([' ', '\t']).ends_with('\n');
            if line_starts
                && STARTS.iter().any(|s| here.starts_with(s))
                && self.pos > self.errors.last().map_or(0, |e| e.span.start as usize)
            {
                return;
            }
            match here.find('\n') {
                Some(at) => self.pos += at + 1,
                None => self.pos = self.text.len(),
            }
        }
    }
}
