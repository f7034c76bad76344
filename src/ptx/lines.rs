//! The line table: which source line an instruction came from, by `.loc` and `.file`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::ast::{Directive, Item, Module};

/// A source position with the calls it was inlined through, innermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLoc {
    /// File as `.file` names it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 when the compiler gave none.
    pub column: u32,
    /// Where this code was inlined, innermost call first.
    pub inlined_at: Vec<InlineFrame>,
}

/// One call that was inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InlineFrame {
    /// File of the call.
    pub file: Arc<str>,
    /// Line of the call.
    pub line: u32,
    /// Column of the call.
    pub column: u32,
}

/// A place as a `.loc` gives it: the file by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    file: u32,
    line: u32,
    column: u32,
}

/// What one `.loc` says: its own place, and the call that it was inlined at. Nothing here is allocated, as most of these
/// lines are in front of nothing that anybody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The place of the code.
    pub own: Place,
    /// The call.
    pub inlined_at: Option<Place>,
}

/// Resolves `.loc` arguments. `.file` lines usually come last in a module, so this is built from a whole one.
#[derive(Clone, Debug, Default)]
pub struct LineTable {
    files: FxHashMap<u32, Arc<str>>,
    /// Numbers of files that have another number too: the first one.
    same: FxHashMap<u32, u32>,
}

impl LineTable {
    /// Reads the `.file` lines of a module.
    pub fn new(module: &Module<'_>) -> Self {
        let mut table = Self::default();
        let mut numbers = FxHashMap::default();
        for item in &module.items {
            if let Item::Directive(directive) = item
                && directive.name.text == ".file"
                && let Some((number, name)) = file_line(directive.args.text)
            {
                let first = *numbers.entry(name).or_insert(number);
                if first != number {
                    table.same.insert(number, first);
                }
                table.files.insert(number, name.into());
            }
        }
        table
    }

    /// What a `.loc` says; `None` for line 0, which compilers use for "no line".
    pub fn read(&self, loc: &Directive<'_>) -> Option<Line> {
        let (own, more) = match loc.args.text.split_once(',') {
            Some((own, more)) => (own, Some(more)),
            None => (loc.args.text, None),
        };
        let own = self.place(own).filter(|own| own.line > 0)?;
        let mut inlined_at = None;
        for part in more.into_iter().flat_map(|more| more.split(',')) {
            if let Some(at) = part.trim_ascii_start().strip_prefix("inlined_at") {
                inlined_at = self.place(at).or(inlined_at);
            }
        }
        Some(Line { own, inlined_at })
    }

    /// With names: a place and the calls through which it was inlined, innermost first.
    pub fn resolve(&self, own: Place, calls: impl IntoIterator<Item = Place>) -> SourceLoc {
        let frame = |at: Place| InlineFrame { file: self.name(at.file), line: at.line, column: at.column };
        let inlined_at = calls.into_iter().map(frame).collect();
        SourceLoc { file: self.name(own.file), line: own.line, column: own.column, inlined_at }
    }

    fn name(&self, number: u32) -> Arc<str> {
        self.files.get(&number).cloned().unwrap_or_else(|| format!("file {number}").into())
    }

    fn place(&self, text: &str) -> Option<Place> {
        let mut numbers = text.split_ascii_whitespace().map(|n| n.parse::<u32>());
        let mut next = || numbers.next().and_then(Result::ok);
        let (file, line, column) = (next()?, next()?, next().unwrap_or(0));
        let file = if self.same.is_empty() { file } else { self.same.get(&file).copied().unwrap_or(file) };
        Some(Place { file, line, column })
    }
}

/// `1 "a.cu", timestamp, size`
fn file_line(args: &str) -> Option<(u32, &str)> {
    let (index, rest) = args.split_once(char::is_whitespace)?;
    let name = rest.trim().strip_prefix('"')?;
    let (name, _) = name.split_once('"')?;
    Some((index.parse().ok()?, name))
}
