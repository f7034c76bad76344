//! Any bytes of a ring give records or an error, and the analysis of any records ends: of raw units, and of well-formed
//! records with any contents.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use ptxrace::abi::{Encoder, LANES, TAG_SHARED, Unit};
use ptxrace::backend::plan::{Launch, Plan};
use ptxrace::backend::{LaunchEnd, LaunchInfo, Sink};
use ptxrace::engine::Engine;
use ptxrace::instrument::SiteTable;
use ptxrace::ptx::parse;

/// A site of every kind.
const MODULE: &str = include_str!("../sites.ptx");

/// So many records of an input have values that are more than a byte.
const LARGE: usize = 16;

/// Units as they come.
fn raw(data: &[u8]) -> Vec<Unit> {
    let word = |chunk: &[u8], at: usize| u64::from_le_bytes(chunk[at..at + 8].try_into().expect("8 bytes"));
    data.chunks_exact(16).map(|chunk| Unit { lo: word(chunk, 0), hi: word(chunk, 8) }).collect()
}

/// Records of the table's sites, 8 bytes each.
fn formed(data: &[u8], sites: &SiteTable) -> Vec<Unit> {
    let mut units = Vec::new();
    let (mut ticket, mut large) = (1, 0);
    for chunk in data.chunks_exact(8) {
        let site = u32::from(chunk[0]) % sites.sites().len() as u32;
        let payload = sites.sites()[site as usize].payload();
        let mask = [u32::MAX, 1, 0x8000_0001, u32::from(chunk[1])][usize::from(chunk[1]) % 4];
        let space = if chunk[3] & 1 != 0 { TAG_SHARED } else { 0x1000 };
        let stride = u64::from(chunk[4] % 9);
        let a = std::array::from_fn(|lane| space + u64::from(chunk[3] / 2) + stride * lane as u64);
        // Small values, and the largest that there are: of few records and few lanes, since each may be the size of a copy.
        let is_large = |byte: u8| byte >= 0xf8 && large < LARGE && mask.count_ones() < 3;
        let value = |byte: u8| if is_large(byte) { u64::MAX >> (8 * (byte & 7)) } else { u64::from(byte) };
        let (read, written) = ([value(chunk[5]); LANES], [value(chunk[6]); LANES]);
        large += usize::from(is_large(chunk[5]) || is_large(chunk[6]));
        let until = ticket + 1 + u64::from(chunk[7] % 3);
        let (block, warp) = (u32::from(chunk[2] & 1), chunk[2] >> 1 & 1);
        let tickets = (ticket, until);
        Encoder { site, mask, block, warp, payload, tickets, a: &a, read: &read, written: &written }
            .encode(&mut units);
        ticket = until + 1;
    }
    units
}

fuzz_target!(|data: &[u8]| {
    let Some((first, data)) = data.split_first() else { return };
    let sites = Arc::new(SiteTable::new(&parse(MODULE).module));
    let units = if first & 1 == 0 { raw(data) } else { formed(data, &sites) };
    let launch = Launch {
        kernel: "k".into(),
        grid: [2, 1, 1],
        block: [64, 1, 1],
        cluster: Some([2, 1, 1]),
        shared: 0,
        stream: 0,
        device: 0,
        after: Vec::new(),
        args: Vec::new(),
    };
    let plan = Plan { launches: vec![launch], ..Plan::default() };
    let mut engine = Engine::new(sites, &plan);
    engine.begin(&LaunchInfo { index: 0, ..LaunchInfo::default() });
    for batch in units.chunks(64) {
        engine.records(batch);
    }
    engine.end(&LaunchEnd::default());
    let _ = engine.finish();
});
