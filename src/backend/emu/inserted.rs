//! Which code of an instrumented text instrumentation put in, and to which instruction it belongs.

use super::image::Part;
use crate::span::Span;

/// Inserted pieces of a text, sorted. A piece that begins where an original instruction ends (after its `;`) belongs
/// to that instruction; any other belongs to the next original one.
#[derive(Clone, Debug, Default)]
pub(super) struct Inserted {
    pieces: Vec<(Span, bool)>,
}

impl Inserted {
    /// Sorts out the pieces of a text.
    pub(super) fn new(text: &str, spans: &[Span]) -> Self {
        let mut pieces: Vec<(Span, bool)> = spans
            .iter()
            .map(|span| {
                let before = text.as_bytes().get(..span.start as usize).and_then(|b| b.last());
                (*span, before == Some(&b';'))
            })
            .collect();
        pieces.sort_unstable_by_key(|(span, _)| (span.start, span.end));
        Self { pieces }
    }

    /// Whether a span lies in a piece.
    pub(super) fn holds(&self, span: Span) -> bool {
        self.piece(span).is_some()
    }

    fn piece(&self, span: Span) -> Option<bool> {
        let at = self.pieces.partition_point(|(piece, _)| piece.start <= span.start);
        let (piece, after) = self.pieces.get(at.checked_sub(1)?)?;
        (span.end <= piece.end).then_some(*after)
    }

    /// Where an instruction of a function belongs.
    pub(super) fn part(&self, instruction: Span, function: Span) -> Part {
        if self.pieces.is_empty() {
            return Part::Original;
        }
        if self.holds(function) {
            return Part::Runtime;
        }
        match self.piece(instruction) {
            None => Part::Original,
            Some(false) => Part::Before,
            Some(true) => Part::After,
        }
    }
}
