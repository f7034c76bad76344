//! Tests of the emulator: small programs with known results, and the harness that runs them.

mod arithmetic;
mod asynchronous;
mod barriers;
mod calls;
mod clusters;
mod divergence;
mod floats;
mod images;
mod matrices;
mod mbarriers;
mod memory;
mod notices;
mod records;
mod steps;
mod tensors;
mod video;
mod warps;

use super::Emulator;
use crate::abi::{Unit, decode};
use crate::backend::{
    Arg, Backend, Buffer, ElementType, Launch, LaunchEnd, LaunchInfo, Outcome, Owner, Plan, Program,
    RunOptions, Sink, Stop,
};
use crate::instrument::SiteTable;
use crate::span::SourceFile;
use crate::tensor::TensorMap;
use std::time::Duration;

/// Keeps everything that a run delivers.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) infos: Vec<LaunchInfo>,
    pub(super) units: Vec<Unit>,
    pub(super) ends: Vec<LaunchEnd>,
}

impl Sink for Kept {
    fn begin(&mut self, info: &LaunchInfo) {
        self.infos.push(info.clone());
    }
    fn records(&mut self, units: &[Unit]) {
        self.units.extend_from_slice(units);
    }
    fn end(&mut self, end: &LaunchEnd) {
        self.ends.push(end.clone());
    }
}

/// A record, unpacked: site opcode, mask, block, warp, and by lane (`a`, read, written).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) opcode: String,
    pub(super) mask: u32,
    pub(super) block: u32,
    pub(super) warp: u8,
    pub(super) a: Vec<u64>,
    pub(super) read: Vec<u64>,
    pub(super) written: Vec<u64>,
    pub(super) tickets: Option<(u64, u64)>,
}

/// A module to run.
pub(super) struct Run {
    text: String,
    plan: Plan,
    options: RunOptions,
}

/// What a run gave.
pub(super) struct Ran {
    pub(super) outcome: Outcome,
    pub(super) kept: Kept,
    pub(super) records: Vec<Seen>,
    pub(super) text: String,
}

const HEADER: &str = ".version 8.7\n.target sm_90\n.address_size 64\n";

/// A module of this text; its only kernel is launched with one block of 32 threads.
pub(super) fn module(text: &str) -> Run {
    let launch = Launch {
        kernel: "k".into(),
        grid: [1; 3],
        block: [32, 1, 1],
        cluster: None,
        shared: 0,
        stream: 0,
        device: 0,
        after: Vec::new(),
        args: Vec::new(),
    };
    Run {
        text: format!("{HEADER}{text}"),
        plan: Plan { launches: vec![launch], ..Plan::default() },
        options: RunOptions { timeout: Some(Duration::from_secs(20)), ..RunOptions::default() },
    }
}

/// A kernel with this body and one parameter, the buffer `out` (in `%out`), registers of all sorts declared.
pub(super) fn kernel(body: &str) -> Run {
    kernel_with("", body)
}

/// Such a kernel with variables declared before its code, as compilers do.
pub(super) fn kernel_with(variables: &str, body: &str) -> Run {
    let text = format!(
        ".visible .entry k(.param .u64 out)\n{{\n{variables}\n.reg .pred %p<10>;\n.reg .b16 %h<20>;\n.reg .b32 %r<50>;\n.reg .b64 \
         %rd<30>;\n.reg .f32 %f<30>;\n.reg .f64 %fd<30>;\n.reg .b64 %out;\nld.param.u64 %out, [out];\n\
         cvta.to.global.u64 %out, %out;\n{body}\nret;\n}}\n"
    );
    module(&text)
}

impl Run {
    pub(super) fn buffer(mut self, name: &str, contents: Vec<u8>) -> Self {
        let index = self.plan.buffers.len();
        self.plan.buffers.push(Buffer {
            name: name.into(),
            ty: ElementType::U32,
            contents,
            unwritten: false,
            owner: Owner::Device,
        });
        self.plan.launches[0].args.push(Arg::Buffer(index));
        self
    }
    /// The next argument is this tensor map of a buffer.
    pub(super) fn tensor(mut self, buffer: usize, map: TensorMap) -> Self {
        self.plan.launches[0].args.push(Arg::Tensor(buffer, Box::new(map)));
        self
    }
    /// The next argument is these bytes.
    pub(super) fn value(mut self, bytes: &[u8]) -> Self {
        self.plan.launches[0].args.push(Arg::Value(bytes.to_vec()));
        self
    }
    pub(super) fn words(self, name: &str, words: &[u32]) -> Self {
        let bytes = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.buffer(name, bytes)
    }
    pub(super) fn threads(mut self, threads: u32) -> Self {
        self.plan.launches[0].block = [threads, 1, 1];
        self
    }
    pub(super) fn blocks(mut self, blocks: u32) -> Self {
        self.plan.launches[0].grid = [blocks, 1, 1];
        self
    }
    /// The grid is of clusters of so many blocks.
    pub(super) fn cluster(mut self, blocks: u32) -> Self {
        self.plan.launches[0].cluster = Some([blocks, 1, 1]);
        self
    }
    pub(super) fn shared(mut self, bytes: u32) -> Self {
        self.plan.launches[0].shared = bytes;
        self
    }
    pub(super) fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }
    pub(super) fn timeout(mut self, millis: u64) -> Self {
        self.options.timeout = Some(Duration::from_millis(millis));
        self
    }

    /// Runs it, whatever comes.
    pub(super) fn run(self) -> Ran {
        self.run_with(Emulator::new())
    }

    /// Runs the instrumented text.
    pub(super) fn run_instrumented(self) -> Ran {
        self.run_with(Emulator::instrumented())
    }

    fn run_with(self, mut emulator: Emulator) -> Ran {
        let source = SourceFile::new("test.ptx", self.text.as_str()).unwrap();
        let parsed = crate::ptx::parse(source.text());
        assert!(parsed.errors.is_empty(), "{:?}\n{}", parsed.errors, self.text);
        let sites = SiteTable::new(&parsed.module).without_bundles();
        let mut kept = Kept::default();
        let program = Program { source: &source, module: &parsed.module, sites: &sites };
        let outcome = emulator.run(program, &self.plan, &self.options, &mut kept).unwrap();
        let records = unpack(&kept.units, |site| sites.sites()[site as usize].opcode.to_string());
        Ran { outcome, kept, records, text: self.text }
    }

    /// Runs it to its end.
    pub(super) fn ok(self) -> Ran {
        let ran = self.run();
        if let Some(stop) = &ran.outcome.stop {
            panic!("stopped: {stop:?}\n{}", ran.text);
        }
        ran
    }
}

pub(super) fn unpack(units: &[Unit], opcode: impl Fn(u32) -> String) -> Vec<Seen> {
    let mut rest = units;
    let mut records = Vec::new();
    while let Some(record) = decode(rest).unwrap() {
        let payload = record.payload();
        let ranks = 0..record.lanes().count();
        records.push(Seen {
            opcode: opcode(record.site()),
            mask: record.mask(),
            block: record.block(),
            warp: record.warp(),
            a: if payload.a { ranks.clone().map(|r| record.a(r)).collect() } else { Vec::new() },
            read: ranks.clone().filter_map(|r| record.read(r)).collect(),
            written: ranks.filter_map(|r| record.written(r)).collect(),
            tickets: record.tickets(),
        });
        rest = &rest[record.units().len()..];
    }
    records
}

impl Ran {
    /// A buffer as 32-bit words.
    pub(super) fn words(&self, buffer: usize) -> Vec<u32> {
        let bytes = &self.outcome.buffers[buffer];
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
    }
    /// A buffer as 64-bit words.
    pub(super) fn longs(&self, buffer: usize) -> Vec<u64> {
        let bytes = &self.outcome.buffers[buffer];
        bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect()
    }
    /// Records of an opcode.
    pub(super) fn of(&self, opcode: &str) -> Vec<&Seen> {
        self.records.iter().filter(|r| r.opcode == opcode).collect()
    }
    pub(super) fn fault(&self) -> &crate::backend::Fault {
        match &self.outcome.stop {
            Some(Stop::Fault(fault)) => fault,
            other => panic!("no fault but {other:?}"),
        }
    }
    pub(super) fn slice(&self, span: crate::span::Span) -> &str {
        &self.text[span.range()]
    }
}

/// Runs one instruction on one thread: `%r1`, `%rd1`, ... hold the inputs, and the 64-bit result is taken from
/// `%r0`, `%rd0`, ... as `result` names.
pub(super) fn eval(setup: &str, instruction: &str, result: &str) -> u64 {
    let store = match result {
        r if r.starts_with("%rd") || r.starts_with("%fd") => format!("st.global.b64 [%out], {r};"),
        r if r.starts_with("%p") => format!("selp.b32 %r49, 1, 0, {r};\nst.global.b32 [%out], %r49;"),
        r if r.starts_with("%h") => format!("st.global.b16 [%out], {r};"),
        r => format!("st.global.b32 [%out], {r};"),
    };
    let body = format!("{setup}\n{instruction}\n{store}");
    kernel(&body).threads(1).buffer("out", vec![0; 8]).ok().longs(0)[0]
}
