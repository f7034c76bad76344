//! Lanes that meet: CTA barriers, warp barriers and the end of threads.

use smallvec::SmallVec;

use super::Orderer;
use super::pool::WarpKey;
use super::queue::{BlockState, Meeting};
use crate::abi::{Record, records};
use crate::event::barrier::{Gathering, Phase, Threads};
use crate::event::{Arrival, Event, Handler, Misuse};
use crate::instrument::SiteId;
use crate::isa::BarrierKind;
use crate::isa::warpgroup::WARPS;

impl Orderer {
    pub(super) fn arrive(
        &mut self,
        arrival: Arrival,
        kind: BarrierKind,
        count: Option<u32>,
        aligned: bool,
        handler: &mut impl Handler,
    ) {
        let Some(block) = self.blocks.get_mut(arrival.block) else { return };
        let misuse = block.phase(arrival.id).arrive(arrival, kind, count, aligned);
        if kind != BarrierKind::Arrive {
            block.warps[usize::from(arrival.warp)].waiting |= arrival.mask;
        }
        if let Some((what, other)) = misuse {
            handler.event(Event::Misuse(Misuse::Barrier { what, arrival, other }));
        }
        handler.event(Event::Arrive(arrival));
        self.complete(arrival.block, arrival.id, handler);
    }

    pub(super) fn complete(&mut self, block_id: u32, id: u8, handler: &mut impl Handler) {
        let Some(block) = self.blocks.get_mut(block_id) else { return };
        let threads = Threads { exists: &block.exists, exited: &block.exited };
        let live = block.live;
        let complete = |phase: &&mut Phase| phase.may_be_complete(live) && phase.is_complete(threads);
        let Some(phase) = block.phases.get_mut(usize::from(id)).filter(complete) else {
            return;
        };
        let waiters = phase.waiters();
        let absent = phase.absent(threads);
        phase.reset();
        for (warp, mask) in &waiters {
            let state = &mut block.warps[usize::from(*warp)];
            state.waiting &= !mask;
            if !state.queue.units.is_empty() {
                self.ready.push(WarpKey { block: block_id, warp: *warp });
            }
        }
        handler.event(Event::BarrierDone { block: block_id, id, waiters: &waiters, absent: &absent });
    }

    pub(super) fn gather(
        &mut self,
        key: WarpKey,
        site: SiteId,
        record: &Record<'_>,
        orders: bool,
        handler: &mut impl Handler,
    ) {
        let (block, warp) = (key.block, key.warp);
        for (rank, lane) in record.lanes().enumerate() {
            let given = record.a(rank) as u32;
            if given >> lane & 1 == 0 {
                let executing = record.mask();
                handler.event(Event::Misuse(Misuse::LaneOutsideMask { site, block, warp, given, executing }));
                continue;
            }
            let Some(state) = self.blocks.get_mut(block) else { return };
            let warp_state = &mut state.warps[usize::from(warp)];
            let found = warp_state.gatherings.iter_mut().find(|g| g.mask == given && g.orders == orders);
            match found {
                Some(gathering) => gathering.came |= 1 << lane,
                None => warp_state.gatherings.push(Gathering { site, mask: given, came: 1 << lane, orders }),
            }
            warp_state.waiting |= 1 << lane;
        }
        self.complete_gatherings(key, handler);
    }

    pub(super) fn complete_gatherings(&mut self, key: WarpKey, handler: &mut impl Handler) {
        let (block, warp) = (key.block, key.warp);
        let Some(state) = self.blocks.get_mut(block) else { return };
        let absent = state.exited[usize::from(warp)] | !state.exists[usize::from(warp)];
        let warp_state = &mut state.warps[usize::from(warp)];
        let mut done: SmallVec<[Gathering; 1]> = SmallVec::new();
        warp_state.gatherings.retain(|gathering| {
            let complete = (gathering.came | absent) & gathering.mask == gathering.mask;
            if complete {
                done.push(*gathering);
            }
            !complete
        });
        let holds_records = !warp_state.queue.units.is_empty();
        for gathering in done {
            warp_state.waiting &= !gathering.came;
            let mask = gathering.came;
            let event = if gathering.orders {
                Event::WarpBarrier { block, warp, mask }
            } else {
                Event::Converge { block, warp, mask }
            };
            handler.event(event);
            if holds_records {
                self.ready.push(key);
            }
        }
    }

    /// A warp comes to a product of its warpgroup.
    pub(super) fn product(&mut self, key: WarpKey, record: &Record<'_>, handler: &mut impl Handler) {
        let Some(state) = self.blocks.get_mut(key.block) else { return };
        let (warpgroup, warp) = (key.warp / WARPS, usize::from(key.warp % WARPS));
        let at =
            state.products.iter().position(|meeting| meeting.warpgroup == warpgroup).unwrap_or_else(|| {
                state.products.push(Meeting { warpgroup, came: [0; WARPS as usize], units: Vec::new() });
                state.products.len() - 1
            });
        let meeting = &mut state.products[at];
        meeting.came[warp] |= record.mask();
        meeting.units.extend_from_slice(record.units());
        state.warps[usize::from(key.warp)].waiting |= record.mask();
        self.complete_products(key.block, handler);
    }

    /// Products that all warps have come to happen at once: what one of them has waited for, all have done.
    pub(super) fn complete_products(&mut self, block: u32, handler: &mut impl Handler) {
        let Some(state) = self.blocks.get_mut(block) else { return };
        let mut at = 0;
        while let Some(meeting) = state.products.get(at) {
            let first = usize::from(meeting.warpgroup * WARPS);
            let complete = meeting.came.iter().enumerate().all(|(index, came)| {
                let exists = state.exists.get(first + index).copied().unwrap_or(0);
                let exited = state.exited.get(first + index).copied().unwrap_or(0);
                exists & !exited & !came == 0
            });
            if !complete {
                at += 1;
                continue;
            }
            let meeting = state.products.remove(at);
            for (warp, came) in (first..).zip(meeting.came).filter(|(_, came)| *came != 0) {
                let warp_state = &mut state.warps[warp];
                warp_state.waiting &= !came;
                if !warp_state.queue.units.is_empty() {
                    self.ready.push(WarpKey { block, warp: warp as u8 });
                }
            }
            let records: SmallVec<[Record<'_>; 4]> = records(&meeting.units).collect();
            handler.event(Event::Product { records: &records });
        }
    }

    pub(super) fn exit(&mut self, key: WarpKey, site: SiteId, mask: u32, handler: &mut impl Handler) {
        let Some(block) = self.blocks.get_mut(key.block) else { return };
        let warp = usize::from(key.warp);
        let gone = mask & block.exists[warp] & !block.exited[warp];
        block.exited[warp] |= gone;
        block.live -= gone.count_ones();
        let last = block.all_exited();
        let ids: SmallVec<[u8; 2]> = (0..=u8::MAX)
            .zip(&block.phases)
            .filter(|(_, phase)| !phase.is_idle())
            .map(|(id, _)| id)
            .collect();
        handler.event(Event::Exit { site, block: key.block, warp: key.warp, mask, last });
        for id in ids {
            self.complete(key.block, id, handler);
        }
        self.complete_gatherings(key, handler);
        self.complete_products(key.block, handler);
        self.exit_cluster(key, mask, handler);
        if self.blocks.get(key.block).is_some_and(BlockState::is_finished) {
            self.end_block(key.block);
        }
    }
}
