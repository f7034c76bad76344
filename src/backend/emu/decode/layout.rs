//! Where module variables and functions are: one layout for all launches of a run.

use rustc_hash::FxHashMap;

use crate::backend::emu::inserted::Inserted;
use crate::backend::emu::memory::{CODE_STRIDE, CODE_WINDOW, Kind, Memory};
use crate::ptx::ast::{Block, InitValue, Module, Statement, VarSpace, Variable};

/// Addresses of everything with a fixed one.
#[derive(Debug, Default)]
pub(in super::super) struct Layout {
    /// Names of all functions; their positions are their numbers.
    pub(in super::super) function_names: Vec<String>,
    numbers: FxHashMap<String, u32>,
    /// By where the variable's name stands, since functions may repeat names.
    variables: FxHashMap<u32, u64>,
    by_name: FxHashMap<String, u64>,
}

impl Layout {
    /// The number of a function.
    pub(in super::super) fn function(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// The address of a variable.
    pub(super) fn address(&self, variable: &Variable<'_>) -> Option<u64> {
        let declared = self.variables.get(&variable.name.span.start);
        declared.or_else(|| self.by_name.get(variable.name.text)).copied()
    }

    /// The addresses of all variables, each once.
    pub(in super::super) fn bases(&self) -> Vec<u64> {
        let mut bases: Vec<_> = self.variables.values().copied().collect();
        bases.sort_unstable();
        bases.dedup();
        bases
    }

    /// The address of a module variable.
    pub(in super::super) fn named(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).copied()
    }
}

/// Allocates and initialises the module's variables.
pub(in super::super) fn lay_out(module: &Module<'_>, inserted: &Inserted, memory: &mut Memory) -> Layout {
    let mut layout = Layout::default();
    // Inserted functions come last, so that the others have the numbers that they have without.
    let own = module.functions().filter(|f| !inserted.holds(f.span));
    for function in own.chain(module.functions().filter(|f| inserted.holds(f.span))) {
        let next = u32::try_from(layout.function_names.len()).unwrap_or(u32::MAX);
        if !layout.numbers.contains_key(function.name.text) {
            layout.numbers.insert(function.name.text.into(), next);
            layout.function_names.push(function.name.text.into());
        }
    }
    for item in &module.items {
        if let crate::ptx::ast::Item::Directive(d) = item
            && d.name.text == ".alias"
            && let Some((alias, to)) = d.args.text.split_once(',')
            && let Some(number) = layout.function(to.trim())
        {
            layout.numbers.insert(alias.trim().into(), number);
        }
    }
    let mut variables: Vec<(&Variable<'_>, bool)> = module.variables().map(|v| (v, true)).collect();
    for function in module.functions() {
        if let Some(body) = &function.body {
            inner_variables(body, &mut variables);
        }
    }
    variables.retain(|(v, _)| matches!(v.space, VarSpace::Global | VarSpace::Const));
    for (variable, at_module) in &variables {
        place(variable, *at_module, inserted.holds(variable.span), memory, &mut layout);
    }
    for (variable, _) in &variables {
        initialise(variable, memory, &layout);
    }
    layout
}

fn inner_variables<'m, 'a>(block: &'m Block<'a>, out: &mut Vec<(&'m Variable<'a>, bool)>) {
    for statement in &block.statements {
        match statement {
            Statement::Block(inner) => inner_variables(inner, out),
            Statement::Variable(variable) => out.push((variable, false)),
            _ => {}
        }
    }
}

fn size_of(variable: &Variable<'_>) -> u64 {
    let values = variable.init.as_ref().map_or(0, |init| init.values.len() as u64);
    let element = variable.element_bytes() / u64::from(variable.vector.max(1));
    // No module declares this much; a damaged one must not exhaust memory.
    variable.bytes().unwrap_or(0).max(values.saturating_mul(element)).min(1 << 32)
}

fn place(variable: &Variable<'_>, at_module: bool, runtime: bool, memory: &mut Memory, layout: &mut Layout) {
    let bytes = size_of(variable);
    let known = at_module.then(|| layout.by_name.get(variable.name.text).copied()).flatten();
    let base = match known {
        // Declared before: the larger of the two.
        Some(base) if memory.at(base).is_some_and(|a| a.data.len() as u64 >= bytes) => base,
        _ => {
            let kind = match variable.space {
                _ if runtime => Kind::Runtime,
                VarSpace::Const => Kind::Const,
                _ => Kind::Variable,
            };
            let data = vec![0; usize::try_from(bytes).unwrap_or(0)];
            let element = variable.element_bytes().max(1);
            memory.allocate(variable.name.text, element, data, kind, variable.alignment())
        }
    };
    layout.variables.insert(variable.name.span.start, base);
    if at_module {
        layout.by_name.insert(variable.name.text.into(), base);
    }
}

fn initialise(variable: &Variable<'_>, memory: &mut Memory, layout: &Layout) {
    let Some(init) = &variable.init else { return };
    let Some(base) = layout.address(variable) else { return };
    let bytes = (variable.element_bytes() / u64::from(variable.vector.max(1))) as usize;
    let float = variable.ty.text == ".f32";
    let mut data = Vec::new();
    for value in &init.values {
        let bits = match value {
            InitValue::Int(value) if float => u64::from((value.get() as f32).to_bits()),
            InitValue::Int(value) if variable.ty.text == ".f64" => (value.get() as f64).to_bits(),
            InitValue::Int(value) => value.get() as u64,
            InitValue::F32(bits) => u64::from(*bits),
            InitValue::F64(bits) if bytes == 4 => u64::from((f64::from_bits(*bits) as f32).to_bits()),
            InitValue::F64(bits) => *bits,
            // Global and constant addresses are generic as they are.
            InitValue::Symbol(symbol) => {
                let name = symbol.name;
                let function = || {
                    let number = layout.function(name.text)?;
                    Some(CODE_WINDOW + CODE_STRIDE * u64::from(number))
                };
                let address = layout.by_name.get(name.text).copied().or_else(function).unwrap_or(0);
                let address = address.wrapping_add(symbol.offset.cast_unsigned());
                // `0xff00(name)` is a byte of the address.
                symbol.mask.map_or(address, |mask| (address & mask) >> mask.trailing_zeros().min(63))
            }
        };
        data.extend(bits.to_le_bytes().into_iter().chain([0; 8]).take(bytes));
    }
    if let Some(allocation) = memory.at_mut(base) {
        for (to, from) in allocation.data.iter_mut().zip(data) {
            *to = from;
        }
    }
}
