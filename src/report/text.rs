//! Reports for people, drawn by annotate-snippets.

use std::io::{self, Write};

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use super::Report;
use super::alike::{distinct, told};
use crate::diag::{Diagnostic, Label, Place, Severity};
use crate::span::{SourceFile, Span};

/// How texts look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// With terminal colours.
    pub color: bool,
    /// Columns of the terminal.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, width: 120 }
    }
}

/// Labels in one file farther apart than this get snippets of their own, so that the text between, which may be
/// most of a large module, is never copied.
const SNIPPET_BYTES: u32 = 1 << 14;

pub(super) fn write(report: &Report, style: Style, to: &mut dyn Write) -> io::Result<()> {
    for note in &report.notes {
        write_diagnostic(note, style, to)?;
    }
    if !report.notes.is_empty() {
        writeln!(to)?;
    }
    for (finding, more) in distinct(&report.findings) {
        write_diagnostic(&told(finding, more), style, to)?;
        writeln!(to)?;
    }
    for incomplete in &report.incomplete {
        write_diagnostic(&incomplete.diagnostic, style, to)?;
        writeln!(to)?;
    }
    let suppressions = report.suppressions();
    for (by, count) in &suppressions {
        let findings = if *count == 1 { "finding" } else { "findings" };
        writeln!(to, "suppressed: {count} {findings} by {}", by.told())?;
    }
    if !suppressions.is_empty() {
        writeln!(to)?;
    }
    writeln!(to, "{}", report.summary())
}

/// Writes one diagnostic and a line break.
pub fn write_diagnostic(diagnostic: &Diagnostic, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let renderer = if style.color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(style.width);
    writeln!(to, "{}", renderer.render(&[group(diagnostic)]))
}

fn group(diagnostic: &Diagnostic) -> Group<'_> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut title = level.primary_title(diagnostic.message.as_str());
    if let Some(code) = diagnostic.code {
        title = title.id(code);
    }
    let notes = diagnostic.notes.iter().map(|text| Element::from(Level::NOTE.message(text.as_str())));
    let help = diagnostic.help.iter().map(|text| Element::from(Level::HELP.message(text.as_str())));
    title.elements(places(&diagnostic.labels)).elements(notes).elements(help)
}

/// The labels as snippets: one for each file in the order of their first labels, or one for each distant part of it.
fn places(labels: &[Label]) -> Vec<Element<'_>> {
    let mut elements = Vec::new();
    let mut done = vec![false; labels.len()];
    for first in 0..labels.len() {
        if done[first] {
            continue;
        }
        match &labels[first].place {
            Place::Line { file, line, column } => {
                done[first] = true;
                let mut origin = Origin::path(file.as_str()).line(*line as usize);
                if *column > 0 {
                    origin = origin.char_column(*column as usize);
                }
                elements.push(Element::from(origin));
                if !labels[first].text.is_empty() {
                    elements.push(Level::NOTE.no_name().message(labels[first].text.as_str()).into());
                }
            }
            Place::Text { file, span } => {
                let mut together = vec![(*span, &labels[first])];
                done[first] = true;
                for (other, label) in labels.iter().enumerate().skip(first + 1) {
                    if let Place::Text { file: its, span } = &label.place
                        && its.path() == file.path()
                        && together.iter().any(|(s, _)| s.start.abs_diff(span.start) <= SNIPPET_BYTES)
                        && !done[other]
                    {
                        together.push((*span, label));
                        done[other] = true;
                    }
                }
                elements.extend(snippet(file, &together));
            }
        }
    }
    elements
}

/// Bytes of a snippet beyond which only what is around its first label is shown: a line may be as long as the file.
const LONG: usize = 16 << 10;

/// Bytes shown of what is that long.
const WINDOW: usize = 200;

fn snippet<'l>(file: &'l SourceFile, labels: &[(Span, &'l Label)]) -> Vec<Element<'l>> {
    let all = labels.iter().map(|(span, _)| *span).reduce(Span::to).unwrap_or_default();
    let position = file.line_col(all.start);
    let first = position.line;
    let mut start = file.line_span(first).unwrap_or_default().start as usize;
    let mut end = file.line_span(file.line_col(all.end).line).unwrap_or_default().end as usize;
    let cut = end.saturating_sub(start) > LONG;
    if cut {
        let boundary = |at: usize| (0..=at).rev().find(|at| file.text().is_char_boundary(*at)).unwrap_or(0);
        start = boundary((all.start as usize).saturating_sub(WINDOW / 2).max(start));
        end = boundary((start + WINDOW).min(end));
    }
    // A carriage return belongs to the end of its line; anywhere else it moves the cursor.
    let text = file.text().get(start..end.max(start)).unwrap_or("").replace('\r', " ");
    let inside = |offset: u32| {
        let mut offset = (offset as usize).saturating_sub(start).min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    };
    let path = file.path().to_string_lossy().into_owned();
    // The column counts from the line's start, which is not shown when it is cut.
    let origin = Origin::path(path.clone()).line(first as usize).char_column(position.column as usize);
    let annotations = labels.iter().map(|(span, label)| {
        let kind = if label.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        kind.span(inside(span.start)..inside(span.end)).label(label.text.as_str())
    });
    let annotations: Vec<_> = annotations.collect();
    let snippet = Snippet::source(text).line_start(first as usize).annotations(annotations);
    if cut { vec![origin.into(), snippet.into()] } else { vec![snippet.path(path).into()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(diagnostic: &Diagnostic) -> String {
        let mut out = Vec::new();
        write_diagnostic(diagnostic, Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn labels_of_several_files() {
        let cu = SourceFile::new("a.cu", "one\n  two;\nthree\n").unwrap();
        let ptx = SourceFile::new("a.ptx", "x\nst.global.u32 [%rd1], %r1;\n").unwrap();
        let error = Diagnostic::error("it races")
            .at(&cu, Span::new(6, 9), "(2) read")
            .at(&cu, Span::new(0, 3), "(1) write")
            .at(&ptx, Span::new(2, 15), "(1) is this instruction")
            .note("a fact")
            .help("do something");
        let expected = "\
error: it races
 --> a.cu:2:3
  |
1 | one
  | --- (1) write
2 |   two;
  |   ^^^ (2) read
  |
 ::: a.ptx:2:1
  |
2 | st.global.u32 [%rd1], %r1;
  | ------------- (1) is this instruction
  |
  = note: a fact
  = help: do something
";
        assert_eq!(render(&Diagnostic { severity: Severity::Error, ..error }), expected);
    }

    #[test]
    fn empty_files_and_unknown_texts_have_places_too() {
        let empty = SourceFile::new("empty.ptx", "").unwrap();
        let text = render(&Diagnostic::error("nothing here").at(&empty, Span::at(0), "expected `.version`"));
        assert!(text.contains("--> empty.ptx:1:1"), "{text}");
        let place = Place::Line { file: "k.cu".into(), line: 7, column: 3 };
        let label = Label { place, text: "(1) write".into(), primary: true };
        let text = render(&Diagnostic { labels: vec![label], ..Diagnostic::error("it races") });
        assert!(text.contains("--> k.cu:7:3"), "{text}");
        assert!(text.contains("(1) write"), "{text}");
    }
}
