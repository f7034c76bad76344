//! Names: registers, variables, labels and functions, in nested scopes. Inner names shadow outer ones.

use rustc_hash::FxHashMap;

use crate::ptx::ast::Word;
use crate::ptx::numbered;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(in super::super) enum Entity {
    /// A register, or the elements of a vector register.
    Register { slot: u32, bits: u32, elements: u32 },
    /// A predicate register.
    Predicate(u32),
    /// A variable with a fixed address in its space.
    Fixed { address: u64 },
    /// A shared variable, by its offset.
    Shared { offset: u64 },
    /// A variable in the frame of its function.
    Frame { offset: u64, bytes: u64 },
    /// A label, by number.
    Label(u32),
    /// A function, by number.
    Function(u32),
    /// The labels of `.branchtargets`.
    Targets(Vec<String>),
    /// A prototype or list of call targets: of no use here.
    Prototype,
    /// A variable without memory: textures and the like.
    Opaque,
}

#[derive(Debug)]
struct Family {
    first: u32,
    count: u32,
    bits: u32,
    elements: u32,
    predicate: bool,
}

#[derive(Debug, Default)]
struct Scope<'a> {
    names: FxHashMap<&'a str, Entity>,
    /// `%r<5>`
    families: FxHashMap<&'a str, Family>,
}

/// The scopes around an instruction, outermost first.
#[derive(Debug, Default)]
pub(in super::super) struct Scopes<'a> {
    stack: Vec<Scope<'a>>,
    /// The row of each register, once they are assigned.
    pub(super) rows: Vec<u32>,
}

impl<'a> Scopes<'a> {
    pub(super) fn open(&mut self) {
        self.stack.push(Scope::default());
    }

    pub(super) fn close(&mut self) {
        self.stack.pop();
    }

    /// Declares a name in the innermost scope.
    pub(super) fn declare(&mut self, name: Word<'a>, entity: Entity) {
        if let Some(scope) = self.stack.last_mut() {
            scope.names.insert(name.text, entity);
        }
    }

    /// Declares `name<count>`, whose first member has the slot `first`.
    pub(super) fn declare_family(&mut self, name: Word<'a>, first: u32, count: u32, shape: (u32, u32, bool)) {
        let (bits, elements, predicate) = shape;
        if let Some(scope) = self.stack.last_mut() {
            scope.families.insert(name.text, Family { first, count, bits, elements, predicate });
        }
    }

    /// What a name stands for here.
    pub(in super::super) fn find(&self, name: &str) -> Option<Entity> {
        let found = self.declared(name)?;
        match found {
            Entity::Register { slot, bits, elements } => {
                let slot = self.rows.get(slot as usize).copied().unwrap_or(slot);
                Some(Entity::Register { slot, bits, elements })
            }
            found => Some(found),
        }
    }

    fn declared(&self, name: &str) -> Option<Entity> {
        self.stack.iter().rev().find_map(|scope| {
            scope.names.get(name).cloned().or_else(|| {
                numbered(name).find_map(|(stem, index)| {
                    let family = scope.families.get(stem).filter(|family| index < family.count)?;
                    let slot = family.first + index * family.elements;
                    Some(if family.predicate {
                        Entity::Predicate(slot)
                    } else {
                        Entity::Register { slot, bits: family.bits, elements: family.elements }
                    })
                })
            })
        })
    }
}
