//! The words of PTX as nom parsers over `&str`. They know nothing of spans: the parser counts bytes.
//!
//! What occurs in every instruction (blanks, names, dot words, small numbers) is a loop over bytes; the rest is
//! combinators.

use memchr::{memchr, memmem};
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while_m_n, take_while1};
use nom::character::complete::{char, digit1, hex_digit1, one_of};
use nom::combinator::{opt, recognize, value};
use nom::error::{Error, ErrorKind};
use nom::sequence::preceded;
use nom::{Err, IResult, Parser};

use super::eight::Eight;

type Lexed<'a, T = &'a str> = IResult<&'a str, T>;

/// What a byte can be part of.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric() || b == b'_' {
            classes[byte] = NAME | WORD;
        }
        if b == b'$' {
            classes[byte] = NAME;
        }
        if b.is_ascii_alphabetic() || matches!(b, b'_' | b'$' | b'%') {
            classes[byte] |= NAME_START;
        }
        byte += 1;
    }
    classes
};
pub(super) const NAME: u8 = 1;
pub(super) const WORD: u8 = 2;
const NAME_START: u8 = 4;

#[inline]
pub(super) fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Whether a name, or `_`, may begin with this byte.
pub(super) fn starts_name(byte: u8) -> bool {
    is(byte, NAME_START)
}

/// Bytes from `at` on that are all of this class.
#[inline]
pub(super) fn run_of(bytes: &[u8], at: usize, class: u8) -> usize {
    let mut end = at;
    while bytes.get(end).is_some_and(|byte| is(*byte, class)) {
        end += 1;
    }
    end - at
}

#[inline]
fn split(input: &str, at: usize) -> Lexed<'_> {
    match input.split_at_checked(at) {
        Some((taken, rest)) if at > 0 => Ok((rest, taken)),
        _ => Err(Err::Error(Error::new(input, ErrorKind::TakeWhile1))),
    }
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).and_then(|rest| memchr(b'\n', rest)).map_or(bytes.len(), |length| at + length)
}

/// Blanks, comments, `#line` directives and the NUL that some compilers leave at the end. A comment that is not closed
/// goes to the end of the text; `open_comment` tells.
pub(super) fn trivia(input: &str) -> Lexed<'_> {
    let bytes = input.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0 => at += 1,
            b'#' => at = line_end(bytes, at),
            b'/' => match bytes.get(at + 1) {
                Some(b'/') => at = line_end(bytes, at),
                Some(b'*') => at = comment_end(bytes, at).unwrap_or(bytes.len()),
                _ => break,
            },
            0x80.. => match input.get(at..).and_then(|rest| rest.chars().next()) {
                Some(c) if c.is_whitespace() => at += c.len_utf8(),
                _ => break,
            },
            _ => break,
        }
    }
    let (taken, rest) = input.split_at_checked(at).unwrap_or(("", input));
    Ok((rest, taken))
}

/// The end of the comment that begins at `at` with `/*`.
fn comment_end(bytes: &[u8], at: usize) -> Option<usize> {
    let inside = at + "/*".len();
    memmem::find(bytes.get(inside..)?, b"*/").map(|length| inside + length + "*/".len())
}

/// Where in this trivia a comment begins that is not closed.
pub(super) fn open_comment(trivia: &str) -> Option<usize> {
    let bytes = trivia.as_bytes();
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'/', b'#', bytes.get(at..)?)?;
        match bytes.get(at..at + 2) {
            Some(b"/*") => match comment_end(bytes, at) {
                Some(end) => at = end,
                None => return Some(at),
            },
            _ => at = line_end(bytes, at),
        }
    }
}

/// A name: a letter first, or one of `_ $ %` with at least one more character.
#[inline]
pub(super) fn identifier(input: &str) -> Lexed<'_> {
    let bytes = input.as_bytes();
    let marked = match bytes.first() {
        Some(b'_' | b'$' | b'%') => true,
        Some(first) if first.is_ascii_alphabetic() => false,
        _ => return split(input, 0),
    };
    let more = run_of(bytes, 1, NAME);
    split(input, if marked && more == 0 { 0 } else { 1 + more })
}

/// One dot word of an opcode without its dot: `u32`, `2d`, `L2::cache_hint`.
#[inline]
pub(super) fn dot_word(input: &str) -> Lexed<'_> {
    let bytes = input.as_bytes();
    let mut end = run_of(bytes, 0, WORD);
    while end > 0 && bytes.get(end..end + 2) == Some(b"::") {
        match run_of(bytes, end + 2, WORD) {
            0 => break,
            more => end += 2 + more,
        }
    }
    split(input, end)
}

/// A directive's name with its dot.
pub(super) fn directive_name(input: &str) -> Lexed<'_> {
    recognize((char('.'), dot_word)).parse(input)
}

/// A double-quoted text with its quotes.
pub(super) fn string(input: &str) -> Lexed<'_> {
    recognize((char('"'), take_while(|c| c != '"' && c != '\n'), char('"'))).parse(input)
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Int(i128),
    F32(u32),
    F64(u64),
}

/// Any literal number without a sign.
#[inline]
pub(super) fn number(input: &str) -> Lexed<'_, Number> {
    match usual_number(input.as_bytes()) {
        Some((number, length)) => split(input, length).map(|(rest, _)| (rest, number)),
        None => any_number(input),
    }
}

fn any_number(input: &str) -> Lexed<'_, Number> {
    alt((float_bits, decimal_float, integer)).parse(input)
}

/// A number as most are, with its length, and nothing behind it that could be of it.
#[inline]
pub(super) fn usual_number(bytes: &[u8]) -> Option<(Number, usize)> {
    let eight = |at| Eight::at(bytes, at);
    let start = eight(0)?;
    let (number, length) = match start.digits().leading() {
        0 => return None,
        1 if start.starts_with(b'0') => match bytes.get(1) {
            Some(b'f' | b'F') => (Number::F32(eight(2)?.hexadecimal()?), 10),
            Some(b'd' | b'D') => {
                let (high, low) = (eight(2)?.hexadecimal()?, eight(10)?.hexadecimal()?);
                (Number::F64(u64::from(high) << 32 | u64::from(low)), 18)
            }
            Some(b'x' | b'X') => hexadecimal(bytes)?,
            _ => (Number::Int(0), 1),
        },
        // What is octal is not decimal.
        _ if start.starts_with(b'0') => return None,
        8 => {
            let more = eight(8)?;
            let length = more.digits().leading();
            let scale = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000].get(length)?;
            let low = if length > 0 { more.decimal(length) } else { 0 };
            (Number::Int((start.decimal(8) * scale + low).into()), 8 + length)
        }
        length => (Number::Int(start.decimal(length).into()), length),
    };
    let unsigned = matches!((number, bytes.get(length)), (Number::Int(_), Some(b'u' | b'U')));
    let length = length + usize::from(unsigned);
    let more = bytes.get(length).is_some_and(|byte| is(*byte, NAME) || *byte == b'.');
    (!more).then_some((number, length))
}

/// A number in base 16 that fits into 64 bits.
fn hexadecimal(bytes: &[u8]) -> Option<(Number, usize)> {
    let (mut number, mut at) = (0u64, 2);
    while let Some(digit) = bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16)) {
        number = number << 4 | u64::from(digit);
        at += 1;
    }
    (3..=18).contains(&at).then(|| (Number::Int(number.into()), at))
}

fn float_bits(input: &str) -> Lexed<'_, Number> {
    let hex = |n| take_while_m_n(n, n, |c: char| c.is_ascii_hexdigit());
    let single = preceded(alt((tag("0f"), tag("0F"))), hex(8))
        .map_opt(|digits: &str| u32::from_str_radix(digits, 16).ok().map(Number::F32));
    let double = preceded(alt((tag("0d"), tag("0D"))), hex(16))
        .map_opt(|digits: &str| u64::from_str_radix(digits, 16).ok().map(Number::F64));
    alt((single, double)).parse(input)
}

fn decimal_float(input: &str) -> Lexed<'_, Number> {
    let exponent = |i| recognize((one_of("eE"), opt(one_of("+-")), digit1)).parse(i);
    let pointed = recognize((digit1, char('.'), opt(digit1), opt(exponent)));
    let scaled = recognize((digit1, exponent));
    alt((pointed, scaled))
        .map_opt(|text: &str| text.parse::<f64>().ok().map(|v| Number::F64(v.to_bits())))
        .parse(input)
}

fn integer(input: &str) -> Lexed<'_, Number> {
    let radix = |base| move |digits: &str| i128::from_str_radix(digits, base).ok().map(Number::Int);
    let hex = preceded(alt((tag("0x"), tag("0X"))), hex_digit1).map_opt(radix(16));
    let binary =
        preceded(alt((tag("0b"), tag("0B"))), take_while1(|c| c == '0' || c == '1')).map_opt(radix(2));
    let octal = preceded(char('0'), take_while1(|c: char| c.is_digit(8))).map_opt(radix(8));
    let decimal = digit1.map_opt(radix(10));
    let suffix = value((), opt(one_of("uU")));
    (alt((hex, binary, octal, decimal)), suffix).map(|(number, ())| number).parse(input)
}

/// The arguments of a directive that has no `;` (`.version`, `.target`, `.loc` and so on): numbers, texts and names. A
/// name belongs to them at the start, behind a comma and behind `function_name`; any other begins a statement.
pub(super) fn line_arguments(input: &str) -> Lexed<'_> {
    #[derive(PartialEq)]
    enum Last {
        Joint,
        Value,
        Keyword,
    }
    let (mut end, mut at, mut last) = (0, 0, Last::Joint);
    loop {
        let rest = input.get(at..).unwrap_or("");
        let bytes = rest.as_bytes();
        let (length, now) = match bytes.first() {
            Some(b' ' | b'\t') => {
                at += 1;
                continue;
            }
            // `8.0` counts as a number here.
            Some(digit) if digit.is_ascii_digit() => {
                let length = bytes.iter().take_while(|byte| is(**byte, NAME) || **byte == b'.').count();
                (length, Last::Value)
            }
            Some(b',' | b'+') => (1, Last::Joint),
            Some(b'"') => (string(rest).map_or(0, |(_, text)| text.len()), Last::Value),
            Some(byte) if starts_name(*byte) && last != Last::Value => {
                let name = identifier(rest).map_or("", |(_, name)| name);
                let keyword = matches!(name, "function_name" | "inlined_at");
                (name.len(), if keyword { Last::Keyword } else { Last::Value })
            }
            _ => {
                let skipped = trivia(rest).map_or(0, |(_, skipped)| skipped.len());
                if skipped > 0 {
                    at += skipped;
                    continue;
                }
                (0, Last::Value)
            }
        };
        if length == 0 {
            break;
        }
        at += length;
        (end, last) = (at, now);
    }
    let (taken, rest) = input.split_at_checked(end).unwrap_or(("", input));
    Ok((rest, taken))
}

/// The rest of the line, without its break.
pub(super) fn rest_of_line(input: &str) -> Lexed<'_> {
    take_while(|c| c != '\n' && c != '\r').parse(input)
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_every_form() {
        let read = |text| number(text).map(|(rest, n)| (rest.to_owned(), n)).unwrap();
        assert_eq!(read("0x1F]"), ("]".into(), Number::Int(31)));
        assert_eq!(read("4U;"), (";".into(), Number::Int(4)));
        assert_eq!(read("010"), ("".into(), Number::Int(8)));
        assert_eq!(read("0b101"), ("".into(), Number::Int(5)));
        assert_eq!(read("0"), ("".into(), Number::Int(0)));
        assert_eq!(read("0f3F800000,"), (",".into(), Number::F32(0x3F80_0000)));
        assert_eq!(read("0d3FF0000000000000"), ("".into(), Number::F64(1f64.to_bits())));
        assert_eq!(read("1.5e2"), ("".into(), Number::F64(150f64.to_bits())));
        assert_eq!(read("18446744073709551615"), ("".into(), Number::Int(i128::from(u64::MAX))));
    }

    #[test]
    fn names_need_more_than_their_mark() {
        assert!(identifier("_").is_err());
        assert!(identifier("%").is_err());
        assert_eq!(identifier("%rd1+4").unwrap(), ("+4", "%rd1"));
        assert_eq!(identifier("$L__BB0_1:").unwrap(), (":", "$L__BB0_1"));
        assert_eq!(dot_word("L2::cache_hint.x").unwrap(), (".x", "L2::cache_hint"));
    }
}
