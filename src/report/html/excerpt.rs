//! The code around the places of a finding.

use std::ops::Range;

use maud::{Markup, html};

use super::shown::{Shown, prose};
use crate::diag::{Label, Place};
use crate::explain::Explained;
use crate::span::SourceFile;

/// Lines shown before and behind a place.
const AROUND: u32 = 2;
/// Labels with fewer lines between them share an excerpt.
const TOGETHER: u32 = 6;
/// Bytes of a line before the place, and behind its begin.
const BEFORE: usize = 120;
const BEHIND: usize = 240;

/// Source first, then PTX.
pub(super) fn excerpts(finding: &Explained) -> Markup {
    let of_ptx = |label: &&Label| {
        let file = label.place.position().0;
        finding.accesses.iter().any(|access| access.ptx.file == file)
    };
    let (ptx, source): (Vec<_>, Vec<_>) = finding.diagnostic.labels.iter().partition(of_ptx);
    html! {
        @for (name, labels) in [("Source", source), ("PTX", ptx)] {
            @if !labels.is_empty() {
                h4 { (name) }
                (all(&labels))
            }
        }
    }
}

/// One excerpt: a file, its lines, and what is said of them.
struct Excerpt<'l> {
    file: &'l SourceFile,
    lines: Range<u32>,
    labels: Vec<(u32, Range<usize>, &'l Label)>,
}

fn all(labels: &[&Label]) -> Markup {
    let mut excerpts: Vec<Excerpt<'_>> = Vec::new();
    let mut bare = Vec::new();
    for label in labels {
        let Place::Text { file, span } = &label.place else {
            bare.push(label);
            continue;
        };
        let at = file.line_col(span.start);
        let length = file.line_span(at.line).map_or(0, |line| line.range().len());
        let start = (at.column as usize - 1).min(length);
        let end = (start + span.range().len()).min(length);
        let lines = at.line.saturating_sub(AROUND).max(1)..at.line.saturating_add(AROUND + 1);
        let near = |excerpt: &&mut Excerpt<'_>| {
            excerpt.file.path() == file.path()
                && lines.start <= excerpt.lines.end.saturating_add(TOGETHER)
                && excerpt.lines.start <= lines.end.saturating_add(TOGETHER)
        };
        let mark = (at.line, start..end, *label);
        match excerpts.iter_mut().find(near) {
            Some(excerpt) => {
                excerpt.lines = excerpt.lines.start.min(lines.start)..excerpt.lines.end.max(lines.end);
                excerpt.labels.push(mark);
            }
            None => excerpts.push(Excerpt { file, lines, labels: vec![mark] }),
        }
    }
    html! {
        @for excerpt in &excerpts { (one(excerpt)) }
        @for label in bare {
            @let (file, at) = label.place.position();
            p { code { (Shown(&file)) ":" (at.line) } ": " (prose(&label.text)) }
        }
    }
}

fn one(excerpt: &Excerpt<'_>) -> Markup {
    let path = excerpt.file.path().to_string_lossy();
    let first = excerpt.labels.iter().map(|(line, ..)| *line).min().unwrap_or(1);
    html! {
        div class="code" {
            div class="path" { (Shown(&path)) ":" (first) }
            div class="scroll" tabindex="0" role="group" aria-label="code" {
                @for line in excerpt.lines.clone() {
                    @if let Some(span) = excerpt.file.line_span(line) {
                        (row(line, excerpt.file.slice(span), &excerpt.labels))
                    }
                }
            }
        }
    }
}

fn row(number: u32, text: &str, labels: &[(u32, Range<usize>, &Label)]) -> Markup {
    let own: Vec<_> = labels.iter().filter(|(line, ..)| *line == number).collect();
    let primary = own.iter().any(|(.., label)| label.primary);
    let mark = own.first().map_or(0..0, |(_, range, _)| range.clone());
    let boundary =
        |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let start = boundary(mark.start.saturating_sub(BEFORE));
    let end = boundary(mark.start.saturating_add(BEHIND));
    let (from, to) = (boundary(mark.start).clamp(start, end), boundary(mark.end).clamp(start, end));
    let part = |range: Range<usize>| text.get(range).unwrap_or("").trim_end_matches('\r');
    let class = match (own.is_empty(), primary) {
        (true, _) => "line",
        (false, true) => "line marked primary",
        (false, false) => "line marked",
    };
    html! {
        div class=(class) {
            span class="no" { (number) }
            code {
                @if start > 0 { "…" }
                (Shown(part(start..from)))
                @if from < to { mark { (Shown(part(from..to))) } }
                (Shown(part(to.max(from)..end)))
                @if end < text.len() { "…" }
            }
        }
        @for (.., label) in own {
            div class={ "label" @if label.primary { " primary" } } { (prose(&label.text)) }
        }
    }
}
