//! The engine against verdicts computed by enumeration: small programs in Dat3M's litmus format, run here under many
//! interleavings. A program that has no race in any execution must never be reported; a racy one must be, under some.
//!
//! `tests/litmus/verdicts.txt` has the verdicts (`DRF` or `RACY`) of an enumerator of the PTX 9.1 axioms. Each thread is
//! the first lane of a warp of its own; memory is sequentially consistent, which reaches at least one racy execution of
//! each racy program.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::Random;
use libtest_mimic::{Arguments, Failed, Trial};
use ptxrace::abi::{self, Encoder, Unit};
use ptxrace::backend::{Launch, LaunchEnd, LaunchInfo, Plan, Sink};
use ptxrace::diag::Severity;
use ptxrace::engine::Engine;
use ptxrace::instrument::{SiteKind, SiteTable};
use ptxrace::ptx;

/// Interleavings tried for each program.
const SCHEDULES: u64 = 3000;
/// A loop goes round this often, then its thread gives up.
const ROUNDS: u32 = 4;

#[derive(Clone, Debug)]
enum Op {
    Label(String),
    Jump(String),
    Branch {
        equal: bool,
        a: String,
        b: String,
        to: String,
    },
    Compute {
        add: bool,
        to: String,
        a: String,
        b: String,
    },
    Move {
        to: String,
        from: String,
    },
    /// An instruction with a site: its PTX, the litmus words and arguments.
    Memory {
        words: Vec<String>,
        args: Vec<String>,
    },
}

struct Program {
    memory: BTreeMap<String, i64>,
    /// The block of each thread.
    blocks: Vec<u32>,
    threads: Vec<Vec<Op>>,
}

fn parse(text: &str) -> Program {
    let (_, rest) = text.split_once('{').expect("an initial state");
    let (init, rest) = rest.split_once('}').expect("its end");
    let mut memory = BTreeMap::new();
    for part in init.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').expect("name=value");
        memory.insert(name.trim().to_owned(), value.trim().parse().expect("a number"));
    }
    let body = rest
        .split("exists")
        .next()
        .expect("a body")
        .split("forall")
        .next()
        .expect("a body")
        .trim_end_matches(['~', '\n', ' ']);
    let mut rows = body.split(';').map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let heads = rows.next().expect("thread heads");
    let blocks = heads.iter().map(|head| {
        let cta = head.split("cta").nth(1).expect("@cta").split(',').next().expect("a number");
        cta.trim().parse().expect("a number")
    });
    let blocks: Vec<u32> = blocks.collect();
    let mut threads = vec![Vec::new(); blocks.len()];
    for row in rows {
        for (thread, cell) in threads.iter_mut().zip(row) {
            if !cell.is_empty() {
                thread.push(parse_op(cell));
            }
        }
    }
    Program { memory, blocks, threads }
}

fn parse_op(cell: &str) -> Op {
    if let Some(label) = cell.strip_suffix(':') {
        return Op::Label(label.trim().into());
    }
    let (name, args) = cell.split_once(' ').unwrap_or((cell, ""));
    let args: Vec<String> = args.split(',').map(|a| a.trim().to_owned()).filter(|a| !a.is_empty()).collect();
    let arg = |at: usize| args[at].clone();
    match name {
        "goto" => Op::Jump(arg(0)),
        "beq" | "bne" => Op::Branch { equal: name == "beq", a: arg(0), b: arg(1), to: arg(2) },
        "add" | "sub" => Op::Compute { add: name == "add", to: arg(0), a: arg(1), b: arg(2) },
        "ld" => Op::Move { to: arg(0), from: arg(1) },
        _ => Op::Memory { words: name.split('.').map(str::to_owned).collect(), args },
    }
}

/// The PTX of a memory operation.
fn ptx_of(words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ld", order @ ..] => format!("ld.{}.global.u32 %r1, [%rd1];", order.join(".")),
        ["st", order @ ..] => format!("st.{}.global.u32 [%rd1], %r1;", order.join(".")),
        ["atom", order, scope, "cas"] => {
            format!("atom.{order}.{scope}.global.cas.b32 %r1, [%rd1], %r2, %r3;")
        }
        ["atom", order, scope, "exch"] => format!("atom.{order}.{scope}.global.exch.b32 %r1, [%rd1], %r2;"),
        ["atom", order, scope, _] => format!("atom.{order}.{scope}.global.add.u32 %r1, [%rd1], %r2;"),
        ["red", order, scope, _] => format!("red.{order}.{scope}.global.add.u32 [%rd1], %r2;"),
        ["fence", order, scope] => format!("fence.{order}.{scope};"),
        ["bar", "cta", kind] => format!("barrier.{kind} 0, 32;"),
        other => panic!("unknown operation {other:?}"),
    }
}

struct Machine<'p> {
    program: &'p Program,
    sites: &'p SiteTable,
    /// Site of each operation, by thread.
    ids: Vec<Vec<u32>>,
    /// Warp of each thread in its block.
    warps: Vec<u8>,
    units: Vec<Unit>,
    ticket: u64,
}

#[derive(Default)]
struct Thread {
    at: usize,
    registers: BTreeMap<String, i64>,
    jumps: u32,
    waiting: Option<(u32, u32)>,
    done: bool,
}

impl Machine<'_> {
    fn address(&self, name: &str) -> u64 {
        0x1000 + 64 * self.program.memory.keys().position(|key| key == name).expect("a location") as u64
    }

    fn emit(&mut self, thread: usize, site: u32, a: u64, read: u64, written: u64, mask: u32) {
        let payload = self.sites.sites()[site as usize].payload();
        let tickets = (self.ticket + 1, self.ticket + 2);
        if payload.tickets {
            self.ticket += 2;
        }
        Encoder {
            site,
            mask,
            block: self.program.blocks[thread],
            warp: self.warps[thread],
            payload,
            tickets,
            a: &[a; 32],
            read: &[read; 32],
            written: &[written; 32],
        }
        .encode(&mut self.units);
    }

    /// How many threads of the block name this barrier.
    fn participants(&self, thread: usize, id: &str) -> u32 {
        let block = self.program.blocks[thread];
        let names = |ops: &Vec<Op>| {
            ops.iter()
                .any(|op| matches!(op, Op::Memory { words, args } if words[0] == "bar" && args[0] == id))
        };
        let of_block = self.program.threads.iter().zip(&self.program.blocks).filter(|(_, b)| **b == block);
        of_block.filter(|(ops, _)| names(ops)).count() as u32
    }

    fn run(&mut self, random: &mut Random, exit: u32) {
        let count = self.program.threads.len();
        let mut memory: BTreeMap<String, i64> = self.program.memory.clone();
        let mut threads: Vec<Thread> = (0..count).map(|_| Thread::default()).collect();
        let mut arrived: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
        loop {
            let ready: Vec<usize> =
                (0..count).filter(|t| !threads[*t].done && threads[*t].waiting.is_none()).collect();
            if ready.is_empty() {
                return;
            }
            let t = ready[random.below(ready.len())];
            let Some(op) = self.program.threads[t].get(threads[t].at).cloned() else {
                threads[t].done = true;
                self.emit(t, exit, 0, 0, 0, 1);
                continue;
            };
            let site = self.ids[t][threads[t].at];
            threads[t].at += 1;
            let value = |thread: &Thread, name: &str| -> i64 {
                name.parse().unwrap_or_else(|_| thread.registers.get(name).copied().unwrap_or(0))
            };
            let jump = |thread: &mut Thread, to: &str| {
                let target = self.program.threads[t]
                    .iter()
                    .position(|op| matches!(op, Op::Label(name) if name == to))
                    .expect("a label");
                if target < thread.at {
                    thread.jumps += 1;
                }
                // Giving up ends the thread: nothing after the loop has happened.
                if thread.jumps > ROUNDS * 8 { thread.at = usize::MAX } else { thread.at = target }
            };
            match op {
                Op::Label(_) => {}
                Op::Jump(to) => jump(&mut threads[t], &to),
                Op::Branch { equal, a, b, to } => {
                    if (value(&threads[t], &a) == value(&threads[t], &b)) == equal {
                        jump(&mut threads[t], &to);
                    }
                }
                Op::Compute { add, to, a, b } => {
                    let (a, b) = (value(&threads[t], &a), value(&threads[t], &b));
                    threads[t].registers.insert(to, if add { a + b } else { a - b });
                }
                Op::Move { to, from } => {
                    let from = value(&threads[t], &from);
                    threads[t].registers.insert(to, from);
                }
                Op::Memory { words, args } => match words[0].as_str() {
                    "ld" => {
                        let read = memory[&args[1]];
                        threads[t].registers.insert(args[0].clone(), read);
                        self.emit(t, site, self.address(&args[1]), read as u64, 0, 1);
                    }
                    "st" => {
                        let written = value(&threads[t], &args[1]);
                        memory.insert(args[0].clone(), written);
                        self.emit(t, site, self.address(&args[0]), 0, written as u64, 1);
                    }
                    kind @ ("atom" | "red") => {
                        let args = if kind == "atom" { &args[1..] } else { &args[..] };
                        let read = memory[&args[0]];
                        let operand = value(&threads[t], &args[1]);
                        let written = match words[3].as_str() {
                            "cas" if read == operand => value(&threads[t], &args[2]),
                            "cas" => read,
                            "exch" => operand,
                            "sub" => read - operand,
                            _ => read + operand,
                        };
                        memory.insert(args[0].clone(), written);
                        self.emit(t, site, self.address(&args[0]), read as u64, written as u64, 1);
                        if let (Op::Memory { args, .. }, "atom") =
                            (&self.program.threads[t][threads[t].at - 1], kind)
                        {
                            threads[t].registers.insert(args[0].clone(), read);
                        }
                    }
                    "fence" => self.emit(t, site, 0, 0, 0, 1),
                    _ => {
                        let id: u32 = args[0].parse().expect("a barrier");
                        let expected = self.participants(t, &args[0]);
                        self.emit(t, site, abi::barrier_word(id, Some(expected * 32)), 0, 0, 1);
                        if words[2] == "sync" {
                            threads[t].waiting = Some((self.program.blocks[t], id));
                        }
                        let here = arrived.entry((self.program.blocks[t], id)).or_default();
                        here.push(t);
                        if here.len() as u32 == expected {
                            for other in std::mem::take(here) {
                                threads[other].waiting = None;
                            }
                        }
                    }
                },
            }
        }
    }
}

/// What the engine says over all schedules: the rule and instructions of each race that is an error.
fn races(program: &Program) -> BTreeMap<String, u64> {
    let mut text = String::from(".version 9.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n");
    text.push_str(".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n");
    for op in program.threads.iter().flatten() {
        if let Op::Memory { words, .. } = op {
            writeln!(text, "{}", ptx_of(words)).expect("a string takes all");
        }
    }
    text.push_str("ret;\n}\n");
    let parsed = ptx::parse(&text);
    assert_eq!(parsed.errors, [], "{text}");
    let sites = Arc::new(SiteTable::new(&parsed.module));
    let exit = sites.sites().iter().find(|s| s.kind == SiteKind::Exit).expect("a site for `ret`").id.0;
    let mut next = 0;
    let ids: Vec<Vec<u32>> = program
        .threads
        .iter()
        .map(|ops| {
            ops.iter()
                .map(|op| {
                    let site = next;
                    next += u32::from(matches!(op, Op::Memory { .. }));
                    site
                })
                .collect()
        })
        .collect();
    let warps: Vec<u8> = (0..program.blocks.len())
        .map(|t| program.blocks[..t].iter().filter(|b| **b == program.blocks[t]).count() as u8)
        .collect();
    let most =
        program.blocks.iter().map(|b| program.blocks.iter().filter(|o| *o == b).count()).max().unwrap_or(1)
            as u32;
    let blocks = program.blocks.iter().max().copied().unwrap_or(0) + 1;
    let launch = Launch {
        kernel: "k".into(),
        grid: [blocks, 1, 1],
        block: [32 * most, 1, 1],
        cluster: None,
        shared: 0,
        stream: 0,
        after: vec![],
        args: vec![],
    };
    let plan = Plan { buffers: vec![], launches: vec![launch] };
    let mut found = BTreeMap::new();
    for seed in 0..SCHEDULES {
        let mut machine = Machine {
            program,
            sites: &sites,
            ids: ids.clone(),
            warps: warps.clone(),
            units: Vec::new(),
            ticket: 0,
        };
        // Only the first lane of each warp takes part.
        for block in 0..blocks {
            for warp in 0..most {
                let used =
                    program.blocks.iter().zip(&warps).any(|(b, w)| *b == block && u32::from(*w) == warp);
                let mask = if used { !1 } else { u32::MAX };
                Encoder {
                    site: exit,
                    mask,
                    block,
                    warp: warp as u8,
                    payload: abi::Payload::NONE,
                    tickets: (0, 0),
                    a: &[0; 32],
                    read: &[0; 32],
                    written: &[0; 32],
                }
                .encode(&mut machine.units);
            }
        }
        machine.run(&mut Random(seed), exit);
        let mut engine = Engine::new(Arc::clone(&sites), &plan);
        engine.begin(&LaunchInfo { index: 0, regions: vec![] });
        engine.records(&machine.units);
        engine.end(&LaunchEnd::default());
        let report = engine.finish();
        assert_eq!((report.degraded, report.damaged), (0, None), "seed {seed}");
        for finding in report.findings.iter().filter(|f| f.severity == Severity::Error) {
            let name =
                |at: usize| sites.get(finding.witnesses[at].site).map_or("", |site| &site.opcode).to_owned();
            *found.entry(format!("{} {} / {}", finding.rule.id(), name(0), name(1))).or_insert(0) += 1;
        }
    }
    found
}

fn check(path: &Path, racy: bool) -> Result<(), Failed> {
    let program = parse(&fs::read_to_string(path)?);
    let found = races(&program);
    match (racy, found.is_empty()) {
        (true, true) => Err("no schedule is reported, but the program has races".into()),
        (false, false) => Err(format!("reported, but the program has no race: {found:#?}").into()),
        _ => Ok(()),
    }
}

fn main() {
    // Another folder of programs with their verdicts can be given, to try many more.
    let folder = match std::env::var_os("PTXRACE_LITMUS") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/litmus"),
    };
    let verdicts = fs::read_to_string(folder.join("verdicts.txt")).expect("verdicts");
    let mut trials = Vec::new();
    for line in verdicts.lines().filter(|line| !line.trim().is_empty()) {
        let (name, verdict) = line.split_once(' ').expect("a name and a verdict");
        let path = folder.join(format!("{name}.litmus"));
        let racy = match verdict.trim() {
            "RACY" => true,
            "DRF" => false,
            other => panic!("{name}: unknown verdict `{other}`"),
        };
        trials.push(Trial::test(name, move || check(&path, racy)));
    }
    assert!(!trials.is_empty(), "no programs in {}", folder.display());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
