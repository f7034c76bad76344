//! A timeline as a drawing: a lane for each thread, time downwards, edges between.

use maud::{Markup, html};

use super::shown::{Shown, base, wrapped};
use crate::explain::{Event, Link, Timeline};

/// Width of a lane, and of the boxes in it.
const LANE: i32 = 172;
const BOX: i32 = 158;
/// Height of a line of text, and what a box has above and below.
const LINE: i32 = 14;
const PAD: i32 = 7;
/// Room between rows, for edges and what is said of them.
const GAP: i32 = 40;
/// Characters that fit.
const FITS: usize = 25;
/// Lines of a text at most.
const LINES: usize = 3;
/// More lanes or events than any finding has; one that was read from a file may.
const MOST: usize = 16;

/// What one event looks like.
struct Drawn<'e> {
    event: &'e Event,
    /// What happens; the opcode; where.
    text: Vec<String>,
    op: Vec<String>,
    at: String,
}

impl Drawn<'_> {
    fn height(&self) -> i32 {
        let lines = self.text.len() + self.op.len() + usize::from(!self.at.is_empty());
        if self.event.lane.is_none() { 20 } else { number(lines) * LINE + 2 * PAD }
    }
}

/// An SVG with this timeline; `None` if there is nothing to draw.
pub(super) fn picture(id: usize, timeline: &Timeline) -> Option<Markup> {
    let (lanes, events) = (timeline.lanes.len(), timeline.events.len());
    if lanes == 0 || events == 0 || lanes > MOST || events > MOST {
        return None;
    }
    let drawn: Vec<_> = timeline.events.iter().map(draw).collect();
    let heads: Vec<_> = timeline.lanes.iter().map(|lane| cut(&lane.detail, FITS + 5)).collect();
    let head = 22 + LINE * number(heads.iter().map(Vec::len).max().unwrap_or(0));
    // Tops of rows.
    let rows = drawn.iter().map(|d| d.event.row as usize + 1).max().unwrap_or(0).min(MOST);
    let mut tops = vec![head + 8; rows + 1];
    for row in 0..rows {
        let own = drawn.iter().filter(|d| d.event.row as usize == row);
        let height = own.map(Drawn::height).max().unwrap_or(0);
        let top = tops.get(row).copied().unwrap_or(head);
        if let Some(next) = tops.get_mut(row + 1) {
            *next = top + height + GAP;
        }
    }
    let top = |d: &Drawn<'_>| tops.get(d.event.row as usize).copied().unwrap_or(head);
    let width = number(lanes) * LANE + 8;
    let height = tops.last().copied().unwrap_or(head) - GAP / 2;
    let centre = |lane: u32| 4 + LANE / 2 + lane.min(MOST as u32) as i32 * LANE;
    let title = format!("p{id}");
    Some(html! {
        svg class="timeline" viewBox={ "0 0 " (width) " " (height) } style={ "min-width:" (width - 66) "px;max-width:" (width * 4 / 3) "px" } role="img" aria-labelledby=(title) {
            title id=(title) { (Shown(&said(timeline))) }
            @for (index, lane) in timeline.lanes.iter().enumerate() {
                @let x = 4 + LANE / 2 + number(index) * LANE;
                text class="lane" x=(x) y="14" { (Shown(&fitting(&lane.title, FITS))) }
                @for (line, text) in heads.get(index).into_iter().flatten().enumerate() {
                    text class="minor" x=(x) y=(28 + LINE * number(line)) { (Shown(text)) }
                }
                line class="time" x1=(x) y1=(head) x2=(x) y2=(height - 7) {}
                path class="time" d={ "M" (x - 4) " " (height - 11) " l4 7 l4 -7" } {}
            }
            @for edge in &timeline.edges {
                @if let (Some(from), Some(to)) = (drawn.get(edge.from as usize), drawn.get(edge.to as usize)) {
                    @let x1 = from.event.lane.map_or(width / 2, centre);
                    @let x2 = to.event.lane.map_or(width / 2, centre);
                    @let y1 = top(from) + from.height();
                    @let class = match edge.link { Link::Orders => "edge orders", Link::Observes => "edge observes", Link::Missing => "edge missing" };
                    @if from.event.row == to.event.row {
                        @let below = y1.max(top(to) + to.height()) + 14;
                        path class=(class) d={ "M" (x1) " " (y1) " V" (below) " H" (x2) " V" (top(to) + to.height()) } {}
                        (pill(class, &edge.text, (x1 + x2) / 2, below, width))
                    } @else {
                        @let y2 = top(to);
                        path class=(class) d={ "M" (x1) " " (y1) " L" (x2) " " (y2 - 6) } {}
                        path class={ (class) " head" } d={ "M" (x2 - 4) " " (y2 - 8) " l4 7 l4 -7" } {}
                        // In the gap above the later event, on the line.
                        @let y = y2 - GAP / 2 - 1;
                        @let x = if y2 - y1 > 0 { x1 + (x2 - x1) * (y - y1) / (y2 - y1) } else { (x1 + x2) / 2 };
                        (pill(class, &edge.text, x, y, width))
                    }
                }
            }
            @for event in &drawn { (boxed(event, top(event), centre, width)) }
        }
    })
}

fn draw(event: &Event) -> Drawn<'_> {
    let text = match event.access {
        Some(access) => format!("({access}) {}", event.text),
        None => event.text.clone(),
    };
    // A sentence may name the opcode.
    let known = event.op.is_empty() || event.text.contains(&event.op);
    let op = if known { Vec::new() } else { cut(&event.op, FITS) };
    // Bold letters are wide. Of a place the end matters.
    let at = base(&event.at).chars().rev().collect::<String>();
    let at = fitting(&at, FITS + 2).chars().rev().collect();
    Drawn { event, text: cut(&text.replace('`', ""), FITS - 3), op, at }
}

/// A text in a few lines.
fn cut(text: &str, most: usize) -> Vec<String> {
    let mut lines = wrapped(text, most);
    if lines.len() > LINES {
        lines.truncate(LINES);
        if let Some(last) = lines.last_mut() {
            *last = fitting(&format!("{last}……"), most);
        }
    }
    lines
}

fn boxed(drawn: &Drawn<'_>, top: i32, centre: impl Fn(u32) -> i32, width: i32) -> Markup {
    let Some(lane) = drawn.event.lane else {
        return html! {
            g class="barrier" {
                rect x="4" y=(top) width=(width - 8) height="20" rx="3" {}
                text x=(width / 2) y=(top + 14) { (Shown(&drawn.event.text.replace('`', ""))) }
            }
        };
    };
    let x = centre(lane);
    let class = match drawn.event.access {
        Some(_) => "access",
        None => "step",
    };
    let line = |index: usize| top + PAD + 11 + number(index) * LINE;
    html! {
        g class=(class) {
            title { (Shown(&drawn.event.text)) " " (Shown(&drawn.event.op)) " " (Shown(&drawn.event.at)) }
            rect x=(x - BOX / 2) y=(top) width=(BOX) height=(drawn.height()) rx="5" {}
            @for (index, text) in drawn.text.iter().enumerate() {
                text class="strong" x=(x) y=(line(index)) { (Shown(text)) }
            }
            @for (index, text) in drawn.op.iter().enumerate() {
                text class="mono" x=(x) y=(line(drawn.text.len() + index)) { (Shown(text)) }
            }
            @if !drawn.at.is_empty() {
                text class="minor" x=(x) y=(line(drawn.text.len() + drawn.op.len())) { (Shown(&drawn.at)) }
            }
        }
    }
}

/// What is said of an edge, on its line.
fn pill(class: &str, text: &str, x: i32, y: i32, width: i32) -> Markup {
    let text = fitting(text, 40);
    let half = number(text.chars().count()) * 3 + 9;
    let x = if 2 * half > width { width / 2 } else { x.clamp(half + 1, width - half - 1) };
    html! {
        g class={ "pill " (class) } {
            rect x=(x - half) y=(y - 9) width=(2 * half) height="17" rx="8" {}
            text x=(x) y=(y + 3) { (Shown(&text)) }
        }
    }
}

/// The picture in words.
fn said(timeline: &Timeline) -> String {
    let event = |index: u32| {
        timeline.events.get(index as usize).map_or_else(String::new, |event| match event.access {
            Some(access) => format!("({access})"),
            None => event.text.clone(),
        })
    };
    let edges = timeline.edges.iter().map(|edge| {
        format!("{} to {}: {}, {}", event(edge.from), event(edge.to), edge.link.name(), edge.text)
    });
    let lanes = timeline.lanes.iter().map(|lane| lane.title.clone()).collect::<Vec<_>>().join("; ");
    std::iter::once(format!("Timeline of {lanes}")).chain(edges).collect::<Vec<_>>().join(". ")
}

fn fitting(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn number(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX / 1024)
}
