//! CTA barriers and the warp barrier.

use super::super::decode::{Bad, Cx};
use super::super::image::{BarrierOp, BarrierReduce, Code, ReduceOutput};
use super::super::types::Ty;
use super::warp;
use crate::isa::{self, BarrierKind, Effect};

/// `bar`, `barrier`
pub(super) fn barrier(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    if cx.has("cluster") {
        return match isa::classify(cx.instruction).effect {
            Effect::ClusterBarrier(op) => Ok(Code::ClusterBarrier(op)),
            _ => cx.refuse(),
        };
    }
    if cx.has("warp") {
        return warp::barrier(cx);
    }
    let ty = Ty::U(32);
    if cx.has("red") {
        let counted = cx.len() == 4;
        let input = cx.pred_src(cx.operand(if counted { 3 } else { 2 })?)?;
        let output = match cx.one_of(&["popc", "and", "or"]) {
            Some("popc") => ReduceOutput::Popc(cx.dst(0)?),
            Some("and") => ReduceOutput::And(cx.pred_dst(cx.operand(0)?)?),
            Some("or") => ReduceOutput::Or(cx.pred_dst(cx.operand(0)?)?),
            _ => return cx.refuse(),
        };
        let count = if counted { Some(cx.src(2, ty)?) } else { None };
        return Ok(Code::Barrier(Box::new(BarrierOp {
            kind: BarrierKind::Red,
            id: cx.src(1, ty)?,
            count,
            reduce: Some(BarrierReduce { input, output }),
        })));
    }
    let kind = match cx.one_of(&["sync", "arrive"]) {
        Some("sync") => BarrierKind::Sync,
        Some("arrive") => BarrierKind::Arrive,
        _ => return cx.refuse(),
    };
    let count = if cx.len() > 1 { Some(cx.src(1, ty)?) } else { None };
    Ok(Code::Barrier(Box::new(BarrierOp { kind, id: cx.src(0, ty)?, count, reduce: None })))
}
