//! A litmus program as PTX with what to launch.

use std::fmt::Write as _;

use ptxrace::backend::{Arg, Buffer, ElementType, Launch, Owner, Plan};

use crate::program::{Arithmetic, Compare, Instruction, Order, Program, Scope, State, Update, Value};

/// Where the threads of a block run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// Each is the first lane of a warp of its own.
    Warps,
    /// They are the lanes of one warp. Barriers become `bar.warp.sync`.
    Lanes,
}

/// Bytes between two locations, so that no two share a word of 16 bytes.
const STRIDE: usize = 16;

/// The thread and the instruction of the program that a line of PTX is.
type Origin = Option<(usize, usize)>;

/// A program, compiled.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The PTX.
    pub text: String,
    /// What to launch.
    pub plan: Plan,
    /// By line of the text, from 0: the thread and the instruction of the program that it is.
    pub lines: Vec<Option<(usize, usize)>>,
    locations: usize,
    /// By thread: where its final registers are in the buffer, and how many.
    registers: Vec<(usize, usize)>,
}

/// How often a thread may take each jump backwards; then it gives up, and the execution does not count.
#[derive(Clone, Copy, Debug)]
pub struct Rounds(pub u32);

/// Compiles a program; an error is one sentence.
pub fn compile(program: &Program, placing: Placing, rounds: Rounds) -> Result<Compiled, String> {
    let blocks = program.threads.iter().map(|thread| thread.cta + 1).max().unwrap_or(1);
    let of_block = |cta: u32| program.threads.iter().filter(move |thread| thread.cta == cta).count() as u32;
    let most = (0..blocks).map(of_block).max().unwrap_or(1);
    if most > 32 {
        return Err("more than 32 threads in a block".into());
    }
    let arrives = |i: &Instruction| matches!(i, Instruction::Barrier { waits: false, .. });
    if placing == Placing::Lanes && program.threads.iter().any(|thread| thread.code.iter().any(arrives)) {
        return Err("lanes of a warp cannot arrive at a barrier without waiting".into());
    }
    let mut registers = Vec::new();
    let mut bytes = STRIDE * program.locations.len();
    for thread in 0..program.threads.len() {
        let count = program.registers(thread).len();
        registers.push((bytes, count));
        // One word says that the thread came to its end.
        bytes += (4 * (1 + count)).next_multiple_of(STRIDE);
    }
    let mut contents = vec![0; bytes];
    for ((_, value), slot) in program.locations.iter().zip(contents.chunks_exact_mut(STRIDE)) {
        for (to, from) in slot.iter_mut().zip(value.to_le_bytes()) {
            *to = from;
        }
    }
    let writer =
        Writer { program, placing, rounds: rounds.0, text: String::new(), lines: Vec::new(), jumps: 0 };
    let (text, lines) = writer.module(most, &registers)?;
    let threads = if placing == Placing::Warps { 32 * most } else { most };
    let launch = Launch {
        kernel: "litmus".into(),
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        cluster: None,
        shared: 0,
        stream: 0,
        device: 0,
        after: Vec::new(),
        args: vec![Arg::Buffer(0)],
    };
    let buffer = Buffer {
        name: "memory".into(),
        ty: ElementType::I32,
        contents,
        unwritten: false,
        owner: Owner::Device,
    };
    let plan = Plan { buffers: vec![buffer], launches: vec![launch], ..Plan::default() };
    Ok(Compiled { text, plan, lines, locations: program.locations.len(), registers })
}

impl Compiled {
    /// The final state that a buffer holds; `None` if a thread did not come to its end.
    pub fn state(&self, buffer: &[u8]) -> Option<State> {
        let word = |at: usize| {
            let bytes = buffer.get(at..)?.first_chunk::<4>()?;
            Some(i32::from_le_bytes(*bytes))
        };
        let memory = (0..self.locations).map(|at| word(STRIDE * at)).collect::<Option<_>>()?;
        let mut registers = Vec::new();
        for (at, count) in &self.registers {
            if word(*at)? != 1 {
                return None;
            }
            registers.push((0..*count).map(|n| word(at + 4 + 4 * n)).collect::<Option<_>>()?);
        }
        Some(State { memory, registers })
    }

    /// The location at an offset of the buffer.
    pub fn location(&self, offset: u64) -> Option<usize> {
        let at = usize::try_from(offset).ok()? / STRIDE;
        (at < self.locations).then_some(at)
    }
}

struct Writer<'p> {
    program: &'p Program,
    placing: Placing,
    rounds: u32,
    text: String,
    lines: Vec<Origin>,
    /// Instructions of earlier threads.
    jumps: usize,
}

impl Writer<'_> {
    fn put(&mut self, line: &str, origin: Origin) {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines.push(origin);
    }

    fn module(mut self, most: u32, registers: &[(usize, usize)]) -> Result<(String, Vec<Origin>), String> {
        let highest =
            (0..self.program.threads.len()).flat_map(|t| self.program.registers(t)).max().unwrap_or(0);
        let jumps: usize = self.program.threads.iter().map(|thread| thread.code.len()).sum();
        let head = format!(
            ".version 8.7\n.target sm_90\n.address_size 64\n\n.visible .entry litmus(.param .u64 memory)\n{{\n\
             .reg .pred %p;\n.reg .b32 %r<{}>;\n.reg .b32 %loop<{}>;\n.reg .b32 %key, %own, %t;\n.reg .b64 %m;",
            highest + 1,
            jumps + 1
        );
        head.lines().for_each(|line| self.put(line, None));
        self.put("ld.param.u64 %m, [memory];", None);
        self.put("cvta.to.global.u64 %m, %m;", None);
        self.put("mov.u32 %t, %tid.x;", None);
        if self.placing == Placing::Warps {
            self.put("and.b32 %own, %t, 31;", None);
            self.put("setp.ne.u32 %p, %own, 0;", None);
            self.put("@%p exit;", None);
            self.put("shr.u32 %t, %t, 5;", None);
        }
        self.put("mov.u32 %key, %ctaid.x;", None);
        self.put(&format!("mad.lo.u32 %key, %key, {most}, %t;"), None);
        for number in 0..self.program.threads.len() {
            let key = self.key(number, most);
            self.put(&format!("setp.eq.u32 %p, %key, {key};"), None);
            self.put(&format!("@%p bra THREAD{number};"), None);
        }
        self.put("exit;", None);
        for (number, (at, count)) in registers.iter().enumerate() {
            self.thread(number)?;
            self.finals(number, *at, *count);
        }
        self.put("}", None);
        Ok((self.text, self.lines))
    }

    /// Which of its block's threads it is, after all those of earlier blocks.
    fn key(&self, number: usize, most: u32) -> u32 {
        let threads = &self.program.threads;
        let cta = threads.get(number).map_or(0, |thread| thread.cta);
        cta * most + threads.iter().take(number).filter(|thread| thread.cta == cta).count() as u32
    }

    /// Writes the final registers, four words at a time.
    fn finals(&mut self, number: usize, at: usize, count: usize) {
        self.put("mov.u32 %t, 1;", None);
        let named = self.program.registers(number);
        let words: Vec<String> = std::iter::once("%t".to_owned())
            .chain(named.iter().take(count).map(|register| format!("%r{register}")))
            .collect();
        for (chunk, words) in words.chunks(4).enumerate() {
            let mut words = words.to_vec();
            words.resize(4, "%t".into());
            let offset = at + 16 * chunk;
            self.put(&format!("st.global.v4.u32 [%m+{offset}], {{{}}};", words.join(", ")), None);
        }
        self.put("exit;", None);
    }

    fn thread(&mut self, number: usize) -> Result<(), String> {
        let Some(thread) = self.program.threads.get(number) else { return Ok(()) };
        self.put(&format!("THREAD{number}:"), None);
        for register in self.program.registers(number) {
            let value = thread.registers.get(&register).copied().unwrap_or(0);
            self.put(&format!("mov.b32 %r{register}, {value};"), None);
        }
        let first = self.jumps;
        for (at, instruction) in thread.code.iter().enumerate() {
            if let Instruction::Goto(to) | Instruction::Branch { to, .. } = *instruction
                && self.is_backward(number, at, to)
            {
                self.put(&format!("mov.b32 %loop{}, 0;", first + at), None);
            }
        }
        let mut gives_up = false;
        for (at, instruction) in thread.code.iter().enumerate() {
            gives_up |= self.instruction(number, at, instruction)?;
        }
        self.jumps += thread.code.len();
        if gives_up {
            self.put(&format!("bra DONE{number};"), None);
            self.put(&format!("STOP{number}:"), None);
            self.put("exit;", None);
            self.put(&format!("DONE{number}:"), None);
        }
        Ok(())
    }

    fn instruction(&mut self, number: usize, at: usize, instruction: &Instruction) -> Result<bool, String> {
        let origin = Some((number, at));
        let mut gives_up = false;
        let target = |label: u32| format!("LC{number}x{label}");
        match *instruction {
            Instruction::Label(label) => self.put(&format!("{}:", target(label)), None),
            Instruction::Goto(to) => {
                gives_up = self.bounded(number, at, to);
                self.put(&format!("bra {};", target(to)), None);
            }
            Instruction::Branch { compare, a, b, to } => {
                let compare = match compare {
                    Compare::Eq => "eq",
                    Compare::Ne => "ne",
                    Compare::Lt => "lt",
                    Compare::Le => "le",
                    Compare::Gt => "gt",
                    Compare::Ge => "ge",
                };
                let (a, b) = (operand(a), operand(b));
                self.put(&format!("mov.b32 %t, {a};"), None);
                if self.is_backward(number, at, to) {
                    // Count only when it is taken.
                    self.put(&format!("setp.{compare}.s32 %p, %t, {b};"), None);
                    self.put(&format!("@!%p bra SKIP{number}x{at};"), None);
                    gives_up = self.bounded(number, at, to);
                    self.put(&format!("bra {};", target(to)), None);
                    self.put(&format!("SKIP{number}x{at}:"), None);
                } else {
                    self.put(&format!("setp.{compare}.s32 %p, %t, {b};"), None);
                    self.put(&format!("@%p bra {};", target(to)), None);
                }
            }
            Instruction::Move { to, from } => self.put(&format!("mov.b32 %r{to}, {};", operand(from)), None),
            Instruction::Compute { operation, to, a, b } => {
                let name = match operation {
                    Arithmetic::Add => "add.s32",
                    Arithmetic::Sub => "sub.s32",
                    Arithmetic::Mul => "mul.lo.s32",
                    Arithmetic::Div => "div.s32",
                    Arithmetic::And => "and.b32",
                    Arithmetic::Or => "or.b32",
                    Arithmetic::Xor => "xor.b32",
                };
                self.put(&format!("mov.b32 %t, {};", operand(a)), None);
                self.put(&format!("{name} %r{to}, %t, {};", operand(b)), None);
            }
            Instruction::Load { order, scope, to, at: place } => {
                let line = format!("ld{}.global.u32 %r{to}, [%m+{}];", mark(order, scope), STRIDE * place);
                self.put(&line, origin);
            }
            Instruction::Store { order, scope, at: place, value } => {
                self.put(&format!("mov.b32 %t, {};", operand(value)), None);
                self.put(
                    &format!("st{}.global.u32 [%m+{}], %t;", mark(order, scope), STRIDE * place),
                    origin,
                );
            }
            Instruction::Update { order, scope, to, at: place, update } => {
                self.update(origin, mark(order, scope), to, place, update)?;
            }
            Instruction::Fence { order, scope } => {
                self.put(&format!("fence.{order}.{scope};"), origin);
            }
            Instruction::Barrier { waits, id } => self.barrier(number, waits, id, origin),
        }
        Ok(gives_up)
    }

    fn update(
        &mut self,
        origin: Origin,
        mark: String,
        to: Option<u32>,
        place: usize,
        update: Update,
    ) -> Result<(), String> {
        let (name, operands) = match update {
            Update::Exchange(value) => ("exch.b32", operand(value)),
            Update::CompareAndSwap(old, new) => ("cas.b32", format!("{}, {}", operand(old), operand(new))),
            Update::Compute(operation, value) => {
                let name = match operation {
                    Arithmetic::Add | Arithmetic::Sub => "add.u32",
                    Arithmetic::And => "and.b32",
                    Arithmetic::Or => "or.b32",
                    Arithmetic::Xor => "xor.b32",
                    Arithmetic::Mul | Arithmetic::Div => {
                        return Err(format!("PTX has no atomic `{operation}`"));
                    }
                };
                self.put(&format!("mov.b32 %t, {};", operand(value)), None);
                if operation == Arithmetic::Sub {
                    self.put("neg.s32 %t, %t;", None);
                }
                (name, "%t".to_owned())
            }
        };
        let place = STRIDE * place;
        let line = match to {
            Some(to) => format!("atom{mark}.global.{name} %r{to}, [%m+{place}], {operands};"),
            None => format!("red{mark}.global.{name} [%m+{place}], {operands};"),
        };
        self.put(&line, origin);
        Ok(())
    }

    /// All threads of the block whose code names a barrier take part in it.
    fn barrier(&mut self, number: usize, waits: bool, id: u32, origin: Origin) {
        let Some(own) = self.program.threads.get(number) else { return };
        let names = |i: &Instruction| matches!(i, Instruction::Barrier { id: other, .. } if *other == id);
        let mut lanes = 0u32;
        for (lane, thread) in self.program.threads.iter().filter(|thread| thread.cta == own.cta).enumerate() {
            if thread.code.iter().any(names) {
                lanes |= 1 << lane;
            }
        }
        let line = match self.placing {
            Placing::Warps => {
                let kind = if waits { "sync" } else { "arrive" };
                format!("barrier.{kind} {id}, {};", 32 * lanes.count_ones())
            }
            Placing::Lanes => format!("bar.warp.sync {lanes};"),
        };
        self.put(&line, origin);
    }

    fn is_backward(&self, number: usize, at: usize, to: u32) -> bool {
        let code = self.program.threads.get(number).map_or(&[][..], |thread| &thread.code);
        code.iter().position(|i| *i == Instruction::Label(to)).is_some_and(|label| label <= at)
    }

    /// Counts a jump backwards and gives up when there were enough. Tells whether it is one.
    fn bounded(&mut self, number: usize, at: usize, to: u32) -> bool {
        if !self.is_backward(number, at, to) {
            return false;
        }
        let (count, rounds) = (format!("%loop{}", self.jumps + at), self.rounds);
        self.put(&format!("add.u32 {count}, {count}, 1;"), None);
        self.put(&format!("setp.gt.u32 %p, {count}, {rounds};"), None);
        self.put(&format!("@%p bra STOP{number};"), None);
        true
    }
}

fn operand(value: Value) -> String {
    match value {
        Value::Const(value) => value.to_string(),
        Value::Register(register) => format!("%r{register}"),
    }
}

fn mark(order: Order, scope: Scope) -> String {
    let mut mark = format!(".{order}");
    if order != Order::Weak {
        let _ = write!(mark, ".{scope}");
    }
    mark
}
