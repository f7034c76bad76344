//! A warp mask against the lanes that execute the instruction.

use maud::{Markup, html};

/// Two rows of 32 lanes.
pub(super) fn mask(id: usize, [given, executing]: [u32; 2]) -> Markup {
    let title = format!("w{id}");
    html! {
        figure {
            svg class="map" viewBox="0 0 344 74" role="img" aria-labelledby=(title) {
                title id=(title) { "Mask " (format!("{given:#010x}")) ", executing lanes " (format!("{executing:#010x}")) }
                @for (name, lanes, y) in [("in the mask", given, 14), ("execute it", executing, 44)] {
                    text class="minor start" x="4" y=(y) { (name) }
                    @for lane in 0..32u32 {
                        @let set = lanes >> lane & 1 == 1;
                        @let differs = (given ^ executing) >> lane & 1 == 1;
                        rect class={ "cell" @if set { " set" } @if differs { " differs" } } x=(4 + lane * 10 + lane / 8 * 4) y=(y + 4) width="9" height="11" {
                            title { "lane " (lane) }
                        }
                    }
                }
            }
            figcaption { "Lanes 0 to 31, from the left; those that differ are framed." }
        }
    }
}
