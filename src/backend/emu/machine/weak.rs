//! Where weak memory meets the machine: each access is executed on memory that holds the latest writes, and then told to
//! `Weak`, which may give a load an older value.

use super::access::operand;
use super::place::{Place, View, locate};
use super::warp::Group;
use super::{Block, Core};
use crate::abi::{LANES, Lanes, lanes};
use crate::backend::emu::image::{Atomic, LoggedSite, Transfer, Values};
use crate::backend::emu::types::{extend, low};
use crate::backend::emu::weak::{Place as Where, Thread};

/// Lanes of a warp as threads.
fn threads(block: u32, warp: usize, mask: u32) -> impl Iterator<Item = Thread> + Clone {
    (0..LANES as u32).filter(move |lane| mask >> lane & 1 != 0).map(move |lane| (block, warp as u32, lane))
}

/// Where memory that others see is accessed.
fn place(block: u32, at: (Place, u64), offset: usize) -> Option<Where> {
    match at.0 {
        Place::Global => Some((None, at.1.wrapping_add(offset as u64))),
        Place::Shared => Some((Some(block), at.1.wrapping_add(offset as u64))),
        // Launches with clusters have no weak memory.
        Place::Peer | Place::Local | Place::Param => None,
    }
}

impl Core<'_> {
    /// Before a store: what the locations hold so far.
    pub(super) fn weak_before(
        &mut self,
        block: &mut Block,
        transfer: &Transfer,
        mask: u32,
        addresses: &Lanes,
    ) {
        let Some(weak) = &mut self.weak else { return };
        let (unit, linear) = (transfer.unit as usize, block.position.linear);
        let position = &block.position;
        let mut view = View::shared_only(self.memory, &mut self.clusters[block.cluster], position.rank);
        for lane in lanes(mask) {
            let at = locate(transfer.address.space, addresses[lane], position);
            for element in 0..transfer.values.len() {
                let offset = element * unit;
                let Some(place) = place(linear, at, offset) else { continue };
                let bytes = (at.0, at.1.wrapping_add(offset as u64));
                if let Some(value) = view.value(bytes, unit) {
                    weak.readable((linear, 0, 0), place, transfer.unit, value);
                }
            }
        }
    }

    /// After a load or a store.
    pub(super) fn weak_transfer(
        &mut self,
        block: &mut Block,
        warp: usize,
        here: Group,
        transfer: &Transfer,
        (mask, addresses): (u32, &Lanes),
        site: LoggedSite,
    ) {
        let Self { weak: Some(weak), memory, clusters, recorder, rng, schedule, .. } = self else { return };
        let linear = block.position.linear;
        let unit = transfer.unit as usize;
        let Block { position, cluster, warps, .. } = block;
        let Some(at) = warps.get_mut(warp) else { return };
        match &transfer.values {
            Values::Store(from) => {
                for (element, src) in from.iter().enumerate() {
                    let values = operand(at, here, *src);
                    for lane in lanes(mask) {
                        let to = locate(transfer.address.space, addresses[lane], position);
                        let Some(place) = place(linear, to, element * unit) else { continue };
                        let thread = (linear, warp as u32, lane as u32);
                        weak.write(
                            thread,
                            place,
                            transfer.unit,
                            low(values[lane], transfer.unit * 8),
                            site.id,
                        );
                    }
                }
            }
            // A record's value stands for all elements together, so that an older one cannot be given for one of them.
            Values::Load(to) if to.len() > 1 && site.payload.read => weak.end(),
            Values::Load(to) => {
                let mut view = View::shared_only(memory, &mut clusters[*cluster], position.rank);
                for lane in lanes(mask) {
                    let from = locate(transfer.address.space, addresses[lane], position);
                    for (element, dst) in to.iter().enumerate() {
                        let offset = element * unit;
                        let Some(place) = place(linear, from, offset) else { continue };
                        let bytes = (from.0, from.1.wrapping_add(offset as u64));
                        let Some(latest) = view.value(bytes, unit) else { continue };
                        let thread = (linear, warp as u32, lane as u32);
                        let count = weak.readable(thread, place, transfer.unit, latest);
                        let back = match (count, &mut *schedule) {
                            (0 | 1, _) => 0,
                            (count, Some(schedule)) => schedule.read(count).min(count - 1),
                            // The latest more often than not, or a loop that waits would wait long.
                            (_, None) if rng.one_in(2) => 0,
                            (count, None) => rng.below(u32::try_from(count).unwrap_or(1)) as usize,
                        };
                        let Some(value) = weak.read(thread, place, transfer.unit, back, site.id) else {
                            continue;
                        };
                        if let Some(slot) = dst.0 {
                            let value =
                                if transfer.signed { extend(value, transfer.unit * 8) } else { value };
                            at.file[(here.base + slot) as usize][lane] = value;
                        }
                        if to.len() == 1 {
                            recorder.read[lane] = value;
                        }
                    }
                }
            }
        }
    }

    /// After the atomic of one lane: what it read and wrote.
    pub(super) fn weak_atomic(
        &mut self,
        block: &Block,
        warp: usize,
        lane: usize,
        (atomic, address): (&Atomic, u64),
        site: LoggedSite,
    ) {
        let Self { weak: Some(weak), recorder, .. } = self else { return };
        let linear = block.position.linear;
        let at = locate(atomic.address.space, address, &block.position);
        let Some(place) = place(linear, at, 0) else { return };
        if atomic.b.len() != 1 || atomic.unit > 8 {
            weak.end();
            return;
        }
        let values = (recorder.read[lane], recorder.written[lane]);
        weak.update((linear, warp as u32, lane as u32), place, atomic.unit, values, site.id);
    }

    /// Fences of lanes, one after the other.
    pub(super) fn weak_fence(&mut self, block: &Block, warp: usize, mask: u32, site: LoggedSite) {
        let Some(weak) = &mut self.weak else { return };
        for thread in threads(block.position.linear, warp, mask) {
            weak.fence(thread, site.id);
        }
    }

    /// Lanes arrive at a CTA barrier.
    pub(super) fn weak_arrive(&mut self, block: u32, warp: usize, mask: u32, id: u32) {
        if let Some(weak) = &mut self.weak {
            weak.arrive(threads(block, warp, mask), id);
        }
    }

    /// A CTA barrier lets lanes go on.
    pub(super) fn weak_depart(&mut self, block: u32, id: u32, waiters: &[(usize, u32)]) {
        if let Some(weak) = &mut self.weak {
            weak.depart(block, id, waiters.iter().flat_map(|(warp, mask)| threads(block, *warp, *mask)));
        }
    }

    /// Lanes of a warp meet.
    pub(super) fn weak_meet(&mut self, block: u32, warp: usize, mask: u32) {
        if let Some(weak) = &mut self.weak {
            weak.meet(threads(block, warp, mask));
        }
    }
}
