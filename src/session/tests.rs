//! A session from file to report, with a backend that runs nothing and an engine that says what it is told to.

use std::sync::Arc;

use super::*;
use crate::abi::{TAG_SHARED, Unit};
use crate::backend::{LaunchEnd, LaunchInfo, Outcome, Owner, RunOptions, Stop};
use crate::diag::Severity;
use crate::finding::{AccessClass, Instead, Kind, Missing, Relation, Rule, Side, Spot, ThreadId, Witness};
use crate::instrument::SiteId;
use crate::report::{Format, Output, Report, Silent, Style, Verdict};

const PTX: &str = r#".version 8.0
.target sm_80
.address_size 64
.visible .entry _Z7reversePKiPi(
	.param .u64 _Z7reversePKiPi_param_0,
	.param .u64 _Z7reversePKiPi_param_1
)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<3>;
	.shared .align 4 .b8 _ZZ7reversePKiPiE4tile[256];
	ld.param.u64 %rd1, [_Z7reversePKiPi_param_0];
	ld.param.u64 %rd2, [_Z7reversePKiPi_param_1];
	.loc 1 3 5
	st.shared.u32 [_ZZ7reversePKiPiE4tile], %r1;
	.loc 1 4 5
	ld.shared.u32 %r2, [_ZZ7reversePKiPiE4tile+4];
	.loc 2 90 3, function_name $L__info, inlined_at 1 5 5
	atom.global.add.u32 %r1, [%rd2], 1;
	ret;
}
	.file 1 "reverse.cu"
	.file 2 "atomics.hpp"
"#;

const CU: &str = "__global__ void reverse(const int* in, int* out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = tile[63 - threadIdx.x];
    atomicAdd(out, 1);
}
";

const TOML: &str = "[[launch]]\ngrid = 2\nblock = 64\nargs = [\"in:i32[64]=iota\", \"out:i32[64]=0\"]\n";

fn nothing(_: u64) -> Vec<Finding> {
    Vec::new()
}

impl Default for Fake {
    fn default() -> Self {
        Self { findings: nothing, stop: None, end: LaunchEnd::default() }
    }
}

/// Findings by seed, and how runs end.
struct Fake {
    findings: fn(u64) -> Vec<Finding>,
    stop: Option<Stop>,
    end: LaunchEnd,
}

struct FakeBackend {
    stop: Option<Stop>,
    end: LaunchEnd,
}

#[derive(Default)]
struct FakeDetector {
    findings: Option<fn(u64) -> Vec<Finding>>,
    seed: u64,
}

impl Backend for FakeBackend {
    fn name(&self) -> &'static str {
        "emu"
    }

    fn run(
        &mut self,
        _: Program<'_>,
        plan: &Plan,
        options: &RunOptions,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, BackendError> {
        let regions = vec![
            Region { name: "in".into(), base: 0x1000, bytes: 256, element: 4, owner: Owner::Device },
            Region { name: "out".into(), base: 0x2000, bytes: 256, element: 4, owner: Owner::Device },
        ];
        sink.begin(&LaunchInfo { regions, ..LaunchInfo::default() });
        // The seed travels to the detector as a record of its own kind.
        sink.records(&[Unit { lo: options.seed, hi: 0 }]);
        sink.end(&self.end);
        let buffers = plan.buffers.iter().map(|buffer| buffer.contents.clone()).collect();
        Ok(Outcome { buffers, stop: self.stop.clone(), ..Outcome::default() })
    }
}

impl Sink for FakeDetector {
    fn begin(&mut self, _: &LaunchInfo) {}

    fn records(&mut self, units: &[Unit]) {
        self.seed = units[0].lo;
    }

    fn end(&mut self, _: &LaunchEnd) {}
}

impl Detector for FakeDetector {
    fn finish(self: Box<Self>) -> Observed {
        let tile = Region {
            name: "_ZZ7reversePKiPiE4tile".into(),
            base: TAG_SHARED,
            bytes: 256,
            element: 4,
            owner: Owner::Device,
        };
        let findings = self.findings.map_or_else(Vec::new, |findings| findings(self.seed));
        Observed {
            findings,
            shared: vec![vec![tile]],
            degraded: Vec::new(),
            unchecked: 0,
            unresolved: Vec::new(),
        }
    }
}

impl Parts for Fake {
    fn gpu(&self) -> Result<Box<dyn Backend>, BackendError> {
        Err(BackendError::NoDevice("there is none".into()))
    }

    fn gpu_name(&self) -> Result<String, BackendError> {
        Err(BackendError::NoDevice("there is none".into()))
    }

    fn emulator(&self) -> Result<Box<dyn Backend>, BackendError> {
        Ok(Box::new(FakeBackend { stop: self.stop.clone(), end: self.end.clone() }))
    }

    fn detector(&self, _: &Arc<SiteTable>, _: &Plan, _: Analysis) -> Box<dyn Detector> {
        Box::new(FakeDetector { findings: Some(self.findings), seed: 0 })
    }

    fn instrument(&self, _: Program<'_>) -> Result<String, Box<Diagnostic>> {
        Ok(String::new())
    }
}

fn witness(site: u32, warp: u8, class: AccessClass, address: u64) -> Witness {
    let thread = ThreadId { launch: 0, block: 1, warp, lane: 3 };
    Witness { site: SiteId(site), thread, class, address, bytes: 4, value: None, interval: 0 }
}

/// The same threads at an address.
fn spot(address: u64) -> Spot {
    let threads = [1, 0].map(|warp| witness(0, warp, AccessClass::Read, address).thread);
    Spot { address, threads }
}

/// Sites: 0 the variable, 1 the store, 2 the load, 3 the atomic.
fn shared_race(_: u64) -> Vec<Finding> {
    vec![Finding {
        rule: Rule::R001,
        severity: Severity::Error,
        kind: Some(Kind::RW),
        relation: Relation::Block,
        witnesses: vec![
            witness(1, 1, AccessClass::Write, TAG_SHARED + 8),
            witness(2, 0, AccessClass::Read, TAG_SHARED + 8),
        ],
        count: 12,
        addresses: 3,
        range: (TAG_SHARED + 8, TAG_SHARED + 16),
        spots: [8, 16].map(|offset| spot(TAG_SHARED + offset)).to_vec(),
        missing: Missing::BlockBarrier,
        doubtful: false,
    }]
}

fn run_with(fake: &Fake, schedules: u64, policy: Policy) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reverse.ptx");
    std::fs::write(&file, PTX).unwrap();
    std::fs::write(folder.path().join("reverse.cu"), CU).unwrap();
    std::fs::write(folder.path().join("reverse.toml"), TOML).unwrap();
    let request =
        Request { file, schedules, policy, command: "ptxrace run reverse.ptx".into(), ..Request::default() };
    run(&request, fake, &Silent).unwrap().report
}

fn text(report: &Report, format: Format) -> String {
    let mut bytes = Vec::new();
    let output = Output { format, style: Style::default(), to: &mut bytes };
    crate::report::write(report, &mut [output]).unwrap();
    // The folder is another one each time; paths in the text end in the file's name.
    let text = String::from_utf8(bytes).unwrap();
    let folder = std::env::temp_dir().to_string_lossy().into_owned();
    let mut rest = text.as_str();
    let mut clean = String::new();
    while let Some((before, behind)) = rest.split_once(&folder) {
        clean.push_str(before);
        rest = behind.trim_start_matches('/').split_once('/').map_or("", |(_, rest)| rest);
    }
    clean + rest
}

#[test]
fn a_race_reads_like_a_compiler_error() {
    let report = run_with(&Fake { findings: shared_race, ..Fake::default() }, 1, Policy::default());
    assert_eq!(report.verdict, Verdict::Race);
    let expected = "\
error[R001]: data race on `tile` in shared memory: no block barrier orders these accesses
  --> reverse.cu:4:5
   |
 3 |     tile[threadIdx.x] = in[threadIdx.x];
   |     ----------------------------------- (1) write, 4 bytes, block (1,0,0) thread (35,0,0), warp 1 lane 3
 4 |     out[threadIdx.x] = tile[63 - threadIdx.x];
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ (2) read, 4 bytes, block (1,0,0) thread (3,0,0), warp 0 lane 3
   |
  ::: reverse.ptx:15:2
   |
15 |     st.shared.u32 [_ZZ7reversePKiPiE4tile], %r1;
   |     ------------------------------------------- (1) is this instruction
16 |     .loc 1 4 5
17 |     ld.shared.u32 %r2, [_ZZ7reversePKiPiE4tile+4];
   |     --------------------------------------------- (2) is this instruction
   |
   = note: no block barrier lies between (1) in warp 1 and (2) in warp 0
   = note: address 0x8 in `reverse(int const*, int*)::tile` (`.shared`, 256 bytes): element `tile[2]`
   = note: kernel `reverse(int const*, int*)`, launch #0, grid (2,1,1) block (64,1,1)
   = note: both accesses are in barrier interval 0; neither happens before the other
   = note: same pair: 12 conflicts, 3 addresses
   = note: replay: ptxrace run reverse.ptx --backend emu --seed 0
   = help: put a block barrier, `__syncthreads()`, between (1) and (2)

1 race, 0 warnings, 0 inconclusive, 0 records, 0 dropped
";
    assert_eq!(text(&report, Format::Text), expected);
}

#[test]
fn json_has_the_shape_of_its_schema() {
    let report = run_with(&Fake { findings: shared_race, ..Fake::default() }, 1, Policy::default());
    let json: serde_json::Value = serde_json::from_str(&text(&report, Format::Json)).unwrap();
    let fingerprint = json["findings"][0]["fingerprint"].as_str().unwrap().to_owned();
    assert_eq!(fingerprint.len(), 16);
    let access = |op: &str, access: &str, thread: u32, warp: u32, line: u32, source: u32| {
        serde_json::json!({
            "op": op, "access": access, "order": "weak", "scope": null, "width": 4, "kernel": "_Z7reversePKiPi",
            "block": [1, 0, 0], "thread": [thread, 0, 0], "warp": warp, "lane": 3,
            "text": format!("{access}, 4 bytes, block (1,0,0) thread ({thread},0,0), warp {warp} lane 3"),
            "place": {"file": "reverse.cu", "line": source, "column": 5},
            "ptx": {"file": "reverse.ptx", "line": line, "column": 2},
            "source": {"file": "reverse.cu", "line": source, "column": 5, "inlined_at": []},
        })
    };
    let expected = serde_json::json!({
        "schema": "ptxrace-report/1",
        "tool": {"name": "ptxrace", "version": env!("CARGO_PKG_VERSION")},
        "verdict": "race",
        "launches": [{
            "id": 0, "kernel": "_Z7reversePKiPi", "grid": [2, 1, 1], "block": [64, 1, 1], "stream": 0,
            "backend": "emu", "records": 0, "dropped": 0,
        }],
        "findings": [{
            "rule": "R001", "severity": "error", "kind": "RW", "relation": "block", "space": "shared",
            "object": {
                "name": "tile", "full": "reverse(int const*, int*)::tile", "offset": 8, "element": 2, "bytes": 4,
                "size": 256,
            },
            "address": "0x8", "launch": 0, "count": 12, "fingerprint": fingerprint,
            "accesses": [
                access("st.shared.u32", "write", 35, 1, 15, 3),
                access("ld.shared.u32", "read", 3, 0, 17, 4),
            ],
            "message": "data race on `tile` in shared memory: no block barrier orders these accesses",
            "missing": "no block barrier lies between (1) in warp 1 and (2) in warp 0",
            "help": "put a block barrier, `__syncthreads()`, between (1) and (2)",
            "notes": [
                "no block barrier lies between (1) in warp 1 and (2) in warp 0",
                "address 0x8 in `reverse(int const*, int*)::tile` (`.shared`, 256 bytes): element `tile[2]`",
                "kernel `reverse(int const*, int*)`, launch #0, grid (2,1,1) block (64,1,1)",
                "both accesses are in barrier interval 0; neither happens before the other",
                "same pair: 12 conflicts, 3 addresses",
                "replay: ptxrace run reverse.ptx --backend emu --seed 0",
            ],
            "replay": "ptxrace run reverse.ptx --backend emu --seed 0",
            "timeline": {
                "lanes": [
                    {"title": "thread (35,0,0)", "detail": "block (1,0,0), warp 1 lane 3"},
                    {"title": "thread (3,0,0)", "detail": "block (1,0,0), warp 0 lane 3"},
                ],
                "events": [
                    {"lane": 0, "row": 0, "access": 1, "text": "write, 4 bytes", "op": "st.shared.u32", "at": "reverse.cu:3"},
                    {"lane": 1, "row": 1, "access": 2, "text": "read, 4 bytes", "op": "ld.shared.u32", "at": "reverse.cu:4"},
                ],
                "edges": [{"from": 0, "to": 1, "link": "missing", "text": "no block barrier"}],
            },
            "spread": {
                "addresses": 3, "first_element": 2, "last_element": 4,
                "sample": [[2, 1, 35, 1, 3], [4, 1, 35, 1, 3]],
            },
        }],
        "suppressed": [],
        "suppressions": [],
        "incomplete": [],
    });
    assert_eq!(json, expected);
}

#[test]
fn inlined_code_is_shown_where_the_user_calls_it() {
    fn findings(_: u64) -> Vec<Finding> {
        let atomic = witness(3, 0, AccessClass::Atomic, 0x2000);
        let missing = Missing::Publication {
            side: Side::Acquire,
            writer: None,
            reader: Some(Instead::Relaxed),
            flag_write: atomic,
            flag_read: atomic,
            lock: false,
        };
        let witnesses = vec![witness(1, 0, AccessClass::Write, 0x1000), atomic];
        vec![Finding {
            rule: Rule::R005,
            relation: Relation::Grid,
            witnesses,
            missing,
            ..shared_race(0).remove(0)
        }]
    }
    let report = run_with(&Fake { findings, ..Fake::default() }, 1, Policy::default());
    let finding = &report.findings[0];
    let text = text(&report, Format::Text);
    assert!(text.contains("(2) atomic, 4 bytes, scope gpu"), "{text}");
    assert!(text.contains("(2) is this instruction, inlined from atomics.hpp:90"), "{text}");
    assert!(text.contains("--> reverse.cu:5:5"), "{text}");
    let missing = "the read of the flag `out` (`atom.global.add.u32`, reverse.cu:5) is relaxed, with no fence behind it";
    assert_eq!(finding.missing, missing);
    assert_eq!(finding.object.as_ref().map(|object| object.name.as_str()), Some("out"));
    let source: Vec<_> = finding.accesses[1].source.iter().map(|f| (f.file.as_str(), f.line)).collect();
    assert_eq!(source, [("atomics.hpp", 90), ("reverse.cu", 5)]);
}

#[test]
fn fingerprints_do_not_depend_on_schedule_or_address() {
    fn turned(_: u64) -> Vec<Finding> {
        let mut finding = shared_race(0).remove(0);
        finding.witnesses.reverse();
        finding.witnesses.iter_mut().for_each(|witness| witness.address += 4);
        vec![finding]
    }
    let print = |findings| {
        let report = run_with(&Fake { findings, ..Fake::default() }, 1, Policy::default());
        report.findings[0].fingerprint.clone()
    };
    assert_eq!(print(shared_race), print(turned));
}

#[test]
fn schedules_are_united_and_keep_their_first_seed() {
    fn some(seed: u64) -> Vec<Finding> {
        if seed < 3 { Vec::new() } else { shared_race(seed) }
    }
    let fake =
        Fake { findings: some, end: LaunchEnd { records: 10, ..LaunchEnd::default() }, ..Fake::default() };
    let report = run_with(&fake, 8, Policy::default());
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].replay, "ptxrace run reverse.ptx --backend emu --seed 3");
    assert!(report.findings[0].diagnostic.notes.iter().any(|note| note == "seen in 5 of 8 schedules"));
    assert_eq!(report.launches[0].records, 80);
}

#[test]
fn verdicts_and_policy() {
    fn warned(_: u64) -> Vec<Finding> {
        shared_race(0).into_iter().map(|f| Finding { severity: Severity::Warning, ..f }).collect()
    }
    let policy = |deny: &[&str], allow: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        Policy::new(&owned(deny), &owned(allow))
    };
    let verdict = |fake: &Fake, deny: &[&str], allow: &[&str]| {
        let report = run_with(fake, 1, policy(deny, allow).unwrap());
        (report.verdict, report.findings.len())
    };
    let warns = Fake { findings: warned, ..Fake::default() };
    assert_eq!(verdict(&warns, &[], &[]), (Verdict::Clean, 1));
    assert_eq!(verdict(&warns, &["warnings"], &[]), (Verdict::Race, 1));
    assert_eq!(verdict(&warns, &["r001"], &[]), (Verdict::Race, 1));
    assert_eq!(verdict(&warns, &[], &["R001"]), (Verdict::Clean, 0));
    let stuck = || Some(Stop::Deadlock { warps: Vec::new() });
    assert_eq!(verdict(&Fake { stop: stuck(), ..Fake::default() }, &[], &[]).0, Verdict::Inconclusive);
    let both = Fake { findings: shared_race, stop: stuck(), ..Fake::default() };
    assert_eq!(verdict(&both, &[], &[]).0, Verdict::Race);
    let lost = Fake { end: LaunchEnd { dropped: 3, ..LaunchEnd::default() }, ..Fake::default() };
    assert_eq!(verdict(&lost, &[], &[]).0, Verdict::Inconclusive);
    assert!(policy(&["R999"], &[]).is_err());
    assert!(policy(&["R001"], &["R001"]).is_err());
}
