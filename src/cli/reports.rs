//! Reports of every command that makes them: what counts, which formats, where they go.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ArgMatches;

use super::args::{FormatArg, ReportArgs, Wanted, outputs};
use super::{Console, exit};
use crate::diag::Diagnostic;
use crate::explain::{Policy, Search, suppressions};
use crate::report::{self, Folders, Format, Output, Report, Style, Verdict, read_baseline};
use crate::span::SourceFile;

/// The report options of a command line.
pub(super) struct Options {
    /// What counts.
    pub(super) policy: Policy,
    /// Where sources may be.
    pub(super) search: Search,
    wanted: Vec<Wanted>,
}

impl FormatArg {
    /// Its name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "JSON",
            Self::Sarif => "SARIF",
            Self::Junit => "JUnit",
            Self::Github => "GitHub",
            Self::Html => "HTML",
        }
    }

    fn format(self) -> Format {
        match self {
            Self::Text => Format::Text,
            Self::Json => Format::Json,
            Self::Sarif => Format::Sarif,
            Self::Junit => Format::Junit,
            Self::Github => Format::Github,
            Self::Html => Format::Html,
        }
    }
}

impl Options {
    /// Reads the files that the options name. `matches` are those of the whole command line.
    pub(super) fn new(args: &ReportArgs, matches: &ArgMatches) -> Result<Self, Vec<Diagnostic>> {
        let own = matches.subcommand().map_or(matches, |(_, own)| own);
        let wanted = outputs(args, own).map_err(|message| vec![Diagnostic::error(message)])?;
        let mut policy = Policy::new(&args.deny, &args.allow).map_err(|error| vec![error])?;
        let mut errors = Vec::new();
        for path in &args.suppressions {
            match read(path).map_err(|error| vec![error]).and_then(|file| suppressions(&file)) {
                Ok(lines) => policy.suppress(lines),
                Err(mut wrong) => errors.append(&mut wrong),
            }
        }
        if let Some(path) = &args.baseline {
            match read(path).and_then(|file| read_baseline(&file)) {
                Ok(baseline) => policy.set_baseline(baseline),
                Err(error) => errors.push(error),
            }
        }
        let search = Search { folders: args.source_path.clone(), maps: args.source_map.clone() };
        if errors.is_empty() { Ok(Self { policy, search, wanted }) } else { Err(errors) }
    }

    /// The format of the report that has no file.
    pub(super) fn pathless(&self) -> Option<FormatArg> {
        self.wanted.iter().find(|(_, path)| path.is_none()).map(|(format, _)| *format)
    }

    /// Writes all reports, the one without a file to standard output, and gives the exit code of the verdict, or that of a
    /// file that cannot be written.
    pub(super) fn write(&self, report: Report, console: &mut Console<'_>) -> io::Result<Result<u8, u8>> {
        let code = match report.verdict {
            Verdict::Clean => exit::CLEAN,
            Verdict::Race => exit::RACES,
            Verdict::Inconclusive => exit::INCONCLUSIVE,
        };
        Ok(self.write_beside(report, console, false)?.map(|()| code))
    }

    /// The same for a program that has standard output for itself, if `beside`: then it is standard error.
    pub(super) fn write_beside(
        &self,
        mut report: Report,
        console: &mut Console<'_>,
        beside: bool,
    ) -> io::Result<Result<(), u8>> {
        report.folders = folders(console);
        // Notes belong to the text report; when there is none they are still worth a line each.
        if !self.wanted.iter().any(|(format, _)| *format == FormatArg::Text) {
            for note in &report.notes {
                report::write_diagnostic(note, console.err_style, console.streams.err)?;
            }
        }
        let mut files = Vec::new();
        for (format, path) in &self.wanted {
            let Some(path) = path else { continue };
            match File::create(path) {
                Ok(file) => files.push((*format, BufWriter::new(file))),
                Err(error) => return refuse(console, path, &error),
            }
        }
        let to_file = |(wanted, file): (FormatArg, _)| Output {
            format: wanted.format(),
            style: Style::default(),
            to: file,
        };
        let mut outputs: Vec<_> =
            files.iter_mut().map(|(format, file)| (*format, file as &mut dyn Write)).map(to_file).collect();
        if let Some(format) = self.pathless() {
            let (style, to) = match beside {
                false => (console.out_style, &mut *console.streams.out),
                true => (console.err_style, &mut *console.streams.err),
            };
            outputs.push(Output { format: format.format(), style, to });
        }
        report::write(&report, &mut outputs)?;
        if let Some(path) = console.streams.step_summary.clone()
            && self.wanted.iter().any(|(format, _)| *format == FormatArg::Github)
            && let Err(error) = append_summary(&report, &path)
        {
            return refuse(console, &path, &error);
        }
        Ok(Ok(()))
    }
}

/// Reads a file of texts.
pub(super) fn read(path: &Path) -> Result<SourceFile, Diagnostic> {
    SourceFile::read(path).map_err(|error| Diagnostic::error(error.to_string()))
}

fn refuse(console: &mut Console<'_>, path: &Path, error: &io::Error) -> io::Result<Result<(), u8>> {
    let error = Diagnostic::error(format!("cannot write `{}`: {error}", path.display()));
    console.refuse(&[error]).map(Err)
}

/// Steps share the file; each adds to it.
fn append_summary(report: &Report, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(OpenOptions::new().append(true).create(true).open(path)?);
    report::write_summary(report, &mut file)?;
    file.flush()
}

/// The repository is what CI says, or the folder above that has `.git`, or else this folder.
fn folders(console: &Console<'_>) -> Folders {
    let Ok(current) = std::env::current_dir() else { return Folders::default() };
    let git = || current.ancestors().find(|folder| folder.join(".git").exists()).map(PathBuf::from);
    let workspace = console.streams.workspace.clone().filter(|folder| current.starts_with(folder));
    let root = workspace.or_else(git).unwrap_or_else(|| current.clone());
    Folders { current, root }
}
