//! `ptxrace replay TRACE`

use std::io;

use super::Console;
use super::args::{ReplayArgs, policy_words};
use super::reports::Options;
use super::run::quote;
use crate::report::{Bar, Progress, Silent};
use crate::session::{Parts, ReplayRequest, replay};

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
        no_triage: args.no_triage,
    };
    let bar = Bar::new();
    let progress: &dyn Progress = if console.streams.err_is_terminal { &bar } else { &Silent };
    match replay(&request, parts, progress) {
        Ok(report) => Ok(options.write(report, console)?.unwrap_or_else(|code| code)),
        Err(errors) => console.refuse(&errors),
    }
}
