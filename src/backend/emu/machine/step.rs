//! Steps: one instruction of the program by one group of lanes, with the inserted code around it.

use super::mbarrier::Tried;
use super::{Block, Core, Halt, State, Warp, by_value, is_boundary};
use crate::abi::{LANES, lanes};
use crate::backend::FaultKind;
use crate::backend::emu::image::{Code, MbarrierAction, Op, Part, StackOp};
use crate::backend::emu::regs::Regs;
use crate::backend::emu::special::Env;
use crate::isa::ClusterBarrier;

/// Inserted operations that one step may take before the clock is looked at.
const RUNTIME_OPS_PER_LOOK: u64 = 1 << 16;

/// How an operation left its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// At the next operation.
    Next,
    /// Elsewhere, parted, waiting or gone.
    Changed,
    /// At the next operation, but others shall go first.
    Yield,
}

impl Core<'_> {
    /// Runs a warp for a number of steps, or until it cannot go on.
    /// Tells whether it ended because others shall go first.
    pub(super) fn burst(&mut self, block: &mut Block, warp: usize, burst: u32) -> Result<bool, Halt> {
        let mut left = burst;
        while left > 0 {
            let Some(group) = block.warps[warp].pick() else { break };
            let (used, after) = self.run_group(block, warp, group, left)?;
            left = left.saturating_sub(used);
            if after == After::Yield {
                return Ok(true);
            }
            if self.accesses >= self.points.next || self.released && self.preference.is_some() {
                break;
            }
        }
        Ok(false)
    }

    /// Runs a group as long as nothing changes but its registers and position.
    pub(super) fn run_group(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        budget: u32,
    ) -> Result<(u32, After), Halt> {
        let image = self.image;
        let mut used = 0;
        while used < budget {
            let at = &mut block.warps[warp];
            let alone = at.groups.len() == 1;
            let Some(op) = at.groups.get(group).and_then(|g| Warp::op(&image.ops, g)) else {
                return Ok((used + 1, After::Changed));
            };
            used += 1;
            at.steps += 1;
            self.clock += 1;
            if self.clock >= self.copies.next_due() {
                self.copies_due()?;
            }
            let at = &mut block.warps[warp];
            let after = if op.part == Part::Original {
                at.groups[group].ran = at.steps;
                let lanes = at.groups[group].mask;
                let after = self.execute(block, warp, group, op)?;
                // What follows an instruction belongs to it.
                let next = image.ops.get(block.warps[warp].groups.get(group).map_or(0, |g| g.pc) as usize);
                if next.is_some_and(|op| op.part == Part::After) {
                    self.inserted(block, warp, lanes, is_boundary)?;
                    if after == After::Yield { after } else { After::Changed }
                } else {
                    after
                }
            } else {
                self.whole_step(block, warp, group)?
            };
            let at = &mut block.warps[warp];
            at.merge();
            if alone && at.groups.len() > 1 {
                at.parted(&mut self.rng, self.preference);
            }
            let still_alone = alone && matches!(at.groups.as_slice(), [one] if one.state == State::Ready);
            if after == After::Yield || !still_alone || self.accesses >= self.points.next {
                return Ok((used, after));
            }
        }
        Ok((used, After::Next))
    }

    /// Executes one operation of a group.
    #[inline]
    fn execute(&mut self, block: &mut Block, warp: usize, group: usize, op: &Op) -> Result<After, Halt> {
        let at = &mut block.warps[warp];
        let here = at.groups[group];
        let mask = here.mask & op.guarded(&at.preds, here.pred_base);
        if mask == 0 {
            at.groups[group].pc += 1;
            return Ok(After::Next);
        }
        // Counting bits takes a while on processors of any age.
        self.executed += if mask == u32::MAX { LANES as u64 } else { u64::from(mask.count_ones()) };
        self.accesses += u64::from(op.visible);
        if at.unwritten.is_some() {
            self.before_use(block, warp, here, mask);
        }
        let at = &mut block.warps[warp];
        match &op.code {
            Code::Compute(compute) => {
                let env = Env {
                    tid: &at.tid,
                    position: &block.position,
                    warp: at.index,
                    clock: self.clock,
                    launch: &self.env,
                };
                let mut regs = Regs {
                    file: &mut at.file[here.base as usize..],
                    preds: &mut at.preds[here.pred_base as usize..],
                    local: &at.local_base,
                    env: &env,
                };
                compute(&mut regs, mask);
            }
            Code::Branch { target, spins } => {
                if mask != here.mask {
                    at.split(group, mask, here.pc + 1);
                }
                at.groups[group].pc = *target;
                at.merge();
                if *spins {
                    if at.groups.len() > 1 {
                        at.spun(&mut self.rng);
                    }
                    if self.preference.is_some() && at.goes_round(self.changed, self.clock) {
                        return Ok(After::Yield);
                    }
                }
                return Ok(After::Changed);
            }
            Code::Memory(transfer) => self.transfer(block, warp, here, transfer, mask, op.site)?,
            Code::Atomic(atomic) => self.atomic(block, warp, here, atomic, mask, op.site)?,
            Code::Nothing => {}
            _ => {
                if let Some(index) = op.unlogged {
                    self.note_unlogged(index);
                }
                return self.control(block, warp, group, op, mask);
            }
        }
        if let Some(index) = op.unlogged {
            self.note_unlogged(index);
        }
        block.warps[warp].groups[group].pc += 1;
        Ok(After::Next)
    }

    fn note_unlogged(&mut self, index: u32) {
        if !self.unlogged.contains(&index) {
            self.unlogged.push(index);
            // It may do to memory what nobody is told of.
            if let Some(weak) = &mut self.weak {
                weak.end();
            }
        }
    }

    /// Operations that part lanes, wait, or end.
    fn control(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        op: &Op,
        mask: u32,
    ) -> Result<After, Halt> {
        let who = block.who(warp);
        let at = &mut block.warps[warp];
        let pc = at.groups[group].pc;
        match &op.code {
            Code::Fence => {
                if let Some(site) = op.site {
                    let tickets = (self.recorder.draw(site), self.recorder.draw(site));
                    self.recorder.write(site, mask, who, tickets);
                    self.weak_fence(block, warp, mask, site);
                }
                block.warps[warp].groups[group].pc += 1;
                return Ok(After::Next);
            }
            Code::Yield => {
                at.groups[group].pc += 1;
                return Ok(After::Yield);
            }
            Code::Copy(_) | Code::Tensor(_) => {
                let tried = match &op.code {
                    Code::Tensor(tensor) => self.issue_box(block, warp, group, tensor, mask, op.site)?,
                    Code::Copy(copy) => self.issue(block, warp, group, copy, mask, op.site)?,
                    _ => Tried::Done,
                };
                if tried == Tried::Again {
                    return Ok(After::Yield);
                }
                self.changed = self.clock;
                block.warps[warp].groups[group].pc += 1;
                return Ok(After::Next);
            }
            Code::Group(groups) => {
                if let Some(site) = op.site {
                    self.recorder.write(site, mask, who, (0, 0));
                }
                self.copy_groups(block, warp, *groups, mask)?;
                self.changed = self.clock;
                block.warps[warp].groups[group].pc += 1;
                return Ok(After::Next);
            }
            Code::Mbarrier(mbarrier) => {
                let tried = self.mbarrier(block, warp, group, mbarrier, mask, op.site)?;
                if tried != Tried::Again {
                    if !matches!(mbarrier.action, MbarrierAction::Wait { .. }) {
                        self.changed = self.clock;
                    }
                    block.warps[warp].groups[group].pc += 1;
                }
                return Ok(if tried == Tried::Done { After::Next } else { After::Yield });
            }
            Code::Image(image) => {
                self.image(block, warp, group, image, mask, op.site)?;
                block.warps[warp].groups[group].pc += 1;
                return Ok(After::Next);
            }
            Code::Query(query) => {
                self.query(block, warp, group, query, mask)?;
                block.warps[warp].groups[group].pc += 1;
                return Ok(After::Next);
            }
            Code::Fill(fill) => {
                self.fill(block, warp, group, fill, mask, op.site)?;
                self.changed = self.clock;
                block.warps[warp].groups[group].pc += 1;
                return Ok(After::Next);
            }
            Code::ClusterBarrier(ClusterBarrier::Arrive { .. }) => {
                if let Some(site) = op.site {
                    self.recorder.write(site, mask, who, (0, 0));
                }
                self.cluster_arrive(block, warp, mask)?;
                self.changed = self.clock;
                block.warps[warp].groups[group].pc += 1;
                return Ok(After::Next);
            }
            Code::Poison(what) => return Err(Halt::Unsupported { what: what.to_string() }),
            Code::Trap => {
                let lane = Some(mask.trailing_zeros() as usize);
                return Err(Halt::Fault {
                    kind: FaultKind::Trap,
                    lane,
                    detail: "a `trap` was reached".into(),
                });
            }
            Code::Stack(stack) => {
                self.stack(block, warp, group, stack, mask)?;
                block.warps[warp].groups[group].pc += 1;
                return Ok(After::Next);
            }
            _ => {}
        }
        at.split(group, mask, pc + 1);
        if matches!(op.code, Code::ClusterBarrier(_) | Code::Barrier(_) | Code::Matrix(_)) {
            self.changed = self.clock;
        }
        match &op.code {
            Code::BranchTable(index, targets) => {
                let index = self.value(block, warp, group, *index);
                let at = &mut block.warps[warp];
                let last = targets.len().saturating_sub(1);
                let parts = by_value(mask, |lane| (index[lane] as u32 as usize).min(last));
                let here = at.groups[group];
                at.groups[group].mask = 0;
                for (target, lanes) in parts {
                    let pc = targets.get(target).copied().unwrap_or(pc + 1);
                    at.groups.push(super::warp::Group { pc, mask: lanes, ..here });
                }
                at.merge();
            }
            Code::Call(call) => self.call(block, warp, group, call)?,
            Code::Return(function) => self.ret(block, warp, group, *function, op.site)?,
            Code::Exit => {
                if let Some(site) = op.site {
                    self.recorder.write(site, mask, who, (0, 0));
                }
                self.exit(block, warp, group)?;
            }
            Code::ClusterBarrier(_) => {
                if let Some(site) = op.site {
                    self.recorder.write(site, mask, who, (0, 0));
                }
                self.cluster_wait(block, warp, group);
            }
            Code::Barrier(barrier) => self.barrier(block, warp, group, barrier, op.site)?,
            Code::Converge(converge) => self.converge(block, warp, group, converge, op.site)?,
            Code::Matrix(matrix) => self.matrix(block, warp, group, matrix, op.site)?,
            _ => {}
        }
        Ok(After::Changed)
    }

    /// The value of an operand for a group.
    pub(super) fn value(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        src: crate::backend::emu::regs::Src,
    ) -> [u64; LANES] {
        self.with_regs(block, warp, group, |regs| regs.get(src))
    }

    /// Works on the registers of a group's frame.
    pub(super) fn with_regs<T>(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        work: impl FnOnce(&mut Regs<'_>) -> T,
    ) -> T {
        let at = &mut block.warps[warp];
        let here = at.groups[group];
        let env = Env {
            tid: &at.tid,
            position: &block.position,
            warp: at.index,
            clock: self.clock,
            launch: &self.env,
        };
        work(&mut Regs {
            file: &mut at.file[here.base as usize..],
            preds: &mut at.preds[here.pred_base as usize..],
            local: &at.local_base,
            env: &env,
        })
    }

    fn stack(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        op: &StackOp,
        mask: u32,
    ) -> Result<(), Halt> {
        match op {
            StackOp::Save(to) => {
                let top = block.warps[warp].local_top;
                self.with_regs(block, warp, group, |regs| regs.set(*to, mask, |lane| top[lane]));
            }
            StackOp::Restore(from) => {
                let top = self.value(block, warp, group, *from);
                let at = &mut block.warps[warp];
                for lane in lanes(mask) {
                    at.local_top[lane] = top[lane].clamp(at.local_base[lane], at.local_top[lane]);
                }
            }
            StackOp::Alloca { to, bytes, align } => {
                let bytes = self.value(block, warp, group, *bytes);
                let at = &mut block.warps[warp];
                let mut start = [0; LANES];
                for lane in lanes(mask) {
                    start[lane] = at.local_top[lane].next_multiple_of((*align).clamp(1, 256));
                    at.grow_local(lane, start[lane].saturating_add(bytes[lane]))?;
                }
                self.with_regs(block, warp, group, |regs| regs.set(*to, mask, |lane| start[lane]));
            }
        }
        Ok(())
    }

    /// A step of an instrumented text: the inserted code before an instruction, the instruction by the lanes that
    /// came for it, and the inserted code after it. Nobody else runs meanwhile.
    fn whole_step(&mut self, block: &mut Block, warp: usize, group: usize) -> Result<After, Halt> {
        let image = self.image;
        let lanes = block.warps[warp].groups[group].mask;
        self.inserted(block, warp, lanes, |part| part == Part::Original)?;
        // Whoever of these lanes is at the instruction executes it now.
        let at = &mut block.warps[warp];
        let Some(group) = at.groups.iter().position(|g| g.mask & lanes != 0 && g.state == State::Ready)
        else {
            return Ok(After::Changed);
        };
        at.groups[group].ran = at.steps;
        // Others that were there already run later.
        if at.groups[group].mask & !lanes != 0 {
            let pc = at.groups[group].pc;
            at.split(group, lanes, pc);
        }
        let Some(op) = Warp::op(&image.ops, &at.groups[group]) else { return Ok(After::Changed) };
        let after = self.execute(block, warp, group, op)?;
        self.inserted(block, warp, lanes, is_boundary)?;
        Ok(after)
    }

    /// Runs inserted code of these lanes until all are where they shall be, wait, or have ended.
    fn inserted(
        &mut self,
        block: &mut Block,
        warp: usize,
        lanes: u32,
        done: impl Fn(Part) -> bool,
    ) -> Result<(), Halt> {
        let image = self.image;
        let mut executed = 0u64;
        // What it writes is nothing that the program waits for.
        let changed = self.changed;
        loop {
            let groups = block.warps[warp].groups.iter().enumerate();
            let running = groups.filter(|(_, g)| g.mask & lanes != 0 && g.state == State::Ready);
            let behind = running.filter(|(_, g)| Warp::op(&image.ops, g).is_some_and(|op| !done(op.part)));
            // Fair enough for loops over lanes: the lowest first, and every so often the one that waited longest.
            let next = if executed % 64 == 63 {
                behind.min_by_key(|(_, g)| g.ran)
            } else {
                behind.min_by_key(|(_, g)| (u32::MAX - g.depth, g.pc))
            };
            self.changed = changed;
            let Some((group, here)) = next else { return Ok(()) };
            let Some(op) = Warp::op(&image.ops, here) else { return Ok(()) };
            executed += 1;
            block.warps[warp].groups[group].ran = block.warps[warp].steps;
            self.execute(block, warp, group, op)?;
            block.warps[warp].merge();
            if executed.is_multiple_of(RUNTIME_OPS_PER_LOOK)
                && self.deadline.is_some_and(|deadline| std::time::Instant::now() > deadline)
            {
                return Err(Halt::Timeout);
            }
        }
    }
}
