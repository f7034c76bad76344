//! The tables: by source, and what failed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::Entry;

/// Examples shown of one failure.
const EXAMPLES: usize = 3;

/// All files of one source together.
#[derive(Default, Serialize)]
struct Sum {
    files: usize,
    bytes: u64,
    parsed: usize,
    round_tripped: usize,
    instrumented: usize,
    sites: usize,
    unlogged: usize,
    ptxas_asked: usize,
    ptxas_original: usize,
    /// Of those it takes as they are, the ones that could be instrumented.
    ptxas_comparable: usize,
    ptxas_instrumented: usize,
    ptxas_by_abi: usize,
    growth_median: Option<f64>,
    ptxas_time_median: Option<f64>,
    ptxas_time_total: Option<f64>,
    parse_mb_per_second: f64,
    instrument_mb_per_second: f64,
}

impl Sum {
    fn of(entries: &[&Entry]) -> Self {
        let mut sum = Self { files: entries.len(), ..Self::default() };
        let (mut growth, mut times) = (Vec::new(), Vec::new());
        let (mut parse, mut instrument, mut original, mut instrumented) = (0.0, 0.0, 0.0, 0.0);
        for entry in entries {
            let examined = &entry.examined;
            sum.bytes += entry.file.bytes;
            sum.parsed += usize::from(examined.parsed);
            sum.round_tripped += usize::from(examined.round_tripped);
            sum.instrumented += usize::from(examined.instrumented);
            sum.sites += examined.sites;
            sum.unlogged += examined.unlogged;
            parse += examined.parse_seconds;
            instrument += examined.instrument_seconds;
            if examined.instrumented {
                growth.push(examined.instrumented_bytes as f64 / entry.file.bytes as f64);
            }
            let Some(ptxas) = &entry.ptxas else { continue };
            sum.ptxas_asked += 1;
            sum.ptxas_original += usize::from(ptxas.original);
            sum.ptxas_comparable += usize::from(ptxas.instrumented.is_some());
            if ptxas.instrumented == Some(true) {
                sum.ptxas_instrumented += 1;
                sum.ptxas_by_abi += usize::from(ptxas.by_abi);
                times.push(ptxas.instrumented_seconds / ptxas.original_seconds);
                original += ptxas.original_seconds;
                instrumented += ptxas.instrumented_seconds;
            }
        }
        let megabytes = sum.bytes as f64 / 1e6;
        sum.parse_mb_per_second = megabytes / parse;
        sum.instrument_mb_per_second = megabytes / instrument;
        sum.growth_median = median(growth);
        sum.ptxas_time_total = (!times.is_empty()).then_some(instrumented / original);
        sum.ptxas_time_median = median(times);
        sum
    }

    fn cells(&self, source: &str) -> Vec<String> {
        let ratio = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        let asked = |value: String| if self.ptxas_asked == 0 { "-".to_owned() } else { value };
        vec![
            source.to_owned(),
            self.files.to_string(),
            format!("{:.1}", self.bytes as f64 / 1e6),
            self.parsed.to_string(),
            self.round_tripped.to_string(),
            self.instrumented.to_string(),
            asked(format!("{} of {}", self.ptxas_original, self.ptxas_asked)),
            asked(format!("{} of {}", self.ptxas_instrumented, self.ptxas_comparable)),
            asked(self.ptxas_by_abi.to_string()),
            ratio(self.growth_median),
            ratio(self.ptxas_time_median),
            ratio(self.ptxas_time_total),
            format!("{:.0}", self.parse_mb_per_second),
            format!("{:.0}", self.instrument_mb_per_second),
        ]
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

const HEADERS: [&str; 14] = [
    "source",
    "files",
    "MB",
    "parsed",
    "round trip",
    "instrumented",
    "ptxas takes",
    "instrumented",
    "by ABI",
    "growth",
    "ptxas time",
    "in total",
    "parse MB/s",
    "all MB/s",
];

fn sums(entries: &[Entry]) -> Vec<(String, Sum)> {
    let mut by_source: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        by_source.entry(&entry.file.source).or_default().push(entry);
    }
    let mut sums: Vec<_> =
        by_source.iter().map(|(source, entries)| ((*source).to_owned(), Sum::of(entries))).collect();
    sums.push(("all".to_owned(), Sum::of(&entries.iter().collect::<Vec<_>>())));
    sums
}

fn rows(entries: &[Entry]) -> Vec<Vec<String>> {
    let mut rows = vec![HEADERS.map(str::to_owned).to_vec()];
    rows.extend(sums(entries).iter().map(|(source, sum)| sum.cells(source)));
    rows
}

/// The table, what failed, and the notes.
pub(super) fn terminal(entries: &[Entry], notes: &[String]) -> String {
    let rows = rows(entries);
    let mut out = String::new();
    let widths: Vec<usize> =
        (0..HEADERS.len()).map(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or(0)).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(
            |(at, (cell, &width))| {
                if at == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
            },
        );
        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out.push('\n');
    for note in notes {
        let _ = writeln!(out, "note: {note}");
    }
    for (kind, files) in failures(entries) {
        let _ = writeln!(out, "\n{}: {}: {}", files.len(), kind.0, kind.1);
        for (place, message) in files.iter().take(EXAMPLES) {
            let _ = writeln!(out, "    {place}: {message}");
        }
        if files.len() > EXAMPLES {
            let _ = writeln!(out, "    and {} more", files.len() - EXAMPLES);
        }
    }
    out
}

/// The table and the notes.
pub(super) fn markdown(entries: &[Entry], notes: &[String]) -> String {
    let mut out = String::new();
    for (at, row) in rows(entries).iter().enumerate() {
        let _ = writeln!(out, "| {} |", row.join(" | "));
        if at == 0 {
            let _ = writeln!(out, "| --- |{}", " ---: |".repeat(HEADERS.len() - 1));
        }
    }
    out.push('\n');
    for note in notes {
        let _ = writeln!(out, "- {note}");
    }
    out
}

#[derive(Serialize)]
struct Json<'e> {
    sources: BTreeMap<String, Sum>,
    files: &'e [Entry],
}

/// All that is known.
pub(super) fn json(entries: &[Entry]) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&Json { sources: sums(entries).into_iter().collect(), files: entries })
}

/// What failed, by stage and kind, with places and whole messages.
type Failures = BTreeMap<(&'static str, String), Vec<(String, String)>>;

fn failures(entries: &[Entry]) -> Failures {
    let mut failures = Failures::new();
    for entry in entries {
        let path = entry.file.path.display();
        let refused = entry.ptxas.as_ref().is_some_and(|ptxas| !ptxas.original);
        for failure in &entry.examined.failures {
            let place = if failure.line == 0 { path.to_string() } else { format!("{path}:{}", failure.line) };
            let message = if refused {
                format!("{} (ptxas refuses the file too)", failure.message)
            } else {
                failure.message.clone()
            };
            failures.entry((failure.stage, kind(&failure.message))).or_default().push((place, message));
        }
        let Some(ptxas) = &entry.ptxas else { continue };
        let stage = match (ptxas.original, ptxas.instrumented) {
            (false, _) => "ptxas refuses the file itself",
            (true, Some(false)) => "ptxas refuses the instrumented text",
            _ => continue,
        };
        failures
            .entry((stage, kind(&ptxas.message)))
            .or_default()
            .push((path.to_string(), ptxas.message.clone()));
    }
    failures
}

/// A message without what differs from file to file: numbers and what is quoted.
fn kind(message: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    for c in message.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => continue,
            None if c == '`' || c == '\'' || c == '"' => quote = Some(c),
            None => {}
        }
        if c.is_ascii_digit() {
            if !out.ends_with('#') {
                out.push('#');
            }
        } else {
            out.push(c);
        }
    }
    out
}
