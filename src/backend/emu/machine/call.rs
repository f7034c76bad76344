//! Calls and returns. Arguments and results are copied between the frames of caller and callee.

use super::warp::{Frame, Group, Warp};
use super::{Block, Core, Halt, by_value};
use crate::abi::{LANES, lanes};
use crate::backend::FaultKind;
use crate::backend::emu::image::{Builtin, Call, Code, LoggedSite, Slot, Target};
use crate::backend::emu::memory::{CODE_STRIDE, CODE_WINDOW, Kind};
use crate::backend::emu::regs::Src;
use crate::backend::emu::types::low;

/// Calls above a kernel.
const DEEPEST: u32 = 4096;
/// Registers of all frames of a warp.
const MOST_ROWS: usize = 1 << 19;

/// Where one frame of a lane is.
#[derive(Clone, Copy)]
struct Place {
    base: u32,
    pred_base: u32,
    local_base: u64,
}

impl Warp {
    /// Copies a value of a lane between frames.
    fn pass(&mut self, lane: usize, from: (Slot, Place), to: (Slot, Place)) {
        let ((from, source), (to, target)) = (from, to);
        // As many bytes as both have; a register takes or gives eight.
        let mut bytes = Vec::new();
        match from {
            Slot::Local { offset, bytes: size } => {
                let start = source.local_base.saturating_add(offset) as usize;
                let end = start.saturating_add(size as usize);
                bytes.extend_from_slice(self.local[lane].get(start..end).unwrap_or_default());
            }
            Slot::Value(src) => bytes.extend_from_slice(&self.lane_value(lane, src, source).to_le_bytes()),
            Slot::Pred(pred) => {
                let bits = pred.0.map_or(0, |slot| self.preds[(source.pred_base + slot) as usize]);
                bytes.push((bits >> lane & 1) as u8);
            }
            Slot::Sink => {}
        }
        match to {
            Slot::Local { offset, bytes: size } => {
                let start = target.local_base.saturating_add(offset) as usize;
                let end = start.saturating_add(size as usize);
                if let Some(room) = self.local[lane].get_mut(start..end) {
                    for (to, from) in room.iter_mut().zip(bytes) {
                        *to = from;
                    }
                }
            }
            Slot::Value(Src::Reg(slot)) => {
                let mut word = [0; 8];
                for (to, from) in word.iter_mut().zip(bytes) {
                    *to = from;
                }
                self.file[(target.base + slot) as usize][lane] = u64::from_le_bytes(word);
            }
            Slot::Pred(pred) => {
                if let Some(slot) = pred.0 {
                    let set = bytes.first().is_some_and(|byte| byte & 1 != 0);
                    let bits = &mut self.preds[(target.pred_base + slot) as usize];
                    *bits = if set { *bits | 1 << lane } else { *bits & !(1 << lane) };
                }
            }
            Slot::Value(_) | Slot::Sink => {}
        }
    }

    fn lane_value(&self, lane: usize, src: Src, place: Place) -> u64 {
        match src {
            Src::Reg(slot) | Src::Narrow(slot) => self.file[(place.base + slot) as usize][lane],
            Src::Const(value) => value,
            Src::Local(offset) => place.local_base.wrapping_add(offset),
            Src::Shared(offset) => self.shared_base.wrapping_add(offset),
            Src::Pred(pred) => {
                let bits = pred.slot.map_or(0, |slot| self.preds[(place.pred_base + slot) as usize]);
                u64::from((bits >> lane & 1 != 0) != pred.negated)
            }
            Src::Special(_) => 0,
        }
    }
}

impl Core<'_> {
    /// A group calls.
    pub(super) fn call(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        call: &Call,
    ) -> Result<(), Halt> {
        let mask = block.warps[warp].groups[group].mask;
        match &call.target {
            Target::Function(number) => self.enter(block, warp, group, call, *number),
            Target::Builtin(builtin) => {
                self.changed = self.clock;
                self.builtin(block, warp, group, call, *builtin)
            }
            Target::Unknown(name) => {
                Err(Halt::Unsupported { what: format!("a call of `{name}`, which has no body") })
            }
            Target::Indirect(address) => {
                let addresses = self.value(block, warp, group, *address);
                let number = |lane: usize| {
                    let offset = addresses[lane].wrapping_sub(CODE_WINDOW);
                    offset.is_multiple_of(CODE_STRIDE).then_some(offset / CODE_STRIDE)
                };
                let parts = by_value(mask, number);
                let here = block.warps[warp].groups[group];
                block.warps[warp].groups.remove(group);
                for (number, lanes) in parts {
                    let at = block.warps[warp].groups.len();
                    block.warps[warp].groups.push(Group { mask: lanes, ..here });
                    let known = number
                        .and_then(|n| u32::try_from(n).ok())
                        .filter(|n| self.image.functions.get(*n as usize).is_some_and(|f| f.body));
                    let Some(number) = known else {
                        let lane = lanes.trailing_zeros() as usize;
                        let address = addresses[lane];
                        let detail = format!("a call to {address:#x}, where no function is");
                        return Err(Halt::Fault { kind: FaultKind::Device, lane: Some(lane), detail });
                    };
                    self.enter(block, warp, at, call, number)?;
                }
                block.warps[warp].merge();
                Ok(())
            }
        }
    }

    fn enter(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        call: &Call,
        number: u32,
    ) -> Result<(), Halt> {
        let image = self.image;
        let Some(callee) = image.functions.get(number as usize).filter(|f| f.body) else {
            return Err(Halt::Unsupported { what: "a call of a function that has no body".into() });
        };
        let at = &mut block.warps[warp];
        let here = at.groups[group];
        let caller = image.functions.get(call.caller as usize);
        let caller = caller.map_or((0, 0), |f| (f.registers, f.predicates));
        if here.depth >= DEEPEST {
            let detail = format!("more than {DEEPEST} nested calls");
            return Err(Halt::Fault { kind: FaultKind::Device, lane: None, detail });
        }
        let base = here.base + caller.0;
        let pred_base = here.pred_base + caller.1;
        let rows = (base + callee.registers) as usize;
        if rows > MOST_ROWS {
            let detail = "the registers of nested calls are too many: too deep a recursion".into();
            return Err(Halt::Fault { kind: FaultKind::Device, lane: None, detail });
        }
        if at.file.len() < rows {
            at.file.resize(rows, [0; LANES]);
        }
        let bits = (pred_base + callee.predicates) as usize;
        if at.preds.len() < bits {
            at.preds.resize(bits, 0);
        }
        for lane in lanes(here.mask) {
            let (local_base, local_top) = (at.local_base[lane], at.local_top[lane]);
            let frame =
                Frame { call: here.pc, base: here.base, pred_base: here.pred_base, local_base, local_top };
            at.frames[lane].push(frame);
            let start = local_top.next_multiple_of(16);
            at.grow_local(lane, start + callee.local_bytes)?;
            let source = Place { base: here.base, pred_base: here.pred_base, local_base };
            let target = Place { base, pred_base, local_base: start };
            for (from, to) in call.args.iter().zip(&callee.params) {
                at.pass(lane, (*from, source), (*to, target));
            }
            at.local_base[lane] = start;
        }
        let group = &mut at.groups[group];
        group.pc = callee.entry;
        group.depth += 1;
        group.base = base;
        group.pred_base = pred_base;
        Ok(())
    }

    /// A group returns from a function, or ends.
    pub(super) fn ret(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        function: u32,
        site: Option<LoggedSite>,
    ) -> Result<(), Halt> {
        let image = self.image;
        let at = &mut block.warps[warp];
        let here = at.groups[group];
        if here.depth == 0 {
            if let Some(site) = site {
                self.recorder.write(site, here.mask, block.who(warp), (0, 0));
            }
            return self.exit(block, warp, group);
        }
        at.groups.remove(group);
        let mut frames = [None; LANES];
        let returns = image.functions.get(function as usize).map_or(&[][..], |f| &f.returns);
        for lane in lanes(here.mask) {
            let Some(frame) = at.frames[lane].pop() else { continue };
            frames[lane] = Some((frame.call, frame.base, frame.pred_base));
            let source =
                Place { base: here.base, pred_base: here.pred_base, local_base: at.local_base[lane] };
            let target = Place { base: frame.base, pred_base: frame.pred_base, local_base: frame.local_base };
            if let Some(Code::Call(call)) = image.ops.get(frame.call as usize).map(|op| &op.code) {
                for (from, to) in returns.iter().zip(&call.rets) {
                    at.pass(lane, (*from, source), (*to, target));
                }
            }
            at.local_base[lane] = frame.local_base;
            at.local_top[lane] = frame.local_top;
        }
        for (frame, lanes) in by_value(here.mask, |lane| frames[lane]) {
            let Some((call, base, pred_base)) = frame else { continue };
            let depth = here.depth - 1;
            at.groups.push(Group { pc: call + 1, depth, base, pred_base, mask: lanes, ..here });
        }
        at.merge();
        Ok(())
    }

    fn builtin(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        call: &Call,
        builtin: Builtin,
    ) -> Result<(), Halt> {
        let here = block.warps[warp].groups[group];
        let argument = |at: &Warp, lane: usize, index: usize| {
            let place = Place { base: here.base, pred_base: here.pred_base, local_base: at.local_base[lane] };
            match call.args.get(index) {
                Some(Slot::Local { offset, bytes }) => {
                    let start = place.local_base.saturating_add(*offset) as usize;
                    let mut word = [0; 8];
                    let from = at.local[lane].get(start..).unwrap_or_default();
                    for (to, from) in word.iter_mut().zip(from).take(*bytes as usize) {
                        *to = *from;
                    }
                    u64::from_le_bytes(word)
                }
                Some(Slot::Value(src)) => at.lane_value(lane, *src, place),
                _ => 0,
            }
        };
        for lane in lanes(here.mask) {
            let at = &mut block.warps[warp];
            let result = match builtin {
                Builtin::Vprintf => 0,
                Builtin::AssertFail => {
                    let line = low(argument(at, lane, 2), 32);
                    let detail = match self.text_at(argument(at, lane, 0)) {
                        Some(text) => format!("the assertion `{text}` failed (line {line})"),
                        None => "an assertion failed".to_owned(),
                    };
                    return Err(Halt::Fault { kind: FaultKind::Trap, lane: Some(lane), detail });
                }
                Builtin::Malloc => self.malloc(argument(at, lane, 0)),
                Builtin::Free => {
                    let address = argument(at, lane, 0);
                    if address != 0 && !self.memory.free(address) {
                        let detail = format!("free of {address:#x}, which is no live allocation");
                        return Err(Halt::Fault { kind: FaultKind::Freed, lane: Some(lane), detail });
                    }
                    0
                }
            };
            let place = Place { base: here.base, pred_base: here.pred_base, local_base: at.local_base[lane] };
            if let Some(to) = call.rets.first() {
                at.pass(lane, (Slot::Value(Src::Const(result)), place), (*to, place));
            }
        }
        let at = &mut block.warps[warp];
        at.groups[group].pc += 1;
        at.merge();
        Ok(())
    }

    fn malloc(&mut self, bytes: u64) -> u64 {
        /// The device's default heap.
        const HEAP: u64 = 8 << 20;
        if bytes == 0 || bytes > HEAP {
            return 0;
        }
        let base = self.memory.allocate("malloc", 1, vec![0; bytes as usize], Kind::Heap, 16);
        self.memory.unwrite(base);
        base
    }

    /// The C string at a generic address.
    fn text_at(&mut self, address: u64) -> Option<String> {
        let mut text = Vec::new();
        while text.len() < 256 {
            let byte = *self.memory.bytes(address.wrapping_add(text.len() as u64), 1, false).ok()?.first()?;
            if byte == 0 {
                break;
            }
            text.push(byte);
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}
