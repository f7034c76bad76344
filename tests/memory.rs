//! What an analysis takes for the memory that kernels touch, as the allocator counts it. All in one test: others would be counted,
//! too.

use std::sync::Arc;

use peak_alloc::PeakAlloc;
use ptxrace::abi::{Encoder, LANES, Unit};
use ptxrace::backend::plan::{Launch, Plan};
use ptxrace::backend::{LaunchEnd, LaunchInfo, Sink};
use ptxrace::engine::{Budget, Engine, Report, Triage};
use ptxrace::instrument::SiteTable;
use ptxrace::ptx::parse;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const MODULE: &str = ".version 9.0\n.target sm_90\n.address_size 64\n.entry k() { .reg .b64 %rd<2>; .reg .b32 %r<2>;\n\
    ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1], %r1;\natom.global.add.u32 %r1, [%rd1], 1;\nret; }";
const LOAD: u32 = 0;
const STORE: u32 = 1;
const ATOMIC: u32 = 2;
/// Bytes that a warp touches at once.
const LINE: u64 = 128;
const BLOCKS: u32 = 2;
const MIB: usize = 1 << 20;

struct Scene {
    sites: Arc<SiteTable>,
    plan: Plan,
}

impl Scene {
    fn new() -> Self {
        let launch = Launch {
            kernel: "k".into(),
            grid: [BLOCKS, 1, 1],
            block: [32, 1, 1],
            cluster: None,
            shared: 0,
            stream: 0,
            device: 0,
            after: Vec::new(),
            args: Vec::new(),
        };
        let plan = Plan { launches: vec![launch], ..Plan::default() };
        Self { sites: Arc::new(SiteTable::new(&parse(MODULE).module)), plan }
    }

    /// Bytes beyond those before when each of these blocks has touched so much, all as it was or at most; and the report.
    fn touches<S: Sink>(&self, mut sink: S, site: u32, blocks: &[u32], bytes: usize) -> (usize, S) {
        let payload = self.sites.sites()[site as usize].payload();
        ALLOCATED.reset_peak_usage();
        let before = ALLOCATED.current_usage();
        sink.begin(&LaunchInfo { index: 0, ..LaunchInfo::default() });
        let mut units: Vec<Unit> = Vec::new();
        let mut ticket = 1;
        for line in 0..bytes as u64 / LINE {
            for block in blocks {
                let a = std::array::from_fn(|lane| 0x10_0000_0000 + line * LINE + 4 * lane as u64);
                let (read, written) = ([0; LANES], [u64::from(*block); LANES]);
                let tickets = (ticket, ticket + 1);
                ticket += 2;
                let encoder = Encoder {
                    site,
                    mask: u32::MAX,
                    block: *block,
                    warp: 0,
                    payload,
                    tickets,
                    a: &a,
                    read: &read,
                    written: &written,
                };
                encoder.encode(&mut units);
            }
            if units.len() > 1000 {
                sink.records(&units);
                units.clear();
            }
        }
        sink.records(&units);
        let taken = ALLOCATED.peak_usage() - before;
        (taken, sink)
    }

    fn engine(&self, memory: Budget) -> Engine {
        Engine::new(Arc::clone(&self.sites), &self.plan).within(memory)
    }

    fn triage(&self, memory: Budget) -> Triage {
        Triage::new(Arc::clone(&self.sites), &self.plan).within(memory)
    }
}

fn end(mut engine: Engine) -> Report {
    engine.end(&LaunchEnd::default());
    engine.finish()
}

/// Bytes of the piece of memory in which triage keeps its first records.
const PIECE: usize = 16 * MIB;

#[test]
fn what_is_taken_is_small_and_bounded() {
    let scene = Scene::new();
    let touched = 16 * MIB;
    for (what, site, blocks) in [("read by two", LOAD, &[0, 1][..]), ("written by one", STORE, &[0])] {
        let (taken, _) = scene.touches(scene.triage(Budget::UNLIMITED), site, blocks, touched);
        let shadow = taken - PIECE;
        println!("triage, {what}: {:.2} bytes for each that is touched", shadow as f64 / touched as f64);
        assert!(shadow < touched, "{what}: {shadow} bytes for {touched}");
    }
    // What is touched is more than there is room for.
    let touched = 256 * MIB;
    for (what, site, blocks, most) in [
        ("read by two", LOAD, &[0, 1][..], 8.0),
        ("written by one", STORE, &[0], 8.0),
        ("updated by two", ATOMIC, &[0, 1], f64::MAX),
        ("written by two", STORE, &[0, 1], f64::MAX),
    ] {
        let limit = 128 * MIB;
        let (taken, engine) = scene.touches(scene.engine(Budget::of(limit as u64)), site, blocks, touched);
        let report = end(engine);
        let records = touched / LINE as usize * blocks.len();
        // All blocks touch the same; records are taken in turn, or those of one block after those of another.
        let checked = (records - report.unchecked as usize) * LINE as usize;
        let each = (limit / 2) as f64 / checked as f64;
        println!("engine, {what}: {taken} bytes of {limit}, {each:.1} for each byte that a record touches");
        assert!(report.unchecked > 0, "{what}");
        assert!(taken < limit, "{what}: {taken} bytes of {limit}");
        assert!(each < most, "{what}: {each}");
    }
}
