//! The elements that a finding races on, by thread, as a drawing.

use maud::{Markup, html};

use super::shown::Shown;
use crate::explain::{Explained, Spot};

const WIDTH: u64 = 344;
const HEIGHT: u64 = 170;
/// The plot inside.
const LEFT: u64 = 14;
const TOP: u64 = 12;
const ACROSS: u64 = 316;
const DOWN: u64 = 120;

/// A figure; `None` if one address is all there is.
pub(super) fn map(id: usize, finding: &Explained) -> Option<Markup> {
    let (spread, object) = (finding.spread.as_ref()?, finding.object.as_ref()?);
    if spread.spots.is_empty() {
        return None;
    }
    // Between blocks it matters which, within blocks which thread.
    let within = spread.spots.iter().all(|spot| spot.by[0][0] == spot.by[1][0]);
    let who = |[block, thread]: [u32; 2]| u64::from(if within { thread } else { block });
    let ends = |spot: &Spot| spot.by.map(who);
    let all = || spread.spots.iter().flat_map(ends);
    let (low, high) = (all().min()?, all().max()?);
    let [first, last] = spread.elements;
    let x = |element: u64| LEFT + scaled(element, first, last, ACROSS);
    let y = |who: u64| TOP + scaled(who, low, high, DOWN);
    let what = if within { "thread of the block" } else { "block" };
    let title = format!("m{id}");
    let [from, to] = [first, last].map(|element| format!("{}[{element}]", object.name));
    // Dots are strokes without length: one element for all of them.
    let path = |rest: &dyn Fn(&Spot) -> String| {
        spread.spots.iter().map(|spot| format!("M{} {}", x(spot.element), rest(spot))).collect::<String>()
    };
    let all_shown = spread.spots.len() as u64 == spread.addresses;
    Some(html! {
        figure {
            svg class="map" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-labelledby=(title) {
                title id=(title) {
                    "Racy elements from " (Shown(&from)) " to " (Shown(&to)) ", " (what) " from " (low) " to " (high)
                }
                rect class="plot" x=(LEFT - 7) y=(TOP - 7) width=(ACROSS + 14) height=(DOWN + 14) rx="4" {}
                path class="link" d=(path(&|spot| { let [one, two] = ends(spot); format!("{} V{}", y(one), y(two)) })) {}
                path class="one" d=(path(&|spot| format!("{} h0", y(ends(spot)[0])))) {}
                path class="two" d=(path(&|spot| format!("{} h0", y(ends(spot)[1])))) {}
                text class="minor start" x=(LEFT - 7) y=(TOP + DOWN + 22) { (Shown(&cut(&from))) }
                text class="minor end" x=(LEFT + ACROSS + 7) y=(TOP + DOWN + 22) { (Shown(&cut(&to))) }
                text class="minor" x=(WIDTH / 2) y=(TOP + DOWN + 36) { (what) " " (low) " (top) to " (high) " (bottom)" }
            }
            figcaption {
                "Racy elements by thread: " span class="one" { "● (1)" } ", " span class="two" { "■ (2)" } ". "
                @if all_shown { "All " (spread.addresses) " addresses, " }
                @else { (spread.spots.len()) " of " (spread.addresses) " addresses, spread over all, " }
                "each with the first conflict seen there."
            }
        }
    })
}

/// Where a value is between two others, on a line of this length; in its middle if they are equal.
fn scaled(value: u64, low: u64, high: u64, length: u64) -> u64 {
    let (value, range) = (u128::from(value.saturating_sub(low)), u128::from(high.saturating_sub(low)));
    let at = (value * u128::from(length)).checked_div(range).unwrap_or(u128::from(length / 2));
    u64::try_from(at).unwrap_or(length).min(length)
}

fn cut(text: &str) -> String {
    if text.chars().count() <= 26 { text.to_owned() } else { text.chars().take(25).chain(['…']).collect() }
}
