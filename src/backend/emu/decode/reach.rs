//! Which functions a kernel can reach, and where its shared variables are.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::backend::emu::special::RESERVED_SHARED;
use crate::ptx::ast::{Block, Function, InitValue, Item, Module, Operand, Statement, VarSpace, Variable};
use crate::span::Span;

/// The entry and all functions with a body whose names it or they mention. Functions whose address stands in a
/// variable count as soon as something is called by address.
pub(super) fn reachable<'m, 'a>(module: &'m Module<'a>, entry: &'m Function<'a>) -> Vec<&'m Function<'a>> {
    let mut bodies: FxHashMap<&str, &Function<'_>> = FxHashMap::default();
    for function in module.functions().filter(|f| f.body.is_some()) {
        bodies.insert(function.name.text, function);
    }
    for item in &module.items {
        if let Item::Directive(d) = item
            && d.name.text == ".alias"
            && let Some((alias, to)) = d.args.text.split_once(',')
            && let Some(function) = bodies.get(to.trim()).copied()
        {
            bodies.insert(alias.trim(), function);
        }
    }
    let mut found = vec![entry];
    let mut seen = FxHashSet::from_iter([entry.name.text]);
    let mut next = 0;
    while let Some(function) = found.get(next).copied() {
        next += 1;
        let mut names = FxHashSet::default();
        if let Some(body) = &function.body {
            mentioned(body, &mut names);
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
    found
}

/// Every name in the operands of a body.
pub(super) fn mentioned<'a>(block: &Block<'a>, names: &mut FxHashSet<&'a str>) {
    for statement in &block.statements {
        match statement {
            Statement::Block(inner) => mentioned(inner, names),
            Statement::Instruction(instruction) => {
                instruction.operands.iter().for_each(|o| in_operand(o, names));
            }
            _ => {}
        }
    }
}

fn in_operand<'a>(operand: &Operand<'a>, names: &mut FxHashSet<&'a str>) {
    match operand {
        Operand::Name(name, _) => drop(names.insert(name)),
        Operand::Offset(offset, _) => drop(names.insert(offset.0.text)),
        Operand::Address(address) => {
            names.extend(address.base.map(|word| word.text));
            address.extra.iter().for_each(|o| in_operand(o, names));
        }
        Operand::Vector(items) | Operand::List(items) => {
            items.iter().for_each(|o| in_operand(o, names));
        }
        Operand::Pair(both, _) => both.iter().for_each(|o| in_operand(o, names)),
        Operand::Not(inner, _) | Operand::Negated(inner, _) => in_operand(inner, names),
        Operand::Int(..) | Operand::F32(..) | Operand::F64(..) => {}
    }
}

/// Special registers that tell where reserved shared memory is.
const RESERVED_PREFIX: &str = "%reserved_smem_offset";

/// Offsets of the shared variables of a kernel.
#[derive(Debug, Default)]
pub(super) struct SharedLayout {
    offsets: FxHashMap<u32, u64>,
    /// Bytes of all static ones.
    pub(super) bytes: u64,
    /// Where dynamic memory begins.
    pub(super) dynamic_base: u64,
}

impl SharedLayout {
    /// The offset of the variable with this span.
    pub(super) fn at(&self, variable: Span) -> Option<u64> {
        self.offsets.get(&key(variable)).copied()
    }
}

/// Variables of one declaration share their start; their ends differ.
fn key(variable: Span) -> u32 {
    variable.end
}

/// Lays out the shared variables that the functions use: module scope first, then function by function; static ones
/// in order of declaration, then the dynamic ones, which all begin at one place.
pub(super) fn lay_out_shared(module: &Module<'_>, functions: &[&Function<'_>]) -> SharedLayout {
    let mut names = FxHashSet::default();
    let mut variables: Vec<&Variable<'_>> = Vec::new();
    for function in functions {
        if let Some(body) = &function.body {
            mentioned(body, &mut names);
        }
    }
    let is_shared = |v: &&Variable<'_>| v.space == VarSpace::Shared;
    variables.extend(module.variables().filter(is_shared).filter(|v| names.contains(v.name.text)));
    for function in functions {
        if let Some(body) = &function.body {
            in_block(body, &mut variables);
        }
    }
    let mut layout = SharedLayout::default();
    // The driver keeps the first part for itself; cooperative groups find their barriers there.
    if names.iter().any(|name| name.starts_with(RESERVED_PREFIX)) {
        layout.bytes = RESERVED_SHARED;
    }
    let dynamic = |v: &&&Variable<'_>| v.bytes().is_none_or(|bytes| bytes == 0);
    let mut by_name: FxHashMap<&str, u64> = FxHashMap::default();
    for variable in variables.iter().filter(|v| !dynamic(v)) {
        let module_scope = variable.linkage.is_some();
        if let (true, Some(at)) = (module_scope, by_name.get(variable.name.text)) {
            layout.offsets.insert(key(variable.span), *at);
            continue;
        }
        let at = layout.bytes.next_multiple_of(variable.alignment().clamp(1, 1 << 16));
        layout.offsets.insert(key(variable.span), at);
        by_name.insert(variable.name.text, at);
        layout.bytes = at.saturating_add(variable.bytes().unwrap_or(0)).min(1 << 40);
    }
    let align = variables.iter().filter(dynamic).map(|v| v.alignment()).max().unwrap_or(1);
    layout.dynamic_base = layout.bytes.next_multiple_of(align.clamp(16, 1 << 16));
    for variable in variables.iter().filter(dynamic) {
        layout.offsets.insert(key(variable.span), layout.dynamic_base);
    }
    layout
}

fn in_block<'m, 'a>(block: &'m Block<'a>, out: &mut Vec<&'m Variable<'a>>) {
    for statement in &block.statements {
        match statement {
            Statement::Block(inner) => in_block(inner, out),
            Statement::Variable(variable) if variable.space == VarSpace::Shared => out.push(variable),
            _ => {}
        }
    }
}
