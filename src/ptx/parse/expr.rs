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

impl<'a> Parser<'a> {
    /// A whole constant expression, `?:` included.
    pub(super) fn constant(&mut self, context: &str) -> Result<i128> {
        self.nested(context, |p| {
            let condition = p.binary(0, context)?;
            if p.eat("?").is_none() {
                return Ok(condition);
            }
            let yes = p.constant(context)?;
            p.expect(":", context)?;
            let no = p.constant(context)?;
            Ok(if condition != 0 { yes } else { no })
        })
    }

    fn binary(&mut self, min: u8, context: &str) -> Result<i128> {
        let mut left = self.unary(context)?;
        loop {
            self.skip_trivia();
            // `%` followed by a name is a register, not a remainder.
            let register = lex::identifier(self.rest()).is_ok();
            let found = OPERATORS.iter().find(|(text, _)| !register && self.rest().starts_with(text));
            let Some(&(text, strength)) = found.filter(|(_, strength)| *strength > min) else {
                return Ok(left);
            };
            self.eat(text);
            let right = self.nested(context, |p| p.binary(strength, context))?;
            left = apply(text, left, right);
        }
    }

    fn unary(&mut self, context: &str) -> Result<i128> {
        self.nested(context, |p| {
            if p.eat("-").is_some() {
                return Ok(p.unary(context)?.wrapping_neg());
            }
            if p.eat("+").is_some() {
                return p.unary(context);
            }
            if p.eat("~").is_some() {
                return Ok(!p.unary(context)?);
            }
            if p.eat("!").is_some() {
                return Ok(i128::from(p.unary(context)? == 0));
            }
            if p.eat("(").is_some() {
                if let Some(cast) = p.take_word(lex::directive_name) {
                    p.expect(")", context)?;
                    let inner = p.unary(context)?;
                    return Ok(cast_to(cast.text, inner));
                }
                let inner = p.constant(context)?;
                p.expect(")", context)?;
                return Ok(inner);
            }
            if let Some(word) = p.take_word(|i| nom::bytes::complete::tag("WARP_SZ")(i)) {
                debug_assert_eq!(word.text, "WARP_SZ");
                return Ok(32);
            }
            match p.take(lex::number) {
                Some((Number::Int(value), _)) => Ok(value),
                _ => p.fail("a constant", context),
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
