//! The words of PTX as nom parsers over `&str`. They know nothing of spans: the parser counts bytes.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_until, take_while, take_while_m_n, take_while1};
use nom::character::complete::{char, digit1, hex_digit1, one_of, satisfy};
use nom::combinator::{eof, opt, recognize, value};
use nom::multi::many0_count;
use nom::sequence::{pair, preceded};
use nom::{IResult, Parser};

type Lexed<'a, T = &'a str> = IResult<&'a str, T>;

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

/// Blanks, comments, `#line` directives and the NUL that some compilers leave at the end.
pub(super) fn trivia(input: &str) -> Lexed<'_> {
    let blank = take_while1(|c: char| c.is_whitespace() || c == '\0');
    let line = recognize(pair(alt((tag("//"), tag("#"))), take_while(|c| c != '\n')));
    let block = recognize((tag("/*"), take_until("*/"), tag("*/")));
    recognize(many0_count(alt((blank, line, block)))).parse(input)
}

/// A name: a letter first, or one of `_ $ %` with at least one more character.
pub(super) fn identifier(input: &str) -> Lexed<'_> {
    let plain = recognize(pair(satisfy(|c| c.is_ascii_alphabetic()), take_while(is_name_char)));
    let marked = recognize(pair(one_of("_$%"), take_while1(is_name_char)));
    alt((plain, marked)).parse(input)
}

/// One dot word of an opcode without its dot: `u32`, `2d`, `L2::cache_hint`.
pub(super) fn dot_word(input: &str) -> Lexed<'_> {
    let part = |i| take_while1(|c: char| c.is_ascii_alphanumeric() || c == '_').parse(i);
    recognize(pair(part, many0_count(preceded(tag("::"), part)))).parse(input)
}

/// A directive's name with its dot.
pub(super) fn directive_name(input: &str) -> Lexed<'_> {
    recognize(pair(char('.'), dot_word)).parse(input)
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
pub(super) fn number(input: &str) -> Lexed<'_, Number> {
    alt((float_bits, decimal_float, integer)).parse(input)
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

/// The rest of the line, without its break.
pub(super) fn rest_of_line(input: &str) -> Lexed<'_> {
    take_while(|c| c != '\n' && c != '\r').parse(input)
}

/// Whether nothing is left.
pub(super) fn at_end(input: &str) -> bool {
    let end: IResult<&str, &str> = eof(input);
    end.is_ok()
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
