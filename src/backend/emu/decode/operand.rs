//! What an opcode's decode function sees: the instruction, with its operands resolved.

use super::scope::{Entity, Scopes};
use crate::backend::emu::image::{Address, Space};
use crate::backend::emu::regs::{Dst, PredDst, PredSrc, Src};
use crate::backend::emu::special::special;
use crate::backend::emu::types::Ty;
use crate::ptx::ast::{Instruction, Operand};

/// Why an instruction cannot be decoded, in one sentence.
pub(in super::super) type Bad = String;

/// An instruction in its scopes.
pub(in super::super) struct Cx<'c, 'a> {
    pub(in super::super) instruction: &'c Instruction<'a>,
    pub(in super::super) scopes: &'c Scopes<'a>,
    /// Index of the function it is in.
    pub(in super::super) function: u32,
    /// The types among the modifiers, in order.
    pub(in super::super) types: Vec<Ty>,
}

impl<'c, 'a> Cx<'c, 'a> {
    pub(super) fn new(instruction: &'c Instruction<'a>, scopes: &'c Scopes<'a>, function: u32) -> Self {
        let types = instruction.modifiers().iter().filter_map(|word| Ty::parse(word.text)).collect();
        Self { instruction, scopes, function, types }
    }

    /// Whether a modifier was written.
    pub(in super::super) fn has(&self, modifier: &str) -> bool {
        self.instruction.has(modifier)
    }

    /// The first modifier that this list holds.
    pub(in super::super) fn one_of<'m>(&self, list: &[&'m str]) -> Option<&'m str> {
        self.instruction.modifiers().iter().find_map(|word| list.iter().copied().find(|m| *m == word.text))
    }

    /// The (first) type.
    pub(in super::super) fn ty(&self) -> Result<Ty, Bad> {
        self.types.first().copied().ok_or_else(|| "an instruction without a type".to_owned())
    }

    /// A refusal that names the instruction.
    pub(in super::super) fn refuse<T>(&self) -> Result<T, Bad> {
        Err(format!("`{}` is not supported by the emulator", self.instruction.full_opcode()))
    }

    /// Number of operands.
    pub(in super::super) fn len(&self) -> usize {
        self.instruction.operands.len()
    }

    /// The operand as written.
    pub(in super::super) fn operand(&self, index: usize) -> Result<&'c Operand<'a>, Bad> {
        self.instruction
            .operands
            .get(index)
            .ok_or_else(|| format!("`{}` lacks an operand", self.instruction.full_opcode()))
    }

    /// A source operand of this type.
    pub(in super::super) fn src(&self, index: usize, ty: Ty) -> Result<Src, Bad> {
        self.value(self.operand(index)?, ty)
    }

    /// A source operand of this type, or a constant where it is left out.
    pub(in super::super) fn src_or(&self, index: usize, ty: Ty, default: u64) -> Result<Src, Bad> {
        if index < self.len() { self.src(index, ty) } else { Ok(Src::Const(default)) }
    }

    /// The value that an operand stands for.
    pub(in super::super) fn value(&self, operand: &Operand<'_>, ty: Ty) -> Result<Src, Bad> {
        match operand {
            Operand::Int(value, _) => Ok(Src::Const(match ty {
                Ty::F32 | Ty::Tf32 => u64::from((value.get() as f32).to_bits()),
                Ty::F64 => (value.get() as f64).to_bits(),
                _ => value.get() as u64,
            })),
            Operand::F32(bits, _) => Ok(Src::Const(match ty {
                Ty::F64 => f64::from(f32::from_bits(*bits)).to_bits(),
                _ => u64::from(*bits),
            })),
            Operand::F64(bits, _) => Ok(Src::Const(match ty {
                Ty::F64 | Ty::B(64) => *bits,
                _ => u64::from((f64::from_bits(*bits) as f32).to_bits()),
            })),
            Operand::Name(name, _) => self.named(name, 0),
            Operand::Offset(offset, _) => self.named(offset.0.text, offset.1.cast_unsigned()),
            Operand::Vector(items) if items.len() == 1 => self.value(&items[0], ty),
            Operand::Not(inner, _) => match &**inner {
                Operand::Int(value, _) => Ok(Src::Const(u64::from(value.get() == 0))),
                inner => match self.value(inner, ty)? {
                    Src::Pred(p) => Ok(Src::Pred(PredSrc { negated: !p.negated, ..p })),
                    _ => Err("`!` before what is no predicate".into()),
                },
            },
            _ => Err("an operand of unexpected form".into()),
        }
    }

    fn named(&self, name: &str, offset: u64) -> Result<Src, Bad> {
        match self.find(name) {
            Some(Entity::Register { slot, elements: 1, .. }) if offset == 0 => Ok(Src::Reg(slot)),
            Some(Entity::Predicate(slot)) => Ok(Src::Pred(PredSrc { slot: Some(slot), negated: false })),
            Some(Entity::Fixed { address }) => Ok(Src::Const(address.wrapping_add(offset))),
            Some(Entity::Shared { offset: at }) => Ok(Src::Shared(at.wrapping_add(offset))),
            Some(Entity::Frame { offset: at, .. }) => Ok(Src::Local(at.wrapping_add(offset))),
            Some(Entity::Function(number)) => {
                use crate::backend::emu::memory::{CODE_STRIDE, CODE_WINDOW};
                Ok(Src::Const(CODE_WINDOW + CODE_STRIDE * u64::from(number)))
            }
            Some(_) => Err(format!("`{name}` cannot stand here")),
            None if name == "WARP_SZ" => Ok(Src::Const(32)),
            None => match special(name).as_deref() {
                Some([one, ..]) => Ok(Src::Special(*one)),
                _ => Err(format!("`{name}` is not declared")),
            },
        }
    }

    /// What a name stands for; members of vector registers are registers.
    pub(super) fn find(&self, name: &str) -> Option<Entity> {
        if let Some(found) = self.scopes.find(name) {
            return Some(found);
        }
        let (base, member) = name.rsplit_once('.')?;
        let index = match member {
            "x" | "r" => 0,
            "y" | "g" => 1,
            "z" | "b" => 2,
            "w" | "a" => 3,
            _ => return None,
        };
        match self.scopes.find(base)? {
            Entity::Register { slot, bits, elements } if index < elements => {
                Some(Entity::Register { slot: slot + index, bits, elements: 1 })
            }
            _ => None,
        }
    }

    /// What a name operand stands for.
    pub(in super::super) fn entity(&self, operand: &Operand<'_>) -> Option<Entity> {
        match operand {
            Operand::Name(name, _) => self.find(name),
            _ => None,
        }
    }

    /// A destination register.
    pub(in super::super) fn dst(&self, index: usize) -> Result<Dst, Bad> {
        self.destination(self.operand(index)?)
    }

    /// The register that an operand names.
    pub(in super::super) fn destination(&self, operand: &Operand<'_>) -> Result<Dst, Bad> {
        match operand {
            Operand::Name(name, _) if *name == "_" => Ok(Dst(None)),
            Operand::Name(name, _) => match self.find(name) {
                Some(Entity::Register { slot, elements: 1, .. }) => Ok(Dst(Some(slot))),
                _ => Err(format!("`{}` is no register to write", name)),
            },
            Operand::Vector(items) if items.len() == 1 => self.destination(&items[0]),
            _ => Err("a destination of unexpected form".into()),
        }
    }

    /// A predicate to write.
    pub(in super::super) fn pred_dst(&self, operand: &Operand<'_>) -> Result<PredDst, Bad> {
        match operand {
            Operand::Name(name, _) if *name == "_" => Ok(PredDst(None)),
            Operand::Name(name, _) => match self.find(name) {
                Some(Entity::Predicate(slot)) => Ok(PredDst(Some(slot))),
                _ => Err(format!("`{}` is no predicate register", name)),
            },
            _ => Err("a predicate of unexpected form".into()),
        }
    }

    /// A predicate to read.
    pub(in super::super) fn pred_src(&self, operand: &Operand<'_>) -> Result<PredSrc, Bad> {
        match operand {
            // Constants are taken for predicates here and there.
            Operand::Int(value, _) => Ok(PredSrc { slot: None, negated: value.get() != 0 }),
            _ => match self.value(operand, Ty::Pred)? {
                Src::Pred(pred) => Ok(pred),
                _ => Err("an operand that is no predicate".into()),
            },
        }
    }

    /// The elements of a vector operand, or the operand alone.
    pub(in super::super) fn elements(&self, index: usize) -> Result<Vec<Element<'c, 'a>>, Bad> {
        let operand = self.operand(index)?;
        let mut out = Vec::new();
        match operand {
            Operand::Vector(items) => {
                for item in items.iter() {
                    self.element(item, &mut out);
                }
            }
            _ => self.element(operand, &mut out),
        }
        Ok(out)
    }

    fn element(&self, operand: &'c Operand<'a>, out: &mut Vec<Element<'c, 'a>>) {
        match self.entity(operand) {
            Some(Entity::Register { slot, elements, .. }) if elements > 1 => {
                out.extend((0..elements).map(|i| Element::Register(slot + i)));
            }
            _ => out.push(Element::Operand(operand)),
        }
    }

    /// Registers that a vector operand writes.
    pub(in super::super) fn dsts(&self, index: usize) -> Result<Vec<Dst>, Bad> {
        let read = |element| match element {
            Element::Register(slot) => Ok(Dst(Some(slot))),
            Element::Operand(operand) => self.destination(operand),
        };
        self.elements(index)?.into_iter().map(read).collect()
    }

    /// Values that a vector operand reads.
    pub(in super::super) fn srcs(&self, index: usize, ty: Ty) -> Result<Vec<Src>, Bad> {
        let operand = self.operand(index)?;
        if let Operand::Name(name, _) = operand
            && let Some(vector) = special(name).filter(|v| v.len() > 1)
        {
            return Ok(vector.into_iter().map(Src::Special).collect());
        }
        let read = |element| match element {
            Element::Register(slot) => Ok(Src::Reg(slot)),
            Element::Operand(operand) => self.value(operand, ty),
        };
        self.elements(index)?.into_iter().map(read).collect()
    }

    /// The state space among the modifiers.
    pub(in super::super) fn space(&self) -> Space {
        self.instruction
            .modifiers()
            .iter()
            .find_map(|word| match word.text {
                "global" => Some(Space::Global),
                "shared" | "shared::cta" => Some(Space::Shared),
                "shared::cluster" => Some(Space::SharedCluster),
                "local" => Some(Space::Local),
                "const" => Some(Space::Const),
                "param" | "param::entry" | "param::func" => Some(Space::Param),
                _ => None,
            })
            .unwrap_or(Space::Generic)
    }

    /// A number of 32 or 64 bits, as wide as its register.
    pub(in super::super) fn size(&self, index: usize) -> Result<Src, Bad> {
        let operand = self.operand(index)?;
        match self.entity(operand) {
            Some(Entity::Register { slot, bits, elements: 1 }) if bits <= 32 => Ok(Src::Narrow(slot)),
            _ => self.value(operand, Ty::U(64)),
        }
    }

    /// A memory operand.
    pub(in super::super) fn address(&self, index: usize) -> Result<Address, Bad> {
        self.address_in(index, self.space())
    }

    /// A memory operand in this space.
    pub(in super::super) fn address_in(&self, index: usize, space: Space) -> Result<Address, Bad> {
        let Operand::Address(address) = self.operand(index)? else {
            return Err(format!("`{}` lacks its address", self.instruction.full_opcode()));
        };
        if !address.extra.is_empty() {
            return self.refuse();
        }
        self.place(address, space)
    }

    /// The generic address of an operand that has more behind a comma.
    pub(in super::super) fn address_before_comma(&self, index: usize) -> Result<Address, Bad> {
        match self.operand(index)? {
            Operand::Address(address) => self.place(address, Space::Generic),
            _ => self.refuse(),
        }
    }

    fn place(&self, address: &crate::ptx::ast::Address<'_>, space: Space) -> Result<Address, Bad> {
        let base = match address.base {
            None => Src::Const(0),
            Some(word) => match self.find(word.text) {
                Some(Entity::Register { slot, bits, elements: 1 }) if bits <= 32 => Src::Narrow(slot),
                _ => self.named(word.text, 0)?,
            },
        };
        Ok(Address { space, base, offset: address.offset.cast_unsigned() })
    }
}

/// An element of a vector operand.
pub(in super::super) enum Element<'c, 'a> {
    /// A member of a vector register.
    Register(u32),
    /// As written.
    Operand(&'c Operand<'a>),
}
