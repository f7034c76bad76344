//! The device runtime, executed by the emulator as if it were any program, against what the emulator logs itself.
//!
//! An extra kernel fills the control block; the rings are buffers of the plan. Every instruction of the runtime is a
//! point where the schedule may change, so its lanes come together and part in many ways.

use std::collections::BTreeMap;

use ptxrace::abi::control::{COUNTER_STRIDE, Control, is_written, ring_of};
use ptxrace::abi::{LAP, Record, Unit, decode};
use ptxrace::backend::emu::Emulator;
use ptxrace::backend::image::{ArrayShape, Channel, Sampling, Texel};
use ptxrace::backend::plan::{Arg, Buffer, ElementType, Launch, Plan, PlanArray, PlanImage, PlanStorage};
use ptxrace::backend::{Backend, LaunchEnd, LaunchInfo, Outcome, Owner, Program, RunOptions, Sink};
use ptxrace::instrument::{CallMode, SiteId, SiteTable, bundle, instrument};
use ptxrace::ptx::parse;
use ptxrace::span::SourceFile;
use ptxrace::tensor::{DataType, TensorMap};

const RINGS: u32 = 4;
const RING_SHIFT: u32 = 1;

/// What one lane executed: site, `a`, value read, value written.
type Step = (u32, u64, Option<u64>, Option<u64>);
/// By block, warp, lane.
type Threads = BTreeMap<(u32, u8, usize), Vec<Step>>;

#[derive(Default)]
struct Collect(Vec<Unit>);

impl Sink for Collect {
    fn begin(&mut self, _: &LaunchInfo) {}
    fn records(&mut self, units: &[Unit]) {
        self.0.extend_from_slice(units);
    }
    fn end(&mut self, _: &LaunchEnd) {}
}

fn run(text: &str, sites: Option<&SiteTable>, plan: &Plan, seed: u64) -> (Outcome, Vec<Unit>) {
    let source = SourceFile::new("test.ptx", text).unwrap();
    let parsed = parse(source.text());
    assert_eq!(parsed.errors, [], "{text}");
    let none = SiteTable::default();
    let program = Program { source: &source, module: &parsed.module, sites: sites.unwrap_or(&none) };
    let mut sink = Collect::default();
    let options = RunOptions { seed, ..RunOptions::default() };
    let outcome = Emulator::new().run(program, plan, &options, &mut sink).unwrap();
    assert!(outcome.stop.is_none(), "{:?}", outcome.stop);
    (outcome, sink.0)
}

fn add(threads: &mut Threads, record: Record<'_>) {
    for (rank, lane) in record.lanes().enumerate() {
        let a = if record.payload().a { record.a(rank) } else { 0 };
        let step = (record.site(), a, record.read(rank), record.written(rank));
        threads.entry((record.block(), record.warp(), lane)).or_default().push(step);
    }
}

/// Adds all of these records.
fn add_all(threads: &mut Threads, units: &[Unit]) {
    let mut at = 0;
    while let Some(record) = decode(&units[at..]).unwrap() {
        at += record.units().len();
        add(threads, record);
        let (before, after) = record.tickets().unwrap_or((0, 1));
        assert!(before < after);
    }
}

fn threads(units: &[Unit]) -> Threads {
    let mut threads = Threads::new();
    add_all(&mut threads, units);
    threads
}

fn buffer(name: &str, bytes: usize) -> Buffer {
    Buffer {
        name: name.into(),
        ty: ElementType::U64,
        contents: vec![0; bytes],
        unwritten: false,
        owner: Owner::Device,
    }
}

fn launch(kernel: &str, grid: [u32; 3], block: [u32; 3], args: Vec<Arg>) -> Launch {
    let (kernel, after) = (kernel.into(), Vec::new());
    Launch { kernel, grid, block, cluster: None, shared: 256, device: 0, stream: 0, after, args }
}

/// Fills the control block and points the module at it.
const SETUP: &str = "
.visible .entry __ptxrace_setup(.param .u64 control, .param .u64 data, .param .u64 heads, .param .u64 tails,
    .param .u64 capacity, .param .u64 mask, .param .u64 shift)
{
	.reg .b64 %c, %v;
	ld.param.u64 %c, [control];
	ld.param.u64 %v, [data];
	st.global.u64 [%c], %v;
	ld.param.u64 %v, [heads];
	st.global.u64 [%c+8], %v;
	ld.param.u64 %v, [tails];
	st.global.u64 [%c+16], %v;
	ld.param.u64 %v, [capacity];
	st.global.u64 [%c+24], %v;
	ld.param.u64 %v, [mask];
	st.global.u64 [%c+32], %v;
	ld.param.u64 %v, [shift];
	st.global.u64 [%c+40], %v;
	st.global.u64 [%c+128], 1;
	st.global.u64 [__ptxrace_control], %c;
	ret;
}
";

struct Instrumented {
    threads: Threads,
    records: u64,
    dropped: u64,
    contents: Vec<Vec<u8>>,
}

/// Each site for itself.
fn single(text: &str) -> SiteTable {
    SiteTable::new(&parse(text).module).without_bundles()
}

fn run_instrumented(
    text: &str,
    sites: &SiteTable,
    plan: &Plan,
    seed: u64,
    capacity: u64,
    drop: bool,
) -> Instrumented {
    let parsed = parse(text);
    let out = instrument(text, &parsed.module, sites, CallMode::Local).unwrap();
    let text = out.text + SETUP;
    let mut plan = plan.clone();
    let first = plan.buffers.len();
    let counters = (u64::from(RINGS) * COUNTER_STRIDE) as usize;
    plan.buffers.push(buffer("control", size_of::<Control>()));
    plan.buffers.push(buffer("data", (u64::from(RINGS) * capacity) as usize * 16));
    plan.buffers.push(buffer("heads", counters));
    plan.buffers.push(buffer("tails", counters));
    let word = |value: u64| Arg::Value(value.to_le_bytes().to_vec());
    let mut args: Vec<_> = (first..first + 4).map(Arg::Buffer).collect();
    args.extend([word(capacity), word(u64::from(RINGS - 1) | u64::from(drop) << 32)]);
    args.push(word(RING_SHIFT.into()));
    plan.launches.insert(0, launch("__ptxrace_setup", [1; 3], [1; 3], args));
    let (outcome, none) = run(&text, None, &plan, seed);
    assert_eq!(none, []);
    let word = |buffer: usize, at: usize| {
        u64::from_le_bytes(outcome.buffers[first + buffer][at * 8..at * 8 + 8].try_into().unwrap())
    };
    let (mut threads, mut records) = (Threads::new(), 0);
    for ring in 0..RINGS as usize {
        let head = word(2, ring * COUNTER_STRIDE as usize / 8);
        assert!(head <= capacity);
        let mut units: Vec<_> = (0..head)
            .map(|position| {
                let at = (ring as u64 * capacity + position) as usize * 2;
                Unit { lo: word(1, at), hi: word(1, at + 1) }
            })
            .collect();
        for (position, unit) in (0..).zip(&mut units) {
            assert!(is_written(*unit, position, capacity), "ring {ring} unit {position}");
            unit.hi &= !LAP;
        }
        let mut at = 0;
        while let Some(record) = decode(&units[at..]).unwrap() {
            assert_eq!(ring_of(record.block(), RING_SHIFT, RINGS - 1), ring as u32);
            at += record.units().len();
            records += 1;
            if !record.is_bundle() {
                add(&mut threads, record);
                continue;
            }
            let leader = sites.get(SiteId(record.site())).unwrap();
            let mut members = Vec::new();
            bundle::expand(&record, leader.bundling.members(), &mut members);
            add_all(&mut threads, &members);
        }
    }
    let dropped = word(0, 32);
    Instrumented { threads, records, dropped, contents: outcome.buffers[..first].to_vec() }
}

/// A module whose threads do the same under every schedule.
const EVERYTHING: &str = include_str!("runtime/everything.ptx");

fn everything() -> Plan {
    Plan {
        buffers: vec![buffer("out", 4096), buffer("word", 64)],
        launches: vec![launch("k", [2, 1, 2], [24, 2, 1], vec![Arg::Buffer(0), Arg::Buffer(1)])],
        ..Plan::default()
    }
}

#[test]
fn the_runtime_logs_what_the_emulator_logs() {
    agree(EVERYTHING, &everything());
}

/// Textures and a surface, by handle.
const IMAGES: &str = include_str!("runtime/images.ptx");

#[test]
fn handles_and_coordinates_are_logged() {
    let texel = Texel { channel: Channel::U32, channels: 1 };
    let image = |storage, surface| PlanImage { surface, storage, texel, sampling: Sampling::default() };
    let mut plan = Plan {
        buffers: vec![
            buffer("out", 1024),
            buffer("line", 1024),
            buffer("volume", 256),
            buffer("canvas", 256),
        ],
        images: vec![
            image(PlanStorage::Buffer(1), false),
            image(PlanStorage::Array(0), false),
            image(PlanStorage::Array(1), true),
        ],
        launches: vec![launch(
            "k",
            [2, 1, 1],
            [48, 1, 1],
            vec![Arg::Buffer(0), Arg::Image(0), Arg::Image(1), Arg::Image(2)],
        )],
        ..Plan::default()
    };
    for (name, extent, contents) in [("volume", [8, 4, 2], 2), ("canvas", [32, 2, 0], 3)] {
        let shape = ArrayShape { base: plan.next_array(), extent, layered: false, texel };
        plan.arrays.push(PlanArray { name: name.into(), shape, contents });
    }
    plan.buffers[1].contents = (0..=255u32).flat_map(u32::to_le_bytes).collect();
    agree(IMAGES, &plan);
}

/// What the runtime logs and what the emulator logs itself is the same, and so are the results.
fn agree(text: &str, plan: &Plan) {
    let parsed = parse(text);
    assert_eq!(parsed.errors, []);
    let sites = SiteTable::new(&parsed.module);
    assert_eq!(sites.unlogged().len(), 0);
    for seed in 0..8 {
        let (native, units) = run(text, Some(&sites), plan, seed);
        let expected = threads(&units);
        let got = run_instrumented(text, &single(text), plan, seed, 1 << 14, false);
        assert_eq!(got.dropped, 0);
        assert_eq!(expected.len(), got.threads.len());
        for (thread, steps) in &expected {
            let other = &got.threads[thread];
            assert_eq!(steps.len(), other.len(), "{thread:?}");
            for (step, other) in steps.iter().zip(other) {
                let opcode = &sites.sites()[step.0 as usize].opcode;
                assert_eq!(step, other, "{thread:?} {opcode} seed {seed}");
            }
        }
        assert_eq!(native.buffers[0], got.contents[0]);
    }
}

/// Copies of boxes by maps in parameters, of several ranks, by one lane and by many.
const TENSORS: &str = include_str!("runtime/tensors.ptx");

/// A map of `u32`, whose strides are those of sizes without gaps.
fn map(sizes: &[u64], extent: &[u32]) -> Arg {
    let mut map = TensorMap::new(DataType::U32, sizes.len(), 0);
    map.sizes[..sizes.len()].copy_from_slice(sizes);
    map.extent[..extent.len()].copy_from_slice(extent);
    for dimension in 1..sizes.len() {
        map.strides[dimension] = map.strides[dimension - 1] * sizes[dimension - 1];
    }
    assert_eq!(map.check(), Ok(()));
    Arg::Tensor(0, Box::new(map))
}

#[test]
fn tensor_copies_are_logged_with_their_map_and_their_coordinates() {
    let maps = [map(&[2000], &[8]), map(&[64, 32], &[16, 8]), map(&[8, 4, 3, 4, 5], &[8, 2, 2, 2, 2])];
    let args = std::iter::once(Arg::Buffer(0)).chain(maps).collect();
    let plan = Plan {
        buffers: vec![buffer("out", 8192)],
        launches: vec![launch("k", [2, 1, 1], [40, 1, 1], args)],
        ..Plan::default()
    };
    let parsed = parse(TENSORS);
    assert_eq!(parsed.errors, []);
    let sites = SiteTable::new(&parsed.module);
    assert_eq!(sites.unlogged().len(), 0);
    for seed in 0..8 {
        let (_, units) = run(TENSORS, Some(&sites), &plan, seed);
        let expected = threads(&units);
        let got = run_instrumented(TENSORS, &single(TENSORS), &plan, seed, 1 << 14, false);
        assert_eq!(got.dropped, 0);
        for (thread, steps) in &expected {
            for (step, other) in steps.iter().zip(&got.threads[thread]) {
                let site = &sites.sites()[step.0 as usize];
                assert_eq!(step, other, "{thread:?} {} {:?} seed {seed}", site.opcode, site.kind);
            }
        }
        assert_eq!(expected, got.threads);
    }
}

/// A tile loop as compilers unroll it: scattered, strided and equal addresses, a guard, two spaces.
const UNROLLED: &str = include_str!("runtime/unrolled.ptx");

#[test]
fn a_bundle_logs_what_its_members_would() {
    let plan = Plan {
        buffers: vec![buffer("in", 1 << 16)],
        launches: vec![launch("k", [2, 1, 1], [48, 1, 1], vec![Arg::Buffer(0)])],
        ..Plan::default()
    };
    let parsed = parse(UNROLLED);
    assert_eq!(parsed.errors, []);
    let sites = SiteTable::new(&parsed.module);
    let bundled =
        sites.sites().iter().map(|site| site.bundling.members().len()).filter(|members| *members > 0);
    assert_eq!(bundled.collect::<Vec<_>>(), [8, 4, 4, 3, 2]);
    let sorted = |threads: &Threads| {
        let mut threads = threads.clone();
        threads.values_mut().for_each(|steps| steps.sort());
        threads
    };
    for seed in 0..8 {
        let (_, units) = run(UNROLLED, Some(&sites), &plan, seed);
        let single = run_instrumented(UNROLLED, &single(UNROLLED), &plan, seed, 1 << 14, false);
        let bundled = run_instrumented(UNROLLED, &sites, &plan, seed, 1 << 14, false);
        assert_eq!(threads(&units), single.threads);
        assert_eq!(sorted(&single.threads), sorted(&bundled.threads));
        assert!(bundled.records < single.records);
    }
}

#[test]
fn what_does_not_fit_is_dropped_whole() {
    let plan = everything();
    let sites = single(EVERYTHING);
    let all = run_instrumented(EVERYTHING, &sites, &plan, 1, 1 << 14, true);
    assert_eq!(all.dropped, 0);
    for seed in 0..5 {
        let some = run_instrumented(EVERYTHING, &sites, &plan, seed, 256, true);
        assert!(some.dropped > 0);
        assert!(some.records > 0);
    }
}
