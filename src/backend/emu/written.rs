//! Which bytes of a memory have been written, one bit each.

use crate::abi::LANES;

/// Bits of one word.
const WORD: usize = 64;

/// The bytes of a memory that have been written.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    bits: Vec<u64>,
    /// Bytes that have not.
    left: usize,
}

/// The bits of a word from one place to another.
fn span(from: usize, to: usize) -> u64 {
    let below = |at: usize| if at >= WORD { u64::MAX } else { (1 << at) - 1 };
    below(to) & !below(from)
}

impl Written {
    /// Nothing of so many bytes.
    pub(super) fn nothing(bytes: usize) -> Self {
        Self { bits: vec![0; bytes.div_ceil(WORD)], left: bytes }
    }

    /// Whether all bytes have been written.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.left == 0
    }

    /// These bytes, which the memory has, are written.
    pub(super) fn mark(&mut self, at: usize, size: usize) {
        let (mut at, end) = (at, at.saturating_add(size));
        while at < end {
            let Some(word) = self.bits.get_mut(at / WORD) else { return };
            let base = at - at % WORD;
            let new = span(at - base, end - base) & !*word;
            *word |= new;
            self.left -= new.count_ones() as usize;
            at = base + WORD;
        }
    }

    /// How many of these bytes have been written.
    pub(super) fn count(&self, at: usize, size: usize) -> usize {
        let (mut at, end) = (at, at.saturating_add(size));
        let mut count = 0;
        while at < end {
            let base = at - at % WORD;
            let word = self.bits.get(at / WORD).copied().unwrap_or(0);
            count += (word & span(at - base, end - base)).count_ones() as usize;
            at = base + WORD;
        }
        count
    }
}

impl Written {
    /// Lanes whose bytes were not all written. Where an access begins is a multiple of its size, which is a power of two.
    pub(super) fn lacking(&self, size: usize, at: impl Fn(usize) -> usize) -> u32 {
        let whole = span(0, size);
        (0..LANES).fold(0, |lacking, lane| {
            let at = at(lane);
            let word = self.bits.get(at / WORD).copied().unwrap_or(u64::MAX);
            lacking | u32::from(word >> (at % WORD) & whole != whole) << lane
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_across_words() {
        let mut written = Written::nothing(130);
        written.mark(60, 8);
        written.mark(62, 4);
        assert_eq!(written.count(0, 130), 8);
        assert_eq!(written.count(64, 4), 4);
        assert_eq!((written.count(56, 4), written.count(68, 62)), (0, 0));
        written.mark(0, 130);
        assert!(written.is_whole());
        assert_eq!(written.count(0, 130), 130);
    }
}
