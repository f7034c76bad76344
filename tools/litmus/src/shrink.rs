//! Makes a program smaller as long as something still holds of it.

use crate::program::{Instruction, Order, Program, Scope};

/// The smallest program that is found by leaving out threads and instructions and by widening scopes.
pub fn shrink(program: &Program, mut holds: impl FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    loop {
        let next = candidates(&best).into_iter().find(|candidate| holds(candidate));
        match next {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

fn candidates(program: &Program) -> Vec<Program> {
    let mut all = Vec::new();
    if program.threads.len() > 1 {
        for thread in 0..program.threads.len() {
            let mut smaller = program.clone();
            smaller.threads.remove(thread);
            all.push(smaller);
        }
    }
    for (number, thread) in program.threads.iter().enumerate() {
        for (at, instruction) in thread.code.iter().enumerate() {
            let mut smaller = program.clone();
            let code = &mut smaller.threads[number].code;
            code.remove(at);
            let wanted = |label: u32| {
                code.iter().any(|i| match i {
                    Instruction::Goto(to) | Instruction::Branch { to, .. } => *to == label,
                    _ => false,
                })
            };
            if !matches!(instruction, Instruction::Label(label) if wanted(*label)) {
                all.push(smaller);
            }
        }
    }
    for (number, thread) in program.threads.iter().enumerate() {
        for (at, instruction) in thread.code.iter().enumerate() {
            for simpler in simpler(instruction) {
                let mut changed = program.clone();
                changed.threads[number].code[at] = simpler;
                all.push(changed);
            }
        }
    }
    // Locations that nobody names go last, since that renumbers the others.
    for at in 0..program.locations.len() {
        let named = program.threads.iter().flat_map(|thread| &thread.code).filter_map(Instruction::access);
        if program.locations.len() > 1 && at > 0 && named.clone().all(|access| access.at != at) {
            let mut smaller = program.clone();
            smaller.locations.remove(at);
            for instruction in smaller.threads.iter_mut().flat_map(|thread| &mut thread.code) {
                match instruction {
                    Instruction::Load { at: own, .. }
                    | Instruction::Store { at: own, .. }
                    | Instruction::Update { at: own, .. } => *own -= usize::from(*own > at),
                    _ => {}
                }
            }
            all.push(smaller);
        }
    }
    all
}

/// The same with a scope or an order that is more usual.
fn simpler(instruction: &Instruction) -> Vec<Instruction> {
    let mut all = Vec::new();
    let mut changed = *instruction;
    match &mut changed {
        Instruction::Load { order, scope, .. }
        | Instruction::Store { order, scope, .. }
        | Instruction::Update { order, scope, .. }
        | Instruction::Fence { order, scope }
            if *scope != Scope::Gpu && *order != Order::Weak =>
        {
            *scope = Scope::Gpu;
            all.push(changed);
        }
        _ => {}
    }
    let mut changed = *instruction;
    match &mut changed {
        Instruction::Load { order, .. }
        | Instruction::Store { order, .. }
        | Instruction::Update { order, .. }
            if *order > Order::Relaxed =>
        {
            *order = Order::Relaxed;
            all.push(changed);
        }
        _ => {}
    }
    all
}
