//! Triage changes no report: what the engine says behind it is what it says alone, of every program of the repository, of random
//! litmus programs and of random records. And it does find launches clean, those of `benches/kernels` among them.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::reorder::reordered;
use common::{Capture, Launched, Random, Recorded, files, name, programs, record, records};
use litmus::compile::{Placing, Rounds, compile};
use litmus::explore::Lottery;
use litmus::generate;
use ptxrace::abi::{Encoder, LANES, Lanes, TAG_SHARED, Unit, decode};
use ptxrace::backend::emu::{Emulator, Scripted};
use ptxrace::backend::{Launch, LaunchEnd, LaunchInfo, Plan, Program, Ring, RunOptions, Sink};
use ptxrace::engine::{Engine, HostAccess, OpenTriage, Ordered, Report, Streams, Triage};
use ptxrace::finding::{AccessClass, HOST_SITES};
use ptxrace::instrument::{SiteId, SiteTable};
use ptxrace::ptx;
use ptxrace::span::SourceFile;

/// Rings that records are spread over.
const RINGS: u32 = 4;

/// How records reach the triage.
#[derive(Clone, Copy)]
enum Way {
    /// In pieces of so many records.
    Pieces(usize),
    /// By rings, in rounds of so many records.
    Rings(usize),
}

/// The records of a round in the order in which rings deliver them.
fn by_rings(round: &[&[Unit]]) -> BTreeMap<u32, Vec<Unit>> {
    let mut rings: BTreeMap<u32, Vec<Unit>> = BTreeMap::new();
    for units in round {
        let block = decode(units).expect("a record").expect("a record").block();
        rings.entry(block % RINGS).or_default().extend_from_slice(units);
    }
    rings
}

/// Gives launches to a sink.
fn deliver(sink: &mut dyn Sink, launches: &[Launched], way: Way) {
    for launch in launches {
        sink.begin(launch.info.as_ref().expect("a launch has begun"));
        let records = records(&launch.units);
        match way {
            Way::Pieces(size) => records.chunks(size).for_each(|piece| sink.records(&piece.concat())),
            Way::Rings(size) => {
                for round in records.chunks(size) {
                    let rings = by_rings(round);
                    let rings: Vec<_> =
                        rings.iter().map(|(number, units)| Ring { number: *number, units }).collect();
                    sink.rings(&rings);
                }
            }
        }
        sink.end(&launch.end);
    }
}

/// Records in a form that can be read.
fn listed(sites: &SiteTable, launches: &[Launched]) -> String {
    let mut out = String::new();
    for launch in launches {
        out.push_str("launch\n");
        for units in records(&launch.units) {
            let record = decode(units).expect("a record").expect("a record");
            let site = &sites.sites()[record.site() as usize];
            let first = |value: Option<u64>| value.map_or(String::new(), |value| format!("{value:x}"));
            out.push_str(&format!(
                "{}.{} {} {:08x} {:x?} read {} written {} {:?}\n",
                record.block(),
                record.warp(),
                site.opcode,
                record.mask(),
                (0..record.lane_count()).map(|rank| record.a(rank)).collect::<Vec<_>>(),
                first(record.read(0)),
                first(record.written(0)),
                record.tickets(),
            ));
        }
    }
    out
}

fn text(report: &Report) -> String {
    format!("{report:#?}")
}

/// Compares; tells how many launches were clean.
fn compare(sites: &Arc<SiteTable>, plan: &Plan, launches: &[Launched], way: Way) -> Result<u32, String> {
    let mut engine = ptxrace::engine::Engine::new(Arc::clone(sites), plan);
    deliver(&mut engine, launches, way);
    let mut triage = Triage::new(Arc::clone(sites), plan);
    deliver(&mut triage, launches, way);
    let clean = triage.clean();
    let (alone, behind) = (text(&engine.finish()), text(&triage.finish()));
    if alone == behind { Ok(clean) } else { Err(format!("alone\n{alone}\nbehind triage\n{behind}")) }
}

/// Compares in several ways; the launches that were clean as they came.
fn compare_all(sites: &Arc<SiteTable>, plan: &Plan, launches: &[Launched], seed: u64) -> Result<u32, String> {
    let clean = compare(sites, plan, launches, Way::Pieces(1000))?;
    compare(sites, plan, launches, Way::Pieces(7))?;
    compare(sites, plan, launches, Way::Rings(50))?;
    // Wider tickets begin anew in each launch, which a device's do not, and the engine may then find no order in the second one.
    for wide in [None, Some(seed)].into_iter().take(3 - launches.len().clamp(1, 2)) {
        let mut random = Random(seed);
        let again: Vec<_> = launches.iter().map(|launch| reordered(launch, wide, &mut random)).collect();
        let compared = compare(sites, plan, &again, Way::Pieces(100));
        compared.map_err(|error| format!("shuffled, {wide:?}: {error}\n{}", listed(sites, &again)))?;
    }
    Ok(clean)
}

/// What both kinds of engine do that learn of launches as they come.
trait Open: Sink {
    fn add_module(&mut self, sites: Arc<SiteTable>);
    fn add_launch(&mut self, launch: &Launch, order: Ordered);
    fn host_operation(&mut self, site: SiteId, accesses: &[HostAccess], order: Ordered);
    fn said(&mut self) -> String;
}

macro_rules! open {
    ($($name:ident)*) => {
        $(impl Open for $name {
            fn add_module(&mut self, sites: Arc<SiteTable>) {
                $name::add_module(self, sites);
            }

            fn add_launch(&mut self, launch: &Launch, order: Ordered) {
                $name::add_launch(self, launch, order);
            }

            fn host_operation(&mut self, site: SiteId, accesses: &[HostAccess], order: Ordered) {
                $name::host_operation(self, site, accesses, order);
            }

            fn said(&mut self) -> String {
                format!("{:#?}\n{:#?}\n{:?}", self.news(true), self.shared_variables(), self.shortcomings())
            }
        })*
    };
}
open! { Engine OpenTriage }

/// Gives launches, each several times, to two streams that are ordered now and then, with copies between them. What is said
/// after each.
fn as_they_come(engine: &mut dyn Open, sites: &Arc<SiteTable>, run: &Recorded, seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    let mut streams = Streams::default();
    let both = [streams.create(false), streams.create(false)];
    engine.add_module(Arc::clone(sites));
    let mut said = Vec::new();
    for _ in 0..3 {
        for (launch, launched) in run.plan.launches.iter().zip(&run.capture.launches) {
            let stream = both[random.below(4).min(1)];
            let order = streams.enqueue(stream);
            let info = LaunchInfo { index: order.index, ..LaunchInfo::default() };
            engine.add_launch(launch, order);
            engine.begin(&info);
            records(&launched.units).chunks(100).for_each(|piece| engine.records(&piece.concat()));
            engine.end(&launched.end);
            said.push(engine.said());
            match random.below(5) {
                0 => streams.synchronize_all(),
                1 => streams.synchronize(both[0]),
                2 => {
                    let moment = streams.record(both[0]);
                    streams.wait(both[1], &moment);
                }
                3 => {
                    let Some(region) = launched.info.as_ref().and_then(|info| info.regions.first()) else {
                        continue;
                    };
                    let class = if random.below(2) == 0 { AccessClass::Read } else { AccessClass::Write };
                    let access = HostAccess { class, address: region.base, bytes: region.bytes };
                    let order = streams.enqueue(both[random.below(2)]);
                    engine.host_operation(HOST_SITES, &[access], order);
                    said.push(engine.said());
                }
                _ => {}
            }
        }
    }
    said
}

#[test]
fn launches_that_are_not_known_beforehand() {
    let (mut clean, mut findings) = (0, 0);
    for folder in ["ptx-samples/race", "ptx-samples/clean", "tests/cases"] {
        for (seed, launch) in (1..).zip(programs(folder)) {
            let run = record(&launch, &mut Emulator::new(), &RunOptions::default())
                .unwrap_or_else(|error| panic!("{}: {error}", name(&launch)));
            if run.capture.launches.len() != run.plan.launches.len() {
                continue;
            }
            let alone = as_they_come(&mut Engine::open(), &run.sites, &run, seed);
            let mut triage = OpenTriage::new();
            let behind = as_they_come(&mut triage, &run.sites, &run, seed);
            assert_eq!(alone, behind, "{}", name(&launch));
            clean += triage.clean();
            findings += usize::from(alone.iter().any(|said| said.contains("R006")));
        }
    }
    assert!(
        clean > 50 && findings > 20,
        "{clean} launches clean, {findings} programs with races between launches"
    );
}

#[test]
fn programs_of_the_repository() {
    let (mut clean, mut all) = (0, 0);
    for folder in ["ptx-samples/race", "ptx-samples/clean", "tests/cases"] {
        for launch in programs(folder) {
            // The second one logs in bundles.
            for (seed, mut emulator) in [(0, Emulator::new()), (5, Emulator::instrumented())] {
                let options = RunOptions { seed, ..RunOptions::default() };
                let run = record(&launch, &mut emulator, &options)
                    .unwrap_or_else(|error| panic!("{}: {error}", name(&launch)));
                let compared = compare_all(&run.sites, &run.plan, &run.capture.launches, seed);
                clean += compared.unwrap_or_else(|error| panic!("{}, seed {seed}: {error}", name(&launch)));
                all += 1;
            }
        }
    }
    assert!(all > 200 && clean > 20, "{clean} launches clean of {all} runs");
}

#[test]
fn random_litmus_programs() {
    for seed in 0..300 {
        let program = generate::program(seed, generate::Size::default());
        let placing = if seed % 2 == 0 { Placing::Warps } else { Placing::Lanes };
        let Ok(compiled) = compile(&program, placing, Rounds(1)) else { continue };
        let source = SourceFile::new(Path::new("litmus.ptx"), compiled.text.as_str()).expect("a source");
        let parsed = ptx::parse(source.text());
        let sites = Arc::new(SiteTable::new(&parsed.module));
        let loaded = Program { source: &source, module: &parsed.module, sites: &sites };
        let scripted = Scripted::new(loaded, &compiled.plan).expect("a program");
        let mut capture = Capture::default();
        let mut schedule = Lottery(litmus::random::Random(seed));
        scripted.run(&RunOptions::default(), &mut schedule, &mut capture).expect("it runs");
        let compared = compare_all(&sites, &compiled.plan, &capture.launches, seed);
        compared.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{program}"));
    }
}

/// Nothing else tells when triage has become too timid.
#[test]
fn kernels_of_the_benches_are_clean() {
    let kernels = files("benches/kernels", "ptx");
    assert_eq!(kernels.len(), 7);
    for kernel in kernels {
        // The second one logs in bundles; the runtime's code takes it too long for millions of records.
        let large = kernel.ends_with("matmul.ptx");
        for mut emulator in
            [Emulator::new(), Emulator::instrumented()].into_iter().take(if large { 1 } else { 2 })
        {
            let run = record(&kernel, &mut emulator, &RunOptions::default()).expect("it runs");
            let launches = &run.capture.launches;
            for way in [Way::Pieces(1000), Way::Rings(20_000)] {
                let mut triage = Triage::new(Arc::clone(&run.sites), &run.plan);
                deliver(&mut triage, launches, way);
                assert_eq!(triage.clean() as usize, launches.len(), "{}", kernel.display());
            }
        }
    }
}

/// What random kernels are made of.
const INSTRUCTIONS: [&str; 16] = [
    "ld.global.u32 %r, [%d]",
    "st.global.u32 [%d], %r",
    "ld.global.nc.u32 %r, [%d]",
    "ld.shared.u32 %r, [%d]",
    "st.shared.u32 [%d], %r",
    "ld.shared.u8 %r, [%d]",
    "st.shared.u8 [%d], %r",
    "ld.shared.v2.u32 {%r, %s}, [%d]",
    "st.shared.v2.u32 [%d], {%r, %s}",
    "red.shared.add.u32 [%d], %r",
    "atom.global.add.u32 %r, [%d], %s",
    "red.relaxed.cta.shared.add.u32 [%d], %r",
    "st.volatile.shared.u32 [%d], %r",
    "bar.sync 0",
    "bar.warp.sync -1",
    "ret",
];

struct Bench {
    source: SourceFile,
}

impl Bench {
    fn new() -> Self {
        let module = format!(
            ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n.reg .b32 %r, %s;\n\
             .reg .b64 %d;\n{};\n}}\n",
            INSTRUCTIONS.join(";\n")
        );
        Self { source: SourceFile::new(Path::new("random.ptx"), module).expect("a source") }
    }
}

/// The records of a random kernel, in an order that its barriers allow.
struct Maker<'m> {
    random: Random,
    sites: &'m SiteTable,
    memory: BTreeMap<(u64, u32), u64>,
    ticket: u64,
    /// Of 100 accesses, how many go where they should not.
    wild: usize,
    kinds: Vec<usize>,
    units: Vec<Unit>,
    records: u64,
}

impl Maker<'_> {
    fn write(&mut self, kind: usize, who: (u32, u8), mask: u32, a: Lanes) {
        let site = &self.sites.sites()[kind];
        let access = site.access().copied();
        let payload = site.payload();
        let (mut read, mut written) = ([0; LANES], [0; LANES]);
        let before = self.ticket;
        if payload.tickets {
            self.ticket += 2;
        }
        if let Some(access) = access {
            let same = self.random.below(4) == 0;
            for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
                let place = (a[lane], if a[lane] >= TAG_SHARED { who.0 } else { 0 });
                read[lane] = self.memory.get(&place).copied().unwrap_or(0);
                if access.writes() {
                    let value = if same { 7 } else { self.random.below(1000) as u64 };
                    written[lane] = if access.is_rmw() { read[lane] + 1 } else { value };
                    self.memory.insert(place, written[lane]);
                }
            }
        }
        let (block, warp) = who;
        let tickets = (before, before + 1);
        Encoder {
            site: site.id.0,
            mask,
            block,
            warp,
            payload,
            tickets,
            a: &a,
            read: &read,
            written: &written,
        }
        .encode(&mut self.units);
        self.records += 1;
    }

    /// An access. Mostly warps keep to words of their own.
    fn access(&mut self, who: (u32, u8), live: u32, warps: usize) {
        let kind = self.kinds[self.random.below(self.kinds.len())];
        let bytes = self.sites.sites()[kind].access().expect("an access").bytes() as usize;
        let global = kind < 3 || kind == 10;
        let wild = self.random.below(100) < self.wild;
        let (own, all) = (32 * (usize::from(who.1) + warps * who.0 as usize), 32 * warps * 3);
        let odd = [0, 0, 0, 5][self.random.below(4)];
        let base = if wild { self.random.below(all) } else { own + odd };
        // Reads go to a part that nobody writes, mostly.
        let reads = matches!(kind, 0 | 2 | 3 | 5 | 7) && self.random.below(3) > 0 && !wild;
        let base = base * bytes + if reads { 8192 } else { 0 };
        let shape = self.random.below(6);
        let mask = match self.random.below(4) {
            0 => live & (1 << self.random.below(32)),
            1 => live & self.random.below(u32::MAX as usize) as u32,
            _ => live,
        };
        let scattered: [usize; LANES] = std::array::from_fn(|_| self.random.below(32));
        let tag = if global { 1 << 20 } else { TAG_SHARED };
        let a = std::array::from_fn(|lane| {
            let at = match shape {
                0 if reads || wild => 0,
                1 if reads || wild => scattered[lane],
                2 => 31 - lane,
                3 => lane / 16 * 64 + lane % 16,
                _ => lane,
            };
            tag + (base + at * bytes) as u64
        });
        if mask != 0 {
            self.write(kind, who, mask, a);
        }
    }

    fn kernel(&mut self, blocks: u32, warps: usize) {
        let intervals = 1 + self.random.below(3);
        let exits_early = self.random.below(6) == 0;
        let mut live = vec![vec![u32::MAX; warps]; blocks as usize];
        for interval in 0..intervals {
            for block in 0..blocks {
                for _ in 0..self.random.below(6 * warps) {
                    let warp = self.random.below(warps);
                    let (who, lanes) = ((block, warp as u8), live[block as usize][warp]);
                    match self.random.below(8) {
                        0 if lanes != 0 => self.write(14, who, lanes, [u64::from(u32::MAX); LANES]),
                        _ => self.access(who, lanes, warps),
                    }
                }
                for (warp, left) in live[block as usize].iter_mut().enumerate() {
                    let lanes = *left;
                    let who = (block, warp as u8);
                    if interval + 1 == intervals {
                        self.write(15, who, lanes, [0; LANES]);
                        continue;
                    }
                    let gone = if exits_early { lanes & 0xff << self.random.below(32) } else { 0 };
                    self.write(15, who, gone, [0; LANES]);
                    *left &= !gone;
                    self.write(13, who, lanes & !gone, [0; LANES]);
                }
            }
        }
    }
}

#[test]
fn random_records() {
    let bench = Bench::new();
    let parsed = ptx::parse(bench.source.text());
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    let sites = Arc::new(SiteTable::new(&parsed.module));
    assert_eq!(sites.sites().len(), INSTRUCTIONS.len());
    let (mut clean, mut findings) = (0, 0);
    for seed in 0..3000 {
        let mut random = Random(seed);
        let (blocks, warps) = (1 + random.below(3) as u32, 1 + random.below(3));
        let mut kinds: Vec<usize> = (0..13).filter(|_| random.below(2) == 0).collect();
        if random.below(3) > 0 {
            kinds.retain(|kind| ![11, 12].contains(kind));
        }
        kinds.push(3);
        let wild = [0, 0, 2, 20][random.below(4)];
        let launches = 1 + random.below(2);
        let mut maker = Maker {
            random,
            sites: &sites,
            memory: BTreeMap::new(),
            ticket: 1,
            wild,
            kinds,
            units: Vec::new(),
            records: 0,
        };
        let streams = [0, maker.random.below(2) as u32];
        let launch = |stream| Launch {
            kernel: "k".into(),
            grid: [blocks, 1, 1],
            block: [32 * warps as u32, 1, 1],
            cluster: None,
            shared: 32768,
            stream,
            after: Vec::new(),
            args: Vec::new(),
        };
        let plan =
            Plan { launches: streams[..launches].iter().copied().map(launch).collect(), ..Plan::default() };
        let mut all = Vec::new();
        for index in 0..launches as u32 {
            (maker.units, maker.records) = (Vec::new(), 0);
            maker.kernel(blocks, warps);
            let info = Some(LaunchInfo { index, ..LaunchInfo::default() });
            let end = LaunchEnd { records: maker.records, ..LaunchEnd::default() };
            all.push(Launched { info, units: std::mem::take(&mut maker.units), end });
        }
        let compared = compare_all(&sites, &plan, &all, seed);
        clean += compared.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        findings += u32::from(!common::judge(&sites, &plan, &all).findings.is_empty());
    }
    assert!(clean > 300 && findings > 300, "{clean} launches clean, {findings} runs with findings");
}
