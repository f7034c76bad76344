//! Which functions a kernel can reach, so that unlogged instructions count only where they may have run.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::instrument::SiteTable;
use crate::isa::{Effect, classify};
use crate::ptx::ast::{Block, Instruction, Module, Operand, Statement};

/// Indices into `SiteTable::unlogged` of the instructions that this kernel's code holds.
pub(super) fn unlogged(module: &Module<'_>, sites: &SiteTable, kernel: &str) -> Vec<u32> {
    if sites.unlogged().is_empty() {
        return Vec::new();
    }
    let reached = reachable(module, kernel);
    let indexed = (0u32..).zip(sites.unlogged());
    indexed.filter(|(_, unlogged)| reached.contains(&*unlogged.function)).map(|(index, _)| index).collect()
}

/// Names of the kernel and all it may call. A call through a register may reach every function.
fn reachable<'a>(module: &Module<'a>, kernel: &'a str) -> FxHashSet<&'a str> {
    let bodies: FxHashMap<&str, &Block<'a>> =
        module.functions().filter_map(|f| Some((f.name.text, f.body.as_ref()?))).collect();
    let mut reached = FxHashSet::default();
    let mut open = vec![kernel];
    while let Some(name) = open.pop() {
        if !reached.insert(name) {
            continue;
        }
        let Some(body) = bodies.get(name) else { continue };
        calls(body, &mut |instruction| match callee(instruction) {
            Some(callee) if module.functions().any(|f| f.name.text == callee) => open.push(callee),
            _ => open.extend(module.functions().filter(|f| f.body.is_some()).map(|f| f.name.text)),
        });
    }
    reached
}

fn calls<'a, 'b>(block: &'b Block<'a>, found: &mut impl FnMut(&'b Instruction<'a>)) {
    for statement in &block.statements {
        match statement {
            Statement::Block(inner) => calls(inner, found),
            Statement::Instruction(instruction) if classify(instruction).effect == Effect::Call => {
                found(instruction);
            }
            _ => {}
        }
    }
}

/// The name that a call names; a register, or a function.
fn callee<'a>(call: &Instruction<'a>) -> Option<&'a str> {
    call.operands.iter().find_map(|operand| match operand {
        Operand::Name(name, _) => Some(*name),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_that_can_run_count() {
        let text = "
            .version 9.0
            .target sm_90
            .address_size 64
            .func used() { frob [%r1]; ret; }
            .func other() { frob [%r1]; ret; }
            .func between() { { call.uni used, (); } ret; }
            .visible .entry direct() { call.uni between; ret; }
            .visible .entry indirect() { .reg .b64 %rd<2>; p: .callprototype _ (); call %rd1, (), p; ret; }
            .visible .entry alone() { ret; }";
        let parsed = crate::ptx::parse(text);
        assert_eq!(parsed.errors, []);
        let sites = SiteTable::new(&parsed.module);
        assert_eq!(sites.unlogged().len(), 2);
        assert_eq!(unlogged(&parsed.module, &sites, "direct"), [0]);
        assert_eq!(unlogged(&parsed.module, &sites, "indirect"), [0, 1]);
        assert_eq!(unlogged(&parsed.module, &sites, "alone"), [0u32; 0]);
    }
}
