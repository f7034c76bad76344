//! Texts as the page shows them: nothing in them is markup, moves the reader's eye, or is invisible.

use std::fmt::Write;

use maud::{Markup, Render, html};

/// A text as it stands, whatever is in it.
pub(super) struct Shown<'t>(pub(super) &'t str);

impl Render for Shown<'_> {
    fn render_to(&self, buffer: &mut String) {
        for c in self.0.chars() {
            match c {
                '&' => buffer.push_str("&amp;"),
                '<' => buffer.push_str("&lt;"),
                '>' => buffer.push_str("&gt;"),
                '"' => buffer.push_str("&quot;"),
                '\'' => buffer.push_str("&#39;"),
                '\t' => buffer.push('\t'),
                '\0'..='\x1f' => buffer.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('?')),
                '\x7f' => buffer.push('\u{2421}'),
                c if is_unseen(c) => {
                    let _ = write!(buffer, "\\u{{{:x}}}", u32::from(c));
                }
                c => buffer.push(c),
            }
        }
    }
}

/// Characters that change how their neighbours are shown, or are no characters of HTML.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}')
}

/// A sentence, with code where it has backticks.
pub(super) fn prose(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            // Every other part is code.
            @if index % 2 == 1 { code { (Shown(part)) } } @else { (Shown(part)) }
        }
    }
}

/// A number with its noun.
pub(super) fn count(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// The last part of a path.
pub(super) fn base(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// A text in lines of at most so many characters, broken behind blanks and punctuation where that is possible.
pub(super) fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    while rest.len() > most {
        let breaks = |c: &char| matches!(c, ' ' | ',' | '.' | '/' | ':' | '_');
        let head = rest.get(..most).unwrap_or(&rest);
        let end = match rest.get(most) {
            Some(' ') => most,
            _ => head.iter().rposition(breaks).map_or(most, |at| at + 1),
        };
        let tail = rest.split_off(end.max(1));
        lines.push(rest.iter().collect::<String>().trim().to_owned());
        rest = tail.into_iter().skip_while(|c| *c == ' ').collect();
    }
    lines.push(rest.into_iter().collect::<String>().trim().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_markup() {
        let shown = Shown("<a href=\"x\" b='y'>&\0\r\n\u{1b}[31m\u{202e}é").render().into_string();
        assert_eq!(shown, "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;␀␍␊␛[31m\\u{202e}é");
        assert_eq!(prose("no `<b>` here").into_string(), "no <code>&lt;b&gt;</code> here");
    }

    #[test]
    fn lines_break_where_words_end() {
        assert_eq!(
            wrapped("relaxed write, 4 bytes, scope gpu", 16),
            ["relaxed write, 4", "bytes, scope gpu"]
        );
        assert_eq!(wrapped("st.relaxed.gpu.global.u32", 16), ["st.relaxed.gpu.", "global.u32"]);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("", 3), [""]);
    }
}
