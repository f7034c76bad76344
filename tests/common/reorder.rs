//! The same records in another order that a device could have given.

use std::collections::BTreeMap;

use ptxrace::abi::{Unit, decode};

use super::{Launched, Random, records};

/// How many records of others an operation may reach over, where intervals are wider.
const REACH: f64 = 40.0;

/// The same records in another order; with `wide`, which is a seed, also with wider ticket intervals.
pub(crate) fn reordered(launch: &Launched, wide: Option<u64>, random: &mut Random) -> Launched {
    match wide {
        Some(seed) => shuffled(&widened(launch, &mut Random(seed)), random),
        None => shuffled(launch, random),
    }
}

/// The same records, each warp's in their order, warps interleaved anew in runs of random length.
fn shuffled(launch: &Launched, random: &mut Random) -> Launched {
    let mut queues: BTreeMap<(u32, u8), Vec<&[Unit]>> = BTreeMap::new();
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
/// which it took effect and grows towards its warp's records before and after it, at most `REACH` records far.
fn widened(launch: &Launched, random: &mut Random) -> Launched {
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
            let next = warps[index + 1..].iter().take(REACH as usize).position(|(other, _)| other == warp);
            let before = (now - last.get(warp).copied().unwrap_or(now - REACH)).min(REACH);
            let after = next.map_or(REACH, |n| n as f64 + 1.0) - 0.01;
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
