//! `ptxrace run FILE`

use std::io::{self, Write};
use std::path::PathBuf;

use super::args::{
    BackendArg, DEFAULT_TIMEOUT, FormatArg, MemoryArg, OnFullArg, RunArgs, policy_words, timeout,
};
use super::reports::Options;
use super::{Console, memory};
use crate::backend::{MemoryOrder, OnFull, Phase, RunOptions};
use crate::diag::Diagnostic;
use crate::engine::Analysis;
use crate::report::{self, Bar, Progress, Silent};
use crate::session::launch::LaunchRequest;
use crate::session::launch::values::display;
use crate::session::{self, Choice, FinalBuffer, Parts, Request};

pub(super) fn run(
    args: &RunArgs,
    options: Options,
    console: &mut Console<'_>,
    parts: &dyn Parts,
) -> io::Result<u8> {
    let dumps: Vec<_> = args.dump.iter().map(|dump| dump_target(dump)).collect();
    let taken = options.pathless().filter(|format| *format != FormatArg::Text);
    let dumped = dumps.iter().find(|(_, path)| path.is_none());
    if let (Some(format), Some((name, _))) = (taken, dumped) {
        let message =
            format!("`--dump {name}` would go to standard output, as the {} report does", format.name());
        let help = format!("write `--dump {name}=PATH`, or give the report an `--output`");
        return console.refuse(&[Diagnostic::error(message).help(help)]);
    }
    let request = request(args, &dumps, &options);
    let bar = Bar::new();
    let progress: &dyn Progress = if console.streams.err_is_terminal { &bar } else { &Silent };
    let finished = match session::run(&request, parts, progress) {
        Ok(finished) => finished,
        Err(errors) => return console.refuse(&errors),
    };
    if let Some(path) = &args.timings
        && let Err(code) = console.write_file(path, timings(&finished.phases).as_bytes())?
    {
        return Ok(code);
    }
    let code = match options.write(finished.report, console)? {
        Ok(code) => code,
        Err(code) => return Ok(code),
    };
    for (buffer, (name, path)) in finished.buffers.iter().zip(&dumps) {
        if buffer.contents.is_empty() {
            let warning = Diagnostic::warning(format!("`--dump {name}`: the run did not come to its end"));
            report::write_diagnostic(&warning, console.err_style, console.streams.err)?;
            continue;
        }
        match path {
            Some(path) => {
                if let Err(code) = console.write_file(path, &buffer.contents)? {
                    return Ok(code);
                }
            }
            None => dump(buffer, console.streams.out)?,
        }
    }
    match finished.unwritten {
        Some(error) => console.refuse(&[error]),
        None => Ok(code),
    }
}

/// Phases as JSON.
fn timings(phases: &[Phase]) -> String {
    let lines: Vec<_> =
        phases.iter().map(|phase| format!("  \"{}\": {}", phase.name, phase.time.as_nanos())).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

/// `NAME` or `NAME=PATH`.
fn dump_target(text: &str) -> (String, Option<PathBuf>) {
    match text.split_once('=') {
        Some((name, path)) => (name.to_owned(), Some(path.into())),
        None => (text.to_owned(), None),
    }
}

fn request(args: &RunArgs, dumps: &[(String, Option<PathBuf>)], options: &Options) -> Request {
    Request {
        file: args.file.clone(),
        launch: LaunchRequest {
            kernel: args.kernel.clone(),
            grid: args.grid,
            block: args.block,
            shared: args.shared,
            args: args.args.clone(),
            file: args.launch.clone(),
        },
        backend: match args.backend {
            BackendArg::Auto => Choice::Auto,
            BackendArg::Gpu => Choice::Gpu,
            BackendArg::Emu => Choice::Emulator,
        },
        options: RunOptions {
            seed: args.seed.unwrap_or(0),
            memory: match args.memory {
                MemoryArg::Sc => MemoryOrder::Sequential,
                MemoryArg::Weak => MemoryOrder::Weak,
            },
            timeout: args.timeout.0,
            on_full: match args.on_full {
                OnFullArg::Wait => OnFull::Wait,
                OnFullArg::Drop => OnFull::Drop,
            },
        },
        // A seed given is a replay; without one, the session takes what is cheap.
        schedules: args.schedules.unwrap_or(u64::from(args.seed.is_some())),
        policy: options.policy.clone(),
        search: options.search.clone(),
        dump: dumps.iter().map(|(name, _)| name.clone()).collect(),
        command: command(args),
        record: args.record.clone(),
        analysis: Analysis { triage: !args.no_triage, memory: memory::limit(args.memory_limit, 3, 4) },
    }
}

/// The command that makes this run, without backend, seed and output.
fn command(args: &RunArgs) -> String {
    let mut words = vec!["ptxrace".to_owned(), "run".to_owned(), quote(&args.file.to_string_lossy())];
    let mut flag = |name: &str, value: String| words.extend([format!("--{name}"), quote(&value)]);
    let extent = |e: [u32; 3]| format!("{},{},{}", e[0], e[1], e[2]);
    if let Some(kernel) = &args.kernel {
        flag("kernel", kernel.clone());
    }
    if let Some(grid) = args.grid {
        flag("grid", extent(grid));
    }
    if let Some(block) = args.block {
        flag("block", extent(block));
    }
    if let Some(shared) = args.shared {
        flag("shared", shared.to_string());
    }
    for arg in &args.args {
        flag("arg", arg.clone());
    }
    if let Some(launch) = &args.launch {
        flag("launch", launch.to_string_lossy().into_owned());
    }
    if Ok(args.timeout) != timeout(DEFAULT_TIMEOUT) {
        let seconds = args.timeout.0.map_or("none".to_owned(), |timeout| timeout.as_secs_f64().to_string());
        flag("timeout", seconds);
    }
    if args.memory == MemoryArg::Weak {
        flag("memory", "weak".to_owned());
    }
    for (name, rule) in policy_words(&args.reports) {
        flag(name, rule.to_owned());
    }
    words.join(" ")
}

/// Quotes a word for a POSIX shell if it needs that.
pub(super) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// One element a line, so that dumps can be compared.
fn dump(buffer: &FinalBuffer, to: &mut dyn Write) -> io::Result<()> {
    for (index, element) in buffer.contents.chunks(buffer.ty.bytes()).enumerate() {
        writeln!(to, "{}[{index}] = {}", buffer.name, display(element, buffer.ty))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_when_they_must_be() {
        assert_eq!(quote("a/b.ptx"), "a/b.ptx");
        assert_eq!(quote("a:i32[4]=0"), "'a:i32[4]=0'");
        assert_eq!(quote("it's"), r"'it'\''s'");
    }
}
