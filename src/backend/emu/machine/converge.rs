//! Warp instructions whose lanes meet: they wait until all live lanes of their mask are at such an instruction with
//! the same mask, then exchange values. A lane that its own mask leaves out does not wait.

use super::warp::{Group, State, Warp};
use super::{Block, Core, Halt, by_value};
use crate::abi::lanes;
use crate::backend::emu::image::{Code, ConvergeOp, LoggedSite, Met};

impl Warp {
    /// Lanes that wait in this state.
    pub(super) fn arrived(&self, state: State) -> u32 {
        self.groups.iter().filter(|g| g.state == state).fold(0, |lanes, g| lanes | g.mask)
    }
}

impl Core<'_> {
    /// A group comes to a converging instruction.
    pub(super) fn converge(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        op: &ConvergeOp,
        site: Option<LoggedSite>,
    ) -> Result<(), Halt> {
        let mask = block.warps[warp].groups[group].mask;
        let inputs = self.with_regs(block, warp, group, |regs| op.inputs.map(|src| regs.get(src)));
        let masks = op.mask.map(|mask| self.value(block, warp, group, mask));
        let at = &mut block.warps[warp];
        for (kept, brought) in at.inputs.iter_mut().zip(&inputs) {
            for lane in lanes(mask) {
                kept[lane] = brought[lane];
            }
        }
        let Some(masks) = masks else {
            self.exchange(block, warp, group, op, mask);
            return Ok(());
        };
        if let Some(site) = site {
            self.recorder.a = masks.map(|mask| mask & 0xffff_ffff);
            self.recorder.write(site, mask, block.who(warp), (0, 0));
        }
        let at = &mut block.warps[warp];
        let here = at.groups.remove(group);
        for (named, lanes) in by_value(mask, |lane| masks[lane] as u32) {
            let state = State::Converge { mask: named, class: op.class };
            let (inside, outside) = (lanes & named, lanes & !named);
            if inside != 0 {
                at.groups.push(Group { mask: inside, state, ..here });
            }
            if outside != 0 {
                at.groups.push(Group {
                    mask: outside,
                    state: State::Converge { mask: 0, class: op.class },
                    ..here
                });
            }
        }
        self.converged(block, warp)
    }

    /// Lets groups go on whose masks are complete.
    pub(super) fn converged(&mut self, block: &mut Block, warp: usize) -> Result<(), Halt> {
        loop {
            let at = &mut block.warps[warp];
            let complete = at.groups.iter().find_map(|group| match group.state {
                State::Converge { mask, .. } => {
                    let there = at.arrived(group.state);
                    (mask & at.live & !there == 0).then_some((group.state, there))
                }
                _ => None,
            });
            let Some((state, there)) = complete else { break };
            let image = self.image;
            self.weak_meet(block.position.linear, warp, there);
            while let Some(group) = block.warps[warp].groups.iter().position(|g| g.state == state) {
                let pc = block.warps[warp].groups[group].pc as usize;
                match image.ops.get(pc).map(|op| &op.code) {
                    Some(Code::Converge(op)) => self.exchange(block, warp, group, op, there),
                    Some(Code::Matrix(op)) => self.together(block, warp, group, op)?,
                    _ => block.warps[warp].groups[group].state = State::Ready,
                }
            }
        }
        block.warps[warp].merge();
        Ok(())
    }

    /// Writes the results of one group and lets it go on.
    fn exchange(&mut self, block: &mut Block, warp: usize, group: usize, op: &ConvergeOp, there: u32) {
        let inputs = block.warps[warp].inputs;
        let mask = block.warps[warp].groups[group].mask;
        let met = Met { inputs: &inputs, lanes: there };
        self.with_regs(block, warp, group, |regs| (op.exchange)(regs, mask, &met));
        let at = &mut block.warps[warp];
        let steps = at.steps;
        let group = &mut at.groups[group];
        group.state = State::Ready;
        group.ran = steps;
        group.pc += 1;
    }
}
