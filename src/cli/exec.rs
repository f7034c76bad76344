//! `ptxrace exec -- CMD ARGS...`

use std::io;

use super::args::{BackendArg, DEFAULT_TIMEOUT, ExecArgs, MemoryArg, timeout};
use super::reports::Options;
use super::run::quote;
use super::{Console, exit};
use crate::backend::gpu::{Gpu, library};
use crate::backend::{MemoryOrder, RunOptions};
use crate::diag::Diagnostic;
use crate::session::exec::{
    Child, DEVICES, Ending, Environment, Logs, Recording, Runner, Settings, Wanted, environment,
    find_wrapper, launch, merge, prepare,
};
use crate::trace::ExecHead;

/// Names another driver than the system's, for tests: the wrapper's own library is a driver that runs on the emulator.
const DRIVER: &str = "PTXRACE_DRIVER";

pub(super) fn run(args: &ExecArgs, options: &Options, console: &mut Console<'_>) -> io::Result<u8> {
    let runner = match runner(args) {
        Ok(runner) => runner,
        Err(error) => return console.refuse(&[error]),
    };
    let executable = std::env::current_exe()?;
    let wrapper = match find_wrapper(&executable) {
        Ok(wrapper) => wrapper,
        Err(places) => {
            let places: Vec<_> = places.iter().map(|place| format!("`{}`", place.display())).collect();
            let error = Diagnostic::error("the wrapper `libptxrace_preload.so` is missing")
                .note(format!("looked for {}", places.join(", ")))
                .help("`cargo build --release --workspace` builds it");
            return console.refuse(&[error]);
        }
    };
    let Some((program, arguments)) = args.command.split_first() else { return console.refuse(&[]) };
    let how = RunOptions {
        seed: args.seed,
        memory: match args.memory {
            MemoryArg::Sc => MemoryOrder::Sequential,
            MemoryArg::Weak => MemoryOrder::Weak,
        },
        timeout: args.timeout.0,
        ..RunOptions::default()
    };
    let folder = tempfile::Builder::new().prefix("ptxrace-exec-").tempdir()?;
    let around = match runner {
        Runner::Emulator => {
            let devices = args.emu_devices.map(|devices| (DEVICES, Some(devices.to_string().into())));
            Environment { variables: devices.into_iter().collect(), ..Environment::default() }
        }
        Runner::Gpu { .. } => {
            prepare(folder.path(), &executable)?;
            environment(folder.path(), |name| std::env::var_os(name))
        }
    };
    let (program, arguments) = (program.clone(), arguments.to_vec());
    let child = Child { program, arguments, variables: around.variables };
    let wanted = Wanted { kernels: args.kernels.clone(), most: args.max_launches, one_in: args.sample };
    let mut settings = Settings::new(folder.path().to_owned(), runner.clone(), &how, wanted);
    settings.backtraces = args.backtraces;
    settings.memory = super::memory::limit(args.memory_limit, 1, 2);
    let command = command(args, &runner);
    let recording = match begin(args, &command, &around.notes) {
        Ok(recording) => recording,
        Err(error) => return console.refuse(&[error]),
    };
    settings.tapes = recording.as_ref().map(|recording| recording.tapes().to_owned());
    let ended = match launch(&child, &wrapper, &settings) {
        Ok(ended) => ended,
        Err(error) => {
            recording.into_iter().for_each(Recording::discard);
            let error =
                Diagnostic::error(format!("cannot run `{}`: {error}", child.program.to_string_lossy()));
            return console.refuse(&[error]);
        }
    };
    let logs = match Logs::read(folder.path()) {
        Ok(logs) => logs,
        Err(error) => return console.refuse(&[error]),
    };
    let recorded =
        recording.map_or(Ok(()), |recording| recording.finish(&logs, &options.search, ended.code()));
    let mut report = merge(logs, &options.policy, &options.search, &command);
    report.notes.extend(around.notes.into_iter().map(Diagnostic::remark));
    let verdict = report.verdict;
    if let Err(code) = options.write_beside(report, console, true)? {
        return Ok(code);
    }
    if let Err(error) = recorded {
        return console.refuse(&[error]);
    }
    let (races, strict, status) = (args.race_exit_code, args.strict, Some(ended.code()));
    Ok(exit::of_exec(verdict, &Ending { races, strict, status }))
}

/// Begins the trace, if there shall be one.
fn begin(args: &ExecArgs, command: &str, notes: &[String]) -> Result<Option<Recording>, Diagnostic> {
    let Some(path) = &args.record else { return Ok(None) };
    let head = ExecHead {
        tool: env!("CARGO_PKG_VERSION").into(),
        command: command.into(),
        races: args.race_exit_code,
        strict: args.strict,
        notes: notes.to_vec(),
    };
    Recording::begin(path, &head).map(Some)
}

/// What shall run the program's kernels.
fn runner(args: &ExecArgs) -> Result<Runner, Diagnostic> {
    let emulator_only = args.seed != 0 || args.memory == MemoryArg::Weak || args.emu_devices.is_some();
    let gpu = || -> Result<Runner, String> {
        if let Some(driver) = std::env::var_os(DRIVER) {
            return Ok(Runner::Gpu { driver: driver.into() });
        }
        Gpu::open().map_err(|error| error.to_string())?;
        let driver = library().ok_or_else(|| "the driver's library has no path".to_owned())?;
        Ok(Runner::Gpu { driver })
    };
    match args.backend {
        BackendArg::Emu => Ok(Runner::Emulator),
        BackendArg::Auto if emulator_only => Ok(Runner::Emulator),
        BackendArg::Auto => Ok(gpu().unwrap_or(Runner::Emulator)),
        BackendArg::Gpu if emulator_only => {
            let error = "`--seed`, `--memory weak` and `--emu-devices` need the emulator, as nothing of a GPU can be chosen";
            Err(Diagnostic::error(error).help("leave out `--backend gpu`"))
        }
        BackendArg::Gpu => gpu().map_err(|error| {
            Diagnostic::error(error).help("`--backend emu` runs the program's kernels on the emulator")
        }),
    }
}

/// The command that makes this run.
fn command(args: &ExecArgs, runner: &Runner) -> String {
    let mut words: Vec<String> = ["ptxrace", "exec", "--backend", runner.name()].map(String::from).to_vec();
    if args.seed != 0 {
        words.extend(["--seed".into(), args.seed.to_string()]);
    }
    if args.memory == MemoryArg::Weak {
        words.extend(["--memory".into(), "weak".into()]);
    }
    if let Some(devices) = args.emu_devices {
        words.extend(["--emu-devices".into(), devices.to_string()]);
    }
    if Ok(args.timeout) != timeout(DEFAULT_TIMEOUT) {
        let seconds = args.timeout.0.map_or("none".to_owned(), |timeout| timeout.as_secs_f64().to_string());
        words.extend(["--timeout".into(), seconds]);
    }
    if args.backtraces {
        words.push("--backtraces".into());
    }
    words.extend(args.kernels.iter().flat_map(|glob| ["--kernel".into(), quote(glob)]));
    if let Some(most) = args.max_launches {
        words.extend(["--max-launches".into(), most.to_string()]);
    }
    if let Some(one_in) = args.sample {
        words.extend(["--sample".into(), one_in.to_string()]);
    }
    words.push("--".into());
    words.extend(args.command.iter().map(|word| quote(&word.to_string_lossy())));
    words.join(" ")
}
