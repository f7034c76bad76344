//! The `Diagnostic` value: a message with labelled spans. Rooms make them; only `report` renders them.

mod list;
mod suggest;

use serde::{Deserialize, Serialize};

use crate::span::{LineCol, SourceFile, Span};
pub use list::quoted;
pub use suggest::{nearest, nearest_within};

/// How much a diagnostic matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Suspicious, but no reason to fail.
    Warning,
    /// Wrong.
    Error,
}

impl Severity {
    /// Every severity.
    pub const ALL: [Self; 3] = [Self::Note, Self::Warning, Self::Error];

    /// The name that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A place in a source text, or only the name and line of one whose text we do not have.
#[derive(Clone, Debug)]
pub enum Place {
    /// The text is at hand.
    Text {
        /// The file.
        file: SourceFile,
        /// The bytes meant.
        span: Span,
    },
    /// Only the line is known.
    Line {
        /// Name of the file.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Column, from 1, 0 when unknown.
        column: u32,
    },
}

impl Place {
    /// Name of the file, and where in it.
    pub fn position(&self) -> (String, LineCol) {
        match self {
            Self::Text { file, span } => {
                (file.path().to_string_lossy().into_owned(), file.line_col(span.start))
            }
            Self::Line { file, line, column } => (file.clone(), LineCol { line: *line, column: *column }),
        }
    }
}

/// One labelled place.
#[derive(Clone, Debug)]
pub struct Label {
    /// Where.
    pub place: Place,
    /// What is said of it.
    pub text: String,
    /// Whether it is the place that the message is about.
    pub primary: bool,
}

/// A message for people, with places, notes and advice. Texts start in lower case and have no final period.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// How much it matters.
    pub severity: Severity,
    /// The rule, such as `R001`.
    pub code: Option<&'static str>,
    /// One sentence.
    pub message: String,
    /// Places, the primary one first.
    pub labels: Vec<Label>,
    /// Further facts.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error without places.
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code: None,
            message: message.into(),
            labels: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// A warning without places.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    /// A message that only tells.
    pub fn remark(message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(message) }
    }

    /// Adds the place that the message is about.
    #[must_use]
    pub fn at(mut self, file: &SourceFile, span: Span, text: impl Into<String>) -> Self {
        let primary = self.labels.is_empty();
        let place = Place::Text { file: file.clone(), span };
        self.labels.push(Label { place, text: text.into(), primary });
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }
}
