//! `ptxrace explain RULE`

use std::io;

use super::{Console, exit};
use crate::diag::Diagnostic;
use crate::explain::rules;
use crate::finding::Rule;

pub(super) fn run(id: &str, console: &mut Console<'_>) -> io::Result<u8> {
    let Some(text) = rules::by_id(id).and_then(rules::text) else {
        let ids: Vec<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        let error = Diagnostic::error(format!("there is no rule `{id}`"))
            .help(format!("the rules are {}", ids.join(" ")));
        return console.refuse(&[error]);
    };
    let width = console.out_style.width.min(100);
    let out = &mut *console.streams.out;
    writeln!(out, "{}: {}", text.rule.id(), text.title)?;
    writeln!(out, "severity: {}", text.severity)?;
    for (title, body) in [("What", text.what), ("Why", text.why)] {
        writeln!(out, "\n{title}\n{}", wrap(body, width))?;
    }
    writeln!(out, "\nExample")?;
    for line in text.example.lines() {
        writeln!(out, "    {line}")?;
    }
    writeln!(out, "\nFix\n{}", wrap(text.fix, width))?;
    Ok(exit::CLEAN)
}

/// Breaks a paragraph into lines of at most `width` columns, indented by two.
fn wrap(text: &str, width: usize) -> String {
    let mut lines = vec![String::from(" ")];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line + 1 + word.chars().count() > width && line > 1 {
            lines.push(String::from(" "));
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n")
}
