//! Edits: insertions and replacements on the original text. What they do not touch stays byte for byte, and what they
//! put in is known by its spans in the new text.

use std::ops::Range;

use crate::span::Span;

/// Edits of one text, collected in any order.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    list: Vec<Edit>,
    /// All new texts, one behind the other.
    texts: String,
}

#[derive(Clone, Debug)]
struct Edit {
    /// What is replaced; empty for an insertion.
    span: Span,
    /// Where the new text is among all of them.
    text: Range<usize>,
}

/// A text with its edits made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edited {
    /// The new text.
    pub text: String,
    /// What was put in: spans of the new text, sorted, one for each edit that put something in.
    pub inserted: Vec<Span>,
}

/// Why edits cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// Two edits want the same bytes.
    #[error("two edits overlap at byte {0}")]
    Overlap(u32),
    /// The span is not of this text, or cuts a character.
    #[error("an edit lies outside of the text, at byte {0}")]
    Outside(u32),
    /// The new text would be larger than spans can address.
    #[error("the edited text is larger than 4 GiB")]
    TooLarge,
}

impl Edits {
    /// With room for so many edits that have so much text together.
    pub(super) fn with_room(edits: usize, bytes: usize) -> Self {
        Self { list: Vec::with_capacity(edits), texts: String::with_capacity(bytes) }
    }

    /// Puts text before this byte. Several insertions at one byte stand in the order they were made.
    pub fn insert(&mut self, at: u32, text: &str) {
        self.insert_with(at, |out| out.push_str(text));
    }

    /// Puts the text that is written before this byte.
    pub fn insert_with(&mut self, at: u32, write: impl FnOnce(&mut String)) {
        self.replace_with(Span { start: at, end: at }, write);
    }

    /// Puts text in place of these bytes.
    pub fn replace(&mut self, span: Span, text: &str) {
        self.replace_with(span, |out| out.push_str(text));
    }

    /// Puts the text that is written in place of these bytes.
    pub fn replace_with(&mut self, span: Span, write: impl FnOnce(&mut String)) {
        let start = self.texts.len();
        write(&mut self.texts);
        self.list.push(Edit { span, text: start..self.texts.len() });
    }

    /// Makes the edits.
    pub fn apply(mut self, text: &str) -> Result<Edited, EditError> {
        self.list.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let added = self.texts.len();
        if u32::try_from(text.len() + added).is_err() {
            return Err(EditError::TooLarge);
        }
        let mut out = Edited {
            text: String::with_capacity(text.len() + added),
            inserted: Vec::with_capacity(self.list.len()),
        };
        let mut done = 0;
        for edit in &self.list {
            let range = edit.span.range();
            if range.start < done {
                return Err(EditError::Overlap(edit.span.start));
            }
            let kept = text.get(done..range.start).ok_or(EditError::Outside(edit.span.start))?;
            text.get(range.clone()).ok_or(EditError::Outside(edit.span.start))?;
            out.text.push_str(kept);
            let start = out.text.len();
            out.text.push_str(self.texts.get(edit.text.clone()).unwrap_or(""));
            if !edit.text.is_empty() {
                out.inserted.push(Span::new(start, out.text.len()));
            }
            done = range.end;
        }
        out.text.push_str(text.get(done..).unwrap_or(""));
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_edits_give_the_same_bytes() {
        let text = "\t.reg .b32 %r<2>;\r\n\0";
        assert_eq!(Edits::default().apply(text).unwrap(), Edited { text: text.into(), inserted: Vec::new() });
    }

    #[test]
    fn insertions_at_one_place_keep_their_order() {
        let mut edits = Edits::default();
        edits.insert(1, "x");
        edits.insert(1, "y");
        edits.replace(Span::new(1, 2), "z");
        let edited = edits.apply("abc").unwrap();
        assert_eq!(edited.text, "axyzc");
        assert_eq!(edited.inserted, [Span::new(1, 2), Span::new(2, 3), Span::new(3, 4)]);
    }

    #[test]
    fn what_cannot_be_done_is_an_error() {
        let mut edits = Edits::default();
        edits.replace(Span::new(0, 2), "x");
        edits.insert(1, "y");
        assert_eq!(edits.apply("abc"), Err(EditError::Overlap(1)));
        let mut edits = Edits::default();
        edits.insert(9, "y");
        assert_eq!(edits.apply("abc"), Err(EditError::Outside(9)));
    }

    proptest! {
        /// Cutting the inserted spans out of the new text, and what was replaced out of the old, leaves the same.
        #[test]
        fn edits_change_only_what_they_insert(
            text in "[a-z;\n]{0,60}",
            cuts in proptest::collection::vec((0usize..61, 0usize..4, "[A-Z]{0,5}"), 0..12),
        ) {
            let mut edits = Edits::default();
            let mut kept = vec![true; text.len()];
            let mut free = 0;
            let mut sorted = cuts;
            sorted.sort_by_key(|cut| cut.0);
            for (start, length, new) in sorted {
                let (start, end) = (start.min(text.len()), (start + length).min(text.len()));
                if start < free {
                    continue;
                }
                free = end;
                kept[start..end].fill(false);
                edits.replace(Span::new(start, end), &new);
            }
            let edited = edits.apply(&text).unwrap();
            let old: String = text.bytes().zip(&kept).filter(|(_, k)| **k).map(|(b, _)| char::from(b)).collect();
            let mut new = String::new();
            let mut at = 0;
            for span in &edited.inserted {
                new.push_str(&edited.text[at..span.start as usize]);
                at = span.end as usize;
            }
            new.push_str(&edited.text[at..]);
            prop_assert_eq!(old, new);
            prop_assert!(edited.inserted.is_sorted());
        }
    }
}
