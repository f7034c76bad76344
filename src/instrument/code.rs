//! The code that one site gets: lines, temporaries and labels, in a scope of its own.

use std::fmt::{Display, Write};

/// Code before and behind an instruction.
#[derive(Debug)]
pub(super) struct Code {
    before: String,
    behind: String,
    /// Whether lines go behind the instruction now.
    is_behind: bool,
    /// Temporaries: type and number.
    registers: Vec<(&'static str, u32)>,
    names: u32,
}

/// What every name begins with.
const PREFIX: &str = "__ptxrace_";

impl Default for Code {
    fn default() -> Self {
        // Room for what most sites get.
        let registers = Vec::with_capacity(8);
        Self {
            before: String::with_capacity(256),
            behind: String::new(),
            is_behind: false,
            registers,
            names: 0,
        }
    }
}

impl Code {
    /// A new temporary of this type (without dot).
    pub(super) fn temp(&mut self, ty: &'static str) -> String {
        let name = self.name();
        self.registers.push((ty, self.names));
        name
    }

    /// A new name, for a label.
    pub(super) fn name(&mut self) -> String {
        self.names += 1;
        let mut name = String::with_capacity(PREFIX.len() + 3);
        push_name(&mut name, self.names);
        name
    }

    /// Adds an instruction, given without its `;`.
    pub(super) fn line(&mut self, line: impl Display) {
        let out = if self.is_behind { &mut self.behind } else { &mut self.before };
        let _ = writeln!(out, "\t{line};");
    }

    /// Adds a call of a function that logs this site.
    pub(super) fn call<'v>(&mut self, function: &str, site: u32, values: impl Iterator<Item = &'v String>) {
        let out = if self.is_behind { &mut self.behind } else { &mut self.before };
        let _ = write!(out, "\tcall.uni {function}, ({site}");
        for value in values {
            out.push_str(", ");
            out.push_str(value);
        }
        out.push_str(");\n");
    }

    /// Sets a label here.
    pub(super) fn label(&mut self, label: &str) {
        let out = if self.is_behind { &mut self.behind } else { &mut self.before };
        let _ = writeln!(out, "{label}:");
    }

    /// What follows goes behind the instruction.
    pub(super) fn go_behind(&mut self) {
        self.is_behind = true;
    }

    /// The texts to put before and behind the instruction. If there is code behind it, the scope holds the
    /// instruction too.
    pub(super) fn finish(mut self) -> (String, String) {
        let declarations = self.registers.len() * (PREFIX.len() + 12);
        let mut before = String::with_capacity(self.before.len() + declarations + 32);
        before.push_str("{\n");
        // In the order of their types, and of each type in the order they were made.
        let mut last = None;
        self.registers.sort_by_key(|(ty, _)| *ty);
        for (ty, number) in &self.registers {
            if last == Some(ty) {
                before.push_str(", ");
            } else {
                before.push_str(if last.is_some() { ";\n\t.reg ." } else { "\t.reg ." });
                before.push_str(ty);
                before.push(' ');
            }
            push_name(&mut before, *number);
            last = Some(ty);
        }
        before.push_str(if last.is_some() { ";\n" } else { "" });
        before.push_str(&self.before);
        if self.is_behind {
            before.push('\t');
            self.behind.insert(0, '\n');
            self.behind.push_str("\t}");
            (before, self.behind)
        } else {
            before.push_str("\t}\n\t");
            (before, String::new())
        }
    }
}

fn push_name(out: &mut String, number: u32) {
    out.push_str(PREFIX);
    let _ = write!(out, "{number}");
}
