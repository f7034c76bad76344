//! A launch under a schedule that is chosen from outside.

use std::time::Instant;

use smallvec::SmallVec;

use super::place::{Place, locate};
use super::warp::{Group, State, Warp};
use super::{Block, Core, Halt, Machine};
use crate::abi::{SHARED_OFFSET, lanes};
use crate::backend::Stop;
use crate::backend::emu::image::{Address, Code, Op, Values};
use crate::backend::emu::memory::{CONST_BASE, GLOBAL_BASE};
use crate::backend::emu::schedule::{Arrival, Touch, Turn};
use crate::isa::BarrierKind;

/// Instructions of one turn; a loop that nobody can see into must not keep the others waiting for ever.
const LONGEST_TURN: u32 = 4096;

impl Machine<'_> {
    /// Whether somebody chooses.
    pub(in super::super) fn is_chosen(&self) -> bool {
        self.core.schedule.is_some()
    }

    /// Runs the launch as the schedule says, to its end or to where it stops.
    pub(in super::super) fn run_chosen(&mut self) -> Option<Stop> {
        let mut turns = Vec::new();
        let mut slots = Vec::new();
        loop {
            self.start_blocks();
            if self.blocks.is_empty() {
                return None;
            }
            turns.clear();
            slots.clear();
            for (slot, block) in self.blocks.iter().enumerate() {
                for (warp, at) in block.warps.iter().enumerate() {
                    for group in at.groups.iter().filter(|group| group.state == State::Ready) {
                        turns.push(self.core.look_ahead(block, warp, *group));
                        slots.push((slot, warp, group.mask));
                    }
                }
            }
            if turns.is_empty() {
                return Some(Stop::Deadlock { warps: self.positions() });
            }
            let chosen = self.core.schedule.as_mut()?.next(&turns)?;
            let (slot, warp, mask) = *slots.get(chosen)?;
            let turn = self.chosen_turn(slot, warp, mask);
            if let Err(halt) = turn {
                return Some(self.stop(halt, slot, warp));
            }
            self.wake_clusters();
            self.end_blocks();
            if self.core.deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Some(self.timed_out());
            }
        }
    }

    fn chosen_turn(&mut self, slot: usize, warp: usize, mask: u32) -> Result<(), Halt> {
        let Some(block) = self.blocks.get_mut(slot) else { return Ok(()) };
        if !block.warps[warp].started {
            block.warps[warp].started = true;
            self.core.shared_variables(block, warp);
        }
        // Lanes may part; those that go on with the first of them are this turn's.
        let first = mask & mask.wrapping_neg();
        for step in 0..LONGEST_TURN {
            let at = &block.warps[warp];
            let own = |group: &&Group| group.mask & first != 0 && group.state == State::Ready;
            let Some(group) = at.groups.iter().find(own).copied() else { break };
            let op = Warp::op(&self.core.image.ops, &group);
            let visible = op.is_some_and(|op| is_visible(&op.code) || self.core.is_sc_fence(op));
            if step > 0 && visible {
                break;
            }
            let index = at.groups.iter().position(|g| g.mask == group.mask).unwrap_or(0);
            self.core.run_group(block, warp, index, 1)?;
        }
        Ok(())
    }
}

/// Whether others can tell when it is executed.
fn is_visible(code: &Code) -> bool {
    match code {
        Code::Memory(_)
        | Code::Atomic(_)
        | Code::Barrier(_)
        | Code::ClusterBarrier(_)
        | Code::Copy(_)
        | Code::Tensor(_)
        | Code::Group(_)
        | Code::Mbarrier(_)
        | Code::Fill(_)
        | Code::Image(_)
        | Code::Matrix(_)
        | Code::Converge(_)
        | Code::Call(_) => true,
        Code::Compute(_)
        | Code::Fence
        | Code::Nothing
        | Code::Branch { .. }
        | Code::BranchTable(..)
        | Code::Return(_)
        | Code::Exit
        | Code::Trap
        | Code::Yield
        | Code::Stack(_)
        | Code::Query(_)
        | Code::Poison(_) => false,
    }
}

impl Core<'_> {
    /// What the next instruction of a group does.
    fn look_ahead(&self, block: &Block, warp: usize, group: Group) -> Turn {
        let at = &block.warps[warp];
        let mut turn = Turn {
            block: block.position.linear,
            warp: at.index,
            lanes: group.mask,
            touches: SmallVec::new(),
            barrier: None,
        };
        let Some(op) = Warp::op(&self.image.ops, &group) else { return turn };
        let mask = group.mask & op.guarded(&at.preds, group.pred_base);
        match &op.code {
            Code::Memory(transfer) => {
                let bytes = transfer.unit * transfer.values.len() as u32;
                let writes = matches!(transfer.values, Values::Store(_));
                turn.touches = touches(block, at, group, mask, &transfer.address, bytes, writes);
            }
            Code::Atomic(atomic) => {
                let bytes = atomic.unit * atomic.b.len() as u32;
                turn.touches = touches(block, at, group, mask, &atomic.address, bytes, true);
            }
            Code::Barrier(barrier) if mask != 0 => {
                let ids = super::access::operand(at, group, barrier.id);
                turn.barrier = ids
                    .get(mask.trailing_zeros() as usize)
                    .map(|id| Arrival { id: *id as u32, waits: barrier.kind != BarrierKind::Arrive });
            }
            // The order of these matters where memory is weak: as if all wrote one word that nobody else has.
            Code::Fence if mask != 0 && self.is_sc_fence(op) => {
                turn.touches.push(Touch { shared: None, address: 0, bytes: 1, writes: true });
            }
            _ => {}
        }
        turn
    }

    fn is_sc_fence(&self, op: &Op) -> bool {
        self.weak.as_ref().zip(op.site).is_some_and(|(weak, site)| weak.is_sc(site.id))
    }
}

fn touches(
    block: &Block,
    at: &Warp,
    group: Group,
    mask: u32,
    address: &Address,
    bytes: u32,
    writes: bool,
) -> SmallVec<[Touch; 1]> {
    let addresses = Core::addresses(at, group, address);
    let touch = |lane: usize| {
        let (place, address) = locate(address.space, addresses[lane], &block.position);
        let (shared, address) = match place {
            Place::Shared => (Some(block.position.linear), address & SHARED_OFFSET),
            Place::Global if !(CONST_BASE..GLOBAL_BASE).contains(&address) => (None, address),
            Place::Global | Place::Peer | Place::Local | Place::Param => return None,
        };
        Some(Touch { shared, address, bytes, writes })
    };
    lanes(mask).filter_map(touch).collect()
}
