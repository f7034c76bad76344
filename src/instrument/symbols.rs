//! Names in scope: registers with their types, variables with their spaces.

use rustc_hash::FxHashMap;

use crate::ptx::ast::{Function, Module, Registers, VarSpace, Variable};
use crate::ptx::{numbered, type_bytes, without_member};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol<'a> {
    /// A register or a register parameter.
    Register {
        /// Its type with the dot.
        ty: &'a str,
        /// Elements of a vector register, else 1.
        vector: u32,
    },
    /// A variable in memory.
    Variable(VarSpace),
}

impl Symbol<'_> {
    /// Bits of a register, or of one element of a vector register; `None` for predicates.
    pub(super) fn bits(self) -> Option<u32> {
        match self {
            Self::Register { ty, .. } => type_bytes(ty).map(|bytes| bytes * 8),
            Self::Variable(_) => None,
        }
    }
}

#[derive(Debug, Default)]
struct Scope<'a> {
    names: FxHashMap<&'a str, Symbol<'a>>,
    /// `%r<37>`: the stem and how many.
    ranges: FxHashMap<&'a str, (u32, Symbol<'a>)>,
}

/// Scopes from the module inwards.
#[derive(Debug)]
pub(super) struct Symbols<'a> {
    scopes: Vec<Scope<'a>>,
}

impl<'a> Symbols<'a> {
    /// The module's scope.
    pub(super) fn new(module: &Module<'a>) -> Self {
        let mut symbols = Self { scopes: vec![Scope::default()] };
        for variable in module.variables() {
            symbols.variable(variable);
        }
        symbols
    }

    /// Enters a function.
    pub(super) fn enter_function(&mut self, function: &Function<'a>) {
        self.enter();
        for parameter in function.returns.iter().chain(&function.params) {
            self.variable(parameter);
        }
    }

    /// Enters a block.
    pub(super) fn enter(&mut self) {
        self.scopes.push(Scope::default());
    }

    /// Leaves a block or function.
    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Declares a variable or parameter.
    pub(super) fn variable(&mut self, variable: &Variable<'a>) {
        let symbol = match variable.space {
            VarSpace::Reg => Symbol::Register { ty: variable.ty.text, vector: variable.vector },
            space => Symbol::Variable(space),
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(variable.name.text, symbol);
        }
    }

    /// Declares registers.
    pub(super) fn registers(&mut self, registers: &Registers<'a>) {
        let symbol = Symbol::Register { ty: registers.ty.text, vector: registers.vector };
        let Some(scope) = self.scopes.last_mut() else { return };
        for (name, count) in &registers.names {
            match count {
                Some(count) => scope.ranges.insert(name.text, (*count, symbol)).map(drop),
                None => scope.names.insert(name.text, symbol).map(drop),
            };
        }
    }

    /// Whether a name is a predicate register.
    pub(super) fn is_predicate(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Symbol::Register { ty: ".pred", .. }))
    }

    /// What a name stands for, from the innermost scope out. A member (`v.x`) is an element of its register.
    pub(super) fn get(&self, name: &str) -> Option<Symbol<'a>> {
        if let Some(base) = without_member(name) {
            let Symbol::Register { ty, .. } = self.get(base)? else { return None };
            return Some(Symbol::Register { ty, vector: 1 });
        }
        self.scopes.iter().rev().find_map(|scope| {
            let ranged = || {
                numbered(name).find_map(|(stem, number)| {
                    let (count, symbol) = scope.ranges.get(stem)?;
                    (number < *count).then_some(*symbol)
                })
            };
            scope.names.get(name).copied().or_else(ranged)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::ast::Statement;

    #[test]
    fn inner_scopes_shadow_outer_ones() {
        let text = ".version 9.0\n.target sm_90\n.address_size 64\n.shared .b32 tile[4];\n\
            .func f(.reg .b64 a, .param .b32 p) { .reg .b32 %r<11>, %r99, %q<11>, %q1<5>; { .reg .v2 .b64 %r<1>; } }";
        let parsed = crate::ptx::parse(text);
        assert_eq!(parsed.errors, []);
        let function = parsed.module.functions().next().unwrap();
        let mut symbols = Symbols::new(&parsed.module);
        symbols.enter_function(function);
        let statements = &function.body.as_ref().unwrap().statements;
        let (Statement::Registers(outer), Statement::Block(block)) = (&statements[0], &statements[1]) else {
            panic!("{statements:?}");
        };
        symbols.registers(outer);
        let b32 = Symbol::Register { ty: ".b32", vector: 1 };
        assert_eq!(symbols.get("tile"), Some(Symbol::Variable(VarSpace::Shared)));
        assert_eq!(symbols.get("a").and_then(Symbol::bits), Some(64));
        assert_eq!(symbols.get("p"), Some(Symbol::Variable(VarSpace::Param)));
        assert_eq!((symbols.get("%r10"), symbols.get("%r99")), (Some(b32), Some(b32)));
        assert_eq!((symbols.get("%r11"), symbols.get("%r01"), symbols.get("%r")), (None, None, None));
        // Beyond `%q<11>`, but number 2 of `%q1<5>`.
        assert_eq!(symbols.get("%q12"), Some(b32));
        symbols.enter();
        let Statement::Registers(inner) = &block.statements[0] else { panic!("{block:?}") };
        symbols.registers(inner);
        assert_eq!(symbols.get("%r0"), Some(Symbol::Register { ty: ".b64", vector: 2 }));
        assert_eq!(symbols.get("%r0.x").and_then(Symbol::bits), Some(64));
        assert_eq!(symbols.get("%r1"), Some(b32));
    }
}
