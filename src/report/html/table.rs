//! The table of all findings. The script adds what filters and sorts; without it the table is in the order of the report.

use maud::{Markup, PreEscaped, html};

use super::shown::{Shown, base, count, prose};
use crate::diag::Severity;
use crate::explain::Explained;
use crate::explain::names::demangle;

/// Names of columns, whether a narrow screen lacks them, and what they are sorted as.
const COLUMNS: [(&str, bool, &str); 7] = [
    ("#", false, "number"),
    ("Severity", false, "rank"),
    ("Rule", false, "text"),
    ("Finding", false, "text"),
    ("Object", true, "text"),
    ("Where", true, "text"),
    ("Count", true, "number"),
];

pub(super) fn begin(findings: &[(&Explained, usize)]) -> Markup {
    let mut rules: Vec<_> = findings.iter().map(|(finding, _)| finding.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    html! {
        (PreEscaped("<section aria-labelledby=\"findings\">\n"))
        h2 id="findings" { "Findings" }
        form id="filter" hidden {
            label { "Text " input type="search" name="text" autocomplete="off"; }
            label { "Rule "
                select name="rule" {
                    option value="" { "all" }
                    @for rule in rules { option { (rule.id()) } }
                }
            }
            label { "Severity "
                select name="severity" {
                    option value="" { "all" }
                    @for severity in Severity::ALL.iter().rev() { option { (severity.name()) } }
                }
            }
            output name="shown" aria-live="polite" {}
        }
        (PreEscaped("<div class=\"scroll\" tabindex=\"0\"><table id=\"table\">\n"))
        thead { tr {
            @for (name, wide, sort) in COLUMNS {
                th scope="col" class=[wide.then_some("wide")] data-sort=(sort) { (name) }
            }
        } }
        (PreEscaped("\n<tbody>\n"))
    }
}

pub(super) fn row(number: usize, finding: &Explained, more: usize) -> Markup {
    let severity = finding.severity.name();
    let object = finding.object.as_ref().map_or("", |object| object.name.as_str());
    let kernel = finding.accesses.last().map_or_else(String::new, |access| demangle(&access.kernel).full);
    html! {
        tr data-severity=(severity) data-rule=(finding.rule.id()) {
            td { (number) }
            td { span class={ "severity " (severity) } { (severity) } }
            td { (finding.rule.id()) }
            td {
                a href={ "#f" (number) } { (prose(&finding.diagnostic.message)) }
                @if !kernel.is_empty() { div class="minor" { "in " code { (Shown(&kernel)) } } }
                @if more > 0 { div class="minor" { "and " (more) " alike" } }
            }
            td class="wide" { @if !object.is_empty() { code { (Shown(object)) } } }
            td class="wide minor" {
                @for (index, access) in finding.accesses.iter().enumerate() {
                    @if !access.place.file.is_empty() {
                        div title=(Shown(&access.place.file)) {
                            "(" (index + 1) ") " (Shown(base(&access.place.file))) ":" (access.place.line)
                        }
                    }
                }
            }
            td class="wide number" { (finding.count) }
        }
        "\n"
    }
}

pub(super) fn end(all: usize) -> Markup {
    html! {
        (PreEscaped("</tbody>\n</table></div>\n"))
        @if all > super::DRAWN {
            p {
                "Pictures and sources are drawn for the first " (super::DRAWN) " of "
                (count(all as u64, "finding")) ", the worst first. Of the rest the page has the words; "
                "a filter, a baseline or suppressions bring them into the first."
            }
        }
        (PreEscaped("</section>\n"))
    }
}
