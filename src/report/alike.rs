//! Findings that are one to a reader of the source.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::diag::Diagnostic;
use crate::explain::{AccessFacts, Explained};

/// Each finding that a reader of the source has not seen, with how many are alike: a loop that was unrolled, or a line of
/// several accesses, has many pairs of instructions, and a finding for each. Without source lines every pair is shown.
pub(super) fn distinct(findings: &[Explained]) -> Vec<(&Explained, usize)> {
    let mut shown: Vec<(&Explained, usize)> = Vec::new();
    let mut seen = FxHashMap::default();
    for finding in findings {
        let at = match key(finding) {
            Some(key) => *seen.entry(key).or_insert(shown.len()),
            None => shown.len(),
        };
        match shown.get_mut(at) {
            Some((_, more)) => *more += 1,
            None => shown.push((finding, 0)),
        }
    }
    shown
}

/// What is equal for findings that are alike; `None` for one with an access whose source is unknown.
fn key(finding: &Explained) -> Option<impl Eq + Hash> {
    let line = |access: &AccessFacts| {
        access.source.iter().map(|frame| (frame.file.clone(), frame.line)).collect::<Vec<_>>()
    };
    let mut lines: Vec<_> = finding.accesses.iter().map(line).collect();
    lines.sort();
    let object = finding.object.as_ref().map(|object| object.name.clone());
    let what = (finding.rule, finding.severity, finding.kind, finding.relation, finding.launch, object);
    lines.iter().all(|line| !line.is_empty()).then_some((what, lines))
}

/// What is said of a finding, with a note of how many more are alike.
pub(super) fn told(finding: &Explained, more: usize) -> Diagnostic {
    let mut diagnostic = finding.diagnostic.clone();
    if let Some(note) = note(finding, more) {
        // The replay command stays the last note.
        diagnostic.notes.insert(diagnostic.notes.len().saturating_sub(1), note);
    }
    diagnostic
}

/// The note of how many more are alike, if any are.
pub(super) fn note(finding: &Explained, more: usize) -> Option<String> {
    let what = match (finding.accesses.len(), more) {
        (0 | 1, 1) => "instruction of this line",
        (0 | 1, _) => "instructions of this line",
        (_, 1) => "pair of instructions of these lines",
        _ => "pairs of instructions of these lines",
    };
    (more > 0).then(|| format!("the same for {more} more {what}"))
}
