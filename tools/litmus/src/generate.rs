//! Random programs: a few threads that pass messages, lock, count and meet, mostly almost right. The same seed gives the
//! same program.

use crate::program::{
    Arithmetic, Compare, Condition, Instruction, Order, Program, Question, Scope, Term, Thread, Update, Value,
};
use crate::random::Random;

/// How large programs are at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Threads, two to four.
    pub threads: usize,
    /// Accesses of a thread.
    pub each: usize,
    /// Accesses of all threads; an enumeration of more takes longer.
    pub all: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self { threads: 4, each: 5, all: 8 }
    }
}

/// The program of a seed.
pub fn program(seed: u64, size: Size) -> Program {
    let mut generator = Generator { random: Random(seed), size, accesses: 0, writes: 0 };
    // Seeds that follow each other give programs that have nothing in common.
    generator.random.draw();
    generator.program(seed)
}

struct Generator {
    random: Random,
    size: Size,
    accesses: usize,
    writes: i32,
}

/// What a location is for. Data is mostly weak, flags mostly strong.
const DATA: [usize; 2] = [0, 1];
const FLAGS: [usize; 2] = [2, 3];

impl Generator {
    fn program(&mut self, seed: u64) -> Program {
        let names = ["x", "y", "f", "g"];
        let threads = if self.random.chance(50) { 2 } else { 3 + usize::from(self.random.chance(10)) };
        let threads = threads.min(self.size.threads);
        let ctas = 1 + self.random.below(threads);
        let places: Vec<u32> = (0..threads).map(|_| self.random.below(ctas) as u32).collect();
        // Blocks whose threads meet at a barrier, and where the threads of the rest stand.
        let meets: Vec<bool> = (0..ctas).map(|_| self.random.chance(30)).collect();
        let mut program = Program {
            name: format!("random-{seed}"),
            comment: "made at random".into(),
            locations: names.iter().map(|name| ((*name).to_owned(), 0)).collect(),
            threads: Vec::new(),
            question: Question::Exists,
            condition: Condition::Compare(Compare::Eq, Term::Location(0), Term::Const(99)),
        };
        for (number, cta) in places.iter().enumerate() {
            let alone = places.iter().filter(|other| *other == cta).count() == 1;
            let meets = !alone && meets.get(*cta as usize).copied().unwrap_or(false);
            let left = threads - number - 1;
            let code = self.thread(meets, left);
            program.threads.push(Thread { cta: *cta, code, ..Thread::default() });
        }
        program
    }

    fn thread(&mut self, meets: bool, threads_left: usize) -> Vec<Instruction> {
        let mut code = Vec::new();
        let most = self.size.all.saturating_sub(self.accesses + threads_left);
        let length = (1 + self.random.below(self.size.each)).min(most.max(1));
        let mut barriers = if meets { 1 + usize::from(self.random.chance(15)) } else { 0 };
        let mut barrier = 0;
        let mut guarded = false;
        let mut register = 0;
        let mut own = 0;
        while own < length {
            if barriers > 0 && !guarded && self.random.chance(35) {
                code.push(Instruction::Barrier { waits: !self.random.chance(25), id: barrier });
                (barrier, barriers) = (barrier + 1, barriers - 1);
            }
            match self.random.below(20) {
                0..=2 => {
                    let fence = self.fence();
                    // A fence at the very end or twice in a row says nothing.
                    if !matches!(code.last(), Some(Instruction::Fence { .. })) {
                        code.push(fence);
                    }
                }
                3..=7 => {
                    code.push(self.load(&DATA, &mut register));
                    own += 1;
                }
                8..=11 => {
                    let value = self.value(register);
                    code.push(self.store(&DATA, value));
                    own += 1;
                }
                12..=14 => {
                    if self.random.chance(40) {
                        code.push(self.fence());
                    }
                    let value = self.value(register);
                    code.push(self.store(&FLAGS, value));
                    own += 1;
                }
                15..=17 => {
                    let to = register;
                    // A loop around the load, or a branch over the rest.
                    let (spins, guards) = (self.random.chance(12), self.random.chance(75));
                    let label = code.len() as u32;
                    if spins {
                        code.push(Instruction::Label(label));
                    }
                    // Writes in a loop are beyond what an enumeration by values can bound.
                    let load = if !spins && self.random.chance(30) {
                        self.update(&FLAGS, &mut register, true)
                    } else {
                        self.load(&FLAGS, &mut register)
                    };
                    code.push(load);
                    own += 1;
                    let seen = Value::Const(self.random.below(3) as i32);
                    let compare = if self.random.chance(80) { Compare::Ne } else { Compare::Eq };
                    if spins {
                        code.push(Instruction::Branch {
                            compare,
                            a: Value::Register(to),
                            b: seen,
                            to: label,
                        });
                    } else if guards {
                        code.push(Instruction::Branch { compare, a: Value::Register(to), b: seen, to: 99 });
                    }
                    guarded |= spins || guards;
                    if self.random.chance(45) {
                        code.push(self.fence());
                    }
                }
                _ => {
                    let flags = self.random.chance(75);
                    let returns = self.random.chance(70);
                    let places = if flags { &FLAGS } else { &DATA };
                    code.push(self.update(places, &mut register, returns));
                    own += 1;
                }
            }
        }
        if guarded {
            code.push(Instruction::Label(99));
        }
        self.accesses += own;
        code
    }

    fn scope(&mut self) -> Scope {
        self.random
            .pick(&[Scope::Gpu, Scope::Gpu, Scope::Gpu, Scope::Cta, Scope::Cta, Scope::Sys])
            .unwrap_or(Scope::Gpu)
    }

    fn fence(&mut self) -> Instruction {
        let orders = [Order::AcqRel, Order::AcqRel, Order::Sc, Order::Sc, Order::Acquire, Order::Release];
        let order = self.random.pick(&orders).unwrap_or(Order::AcqRel);
        Instruction::Fence { order, scope: self.scope() }
    }

    /// A place: the first one is the usual one.
    fn place(&mut self, places: &[usize; 2]) -> usize {
        places[usize::from(self.random.chance(20))]
    }

    fn strength(&mut self, places: &[usize; 2], strong: [Order; 3]) -> Order {
        let weak = if *places == DATA { 75 } else { 8 };
        if self.random.chance(weak) {
            Order::Weak
        } else {
            self.random.pick(&strong).unwrap_or(Order::Relaxed)
        }
    }

    fn load(&mut self, places: &[usize; 2], register: &mut u32) -> Instruction {
        let order = self.strength(places, [Order::Relaxed, Order::Relaxed, Order::Acquire]);
        let scope = if order == Order::Weak { Scope::Sys } else { self.scope() };
        let to = *register;
        *register += 1;
        Instruction::Load { order, scope, to, at: self.place(places) }
    }

    fn store(&mut self, places: &[usize; 2], value: Value) -> Instruction {
        let order = self.strength(places, [Order::Relaxed, Order::Relaxed, Order::Release]);
        let scope = if order == Order::Weak { Scope::Sys } else { self.scope() };
        Instruction::Store { order, scope, at: self.place(places), value }
    }

    /// Mostly 1; now and then another, or what a register holds.
    fn value(&mut self, registers: u32) -> Value {
        self.writes += 1;
        match self.random.below(10) {
            0..=4 => Value::Const(1),
            5..=7 => Value::Const(2),
            8 if registers > 0 => Value::Register(self.random.below(registers as usize) as u32),
            _ => Value::Const(2 + self.writes),
        }
    }

    fn update(&mut self, places: &[usize; 2], register: &mut u32, returns: bool) -> Instruction {
        let orders = if returns {
            [Order::Relaxed, Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel]
        } else {
            [Order::Relaxed, Order::Relaxed, Order::Relaxed, Order::Release, Order::Release]
        };
        let order = self.random.pick(&orders).unwrap_or(Order::Relaxed);
        let scope = self.scope();
        let update = match self.random.below(8) {
            // The new value is another one: records do not tell a success that changes nothing from a failure.
            0 | 1 if returns => {
                self.writes += 1;
                let old = self.random.below(2) as i32;
                let new = self.random.pick(&[old + 1, old + 1, 2 + self.writes]).unwrap_or(2);
                Update::CompareAndSwap(Value::Const(old), Value::Const(new))
            }
            2 | 3 if returns => Update::Exchange(self.value(0)),
            4 => Update::Compute(Arithmetic::Sub, Value::Const(1)),
            _ => Update::Compute(Arithmetic::Add, Value::Const(1)),
        };
        let to = returns.then(|| {
            *register += 1;
            *register - 1
        });
        Instruction::Update { order, scope, to, at: self.place(places), update }
    }
}
