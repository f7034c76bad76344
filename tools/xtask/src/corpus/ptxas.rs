//! ptxas on a file: as it is, and instrumented.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ptxrace::instrument::{CallMode, SiteTable, instrument};
use ptxrace::ptx;
use serde::Serialize;
use wait4::Wait4;

use super::examine;

/// A ptxas to ask.
pub(super) struct Ptxas {
    bin: PathBuf,
    /// How it calls itself.
    pub(super) version: String,
    /// The targets it compiles for, such as `sm_90a`.
    targets: Vec<String>,
    timeout: Duration,
    /// Larger files are left out.
    limit: u64,
}

/// What it said about a file.
#[derive(Default, Serialize)]
pub(super) struct Compiled {
    /// Its options for this file.
    flags: Vec<String>,
    /// Takes the file as it is.
    pub(super) original: bool,
    /// Takes it instrumented; nothing when it refuses the file itself, or when that cannot be instrumented.
    pub(super) instrumented: Option<bool>,
    /// The logging functions had to be called by the ABI.
    pub(super) by_abi: bool,
    /// CPU seconds for the file as it is.
    pub(super) original_seconds: f64,
    /// CPU seconds for the instrumented one.
    pub(super) instrumented_seconds: f64,
    /// What it said of what it refused.
    pub(super) message: String,
}

/// One compilation.
struct Run {
    accepted: bool,
    seconds: f64,
    said: String,
}

impl Ptxas {
    /// Asks a ptxas for its version and targets.
    pub(super) fn new(bin: PathBuf, timeout: Duration, limit: u64) -> Result<Self, String> {
        let ask = |option: &str| {
            let output = Command::new(&bin).arg(option).output();
            let output = output.map_err(|error| format!("failed to start {}: {error}", bin.display()))?;
            Ok::<_, String>(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let version = ask("--version")?;
        let version =
            version.lines().find(|line| line.contains("release")).unwrap_or("of an unknown version");
        let version = format!("ptxas: {}", version.trim());
        let help = ask("--help")?;
        let mut targets: Vec<String> = Vec::new();
        for word in help.split('\'').filter(|word| word.starts_with("sm_")) {
            if !targets.iter().any(|target| target == word) {
                targets.push(word.to_owned());
            }
        }
        if targets.is_empty() {
            return Err(format!("{} --help names no target", bin.display()));
        }
        Ok(Self { bin, version, targets, timeout, limit })
    }

    /// Compiles a file as it is and instrumented. Nothing if it is too large or no text.
    pub(super) fn compile(&self, path: &Path, scratch: &Path) -> Option<Compiled> {
        let text = examine::read(path).ok()?;
        if text.len() as u64 > self.limit {
            return None;
        }
        let parsed = ptx::parse(&text);
        let mut flags = vec![format!("-arch={}", self.arch(parsed.module.target().unwrap_or("sm_90")))];
        // Some compilers leave a NUL at the end, which ptxas does not take.
        let original = text.trim_end_matches('\0');
        let mut run = self.run(original, &flags, scratch);
        if !run.accepted && run.said.contains("Unresolved extern") {
            flags.push("-c".to_owned());
            run = self.run(original, &flags, scratch);
        }
        let mut compiled = Compiled {
            flags,
            original: run.accepted,
            original_seconds: run.seconds,
            message: run.said,
            ..Compiled::default()
        };
        if !compiled.original || !parsed.errors.is_empty() {
            return Some(compiled);
        }
        let sites = SiteTable::new(&parsed.module);
        let mut mode = Some(CallMode::Local);
        while let Some(calls) = mode {
            let Ok(instrumented) = instrument(&text, &parsed.module, &sites, calls) else { break };
            let run = self.run(&instrumented.text, &compiled.flags, scratch);
            compiled.instrumented = Some(run.accepted);
            compiled.instrumented_seconds = run.seconds;
            compiled.by_abi = calls == CallMode::Abi;
            compiled.message = run.said;
            mode = calls.instead(&compiled.message);
        }
        Some(compiled)
    }

    /// The module's own target where this ptxas has it, else the nearest newer one.
    pub(super) fn arch(&self, own: &str) -> &str {
        if let Some(target) = self.targets.iter().find(|target| *target == own) {
            return target;
        }
        let number = |target: &str| target.strip_prefix("sm_").and_then(|number| number.parse::<u32>().ok());
        let own = number(own).unwrap_or(0);
        let newer = self.targets.iter().filter(|target| number(target).is_some_and(|number| number >= own));
        newer.min_by_key(|target| number(target)).map_or("sm_90", String::as_str)
    }

    fn run(&self, text: &str, flags: &[String], scratch: &Path) -> Run {
        let (input, output) = (scratch.with_extension("ptx"), scratch.with_extension("cubin"));
        let log = scratch.with_extension("log");
        let done = fs::write(&input, text).and_then(|()| {
            let said = fs::File::create(&log)?;
            // `timeout` ends a compilation that hangs; its CPU time is counted with that of its child.
            Command::new("timeout")
                .arg(format!("{}s", self.timeout.as_secs()))
                .arg(&self.bin)
                .args(flags)
                .arg(&input)
                .arg("-o")
                .arg(&output)
                .stdin(Stdio::null())
                .stdout(said.try_clone()?)
                .stderr(said)
                .spawn()?
                .wait4()
        });
        let said = fs::read(&log).map(|said| String::from_utf8_lossy(&said).into_owned()).unwrap_or_default();
        for file in [&input, &output, &log] {
            // What is not there need not be removed.
            let _ = fs::remove_file(file);
        }
        let input = format!("{}, ", input.display());
        let first = said.lines().find(|line| line.contains("error") || line.contains("fatal"));
        let first = first.unwrap_or_default().replace(&input, "");
        match done {
            Ok(used) if used.status.success() => Run {
                accepted: true,
                seconds: (used.rusage.utime + used.rusage.stime).as_secs_f64(),
                said: String::new(),
            },
            Ok(used) => {
                let said = match used.status.code() {
                    Some(124) => format!("took longer than {} s", self.timeout.as_secs()),
                    _ if first.is_empty() => format!("{}", used.status),
                    _ => first,
                };
                Run { accepted: false, seconds: 0.0, said }
            }
            Err(error) => Run { accepted: false, seconds: 0.0, said: format!("failed to run: {error}") },
        }
    }
}
