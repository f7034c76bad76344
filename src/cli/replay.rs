//! `ptxrace replay TRACE`

use std::io;

use super::args::{ReplayArgs, policy_words};
use super::reports::Options;
use super::run::quote;
use super::{Console, exit, memory};
use crate::engine::Analysis;
use crate::report::{Bar, Progress, Silent};
use crate::session::{Parts, ReplayRequest, Replayed, replay};

pub(super) fn run(
    args: &ReplayArgs,
    options: Options,
    console: &mut Console<'_>,
    parts: &dyn Parts,
) -> io::Result<u8> {
    let mut command = format!("ptxrace replay {}", quote(&args.trace.to_string_lossy()));
    for (name, value) in policy_words(&args.reports) {
        command += &format!(" --{name} {}", quote(value));
    }
    let request = ReplayRequest {
        file: args.trace.clone(),
        policy: options.policy.clone(),
        command,
        analysis: Analysis { triage: !args.no_triage, memory: memory::limit(args.memory_limit, 3, 4) },
    };
    let bar = Bar::new();
    let progress: &dyn Progress = if console.streams.err_is_terminal { &bar } else { &Silent };
    match replay(&request, parts, progress) {
        Ok(Replayed { report, ending: None }) => {
            Ok(options.write(report, console)?.unwrap_or_else(|code| code))
        }
        Ok(Replayed { report, ending: Some(ending) }) => {
            let verdict = report.verdict;
            let written = options.write_beside(report, console, false)?;
            Ok(written.map_or_else(|code| code, |()| exit::of_exec(verdict, &ending)))
        }
        Err(errors) => console.refuse(&errors),
    }
}
