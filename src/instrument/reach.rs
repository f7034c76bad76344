//! Which functions a kernel can reach.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::isa::{Effect, classify};
use crate::ptx::ast::{Block, Function, InitValue, Item, Module, Operand, Statement};

/// What a kernel can reach.
#[derive(Clone, Debug)]
pub struct Reach<'m, 'a> {
    /// The kernel and the functions that it and they name.
    pub functions: Vec<&'m Function<'a>>,
    /// Something is called by its address, which may come from elsewhere.
    pub by_address: bool,
}

/// The entry and all functions with a body whose names it or they mention. Functions whose address stands in a
/// variable count as soon as something is called by address.
pub fn reachable<'m, 'a>(module: &'m Module<'a>, entry: &'m Function<'a>) -> Reach<'m, 'a> {
    let mut bodies: FxHashMap<&str, &Function<'_>> = FxHashMap::default();
    for function in module.functions().filter(|f| f.body.is_some()) {
        bodies.insert(function.name.text, function);
    }
    for (alias, of) in aliases(module) {
        if let Some(function) = bodies.get(of).copied() {
            bodies.insert(alias, function);
        }
    }
    let mut by_address = false;
    let mut found = vec![entry];
    let mut seen = FxHashSet::from_iter([entry.name.text]);
    let mut next = 0;
    while let Some(function) = found.get(next).copied() {
        next += 1;
        let mut names = FxHashSet::default();
        if let Some(body) = &function.body {
            each_name(body, &mut |name| names.extend([name]));
            by_address |= calls_by_address(body, module);
        }
        let variables = module.variables().filter(|v| names.contains(v.name.text));
        let stored: Vec<&str> = variables
            .flat_map(|v| v.init.iter().flat_map(|init| &init.values))
            .filter_map(|value| match value {
                InitValue::Symbol(symbol) => Some(symbol.name.text),
                _ => None,
            })
            .collect();
        // A table may point to a table: follow names through all variables once something is stored in one.
        let all = module.variables().flat_map(|v| v.init.iter().flat_map(|init| &init.values));
        let deep: Vec<&str> = if stored.is_empty() {
            Vec::new()
        } else {
            all.filter_map(|value| match value {
                InitValue::Symbol(symbol) => Some(symbol.name.text),
                _ => None,
            })
            .collect()
        };
        let mut sorted: Vec<&str> = names.into_iter().chain(stored).chain(deep).collect();
        sorted.sort_unstable();
        for name in sorted {
            if let Some(callee) = bodies.get(name).copied()
                && seen.insert(callee.name.text)
            {
                found.push(callee);
            }
        }
    }
    Reach { functions: found, by_address }
}

/// Whether something is called that is no function's name.
fn calls_by_address(block: &Block<'_>, module: &Module<'_>) -> bool {
    block.statements.iter().any(|statement| match statement {
        Statement::Block(inner) => calls_by_address(inner, module),
        Statement::Instruction(instruction) if classify(instruction).effect == Effect::Call => {
            let callee = instruction.operands.iter().find_map(|operand| match operand {
                Operand::Name(name, _) => Some(*name),
                _ => None,
            });
            !callee.is_some_and(|callee| is_function(module, callee))
        }
        _ => false,
    })
}

fn is_function(module: &Module<'_>, name: &str) -> bool {
    module.functions().any(|function| function.name.text == name)
        || aliases(module).any(|(alias, _)| alias == name)
}

/// Names that stand for functions, and of which.
fn aliases<'m>(module: &'m Module<'_>) -> impl Iterator<Item = (&'m str, &'m str)> {
    let directives = module.items.iter().filter_map(|item| match item {
        Item::Directive(directive) if directive.name.text == ".alias" => directive.args.text.split_once(','),
        _ => None,
    });
    directives.map(|(alias, of)| (alias.trim(), of.trim()))
}

/// Hands out every name in the operands of a body, as often as it occurs.
pub fn each_name<'a>(block: &Block<'a>, found: &mut impl FnMut(&'a str)) {
    for statement in &block.statements {
        match statement {
            Statement::Block(inner) => each_name(inner, found),
            Statement::Instruction(instruction) => {
                instruction.operands.iter().for_each(|operand| operand.each_name(found));
            }
            _ => {}
        }
    }
}
