//! Branches, calls, returns, fences and hints.

use super::super::decode::{Bad, Cx, Entity};
use super::super::image::{Builtin, Call, Code, Slot, Target};
use super::super::regs::{PredDst, Src};
use super::super::types::Ty;
use crate::ptx::ast::Operand;

/// `bra`
pub(super) fn bra(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    match cx.entity(cx.operand(0)?) {
        Some(Entity::Label(label)) => Ok(Code::Branch { target: label, spins: false }),
        _ => Err("a branch to what is no label".into()),
    }
}

/// `brx.idx`
pub(super) fn brx(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let index = cx.src(0, Ty::U(32))?;
    let Some(Entity::Targets(names)) = cx.entity(cx.operand(1)?) else {
        return Err("a branch without its list of targets".into());
    };
    let label = |name: &String| match cx.scopes.find(name) {
        Some(Entity::Label(label)) => Ok(label),
        _ => Err(format!("`{name}` is no label")),
    };
    Ok(Code::BranchTable(index, names.iter().map(label).collect::<Result<_, Bad>>()?))
}

/// `ret`
pub(super) fn ret(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    Ok(Code::Return(cx.function))
}

/// `exit`
pub(super) fn exit(_: &Cx<'_, '_>) -> Result<Code, Bad> {
    Ok(Code::Exit)
}

/// `trap`, `brkpt`
pub(super) fn trap(_: &Cx<'_, '_>) -> Result<Code, Bad> {
    Ok(Code::Trap)
}

/// `nanosleep`
pub(super) fn nanosleep(_: &Cx<'_, '_>) -> Result<Code, Bad> {
    Ok(Code::Yield)
}

/// Hints.
pub(super) fn nothing(_: &Cx<'_, '_>) -> Result<Code, Bad> {
    Ok(Code::Nothing)
}

/// `fence`, `membar`: memory is sequentially consistent, so only the record matters.
pub(super) fn fence(_: &Cx<'_, '_>) -> Result<Code, Bad> {
    Ok(Code::Fence)
}

/// `call (ret), function, (args), prototype`
pub(super) fn call(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let operands = &cx.instruction.operands;
    let at = operands.iter().position(|o| !matches!(o, Operand::List(..)));
    let Some((at, name)) = at.and_then(|at| Some((at, operands.get(at)?))) else {
        return Err("a call of nobody".into());
    };
    let list = |operand: Option<&Operand<'_>>| match operand {
        Some(Operand::List(items)) => items.iter().map(|item| slot(cx, item)).collect::<Result<Vec<_>, _>>(),
        _ => Ok(Vec::new()),
    };
    let rets = list(operands.get(..at).and_then(|before| before.first()))?;
    let args = list(operands.get(at + 1))?;
    let target = match (cx.entity(name), name) {
        (Some(Entity::Function(number)), Operand::Name(name, _)) => match *name {
            "vprintf" => Target::Builtin(Builtin::Vprintf),
            "malloc" => Target::Builtin(Builtin::Malloc),
            "free" => Target::Builtin(Builtin::Free),
            "__assertfail" => Target::Builtin(Builtin::AssertFail),
            _ => Target::Function(number),
        },
        (Some(Entity::Register { .. }), _) => Target::Indirect(cx.value(name, Ty::U(64))?),
        (_, Operand::Name(name, _)) => Target::Unknown((*name).into()),
        _ => return Err("a call of what is no function".into()),
    };
    Ok(Code::Call(Box::new(Call { caller: cx.function, target, args: args.into(), rets: rets.into() })))
}

fn slot(cx: &Cx<'_, '_>, operand: &Operand<'_>) -> Result<Slot, Bad> {
    if let Operand::Name(name, _) = operand
        && *name == "_"
    {
        return Ok(Slot::Sink);
    }
    match cx.entity(operand) {
        Some(Entity::Frame { offset, bytes }) => Ok(Slot::Local { offset, bytes }),
        Some(Entity::Predicate(slot)) => Ok(Slot::Pred(PredDst(Some(slot)))),
        // The width of the formal decides how much of it counts.
        _ => cx.value(operand, Ty::B(64)).map(Slot::Value).and_then(|slot| match slot {
            Slot::Value(Src::Special(_)) => Err("a special register as an argument".into()),
            slot => Ok(slot),
        }),
    }
}
