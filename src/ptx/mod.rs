//! Reading PTX: a nom lexer, a generic parser that recovers from every syntax error, and the line table.
//!
//! The tree borrows from the source text and nothing is normalised: printing a module is printing its text, and
//! rewriting is editing that text (`instrument::edit`).

pub mod ast;
mod directives;
mod eight;
mod foreign;
mod lex;
mod lines;
mod list;
mod modifiers;
mod names;
mod parse;
mod special;

pub use foreign::{Foreign, foreign};
pub use lines::{InlineFrame, Line, LineTable, Place, SourceLoc};
pub use list::List;
pub use modifiers::{Modifiers, Words};
pub use names::{NameError, check_names};
pub use parse::{MAX_ERRORS, Parsed, SyntaxError, parse};

/// The newest version of PTX whose directives and special registers are all listed here: a later module may use others.
const LISTED: (u32, u32) = (9, 0);

/// A name without its member, where it has one: `%tid` of `%tid.x`.
pub fn without_member(name: &str) -> Option<&str> {
    memchr::memchr(b'.', name.as_bytes()).and_then(|at| name.get(..at))
}

/// What a name may be a member of, given as the stem and number of `stem<count>`: `%r12` is number 2 of `%r1<5>` or 12 of
/// `%r<20>`. The shortest stem comes first. Numbers have no leading zeros.
pub fn numbered(name: &str) -> impl Iterator<Item = (&str, u32)> {
    // A count has ten digits at most.
    let digits = name.bytes().rev().take(10).take_while(u8::is_ascii_digit).count();
    (1..=digits).rev().filter_map(move |take| {
        let (stem, number) = name.split_at_checked(name.len() - take)?;
        let plain = number == "0" || !number.starts_with('0');
        // What is too large is beyond every count.
        plain.then(|| (stem, number.parse().unwrap_or(u32::MAX)))
    })
}

/// Bytes of a scalar type, given with or without its dot; `None` for types without a size (`pred`, opaque ones).
pub fn type_bytes(ty: &str) -> Option<u32> {
    Some(match ty.strip_prefix('.').unwrap_or(ty) {
        "b8" | "u8" | "s8" | "e4m3" | "e5m2" => 1,
        "b16" | "u16" | "s16" | "f16" | "bf16" | "e4m3x2" | "e5m2x2" => 2,
        "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16x2" | "tf32" | "u16x2" | "s16x2" | "u8x4" | "s8x4" => {
            4
        }
        "b64" | "u64" | "s64" | "f64" | "f32x2" | "texref" | "samplerref" | "surfref" => 8,
        "b128" => 16,
        "b1024" => 128,
        _ => return None,
    })
}
