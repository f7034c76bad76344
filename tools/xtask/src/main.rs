//! Chores of the workspace: `cargo xtask NAME`.
#![forbid(unsafe_code)]

mod corpus;
mod cuda;
mod litmus;
mod samples;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask CHORE

chores:
  cuda                install the pinned CUDA compiler into target/cuda, print its CUDA_HOME
  litmus FILE...      litmus programs over all schedules, against verdicts or an oracle (--help)
  corpus DIR...       run parser, instrumentation and ptxas over folders of PTX (--help: its options)
  samples [--check]   recompile the PTX of the sample programs (--check: only compare it)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["cuda"] => cuda::install().map(|home| println!("{}", home.display())),
        ["litmus", ref rest @ ..] => litmus::run(rest),
        ["corpus", ..] => {
            use clap::Parser as _;
            corpus::run(&corpus::Args::parse_from(&args))
        }
        ["samples"] => samples::compile(samples::Mode::Write),
        ["samples", "--check"] => samples::compile(samples::Mode::Check),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace. Asked of cargo at run time, so that checkouts may share a target folder.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let mut root = PathBuf::from(package);
    root.pop();
    root.pop();
    root
}

/// Runs a command to its end; what it printed becomes part of the error.
fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("failed to start `{program}`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("`{program}` failed ({})\n{}", output.status, String::from_utf8_lossy(&said).trim_end()))
}
