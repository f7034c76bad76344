//! The code that one site gets: lines, temporaries and labels, in a scope of its own.

use std::fmt::Write;

/// Code before and behind an instruction.
#[derive(Debug, Default)]
pub(super) struct Code {
    before: String,
    behind: String,
    /// Whether lines go behind the instruction now.
    is_behind: bool,
    /// Temporaries, with their types.
    registers: Vec<(&'static str, Temp)>,
    names: u32,
}

/// A temporary or a label, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Temp(u32);

/// What every name begins with.
const PREFIX: &str = "__ptxrace_";

/// Part of a line. Modules have many sites, and `std::fmt` would take more time than all the rest.
pub(super) trait Piece {
    /// Writes it.
    fn put(&self, out: &mut String);
}

impl Piece for str {
    #[inline]
    fn put(&self, out: &mut String) {
        out.push_str(self);
    }
}

impl<T: Piece + ?Sized> Piece for &T {
    #[inline]
    fn put(&self, out: &mut String) {
        (**self).put(out);
    }
}

impl Piece for Temp {
    #[inline]
    fn put(&self, out: &mut String) {
        out.push_str(PREFIX);
        self.0.put(out);
    }
}

/// A number in base 16.
pub(super) struct Hex(pub(super) u64);

impl Piece for Hex {
    fn put(&self, out: &mut String) {
        let _ = write!(out, "{:#x}", self.0);
    }
}

macro_rules! decimal_pieces {
    ($($ty:ty),*) => {$(
        impl Piece for $ty {
            #[inline]
            fn put(&self, out: &mut String) {
                out.push_str(itoa::Buffer::new().format(*self));
            }
        }
    )*};
}

decimal_pieces!(u8, u32, i32, i64, u64);

/// Adds an instruction to some code, given in pieces without its `;`.
macro_rules! line {
    ($code:expr, $($piece:expr),+ $(,)?) => {{
        let out = $code.out();
        out.push('\t');
        $($crate::instrument::code::Piece::put(&$piece, out);)+
        out.push_str(";\n");
    }};
}
pub(super) use line;

impl Code {
    /// A new temporary of this type (without dot).
    pub(super) fn temp(&mut self, ty: &'static str) -> Temp {
        let name = self.name();
        self.registers.push((ty, name));
        name
    }

    /// A new name, for a label.
    pub(super) fn name(&mut self) -> Temp {
        self.names += 1;
        Temp(self.names)
    }

    /// Where lines go.
    #[inline]
    pub(super) fn out(&mut self) -> &mut String {
        if self.is_behind { &mut self.behind } else { &mut self.before }
    }

    /// Adds a call of a function that logs this site.
    pub(super) fn call(&mut self, function: &str, site: u32, values: impl Iterator<Item = Temp>) {
        let out = self.out();
        for piece in ["\tcall.uni ", function, ", ("] {
            out.push_str(piece);
        }
        site.put(out);
        for value in values {
            out.push_str(", ");
            value.put(out);
        }
        out.push_str(");\n");
    }

    /// Sets a label here.
    pub(super) fn label(&mut self, label: impl Piece) {
        let out = self.out();
        label.put(out);
        out.push_str(":\n");
    }

    /// What follows goes behind the instruction.
    pub(super) fn go_behind(&mut self) {
        self.is_behind = true;
        self.behind.push('\n');
    }

    /// Whether there is code behind the instruction.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Writes what goes before the instruction. If there is code behind it, the scope holds the instruction too.
    pub(super) fn put_before(&mut self, out: &mut String) {
        out.push_str("{\n");
        // In the order of their types, and of each type in the order they were made.
        let mut last = None;
        self.registers.sort_by_key(|(ty, _)| *ty);
        for (ty, temp) in &self.registers {
            if last == Some(ty) {
                out.push_str(", ");
            } else {
                out.push_str(if last.is_some() { ";\n\t.reg ." } else { "\t.reg ." });
                out.push_str(ty);
                out.push(' ');
            }
            temp.put(out);
            last = Some(ty);
        }
        out.push_str(if last.is_some() { ";\n" } else { "" });
        out.push_str(&self.before);
        out.push_str(if self.is_behind { "\t" } else { "\t}\n\t" });
    }

    /// Writes what goes behind the instruction.
    pub(super) fn put_behind(&self, out: &mut String) {
        out.push_str(&self.behind);
        out.push_str("\t}");
    }

    /// Empties it, but keeps its room.
    pub(super) fn clear(&mut self) {
        self.before.clear();
        self.behind.clear();
        self.registers.clear();
        (self.is_behind, self.names) = (false, 0);
    }
}
