//! Loads, stores and atomics, with their checks and records.

use super::common::simple;
use super::place::{Place, View, locate, misaligned, tagged};
use super::warp::{Group, Warp};
use super::{Block, Core, Halt};
use crate::abi::{LANES, Lanes, lanes, packed_value};
use crate::backend::FaultKind;
use crate::backend::emu::image::{Address, Atomic, LoggedSite, Transfer, Values};
use crate::backend::emu::memory::Refused;
use crate::backend::emu::record::Recorder;
use crate::backend::emu::regs::Src;
use crate::backend::emu::types::{extend, low};

#[inline]
pub(super) fn read(bytes: &[u8]) -> u64 {
    match bytes.len() {
        4 => u64::from(u32::from_le_bytes(bytes.try_into().unwrap_or_default())),
        8 => u64::from_le_bytes(bytes.try_into().unwrap_or_default()),
        2 => u64::from(u16::from_le_bytes(bytes.try_into().unwrap_or_default())),
        _ => bytes.first().copied().map_or(0, u64::from),
    }
}

#[inline]
pub(super) fn write(bytes: &mut [u8], value: u64) {
    match bytes.len() {
        4 => bytes.copy_from_slice(&(value as u32).to_le_bytes()),
        8 => bytes.copy_from_slice(&value.to_le_bytes()),
        2 => bytes.copy_from_slice(&(value as u16).to_le_bytes()),
        _ => bytes.iter_mut().for_each(|byte| *byte = value as u8),
    }
}

pub(super) fn halt(lane: usize, refused: Refused) -> Halt {
    Halt::Fault { kind: refused.kind, lane: Some(lane), detail: refused.detail }
}

/// The value of an operand in a frame, without special registers.
pub(super) fn operand(at: &Warp, here: Group, src: Src) -> Lanes {
    match src {
        Src::Reg(slot) => at.file[(here.base + slot) as usize],
        Src::Narrow(slot) => at.file[(here.base + slot) as usize].map(|v| v & 0xffff_ffff),
        Src::Const(value) => [value; LANES],
        Src::Local(offset) => at.local_base.map(|base| base.wrapping_add(offset)),
        Src::Shared(offset) => [at.shared_base.wrapping_add(offset); LANES],
        Src::Pred(pred) => {
            let bits = pred.slot.map_or(0, |slot| at.preds[(here.pred_base + slot) as usize]);
            let bits = if pred.negated { !bits } else { bits };
            std::array::from_fn(|lane| u64::from(bits >> lane & 1))
        }
        Src::Special(_) => [0; LANES],
    }
}

impl Core<'_> {
    /// The addresses that an operand gives.
    pub(super) fn addresses(at: &Warp, here: Group, address: &Address) -> Lanes {
        let offset = address.offset;
        match address.base {
            Src::Narrow(slot) => {
                // Narrow addresses wrap at their width.
                let row = &at.file[(here.base + slot) as usize];
                std::array::from_fn(|lane| row[lane].wrapping_add(offset) & 0xffff_ffff)
            }
            Src::Reg(slot) => {
                let row = &at.file[(here.base + slot) as usize];
                std::array::from_fn(|lane| row[lane].wrapping_add(offset))
            }
            base => operand(at, here, base).map(|a| a.wrapping_add(offset)),
        }
    }

    /// A load or a store by the lanes of the mask.
    pub(super) fn transfer(
        &mut self,
        block: &mut Block,
        warp: usize,
        here: Group,
        transfer: &Transfer,
        mask: u32,
        site: Option<LoggedSite>,
    ) -> Result<(), Halt> {
        let who = block.who(warp);
        let addresses = Self::addresses(&block.warps[warp], here, &transfer.address);
        let logged = match site {
            Some(_) => {
                tagged(transfer.address.space, mask, &addresses, &block.position, &mut self.recorder.a)
            }
            None => 0,
        };
        let site = site.filter(|_| logged != 0);
        let before = site.map_or(0, |site| self.recorder.draw(site));
        if matches!(transfer.values, Values::Store(_)) {
            let first = addresses[mask.trailing_zeros() as usize & (LANES - 1)];
            let (place, _) = locate(transfer.address.space, first, &block.position);
            if !matches!(place, Place::Local | Place::Param) {
                self.changed = self.clock;
            }
            if self.weak.is_some() && site.is_some() {
                self.weak_before(block, transfer, mask, &addresses);
            }
        }
        let Block { position, cluster, warps, .. } = block;
        let at = &mut warps[warp];
        let Self { memory, params, recorder, clusters, .. } = self;
        let (cluster, rank) = (&mut clusters[*cluster], position.rank);
        let unit = transfer.unit as usize;
        let count = transfer.values.len();
        let size = unit * count;
        let space = transfer.address.space;
        if let (Values::Store(from), Some(site)) = (&transfer.values, site) {
            if site.payload.written {
                stored_values(at, here, from, transfer.unit, mask, recorder);
            }
            // Nothing is learnt from a weak access, so that its record stands even if it may not be.
            if !site.payload.tickets {
                recorder.write(site, logged, who, (0, 0));
            }
        } else if let Some(site) = site
            && !site.payload.tickets
        {
            recorder.write(site, logged, who, (0, 0));
        }
        let ticketed = site.filter(|site| site.payload.tickets);
        let values = site.filter(|site| site.payload.read).map(|_| &mut *recorder);
        if simple(transfer, at, here, mask, (&addresses, position), memory, cluster.of(rank), values) {
            self.transferred(block, warp, here, transfer, (mask, &addresses), site);
            if let Some(site) = ticketed {
                let after = self.recorder.draw(site);
                self.recorder.write(site, logged, who, (before, after));
            }
            return Ok(());
        }
        match &transfer.values {
            Values::Load(to) => {
                let Warp { local, local_top, file, .. } = at;
                let mut view = View { memory, cluster, rank, local, local_top, params };
                let wants_value = site.is_some_and(|site| site.payload.read);
                let bits = transfer.unit * 8;
                for lane in lanes(mask) {
                    let address = addresses[lane];
                    let place = locate(space, address, position);
                    if place.1 & (size as u64 - 1) != 0 {
                        return Err(halt(lane, misaligned(false, size, address)));
                    }
                    let bytes = view.bytes(place, lane, size, false).map_err(|r| halt(lane, r))?;
                    for (dst, bytes) in to.iter().zip(bytes.chunks_exact(unit)) {
                        let Some(slot) = dst.0 else { continue };
                        let value = read(bytes);
                        let value = if transfer.signed { extend(value, bits) } else { value };
                        file[(here.base + slot) as usize][lane] = value;
                    }
                    if wants_value {
                        recorder.read[lane] = pack(bytes, unit);
                    }
                }
            }
            Values::Store(from) => {
                let mut values = [[0; LANES]; 8];
                for (row, src) in values.iter_mut().zip(from) {
                    *row = operand(at, here, *src);
                }
                let Warp { local, local_top, .. } = at;
                let mut view = View { memory, cluster, rank, local, local_top, params };
                for lane in lanes(mask) {
                    let address = addresses[lane];
                    let place = locate(space, address, position);
                    if place.1 & (size as u64 - 1) != 0 {
                        return Err(halt(lane, misaligned(true, size, address)));
                    }
                    let bytes = view.bytes(place, lane, size, true).map_err(|r| halt(lane, r))?;
                    for (row, bytes) in values.iter().zip(bytes.chunks_exact_mut(unit)) {
                        write(bytes, row[lane]);
                    }
                }
            }
        }
        self.transferred(block, warp, here, transfer, (mask, &addresses), site);
        if let Some(site) = ticketed {
            let after = self.recorder.draw(site);
            self.recorder.write(site, logged, who, (before, after));
        }
        Ok(())
    }

    /// What has to be known of a transfer that others may see, by these lanes.
    #[inline]
    fn transferred(
        &mut self,
        block: &mut Block,
        warp: usize,
        here: Group,
        transfer: &Transfer,
        lanes: (u32, &Lanes),
        site: Option<LoggedSite>,
    ) {
        let Some(site) = site else { return };
        if self.weak.is_some() {
            self.weak_transfer(block, warp, here, transfer, lanes, site);
        }
        if self.met_unwritten(block.cluster, transfer.address.space) {
            self.follow(block, warp, here, transfer, lanes, site);
        }
    }

    /// An atomic by the lanes of the mask, one after the other.
    pub(super) fn atomic(
        &mut self,
        block: &mut Block,
        warp: usize,
        here: Group,
        atomic: &Atomic,
        mask: u32,
        site: Option<LoggedSite>,
    ) -> Result<(), Halt> {
        let who = block.who(warp);
        let addresses = Self::addresses(&block.warps[warp], here, &atomic.address);
        let logged = match site {
            Some(_) => tagged(atomic.address.space, mask, &addresses, &block.position, &mut self.recorder.a),
            None => 0,
        };
        let site = site.filter(|_| logged != 0);
        let before = site.map_or(0, |site| self.recorder.draw(site));
        if let Some(site) = site
            && self.may_meet_unwritten(block.cluster)
        {
            let what = (&atomic.address, atomic.unit as usize * atomic.b.len());
            self.follow_atomic(block, warp, what, (logged, &addresses), site, atomic.overwrites);
        }
        let Block { position, cluster, warps, .. } = block;
        let at = &mut warps[warp];
        let Self { memory, params, recorder, clusters, .. } = self;
        let (cluster, rank) = (&mut clusters[*cluster], position.rank);
        let unit = atomic.unit as usize;
        let count = atomic.b.len();
        let size = unit * count;
        let fetch = |srcs: &[Src]| {
            let mut rows = [[0; LANES]; 8];
            for (row, src) in rows.iter_mut().zip(srcs) {
                *row = operand(at, here, *src);
            }
            rows
        };
        let (b, c) = (fetch(&atomic.b), fetch(&atomic.c));
        let Warp { local, local_top, file, .. } = at;
        let mut view = View { memory, cluster, rank, local, local_top, params };
        let mut changed = 0;
        for lane in lanes(mask) {
            let address = addresses[lane];
            let place = locate(atomic.address.space, address, position);
            if place.1 & (size as u64 - 1) != 0 {
                return Err(halt(lane, misaligned(true, size, address)));
            }
            let bytes = view.bytes(place, lane, size, true).map_err(|r| halt(lane, r))?;
            if site.is_some() {
                recorder.read[lane] = pack(bytes, unit);
            }
            let matches =
                !atomic.wide_cas || bytes.chunks_exact(unit).zip(&b).all(|(bytes, b)| read(bytes) == b[lane]);
            for (at, bytes) in bytes.chunks_exact_mut(unit).enumerate() {
                let old = read(bytes);
                let new = if atomic.wide_cas {
                    if matches { c[at][lane] } else { old }
                } else {
                    (atomic.update)(old, b[at][lane], c[at][lane])
                };
                write(bytes, new);
                changed |= old ^ new;
                if let Some(Some(slot)) = atomic.old.get(at).map(|dst| dst.0) {
                    file[(here.base + slot) as usize][lane] = old;
                }
            }
            if site.is_some() {
                recorder.written[lane] = pack(bytes, unit);
            }
        }
        if changed != 0 {
            self.changed = self.clock;
        }
        if let (Some(_), Some(site)) = (&self.weak, site) {
            for lane in lanes(mask) {
                self.weak_atomic(block, warp, lane, (atomic, addresses[lane]), site);
            }
        }
        if let Some(site) = site {
            let after = self.recorder.draw(site);
            self.recorder.write(site, logged, who, (before, after));
        }
        Ok(())
    }
}

/// The values that a store leaves, for its record.
fn stored_values(at: &Warp, here: Group, from: &[Src], unit: u32, mask: u32, recorder: &mut Recorder<'_>) {
    if let [src] = from {
        let values = operand(at, here, *src);
        for (to, value) in recorder.written.iter_mut().zip(values) {
            *to = low(value, unit * 8);
        }
        return;
    }
    let mut rows = [[0; LANES]; 8];
    for (row, src) in rows.iter_mut().zip(from) {
        *row = operand(at, here, *src);
    }
    for lane in lanes(mask) {
        let elements = rows.map(|row| row[lane]);
        recorder.written[lane] = packed_value(elements.get(..from.len()).unwrap_or_default(), unit);
    }
}

/// The value that stands for an access in its record.
fn pack(bytes: &[u8], unit: usize) -> u64 {
    if bytes.len() <= 8 {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(bytes) {
            *to = *from;
        }
        return u64::from_le_bytes(word);
    }
    let mut elements = [0; 16];
    let mut count = 0;
    for (to, from) in elements.iter_mut().zip(bytes.chunks_exact(unit.min(8))) {
        *to = read(from);
        count += 1;
    }
    packed_value(&elements[..count], unit.min(8) as u32)
}

impl Warp {
    /// Makes room for a lane's local memory up to `top`.
    pub(super) fn grow_local(&mut self, lane: usize, top: u64) -> Result<(), Halt> {
        const MOST: u64 = crate::backend::emu::MOST_LOCAL;
        if top > MOST {
            return Err(Halt::Fault {
                kind: FaultKind::OutOfBounds,
                lane: Some(lane),
                detail: format!("the thread's local memory would exceed {MOST} bytes: too deep a recursion"),
            });
        }
        self.local_top[lane] = top;
        let size = usize::try_from(top).unwrap_or(0);
        if self.local[lane].len() < size {
            self.local[lane].resize(size, 0);
        }
        Ok(())
    }
}
