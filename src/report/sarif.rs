//! SARIF 2.1.0, within what GitHub code scanning takes.
//!
//! Suppressed findings are counted in a notification and are not among the results: GitHub would open alerts for them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::alike::{distinct, note};
use super::{Report, Verdict, sentence, shortened};
use crate::diag::{Diagnostic, Severity};
use crate::explain::names::demangle;
use crate::explain::{AccessFacts, Explained, Frame, rules};
use crate::finding::Rule;

/// More results than this in a run, and GitHub refuses the file. (It keeps 5,000 of them, the worst first.)
const MAX_RESULTS: usize = 25_000;
/// What GitHub takes of a text.
const MAX_TEXT: usize = 1024;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

#[derive(Serialize)]
struct Log<'r> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<'r>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'r> {
    tool: Tool,
    invocations: [Invocation; 1],
    results: Vec<ResultRow<'r>>,
    column_kind: &'static str,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    version: &'static str,
    semantic_version: &'static str,
    rules: Vec<RuleRow>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleRow {
    id: &'static str,
    short_description: Message,
    full_description: Message,
    help: Help,
    default_configuration: Configuration,
    properties: RuleProperties,
}

#[derive(Serialize)]
struct Help {
    text: String,
    markdown: String,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct RuleProperties {
    tags: [&'static str; 2],
    #[serde(rename = "problem.severity")]
    severity: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_execution_notifications: Vec<Notification>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_configuration_notifications: Vec<Notification>,
}

#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Message,
    #[serde(skip_serializing_if = "Option::is_none")]
    descriptor: Option<Descriptor>,
}

#[derive(Serialize)]
struct Descriptor {
    id: &'static str,
}

#[derive(Serialize)]
struct Message {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultRow<'r> {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Message,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    code_flows: Vec<CodeFlow>,
    partial_fingerprints: BTreeMap<&'static str, String>,
    occurrence_count: u64,
    properties: ResultProperties<'r>,
}

#[derive(Serialize)]
struct ResultProperties<'r> {
    replay: &'r str,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<LocationMessage>,
}

#[derive(Clone, Serialize)]
struct LocationMessage {
    text: String,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactLocation {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_base_id: Option<&'static str>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_column: Option<u32>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    fully_qualified_name: String,
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CodeFlow {
    thread_flows: Vec<ThreadFlow>,
}

#[derive(Serialize)]
struct ThreadFlow {
    id: String,
    message: Message,
    locations: Vec<ThreadFlowLocation>,
}

#[derive(Serialize)]
struct ThreadFlowLocation {
    location: Location,
}

pub(super) fn write(report: &Report, to: &mut dyn Write) -> io::Result<()> {
    let all = distinct(&report.findings);
    let kept = all.get(..MAX_RESULTS).unwrap_or(&all);
    let mut rules: Vec<_> = kept.iter().map(|(finding, _)| finding.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let index: FxHashMap<_, _> = rules.iter().enumerate().map(|(index, rule)| (*rule, index)).collect();
    let mut seen = FxHashMap::default();
    let results = kept.iter().map(|(finding, more)| {
        let number = seen.entry(finding.fingerprint.as_str()).or_insert(0);
        *number += 1;
        result(report, finding, index.get(&finding.rule).copied().unwrap_or(0), *number, *more)
    });
    let log = Log {
        schema: SCHEMA,
        version: "2.1.0",
        runs: [Run {
            results: results.collect(),
            tool: Tool {
                driver: Driver {
                    name: "ptxrace",
                    version: env!("CARGO_PKG_VERSION"),
                    semantic_version: env!("CARGO_PKG_VERSION"),
                    rules: rules.iter().filter_map(|rule| rule_row(*rule)).collect(),
                },
            },
            invocations: [invocation(report, all.len() - kept.len())],
            column_kind: "unicodeCodePoints",
        }],
    };
    serde_json::to_writer_pretty(&mut *to, &log)?;
    writeln!(to)
}

fn message(text: &str) -> Message {
    Message { text: shortened(text, MAX_TEXT) }
}

fn rule_row(rule: Rule) -> Option<RuleRow> {
    let text = rules::text(rule)?;
    let level = ["error", "warning", "note"].into_iter().find(|level| text.severity.starts_with(level))?;
    let (what, why, fix, example) = (text.what, text.why, text.fix, text.example);
    Some(RuleRow {
        id: rule.id(),
        short_description: message(&sentence(text.title)),
        full_description: message(&format!("{what} {why}")),
        help: Help {
            text: format!("{what}\n\n{why}\n\nExample:\n{example}\n\nFix: {fix}"),
            markdown: format!("{what}\n\n{why}\n\n```cuda\n{example}\n```\n\n**Fix.** {fix}"),
        },
        default_configuration: Configuration { level },
        properties: RuleProperties {
            tags: ["correctness", "concurrency"],
            severity: if level == "note" { "recommendation" } else { level },
        },
    })
}

fn invocation(report: &Report, left_out: usize) -> Invocation {
    let level = if report.verdict == Verdict::Inconclusive { "error" } else { "warning" };
    let mut notifications: Vec<_> = report
        .incomplete
        .iter()
        .map(|incomplete| Notification {
            level,
            message: message(&sentence(&format!("inconclusive: {}", incomplete.detail))),
            descriptor: Some(Descriptor { id: incomplete.reason.name() }),
        })
        .collect();
    let mut say = |level, text: String| {
        notifications.push(Notification { level, message: message(&text), descriptor: None });
    };
    if left_out > 0 {
        say(
            "warning",
            format!("{left_out} more findings are left out: a run has at most {MAX_RESULTS} results."),
        );
    }
    for (by, count) in report.suppressions() {
        let findings = if count == 1 { "finding is" } else { "findings are" };
        say("note", format!("{count} {findings} suppressed and left out, by {}.", by.told()));
    }
    let configuration = |diagnostic: &Diagnostic| Notification {
        level: diagnostic.severity.name(),
        message: message(&sentence(&diagnostic.message)),
        descriptor: None,
    };
    Invocation {
        execution_successful: report.incomplete.is_empty(),
        tool_execution_notifications: notifications,
        tool_configuration_notifications: report.notes.iter().map(configuration).collect(),
    }
}

fn result<'r>(
    report: &Report,
    finding: &'r Explained,
    rule_index: usize,
    number: u64,
    more: usize,
) -> ResultRow<'r> {
    let main = finding.accesses.len().saturating_sub(1);
    let mut locations = Vec::new();
    let mut related = Vec::new();
    for (index, access) in finding.accesses.iter().enumerate().rev() {
        let says = numbered(finding, index, &access.text);
        if index == main {
            locations.extend(location(report, access, &access.place, says));
        } else {
            related.extend(location(report, access, &access.place, says));
        }
    }
    for (index, access) in
        finding.accesses.iter().enumerate().filter(|(_, access)| access.place != access.ptx)
    {
        related.extend(location(report, access, &access.ptx, numbered(finding, index, &instruction(access))));
    }
    for (id, location) in related.iter_mut().enumerate() {
        location.id = Some(id + 1);
    }
    let mut sentences =
        [&finding.diagnostic.message, &finding.missing, &finding.help].map(|text| sentence(text)).to_vec();
    sentences.extend(note(finding, more).map(|note| sentence(&note)));
    let text = sentences.join(" ");
    let fingerprints = [
        // What GitHub tells alerts apart by; the number tells findings of one fingerprint apart.
        ("primaryLocationLineHash", format!("{}:{number}", finding.fingerprint)),
        ("ptxrace/v1", finding.fingerprint.clone()),
    ];
    ResultRow {
        rule_id: finding.rule.id(),
        rule_index,
        level: match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        message: message(&text),
        locations,
        related_locations: related,
        code_flows: code_flow(report, finding).into_iter().collect(),
        partial_fingerprints: fingerprints.into_iter().collect(),
        occurrence_count: finding.count,
        properties: ResultProperties { replay: &finding.replay },
    }
}

/// "(2) read, 4 bytes, ...": accesses are numbered where there are several.
fn numbered(finding: &Explained, index: usize, text: &str) -> String {
    if finding.accesses.len() > 1 { format!("({}) {text}", index + 1) } else { text.to_owned() }
}

fn instruction(access: &AccessFacts) -> String {
    format!("is `{}`", access.op)
}

/// One flow for each access: what its thread does, in the source and in PTX.
fn code_flow(report: &Report, finding: &Explained) -> Option<CodeFlow> {
    let flow = |(index, access): (usize, &AccessFacts)| {
        let source = location(report, access, &access.place, access.text.clone());
        let ptx =
            location(report, access, &access.ptx, instruction(access)).filter(|_| access.place != access.ptx);
        let locations: Vec<_> =
            source.into_iter().chain(ptx).map(|location| ThreadFlowLocation { location }).collect();
        (!locations.is_empty()).then(|| ThreadFlow {
            id: format!("access {}", index + 1),
            message: message(&numbered(finding, index, &access.text)),
            locations,
        })
    };
    let thread_flows: Vec<_> = finding.accesses.iter().enumerate().filter_map(flow).collect();
    (!thread_flows.is_empty()).then_some(CodeFlow { thread_flows })
}

/// `None` for an access whose place is unknown.
fn location(report: &Report, access: &AccessFacts, at: &Frame, text: String) -> Option<Location> {
    if at.file.is_empty() {
        return None;
    }
    let kernel = demangle(&access.kernel).full;
    let kernel = LogicalLocation { fully_qualified_name: kernel, kind: "function" };
    Some(Location {
        id: None,
        physical_location: PhysicalLocation {
            artifact_location: artifact(&report.folders.in_root(&at.file)),
            region: (at.line > 0)
                .then(|| Region { start_line: at.line, start_column: (at.column > 0).then_some(at.column) }),
        },
        logical_locations: vec![kernel],
        message: Some(LocationMessage { text: shortened(&text, MAX_TEXT) }),
    })
}

/// What is not a path segment's own in a URI.
const OUTSIDE: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b':')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

fn artifact(path: &str) -> ArtifactLocation {
    let uri = utf8_percent_encode(path, OUTSIDE).to_string();
    if path.starts_with('/') {
        return ArtifactLocation { uri: format!("file://{uri}"), uri_base_id: None };
    }
    ArtifactLocation { uri, uri_base_id: Some("%SRCROOT%") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(artifact("src/a b#1.cu").uri, "src/a%20b%231.cu");
        assert_eq!(artifact("/usr/include/é.h").uri, "file:///usr/include/%C3%A9.h");
        assert_eq!(artifact("a:b/100%.cu").uri, "a%3Ab/100%25.cu");
    }
}
