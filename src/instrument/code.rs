//! The code that one site gets: lines, temporaries and labels, in a scope of its own.

use std::fmt::{Display, Write};

/// Code before and behind an instruction.
#[derive(Debug, Default)]
pub(super) struct Code {
    before: String,
    behind: String,
    /// Whether lines go behind the instruction now.
    is_behind: bool,
    /// Temporaries by type.
    registers: Vec<(&'static str, String)>,
    names: u32,
}

impl Code {
    /// A new temporary of this type (without dot).
    pub(super) fn temp(&mut self, ty: &'static str) -> String {
        let name = self.name();
        self.registers.push((ty, name.clone()));
        name
    }

    /// A new name, for a label.
    pub(super) fn name(&mut self) -> String {
        self.names += 1;
        format!("__ptxrace_{}", self.names)
    }

    /// Adds an instruction, given without its `;`.
    pub(super) fn line(&mut self, line: impl Display) {
        let out = if self.is_behind { &mut self.behind } else { &mut self.before };
        let _ = writeln!(out, "\t{line};");
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
    pub(super) fn finish(self) -> (String, String) {
        let mut before = String::from("{\n");
        let mut types: Vec<_> = self.registers.iter().map(|(ty, _)| *ty).collect();
        types.sort_unstable();
        types.dedup();
        for ty in types {
            let names = self.registers.iter().filter(|(t, _)| *t == ty).map(|(_, name)| name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            let _ = writeln!(before, "\t.reg .{ty} {names};");
        }
        before.push_str(&self.before);
        if self.is_behind {
            before.push('\t');
            (before, format!("\n{}\t}}", self.behind))
        } else {
            before.push_str("\t}\n\t");
            (before, String::new())
        }
    }
}
