//! Eight bytes of a text at once, as one number: what they can be part of, and what number they write.
//!
//! Words of PTX are mostly shorter than that, so that nothing here depends on their lengths, which no processor guesses
//! well. A flag is the high bit of its byte; bytes that are not ASCII have none.

/// Eight bytes, the first one lowest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eight(u64);

/// One flag for each byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flags(u64);

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * ONES;

impl Flags {
    /// How many bytes have theirs before the first that has not.
    #[inline]
    pub(super) fn leading(self) -> usize {
        ((!self.0 & HIGH).trailing_zeros() / 8) as usize
    }

    /// The first byte that has one; 8 if none has.
    #[inline]
    pub(super) fn first(self) -> usize {
        (self.0.trailing_zeros() / 8) as usize
    }

    /// Those of the first `count` bytes.
    #[inline]
    pub(super) fn of_first(self, count: usize) -> Self {
        Self(if count < 8 { self.0 & ((1 << (8 * count)) - 1) } else { self.0 })
    }

    /// Whether any byte has one.
    #[inline]
    pub(super) fn any(self) -> bool {
        self.0 != 0
    }

    /// Whether two bytes that are neighbours have one each, or the first byte has and `before` is set.
    #[inline]
    pub(super) fn touch(self, before: bool) -> bool {
        self.0 & (self.0 << 8 | u64::from(before) << 7) != 0
    }

    /// Whether the last byte has one.
    #[inline]
    pub(super) fn last(self) -> bool {
        self.0 >> 63 != 0
    }

    /// What has one flag or the other.
    #[inline]
    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Eight {
    /// The bytes from `at` on, if there are so many.
    #[inline]
    pub(super) fn at(bytes: &[u8], at: usize) -> Option<Self> {
        bytes.get(at..)?.first_chunk().map(|chunk| Self(u64::from_le_bytes(*chunk)))
    }

    /// Bytes of at least `low`, where all are ASCII.
    #[inline]
    const fn from(ascii: u64, low: u8) -> u64 {
        (ascii | HIGH) - low as u64 * ONES
    }

    #[inline]
    fn between(ascii: u64, low: u8, high: u8) -> u64 {
        Self::from(ascii, low) & !Self::from(ascii, high + 1)
    }

    #[inline]
    fn flags(self, found: u64) -> Flags {
        Flags(found & !self.0 & HIGH)
    }

    /// Decimal digits.
    #[inline]
    pub(super) fn digits(self) -> Flags {
        self.flags(Self::between(self.0 & !HIGH, b'0', b'9'))
    }

    /// Whether the first byte is this one.
    #[inline]
    pub(super) fn starts_with(self, byte: u8) -> bool {
        self.0 as u8 == byte
    }

    /// What is this byte.
    #[inline]
    pub(super) fn is(self, byte: u8) -> Flags {
        self.flags(!Self::from((self.0 ^ (u64::from(byte) * ONES)) & !HIGH, 1))
    }

    /// Letters, digits and `_`.
    #[inline]
    pub(super) fn word(self) -> Flags {
        let letters = Self::between((self.0 | (0x20 * ONES)) & !HIGH, b'a', b'z');
        self.flags(letters).or(self.digits()).or(self.is(b'_'))
    }

    /// What names are made of: letters, digits, `_` and `$`.
    #[inline]
    pub(super) fn name(self) -> Flags {
        self.word().or(self.is(b'$'))
    }

    /// The number that the first `count` bytes write, all of which are decimal digits; 1 to 8 are.
    #[inline]
    pub(super) fn decimal(self, count: usize) -> u64 {
        // Zeros in front, then neighbours put together, twice as far each time.
        let digits = (self.0 & (0x0f * ONES)) << (64 - 8 * count.clamp(1, 8));
        let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
        let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
        (fours * 10_000 + (fours >> 32)) & 0xffff_ffff
    }

    /// The number that all bytes write in base 16.
    #[inline]
    pub(super) fn hexadecimal(self) -> Option<u32> {
        let letters = Self::between((self.0 | (0x20 * ONES)) & !HIGH, b'a', b'f');
        if self.flags(letters).or(self.digits()).0 != HIGH {
            return None;
        }
        let digits = (self.0 & (0x0f * ONES)) + 9 * ((self.0 >> 6) & ONES);
        let pairs = (digits << 4 | digits >> 8) & 0x00ff_00ff_00ff_00ff;
        let fours = (pairs << 8 | pairs >> 16) & 0x0000_ffff_0000_ffff;
        Some((fours << 16 | fours >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flagged(flags: Flags) -> Vec<bool> {
        (0..8).map(|at| flags.0 >> (8 * at + 7) & 1 != 0).collect()
    }

    #[test]
    fn every_byte_has_its_flags() {
        for byte in 0..=u8::MAX {
            let eight = Eight(u64::from_le_bytes([b'a', byte, 0xff, 0, byte, byte, b'$', 0x80]));
            let is = |flags: Flags| flags.0.to_le_bytes().map(|flag| flag >> 7 != 0);
            let word = byte.is_ascii_alphanumeric() || byte == b'_';
            assert_eq!(is(eight.word()), [true, word, false, false, word, word, false, false]);
            let name = word || byte == b'$';
            assert_eq!(is(eight.name()), [true, name, false, false, name, name, true, false]);
            let dot = byte == b'.';
            assert_eq!(is(eight.is(b'.')), [false, dot, false, false, dot, dot, false, false]);
            let digit = byte.is_ascii_digit();
            assert_eq!(is(eight.digits()), [false, digit, false, false, digit, digit, false, false]);
        }
    }

    #[test]
    fn flags_are_counted() {
        let eight = Eight(u64::from_le_bytes(*b"ab..cd.."));
        let dots = eight.is(b'.');
        assert_eq!(flagged(dots), [false, false, true, true, false, false, true, true]);
        assert_eq!((eight.word().leading(), dots.first(), dots.leading()), (2, 2, 0));
        assert!(dots.last() && dots.touch(false) && !dots.of_first(3).touch(true) && !dots.of_first(2).any());
        assert!(Eight(u64::from_le_bytes(*b".abcdefg")).is(b'.').touch(true));
        assert_eq!((Flags(HIGH).leading(), Flags(0).first(), Flags(HIGH).of_first(8)), (8, 8, Flags(HIGH)));
        assert!(Eight::at(b"12345678", 1).is_none());
    }

    proptest! {
        #[test]
        fn numbers_are_read(digits in "[0-9]{1,8}", hex in "[0-9a-fA-F]{8}", other in "[g-zG-Z@`:/\u{80}]") {
            let text = format!("{digits}, abcdefgh");
            let eight = Eight::at(text.as_bytes(), 0).unwrap();
            prop_assert_eq!(eight.digits().leading(), digits.len());
            prop_assert_eq!(eight.decimal(digits.len()), digits.parse::<u64>().unwrap());
            let read = Eight::at(hex.as_bytes(), 0).unwrap().hexadecimal();
            prop_assert_eq!(read, u32::from_str_radix(&hex, 16).ok());
            let bad = format!("{}{other}1234567", &hex[..3]);
            prop_assert_eq!(Eight::at(bad.as_bytes(), 0).unwrap().hexadecimal(), None);
        }
    }
}
