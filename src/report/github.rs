//! Workflow commands of GitHub Actions, and the summary of a step.

use std::io::{self, Write};

use super::alike::{distinct, note};
use super::{Report, Verdict, shortened};
use crate::diag::Severity;
use crate::explain::names::demangle;
use crate::explain::{AccessFacts, By, Explained};

/// Annotations of one kind that GitHub shows of a step.
const SHOWN: usize = 10;
/// Characters of a message.
const MAX_MESSAGE: usize = 4096;
/// GitHub takes a summary of 1 MiB, and none that is larger.
const MAX_SUMMARY: usize = 1_000_000;

/// One annotation.
struct Annotation {
    kind: &'static str,
    properties: Vec<(&'static str, String)>,
    message: String,
}

pub(super) fn write(report: &Report, to: &mut dyn Write) -> io::Result<()> {
    let mut all: Vec<_> =
        report.incomplete.iter().map(|incomplete| incomplete_row(report, incomplete)).collect();
    all.extend(
        distinct(&report.findings).into_iter().map(|(finding, more)| annotation(report, finding, more)),
    );
    for kind in ["error", "warning", "notice"] {
        let own: Vec<_> = all.iter().filter(|annotation| annotation.kind == kind).collect();
        // The last place that is shown tells what is not.
        let shown = if own.len() > SHOWN { SHOWN - 1 } else { own.len() };
        for annotation in own.iter().take(shown) {
            command(annotation, to)?;
        }
        if own.len() > shown {
            let message =
                format!("{} more are in the step's summary and in other reports", own.len() - shown);
            let title = ("title", format!("ptxrace: more {kind}s"));
            command(&Annotation { kind, properties: vec![title], message }, to)?;
        }
    }
    writeln!(to, "{}", escaped(&report.summary(), false))
}

fn incomplete_row(report: &Report, incomplete: &super::Incomplete) -> Annotation {
    // It is what makes the step fail, unless a race does.
    let kind = if report.verdict == Verdict::Inconclusive { "error" } else { "warning" };
    let mut properties = Vec::new();
    if let Some(label) = incomplete.diagnostic.labels.first() {
        let (file, at) = label.place.position();
        place(report, &file, at.line, at.column, &mut properties);
    }
    properties.push(("title", format!("inconclusive: {}", incomplete.reason.name())));
    Annotation { kind, properties, message: incomplete.detail.clone() }
}

fn annotation(report: &Report, finding: &Explained, more: usize) -> Annotation {
    let mut properties = Vec::new();
    if let Some(access) = finding.accesses.last() {
        place(report, &access.place.file, access.place.line, access.place.column, &mut properties);
    }
    properties.push(("title", format!("{}: {}", finding.rule.id(), finding.diagnostic.message)));
    let mut lines: Vec<_> = finding
        .accesses
        .iter()
        .enumerate()
        .map(|(index, access)| {
            let number = if finding.accesses.len() > 1 { format!("({}) ", index + 1) } else { String::new() };
            format!(
                "{number}{}:{} {}",
                report.folders.in_root(&access.place.file),
                access.place.line,
                access.text
            )
        })
        .collect();
    lines.push(finding.missing.clone());
    lines.extend(note(finding, more));
    lines.extend([format!("help: {}", finding.help), format!("replay: {}", finding.replay)]);
    let kind = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    Annotation { kind, properties, message: lines.join("\n") }
}

fn place(report: &Report, file: &str, line: u32, column: u32, properties: &mut Vec<(&'static str, String)>) {
    if !file.is_empty() {
        properties.push(("file", report.folders.in_root(file)));
        properties.extend((line > 0).then(|| ("line", line.to_string())));
        properties.extend((column > 0).then(|| ("col", column.to_string())));
    }
}

fn command(annotation: &Annotation, to: &mut dyn Write) -> io::Result<()> {
    let properties =
        annotation.properties.iter().map(|(name, value)| format!("{name}={}", escaped(value, true)));
    let properties = properties.collect::<Vec<_>>().join(",");
    let message = escaped(&shortened(&annotation.message, MAX_MESSAGE), false);
    writeln!(to, "::{} {properties}::{message}", annotation.kind)
}

/// A message, or the value of a property, as workflow commands want it.
fn escaped(text: &str, property: bool) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    if property { text.replace(':', "%3A").replace(',', "%2C") } else { text }
}

/// Writes the summary of a step, in Markdown.
pub fn write_summary(report: &Report, to: &mut dyn Write) -> io::Result<()> {
    let mut text = format!("### ptxrace: {}\n\n{}\n\n", report.verdict.name(), cell(&report.summary()));
    let rows: Vec<_> =
        distinct(&report.findings).into_iter().map(|(finding, _)| row(report, finding)).collect();
    if !rows.is_empty() {
        text += "| rule | severity | finding | accesses | kernel | count |\n| --- | --- | --- | --- | --- | --- |\n";
    }
    let mut shown = 0;
    for row in &rows {
        if text.len() + row.len() > MAX_SUMMARY {
            break;
        }
        text += row;
        shown += 1;
    }
    if shown < rows.len() {
        text += &format!("\n{} more findings are left out; the JSON report has all.\n", rows.len() - shown);
    }
    let mut lines: Vec<_> = report.incomplete.iter().map(|i| format!("inconclusive: {}", i.detail)).collect();
    let suppressed = |(by, count): (&By, usize)| format!("suppressed: {count} by {}", by.told());
    lines.extend(report.suppressions().into_iter().map(suppressed));
    let kept = lines.get(..SUMMARY_LINES).unwrap_or(&lines);
    for line in kept {
        text += &format!("\n- {}", cell(&shortened(line, 400)));
    }
    if kept.len() < lines.len() {
        text += &format!("\n- {} more", lines.len() - kept.len());
    }
    writeln!(to, "{}\n", text.trim_end())
}

/// Lines below the table at most; what they need stays within 1 MiB.
const SUMMARY_LINES: usize = 100;

fn row(report: &Report, finding: &Explained) -> String {
    let place = |access: &AccessFacts| {
        format!("{}:{}", report.folders.in_root(&access.place.file), access.place.line)
    };
    let places = finding.accesses.iter().map(place).collect::<Vec<_>>().join(" ");
    let kernel = finding.accesses.last().map_or_else(String::new, |access| demangle(&access.kernel).full);
    let (rule, severity, count) = (finding.rule.id(), finding.severity.name(), finding.count);
    let message = cell(&finding.diagnostic.message);
    format!("| {rule} | {severity} | {message} | {} | {} | {count} |\n", cell(&places), cell(&kernel))
}

/// Text that Markdown leaves alone, but for code in backticks.
fn cell(text: &str) -> String {
    let text = text.replace(['\r', '\n'], " ").replace('\\', "\\\\").replace('|', "\\|");
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            out.push('`');
        }
        // Every other part is code, where nothing but `|` is special.
        out += &if index % 2 == 0 {
            part.replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_")
        } else {
            part.into()
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_escaped() {
        let annotation = Annotation {
            kind: "error",
            properties: vec![("file", "a,b:c%.cu".into()), ("title", "R001: 1\n2".into())],
            message: "100%, (1) a.cu:3\r\n::error::no command\n%0A".into(),
        };
        let mut out = Vec::new();
        command(&annotation, &mut out).unwrap();
        let expected = "::error file=a%2Cb%3Ac%25.cu,title=R001%3A 1%0A2::100%25, (1) a.cu:3%0D%0A\
                        ::error::no command%0A%250A\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn cells_stay_in_their_row() {
        assert_eq!(cell("a|b\nc `x<y_z|w` <p> *i_j*"), "a\\|b c `x<y_z\\|w` &lt;p> \\*i\\_j\\*");
    }
}
