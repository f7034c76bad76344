//! The command line: typed arguments, the commands, exit codes. It writes only to the streams it is given.

mod args;
mod baseline;
mod doctor;
mod exec;
pub mod exit;
mod explain;
mod extract;
mod init;
mod instrument;
mod memory;
mod merge;
mod print;
mod replay;
mod reports;
mod run;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{CommandFactory, FromArgMatches};

use crate::diag::Diagnostic;
use crate::report::{Style, write_diagnostic};
use crate::session::Parts;
use args::{Cli, ColorChoice, Command};

/// Where texts go, and what those places can show.
pub struct Streams<'s> {
    /// Standard output.
    pub out: &'s mut dyn Write,
    /// Standard error.
    pub err: &'s mut dyn Write,
    /// Whether standard output is a terminal.
    pub out_is_terminal: bool,
    /// Whether standard error is a terminal.
    pub err_is_terminal: bool,
    /// Columns of the terminal, if known.
    pub width: Option<usize>,
    /// Whether the environment asks for no colours (`NO_COLOR`).
    pub no_color: bool,
    /// The root of the repository, if CI tells it (`GITHUB_WORKSPACE`).
    pub workspace: Option<PathBuf>,
    /// Where the summary of a step of GitHub Actions goes (`GITHUB_STEP_SUMMARY`).
    pub step_summary: Option<PathBuf>,
}

/// Streams with the styles that fit them.
struct Console<'s> {
    streams: Streams<'s>,
    out_style: Style,
    err_style: Style,
}

impl Console<'_> {
    /// Writes diagnostics to standard error and gives the exit code of bad input.
    fn refuse(&mut self, errors: &[Diagnostic]) -> io::Result<u8> {
        for (index, error) in errors.iter().enumerate() {
            if index > 0 {
                writeln!(self.streams.err)?;
            }
            write_diagnostic(error, self.err_style, self.streams.err)?;
        }
        Ok(exit::USAGE)
    }

    /// Writes a file, or says why not.
    fn write_file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<Result<(), u8>> {
        let Err(error) = std::fs::write(path, bytes) else { return Ok(Ok(())) };
        let error = Diagnostic::error(format!("cannot write `{}`: {error}", path.display()));
        self.refuse(&[error]).map(Err)
    }
}

/// Runs a command line and gives its exit code. Errors of writing to the streams end it at once.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    streams: Streams<'_>,
    parts: &dyn Parts,
) -> io::Result<u8> {
    let matches = match Cli::command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return clap_says(&error, streams),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return clap_says(&error, streams),
    };
    let color = |terminal: bool| match cli.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => terminal && !streams.no_color,
    };
    let width = streams.width.unwrap_or(Style::default().width).max(40);
    let mut console = Console {
        out_style: Style { color: color(streams.out_is_terminal), width },
        err_style: Style { color: color(streams.err_is_terminal), width },
        streams,
    };
    match &cli.command {
        Command::Run(args) => match reports::Options::new(&args.reports, &matches) {
            Ok(options) => run::run(args, options, &mut console, parts),
            Err(errors) => console.refuse(&errors),
        },
        Command::Exec(args) => match reports::Options::new(&args.reports, &matches) {
            Ok(options) => exec::run(args, &options, &mut console),
            Err(errors) => console.refuse(&errors),
        },
        Command::Replay(args) => match reports::Options::new(&args.reports, &matches) {
            Ok(options) => replay::run(args, options, &mut console, parts),
            Err(errors) => console.refuse(&errors),
        },
        Command::Merge(args) => match reports::Options::new(&args.output, &matches) {
            Ok(options) => merge::run(args, options, &mut console),
            Err(errors) => console.refuse(&errors),
        },
        Command::Baseline(command) => baseline::run(command, &mut console),
        Command::Instrument(args) => instrument::run(args, &mut console, parts),
        Command::Extract(args) => extract::run(args, &mut console),
        Command::Init(command) => init::run(command, &mut console),
        Command::Explain { rule } => explain::run(rule, &mut console),
        Command::Doctor => doctor::run(&mut console, parts),
        Command::Completions { shell } => print::completions(*shell, &mut console),
        Command::Man { command } => print::man(command.as_deref(), &mut console),
    }
}

/// Help and version go to standard output, errors to standard error.
fn clap_says(error: &clap::Error, streams: Streams<'_>) -> io::Result<u8> {
    let (to, code, terminal) = if error.use_stderr() {
        (streams.err, exit::USAGE, streams.err_is_terminal)
    } else {
        (streams.out, exit::CLEAN, streams.out_is_terminal)
    };
    let text = error.render();
    if terminal && !streams.no_color {
        write!(to, "{}", text.ansi())?
    } else {
        write!(to, "{text}")?
    }
    Ok(code)
}
