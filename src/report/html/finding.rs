//! One finding: what is missing and what to do, its picture, and the code beside it.

use maud::{Markup, html};

use super::shown::{Shown, prose};
use super::{excerpt, map, mask, picture};
use crate::explain::{AccessFacts, Explained};
use crate::report::alike::note;
use crate::report::sentence;

pub(super) fn section(number: usize, finding: &Explained, more: usize, drawn: bool) -> Markup {
    let severity = finding.severity.name();
    let notes = finding.diagnostic.notes.iter().filter(|note| {
        // These stand elsewhere.
        **note != finding.missing && !note.starts_with("replay: ")
    });
    // Many lanes take all of the width.
    let class = match (drawn, finding.timeline.lanes.len()) {
        (false, _) => "beside",
        (true, 0..=2) => "beside drawn",
        (true, _) => "beside stacked",
    };
    html! {
        details class="finding" id={ "f" (number) } open[number == 1] {
            summary {
                h3 {
                    span class="minor" { "#" (number) } " "
                    span class={ "severity " (severity) } { (severity) } " "
                    (finding.rule.id()) " " (prose(&finding.diagnostic.message))
                }
            }
            div class=(class) {
                @if drawn { (pictures(number, finding)) }
                div {
                    p class="missing" { strong { "Missing. " } (prose(&sentence(&finding.missing))) }
                    p class="help" { strong { "Help. " } (prose(&sentence(&finding.help))) }
                    @if drawn { (excerpt::excerpts(finding)) } @else { (accesses(finding)) }
                }
            }
            @if drawn { h4 { "Facts" } }
            ul class="facts" {
                @for note in notes { li { (prose(note)) } }
                @if let Some(note) = note(finding, more) { li { (prose(&note)) } }
                li { "what the rule means: " a href={ "#rule-" (finding.rule.id()) } { (finding.rule.id()) } }
                li { "fingerprint " code { (Shown(&finding.fingerprint)) } }
                @if !finding.replay.is_empty() { li { "replay: " code { (Shown(&finding.replay)) } } }
            }
        }
        "\n"
    }
}

fn pictures(number: usize, finding: &Explained) -> Markup {
    let picture = picture::picture(number, &finding.timeline);
    let map = map::map(number, finding);
    html! {
        div class="pictures" {
            @if let Some(picture) = picture {
                figure class="lanes" tabindex="0" {
                    (picture)
                    figcaption { "What is known of the order; time runs downwards." }
                }
            } @else {
                p class="minor" { "This report has no timeline of the finding." }
            }
            @if let Some(lanes) = finding.timeline.mask { (mask::mask(number, lanes)) }
            @if let Some(map) = map { (map) }
        }
    }
}

/// The accesses, in words.
fn accesses(finding: &Explained) -> Markup {
    let place = |access: &AccessFacts| format!("{}:{}", access.place.file, access.place.line);
    html! {
        ol class="accesses" {
            @for access in &finding.accesses {
                li {
                    code { (Shown(&access.op)) } " "
                    @if !access.place.file.is_empty() { code { (Shown(&place(access))) } ": " }
                    (prose(&access.text))
                }
            }
        }
    }
}
