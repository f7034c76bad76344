//! Reads Dat3M's litmus format, PTX dialect: generic proxy, one GPU, CTA barriers by constant id. Whatever else the format
//! has is refused by name.

use std::collections::BTreeMap;
use std::fmt;

use crate::program::{
    Arithmetic, Compare, Condition, Instruction, Order, Program, Question, Scope, State, Term, Thread,
    Update, Value,
};

/// Why a text is no litmus program, or none that can be run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Line, from 1.
    pub line: usize,
    /// One sentence.
    pub what: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

type Result<T> = std::result::Result<T, Refused>;

/// Reads a program.
pub fn parse(text: &str) -> Result<Program> {
    let text = &without_comments(text);
    let line = |rest: &str| text[..text.len() - rest.len()].matches('\n').count() + 1;
    let refuse = |rest: &str, what: &str| Refused { line: line(rest), what: what.to_owned() };

    let (head, rest) = text.split_once('{').ok_or_else(|| refuse("", "there is no initial state in `{}`"))?;
    let name = head.trim_start().strip_prefix("PTX").ok_or_else(|| refuse(text, "expected `PTX`"))?;
    let (name, comment) = name.split_once('\n').unwrap_or((name, ""));
    let (init, body) = rest.split_once('}').ok_or_else(|| refuse(rest, "the initial state has no end"))?;
    let mut reader = Reader::default();
    let mut registers = Vec::new();
    for part in parts(init, ';') {
        let at = line(&text[offset(text, part) + part.len()..]);
        reader.line = at;
        reader.initial(part, &mut registers)?;
    }

    let keyword = ["~exists", "~ exists", "exists", "forall", "filter", "locations"]
        .iter()
        .filter_map(|word| body.find(word))
        .min()
        .ok_or_else(|| refuse("", "there is no `exists`, `~exists` or `forall`"))?;
    let (code, asked) = body.split_at(keyword);
    let mut threads: Vec<Thread> = Vec::new();
    for row in parts(code, ';') {
        reader.line = line(&text[offset(text, row) + row.len()..]);
        if threads.is_empty() {
            threads =
                row.split('|').enumerate().map(|(n, cell)| reader.head(n, cell)).collect::<Result<_>>()?;
            continue;
        }
        for (number, cell) in row.split('|').map(str::trim).enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let instruction = reader.instruction(cell)?;
            let Some(thread) = threads.get_mut(number) else {
                return reader.refuse("more cells than threads");
            };
            thread.code.push(instruction);
        }
    }
    for (thread, register, value) in registers {
        let Some(thread) = threads.get_mut(thread) else { return reader.refuse("a register of no thread") };
        thread.registers.insert(register, value);
    }

    reader.line = line(asked);
    let (question, condition) = reader.question(asked)?;
    let mut program = Program {
        name: name.trim().to_owned(),
        comment: comment.trim().trim_matches('"').to_owned(),
        locations: reader.locations,
        threads,
        question,
        condition,
    };
    check_labels(&program, reader.line)?;
    // Numbers of blocks without gaps, in the order of the given ones.
    let mut ctas: Vec<u32> = program.threads.iter().map(|thread| thread.cta).collect();
    ctas.sort_unstable();
    ctas.dedup();
    for thread in &mut program.threads {
        thread.cta = ctas.binary_search(&thread.cta).map_or(0, |at| at as u32);
    }
    Ok(program)
}

fn without_comments(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    // A comment between quotes may hold an address.
    lines.map(|line| format!("{line}\n")).collect()
}

fn parts(text: &str, end: char) -> impl Iterator<Item = &str> {
    text.split(end).map(str::trim).filter(|part| !part.is_empty())
}

/// Where a part of a text begins.
fn offset(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len())
}

fn check_labels(program: &Program, line: usize) -> Result<()> {
    for (number, thread) in program.threads.iter().enumerate() {
        for instruction in &thread.code {
            if let Instruction::Goto(to) | Instruction::Branch { to, .. } = instruction
                && !thread.code.contains(&Instruction::Label(*to))
            {
                return Err(Refused { line, what: format!("P{number} has no label LC{to}") });
            }
        }
    }
    Ok(())
}

#[derive(Default)]
struct Reader {
    line: usize,
    locations: Vec<(String, i32)>,
    names: BTreeMap<String, usize>,
}

impl Reader {
    fn refuse<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(Refused { line: self.line, what: what.into() })
    }

    fn location(&mut self, name: &str) -> Result<usize> {
        let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !letters || !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return self.refuse(format!("`{name}` is no location"));
        }
        let next = self.locations.len();
        let at = *self.names.entry(name.to_owned()).or_insert(next);
        if at == next {
            self.locations.push((name.to_owned(), 0));
        }
        Ok(at)
    }

    fn register(&self, text: &str) -> Result<u32> {
        match text.strip_prefix('r').and_then(|digits| digits.parse().ok()) {
            Some(register) => Ok(register),
            None => self.refuse(format!("`{text}` is no register")),
        }
    }

    fn number(&self, text: &str) -> Result<i32> {
        let hex = text.strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16));
        let value = match hex {
            Some(Ok(value)) => Some(value.cast_signed()),
            Some(Err(_)) => None,
            None => text.parse().ok(),
        };
        value.map_or_else(|| self.refuse(format!("`{text}` is no number of 32 bits")), Ok)
    }

    fn value(&self, text: &str) -> Result<Value> {
        if text.starts_with('r') {
            return self.register(text).map(Value::Register);
        }
        self.number(text).map(Value::Const)
    }

    fn label(&self, text: &str) -> Result<u32> {
        match text.strip_prefix("LC").and_then(|digits| digits.parse().ok()) {
            Some(label) => Ok(label),
            None => self.refuse(format!("`{text}` is no label")),
        }
    }

    fn initial(&mut self, part: &str, registers: &mut Vec<(usize, u32, i32)>) -> Result<()> {
        if part.contains('@') {
            return self.refuse("other proxies are not covered");
        }
        let Some((left, right)) = part.split_once('=').map(|(l, r)| (l.trim(), r.trim())) else {
            return self.refuse(format!("expected `name=value`, found `{part}`"));
        };
        let value = self.number(right)?;
        if let Some((thread, register)) = left.split_once(':') {
            let thread = self.thread(thread)?;
            registers.push((thread, self.register(register.trim())?, value));
            return Ok(());
        }
        let at = self.location(left)?;
        if let Some((_, initial)) = self.locations.get_mut(at) {
            *initial = value;
        }
        Ok(())
    }

    fn thread(&self, text: &str) -> Result<usize> {
        let digits = text.trim().trim_start_matches('P');
        digits.parse().map_or_else(|_| self.refuse(format!("`{text}` is no thread")), Ok)
    }

    fn head(&self, number: usize, cell: &str) -> Result<Thread> {
        let parts = cell.split_once('@').and_then(|(thread, place)| {
            let (cta, gpu) = place.split_once(',')?;
            let id = |text: &str, word: &str| text.trim().strip_prefix(word)?.trim().parse::<u32>().ok();
            Some((thread.trim() == format!("P{number}"), id(cta, "cta")?, id(gpu, "gpu")?))
        });
        match parts {
            Some((true, cta, 0)) => Ok(Thread { cta, ..Thread::default() }),
            Some((true, _, _)) => self.refuse("a second GPU is not covered"),
            _ => self.refuse(format!("expected `P{number}@cta N,gpu 0`, found `{}`", cell.trim())),
        }
    }

    fn instruction(&mut self, cell: &str) -> Result<Instruction> {
        if let Some(label) = cell.strip_suffix(':') {
            return self.label(label.trim()).map(Instruction::Label);
        }
        let (name, rest) = cell.split_once(char::is_whitespace).unwrap_or((cell, ""));
        let words: Vec<&str> = name.split('.').collect();
        let args: Vec<&str> = parts(rest, ',').collect();
        let instruction = match (words.as_slice(), args.as_slice()) {
            (["goto"], [to]) => Instruction::Goto(self.label(to)?),
            ([branch], [a, b, to]) if branch.starts_with('b') => {
                let compare = match *branch {
                    "beq" => Compare::Eq,
                    "bne" => Compare::Ne,
                    "blt" => Compare::Lt,
                    "ble" => Compare::Le,
                    "bgt" => Compare::Gt,
                    "bge" => Compare::Ge,
                    _ => return self.refuse(format!("`{branch}` is no branch")),
                };
                Instruction::Branch { compare, a: self.value(a)?, b: self.value(b)?, to: self.label(to)? }
            }
            (["ld"], [to, from]) => Instruction::Move { to: self.register(to)?, from: self.value(from)? },
            ([operation], [to, a, b]) => Instruction::Compute {
                operation: self.operation(operation)?,
                to: self.register(to)?,
                a: self.value(a)?,
                b: self.value(b)?,
            },
            (["ld", mark @ ..], [to, at]) => {
                let (order, scope) = self.mark(mark, &[Order::Weak, Order::Relaxed, Order::Acquire])?;
                Instruction::Load { order, scope, to: self.register(to)?, at: self.location(at)? }
            }
            (["st", mark @ ..], [at, value]) => {
                let (order, scope) = self.mark(mark, &[Order::Weak, Order::Relaxed, Order::Release])?;
                Instruction::Store { order, scope, at: self.location(at)?, value: self.value(value)? }
            }
            (["atom", order, scope, operation], [to, at, operands @ ..]) => {
                let orders = [Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel];
                let (order, scope) = self.mark(&[order, scope], &orders)?;
                let to = Some(self.register(to)?);
                Instruction::Update {
                    order,
                    scope,
                    to,
                    at: self.location(at)?,
                    update: self.update(operation, operands)?,
                }
            }
            (["red", order, scope, operation], [at, operand]) => {
                let (order, scope) = self.mark(&[order, scope], &[Order::Relaxed, Order::Release])?;
                let update = self.update(operation, &[operand])?;
                if matches!(update, Update::Exchange(_)) {
                    return self.refuse("`red` has no `exch`");
                }
                Instruction::Update { order, scope, to: None, at: self.location(at)?, update }
            }
            (["fence", "proxy", ..], _) => return self.refuse("other proxies are not covered"),
            (["fence", mark @ ..], []) => {
                let orders = [Order::Sc, Order::AcqRel, Order::Acquire, Order::Release];
                let (order, scope) = self.mark(mark, &orders)?;
                Instruction::Fence { order, scope }
            }
            (["bar", "cta", mode @ ("sync" | "arrive")], [id]) => {
                let id = self.number(id)?;
                match u32::try_from(id).ok().filter(|id| *id < 16) {
                    Some(id) => Instruction::Barrier { waits: *mode == "sync", id },
                    None => return self.refuse("a block has barriers 0 to 15"),
                }
            }
            (["bar", "cta", ..], [_, _, ..]) => {
                return self.refuse("barriers with a register id or a thread count are not covered");
            }
            _ => return self.refuse(format!("`{cell}` is not covered")),
        };
        Ok(instruction)
    }

    fn operation(&self, name: &str) -> Result<Arithmetic> {
        Ok(match name {
            "add" => Arithmetic::Add,
            "sub" => Arithmetic::Sub,
            "mul" => Arithmetic::Mul,
            "div" => Arithmetic::Div,
            "and" => Arithmetic::And,
            "or" => Arithmetic::Or,
            "xor" => Arithmetic::Xor,
            _ => return self.refuse(format!("`{name}` is no operation")),
        })
    }

    fn update(&self, operation: &str, operands: &[&str]) -> Result<Update> {
        match (operation, operands) {
            ("exch", [a]) => Ok(Update::Exchange(self.value(a)?)),
            ("cas", [a, b]) => Ok(Update::CompareAndSwap(self.value(a)?, self.value(b)?)),
            ("mul" | "div", _) => self.refuse(format!("PTX has no atomic `{operation}`")),
            (_, [a]) => Ok(Update::Compute(self.operation(operation)?, self.value(a)?)),
            _ => self.refuse(format!("`{operation}` has other operands")),
        }
    }

    fn mark(&self, words: &[&str], possible: &[Order]) -> Result<(Order, Scope)> {
        let (order, scope) = match *words {
            [order] => (order, None),
            [order, scope] => (order, Some(scope)),
            _ => return self.refuse("expected an order and a scope"),
        };
        let found = possible.iter().copied().find(|o| o.to_string() == order);
        let Some(order) = found else {
            return self.refuse(format!("`{order}` is no order of this instruction"));
        };
        let scope = match scope {
            None if order == Order::Weak => Scope::Sys,
            Some("cta") => Scope::Cta,
            Some("gpu") => Scope::Gpu,
            Some("sys") => Scope::Sys,
            _ => return self.refuse("expected the scope `cta`, `gpu` or `sys`"),
        };
        Ok((order, scope))
    }

    fn question(&mut self, text: &str) -> Result<(Question, Condition)> {
        let text = text.trim();
        let (question, rest) = if let Some(rest) = text.strip_prefix("exists") {
            (Question::Exists, rest)
        } else if let Some(rest) = text.strip_prefix("forall") {
            (Question::Forall, rest)
        } else if let Some(rest) = text.strip_prefix('~').and_then(|t| t.trim_start().strip_prefix("exists"))
        {
            (Question::NotExists, rest)
        } else {
            return self.refuse("`filter` and `locations` are not covered");
        };
        let tokens = tokens(rest.trim().trim_end_matches(';'));
        let mut at = 0;
        let condition = self.or(&tokens, &mut at)?;
        if let Some(token) = tokens.get(at) {
            return self.refuse(format!("`{token}` after the condition"));
        }
        Ok((question, condition))
    }

    fn or(&mut self, tokens: &[String], at: &mut usize) -> Result<Condition> {
        let mut left = self.and(tokens, at)?;
        while tokens.get(*at).is_some_and(|token| token == "\\/") {
            *at += 1;
            left = Condition::Or(Box::new(left), Box::new(self.and(tokens, at)?));
        }
        Ok(left)
    }

    fn and(&mut self, tokens: &[String], at: &mut usize) -> Result<Condition> {
        let mut left = self.atom(tokens, at)?;
        while tokens.get(*at).is_some_and(|token| token == "/\\") {
            *at += 1;
            left = Condition::And(Box::new(left), Box::new(self.atom(tokens, at)?));
        }
        Ok(left)
    }

    fn atom(&mut self, tokens: &[String], at: &mut usize) -> Result<Condition> {
        match tokens.get(*at).map(String::as_str) {
            Some("(") => {
                *at += 1;
                let inner = self.or(tokens, at)?;
                if tokens.get(*at).is_none_or(|token| token != ")") {
                    return self.refuse("expected `)`");
                }
                *at += 1;
                Ok(inner)
            }
            Some("~") => {
                *at += 1;
                Ok(Condition::Not(Box::new(self.atom(tokens, at)?)))
            }
            _ => {
                let a = self.term(tokens, at)?;
                let compare = match tokens.get(*at).map(String::as_str) {
                    Some("=" | "==") => Compare::Eq,
                    Some("!=") => Compare::Ne,
                    Some("<") => Compare::Lt,
                    Some("<=") => Compare::Le,
                    Some(">") => Compare::Gt,
                    Some(">=") => Compare::Ge,
                    _ => return self.refuse("expected a comparison"),
                };
                *at += 1;
                Ok(Condition::Compare(compare, a, self.term(tokens, at)?))
            }
        }
    }

    fn term(&mut self, tokens: &[String], at: &mut usize) -> Result<Term> {
        let Some(token) = tokens.get(*at) else { return self.refuse("expected a value, found the end") };
        *at += 1;
        if tokens.get(*at).is_some_and(|token| token == ":") {
            let thread = self.thread(token)?;
            let register = tokens.get(*at + 1).map(String::as_str).unwrap_or_default();
            *at += 2;
            return Ok(Term::Register { thread, register: self.register(register)? });
        }
        if token.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return self.number(token).map(Term::Const);
        }
        self.location(token).map(Term::Location)
    }
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let pair = ["/\\", "\\/", "==", "!=", "<=", ">="].iter().find(|pair| rest.starts_with(**pair));
        let length = match pair {
            Some(pair) => pair.len(),
            None if word(first) || first == '-' => 1 + rest[1..].find(|c| !word(c)).unwrap_or(rest.len() - 1),
            None => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token.to_owned());
        rest = after.trim_start();
    }
    tokens
}

impl Program {
    /// A state as text: the locations, then the registers by thread.
    pub fn show_state(&self, state: &State) -> String {
        let memory =
            self.locations.iter().zip(&state.memory).map(|((name, _), value)| format!("{name}={value}"));
        let registers = state.registers.iter().enumerate().flat_map(|(thread, values)| {
            let named = self.registers(thread);
            let shown: Vec<String> =
                named.iter().zip(values).map(|(r, value)| format!("P{thread}:r{r}={value}")).collect();
            shown
        });
        memory.chain(registers).collect::<Vec<_>>().join(" ")
    }
}
