//! `ptxrace baseline update FILE REPORT.json...`

use std::io;

use rustc_hash::FxHashSet;

use super::args::BaselineCommand;
use super::{Console, exit, merge, reports};
use crate::explain::{Known, Means, Search};
use crate::report::{read_baseline, write_baseline};

pub(super) fn run(command: &BaselineCommand, console: &mut Console<'_>) -> io::Result<u8> {
    let BaselineCommand::Update { file, reports } = command;
    let all = match merge::all(reports, &Search::default()) {
        Ok(all) => all,
        Err(errors) => return console.refuse(&errors),
    };
    let before = match file.exists().then(|| reports::read(file).and_then(|file| read_baseline(&file))) {
        Some(Ok(baseline)) => baseline.known,
        // What is no baseline is not overwritten.
        Some(Err(error)) => return console.refuse(&[error]),
        None => Vec::new(),
    };
    // What the baseline has suppressed is still there; what something else suppresses needs no baseline.
    let of_baseline =
        all.iter().flat_map(|report| &report.suppressed).filter(|s| s.by.means == Means::Baseline);
    let counting = all.iter().flat_map(|report| &report.findings);
    let known: Vec<_> =
        counting.chain(of_baseline.map(|suppressed| &suppressed.finding)).map(Known::of).collect();
    let prints =
        |known: &[Known]| known.iter().map(|known| known.fingerprint.clone()).collect::<FxHashSet<_>>();
    let (old, now) = (prints(&before), prints(&known));
    let mut bytes = Vec::new();
    write_baseline(known, &mut bytes)?;
    if let Err(code) = console.write_file(file, &bytes)? {
        return Ok(code);
    }
    let (new, gone) = (now.difference(&old).count(), old.difference(&now).count());
    let findings = if now.len() == 1 { "finding" } else { "findings" };
    let path = file.display();
    writeln!(console.streams.out, "{path}: {} {findings}, {new} new, {gone} gone", now.len())?;
    Ok(exit::CLEAN)
}
