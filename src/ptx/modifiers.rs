//! The dot words behind an opcode, kept as their text: most instructions are never asked for them.

use std::fmt::{self, Debug};

use super::ast::Word;
use super::lex;
use crate::span::Span;

/// The modifiers of an instruction, without their dots; a word may hold `::`.
#[derive(Clone, Copy, Default)]
pub struct Modifiers<'a> {
    /// From the first dot to the end of the last word, with the blanks and comments that are in between.
    text: &'a str,
    /// Where it begins.
    start: u32,
}

impl<'a> Modifiers<'a> {
    /// Of a text that begins with a dot, or is empty, and in which each dot has its word.
    pub(super) const fn new(text: &'a str, start: u32) -> Self {
        Self { text, start }
    }

    /// All of them in order.
    #[inline]
    pub fn iter(&self) -> Words<'a> {
        Words { text: self.text, at: 0, start: self.start }
    }

    /// The first.
    pub fn first(&self) -> Option<Word<'a>> {
        self.iter().next()
    }

    /// From the first dot to the end of the last word.
    pub fn span(&self) -> Span {
        let start = self.start as usize;
        Span::new(start, start + self.text.len())
    }
}

impl<'a> IntoIterator for Modifiers<'a> {
    type Item = Word<'a>;
    type IntoIter = Words<'a>;

    fn into_iter(self) -> Words<'a> {
        self.iter()
    }
}

impl Debug for Modifiers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Modifiers, one after the other.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    text: &'a str,
    at: usize,
    start: u32,
}

impl<'a> Words<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Over what may stand before a dot or behind it: blanks, comments, and the bank of `ld.const[2].u32`.
    #[cold]
    fn skip(&mut self) {
        let mut in_bank = false;
        loop {
            self.at += lex::trivia(self.rest()).map_or(0, |(_, skipped)| skipped.len());
            match self.rest().chars().next() {
                Some('[') => in_bank = true,
                Some(']') => in_bank = false,
                Some(_) if in_bank => {}
                _ => return,
            }
            self.at += self.rest().chars().next().map_or(0, char::len_utf8);
        }
    }
}

impl<'a> Words<'a> {
    /// Where the word begins and ends that is somewhere behind a dot, or has `::`.
    #[cold]
    fn unusual(&mut self, behind_dot: usize) -> (usize, usize) {
        self.at = behind_dot;
        if lex::dot_word(self.rest()).is_err() {
            self.skip();
        }
        (self.at, self.at + lex::dot_word(self.rest()).map_or(0, |(_, word)| word.len()))
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    #[inline]
    fn next(&mut self) -> Option<Word<'a>> {
        if self.at >= self.text.len() {
            return None;
        }
        if self.text.as_bytes().get(self.at) != Some(&b'.') {
            self.skip();
        }
        let bytes = self.text.as_bytes();
        let first = self.at + ".".len();
        let mut end = first + lex::run_of(bytes, first, lex::WORD);
        if end == first || bytes.get(end) == Some(&b':') {
            (self.at, end) = self.unusual(first);
        } else {
            self.at = first;
        }
        let text = self.text.get(self.at..end).filter(|text| !text.is_empty());
        let start = self.start as usize + self.at;
        self.at = if text.is_some() { end } else { self.text.len() };
        text.map(|text| Word { text, span: Span::new(start, start + text.len()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_between_blanks_comments_and_banks() {
        let words = |text| Modifiers::new(text, 7).iter().map(|word| word.text).collect::<Vec<_>>();
        assert_eq!(words(""), [""; 0]);
        assert_eq!(words(".L2::cache_hint.u32"), ["L2::cache_hint", "u32"]);
        assert_eq!(words(" . /* .x */ a\n.b"), ["a", "b"]);
        assert_eq!(words(".const[2 /* ].y */].u32"), ["const", "u32"]);
        let second = Modifiers::new(".a .bc", 7).iter().nth(1).unwrap();
        assert_eq!(second.span, Span::new(11, 13));
    }
}
