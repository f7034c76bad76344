//! CTA barriers: sixteen of them, counted in warps. A warp arrives once all its live lanes have executed the barrier;
//! `arrive` waits for nobody but its own warp's lanes. Warps that have ended count as arrived where no thread count is
//! given.

use super::warp::{State, Warp};
use super::{Block, Core, Halt, by_value, is_arrive};
use crate::abi::{barrier_word, lanes};
use crate::backend::FaultKind;
use crate::backend::emu::image::{BarrierOp, Code, LoggedSite, ReduceOutput};

/// One barrier of a block.
#[derive(Clone, Debug)]
pub(super) struct BarrierState {
    /// Threads that have arrived, in whole warps.
    arrived: u32,
    /// Which warps have.
    warps: u64,
    /// Thread count of the latest arrival; 0 is the whole block.
    count: u32,
    popc: u32,
    all: bool,
    any: bool,
}

impl Default for BarrierState {
    fn default() -> Self {
        Self { arrived: 0, warps: 0, count: 0, popc: 0, all: true, any: false }
    }
}

impl Block {
    /// What a group at a barrier waits for.
    pub(super) fn describe_barrier(&self, id: u8, count: u32) -> String {
        let arrived = self.barriers.get(usize::from(id)).map_or(0, |barrier| barrier.arrived);
        let all =
            if count == 0 { 32 * self.warps.iter().filter(|w| w.live != 0).count() as u32 } else { count };
        format!("barrier {id} ({arrived} of {all} threads arrived)")
    }
}

impl Core<'_> {
    /// A group comes to a barrier.
    pub(super) fn barrier(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        op: &BarrierOp,
        site: Option<LoggedSite>,
    ) -> Result<(), Halt> {
        let ids = self.value(block, warp, group, op.id);
        let counts = op.count.map(|count| self.value(block, warp, group, count));
        let mask = block.warps[warp].groups[group].mask;
        let count = |lane: usize| counts.as_ref().map(|counts| counts[lane] as u32);
        if let Some(site) = site {
            self.recorder.a = std::array::from_fn(|lane| barrier_word(ids[lane] as u32, count(lane)));
            self.recorder.write(site, mask, block.who(warp), (0, 0));
        }
        let parts = by_value(mask, |lane| (ids[lane] as u32, count(lane).unwrap_or(0)));
        let here = block.warps[warp].groups[group];
        block.warps[warp].groups.remove(group);
        for ((id, count), lanes) in &parts {
            let Some(id) = u8::try_from(*id).ok().filter(|id| *id < 16) else {
                block.warps[warp].groups.push(here);
                return Err(Halt::Fault {
                    kind: FaultKind::Device,
                    lane: Some(lanes.trailing_zeros() as usize),
                    detail: format!("barrier {id}, where a block has 16"),
                });
            };
            self.weak_arrive(block.position.linear, warp, *lanes, u32::from(id));
            let state = State::Barrier { id, count: *count, counted: false };
            block.warps[warp].groups.push(super::warp::Group { mask: *lanes, state, ..here });
        }
        for ((id, _), _) in parts {
            self.warp_arrives(block, warp, id as u8);
        }
        Ok(())
    }

    /// Counts the warp if all its live lanes are at the barrier.
    fn warp_arrives(&mut self, block: &mut Block, warp: usize, id: u8) {
        let at = &mut block.warps[warp];
        let waits = |state: State| matches!(state, State::Barrier { id: i, counted: false, .. } if i == id);
        let there = at.groups.iter().filter(|g| waits(g.state)).fold(0, |lanes, g| lanes | g.mask);
        if there != at.live || there == 0 {
            return;
        }
        let barrier = &mut block.barriers[usize::from(id)];
        barrier.arrived += 32;
        barrier.warps |= 1 << warp;
        let ops = &self.image.ops;
        for group in &mut at.groups {
            let State::Barrier { count, counted, .. } = &mut group.state else { continue };
            *counted = true;
            barrier.count = *count;
            let Some(op) = ops.get(group.pc as usize) else { continue };
            if let Code::Barrier(op) = &op.code
                && let Some(reduce) = &op.reduce
            {
                let slot = reduce.input.slot;
                let bits = slot.map_or(0, |slot| at.preds[(group.pred_base + slot) as usize]);
                let bits = group.mask & if reduce.input.negated { !bits } else { bits };
                barrier.popc += bits.count_ones();
                barrier.any |= bits != 0;
                barrier.all &= bits == group.mask;
            }
            if is_arrive(&op.code) {
                group.state = State::Ready;
                group.pc += 1;
            }
        }
        at.merge();
        self.complete(block, id);
    }

    /// Lets everybody go on if the barrier is complete.
    fn complete(&mut self, block: &mut Block, id: u8) {
        let barrier = &block.barriers[usize::from(id)];
        if barrier.warps == 0 {
            return;
        }
        let complete = if barrier.count == 0 {
            block.warps.iter().enumerate().all(|(i, warp)| warp.live == 0 || barrier.warps >> i & 1 != 0)
        } else {
            barrier.arrived >= barrier.count
        };
        if !complete {
            return;
        }
        self.released = true;
        let done = std::mem::take(&mut block.barriers[usize::from(id)]);
        let mut waiters = Vec::new();
        for (number, warp) in block.warps.iter_mut().enumerate() {
            let Warp { groups, file, preds, steps, .. } = warp;
            let mut changed = false;
            for group in groups.iter_mut() {
                if !matches!(group.state, State::Barrier { id: i, counted: true, .. } if i == id) {
                    continue;
                }
                if let Some(Code::Barrier(op)) = self.image.ops.get(group.pc as usize).map(|op| &op.code)
                    && let Some(reduce) = &op.reduce
                {
                    let to_pred = |preds: &mut Vec<u32>, slot: Option<u32>, value: bool| {
                        if let Some(slot) = slot {
                            let bits = &mut preds[(group.pred_base + slot) as usize];
                            *bits = if value { *bits | group.mask } else { *bits & !group.mask };
                        }
                    };
                    match reduce.output {
                        ReduceOutput::Popc(dst) => {
                            if let Some(slot) = dst.0 {
                                let row = &mut file[(group.base + slot) as usize];
                                for lane in lanes(group.mask) {
                                    row[lane] = u64::from(done.popc);
                                }
                            }
                        }
                        ReduceOutput::And(dst) => to_pred(preds, dst.0, done.all),
                        ReduceOutput::Or(dst) => to_pred(preds, dst.0, done.any),
                    }
                }
                group.state = State::Ready;
                group.ran = *steps;
                group.pc += 1;
                changed = true;
                if self.weak.is_some() {
                    waiters.push((number, group.mask));
                }
            }
            if changed {
                warp.merge();
            }
        }
        self.weak_depart(block.position.linear, u32::from(id), &waiters);
    }

    /// Lanes of a warp have ended: others may have waited for that.
    pub(super) fn lanes_left(&mut self, block: &mut Block, warp: usize) -> Result<(), Halt> {
        for id in 0..16 {
            self.warp_arrives(block, warp, id);
            if block.warps[warp].live == 0 {
                self.complete(block, id);
            }
        }
        self.converged(block, warp)
    }
}
