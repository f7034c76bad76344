//! The engine on records made by hand, in every order in which they may reach the host: values and tickets that a device can
//! give and the emulator does not, since it does one thing after another.
//!
//! A case has a text of records, one a line: `BLOCK.WARP INSTRUCTION | a, read, written | before-after`, the last two parts
//! where the instruction logs them and `-` for what it does not. All orders that keep the lines of a warp in order are run.

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use common::{Launched, judge};
use ptxrace::abi::{Encoder, LANES, TAG_SHARED, Unit, bulk_word, mbarrier_word};
use ptxrace::backend::{Launch, LaunchEnd, LaunchInfo, Plan};
use ptxrace::diag::Severity;
use ptxrace::instrument::SiteTable;
use ptxrace::ptx;
use ptxrace::span::SourceFile;

/// Orders of a case at most.
const MOST: usize = 40_000;

/// One line.
struct Step {
    warp: (u32, u8),
    instruction: String,
    payload: [u64; 3],
    tickets: (u64, u64),
}

/// Names for numbers: two words of global memory, the last of all addresses, two of shared memory, an mbarrier, and words that stand for operands.
fn number(text: &str) -> u64 {
    match text {
        "-" => 0,
        "data" => 0x1000,
        "flag" => 0x1040,
        "end" => u64::MAX - 15,
        "tile" => TAG_SHARED,
        "mbar" => TAG_SHARED | 0x400,
        "arrives" => mbarrier_word(1, 0),
        "arrives+64" => mbarrier_word(1, 64),
        "64>mbar" => bulk_word(64, 0x400, 0),
        number => number.parse().unwrap_or_else(|_| panic!("`{number}` is no number")),
    }
}

fn steps(text: &str) -> Vec<Step> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let step = |line: &str| {
        let mut parts = line.split(" | ");
        let (warp, instruction) = parts.next().and_then(|head| head.split_once(' ')).expect("a warp");
        let (block, warp) = warp.split_once('.').expect("block and warp");
        let mut payload = [0; 3];
        for (to, from) in payload.iter_mut().zip(parts.next().unwrap_or("").split(", ")) {
            *to = if from.is_empty() { 0 } else { number(from) };
        }
        let tickets = parts.next().and_then(|tickets| tickets.split_once('-')).unwrap_or(("0", "0"));
        Step {
            warp: (block.parse().expect("a block"), warp.parse().expect("a warp")),
            instruction: format!("{instruction};"),
            payload,
            tickets: (number(tickets.0), number(tickets.1)),
        }
    };
    lines.map(step).collect()
}

/// Calls with all merges of queues of these lengths, each as the queue to take from next.
fn merges(left: &mut [usize], so_far: &mut Vec<usize>, run: &mut impl FnMut(&[usize])) {
    let mut done = true;
    for queue in 0..left.len() {
        if left[queue] > 0 {
            done = false;
            left[queue] -= 1;
            so_far.push(queue);
            merges(left, so_far, run);
            so_far.pop();
            left[queue] += 1;
        }
    }
    if done {
        run(so_far);
    }
}

/// In every order, the errors of the records have these rules, which is none for a clean case.
fn check(text: &str, rules: &[&str]) {
    let steps = steps(text);
    let instructions: BTreeSet<&str> = steps.iter().map(|step| step.instruction.as_str()).collect();
    let body: Vec<&str> = instructions.into_iter().collect();
    let module = format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n.reg .pred %p;\n.reg .b32 %r;\n\
         .reg .b64 %d;\n{}\nret;\n}}\n",
        body.join("\n")
    );
    let source = SourceFile::new(Path::new("records.ptx"), module.as_str()).expect("a source");
    let parsed = ptx::parse(source.text());
    assert!(parsed.errors.is_empty(), "{:?}\n{module}", parsed.errors);
    let sites = Arc::new(SiteTable::new(&parsed.module));

    let mut warps: Vec<(u32, u8)> = steps.iter().map(|step| step.warp).collect();
    warps.sort_unstable();
    warps.dedup();
    let blocks = warps.iter().map(|warp| warp.0 + 1).max().unwrap_or(1);
    let threads = warps.iter().map(|warp| 32 * (u32::from(warp.1) + 1)).max().unwrap_or(32);
    let plan = Plan {
        launches: vec![Launch {
            kernel: "k".into(),
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            cluster: (blocks > 1).then_some([blocks, 1, 1]),
            shared: 2048,
            stream: 0,
            device: 0,
            after: Vec::new(),
            args: Vec::new(),
        }],
        ..Plan::default()
    };
    let encoded = |step: &Step| {
        let mut found =
            sites.sites().iter().filter(|site| source.slice(site.span).starts_with(&*step.instruction));
        let site = found.next().unwrap_or_else(|| panic!("`{}` is no site", step.instruction));
        let payload = site.payload();
        assert_eq!(payload.tickets, step.tickets != (0, 0), "tickets of `{}`", step.instruction);
        let [a, read, written] = step.payload.map(|value| [value; LANES]);
        let (block, warp) = step.warp;
        // A barrier is for all lanes, all else for the first.
        let mask = if step.instruction.starts_with("bar") { u32::MAX } else { 1 };
        let mut units: Vec<Unit> = Vec::new();
        let (site, tickets) = (site.id.0, step.tickets);
        Encoder { site, mask, block, warp, payload, tickets, a: &a, read: &read, written: &written }
            .encode(&mut units);
        units
    };
    let queues: Vec<Vec<Vec<Unit>>> = warps
        .iter()
        .map(|warp| steps.iter().filter(|step| step.warp == *warp).map(encoded).collect())
        .collect();
    let mut left: Vec<usize> = queues.iter().map(Vec::len).collect();
    let mut orders = 0;
    merges(&mut left, &mut Vec::new(), &mut |order| {
        orders += 1;
        let mut next = vec![0; queues.len()];
        let mut units = Vec::new();
        for queue in order {
            units.extend_from_slice(&queues[*queue][next[*queue]]);
            next[*queue] += 1;
        }
        let launched = Launched {
            info: Some(LaunchInfo { index: 0, ..LaunchInfo::default() }),
            units,
            end: LaunchEnd::default(),
        };
        let report = judge(&sites, &plan, &[launched]);
        let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let found: BTreeSet<&str> = errors.map(|finding| finding.rule.id()).collect();
        assert!(report.damaged.is_none() && report.degraded == 0, "{order:?}: {report:#?}");
        assert_eq!(found, rules.iter().copied().collect(), "{order:?}\n{:#?}", report.findings);
    });
    assert!((2..MOST).contains(&orders), "{orders} orders");
}

#[test]
fn a_flag_that_is_read_while_it_is_written() {
    let data = |release: &str, acquire: &str, read: &str, seen: &str| {
        format!(
            "0.0 st.global.u32 [%d], %r | data, -, 7
             0.0 st.{release}.gpu.global.u32 [%d], %r | flag, -, 1 | 1-4
             0.1 ld.{acquire}.gpu.global.u32 %r, [%d] | flag, {seen}, - | {read}
             0.1 ld.global.u32 %r, [%d] | data, 7, -"
        )
    };
    check(&data("release", "acquire", "2-3", "1"), &[]);
    check(&data("release", "acquire", "5-6", "1"), &[]);
    check(&data("relaxed", "acquire", "2-3", "1"), &["R005"]);
    check(&data("release", "relaxed", "5-6", "1"), &["R005"]);
    // What was there before: a store that took effect is not seen at once.
    check(&data("release", "acquire", "5-6", "0"), &["R001"]);
}

#[test]
fn counts_whose_tickets_cross() {
    // By their values 2, 1, 0, while those that began last ended first.
    let count = |last: &str, data: &str| {
        format!(
            "0.2 st.global.u32 [%d], %r | data, -, 7
             0.2 atom.acq_rel.gpu.global.add.u32 %r, [%d], 1 | flag, 0, 1 | 1-6
             0.1 atom.relaxed.gpu.global.add.u32 %r, [%d], 1 | flag, 1, 2 | 2-5
             0.0 atom.{last}.gpu.global.add.u32 %r, [%d], 1 | flag, 2, 3 | 3-4
             0.0 ld.global.u32 %r, [%d] | {data}, 7, -"
        )
    };
    check(&count("acq_rel", "data"), &[]);
    check(&count("release", "data"), &["R005"]);
    check(&count("release", "4160"), &[]);
}

#[test]
fn an_mbarrier_that_is_waited_for_while_others_arrive() {
    let phase = |order: &str, arrivals: [&str; 2], wait: &str| {
        format!(
            "0.0 mbarrier.init.shared.b64 [%r], 2 | mbar, -, 2 | 1-2
             0.0 bar.sync 0 | 0
             0.1 bar.sync 0 | 0
             0.2 bar.sync 0 | 0
             0.0 st.shared.u32 [%r], 7 | tile, -, 7
             0.0 mbarrier.arrive{order}.shared.b64 _, [%r] | mbar, 0, arrives | {}
             0.1 mbarrier.arrive.shared.b64 _, [%r] | mbar, 0, arrives | {}
             0.2 mbarrier.test_wait.parity.shared.b64 %p, [%r], %r | mbar, -, {wait}
             0.2 ld.shared.u32 %r, [%r] | tile, 7, -",
            arrivals[0], arrivals[1]
        )
    };
    check(&phase("", ["3-6", "4-5"], "0 | 3-7"), &[]);
    check(&phase(".relaxed.cta", ["3-6", "4-5"], "0 | 3-7"), &["R001"]);
    // The phase before the first, waited for before anyone has arrived for sure.
    check(&phase("", ["4-7", "5-6"], "1 | 2-3"), &["R001"]);
}

#[test]
fn bytes_that_come_before_they_are_expected() {
    let copy = |parity: &str| {
        format!(
            "0.0 mbarrier.init.shared.b64 [%r], 1 | mbar, -, 1 | 1-2
             0.0 bar.sync 0 | 0
             0.1 bar.sync 0 | 0
             0.2 bar.sync 0 | 0
             0.0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r], [%d], 64, [%r] | tile, data, 64>mbar
             0.1 mbarrier.arrive.expect_tx.shared.b64 _, [%r], 64 | mbar, 0, arrives+64 | 3-5
             0.2 mbarrier.test_wait.parity.shared.b64 %p, [%r], %r | mbar, -, {parity} | 3-4
             0.2 ld.shared.u32 %r, [%r] | tile, 7, -"
        )
    };
    check(&copy("0"), &[]);
    check(&copy("1"), &["R008"]);
}

#[test]
fn an_arrival_that_is_told_last() {
    let halves = |first: &str, second: &str| {
        format!(
            "0.0 st.shared.u32 [%r], 7 | tile, -, 7
             0.0 bar.{first} 1, 64 | 16385
             0.1 bar.{second} 1, 64 | 16385
             0.1 ld.shared.u32 %r, [%r] | tile, 7, -"
        )
    };
    check(&halves("arrive", "sync"), &[]);
    check(&halves("sync", "arrive"), &["R001"]);
}

#[test]
fn copies_of_another_warp() {
    let copy = |wait: &str| {
        format!(
            "0.0 cp.async.ca.shared.global [%r], [%d], 4 | tile, data, -
             {wait}
             0.0 bar.sync 0 | 0
             0.1 bar.sync 0 | 0
             0.1 ld.shared.u32 %r, [%r] | tile, 7, -"
        )
    };
    check(&copy("0.0 cp.async.wait_all"), &[]);
    check(&copy(""), &["R008"]);
}

#[test]
fn blocks_of_a_cluster() {
    let peer = |order: &str| {
        format!(
            "0.0 st.global.u32 [%d], 7 | data, -, 7
             0.0 barrier.cluster.arrive.{order}.aligned
             0.0 barrier.cluster.wait.acquire.aligned
             1.0 barrier.cluster.arrive.release.aligned
             1.0 barrier.cluster.wait.acquire.aligned
             1.0 ld.global.u32 %r, [%d] | data, 7, -"
        )
    };
    check(&peer("release"), &[]);
    check(&peer("relaxed"), &["R003"]);
}

#[test]
fn the_last_of_all_addresses() {
    let both = |second: &str| {
        format!(
            "0.0 st.global.v2.u32 [%d], {{%r, %r}} | end, -, 1
             0.1 {second} | end, -, 2"
        )
    };
    check(&both("st.global.v2.u32 [%d], {%r, %r}"), &["R001"]);
    check(&both("ld.global.v2.u32 {%r, %r}, [%d]"), &["R001"]);
    check(&both("ld.global.u32 %r, [%d]"), &["R001"]);
}
