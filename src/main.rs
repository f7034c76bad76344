//! The `ptxrace` command: everything is in the library; this connects it with the process.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use ptxrace::backend::gpu::leave_abandoned;
use ptxrace::cli::{self, Streams};
use ptxrace::session::Linked;
use ptxrace::session::exec::ptxas;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if let Some(name) = arguments.next().as_deref().and_then(ptxas::called_as) {
        return stand_in(name, &arguments.collect::<Vec<_>>());
    }
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let (out_is_terminal, err_is_terminal) = (stdout.is_terminal(), stderr.is_terminal());
    let (mut out, mut err) = (io::BufWriter::new(stdout), stderr);
    let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let streams = Streams {
        out: &mut out,
        err: &mut err,
        out_is_terminal,
        err_is_terminal,
        width: std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()),
        no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
        workspace: path("GITHUB_WORKSPACE"),
        step_summary: path("GITHUB_STEP_SUMMARY"),
    };
    let code = cli::run(std::env::args_os(), streams, &Linked);
    match code.and_then(|code| out.flush().map(|()| code)) {
        Ok(code) => {
            leave_abandoned(code);
            ExitCode::from(code)
        }
        // A reader that has gone, as in `ptxrace ... | head`, is no reason to complain.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(cli::exit::USAGE),
        Err(error) => {
            let _ = writeln!(err, "error: cannot write the report: {error}");
            ExitCode::from(cli::exit::USAGE)
        }
    }
}

/// Does what ptxas does, under its name.
fn stand_in(name: &'static str, arguments: &[OsString]) -> ExitCode {
    match ptxas::run(name, arguments) {
        Ok(ended) => ExitCode::from(ended.code()),
        Err(error) => {
            let _ = writeln!(io::stderr(), "ptxrace, in place of {name}: {error}");
            // As a shell says that a command is not there.
            ExitCode::from(127)
        }
    }
}
