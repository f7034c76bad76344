//! The rules of the memory model that a litmus program cannot say: sizes, lanes, barriers, everything asynchronous.
//!
//! `tests/rules/NAME.ptx` names its rule. Each of its kernels has its launch above it and a line `expect:` with `clean`,
//! `race RULE` or `warning RULE`; of further rules behind that one findings are allowed. It has to hold under every
//! schedule, of the instrumented text, too, and however records of different warps reach the host.
//! `tests/rules/README.md` lists which rule is held by what.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::reorder::reordered;
use common::{Launched, Random, Recorded, files, judge, record_as, root};
use libtest_mimic::{Arguments, Failed, Trial};
use ptxrace::backend::emu::Emulator;
use ptxrace::backend::{RunOptions, Stop};
use ptxrace::diag::Severity;
use ptxrace::engine::Report;
use ptxrace::finding::{Finding, Rule};
use ptxrace::session::launch::LaunchRequest;

/// Schedules of each kernel.
const SEEDS: u64 = 8;

/// Orders of arrival of the records of each schedule.
const ORDERS: u64 = 6;

/// A kernel and what is to be found in it: a rule with its severity, and rules that may be found besides; or nothing.
#[derive(Clone, Debug)]
struct Kernel {
    file: PathBuf,
    name: String,
    expected: Option<(Severity, Vec<String>)>,
}

impl Kernel {
    /// `FILE::KERNEL`, as the table has it.
    fn id(&self) -> String {
        format!("{}::{}", self.file.file_stem().unwrap_or_default().to_string_lossy(), self.name)
    }
}

fn words_of(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// The kernels of a file, each with the `expect:` above it.
fn kernels(file: &Path) -> Vec<Kernel> {
    let text = std::fs::read_to_string(file).expect("a file of rules");
    let mut expected = None;
    let mut all = Vec::new();
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("// expect: ") {
            expected = Some(match words.split_once(' ') {
                None if words == "clean" => None,
                Some(("race", rules)) => Some((Severity::Error, words_of(rules))),
                Some(("warning", rules)) => Some((Severity::Warning, words_of(rules))),
                _ => panic!("{}: `{line}`", file.display()),
            });
        }
        if let Some((_, rest)) = line.split_once(".entry ") {
            let name = rest.split('(').next().unwrap_or(rest).to_owned();
            let expected =
                expected.take().unwrap_or_else(|| panic!("{}: `{name}` expects nothing", file.display()));
            all.push(Kernel { file: file.to_owned(), name, expected });
        }
    }
    all
}

/// Whether a report says what is expected, and nothing else. Notes do not count.
fn check(kernel: &Kernel, report: &Report) -> Result<(), String> {
    let is_race = kernel.expected.as_ref().is_some_and(|(severity, _)| *severity == Severity::Error);
    if report.damaged.is_some() || report.lost != 0 || (report.degraded != 0 && !is_race) {
        let Report { degraded, lost, damaged, .. } = report;
        return Err(format!("degraded {degraded}, lost {lost}, damaged {damaged:?}"));
    }
    // Nor does what memory holds before it is written.
    let counts = |finding: &&Finding| finding.severity > Severity::Note && finding.rule != Rule::M004;
    let findings = report.findings.iter().filter(counts);
    let found: BTreeSet<_> = findings.map(|f| (f.severity, f.rule.id().to_owned())).collect();
    let fits = match &kernel.expected {
        None => found.is_empty(),
        Some((severity, rules)) => {
            let first = rules.first().is_some_and(|rule| found.contains(&(*severity, rule.clone())));
            first && found.iter().all(|(s, rule)| s == severity && rules.contains(rule))
        }
    };
    if fits {
        return Ok(());
    }
    Err(format!("found {found:?}, not {:?}\n{:#?}", kernel.expected, report.findings))
}

fn judged(run: &Recorded, launches: &[Launched]) -> Report {
    judge(&run.sites, &run.plan, launches)
}

/// A kernel under some schedules, its records in some orders.
fn run(kernel: &Kernel) -> Result<(), Failed> {
    let request = LaunchRequest { kernel: Some(kernel.name.clone()), ..LaunchRequest::default() };
    for (mode, mut emulator) in [("native", Emulator::new()), ("instrumented", Emulator::instrumented())] {
        for seed in 0..SEEDS {
            let options = RunOptions { seed, ..RunOptions::default() };
            let run = record_as(&kernel.file, &request, &mut emulator, &options)?;
            let at = |what: String| format!("{mode}, seed {seed}: {what}");
            // A barrier that never completes stops the run.
            let misuse = kernel
                .expected
                .as_ref()
                .is_some_and(|(_, rule)| rule.iter().any(|rule| rule.starts_with('S')));
            match &run.outcome.stop {
                None => {}
                Some(Stop::Deadlock { .. } | Stop::Fault(_)) if misuse => {}
                Some(stop) => return Err(at(format!("{stop:?}")).into()),
            }
            check(kernel, &judged(&run, &run.capture.launches)).map_err(at)?;
            for order in 0..ORDERS {
                let mut random = Random(order);
                let wide = (order % 2 == 1).then_some(order);
                let again = |launch| reordered(launch, wide, &mut random);
                let launches: Vec<_> = run.capture.launches.iter().map(again).collect();
                check(kernel, &judged(&run, &launches)).map_err(|e| at(format!("order {order}: {e}")))?;
            }
        }
    }
    Ok(())
}

/// Every row of the table names a rule, at least one racy and one clean program that exist, and every kernel is in a row.
fn table(kernels: &[Kernel]) -> Result<(), Failed> {
    let text = std::fs::read_to_string(root().join("tests/rules/README.md"))?;
    let mut wrong = Vec::new();
    let mut named = BTreeSet::new();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|row| row.split(" | ").collect())
        .filter(|row: &Vec<_>| row.first().is_some_and(|cell| *cell != "rule" && !cell.starts_with("---")))
        .collect();
    for row in &rows {
        let [rule, racy, clean] = row[..] else {
            wrong.push(format!("`{}` is no row of three cells", row.join(" | ")));
            continue;
        };
        for (cell, is_clean) in [(racy, false), (clean, true)] {
            let programs: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
            if programs.is_empty() {
                wrong.push(format!("{rule}: no {} program", if is_clean { "clean" } else { "racy" }));
            }
            for program in programs {
                named.insert(program.to_owned());
                let fits = match kernels.iter().find(|kernel| kernel.id() == program) {
                    Some(kernel) => kernel.expected.is_none() == is_clean,
                    None => {
                        let folder = if is_clean { "clean/" } else { "race/" };
                        let launch = root().join("ptx-samples").join(program).with_extension("toml");
                        program.starts_with(folder) && launch.exists()
                    }
                };
                if !fits {
                    wrong.push(format!("{rule}: `{program}` is not there, or in the wrong column"));
                }
            }
        }
    }
    if rows.len() < 40 {
        wrong.push(format!("only {} rows", rows.len()));
    }
    wrong.extend(
        kernels.iter().filter(|k| !named.contains(&k.id())).map(|k| format!("`{}` is in no row", k.id())),
    );
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn main() {
    let kernels: Vec<_> = files("tests/rules", "ptx").iter().flat_map(|file| kernels(file)).collect();
    assert!(kernels.len() > 100, "only {} kernels", kernels.len());
    let mut trials: Vec<_> =
        kernels.iter().cloned().map(|kernel| Trial::test(kernel.id(), move || run(&kernel))).collect();
    trials.push(Trial::test("table", move || table(&kernels)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
