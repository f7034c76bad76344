//! From an instruction to its effect.

use super::table::{Meaning, lookup};
use super::{
    Access, AccessKind, AtomOp, Barrier, BarrierKind, Effect, Fence, FenceOrder, Marking, Order, Scope, Space,
};
use super::{asynchronous, image, range, warpgroup};
use crate::ptx::ast::{Instruction, Operand, Word};
use crate::ptx::type_bytes;

/// An effect, with the modifier that could not be read, if any. Such a modifier leaves the effect as far as it is
/// certain, and makes the run incomplete.
#[derive(Clone, Copy, Debug)]
pub struct Classified<'a> {
    /// What the instruction does.
    pub effect: Effect,
    /// A modifier that the table does not know for this opcode.
    pub unknown: Option<Word<'a>>,
}

/// An effect without doubts.
pub(super) fn certain<'a>(effect: Effect) -> Classified<'a> {
    Classified { effect, unknown: None }
}

/// Something that synchronises and is not covered.
pub(super) fn unordered<'a>(what: &'static str) -> Classified<'a> {
    certain(Effect::NotCovered { what, orders: true })
}

/// Classifies an instruction.
pub fn classify<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let Some(row) = lookup(instruction.opcode.text) else {
        let touches = instruction.operands.iter().any(has_address);
        return certain(if touches { Effect::Unknown } else { Effect::None });
    };
    match row.meaning {
        Meaning::Pure => certain(Effect::None),
        Meaning::Load => access(instruction, AccessKind::Load),
        Meaning::Store => access(instruction, AccessKind::Store),
        Meaning::Atom => access(instruction, AccessKind::Atom),
        Meaning::Red => access(instruction, AccessKind::Red),
        Meaning::Fence => fence(instruction),
        Meaning::Membar => membar(instruction),
        Meaning::Barrier => barrier(instruction),
        // Only the `.sync` forms have a mask; the old ones meet nobody.
        Meaning::Converge { mask_from_end } if instruction.has("sync") => {
            let at = instruction.operands.len().saturating_sub(usize::from(mask_from_end));
            certain(Effect::Converge(u8::try_from(at).unwrap_or(0)))
        }
        Meaning::Converge { .. } => certain(Effect::None),
        Meaning::Return => certain(Effect::Return),
        Meaning::Exit => certain(Effect::Exit),
        Meaning::Call => certain(Effect::Call),
        Meaning::AsyncCopy => asynchronous::copy(instruction),
        Meaning::Mbarrier => asynchronous::mbarrier(instruction),
        Meaning::MatrixLoad => matrix(instruction, AccessKind::Load),
        Meaning::MatrixStore => matrix(instruction, AccessKind::Store),
        Meaning::Tile => range::tile(instruction),
        Meaning::Wgmma => warpgroup::wgmma(instruction),
        Meaning::Texture => image::texture(instruction),
        Meaning::Surface => image::surface(instruction),
        Meaning::Discard => range::fill(instruction, Some(128)),
        Meaning::NotCovered { what, orders } => certain(Effect::NotCovered { what, orders }),
    }
}

pub(super) fn at(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}

pub(super) fn is_address(operand: &Operand<'_>) -> bool {
    matches!(operand, Operand::Address(_))
}

/// State spaces in the order they are written: in copies, the destination comes first.
pub(super) fn spaces<'i>(instruction: &'i Instruction<'_>) -> impl Iterator<Item = Space> + use<'i> {
    instruction.modifiers().iter().filter_map(|word| space_of(word.text))
}

fn has_address(operand: &Operand<'_>) -> bool {
    match operand {
        Operand::Address(_) => true,
        Operand::Vector(items) | Operand::List(items) => items.iter().any(has_address),
        _ => false,
    }
}

/// `ldmatrix`, `stmatrix`: rows of 16 bytes, whose addresses the first lanes give.
fn matrix<'a>(instruction: &Instruction<'a>, kind: AccessKind) -> Classified<'a> {
    let has = |word| instruction.has(word);
    let Some(address) = instruction.operands.iter().position(is_address) else {
        return certain(Effect::Unknown);
    };
    let matrices = match (has("x1"), has("x2"), has("x4")) {
        (true, ..) => 1,
        (_, true, _) => 2,
        (.., true) => 4,
        _ => return certain(Effect::NotCovered { what: "a matrix access of unknown shape", orders: false }),
    };
    // A matrix has 8 rows of 16 bytes; `.m16n16`, `.m8n16` and `.m16n8` have 16, 8 and 8 addresses for each.
    let rows = if has("m16n16") { matrices * 16 } else { matrices * 8 };
    let element: u8 = if has("b16") { 2 } else { 1 };
    let space = instruction.modifiers().iter().find_map(|word| space_of(word.text));
    certain(Effect::Access(Access {
        kind,
        space: space.unwrap_or(Space::Generic),
        order: Order::Weak,
        scope: None,
        marking: Marking::Plain,
        element,
        count: 16 / element,
        op: None,
        address: at(address),
        rows: Some(rows.min(32)),
    }))
}

pub(super) fn scope_of(word: &str) -> Option<Scope> {
    Some(match word {
        "cta" => Scope::Cta,
        "cluster" => Scope::Cluster,
        "gpu" => Scope::Gpu,
        "sys" => Scope::Sys,
        _ => return None,
    })
}

pub(super) fn space_of(word: &str) -> Option<Space> {
    Some(match word {
        "global" => Space::Global,
        "shared" | "shared::cta" => Space::Shared,
        "shared::cluster" => Space::SharedCluster,
        "local" => Space::Local,
        "const" => Space::Const,
        "param" | "param::entry" | "param::func" => Space::Param,
        _ => return None,
    })
}

pub(super) fn op_of(word: &str) -> Option<AtomOp> {
    Some(match word {
        "and" => AtomOp::And,
        "or" => AtomOp::Or,
        "xor" => AtomOp::Xor,
        "exch" => AtomOp::Exch,
        "add" => AtomOp::Add,
        "inc" => AtomOp::Inc,
        "dec" => AtomOp::Dec,
        "min" => AtomOp::Min,
        "max" => AtomOp::Max,
        "cas" => AtomOp::Cas,
        _ => return None,
    })
}

/// Cache operators, eviction hints and prefetch sizes: no effect on what is accessed or how it is ordered.
fn is_hint(word: &str) -> bool {
    matches!(word, "ca" | "cg" | "cs" | "cv" | "lu" | "wb" | "wt" | "noftz" | "unified")
        || is_eviction_hint(word)
}

/// Those of the two caches: eviction priorities, policies and prefetch sizes.
pub(super) fn is_eviction_hint(word: &str) -> bool {
    word.starts_with("L1::") || word.starts_with("L2::")
}

/// Packed types are atomic, and overlap, element by element.
fn packed(word: &str) -> Option<(u8, u8)> {
    Some(match word {
        "f16x2" | "bf16x2" | "u16x2" | "s16x2" => (2, 2),
        "f32x2" => (4, 2),
        _ => return None,
    })
}

fn access<'a>(instruction: &Instruction<'a>, kind: AccessKind) -> Classified<'a> {
    if instruction.has("async") {
        return asynchronous::remote(instruction);
    }
    if instruction.has("bulk") {
        return range::fill(instruction, None);
    }
    let address = instruction.operands.iter().position(is_address);
    let rmw = matches!(kind, AccessKind::Atom | AccessKind::Red);
    let mut access = Access {
        kind,
        space: Space::Generic,
        order: if rmw { Order::Relaxed } else { Order::Weak },
        scope: rmw.then_some(Scope::Gpu),
        marking: Marking::Plain,
        element: 0,
        count: 1,
        op: None,
        address: address.and_then(|at| u8::try_from(at).ok()).unwrap_or(0),
        rows: None,
    };
    if instruction.opcode.text == "ldu" {
        access.marking = Marking::NonCoherent;
    }
    let mut unknown = None;
    for word in instruction.modifiers() {
        let text = word.text;
        if let Some(space) = space_of(text) {
            access.space = space;
        } else if let Some(scope) = scope_of(text) {
            access.scope = Some(scope);
        } else if let (true, Some(op)) = (rmw, op_of(text)) {
            access.op = Some(op);
        } else if let Some((element, count)) = packed(text) {
            (access.element, access.count) = (element, access.count * count);
        } else if let Some(bytes) = type_bytes(text) {
            access.element = u8::try_from(bytes).unwrap_or(u8::MAX);
        } else {
            match text {
                "weak" => {}
                "volatile" => access.marking = Marking::Volatile,
                "mmio" => access.marking = Marking::Mmio,
                "nc" => access.marking = Marking::NonCoherent,
                "relaxed" => access.order = Order::Relaxed,
                "acquire" => access.order = Order::Acquire,
                "release" => access.order = Order::Release,
                "acq_rel" => access.order = Order::AcqRel,
                "v2" => access.count *= 2,
                "v4" => access.count *= 4,
                "v8" => access.count *= 8,
                _ if is_hint(text) => {}
                _ => unknown = unknown.or(Some(word)),
            }
        }
    }
    if matches!(access.marking, Marking::Volatile | Marking::Mmio) {
        (access.order, access.scope) = (Order::Relaxed, Some(Scope::Sys));
    }
    if access.order.is_strong() && access.scope.is_none() {
        return Classified { unknown, ..unordered("a strong access without a scope") };
    }
    // `[...]` missing or no type: the operands are not what the table expects.
    if address.is_none() || access.element == 0 {
        return Classified { effect: Effect::Unknown, unknown };
    }
    Classified { effect: Effect::Access(access), unknown }
}

fn fence<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let (mut order, mut scope, mut unknown) = (FenceOrder::AcqRel, None, None);
    for word in instruction.modifiers() {
        match word.text {
            "sc" => order = FenceOrder::Sc,
            "acq_rel" => order = FenceOrder::AcqRel,
            "acquire" => order = FenceOrder::Acquire,
            "release" => order = FenceOrder::Release,
            "proxy" | "mbarrier_init" => return asynchronous::proxy_fence(instruction),
            text if text.starts_with("sync_restrict") => return unordered("a restricted fence"),
            text => match scope_of(text) {
                Some(found) => scope = Some(found),
                None => unknown = unknown.or(Some(word)),
            },
        }
    }
    // A fence always names its scope; without one it is not what the table expects.
    match scope {
        Some(scope) => Classified { effect: Effect::Fence(Fence { order, scope }), unknown },
        None => Classified { unknown, ..unordered("a fence without a scope") },
    }
}

fn membar<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let scope = instruction.modifiers().iter().find_map(|word| match word.text {
        "cta" => Some(Scope::Cta),
        "gl" => Some(Scope::Gpu),
        "sys" => Some(Scope::Sys),
        _ => None,
    });
    match scope {
        Some(scope) => {
            Classified { effect: Effect::Fence(Fence { order: FenceOrder::Sc, scope }), unknown: None }
        }
        None => asynchronous::proxy_fence(instruction),
    }
}

fn barrier<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let has = |word| instruction.has(word);
    if has("cluster") {
        return asynchronous::cluster_barrier(instruction);
    }
    if has("warp") {
        return Classified { effect: Effect::WarpBarrier, unknown: None };
    }
    let operands = instruction.operands.len();
    let effect = if has("red") {
        // `d, a{, b}, {!}c`
        let count = (operands == 4).then_some(2);
        Effect::Barrier(Barrier { kind: BarrierKind::Red, id: 1, count })
    } else {
        let kind = if has("arrive") { BarrierKind::Arrive } else { BarrierKind::Sync };
        if !has("arrive") && !has("sync") {
            return unordered("a barrier of unknown kind");
        }
        Effect::Barrier(Barrier { kind, id: 0, count: (operands > 1).then_some(1) })
    };
    let known = ["cta", "sync", "arrive", "red", "aligned", "popc", "and", "or", "u32", "pred"];
    let unknown = instruction.modifiers().iter().find(|word| !known.contains(&word.text));
    Classified { effect, unknown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::ast::Statement;

    fn effect(line: &str) -> Effect {
        let text = format!(".version 9.0\n.target sm_90\n.address_size 64\n.func f() {{ {line} }}");
        let parsed = crate::ptx::parse(&text);
        assert_eq!(parsed.errors, []);
        let function = parsed.module.functions().next().unwrap();
        let Some(Statement::Instruction(instruction)) = function.body.as_ref().unwrap().statements.first()
        else {
            panic!("no instruction in {line}");
        };
        classify(instruction).effect
    }

    fn access_of(line: &str) -> Access {
        match effect(line) {
            Effect::Access(access) => access,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn defaults_are_those_of_the_isa() {
        let load = access_of("ld.u32 %r1, [%rd1];");
        assert_eq!((load.space, load.order, load.scope), (Space::Generic, Order::Weak, None));
        let atom = access_of("atom.global.add.u32 %r1, [%rd1], 1;");
        assert_eq!((atom.order, atom.scope, atom.op), (Order::Relaxed, Some(Scope::Gpu), Some(AtomOp::Add)));
        let volatile = access_of("ld.volatile.shared.v2.u32 {%r1, %r2}, [%r3];");
        assert_eq!((volatile.order, volatile.scope), (Order::Relaxed, Some(Scope::Sys)));
        assert_eq!((volatile.element, volatile.count), (4, 2));
        assert_eq!(effect("membar.gl;"), Effect::Fence(Fence { order: FenceOrder::Sc, scope: Scope::Gpu }));
        assert_eq!(
            effect("fence.cta;"),
            Effect::Fence(Fence { order: FenceOrder::AcqRel, scope: Scope::Cta })
        );
    }

    #[test]
    fn modifiers_come_in_any_order() {
        let a = access_of("atom.global.gpu.acq_rel.add.u32 %r1, [%rd1], 1;");
        let b = access_of("atom.add.acq_rel.u32.gpu.global %r1, [%rd1], 1;");
        assert_eq!(a, b);
        assert_eq!(a.order, Order::AcqRel);
    }

    #[test]
    fn what_is_not_known_is_said() {
        assert_eq!(effect("frob.global.u32 %r1, [%rd1];"), Effect::Unknown);
        assert_eq!(effect("frob.u32 %r1, %r2;"), Effect::None);
        assert!(matches!(effect("tcgen05.wait::ld.sync.aligned;"), Effect::NotCovered { .. }));
    }
}
