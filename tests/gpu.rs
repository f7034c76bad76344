//! What needs a GPU: run with `cargo test --test gpu -- --ignored`.
//!
//! Tests that leave the device unusable run in a process of their own.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use ptxrace::abi::{Record, TAG_SHARED, Unit, barrier_word, decode};
use ptxrace::backend::gpu::{Gpu, RingSizes};
use ptxrace::backend::plan::{Arg, Buffer, ElementType, Launch, Plan};
use ptxrace::backend::{
    Backend, BackendError, FaultKind, LaunchEnd, LaunchInfo, OnFull, Outcome, Owner, Program, Region,
    RunOptions, Sink, Stop,
};
use ptxrace::instrument::{SiteKind, SiteTable};
use ptxrace::ptx::parse;
use ptxrace::span::SourceFile;

/// One record, decoded.
#[derive(Clone, Debug, PartialEq)]
struct Logged {
    opcode: String,
    mask: u32,
    tickets: Option<(u64, u64)>,
    a: Vec<u64>,
    read: Option<Vec<u64>>,
    written: Option<Vec<u64>>,
}

#[derive(Default)]
struct Collected {
    units: Vec<Unit>,
    regions: Vec<Region>,
    ends: Vec<LaunchEnd>,
}

impl Sink for Collected {
    fn begin(&mut self, info: &LaunchInfo) {
        self.regions.clone_from(&info.regions);
    }

    fn records(&mut self, units: &[Unit]) {
        self.units.extend_from_slice(units);
    }

    fn end(&mut self, end: &LaunchEnd) {
        self.ends.push(end.clone());
    }
}

struct Ran {
    outcome: Outcome,
    collected: Collected,
    /// Records by (block, warp), in the order they were written.
    warps: BTreeMap<(u32, u8), Vec<Logged>>,
    records: u64,
}

impl Ran {
    fn region(&self, name: &str) -> &Region {
        self.collected.regions.iter().find(|region| region.name == name).unwrap()
    }

    fn dropped(&self) -> u64 {
        self.collected.ends.iter().map(|end| end.dropped).sum()
    }
}

const HEADER: &str = ".version 7.8\n.target sm_80\n.address_size 64\n";

struct Job<'j> {
    body: &'j str,
    grid: u32,
    block: u32,
    words: usize,
    rings: RingSizes,
    options: RunOptions,
}

impl<'j> Job<'j> {
    /// A kernel `k(out)` with this text; `out` is a buffer of 32-bit words, zeroed.
    fn new(body: &'j str, grid: u32, block: u32, words: usize) -> Self {
        Self { body, grid, block, words, rings: RingSizes::default(), options: RunOptions::default() }
    }

    fn run(&self) -> Result<Ran, BackendError> {
        let mut collected = Collected::default();
        let (outcome, sites) = self.run_into(&mut collected)?;
        let mut warps = BTreeMap::<_, Vec<_>>::new();
        let (mut at, mut records) = (0, 0);
        while let Some(record) = decode(&collected.units[at..]).unwrap() {
            at += record.units().len();
            records += 1;
            warps.entry((record.block(), record.warp())).or_default().push(logged(&sites, record));
        }
        assert_eq!(records, collected.ends.iter().map(|end| end.records).sum::<u64>());
        Ok(Ran { outcome, collected, warps, records })
    }

    fn run_into(&self, sink: &mut dyn Sink) -> Result<(Outcome, SiteTable), BackendError> {
        let text = format!("{HEADER}{}", self.body);
        let source = SourceFile::new("test.ptx", text).unwrap();
        let parsed = parse(source.text());
        assert_eq!(parsed.errors, []);
        let sites = SiteTable::new(&parsed.module);
        let contents = vec![0; self.words * 4];
        let plan = Plan {
            buffers: vec![Buffer {
                name: "out".into(),
                ty: ElementType::U32,
                contents,
                unwritten: false,
                owner: Owner::Device,
            }],
            launches: vec![Launch {
                kernel: "k".into(),
                grid: [self.grid, 1, 1],
                block: [self.block, 1, 1],
                cluster: None,
                shared: 0,
                stream: 0,
                device: 0,
                after: Vec::new(),
                args: vec![Arg::Buffer(0)],
            }],
            ..Plan::default()
        };
        let mut gpu = Gpu::with_rings(self.rings)?;
        let program = Program { source: &source, module: &parsed.module, sites: &sites };
        let outcome = gpu.run(program, &plan, &self.options, sink)?;
        Ok((outcome, sites))
    }
}

fn logged(sites: &SiteTable, record: Record<'_>) -> Logged {
    let site = &sites.sites()[record.site() as usize];
    let ranks = 0..record.mask().count_ones() as usize;
    let all = |value: &dyn Fn(usize) -> Option<u64>| ranks.clone().map(value).collect::<Option<Vec<_>>>();
    Logged {
        opcode: match &site.kind {
            SiteKind::SharedVariable(variable) => format!("variable {}", variable.name),
            _ => site.opcode.to_string(),
        },
        mask: record.mask(),
        tickets: record.tickets(),
        a: if record.payload().a { ranks.clone().map(|rank| record.a(rank)).collect() } else { Vec::new() },
        read: all(&|rank| record.read(rank)),
        written: all(&|rank| record.written(rank)),
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

const EVERYTHING: &str = "
.global .align 4 .u32 counter;
.visible .entry k(.param .u64 out) {
    .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
    .shared .align 4 .b32 tile[64];
    .local .align 4 .b32 own;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.s32 %r3, %r2, 64, %r1;
    mul.wide.u32 %rd2, %r3, 4;
    add.s64 %rd3, %rd1, %rd2;
    mov.u32 %r4, tile;
    shl.b32 %r5, %r1, 2;
    add.s32 %r4, %r4, %r5;
    st.shared.u32 [%r4], %r3;
    bar.sync 0;
    ld.shared.u32 %r6, [%r4];
    st.global.u32 [%rd3], %r6;
    // Scattered: every other pair swapped.
    xor.b32 %r5, %r3, 1;
    mul.wide.u32 %rd4, %r5, 4;
    add.s64 %rd4, %rd1, %rd4;
    ld.global.u32 %r7, [%rd4];
    // Odd lanes only.
    and.b32 %r8, %r1, 1;
    setp.eq.s32 %p1, %r8, 1;
    @%p1 st.global.u32 [%rd3], 7;
    // Generic: shared, local.
    cvt.u64.u32 %rd5, %r4;
    cvta.shared.u64 %rd5, %rd5;
    ld.u32 %r7, [%rd5];
    mov.u64 %rd6, own;
    cvta.local.u64 %rd6, %rd6;
    st.u32 [%rd6], %r7;
    ld.volatile.u32 %r7, [%rd6];
    // Strong.
    mov.u64 %rd7, counter;
    atom.global.add.u32 %r7, [%rd7], 1;
    red.global.max.u32 [%rd7], 3;
    fence.acq_rel.gpu;
    ld.acquire.gpu.global.u32 %r7, [%rd7];
    ret;
}";

#[test]
#[ignore = "needs a GPU"]
fn records_say_what_ran() {
    let ran = Job::new(EVERYTHING, 3, 64, 192).run().unwrap();
    assert!(ran.outcome.stop.is_none());
    let expected: Vec<u32> = (0..192).map(|i| if i % 2 == 1 { 7 } else { i }).collect();
    assert_eq!(words(&ran.outcome.buffers[0]), expected);
    let (out, counter) = (ran.region("out").base, ran.region("counter").base);
    assert_eq!(ran.region("counter").bytes, 4);
    assert_eq!(ran.warps.len(), 6);
    let mut olds = Vec::new();
    for ((block, warp), log) in &ran.warps {
        let log = if (*block, *warp) == (0, 0) {
            assert_eq!((log[0].opcode.as_str(), log[0].mask), ("variable tile", 1));
            &log[1..]
        } else {
            log
        };
        let opcodes: Vec<_> = log.iter().map(|logged| logged.opcode.as_str()).collect();
        assert_eq!(
            opcodes,
            [
                "st.shared.u32",
                "bar.sync",
                "ld.shared.u32",
                "st.global.u32",
                "ld.global.u32",
                "st.global.u32",
                "ld.u32",
                "atom.global.add.u32",
                "red.global.max.u32",
                "fence.acq_rel.gpu",
                "ld.acquire.gpu.global.u32",
                "ret"
            ],
            "block {block} warp {warp}"
        );
        let tile = ran.warps[&(0, 0)][0].a[0];
        assert_eq!(tile & TAG_SHARED, TAG_SHARED);
        let lanes = 0..32u64;
        let thread = |lane: u64| u64::from(*block) * 64 + u64::from(*warp) * 32 + lane;
        let in_tile: Vec<_> = lanes.clone().map(|l| tile + (u64::from(*warp) * 32 + l) * 4).collect();
        assert_eq!((&log[0].a, &log[2].a, &log[6].a), (&in_tile, &in_tile, &in_tile));
        assert_eq!(log[0].written, Some(lanes.clone().map(thread).collect()));
        assert_eq!(log[1].a, vec![barrier_word(0, None); 32]);
        assert_eq!(log[3].a, lanes.clone().map(|l| out + thread(l) * 4).collect::<Vec<_>>());
        assert_eq!(log[4].a, lanes.clone().map(|l| out + (thread(l) ^ 1) * 4).collect::<Vec<_>>());
        assert_eq!((log[5].mask, &log[5].written), (0xAAAA_AAAA, &Some(vec![7; 16])));
        for strong in &log[7..11] {
            let (before, after) = strong.tickets.unwrap();
            assert!(0 < before && before < after, "{strong:?}");
        }
        let (read, written) = (log[7].read.clone().unwrap(), log[7].written.clone().unwrap());
        assert_eq!(log[7].a, vec![counter; 32]);
        assert!(read.iter().zip(&written).all(|(old, new)| new == &(old + 1)));
        olds.extend(read);
        let (read, written) = (log[8].read.clone().unwrap(), log[8].written.clone().unwrap());
        assert!(read.iter().zip(&written).all(|(old, new)| *new == (*old).max(3)));
        assert!(log[10].written.is_none() && log[10].read.is_some());
    }
    // The additions were atomic: a `max` with 3 comes after at least 32 of them, so no value repeats.
    olds.sort_unstable();
    assert_eq!(olds, (0..192).collect::<Vec<_>>());
}

/// Each warp stores 0, 1, 2, ... to its own word, some of them by half of its lanes.
const LOOP: &str = "
.visible .entry k(.param .u64 out) {
    .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.s32 %r3, %r2, %r3, %r1;
    mul.wide.u32 %rd2, %r3, 4;
    add.s64 %rd3, %rd1, %rd2;
    mov.u32 %r4, 0;
again:
    and.b32 %r5, %r4, %r1;
    and.b32 %r5, %r5, 1;
    setp.eq.s32 %p1, %r5, 0;
    @!%p1 bra odd;
    st.global.u32 [%rd3], %r4;
odd:
    mul.lo.s32 %r6, %r1, %r1;
    add.s32 %r6, %r6, %r4;
    st.global.u32 [%rd3], %r6;
    add.s32 %r4, %r4, 1;
    setp.lt.u32 %p2, %r4, 1000;
    @%p2 bra again;
    ret;
}";

/// Every lane has logged every store. How lanes run together is the device's business: they part while a ring is full.
fn loop_is_whole(ran: &Ran, warps: usize) {
    assert_eq!(ran.warps.len(), warps);
    for ((block, warp), log) in &ran.warps {
        let mut stores = [0u32; 32];
        for store in log.iter().filter(|logged| logged.opcode == "st.global.u32") {
            for (lane, count) in stores.iter_mut().enumerate() {
                *count += store.mask >> lane & 1;
            }
        }
        // The second store runs every round, the first where round and thread are not both odd.
        for (lane, count) in stores.into_iter().enumerate() {
            let expected = if lane % 2 == 0 { 2000 } else { 1500 };
            assert_eq!(count, expected, "block {block} warp {warp} lane {lane}");
        }
    }
}

#[test]
#[ignore = "needs a GPU"]
fn a_small_ring_loses_nothing() {
    let sizes =
        [RingSizes::default(), RingSizes { rings: 1, units: 256 }, RingSizes { rings: 4, units: 1024 }];
    let mut counts = Vec::new();
    for rings in sizes {
        let job = Job { rings, ..Job::new(LOOP, 4, 128, 512) };
        let start = std::time::Instant::now();
        let ran = job.run().unwrap();
        println!("{rings:?}: {:?}, {} records", start.elapsed(), ran.records);
        assert_eq!(ran.dropped(), 0);
        loop_is_whole(&ran, 16);
        let whole: Vec<u32> = (0..512).map(|i| (i % 128) * (i % 128) + 999).collect();
        assert_eq!(words(&ran.outcome.buffers[0]), whole);
        counts.push(ran.records);
    }
    assert_eq!(counts, [counts[0]; 3]);
}

#[test]
#[ignore = "needs a GPU"]
fn what_is_dropped_is_counted() {
    let whole = Job::new(LOOP, 4, 128, 512).run().unwrap();
    let rings = RingSizes { rings: 1, units: 256 };
    let options = RunOptions { on_full: OnFull::Drop, ..RunOptions::default() };
    let ran = Job { rings, options, ..Job::new(LOOP, 4, 128, 512) }.run().unwrap();
    assert!(ran.dropped() > 0);
    assert_eq!(ran.records + ran.dropped(), whole.records);
}

#[test]
#[ignore = "needs a GPU"]
fn a_kernel_that_only_ends_runs() {
    let body = ".visible .entry k(.param .u64 out) { trap_free: bra done; done: exit; }";
    let ran = Job::new(body, 1, 1, 1).run().unwrap();
    assert_eq!(ran.records, 1);
}

/// Counts and forgets.
#[derive(Default)]
struct Count {
    units: u64,
    records: u64,
}

impl Sink for Count {
    fn begin(&mut self, _: &LaunchInfo) {}

    fn records(&mut self, units: &[Unit]) {
        self.units += units.len() as u64;
    }

    fn end(&mut self, end: &LaunchEnd) {
        self.records += end.records;
    }
}

/// No test of anything, but a number to know: how fast records come when nobody looks at them.
#[test]
#[ignore = "needs a GPU"]
fn throughput() {
    let job = Job::new(LOOP, 528, 256, 528 * 256);
    for _ in 0..2 {
        let mut count = Count::default();
        let started = Instant::now();
        job.run_into(&mut count).unwrap();
        let seconds = started.elapsed().as_secs_f64();
        let (records, bytes) = (count.records as f64, count.units as f64 * 16.0);
        println!(
            "{} records, {:.1} bytes each, in {seconds:.3} s: {:.1} M records/s, {:.2} GB/s",
            count.records,
            bytes / records,
            records / seconds / 1e6,
            bytes / seconds / 1e9
        );
    }
}

/// Runs one of the tests below in another process, where it may spoil the device.
fn alone(test: &str) {
    let exe = std::env::current_exe().unwrap();
    let mut command = Command::new(exe);
    command.args(["--exact", test, "--ignored", "--nocapture"]).env("PTXRACE_ALONE", "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    // A child that abandoned its kernel leaves at once, before the harness can say that the test passed.
    assert!(output.status.success() && text.contains("running 1 test"), "{text}");
}

fn is_alone() -> bool {
    std::env::var_os("PTXRACE_ALONE").is_some()
}

#[test]
#[ignore = "needs a GPU"]
fn an_endless_kernel_is_stopped() {
    alone("endless");
}

#[test]
#[ignore = "needs a GPU; run by another test"]
fn endless() {
    if !is_alone() {
        return;
    }
    let body = "
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .pred %p<2>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd1, %rd1;
again:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.s32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}";
    let options = RunOptions { timeout: Some(Duration::from_secs(2)), ..RunOptions::default() };
    let ran = Job { options, ..Job::new(body, 1, 64, 1) }.run().unwrap();
    assert!(matches!(ran.outcome.stop, Some(Stop::Timeout { .. })), "{:?}", ran.outcome.stop);
    assert!(ran.records > 0);
    ptxrace::backend::gpu::leave_abandoned(0);
}

#[test]
#[ignore = "needs a GPU"]
fn a_wild_address_is_a_fault() {
    alone("wild");
}

#[test]
#[ignore = "needs a GPU; run by another test"]
fn wild() {
    if !is_alone() {
        return;
    }
    let body = "
.visible .entry k(.param .u64 out) {
    .reg .b64 %rd<3>;
    mov.u64 %rd1, 16;
    st.global.u32 [%rd1], 1;
    ret;
}";
    let ran = Job::new(body, 1, 32, 1).run().unwrap();
    let Some(Stop::Fault(fault)) = ran.outcome.stop else { panic!("{:?}", ran.outcome.stop) };
    assert_eq!(fault.kind, FaultKind::Device);
    assert_eq!(ran.collected.ends.len(), 1);
}

#[test]
fn a_machine_without_a_driver_is_an_error() {
    // With a driver it opens, without one it says so; it never panics.
    match Gpu::open() {
        Ok(gpu) => assert!(!gpu.device_name().unwrap().is_empty()),
        Err(error) => assert!(matches!(error, BackendError::NoDevice(_)), "{error}"),
    }
}
