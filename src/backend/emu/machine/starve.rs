//! Threads that wait for ever: loops that read memory which nobody who runs will change.
//!
//! When nothing has changed for long, each warp is stepped by itself to see whether it comes back to a state that it was in,
//! registers and all, while memory stays as it is. If every warp that could run does, nothing will ever happen again. That is a
//! proof, so loops that count, look at a clock or give up are never taken for such. Only blocks that wait for the end of others
//! and loops that meet at block barriers are left to the timeout.

use super::place::{Place, locate, tagged};
use super::warp::{Frame, Group, State, Warp};
use super::{Block, Core, Halt, Machine};
use crate::abi::Lanes;
use crate::backend::emu::image::{Address, Code, LoggedSite, MbarrierAction, Values};
use crate::backend::emu::memory::{CONST_BASE, GLOBAL_BASE};
use crate::backend::{Notice, NoticeKind, Stop};

/// Steps without a change after which it is looked for first.
const QUIET: u64 = 1 << 16;

/// Steps of one warp, for each step that nothing has changed.
const SHARE: u64 = 16;

/// Reads that are told of, at most.
const MOST_TOLD: usize = 16;

/// When starvation is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// The last change that is known.
    changed: u64,
    /// Steps without one after which to look.
    quiet: u64,
}

impl Default for Watch {
    fn default() -> Self {
        Self { changed: 0, quiet: QUIET }
    }
}

/// A read of a loop.
#[derive(Clone, Copy)]
struct Read {
    site: LoggedSite,
    lane: usize,
    address: u64,
    bytes: u32,
}

/// What a warp does next depends on this, and on memory.
struct Snapshot {
    groups: Vec<Group>,
    file: Vec<Lanes>,
    preds: Vec<u32>,
    frames: Vec<Vec<Frame>>,
    local: Vec<Vec<u8>>,
    local_top: Lanes,
    inputs: [Lanes; 3],
    tries: u32,
    steps: u64,
}

impl Snapshot {
    fn of(warp: &Warp) -> Self {
        Self {
            groups: warp.groups.clone(),
            file: warp.file.clone(),
            preds: warp.preds.clone(),
            frames: warp.frames.clone(),
            local: warp.local.clone(),
            local_top: warp.local_top,
            inputs: warp.inputs,
            tries: warp.tries,
            steps: warp.steps,
        }
    }

    /// Whether the warp is in this state again, and every group that can run has run meanwhile.
    fn again(&self, warp: &Warp) -> bool {
        let same = |(a, b): (&Group, &Group)| {
            a.place() == b.place()
                && a.mask == b.mask
                && a.state == b.state
                && (b.state != State::Ready || b.ran > self.steps)
        };
        warp.steps > self.steps
            && self.groups.len() == warp.groups.len()
            && self.groups.iter().zip(&warp.groups).all(same)
            && self.preds == warp.preds
            && self.file == warp.file
            && self.frames == warp.frames
            && self.local_top == warp.local_top
            && self.inputs == warp.inputs
            && self.tries == warp.tries
            && self.local == warp.local
    }
}

impl Machine<'_> {
    /// Whether nothing will ever happen again, looked for now and then.
    pub(super) fn starved(&mut self) -> Result<bool, (Halt, usize, usize)> {
        let core = &mut self.core;
        if core.changed != core.watch.changed {
            core.watch = Watch { changed: core.changed, ..Watch::default() };
        }
        let quiet = core.clock.saturating_sub(core.changed);
        let settled = core.copies.next_due() == u64::MAX && core.weak.is_none() && core.ring.is_none();
        if quiet < core.watch.quiet || core.image.timed || !settled {
            return Ok(false);
        }
        core.watch.quiet = quiet.saturating_mul(2);
        let budget = quiet / SHARE;
        let mut found: Vec<(usize, usize, Vec<Read>)> = Vec::new();
        for (slot, block) in self.blocks.iter_mut().enumerate() {
            for warp in 0..block.warps.len() {
                if !block.warps[warp].is_ready() {
                    continue;
                }
                match core.comes_back(block, warp, budget).map_err(|halt| (halt, slot, warp))? {
                    Some(reads) => found.push((slot, warp, reads)),
                    None => return Ok(false),
                }
            }
        }
        let waiting = self.launch.blocks().saturating_sub(self.next_block);
        for (slot, warp, reads) in found {
            let block = self.blocks.get(slot).map_or(0, |block| block.position.linear);
            for read in reads {
                self.tell(block, warp, read, waiting);
            }
        }
        Ok(true)
    }

    /// The end of a run in which nothing will ever happen again.
    pub(super) fn livelock(&self) -> Stop {
        let mut warps = self.positions();
        for warp in warps.iter_mut().filter(|warp| warp.waiting.is_empty()) {
            "what never comes, as the state of all threads repeats".clone_into(&mut warp.waiting);
        }
        Stop::Deadlock { warps }
    }

    fn tell(&mut self, block: u32, warp: usize, read: Read, waiting: u64) {
        let notice = Notice {
            kind: NoticeKind::Starved { waiting },
            site: read.site.id,
            block,
            warp: warp as u8,
            lane: read.lane as u8,
            address: read.address,
            bytes: read.bytes as u8,
            count: 1,
        };
        self.core.notice(notice, MOST_TOLD);
    }
}

impl Core<'_> {
    /// Steps a warp until it is in a state that it was in, and tells what it read from then on. `None`: memory has changed,
    /// or there was no such state.
    fn comes_back(&mut self, block: &mut Block, warp: usize, budget: u64) -> Result<Option<Vec<Read>>, Halt> {
        let changed = self.changed;
        let mut before = Snapshot::of(&block.warps[warp]);
        let mut reads: Vec<Read> = Vec::new();
        for step in 1..=budget {
            let at = &mut block.warps[warp];
            // All of them wait: others decide.
            let Some(group) = at.pick() else { return Ok(Some(reads)) };
            if let Some(read) = self.next_read(block, warp, group)
                && !reads.iter().any(|known| known.site.id == read.site.id)
            {
                reads.push(read);
            }
            self.run_group(block, warp, group, 1)?;
            if self.changed != changed {
                return Ok(None);
            }
            let at = &block.warps[warp];
            if before.again(at) {
                return Ok(Some(reads));
            }
            if step.is_power_of_two() {
                before = Snapshot::of(at);
                reads.clear();
            }
        }
        Ok(None)
    }

    /// What a group reads next, if others could change it.
    fn next_read(&self, block: &Block, warp: usize, group: usize) -> Option<Read> {
        let at = &block.warps[warp];
        let here = *at.groups.get(group)?;
        let op = Warp::op(&self.image.ops, &here)?;
        let site = op.site?;
        let (address, bytes): (&Address, u32) = match &op.code {
            Code::Memory(transfer) => match &transfer.values {
                Values::Load(to) => (&transfer.address, transfer.unit * to.len() as u32),
                Values::Store(_) => return None,
            },
            Code::Atomic(atomic) => (&atomic.address, atomic.unit * atomic.b.len() as u32),
            Code::Mbarrier(wait) if matches!(wait.action, MbarrierAction::Wait { .. }) => (&wait.address, 8),
            _ => return None,
        };
        let mask = here.mask & op.guarded(&at.preds, here.pred_base);
        let lane = mask.trailing_zeros() as usize;
        let addresses = Self::addresses(at, here, address);
        let (place, to) = locate(address.space, *addresses.get(lane)?, &block.position);
        let private = match place {
            Place::Local | Place::Param => true,
            Place::Global => (CONST_BASE..GLOBAL_BASE).contains(&to),
            Place::Shared | Place::Peer => false,
        };
        if private {
            return None;
        }
        let mut out = [0; crate::abi::LANES];
        tagged(address.space, 1 << lane, &addresses, &block.position, &mut out);
        Some(Read { site, lane, address: out[lane], bytes })
    }
}
