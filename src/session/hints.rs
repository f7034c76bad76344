//! What would make a report say more.

use crate::diag::{Diagnostic, Place};
use crate::explain::Explained;

/// Files that one note names.
const NAMED: usize = 3;

/// Modules without line information, and sources that are not where their modules say.
pub(super) fn sources(findings: &[Explained]) -> Vec<Diagnostic> {
    let (mut bare, mut lost) = (Vec::new(), Vec::new());
    for finding in findings {
        for access in finding.accesses.iter().filter(|access| access.ptx.line > 0) {
            if access.source.is_empty() {
                add(&mut bare, &access.ptx.file);
            }
        }
        for label in &finding.diagnostic.labels {
            if let Place::Line { file, .. } = &label.place {
                add(&mut lost, file);
            }
        }
    }
    let mut notes = Vec::new();
    if !bare.is_empty() {
        let message = format!("no source lines are known for accesses of {}", listed(&bare));
        notes.push(Diagnostic::remark(message).help("`nvcc -lineinfo` puts them into the PTX"));
    }
    if !lost.is_empty() {
        let message = format!("sources were not found where their modules say: {}", listed(&lost));
        notes.push(
            Diagnostic::remark(message)
                .help("`--source-path DIR` or `--source-map FROM=TO` tells where they are"),
        );
    }
    notes
}

fn add(names: &mut Vec<String>, name: &str) {
    // A report of very many findings has few files.
    if names.len() <= NAMED && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// "`a.cu`, `b.cu`"
fn listed(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > NAMED { " and others" } else { "" };
    format!("{}{more}", shown.join(", "))
}
