//! Where the accesses of a finding are shown, and what is said of them there. Made of facts alone, so that a report
//! that was read from a file is drawn as it was when it was made, if the sources are still there.

use std::fmt::Write;

use super::{AccessFacts, Explained, Frame, Sources, user_frame};
use crate::diag::{Label, Place};
use crate::span::Span;

/// Both accesses in the source, the last one first, as it is the one that the message is about; then both in PTX.
/// `ptx` has the instruction of each access, `None` for one that is unknown.
pub(super) fn labels(accesses: &[AccessFacts], ptx: &[Option<Place>], sources: &Sources) -> Vec<Label> {
    let several = accesses.len() > 1;
    let one_site = several && accesses.windows(2).all(|pair| pair[0].ptx == pair[1].ptx);
    let mut above = Vec::new();
    let mut below: Vec<Label> = Vec::new();
    for (index, (access, place)) in accesses.iter().zip(ptx).enumerate().rev() {
        let Some(place) = place.clone() else { continue };
        let number = if several { format!("({}) ", index + 1) } else { String::new() };
        let text = number + &access.text;
        let primary = above.is_empty() && below.is_empty();
        let Some(shown) = user_frame(&access.source) else {
            below.push(Label { place, text, primary });
            continue;
        };
        above.push(sources.label(shown, text, primary));
        let text = match (several, one_site) {
            (_, true) if below.is_empty() => "both are this instruction".to_owned(),
            (_, true) => continue,
            (true, false) => format!("({}) is this instruction", index + 1),
            (false, false) => "this instruction".to_owned(),
        };
        below.push(Label { place, text: text + &inlined(&access.source, shown), primary: false });
    }
    above.append(&mut below);
    above
}

/// Where an access is shown.
pub(super) fn place(access: &AccessFacts, sources: &Sources) -> Frame {
    let Some(shown) = user_frame(&access.source) else { return access.ptx.clone() };
    let (file, at) = sources.label(shown, String::new(), true).place.position();
    Frame { file, line: at.line, column: at.column }
}

/// Draws the labels of a finding that was read from a file.
pub fn again(finding: &mut Explained, sources: &Sources) {
    for access in &mut finding.accesses {
        // It may be found where it was not when the report was made.
        if let Some(found) = sources.file(&access.place.file) {
            access.place.file = found.path().to_string_lossy().into_owned();
        }
    }
    let place = |access: &AccessFacts| {
        (!access.ptx.file.is_empty())
            .then(|| instruction(&access.ptx, sources).unwrap_or_else(|| bare(&access.ptx)))
    };
    // Names in modules are relative to the module's folder; where the file was found is known.
    let resolved: Vec<_> = finding
        .accesses
        .iter()
        .map(|access| {
            let shown = user_frame(&access.source).map(|shown| shown.file.clone());
            let rename = |frame: &Frame| match &shown {
                Some(file) if *file == frame.file => {
                    Frame { file: access.place.file.clone(), ..frame.clone() }
                }
                _ => frame.clone(),
            };
            AccessFacts { source: access.source.iter().map(rename).collect(), ..access.clone() }
        })
        .collect();
    let ptx: Vec<_> = resolved.iter().map(place).collect();
    finding.diagnostic.labels = labels(&resolved, &ptx, sources);
}

fn bare(frame: &Frame) -> Place {
    Place::Line { file: frame.file.clone(), line: frame.line, column: frame.column }
}

/// From a position to the end of the instruction there.
fn instruction(at: &Frame, sources: &Sources) -> Option<Place> {
    let file = sources.file(&at.file)?;
    let line = file.line_span(at.line)?;
    let start = line.start as usize + (at.column as usize).saturating_sub(1);
    let text = file.text().get(start..line.end as usize)?;
    let code = text.split("//").next().unwrap_or(text);
    let code = code.split_once(';').map_or(code, |(code, _)| code).trim_end();
    let span = Span::new(start, start + code.len());
    (!code.is_empty()).then_some(Place::Text { span, file: file.clone() })
}

/// ", inlined from atomics.hpp:90, called at a.cu:7": the innermost and the outermost frame, if others than that shown.
/// Folders are left out: those of a toolkit's headers are long and say nothing.
fn inlined(frames: &[Frame], shown: &Frame) -> String {
    let mut text = String::new();
    for (what, frame) in [("inlined from", frames.first()), ("called at", frames.last())] {
        if let Some(frame) = frame.filter(|frame| *frame != shown) {
            let file = frame.file.rsplit(['/', '\\']).next().unwrap_or(&frame.file);
            let _ = write!(text, ", {what} {file}:{}", frame.line);
        }
    }
    text
}
