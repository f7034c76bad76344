//! Byte spans into source texts, and the map from spans to lines.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A half-open byte range in one source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span of `start..end`.
    pub fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end);
        Self { start: clamp(start), end: clamp(end) }
    }

    /// The empty span at `offset`.
    pub fn at(offset: usize) -> Self {
        Self::new(offset, offset)
    }

    /// The smallest span that holds both.
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The range as `usize`, for slicing.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Sources are limited to 4 GiB; `SourceFile::new` refuses larger ones, so this never truncates.
fn clamp(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// A position for people: both numbers start at 1, columns count bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LineCol {
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
}

/// A named text with its line starts.
#[derive(Clone, Debug)]
pub struct SourceFile {
    path: PathBuf,
    text: Arc<str>,
    lines: Arc<[u32]>,
}

/// Why a text cannot be a source.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Io {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not UTF-8 (PTX is ASCII).
    #[error("`{path}` is not text: byte {offset} (line {line}) is not valid UTF-8")]
    NotText {
        /// The file asked for.
        path: PathBuf,
        /// Offset of the first bad byte.
        offset: usize,
        /// Its line, from 1.
        line: usize,
    },
    /// The file is larger than spans can address.
    #[error("`{path}` is larger than 4 GiB")]
    TooLarge {
        /// The file asked for.
        path: PathBuf,
    },
}

impl SourceFile {
    /// A source from a text already in memory.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<Arc<str>>) -> Result<Self, SourceError> {
        let (path, text) = (path.into(), text.into());
        if u32::try_from(text.len()).is_err() {
            return Err(SourceError::TooLarge { path });
        }
        let starts = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| clamp(i + 1));
        let lines = std::iter::once(0).chain(starts).collect();
        Ok(Self { path, text, lines })
    }

    /// Reads a source from disk.
    pub fn read(path: &Path) -> Result<Self, SourceError> {
        let bytes = std::fs::read(path).map_err(|source| SourceError::Io { path: path.into(), source })?;
        match String::from_utf8(bytes) {
            Ok(text) => Self::new(path, text),
            Err(e) => {
                let offset = e.utf8_error().valid_up_to();
                let line = 1 + e.as_bytes()[..offset].iter().filter(|b| **b == b'\n').count();
                Err(SourceError::NotText { path: path.into(), offset, line })
            }
        }
    }

    /// The name it was read under.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text a span covers; empty when the span is not of this file.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// Line and column of a byte offset.
    pub fn line_col(&self, offset: u32) -> LineCol {
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        LineCol { line: clamp(line), column: offset.saturating_sub(start) + 1 }
    }

    /// The span of a line (from 1) without its line break.
    pub fn line_span(&self, line: u32) -> Option<Span> {
        let index = (line as usize).checked_sub(1)?;
        let start = *self.lines.get(index)? as usize;
        let end = self.lines.get(index + 1).map_or(self.text.len(), |next| *next as usize - 1);
        Some(Span::new(start, end.max(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_start_at_one() {
        let file = SourceFile::new("a.ptx", "ab\n\ncd").unwrap();
        assert_eq!(file.line_col(0), LineCol { line: 1, column: 1 });
        assert_eq!(file.line_col(3), LineCol { line: 2, column: 1 });
        assert_eq!(file.line_col(5), LineCol { line: 3, column: 2 });
        assert_eq!(file.slice(file.line_span(3).unwrap()), "cd");
        assert_eq!(file.slice(file.line_span(2).unwrap()), "");
        assert_eq!(file.line_span(4), None);
    }
}
