//! Asynchronous copies, mbarriers, writes of ranges. `isa` has read the instruction: which operand is what.

use super::super::decode::{Bad, Cx};
use super::super::image::{
    Address, Code, CopyCompletion, CopyLength, CopyOp, CopySource, FillOp, MbarrierAction, MbarrierCode,
    Space, TensorOp, Update,
};
use super::super::mbarrier;
use super::super::regs::Src;
use super::super::types::Ty;
use super::{atomic, lanewise1};
use crate::isa::{self, AsyncCopy, Completion, CopyBytes, Effect, MbarrierOp};
use crate::ptx::ast::Operand;
use crate::tensor::DataType;

/// Bytes of which bulk copies are made.
const BULK: u32 = 16;

/// A state space as `isa` reads it.
pub(super) fn space(space: isa::Space) -> Space {
    match space {
        isa::Space::Generic => Space::Generic,
        isa::Space::Global => Space::Global,
        isa::Space::Shared => Space::Shared,
        isa::Space::SharedCluster => Space::SharedCluster,
        isa::Space::Local => Space::Local,
        isa::Space::Const => Space::Const,
        isa::Space::Param => Space::Param,
    }
}

/// What `isa` says, unless there is a modifier that it does not know.
fn effect(cx: &Cx<'_, '_>) -> Result<Effect, Bad> {
    let classified = isa::classify(cx.instruction);
    if classified.unknown.is_some() { cx.refuse() } else { Ok(classified.effect) }
}

/// `cp`
pub(super) fn cp(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    match effect(cx)? {
        Effect::None => Ok(Code::Nothing),
        Effect::AsyncCopy(copy) => issue(cx, &copy),
        Effect::Group(group) => Ok(Code::Group(group)),
        Effect::Mbarrier(_) => mbarrier(cx),
        _ => cx.refuse(),
    }
}

/// `st.async`, `red.async`
pub(super) fn remote(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    match effect(cx)? {
        Effect::AsyncCopy(copy) => issue(cx, &copy),
        _ => cx.refuse(),
    }
}

/// A copy or reduction of a box.
fn tensor(cx: &Cx<'_, '_>, copy: &AsyncCopy, rank: usize) -> Result<Code, Bad> {
    let loads = copy.from == Some(isa::Space::Global);
    let (map, shared, shared_space) = match copy.from {
        Some(isa::Space::Global) => (copy.source, copy.destination, copy.to),
        Some(from) => (copy.destination, copy.source, from),
        None => return cx.refuse(),
    };
    let Operand::Address(written) = cx.operand(map.into())? else { return cx.refuse() };
    let [Operand::Vector(at)] = &*written.extra else { return cx.refuse() };
    if at.len() != rank {
        return cx.refuse();
    }
    let at = at.iter().map(|at| cx.value(at, Ty::S(32))).collect::<Result<Vec<_>, _>>()?;
    let shared_space = space(shared_space);
    let completion = match copy.completion {
        Completion::Mbarrier(operand) => {
            CopyCompletion::Mbarrier(cx.address_in(operand.into(), shared_space)?)
        }
        _ => CopyCompletion::BulkGroup,
    };
    let reduce = copy.op.map(|_| DataType::ALL.iter().map(|(_, ty)| reduction(cx, *ty)).collect());
    Ok(Code::Tensor(Box::new(TensorOp {
        map: cx.address_before_comma(map.into())?,
        at: at.into(),
        shared: cx.address_in(shared.into(), shared_space)?,
        loads,
        completion,
        multicast: copy.multicast.map(|operand| cx.src(operand.into(), Ty::B(16))).transpose()?,
        reduce,
    })))
}

/// The reduction of elements of this type, if there is one: those that an H200 has.
fn reduction(cx: &Cx<'_, '_>, ty: DataType) -> Option<Update> {
    let op = cx.one_of(&["add", "min", "max", "inc", "dec", "and", "or", "xor"])?;
    let of = match (ty, op) {
        (DataType::U32, _) => Ty::U(32),
        (DataType::U64, "add" | "min" | "max") => Ty::U(64),
        (DataType::I32, "add" | "min" | "max") => Ty::S(32),
        (DataType::I64, "min" | "max") => Ty::S(64),
        (DataType::I32, "and" | "or" | "xor") => Ty::B(32),
        (DataType::U64, "and" | "or" | "xor") => Ty::B(64),
        (DataType::F16, "add" | "min" | "max") => Ty::F16,
        (DataType::Bf16, "add" | "min" | "max") => Ty::Bf16,
        (DataType::F32 | DataType::F32Ftz | DataType::Tf32 | DataType::Tf32Ftz, "add") => Ty::F32,
        (DataType::F64, "add") => Ty::F64,
        _ => return None,
    };
    atomic::update(cx, of)
}

fn issue(cx: &Cx<'_, '_>, copy: &AsyncCopy) -> Result<Code, Bad> {
    if let CopyBytes::Tensor(rank) = copy.bytes {
        return tensor(cx, copy, rank.into());
    }
    let to_space = space(copy.to);
    let to = cx.address_in(copy.destination.into(), to_space)?;
    let from = match copy.from {
        Some(from) => CopySource::Memory(cx.address_in(copy.source.into(), space(from))?),
        None => {
            let values = cx.srcs(copy.source.into(), cx.ty()?)?;
            if values.len() > 4 || copy.element == 0 || copy.element > 8 {
                return cx.refuse();
            }
            CopySource::Registers(values.into(), copy.element.into())
        }
    };
    let (bytes, align) = match copy.bytes {
        CopyBytes::Static(bytes) => (CopyLength::Static(bytes), bytes),
        CopyBytes::Limited(most, operand) => {
            let length = match cx.value(cx.operand(operand.into())?, Ty::B(64))? {
                Src::Pred(pred) => CopyLength::Unless(most, pred),
                _ => CopyLength::AtMost(most, cx.size(operand.into())?),
            };
            (length, most)
        }
        CopyBytes::Operand(operand) => (CopyLength::Operand(cx.size(operand.into())?), BULK),
        CopyBytes::Tensor(_) => return cx.refuse(),
    };
    if !copy.bulk && copy.from.is_some() && ![4, 8, 16].contains(&align) || align == 0 {
        return cx.refuse();
    }
    let completion = match copy.completion {
        Completion::Group => CopyCompletion::Group,
        Completion::BulkGroup => CopyCompletion::BulkGroup,
        Completion::Mbarrier(operand) => CopyCompletion::Mbarrier(cx.address_in(operand.into(), to_space)?),
    };
    let multicast = copy.multicast.map(|operand| cx.src(operand.into(), Ty::B(16))).transpose()?;
    let reduce = match copy.op {
        None => None,
        Some(_) => {
            let ty = cx.ty()?;
            match atomic::update(cx, ty) {
                Some(update) => Some((ty.bytes().max(1), update)),
                None => return cx.refuse(),
            }
        }
    };
    Ok(Code::Copy(Box::new(CopyOp {
        to,
        from,
        bytes,
        align,
        bulk: copy.bulk,
        completion,
        multicast,
        reduce,
    })))
}

/// `mbarrier`
pub(super) fn mbarrier(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    if cx.has("pending_count") {
        let (d, state) = (cx.dst(0)?, cx.src(1, Ty::B(64))?);
        return Ok(lanewise1(d, state, mbarrier::pending));
    }
    let Effect::Mbarrier(read) = effect(cx)? else { return cx.refuse() };
    let address = cx.address_in(read.address.into(), space(read.space))?;
    let number = |operand: u8| cx.src(operand.into(), Ty::U(32));
    let action = match read.op {
        MbarrierOp::Init { count } => MbarrierAction::Init(number(count)?),
        MbarrierOp::Inval => MbarrierAction::Inval,
        MbarrierOp::Arrive { count, expect, drop } => MbarrierAction::Arrive {
            state: if read.address > 0 { cx.dst(0)? } else { super::Dst(None) },
            count: count.map(number).transpose()?,
            expect: expect.map(number).transpose()?,
            drop,
            no_complete: cx.has("noComplete"),
        },
        MbarrierOp::ExpectTx { bytes } => MbarrierAction::ExpectTx(number(bytes)?),
        MbarrierOp::CompleteTx { bytes } => MbarrierAction::CompleteTx(number(bytes)?),
        MbarrierOp::Wait { phase, parity } => {
            MbarrierAction::Wait { done: cx.pred_dst(cx.operand(0)?)?, phase: cx.size(phase.into())?, parity }
        }
        MbarrierOp::CopyArrive { increments } => MbarrierAction::CopyArrive { increments },
    };
    Ok(Code::Mbarrier(Box::new(MbarrierCode { address, action })))
}

/// `st.bulk`, `discard`
pub(super) fn fill(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let Effect::Fill(fill) = effect(cx)? else { return cx.refuse() };
    let address: Address = cx.address_in(fill.address.into(), space(fill.space))?;
    let bytes = match fill.bytes {
        Some(_) => None,
        None => Some(cx.size(usize::from(fill.address) + 1)?),
    };
    Ok(Code::Fill(Box::new(FillOp { address, bytes })))
}
