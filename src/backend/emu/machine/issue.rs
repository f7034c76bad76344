//! The issue of asynchronous copies: operands, the record, and every check, so that nothing can go wrong when the bytes
//! move.

use super::access::halt;
use super::copies::{Copy, MOST_ELEMENTS, Source, Where, targets};
use super::mbarrier::Tried;
use super::place::{Place, locate, tagged, within};
use super::{Block, Core, Halt};
use crate::abi::{LANES, Lanes, bulk_word, lanes, packed_value};
use crate::backend::FaultKind;
use crate::backend::emu::image::{CopyCompletion, CopyLength, CopyOp, CopySource, LoggedSite, Space};
use crate::backend::emu::memory::Refused;
use crate::backend::emu::special::RANK_SHIFT;
use crate::backend::emu::types::low;

/// The operands of a copy, by lane.
struct Operands {
    to: Lanes,
    from: Lanes,
    values: [Lanes; MOST_ELEMENTS],
    bytes: Lanes,
    read: Lanes,
    mbarrier: Lanes,
    ranks: Lanes,
}

pub(super) fn misaligned(what: &str, value: u64, align: u64) -> Refused {
    let detail = format!("asynchronous copy {what} {value:#x}, which is no multiple of {align}");
    Refused { kind: FaultKind::Misaligned, detail }
}

impl Core<'_> {
    /// Issues what the lanes of the mask ask for.
    pub(super) fn issue(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        op: &CopyOp,
        mask: u32,
        site: Option<LoggedSite>,
    ) -> Result<Tried, Halt> {
        let operands = self.copy_operands(block, warp, group, op);
        let pc = block.warps[warp].groups[group].pc;
        // The record tells of the copy as it is issued for the first time.
        let again = block.warps[warp].tried(pc, mask).is_some();
        if let Some(site) = site.filter(|_| !again) {
            self.record_copy(block, warp, op, &operands, mask, site);
        }
        if let CopyCompletion::Mbarrier(mbarrier) = &op.completion
            && op.multicast.is_none()
            && self.leaves_to_others(block, warp, (pc, mask, 0), (mbarrier.space, &operands.mbarrier))
        {
            return Ok(Tried::Again);
        }
        block.warps[warp].tries = 0;
        let mut copies: [Option<Copy>; LANES] = [const { None }; LANES];
        for lane in lanes(mask) {
            copies[lane] = Some(self.copy(block, op, &operands, (lane, pc)).map_err(|r| halt(lane, r))?);
        }
        let copies = (0..LANES).zip(copies).filter_map(|(lane, copy)| Some((lane, copy?)));
        self.send(block, warp, op.completion.group(), copies)?;
        Ok(Tried::Done)
    }

    fn copy_operands(&mut self, block: &mut Block, warp: usize, group: usize, op: &CopyOp) -> Operands {
        let at = &block.warps[warp];
        let here = at.groups[group];
        let to = Self::addresses(at, here, &op.to);
        let from = match &op.from {
            CopySource::Memory(from) => Self::addresses(at, here, from),
            CopySource::Registers(..) => [0; LANES],
        };
        let mbarrier = match &op.completion {
            CopyCompletion::Mbarrier(mbarrier) => Self::addresses(at, here, mbarrier),
            _ => [0; LANES],
        };
        let mut values = [[0; LANES]; MOST_ELEMENTS];
        if let CopySource::Registers(from, _) = &op.from {
            for (row, src) in values.iter_mut().zip(from) {
                *row = self.value(block, warp, group, *src);
            }
        }
        let (bytes, read) = match op.bytes {
            CopyLength::Static(bytes) => ([u64::from(bytes); LANES], [u64::from(bytes); LANES]),
            CopyLength::AtMost(most, operand) => {
                let most = u64::from(most);
                let read = self.value(block, warp, group, operand).map(|bytes| bytes.min(most));
                ([most; LANES], read)
            }
            CopyLength::Unless(most, pred) => {
                let ignored = self.with_regs(block, warp, group, |regs| regs.pred(pred));
                let most = u64::from(most);
                let read = |lane: usize| if ignored >> lane & 1 != 0 { 0 } else { most };
                ([most; LANES], std::array::from_fn(read))
            }
            CopyLength::Operand(operand) => {
                let bytes = self.value(block, warp, group, operand);
                (bytes, bytes)
            }
        };
        let ranks = op.multicast.map_or([0; LANES], |ranks| self.value(block, warp, group, ranks));
        Operands { to, from, values, bytes, read, mbarrier, ranks: ranks.map(|ranks| low(ranks, 16)) }
    }

    fn record_copy(
        &mut self,
        block: &Block,
        warp: usize,
        op: &CopyOp,
        operands: &Operands,
        mask: u32,
        site: LoggedSite,
    ) {
        let recorder = &mut self.recorder;
        let position = &block.position;
        let mut logged = tagged(op.to.space, mask, &operands.to, position, &mut recorder.a);
        let source = match (&op.from, &op.completion) {
            (CopySource::Memory(from), _) => (from.space, &operands.from),
            (_, CopyCompletion::Mbarrier(mbarrier)) => (mbarrier.space, &operands.mbarrier),
            _ => (Space::Global, &operands.from),
        };
        logged &= tagged(source.0, mask, source.1, position, &mut recorder.read);
        recorder.written = match &op.from {
            CopySource::Registers(from, unit) => std::array::from_fn(|lane| {
                let elements = operands.values.map(|row| row[lane]);
                packed_value(elements.get(..from.len()).unwrap_or_default(), *unit)
            }),
            CopySource::Memory(_) if op.bulk => std::array::from_fn(|lane| {
                bulk_word(operands.bytes[lane] as u32, operands.mbarrier[lane], operands.ranks[lane] as u16)
            }),
            CopySource::Memory(_) => operands.read,
        };
        recorder.write(site, logged, block.who(warp), (0, 0));
    }

    /// The copy of a lane, with everything checked that it will touch.
    fn copy(
        &mut self,
        block: &Block,
        op: &CopyOp,
        operands: &Operands,
        (lane, pc): (usize, u32),
    ) -> Result<Copy, Refused> {
        let align = u64::from(op.align);
        let (bytes, to, from) = (operands.bytes[lane], operands.to[lane], operands.from[lane]);
        if op.bulk && !bytes.is_multiple_of(align) {
            return Err(misaligned("of size", bytes, align));
        }
        if !to.is_multiple_of(align) {
            return Err(misaligned("to", to, align));
        }
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let destination = self.reach(block, op.to.space, to, size, true)?;
        let mbarrier = match &op.completion {
            CopyCompletion::Mbarrier(address) => {
                Some(self.mbarrier_place(block, address.space, operands.mbarrier[lane])?)
            }
            _ => None,
        };
        let ranks = op.multicast.map(|_| operands.ranks[lane] as u16);
        if let (Some(mbarrier), Where::Cluster(at)) = (mbarrier, destination) {
            self.check_targets(block.cluster, (at, mbarrier), ranks, size)?;
        }
        let source = match &op.from {
            CopySource::Registers(..) => Source::Registers(operands.values.map(|row| row[lane])),
            // Nothing is read: the address need not be one.
            CopySource::Memory(_) if operands.read[lane] == 0 => Source::Registers([0; MOST_ELEMENTS]),
            CopySource::Memory(address) => {
                if !from.is_multiple_of(align) {
                    return Err(misaligned("from", from, align));
                }
                let size = usize::try_from(operands.read[lane]).unwrap_or(usize::MAX);
                Source::Memory(self.reach(block, address.space, from, size, false)?)
            }
        };
        Ok(Copy {
            pc,
            group: None,
            from: source,
            to: destination,
            bytes: bytes as u32,
            read: operands.read[lane] as u32,
            mbarrier,
            ranks,
            tensor: None,
        })
    }

    /// Whether all the places that get data have room for it and an mbarrier that is one.
    pub(super) fn check_targets(
        &mut self,
        cluster: usize,
        (at, mbarrier): (u64, u64),
        ranks: Option<u16>,
        size: usize,
    ) -> Result<(), Refused> {
        if mbarrier >> RANK_SHIFT != at >> RANK_SHIFT && ranks.is_none() {
            let detail = "an asynchronous copy whose mbarrier is not in the block that gets the data".into();
            return Err(Refused { kind: FaultKind::Device, detail });
        }
        for (at, mbarrier) in targets(at, mbarrier, ranks) {
            self.clusters[cluster].bytes(at, size, true)?;
            self.with_mbarrier(cluster, mbarrier, |_| Ok(()))?;
        }
        Ok(())
    }

    /// Where an address leads, if all the bytes may be accessed.
    pub(super) fn reach(
        &mut self,
        block: &Block,
        space: Space,
        address: u64,
        size: usize,
        write: bool,
    ) -> Result<Where, Refused> {
        let position = &block.position;
        match locate(space, address, position) {
            (Place::Global, at) => {
                self.memory.bytes(at, size, write)?;
                Ok(Where::Global(at))
            }
            (Place::Shared, at) => {
                let shared = self.clusters[block.cluster].of(position.rank);
                let end = shared.len() as u64;
                within(shared, end, "the block's shared memory", at, size, write)?;
                Ok(Where::Cluster(position.shared_base() | at))
            }
            (Place::Peer, at) => {
                self.clusters[block.cluster].bytes(at, size, write)?;
                Ok(Where::Cluster(at))
            }
            (Place::Local | Place::Param, _) => {
                let detail = format!("asynchronous copy at {address:#x}, which is private to the thread");
                Err(Refused { kind: FaultKind::Device, detail })
            }
        }
    }
}
