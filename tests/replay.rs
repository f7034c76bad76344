//! The replay order: records of different warps may reach the host in any order, and the findings stay the same.

mod common;

use std::path::Path;

use common::reorder::{shuffled, widened};
use common::{Launched, Random, judge, programs, record};
use libtest_mimic::{Arguments, Failed, Trial};
use ptxrace::backend::RunOptions;
use ptxrace::backend::emu::Emulator;
use ptxrace::diag::Severity;
use ptxrace::engine::Report;

/// What must not depend on the order of arrival. Which of two unordered accesses is replayed first decides which entries
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

fn check(launch: &Path) -> Result<(), Failed> {
    let run = record(launch, &mut Emulator::new(), &RunOptions::default())?;
    let straight = judge(&run.sites, &run.plan, &run.capture.launches);
    if straight.degraded != 0 || straight.damaged.is_some() {
        return Err(
            format!("in order: degraded {}, damaged {:?}", straight.degraded, straight.damaged).into()
        );
    }
    for seed in 0..16 {
        let mut random = Random(seed);
        let wide = |launch| {
            if seed % 2 == 0 { Launched::clone(launch) } else { widened(launch, 40.0, &mut Random(seed)) }
        };
        let launches: Vec<_> = run.capture.launches.iter().map(|l| shuffled(&wide(l), &mut random)).collect();
        let report = judge(&run.sites, &run.plan, &launches);
        // A plain store that races with atomics leaves values that no order explains; only a race may do that.
        let racy = report.findings.iter().any(|f| f.severity == Severity::Error);
        if (report.degraded != 0 && !racy) || report.damaged.is_some() {
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

fn main() {
    let mut trials = Vec::new();
    for folder in ["ptx-samples/race", "ptx-samples/clean", "tests/cases"] {
        for launch in programs(folder) {
            trials.push(Trial::test(common::name(&launch), move || check(&launch)));
        }
    }
    assert!(trials.len() > 100, "only {} programs", trials.len());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
