//! Output: one report, any number of formats, each written to a writer that the caller gives.
//!
//! A format is one file here and one arm of `write`. Wire structs stay inside their format's file.

mod alike;
mod baseline;
mod drawn;
mod github;
mod html;
mod json;
mod junit;
mod merge;
mod paths;
mod progress;
mod sarif;
mod sites;
mod text;
mod wire;

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::diag::{Diagnostic, Severity};
use crate::explain::{By, Explained, Policy, Suppressed, Suppressor};
pub use baseline::{read_baseline, write_baseline};
pub use github::write_summary;
pub use json::{read, read_with};
pub use merge::merge;
pub use paths::Folders;
pub use progress::{Bar, Progress, Silent};
pub use sites::write_sites;
pub use text::{Style, write_diagnostic};

/// What a run says about the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// A finding of severity error is left.
    Race,
    /// Nothing was found, and nothing was missed.
    #[default]
    Clean,
    /// Nothing was found, but something was missed.
    Inconclusive,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 3] = [Self::Race, Self::Clean, Self::Inconclusive];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::Clean => "clean",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// A launch that was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchFacts {
    /// Index in the plan.
    pub id: u32,
    /// The entry, as PTX names it.
    pub kernel: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// The device that it was for.
    pub device: u32,
    /// Stream.
    pub stream: u32,
    /// What ran it.
    pub backend: &'static str,
    /// Records it delivered, over all schedules.
    pub records: u64,
    /// Records lost.
    pub dropped: u64,
    /// The test that launched it, if a test runner told.
    pub test: Option<String>,
}

/// Why a run is not the whole truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Records were lost.
    DroppedRecords,
    /// An instruction that may matter was executed and not logged.
    UnknownInstruction,
    /// Code that could not be looked into.
    OpaqueKernel,
    /// It took too long.
    Timeout,
    /// No warp could go on.
    Deadlock,
    /// An access or instruction that may not be.
    Fault,
    /// Synchronisation could not be replayed in an order that explains all values.
    DegradedOrder,
    /// The driver or the device refused to go on.
    Device,
    /// The program called what the wrapper does not provide.
    UnsupportedCall,
    /// Nothing was launched, so nothing was checked.
    NoLaunch,
    /// A trace is cut off, or damaged from some place on.
    DamagedTrace,
    /// The analysis reached the memory that it may take.
    MemoryLimit,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 12] = [
        Self::DroppedRecords,
        Self::UnknownInstruction,
        Self::OpaqueKernel,
        Self::Timeout,
        Self::Deadlock,
        Self::Fault,
        Self::DegradedOrder,
        Self::Device,
        Self::UnsupportedCall,
        Self::NoLaunch,
        Self::DamagedTrace,
        Self::MemoryLimit,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::DroppedRecords => "dropped-records",
            Self::UnknownInstruction => "unknown-instruction",
            Self::OpaqueKernel => "opaque-kernel",
            Self::Timeout => "timeout",
            Self::Deadlock => "deadlock",
            Self::Fault => "fault",
            Self::DegradedOrder => "degraded-order",
            Self::Device => "device",
            Self::UnsupportedCall => "unsupported-call",
            Self::NoLaunch => "no-launch",
            Self::DamagedTrace => "damaged-trace",
            Self::MemoryLimit => "memory-limit",
        }
    }
}

/// One reason, with its facts.
#[derive(Clone, Debug)]
pub struct Incomplete {
    /// The reason.
    pub reason: Reason,
    /// One sentence.
    pub detail: String,
    /// The same for people, with places.
    pub diagnostic: Diagnostic,
}

/// All that a run found. Who makes one fills in launches, findings, `incomplete` and notes, and lets it `judge`.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What it says about the program.
    pub verdict: Verdict,
    /// The launches in order.
    pub launches: Vec<LaunchFacts>,
    /// Findings that count, errors first.
    pub findings: Vec<Explained>,
    /// Findings that do not.
    pub suppressed: Vec<Suppressed>,
    /// All that could suppress findings, with the number of those it fits.
    pub suppressors: Vec<Suppressor>,
    /// Why the run is not the whole truth, if it is not.
    pub incomplete: Vec<Incomplete>,
    /// What was assumed.
    pub notes: Vec<Diagnostic>,
    /// Where files are, for formats that name them from the root of a repository.
    pub folders: Folders,
}

impl Report {
    /// Sorts the findings by a policy, and says what is left of the program.
    pub fn judge(&mut self, policy: &Policy) {
        let sorted = policy.sort(std::mem::take(&mut self.findings));
        self.notes.extend(policy.unused(&sorted.suppressors));
        self.findings = sorted.findings;
        self.suppressed.extend(sorted.suppressed);
        merge::add(&mut self.suppressors, sorted.suppressors);
        self.verdict = if self.count(Severity::Error) > 0 {
            Verdict::Race
        } else if self.incomplete.is_empty() {
            Verdict::Clean
        } else {
            Verdict::Inconclusive
        };
    }

    /// What suppressed findings, and how many.
    pub fn suppressions(&self) -> Vec<(&By, usize)> {
        let mut counts = FxHashMap::default();
        for suppressed in &self.suppressed {
            *counts.entry(&suppressed.by).or_insert(0) += 1;
        }
        let known = self.suppressors.iter().map(|suppressor| &suppressor.by);
        known.filter_map(|by| Some((by, *counts.get(by)?))).collect()
    }

    /// Findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// The line that ends a text report.
    pub fn summary(&self) -> String {
        let count = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        let records: u64 = self.launches.iter().map(|launch| launch.records).sum();
        let records = if records == 1 { "1 record".to_owned() } else { format!("{records} records") };
        let notes = self.count(Severity::Note);
        let notes = if notes == 0 { String::new() } else { format!("{}, ", count(notes, "note")) };
        let suppressed = match self.suppressed.len() {
            0 => String::new(),
            n => format!("{n} suppressed, "),
        };
        format!(
            "{}, {}, {notes}{suppressed}{} inconclusive, {}, {} dropped",
            count(self.count(Severity::Error), "race"),
            count(self.count(Severity::Warning), "warning"),
            self.incomplete.len(),
            records,
            self.launches.iter().map(|launch| launch.dropped).sum::<u64>(),
        )
    }
}

/// A format of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// Schema `ptxrace-report/1`.
    Json,
    /// SARIF 2.1.0.
    Sarif,
    /// JUnit XML.
    Junit,
    /// Workflow commands of GitHub Actions.
    Github,
    /// A page, for people.
    Html,
}

/// Where a report goes, and how.
pub struct Output<'o> {
    /// The format.
    pub format: Format,
    /// The style of texts.
    pub style: Style,
    /// The writer.
    pub to: &'o mut dyn Write,
}

/// Writes a report to every output.
pub fn write(report: &Report, outputs: &mut [Output<'_>]) -> io::Result<()> {
    for output in outputs {
        match output.format {
            Format::Text => text::write(report, output.style, output.to)?,
            Format::Json => json::write(report, output.to)?,
            Format::Sarif => sarif::write(report, output.to)?,
            Format::Junit => junit::write(report, output.to)?,
            Format::Github => github::write(report, output.to)?,
            Format::Html => html::write(report, output.to)?,
        }
        output.to.flush()?;
    }
    Ok(())
}

/// A sentence of its own: it begins with a capital, if with a letter at all, and ends with a period.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    first.into_iter().chain(characters).chain(end.chars()).collect()
}

/// At most so many characters of a text, with a note of what is left out.
fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let note = format!("... ({length} characters in all)");
    text.chars().take(most.saturating_sub(note.len())).chain(note.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_can_be_read() {
        // A variant that is missing from `ALL` moves those behind it.
        assert!(Reason::ALL.iter().enumerate().all(|(at, reason)| *reason as usize == at));
        assert_eq!(Reason::ALL.last(), Some(&Reason::MemoryLimit));
    }
}
