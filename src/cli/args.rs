//! The command line as typed. The comments of its fields are the texts of `--help`, so brackets there are no links.

#![allow(rustdoc::broken_intra_doc_links, reason = "texts of `--help`")]

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, ArgMatches, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::exit;
use crate::engine::Budget;
use crate::fatbin::Arch;

/// A PTX-level instrumenting dynamic race detector for CUDA.
#[derive(Debug, Parser)]
#[command(name = "ptxrace", version, about, after_help = exit::HELP, max_term_width = 100)]
pub(super) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(super) command: Command,
    /// Colours in texts.
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto)]
    pub(super) color: ColorChoice,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the kernels of a PTX module and report their races
    Run(Box<RunArgs>),
    /// Print the instrumented PTX, or the table of its sites
    Instrument(InstrumentArgs),
    /// Run a program and report the races of the kernels it launches
    Exec(Box<ExecArgs>),
    /// Check a recorded run again, without running it
    Replay(ReplayArgs),
    /// Write the PTX that a program, library, object or fatbin has embedded
    Extract(ExtractArgs),
    /// Make one report out of many
    Merge(MergeArgs),
    /// Keep a file of findings that are known already
    #[command(subcommand)]
    Baseline(BaselineCommand),
    /// Write files that a project needs
    #[command(subcommand)]
    Init(InitCommand),
    /// Tell what a rule means and how to fix what it finds
    Explain {
        /// A rule, such as R001
        rule: String,
    },
    /// Tell what works on this machine
    Doctor,
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print a manual page
    Man {
        /// The page of this command
        command: Option<String>,
    },
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorChoice {
    /// On terminals.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum BackendArg {
    /// The GPU if there is a usable one, else the emulator
    Auto,
    /// The GPU
    Gpu,
    /// The emulator
    Emu,
}

/// How the emulator's memory behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MemoryArg {
    /// Sequentially consistent: a read sees the latest write
    Sc,
    /// Weak: a read may see an older write, where the memory model allows it
    Weak,
}

/// What to do when a record ring is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnFullArg {
    /// Wait for the host
    Wait,
    /// Drop records, count them, and call the run inconclusive
    Drop,
}

/// Report formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatArg {
    /// For people
    Text,
    /// Schema ptxrace-report/1
    Json,
    /// SARIF 2.1.0
    Sarif,
    /// JUnit XML
    Junit,
    /// Workflow commands of GitHub Actions, and a summary of the step
    Github,
    /// A page with pictures, in one file
    Html,
}

/// `ptxrace run`
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The PTX module
    pub(super) file: PathBuf,
    /// The kernel to launch [default: those of the launch description, else all]
    #[arg(long, value_name = "NAME")]
    pub(super) kernel: Option<String>,
    /// Blocks of the grid
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = extent)]
    pub(super) grid: Option<[u32; 3]>,
    /// Threads of a block
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = extent)]
    pub(super) block: Option<[u32; 3]>,
    /// Dynamic shared memory
    #[arg(long, value_name = "BYTES")]
    pub(super) shared: Option<u32>,
    /// An argument, in order: name:type[count]=init, name:type=value or @name
    #[arg(long = "arg", value_name = "SPEC", action = ArgAction::Append)]
    pub(super) args: Vec<String>,
    /// The launch description [default: app.toml beside app.ptx, or its `//@ ` lines]
    #[arg(long, value_name = "FILE")]
    pub(super) launch: Option<PathBuf>,
    /// What runs the program
    #[arg(long, value_enum, default_value_t = BackendArg::Auto)]
    pub(super) backend: BackendArg,
    /// Seed of the emulator's schedule; alone, it runs just that one
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Run so many schedules, of the seeds from --seed on (emulator only) [default: 8 for small programs, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) schedules: Option<u64>,
    /// Memory of the emulator
    #[arg(long, value_enum, default_value_t = MemoryArg::Sc)]
    pub(super) memory: MemoryArg,
    /// Stop each schedule after so many seconds, or never with `none`
    #[arg(long, value_name = "SECONDS", value_parser = timeout, default_value = DEFAULT_TIMEOUT)]
    pub(super) timeout: Timeout,
    /// What to do when a record ring is full
    #[arg(long, value_enum, default_value_t = OnFullArg::Wait)]
    pub(super) on_full: OnFullArg,
    /// Write a buffer's final contents: as text to standard output, or its bytes to a file
    #[arg(long, value_name = "NAME[=PATH]", action = ArgAction::Append)]
    pub(super) dump: Vec<String>,
    /// Write a trace of the run, which `ptxrace replay` checks again
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
    /// Let the engine see every record, those of clean launches too; the report is the same, and takes longer
    #[arg(long, hide_short_help = true)]
    pub(super) no_triage: bool,
    /// Memory that the analysis may take, as in 8G; `none` for no limit [default: three quarters of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = memory_limit)]
    pub(super) memory_limit: Option<Budget>,
    /// Write what took how long, in nanoseconds, as JSON
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) timings: Option<PathBuf>,
    #[command(flatten)]
    pub(super) reports: ReportArgs,
}

/// What every command that makes reports has.
#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// Make a rule's findings errors, or those of all warnings
    #[arg(long, value_name = "RULE|warnings", action = ArgAction::Append)]
    pub(super) deny: Vec<String>,
    /// Suppress a rule's findings
    #[arg(long, value_name = "RULE", action = ArgAction::Append)]
    pub(super) allow: Vec<String>,
    /// Suppress what the lines `rule:pattern # reason` of a file say; the glob fits a kernel, source file or variable
    #[arg(long, value_name = "FILE", action = ArgAction::Append)]
    pub(super) suppressions: Vec<PathBuf>,
    /// Suppress the findings of a baseline, so that only new ones count
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,
    /// Look for sources here too, by as much of the end of their paths as fits
    #[arg(long, value_name = "DIR", action = ArgAction::Append)]
    pub(super) source_path: Vec<PathBuf>,
    /// Where sources whose paths begin with FROM are now
    #[arg(long, value_name = "FROM=TO", value_parser = source_map, action = ArgAction::Append)]
    pub(super) source_map: Vec<(String, PathBuf)>,
    /// Format of a report; give it again for another
    #[arg(long, value_enum, value_name = "FORMAT", action = ArgAction::Append)]
    pub(super) format: Vec<FormatArg>,
    /// File for the report of the --format before it [default: standard output; of `exec`, standard error]
    #[arg(long, short, value_name = "PATH", action = ArgAction::Append)]
    pub(super) output: Vec<PathBuf>,
}

/// `ptxrace replay`
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// A trace that `ptxrace run --record` or `ptxrace exec --record` has written
    pub(super) trace: PathBuf,
    /// Let the engine see every record, those of clean launches too; the report is the same, and takes longer
    #[arg(long, hide_short_help = true)]
    pub(super) no_triage: bool,
    /// Memory that the analysis may take, as in 8G; `none` for no limit [default: three quarters of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = memory_limit)]
    pub(super) memory_limit: Option<Budget>,
    #[command(flatten)]
    pub(super) reports: ReportArgs,
}

/// The flags that say what counts, for a command that does the same.
pub(super) fn policy_words(args: &ReportArgs) -> impl Iterator<Item = (&'static str, &str)> {
    let denied = args.deny.iter().map(|rule| ("deny", rule.as_str()));
    denied.chain(args.allow.iter().map(|rule| ("allow", rule.as_str())))
}

/// `ptxrace merge`
#[derive(Debug, Args)]
pub(super) struct MergeArgs {
    /// Reports that `--format json` has written
    #[arg(required = true, value_name = "REPORT.json")]
    pub(super) reports: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) output: ReportArgs,
}

/// `ptxrace baseline`
#[derive(Debug, Subcommand)]
pub(super) enum BaselineCommand {
    /// Write a baseline that has the findings of reports, and nothing else
    Update {
        /// The baseline
        file: PathBuf,
        /// Reports that `--format json` has written
        #[arg(required = true, value_name = "REPORT.json")]
        reports: Vec<PathBuf>,
    },
}

/// CI systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CiSystem {
    /// A workflow of GitHub Actions
    Github,
    /// A job of GitLab CI
    Gitlab,
    /// A pipeline of Jenkins
    Jenkins,
}

/// `ptxrace init`
#[derive(Debug, Subcommand)]
pub(super) enum InitCommand {
    /// Write a CI job that checks kernels without a GPU
    Ci {
        /// The CI system [default: the one that the repository uses]
        #[arg(value_enum)]
        system: Option<CiSystem>,
        /// A PTX module to check; give it again for another [default: all below this folder]
        #[arg(long, value_name = "PATH", action = ArgAction::Append)]
        ptx: Vec<PathBuf>,
        /// The command by which a runner gets ptxrace [default: none; the job fails where ptxrace is missing]
        #[arg(long, value_name = "COMMAND")]
        install: Option<String>,
        /// The file to write, or `-` for standard output [default: where the CI system looks for it]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Overwrite the file if it is there
        #[arg(long)]
        force: bool,
    },
}

/// `ptxrace exec`
#[derive(Debug, Args)]
pub(super) struct ExecArgs {
    /// What runs the program's kernels
    #[arg(long, value_enum, default_value_t = BackendArg::Auto)]
    pub(super) backend: BackendArg,
    /// Seed of the emulator's schedules
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// Memory of the emulator
    #[arg(long, value_enum, default_value_t = MemoryArg::Sc)]
    pub(super) memory: MemoryArg,
    /// Devices that the emulator offers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(super) emu_devices: Option<u32>,
    /// Stop each launch after so many seconds, or never with `none`
    #[arg(long, value_name = "SECONDS", value_parser = timeout, default_value = DEFAULT_TIMEOUT)]
    pub(super) timeout: Timeout,
    /// Check only these kernels: a glob of names, as PTX has them or demangled
    #[arg(long = "kernel", value_name = "GLOB", action = ArgAction::Append, value_parser = glob)]
    pub(super) kernels: Vec<String>,
    /// Check only the first N launches of each kernel
    #[arg(long, value_name = "N")]
    pub(super) max_launches: Option<u64>,
    /// Check one in N launches of each kernel, the first among them; what is left out is compared with nothing
    #[arg(long, value_name = "N")]
    pub(super) sample: Option<NonZeroU64>,
    /// Memory that the analysis may take in each process, as in 8G; `none` for no limit [default: half of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = memory_limit)]
    pub(super) memory_limit: Option<Budget>,
    /// Keep the calls that led to each allocation, and show those of what is raced on
    #[arg(long)]
    pub(super) backtraces: bool,
    /// Exit code when there are races
    #[arg(long, value_name = "N", default_value_t = exit::EXEC_RACES)]
    pub(super) race_exit_code: u8,
    /// Fail when the run is inconclusive
    #[arg(long)]
    pub(super) strict: bool,
    /// Write a trace of all processes, which `ptxrace replay` checks again
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
    #[command(flatten)]
    pub(super) reports: ReportArgs,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(super) command: Vec<std::ffi::OsString>,
}

/// `ptxrace instrument`
#[derive(Debug, Args)]
pub(super) struct InstrumentArgs {
    /// The PTX module
    pub(super) file: PathBuf,
    /// Where to write the instrumented PTX [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print the site table as JSON instead; with --output, in addition
    #[arg(long)]
    pub(super) sites: bool,
}

/// `ptxrace extract`
#[derive(Debug, Args)]
pub(super) struct ExtractArgs {
    /// A program, library, object or fatbin
    pub(super) binary: PathBuf,
    /// Folder for the PTX [default: the current one]
    #[arg(long, short, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// List all images, machine code too, and write nothing
    #[arg(long, conflicts_with = "output")]
    pub(super) list: bool,
    /// Of each fatbin, take only what suits such a device best
    #[arg(long, value_name = "sm_XX")]
    pub(super) arch: Option<Arch>,
}

/// `FROM=TO`
fn source_map(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.to_owned(), to.into())),
        _ => Err("it has the form FROM=TO".into()),
    }
}

/// `X[,Y[,Z]]`
fn extent(text: &str) -> Result<[u32; 3], String> {
    let mut extent = [1; 3];
    let numbers: Vec<_> = text.split([',', 'x']).map(str::trim).collect();
    if numbers.len() > 3 {
        return Err("more than three sizes".into());
    }
    for (slot, number) in extent.iter_mut().zip(numbers) {
        *slot = match number.parse() {
            Ok(n) if n > 0 => n,
            _ => return Err(format!("`{number}` is not a positive number")),
        };
    }
    Ok(extent)
}

/// How long a schedule may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timeout(pub(super) Option<Duration>);

/// Longer than what one waits for in CI; a kernel that spins for ever ends by itself.
pub(super) const DEFAULT_TIMEOUT: &str = "600";

/// A glob, as it was typed.
fn glob(text: &str) -> Result<String, String> {
    glob::Pattern::new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

pub(super) fn timeout(text: &str) -> Result<Timeout, String> {
    if text == "none" {
        return Ok(Timeout(None));
    }
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(Timeout(Some(duration))),
        _ => Err("a timeout is more than 0 seconds".into()),
    }
}

/// `none`, or bytes, with K, M, G or T for 1024 of them, 1024 of those and so on.
fn memory_limit(text: &str) -> Result<Budget, String> {
    if text == "none" {
        return Ok(Budget::UNLIMITED);
    }
    let number = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text[number.len()..].trim().to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        "T" | "TB" | "TIB" => 1_u64 << 40,
        other => return Err(format!("`{other}` is no unit of memory: K, M, G and T are")),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes
        .filter(|bytes| *bytes > 0)
        .map(Budget::of)
        .ok_or_else(|| format!("`{text}` is not a number of bytes, as in 8G"))
}

/// A report to make: its format, and its file unless it goes to standard output.
pub(super) type Wanted = (FormatArg, Option<PathBuf>);

/// Matches formats with outputs by their order on the command line: an output belongs to the format before it, or to
/// the first one when it comes before all.
pub(super) fn outputs(args: &ReportArgs, matches: &ArgMatches) -> Result<Vec<Wanted>, String> {
    let places = |name: &str| -> Vec<usize> {
        let given = matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
        if given { matches.indices_of(name).into_iter().flatten().collect() } else { Vec::new() }
    };
    let (formats, outputs) = (places("format"), places("output"));
    let mut wanted: Vec<Wanted> = args.format.iter().map(|format| (*format, None)).collect();
    if wanted.is_empty() {
        wanted.push((FormatArg::Text, None));
    }
    for (path, at) in args.output.iter().zip(outputs) {
        let own = formats.iter().rposition(|format| *format < at).unwrap_or(0);
        if let Some((_, slot)) = wanted.get_mut(own)
            && slot.replace(path.clone()).is_some()
        {
            return Err(format!("`--output {}` is the second one for its `--format`", path.display()));
        }
    }
    for (_, path) in &mut wanted {
        path.take_if(|path| path.as_os_str() == "-");
    }
    if wanted.iter().filter(|(_, path)| path.is_none()).count() > 1 {
        return Err("two reports would go to one place; give one an `--output`".into());
    }
    Ok(wanted)
}
