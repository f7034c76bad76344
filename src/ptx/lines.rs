//! The line table: which source line an instruction came from, by `.loc` and `.file`.

use super::ast::{Directive, Item, Module};
use rustc_hash::FxHashMap;

/// A source position with the calls it was inlined through, innermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLoc {
    /// File as `.file` names it.
    pub file: String,
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
    pub file: String,
    /// Line of the call.
    pub line: u32,
    /// Column of the call.
    pub column: u32,
}

#[derive(Clone, Debug, Default)]
struct Inline {
    file: u32,
    line: u32,
    column: u32,
}

/// Resolves `.loc` arguments. `.file` lines usually come last in a module, so this is built from a whole one.
#[derive(Clone, Debug, Default)]
pub struct LineTable {
    files: FxHashMap<u32, String>,
}

impl LineTable {
    /// Reads the `.file` lines of a module.
    pub fn new(module: &Module<'_>) -> Self {
        let mut files = FxHashMap::default();
        for item in &module.items {
            if let Item::Directive(directive) = item
                && directive.name.text == ".file"
                && let Some((index, name)) = file_line(directive.args.text)
            {
                files.insert(index, name);
            }
        }
        Self { files }
    }

    /// What a `.loc` says; `None` for line 0, which compilers use for "no line".
    pub fn resolve(&self, loc: &Directive<'_>) -> Option<SourceLoc> {
        let mut parts = loc.args.text.split(',');
        let own = position(parts.next()?)?;
        let mut inlined_at = Vec::new();
        for part in parts {
            if let Some(at) = part.trim().strip_prefix("inlined_at")
                && let Some(at) = position(at)
            {
                inlined_at.push(InlineFrame { file: self.name(at.file), line: at.line, column: at.column });
            }
        }
        if own.line == 0 {
            return None;
        }
        Some(SourceLoc { file: self.name(own.file), line: own.line, column: own.column, inlined_at })
    }

    fn name(&self, index: u32) -> String {
        self.files.get(&index).cloned().unwrap_or_else(|| format!("file {index}"))
    }
}

fn position(text: &str) -> Option<Inline> {
    let mut numbers = text.split_whitespace().map(|n| n.parse::<u32>());
    let mut next = || numbers.next().and_then(Result::ok);
    Some(Inline { file: next()?, line: next()?, column: next().unwrap_or(0) })
}

/// `1 "a.cu", timestamp, size`
fn file_line(args: &str) -> Option<(u32, String)> {
    let (index, rest) = args.split_once(char::is_whitespace)?;
    let name = rest.trim().strip_prefix('"')?;
    let (name, _) = name.split_once('"')?;
    Some((index.parse().ok()?, name.to_owned()))
}
