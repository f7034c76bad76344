//! Exit codes of every command, all in one place.

use crate::report::Verdict;
use crate::session::exec::Ending;

/// Clean: nothing was found, and nothing was missed.
pub const CLEAN: u8 = 0;
/// A finding of severity error is left.
pub const RACES: u8 = 1;
/// The command line, an input file or an output file is at fault.
pub const USAGE: u8 = 2;
/// Nothing was found, but something was missed: a timeout, a deadlock, a fault, lost records, unknown instructions.
pub const INCONCLUSIVE: u8 = 3;

/// `exec`: races, unless `--race-exit-code` says otherwise.
pub const EXEC_RACES: u8 = 66;
/// `exec --strict`: nothing was found, but something was missed.
pub const EXEC_INCONCLUSIVE: u8 = 67;

/// With what `exec` ends, and a replay of its trace.
pub(super) fn of_exec(verdict: Verdict, ending: &Ending) -> u8 {
    match (verdict, ending.status) {
        (Verdict::Race, _) => ending.races,
        (Verdict::Inconclusive, _) if ending.strict => EXEC_INCONCLUSIVE,
        (_, Some(status)) => status,
        (_, None) => INCONCLUSIVE,
    }
}

/// What `--help` says of them.
pub(super) const HELP: &str = "Exit codes: 0 clean, 1 races, 2 usage or input error, 3 inconclusive (something was missed); of `exec`: 66 races, else the program's own";
