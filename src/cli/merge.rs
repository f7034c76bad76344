//! `ptxrace merge REPORT.json...`

use std::io;
use std::path::PathBuf;

use super::Console;
use super::args::MergeArgs;
use super::reports::{self, Options};
use crate::diag::Diagnostic;
use crate::explain::Search;
use crate::report::{Report, merge, read_with};

pub(super) fn run(args: &MergeArgs, options: Options, console: &mut Console<'_>) -> io::Result<u8> {
    let reports = match all(&args.reports, &options.search) {
        Ok(reports) => reports,
        Err(errors) => return console.refuse(&errors),
    };
    let mut merged = merge(reports);
    merged.judge(&options.policy);
    Ok(options.write(merged, console)?.unwrap_or_else(|code| code))
}

/// Reads all reports, or says what is wrong with each that is.
pub(super) fn all(paths: &[PathBuf], search: &Search) -> Result<Vec<Report>, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut all = Vec::new();
    for path in paths {
        match reports::read(path).and_then(|file| read_with(&file, search)) {
            Ok(report) => all.push(report),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(all) } else { Err(errors) }
}
