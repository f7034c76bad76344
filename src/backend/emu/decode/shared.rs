//! Where a kernel's shared variables are.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::backend::emu::special::RESERVED_SHARED;
use crate::instrument::each_name;
use crate::ptx::ast::{Block, Function, Module, Statement, VarSpace, Variable};
use crate::span::Span;

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
            each_name(body, &mut |name| names.extend([name]));
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
