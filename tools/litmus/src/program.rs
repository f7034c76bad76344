//! A litmus program, and its text in Dat3M's format.

use std::collections::BTreeMap;
use std::fmt;

/// Memory order of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of PTX")]
pub enum Order {
    Weak,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    Sc,
}

/// Scope of a strong instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of PTX")]
pub enum Scope {
    Cta,
    Gpu,
    Sys,
}

/// A constant or a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Value {
    Const(i32),
    Register(u32),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    /// Whether it holds.
    pub fn holds(self, a: i32, b: i32) -> bool {
        match self {
            Self::Eq => a == b,
            Self::Ne => a != b,
            Self::Lt => a < b,
            Self::Le => a <= b,
            Self::Gt => a > b,
            Self::Ge => a >= b,
        }
    }
}

/// What an instruction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the format")]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    And,
    Or,
    Xor,
}

/// What a read-modify-write writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Update {
    /// The operand.
    Exchange(Value),
    /// The second operand if the first was there.
    CompareAndSwap(Value, Value),
    /// Something computed from what was there.
    Compute(Arithmetic, Value),
}

/// One instruction of a thread. Locations are indices into `Program::locations`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields are the operands of the format")]
pub enum Instruction {
    Label(u32),
    Goto(u32),
    Branch {
        compare: Compare,
        a: Value,
        b: Value,
        to: u32,
    },
    Move {
        to: u32,
        from: Value,
    },
    Compute {
        operation: Arithmetic,
        to: u32,
        a: Value,
        b: Value,
    },
    Load {
        order: Order,
        scope: Scope,
        to: u32,
        at: usize,
    },
    Store {
        order: Order,
        scope: Scope,
        at: usize,
        value: Value,
    },
    /// `atom` with a register, `red` without.
    Update {
        order: Order,
        scope: Scope,
        to: Option<u32>,
        at: usize,
        update: Update,
    },
    Fence {
        order: Order,
        scope: Scope,
    },
    Barrier {
        waits: bool,
        id: u32,
    },
}

/// How an instruction accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The location.
    pub at: usize,
    /// Whether it may write.
    pub writes: bool,
    /// Its scope, if it is strong.
    pub scope: Option<Scope>,
}

impl Instruction {
    /// Its access, if it has one.
    pub fn access(&self) -> Option<Access> {
        let strong = |order, scope| (order != Order::Weak).then_some(scope);
        match *self {
            Self::Load { order, scope, at, .. } => {
                Some(Access { at, writes: false, scope: strong(order, scope) })
            }
            Self::Store { order, scope, at, .. } => {
                Some(Access { at, writes: true, scope: strong(order, scope) })
            }
            Self::Update { scope, at, .. } => Some(Access { at, writes: true, scope: Some(scope) }),
            _ => None,
        }
    }
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The block it is in.
    pub cta: u32,
    /// Registers that do not begin with 0.
    pub registers: BTreeMap<u32, i32>,
    /// Its instructions.
    pub code: Vec<Instruction>,
}

/// What is asked of the final states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Some final state satisfies the condition.
    Exists,
    /// None does.
    NotExists,
    /// All do.
    Forall,
}

/// A value of a final state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Term {
    Const(i32),
    Register { thread: usize, register: u32 },
    Location(usize),
}

/// A condition on a final state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Condition {
    Compare(Compare, Term, Term),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

/// The end of one execution.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    /// By location.
    pub memory: Vec<i32>,
    /// Registers by thread, those that the program names, in the order of `Program::registers`.
    pub registers: Vec<Vec<i32>>,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// What its author says of it.
    pub comment: String,
    /// Locations with their initial values.
    pub locations: Vec<(String, i32)>,
    /// Threads.
    pub threads: Vec<Thread>,
    /// What is asked.
    pub question: Question,
    /// Of what.
    pub condition: Condition,
}

impl Program {
    /// Registers that a thread names, sorted.
    pub fn registers(&self, thread: usize) -> Vec<u32> {
        let Some(own) = self.threads.get(thread) else { return Vec::new() };
        let mut found: Vec<u32> = own.registers.keys().copied().collect();
        let mut value = |value: Value| {
            if let Value::Register(register) = value {
                found.push(register);
            }
        };
        for instruction in &own.code {
            match *instruction {
                Instruction::Label(_)
                | Instruction::Goto(_)
                | Instruction::Fence { .. }
                | Instruction::Barrier { .. } => {}
                Instruction::Branch { a, b, .. } => [a, b].into_iter().for_each(&mut value),
                Instruction::Move { to, from } => {
                    [Value::Register(to), from].into_iter().for_each(&mut value)
                }
                Instruction::Compute { to, a, b, .. } => {
                    [Value::Register(to), a, b].into_iter().for_each(&mut value);
                }
                Instruction::Load { to, .. } => value(Value::Register(to)),
                Instruction::Store { value: stored, .. } => value(stored),
                Instruction::Update { to, update, .. } => {
                    to.map(Value::Register).into_iter().for_each(&mut value);
                    match update {
                        Update::Exchange(a) | Update::Compute(_, a) => value(a),
                        Update::CompareAndSwap(a, b) => [a, b].into_iter().for_each(&mut value),
                    }
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether two instructions that access one location are morally strong: each names a scope that holds the other
    /// thread. All accesses here are as large.
    pub fn morally_strong(&self, a: (usize, &Access), b: (usize, &Access)) -> bool {
        let same_cta = self.threads.get(a.0).map(|t| t.cta) == self.threads.get(b.0).map(|t| t.cta);
        let reaches = |access: &Access| access.scope.is_some_and(|scope| same_cta || scope != Scope::Cta);
        a.0 == b.0 || (reaches(a.1) && reaches(b.1))
    }

    /// One instruction as text.
    pub fn show(&self, instruction: &Instruction) -> String {
        let at = |at: usize| self.locations.get(at).map_or("?", |(name, _)| name.as_str());
        let mark = |order: Order, scope: Scope| match order {
            Order::Weak => order.to_string(),
            _ => format!("{order}.{scope}"),
        };
        match *instruction {
            Instruction::Label(label) => format!("LC{label}:"),
            Instruction::Goto(label) => format!("goto LC{label}"),
            Instruction::Branch { compare, a, b, to } => {
                let name = match compare {
                    Compare::Eq => "beq",
                    Compare::Ne => "bne",
                    Compare::Lt => "blt",
                    Compare::Le => "ble",
                    Compare::Gt => "bgt",
                    Compare::Ge => "bge",
                };
                format!("{name} {a}, {b}, LC{to}")
            }
            Instruction::Move { to, from } => format!("ld r{to}, {from}"),
            Instruction::Compute { operation, to, a, b } => format!("{operation} r{to}, {a}, {b}"),
            Instruction::Load { order, scope, to, at: place } => {
                format!("ld.{} r{to}, {}", mark(order, scope), at(place))
            }
            Instruction::Store { order, scope, at: place, value } => {
                format!("st.{} {}, {value}", mark(order, scope), at(place))
            }
            Instruction::Update { order, scope, to, at: place, update } => {
                let (name, operands) = match update {
                    Update::Exchange(a) => ("exch".to_owned(), a.to_string()),
                    Update::CompareAndSwap(a, b) => ("cas".to_owned(), format!("{a}, {b}")),
                    Update::Compute(operation, a) => (operation.to_string(), a.to_string()),
                };
                let place = at(place);
                match to {
                    Some(to) => format!("atom.{order}.{scope}.{name} r{to}, {place}, {operands}"),
                    None => format!("red.{order}.{scope}.{name} {place}, {operands}"),
                }
            }
            Instruction::Fence { order, scope } => format!("fence.{order}.{scope}"),
            Instruction::Barrier { waits, id } => {
                format!("bar.cta.{} {id}", if waits { "sync" } else { "arrive" })
            }
        }
    }

    /// Whether a final state satisfies the condition.
    pub fn satisfies(&self, state: &State) -> bool {
        self.holds(&self.condition, state)
    }

    fn holds(&self, condition: &Condition, state: &State) -> bool {
        match condition {
            Condition::Compare(compare, a, b) => compare.holds(self.value(a, state), self.value(b, state)),
            Condition::Not(inner) => !self.holds(inner, state),
            Condition::And(a, b) => self.holds(a, state) && self.holds(b, state),
            Condition::Or(a, b) => self.holds(a, state) || self.holds(b, state),
        }
    }

    fn value(&self, term: &Term, state: &State) -> i32 {
        match *term {
            Term::Const(value) => value,
            Term::Location(at) => state.memory.get(at).copied().unwrap_or(0),
            Term::Register { thread, register } => {
                let at = self.registers(thread).iter().position(|r| *r == register);
                at.and_then(|at| state.registers.get(thread)?.get(at)).copied().unwrap_or(0)
            }
        }
    }

    fn show_condition(&self, condition: &Condition) -> String {
        let term = |term: &Term| match *term {
            Term::Const(value) => value.to_string(),
            Term::Register { thread, register } => format!("P{thread}:r{register}"),
            Term::Location(at) => self.locations.get(at).map_or("?", |(name, _)| name).to_owned(),
        };
        match condition {
            Condition::Compare(compare, a, b) => format!("{} {compare} {}", term(a), term(b)),
            Condition::Not(inner) => format!("~({})", self.show_condition(inner)),
            Condition::And(a, b) => format!("({} /\\ {})", self.show_condition(a), self.show_condition(b)),
            Condition::Or(a, b) => format!("({} \\/ {})", self.show_condition(a), self.show_condition(b)),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Weak => "weak",
            Self::Relaxed => "relaxed",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::AcqRel => "acq_rel",
            Self::Sc => "sc",
        })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cta => "cta",
            Self::Gpu => "gpu",
            Self::Sys => "sys",
        })
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const(value) => write!(f, "{value}"),
            Self::Register(register) => write!(f, "r{register}"),
        }
    }
}

impl fmt::Display for Compare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        })
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
        })
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exists => "exists",
            Self::NotExists => "~exists",
            Self::Forall => "forall",
        })
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PTX {}\n\"{}\"\n{{", self.name, self.comment)?;
        for (name, value) in &self.locations {
            write!(f, "{name}={value};")?;
        }
        writeln!(f)?;
        for (number, thread) in self.threads.iter().enumerate() {
            for (register, value) in &thread.registers {
                writeln!(f, "P{number}:r{register}={value};")?;
            }
        }
        writeln!(f, "}}")?;
        let heads = self.threads.iter().enumerate();
        let heads: Vec<String> = heads.map(|(n, thread)| format!("P{n}@cta {},gpu 0", thread.cta)).collect();
        writeln!(f, " {} ;", heads.join(" | "))?;
        let rows = self.threads.iter().map(|thread| thread.code.len()).max().unwrap_or(0);
        for row in 0..rows {
            let cell = |thread: &Thread| thread.code.get(row).map_or(String::new(), |i| self.show(i));
            let cells: Vec<String> = self.threads.iter().map(cell).collect();
            writeln!(f, " {} ;", cells.join(" | "))?;
        }
        writeln!(f, "{} ({})", self.question, self.show_condition(&self.condition))
    }
}
