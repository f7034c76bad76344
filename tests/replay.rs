//! The replay order: records of different warps may reach the host in any order, and the report stays the same, whole.
//!
//! Tickets may differ as well where operations overlap in time, and then the device did something else as far as anyone can tell.
//! What is the same even so, and compared here:
//! - whether there is an error, and for the samples how far apart the accesses are at most;
//! - in random litmus programs, which words have errors, as long as values tell writes apart.
//!
//! What depends on the tickets:
//! - *Pairs of accesses.* A later access of a thread takes the place of an earlier one that it follows, so an unordered access
//!   of another thread meets whichever is there when it is replayed.
//! - *Rules.* With the pair, its rule; and R005 tells of what the thread had observed by then.
//! - *Values that repeat.* Which write of a value was observed is taken from the order of replay; a value may also have been
//!   there from the start. Edges, and so errors, may then be found in one order and not in another.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use common::reorder::reordered;
use common::{Capture, Launched, Random, judge, programs, record, records};
use libtest_mimic::{Arguments, Failed, Trial};
use litmus::compile::{Placing, Rounds, compile};
use litmus::explore::Lottery;
use litmus::generate;
use ptxrace::abi::decode;
use ptxrace::backend::emu::{Emulator, Scripted};
use ptxrace::backend::{Program, RunOptions};
use ptxrace::diag::Severity;
use ptxrace::engine::Report;
use ptxrace::instrument::SiteTable;
use ptxrace::ptx;
use ptxrace::span::SourceFile;

/// What must not depend on the tickets. Which of two unordered accesses is replayed first decides which entries
/// meet and which are replaced, so a race may show by another pair of its accesses; how far apart they are at most may
/// not change, nor what is found where there is no error.
fn essence(report: &Report) -> Vec<String> {
    let errors = report.findings.iter().filter(|f| f.severity == Severity::Error);
    if let Some(widest) = errors.map(|f| f.relation).max() {
        return vec![format!("errors, {widest:?} at most")];
    }
    report
        .findings
        .iter()
        .map(|f| format!("{:?} {} {:?} {:?}", f.severity, f.rule.id(), f.kind, f.relation))
        .collect()
}

/// Whether reports are the same, whole.
fn same(report: &Report, straight: &Report) -> Result<(), String> {
    let (report, straight) = (format!("{report:#?}"), format!("{straight:#?}"));
    if report == straight {
        Ok(())
    } else {
        Err(format!("the report is\n{report}\nin order it is\n{straight}"))
    }
}

fn check(launch: &Path) -> Result<(), Failed> {
    let run = record(launch, &mut Emulator::new(), &RunOptions::default())?;
    let straight = judge(&run.sites, &run.plan, &run.capture.launches);
    // A plain store that races with atomics leaves values that no order explains, and what waits at a barrier that is misused
    // may not go on; only an error may do that.
    let racy = |report: &Report| report.findings.iter().any(|f| f.severity == Severity::Error);
    if (straight.degraded != 0 && !racy(&straight)) || straight.damaged.is_some() {
        return Err(
            format!("in order: degraded {}, damaged {:?}", straight.degraded, straight.damaged).into()
        );
    }
    for seed in 0..16 {
        let mut random = Random(seed);
        let wide = (seed % 2 == 1).then_some(seed);
        let again = |launch| reordered(launch, wide, &mut random);
        let launches: Vec<_> = run.capture.launches.iter().map(again).collect();
        let report = judge(&run.sites, &run.plan, &launches);
        if wide.is_none() {
            same(&report, &straight).map_err(|error| format!("shuffle {seed}: {error}"))?;
            continue;
        }
        if (report.degraded != 0 && !racy(&report)) || report.damaged.is_some() {
            return Err(format!(
                "shuffle {seed}: degraded {}, damaged {:?}",
                report.degraded, report.damaged
            )
            .into());
        }
        if essence(&report) != essence(&straight) {
            return Err(format!(
                "shuffle {seed} finds\n{:#?}\nin order it is\n{:#?}",
                essence(&report),
                essence(&straight)
            )
            .into());
        }
    }
    Ok(())
}

/// Whether values tell the writes to each place apart, and from what was there first.
fn writes_are_told_apart(launch: &Launched) -> bool {
    let mut seen: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    records(&launch.units).into_iter().all(|units| {
        let record = decode(units).expect("a record").expect("a record");
        (0..record.lanes().count()).all(|rank| match record.written(rank) {
            Some(value) => seen.entry(record.a(rank)).or_insert_with(|| BTreeSet::from([0])).insert(value),
            None => true,
        })
    })
}

/// The words with errors. Locations of litmus programs lie apart.
fn racy_words(report: &Report) -> BTreeSet<u64> {
    let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.flat_map(|finding| [finding.range.0, finding.range.1]).collect()
}

/// One schedule of a random litmus program, its records in some orders. How many were compared by their words.
fn check_litmus(seed: u64) -> Result<usize, String> {
    let program = generate::program(seed, generate::Size::default());
    let compiled = compile(&program, Placing::Warps, Rounds(1))?;
    let source =
        SourceFile::new(Path::new("litmus.ptx"), compiled.text.as_str()).map_err(|e| e.to_string())?;
    let parsed = ptx::parse(source.text());
    let sites = Arc::new(SiteTable::new(&parsed.module));
    let loaded = Program { source: &source, module: &parsed.module, sites: &sites };
    let scripted = Scripted::new(loaded, &compiled.plan).map_err(|e| e.to_string())?;
    let mut capture = Capture::default();
    let mut schedule = Lottery(litmus::random::Random(seed));
    scripted.run(&RunOptions::default(), &mut schedule, &mut capture).map_err(|e| e.to_string())?;
    let straight = judge(&sites, &compiled.plan, &capture.launches);
    let told_apart = capture.launches.iter().all(writes_are_told_apart);
    let mut compared = 0;
    for order in 0..8 {
        let wide = order % 2 == 1;
        if wide && !told_apart {
            continue;
        }
        let again =
            |launch: &Launched| reordered(launch, wide.then_some(order), &mut Random(seed << 8 | order));
        let launches: Vec<_> = capture.launches.iter().map(again).collect();
        let report = judge(&sites, &compiled.plan, &launches);
        if !wide {
            same(&report, &straight)
                .map_err(|error| format!("seed {seed}, order {order}: {error}\n{program}"))?;
        }
        let (a, b) = (racy_words(&straight), racy_words(&report));
        let fits = if told_apart { a == b } else { a.is_empty() == b.is_empty() };
        if !fits {
            return Err(format!(
                "seed {seed}, order {order}: errors at {b:x?}, in order at {a:x?}\n{program}\n{:#?}\n{:#?}",
                straight.findings, report.findings
            ));
        }
        compared += usize::from(told_apart);
    }
    Ok(compared)
}

/// Random litmus programs of so many seeds.
fn check_litmus_programs(seeds: std::ops::Range<u64>) -> Result<(), Failed> {
    let all = seeds.end - seeds.start;
    let compared = seeds.map(check_litmus).sum::<Result<usize, String>>()?;
    // About every second program has no value twice.
    if (compared as u64) < all {
        Err(format!("only {compared} orders compared by words").into())
    } else {
        Ok(())
    }
}

fn main() {
    let mut trials = Vec::new();
    for folder in ["ptx-samples/race", "ptx-samples/clean", "tests/cases"] {
        for launch in programs(folder) {
            trials.push(Trial::test(common::name(&launch), move || check(&launch)));
        }
    }
    assert!(trials.len() > 100, "only {} programs", trials.len());
    for part in 0..16 {
        let seeds = 200 * part..200 * (part + 1);
        trials.push(Trial::test(format!("litmus/{}", seeds.start), move || check_litmus_programs(seeds)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
