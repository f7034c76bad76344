//! The replay order: records of different warps may reach the host in any order, and the findings stay the same.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{Launched, Random, judge, programs, record, records};
use libtest_mimic::{Arguments, Failed, Trial};
use ptxrace::abi::decode;
use ptxrace::backend::RunOptions;
use ptxrace::backend::emu::Emulator;
use ptxrace::diag::Severity;
use ptxrace::engine::Report;

/// The same records, each warp's in their order, warps interleaved anew in runs of random length.
fn shuffled(launch: &Launched, random: &mut Random) -> Launched {
    let mut queues: BTreeMap<(u32, u8), Vec<&[ptxrace::abi::Unit]>> = BTreeMap::new();
    for units in records(&launch.units) {
        let record = decode(units).expect("a record").expect("a record");
        queues.entry((record.block(), record.warp())).or_default().push(units);
    }
    let mut queues: Vec<_> = queues.into_values().map(|queue| queue.into_iter()).collect();
    let mut units = Vec::new();
    while !queues.is_empty() {
        let at = random.below(queues.len());
        for _ in 0..=random.below(40) {
            match queues[at].next() {
                Some(record) => units.extend_from_slice(record),
                None => {
                    queues.swap_remove(at);
                    break;
                }
            }
        }
    }
    Launched { info: launch.info.clone(), units, end: launch.end.clone() }
}

/// The same records with wider ticket intervals, as operations have that really run side by side: each keeps the moment at
/// which it took effect and grows towards its warp's records before and after it, at most `reach` records far.
fn widened(launch: &Launched, reach: f64, random: &mut Random) -> Launched {
    let all: Vec<_> = records(&launch.units);
    let decoded = all.iter().map(|units| decode(units).expect("a record").expect("a record"));
    let warps: Vec<((u32, u8), bool)> =
        decoded.map(|r| ((r.block(), r.warp()), r.tickets().is_some())).collect();
    let mut last: BTreeMap<(u32, u8), f64> = BTreeMap::new();
    let mut ends = Vec::new();
    for (index, (warp, ticketed)) in warps.iter().enumerate() {
        let now = index as f64;
        let mut until = now;
        if *ticketed {
            let next = warps[index + 1..].iter().take(reach as usize).position(|(other, _)| other == warp);
            let before = (now - last.get(warp).copied().unwrap_or(now - reach)).min(reach);
            let after = next.map_or(reach, |n| n as f64 + 1.0) - 0.01;
            let mut part = || random.below(1000) as f64 / 1001.0;
            ends.extend([(now - part() * before, index, false), (now + part() * after, index, true)]);
            until = ends[ends.len() - 1].0;
        }
        last.insert(*warp, until);
    }
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut starts = vec![0];
    all.iter().for_each(|units| starts.push(starts[starts.len() - 1] + units.len()));
    let mut units = launch.units.clone();
    for (ticket, (_, index, end)) in (1..).zip(ends) {
        let unit = &mut units[starts[index] + 1];
        *(if end { &mut unit.hi } else { &mut unit.lo }) = ticket;
    }
    Launched { info: launch.info.clone(), units, end: launch.end.clone() }
}

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
