//! A page for people: one file with style, script and pictures inside, which asks nothing of the network and can be read
//! without the script.
//!
//! It is written piece by piece, so that its size costs no memory. Of very many findings the first have pictures and
//! sources; the page says so.

mod excerpt;
mod finding;
mod map;
mod mask;
mod page;
mod picture;
mod shown;
mod table;

use std::io::{self, Write};

use super::Report;
use super::alike::distinct;

/// Findings with pictures and sources; a page with many more is slow to show.
const DRAWN: usize = 200;

/// Launches and suppressed findings that are listed.
const LISTED: usize = 1000;

pub(super) fn write(report: &Report, to: &mut dyn Write) -> io::Result<()> {
    let findings = distinct(&report.findings);
    write!(to, "{}", page::begin(report).into_string())?;
    if !findings.is_empty() {
        write!(to, "{}", table::begin(&findings).into_string())?;
        for (index, (finding, more)) in findings.iter().enumerate() {
            write!(to, "{}", table::row(index + 1, finding, *more).into_string())?;
        }
        write!(to, "{}", table::end(findings.len()).into_string())?;
        for (index, (finding, more)) in findings.iter().enumerate() {
            let drawn = index < DRAWN;
            write!(to, "{}", finding::section(index + 1, finding, *more, drawn).into_string())?;
        }
    }
    write!(to, "{}", page::end(report).into_string())
}
