//! Source files that `.loc` lines name.

use std::path::{Component, Path, PathBuf};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::diag::{Label, Place};
use crate::ptx::SourceLoc;
use crate::span::{SourceFile, Span};

/// One position of an instruction's source: its own, or that of a call it was inlined through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// File, as the module names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 when unknown.
    pub column: u32,
}

/// The frames of a location, innermost first.
pub fn frames(loc: &SourceLoc) -> Vec<Frame> {
    let own = Frame { file: loc.file.to_string(), line: loc.line, column: loc.column };
    let calls =
        loc.inlined_at.iter().map(|at| Frame { file: at.file.to_string(), line: at.line, column: at.column });
    std::iter::once(own).chain(calls).collect()
}

/// The frame to show: the innermost one in the file where the outermost is, which is the user's. Code from a header is
/// so shown where the user's own code calls it.
pub fn user_frame(frames: &[Frame]) -> Option<&Frame> {
    let outermost = frames.last()?;
    frames.iter().find(|frame| frame.file == outermost.file)
}

/// Where else sources may be, for a machine other than the one that compiled them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Folders that hold them, at whatever part of their paths fits.
    pub folders: Vec<PathBuf>,
    /// Beginnings of paths, and what stands there now.
    pub maps: Vec<(String, PathBuf)>,
}

impl Search {
    /// The path with its beginning replaced, by the first map that fits whole components.
    fn mapped(&self, name: &str) -> Option<PathBuf> {
        self.maps.iter().find_map(|(from, to)| Some(to.join(Path::new(name).strip_prefix(from).ok()?)))
    }

    /// Where the file may be: with as much of its path as fits first, its name alone last.
    fn places(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        let parts: Vec<_> = Path::new(name)
            .components()
            .filter_map(|part| match part {
                Component::Normal(part) => Some(part.to_owned()),
                _ => None,
            })
            .collect();
        let tails = (0..parts.len()).map(move |from| parts.iter().skip(from).collect::<PathBuf>());
        tails.flat_map(|tail| self.folders.iter().map(move |folder| folder.join(&tail)))
    }
}

/// Reads sources beside a PTX file, each once.
#[derive(Debug, Default)]
pub struct Sources {
    folder: PathBuf,
    /// Nothing is read any more.
    closed: bool,
    search: Search,
    read: Mutex<FxHashMap<String, Option<SourceFile>>>,
}

impl Sources {
    /// Sources named by the PTX file at this path.
    pub fn beside(ptx: &Path) -> Self {
        Self { folder: ptx.parent().unwrap_or(Path::new("")).to_owned(), ..Self::default() }
    }

    /// These sources, by the names that modules have for them, and no others.
    pub fn of(files: impl IntoIterator<Item = (String, SourceFile)>) -> Self {
        let read = files.into_iter().map(|(name, file)| (name, Some(file))).collect();
        Self { closed: true, read: Mutex::new(read), ..Self::default() }
    }

    /// The same, looked for elsewhere too.
    #[must_use]
    pub fn with(self, search: &Search) -> Self {
        Self { search: search.clone(), ..self }
    }

    /// The file of this name: where a map says, in the PTX file's folder, as named, or in a folder of the search.
    pub fn file(&self, name: &str) -> Option<SourceFile> {
        if self.closed {
            return self.read.lock().get(name).cloned().flatten();
        }
        let read = |path: &Path| path.is_file().then(|| SourceFile::read(path).ok()).flatten();
        let load = || {
            self.search
                .mapped(name)
                .and_then(|path| read(&path))
                .or_else(|| read(&self.folder.join(name)))
                .or_else(|| read(Path::new(name)))
                .or_else(|| self.search.places(name).find_map(|path| read(&path)))
        };
        self.read.lock().entry(name.to_owned()).or_insert_with(load).clone()
    }

    /// The text of a frame's line, trimmed.
    pub fn line(&self, frame: &Frame) -> Option<String> {
        let file = self.file(&frame.file)?;
        let line = file.slice(file.line_span(frame.line)?).trim().to_owned();
        (!line.is_empty()).then_some(line)
    }

    /// A label at a frame; with the text if the file can be read.
    pub fn label(&self, frame: &Frame, text: String, primary: bool) -> Label {
        let place = self.file(&frame.file).and_then(|file| {
            let line = file.line_span(frame.line)?;
            let span = statement(file.slice(line), frame.column)?;
            let start = line.start as usize;
            Some(Place::Text { span: Span::new(start + span.start, start + span.end), file })
        });
        let bare = || Place::Line { file: frame.file.clone(), line: frame.line, column: frame.column };
        Label { place: place.unwrap_or_else(bare), text, primary }
    }
}

/// What a column of a line points at: from there to the end of the statement. `None` for a blank line, which tells
/// that the file is not the one that was compiled.
fn statement(line: &str, column: u32) -> Option<std::ops::Range<usize>> {
    let indent = line.len() - line.trim_start().len();
    let code = line.split_once("//").map_or(line, |(code, _)| code).trim_end();
    let end = if code.len() > indent { code.len() } else { line.trim_end().len() };
    let column = (column as usize).saturating_sub(1);
    let within = column > indent && column < end && line.is_char_boundary(column);
    let start = if within { column } else { indent };
    // It may point at the blanks before a statement, as behind an `else`.
    let start = start + line.get(start..end).map_or(0, |code| code.len() - code.trim_start().len());
    // Columns count in the text that the compiler saw, where macros such as `__global__` are longer. One that points
    // into a word, or behind a bracket that closes first, is off; then the whole line is meant.
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let inside_word = line[..start].ends_with(is_word) && line[start..].starts_with(is_word);
    let (start, end) = match statement_end(line.get(start..end)?) {
        Some(length) if !inside_word => (start, start + length),
        _ => (indent, end),
    };
    (start < end).then_some(start..end)
}

/// Where a statement ends: at the first `;` or brace outside of brackets. `None` if a bracket closes that was not
/// opened.
fn statement_end(code: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' if depth == 0 => return None,
            ')' | ']' => depth -= 1,
            ';' | '{' | '}' if depth == 0 && at > 0 => return Some(at),
            _ => {}
        }
    }
    Some(code.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_found_where_they_are_now() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for (path, text) in [("src/deep/a.cu", "deep"), ("src/a.cu", "flat"), ("moved/b.cu", "moved")] {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), text).unwrap();
        }
        let search =
            Search { folders: vec![at("none"), at("src")], maps: vec![("/build/x".into(), at("moved"))] };
        let sources = Sources::default().with(&search);
        let text = |name| sources.file(name).map(|file| file.text().to_owned());
        assert_eq!(text("/ci/build/deep/a.cu").as_deref(), Some("deep"));
        assert_eq!(text("../other/a.cu").as_deref(), Some("flat"));
        assert_eq!(text("/build/x/b.cu").as_deref(), Some("moved"));
        // A map is of whole components.
        assert_eq!(text("/build/xy/b.cu"), None);
        assert_eq!(text("/ci/c.cu"), None);
        assert_eq!(Sources::default().file("/ci/build/deep/a.cu").map(|file| file.path().to_owned()), None);
    }

    #[test]
    fn a_column_points_at_its_statement() {
        let at = |line: &'static str, column| statement(line, column).map(|span| &line[span]);
        assert_eq!(at("  a = 1; b = 2; // two", 3), Some("a = 1"));
        assert_eq!(at("  a = 1; b = 2; // two", 10), Some("b = 2"));
        assert_eq!(at("  if (ok) out[i] = 1", 0), Some("if (ok) out[i] = 1"));
        assert_eq!(at("  a = 1;", 80), Some("a = 1"));
        assert_eq!(at("  for (i = 0; i < n; ++i) f(i);", 3), Some("for (i = 0; i < n; ++i) f(i)"));
        let off = "void f(int* out) { out[0] = 1; }";
        assert_eq!(at(off, 20), Some("out[0] = 1"));
        assert_eq!(at(off, 15), Some(off));
        assert_eq!(at(off, 13), Some(off));
        assert_eq!(at("  else   b = 2;", 7), Some("b = 2"));
        assert_eq!(at("}", 1), Some("}"));
        assert_eq!(at("   ", 2), None);
    }
}
