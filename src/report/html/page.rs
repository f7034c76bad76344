//! The page around the findings: what the run says as a whole, and what the rules mean.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::LISTED;
use super::shown::{Shown, count, prose};
use crate::diag::{Diagnostic, Severity};
use crate::explain::names::demangle;
use crate::explain::rules;
use crate::report::{Report, Verdict, sentence};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// Nothing is loaded, whatever a name manages to put into the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// From the first line to what was not seen.
pub(super) fn begin(report: &Report) -> Markup {
    let verdict = report.verdict.name();
    html! {
        (DOCTYPE)
        (PreEscaped("<html lang=\"en\">\n<head>\n"))
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        meta http-equiv="Content-Security-Policy" content=(POLICY);
        title { "ptxrace: " (verdict) }
        style { (PreEscaped(STYLE)) }
        (PreEscaped("\n</head>\n<body>\n"))
        header {
            h1 { "ptxrace " span class={ "verdict " (verdict) } { (verdict) } }
            p { (told(report)) }
        }
        (PreEscaped("\n<main>\n"))
        (summary(report))
        (incomplete(report))
    }
}

fn told(report: &Report) -> &'static str {
    match report.verdict {
        Verdict::Race => "Accesses were found that nothing orders, or synchronisation that is wrong.",
        Verdict::Clean => "No finding of severity error, and nothing that ran went unseen.",
        Verdict::Inconclusive => {
            "No finding of severity error, but something was not seen: “clean” would be a guess."
        }
    }
}

fn summary(report: &Report) -> Markup {
    let number = |severity| report.count(severity) as u64;
    let records: u64 = report.launches.iter().map(|launch| launch.records).sum();
    let dropped: u64 = report.launches.iter().map(|launch| launch.dropped).sum();
    let (incomplete, suppressed) = (report.incomplete.len() as u64, report.suppressed.len() as u64);
    let rows = [
        ("errors", number(Severity::Error), "error"),
        ("warnings", number(Severity::Warning), "warning"),
        ("notes", number(Severity::Note), ""),
        ("suppressed", suppressed, ""),
        ("not seen", incomplete, "warning"),
        ("launches", report.launches.len() as u64, ""),
        ("records", records, ""),
        ("dropped", dropped, "warning"),
    ];
    html! {
        section aria-labelledby="summary" {
            h2 id="summary" { "Summary" }
            dl class="cards" {
                @for (name, number, class) in rows {
                    div class=[(number > 0 && !class.is_empty()).then_some(class)] {
                        dt { (name) }
                        dd { (number) }
                    }
                }
            }
        }
        "\n"
    }
}

fn incomplete(report: &Report) -> Markup {
    html! {
        @if !report.incomplete.is_empty() {
            section class="incomplete" aria-labelledby="incomplete" {
                h2 id="incomplete" { "What was not seen" }
                ul {
                    @for incomplete in &report.incomplete {
                        li {
                            strong { (incomplete.reason.name()) } ": "
                            (prose(&incomplete.detail))
                            (more(&incomplete.diagnostic))
                        }
                    }
                }
            }
            "\n"
        }
    }
}

/// Places, notes and advice of a diagnostic.
fn more(diagnostic: &Diagnostic) -> Markup {
    html! {
        @if !diagnostic.labels.is_empty() || !diagnostic.notes.is_empty() || !diagnostic.help.is_empty() {
            ul {
                @for label in &diagnostic.labels {
                    @let (file, at) = label.place.position();
                    li { code { (Shown(&file)) ":" (at.line) } " " (prose(&label.text)) }
                }
                @for note in &diagnostic.notes { li { (prose(note)) } }
                @for help in &diagnostic.help { li { strong { "help" } ": " (prose(help)) } }
            }
        }
    }
}

/// From what is suppressed to the last line.
pub(super) fn end(report: &Report) -> Markup {
    html! {
        (suppressed(report))
        (launches(report))
        (assumed(report))
        (rules_found(report))
        (PreEscaped("\n</main>\n"))
        footer {
            p {
                "Made by ptxrace " (env!("CARGO_PKG_VERSION")) ". "
                "In pictures time runs downwards; a solid edge orders, a dotted one does not, a dashed one is missing."
            }
        }
        script { (PreEscaped(SCRIPT)) }
        (PreEscaped("\n</body>\n</html>\n"))
    }
}

fn suppressed(report: &Report) -> Markup {
    let shown = report.suppressed.get(..LISTED).unwrap_or(&report.suppressed);
    html! {
        @if !shown.is_empty() {
            section aria-labelledby="suppressed" {
                h2 id="suppressed" { "Suppressed" }
                details {
                    summary { (count(report.suppressed.len() as u64, "finding")) " that do not count" }
                    div class="scroll" tabindex="0" { table {
                        thead { tr { th scope="col" { "Rule" } th scope="col" { "Finding" } th scope="col" { "By" } } }
                        tbody {
                            @for one in shown {
                                tr {
                                    td { (one.finding.rule.id()) }
                                    td { (prose(&one.finding.diagnostic.message)) }
                                    td { (prose(&one.by.told())) }
                                }
                            }
                        }
                    } }
                    (left_out(shown.len(), report.suppressed.len()))
                }
            }
            "\n"
        }
    }
}

fn launches(report: &Report) -> Markup {
    let shown = report.launches.get(..LISTED).unwrap_or(&report.launches);
    let size = |n: [u32; 3]| format!("{}×{}×{}", n[0], n[1], n[2]);
    html! {
        section aria-labelledby="launches" {
            h2 id="launches" { "Launches" }
            @if shown.is_empty() { p { "Nothing was launched." } } @else {
                details open[report.launches.len() <= 10] {
                    summary { (count(report.launches.len() as u64, "launch").replace("launchs", "launches")) }
                    div class="scroll" tabindex="0" { table {
                        thead { tr {
                            @for name in ["Launch", "Kernel", "Grid", "Block", "Stream", "Backend", "Records", "Dropped"] {
                                th scope="col" { (name) }
                            }
                        } }
                        tbody {
                            @for launch in shown {
                                tr {
                                    td { "#" (launch.id) }
                                    td { code { (Shown(&demangle(&launch.kernel).full)) } }
                                    td { (size(launch.grid)) }
                                    td { (size(launch.block)) }
                                    td { (launch.stream) @if launch.device != 0 { " of device " (launch.device) } }
                                    td { (launch.backend) }
                                    td { (launch.records) }
                                    td { (launch.dropped) }
                                }
                            }
                        }
                    } }
                    (left_out(shown.len(), report.launches.len()))
                }
            }
        }
        "\n"
    }
}

fn left_out(shown: usize, all: usize) -> Markup {
    html! {
        @if shown < all { p { (all - shown) " more are left out here; the JSON report has all." } }
    }
}

fn assumed(report: &Report) -> Markup {
    html! {
        @if !report.notes.is_empty() {
            section aria-labelledby="assumed" {
                h2 id="assumed" { "What was assumed" }
                ul { @for note in &report.notes { li { (prose(&note.message)) (more(note)) } } }
            }
            "\n"
        }
    }
}

/// The texts of `ptxrace explain`, for the rules that have findings.
fn rules_found(report: &Report) -> Markup {
    let mut found: Vec<_> = report.findings.iter().map(|finding| finding.rule).collect();
    found.sort_unstable();
    found.dedup();
    html! {
        @if !found.is_empty() {
            section aria-labelledby="rules" {
                h2 id="rules" { "Rules" }
                @for rule in found {
                    @if let Some(text) = rules::text(rule) {
                        details id={ "rule-" (rule.id()) } {
                            summary { strong { (rule.id()) } " " (prose(&sentence(text.title))) }
                            p { (prose(text.what)) " " (prose(text.why)) }
                            pre tabindex="0" { code { (text.example) } }
                            p { strong { "Fix. " } (prose(text.fix)) }
                        }
                    }
                }
            }
            "\n"
        }
    }
}
