//! Constant integer expressions, as addresses and initialisers hold them.

use super::{Parser, Result};
use crate::ptx::lex::{self, Number};

/// Binary operators by binding strength, the longest spelling of each first.
const OPERATORS: [(&str, u8); 18] = [
    ("||", 1),
    ("&&", 2),
    ("==", 6),
    ("!=", 6),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

impl Parser<'_> {
    /// A whole constant expression, `?:` included.
    pub(super) fn constant(&mut self) -> Result<i128> {
        // Nearly all are one number.
        if let Some(number) = self.plain_number() {
            return Ok(number);
        }
        self.nested(|p| {
            let condition = p.binary(0)?;
            if p.eat(b'?').is_none() {
                return Ok(condition);
            }
            let yes = p.constant()?;
            p.expect(b':')?;
            let no = p.constant()?;
            Ok(if condition != 0 { yes } else { no })
        })
    }

    /// A number with its sign that is the whole expression.
    fn plain_number(&mut self) -> Option<i128> {
        let first = self.peek()?;
        let from = self.pos + usize::from(matches!(first, b'+' | b'-'));
        let (rest, Number::Int(number)) = lex::number(self.text.get(from..)?).ok()? else { return None };
        if !matches!(rest.as_bytes().first(), Some(b']' | b',' | b';' | b'}' | b')')) {
            return None;
        }
        self.pos = self.text.len() - rest.len();
        self.end_of_last = self.pos;
        Some(if first == b'-' { number.wrapping_neg() } else { number })
    }

    fn binary(&mut self, min: u8) -> Result<i128> {
        let mut left = self.unary()?;
        loop {
            self.skip_trivia();
            // `%` followed by a name is a register, not a remainder.
            let register = lex::identifier(self.rest()).is_ok();
            let found = OPERATORS.iter().find(|(text, _)| !register && self.is_next(text));
            let Some(&(text, strength)) = found.filter(|(_, strength)| *strength > min) else {
                return Ok(left);
            };
            self.pos += text.len();
            self.end_of_last = self.pos;
            let right = self.nested(|p| p.binary(strength))?;
            left = apply(text, left, right);
        }
    }

    fn unary(&mut self) -> Result<i128> {
        self.nested(|p| {
            if p.eat(b'-').is_some() {
                return Ok(p.unary()?.wrapping_neg());
            }
            if p.eat(b'+').is_some() {
                return p.unary();
            }
            if p.eat(b'~').is_some() {
                return Ok(!p.unary()?);
            }
            if p.eat(b'!').is_some() {
                return Ok(i128::from(p.unary()? == 0));
            }
            if p.eat(b'(').is_some() {
                if let Some(cast) = p.take_word(lex::directive_name) {
                    p.expect(b')')?;
                    let inner = p.unary()?;
                    return Ok(cast_to(cast.text, inner));
                }
                let inner = p.constant()?;
                p.expect(b')')?;
                return Ok(inner);
            }
            if let Ok((_, "WARP_SZ")) = lex::identifier(p.rest()) {
                p.take_word(lex::identifier);
                return Ok(32);
            }
            match p.take(lex::number) {
                Some((Number::Int(value), _)) => Ok(value),
                _ => p.fail("a constant"),
            }
        })
    }
}

fn cast_to(ty: &str, value: i128) -> i128 {
    match ty {
        ".s64" => i128::from(value as i64),
        _ => i128::from(value as u64),
    }
}

/// PTX computes in 64 bits; a division by zero gives zero here, ptxas refuses it anyway.
fn apply(operator: &str, a: i128, b: i128) -> i128 {
    let shift = u32::try_from(b.clamp(0, 64)).unwrap_or(64);
    match operator {
        "||" => i128::from(a != 0 || b != 0),
        "&&" => i128::from(a != 0 && b != 0),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => i128::from(a == b),
        "!=" => i128::from(a != b),
        "<" => i128::from(a < b),
        "<=" => i128::from(a <= b),
        ">" => i128::from(a > b),
        ">=" => i128::from(a >= b),
        "<<" => i128::from((a as i64).checked_shl(shift).unwrap_or(0)),
        ">>" => a >> shift,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" => a.checked_div(b).unwrap_or(0),
        _ => a.checked_rem(b).unwrap_or(0),
    }
}
