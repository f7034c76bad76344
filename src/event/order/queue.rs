//! Records that wait, by warp and block.

use smallvec::SmallVec;

use super::Geometry;
use crate::abi::{Record, Unit};
use crate::event::barrier::{Gathering, Phase, Threads};
use crate::event::{Event, Handler, Misuse};
use crate::isa::warpgroup::WARPS;

/// Records that wait, in program order of the warp.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) units: Vec<Unit>,
    pub(super) head: usize,
    /// Lanes of queued records that are not done.
    pub(super) blocked: u32,
}

#[derive(Debug, Default)]
pub(super) struct WarpState {
    pub(super) queue: Queue,
    /// Lanes that wait at a barrier.
    pub(super) waiting: u32,
    pub(super) gatherings: SmallVec<[Gathering; 1]>,
}

#[derive(Debug, Default)]
pub(super) struct BlockState {
    pub(super) warps: Vec<WarpState>,
    pub(super) exists: Vec<u32>,
    pub(super) exited: Vec<u32>,
    /// Threads that exist and have not exited.
    pub(super) live: u32,
    /// By barrier, as far as any was used.
    pub(super) phases: Vec<Phase>,
    /// Products of warpgroups of which not all warps have come.
    pub(super) products: SmallVec<[Meeting; 1]>,
}

/// Warps of a warpgroup that have come to a product.
#[derive(Debug)]
pub(super) struct Meeting {
    pub(super) warpgroup: u8,
    /// Lanes that have come, by warp.
    pub(super) came: [u32; WARPS as usize],
    /// Their records.
    pub(super) units: Vec<Unit>,
}

impl BlockState {
    pub(super) fn new(geometry: Geometry) -> Self {
        let exists: Vec<u32> = (0..geometry.warps).map(|warp| geometry.lanes(warp)).collect();
        Self {
            warps: exists.iter().map(|_| WarpState::default()).collect(),
            exited: vec![0; exists.len()],
            live: exists.iter().map(|lanes| lanes.count_ones()).sum(),
            exists,
            phases: Vec::new(),
            products: SmallVec::new(),
        }
    }

    /// The phase of a barrier.
    pub(super) fn phase(&mut self, id: u8) -> &mut Phase {
        let at = usize::from(id);
        if self.phases.len() <= at {
            self.phases.resize(at + 1, Phase::default());
        }
        &mut self.phases[at]
    }

    pub(super) fn threads(&self) -> Threads<'_> {
        Threads { exists: &self.exists, exited: &self.exited }
    }

    pub(super) fn all_exited(&self) -> bool {
        self.exists == self.exited
    }

    pub(super) fn is_finished(&self) -> bool {
        self.all_exited() && self.warps.iter().all(|warp| warp.queue.units.is_empty())
    }
}

/// A record that is done keeps its length and loses its lanes.
pub(super) fn retire(queue: &mut Queue, at: usize, length: usize) {
    if let Some(header) = queue.units.get_mut(at) {
        *header = Unit { lo: 0, hi: (length as u64) << crate::abi::UNITS_SHIFT };
    }
}

pub(super) fn is_retired(header: &Unit) -> bool {
    header.lo >> 32 == 0
}

pub(super) fn unit_count(header: Unit) -> usize {
    ((header.hi >> crate::abi::UNITS_SHIFT) & 0x7f).max(1) as usize
}

/// Lanes of the records from `at` on that are not done.
pub(super) fn rest_mask(units: &[Unit], mut at: usize) -> u32 {
    let mut mask = 0;
    while let Some(header) = units.get(at) {
        mask |= (header.lo >> 32) as u32;
        at += unit_count(*header);
    }
    mask
}

/// Barriers and masks that keep lanes waiting although no lane of the block runs any more.
pub(super) fn report_stuck(block: u32, state: &BlockState, handler: &mut impl Handler) {
    let runs = state
        .warps
        .iter()
        .zip(&state.exists)
        .zip(&state.exited)
        .any(|((warp, exists), exited)| exists & !exited & !warp.waiting != 0);
    if runs {
        return;
    }
    for phase in &state.phases {
        if let Some(arrival) = phase.first_waiting() {
            let (arrived, expected) = phase.progress(state.threads());
            handler.event(Event::Misuse(Misuse::NeverCompletes { arrival, arrived, expected }));
        }
    }
    for (warp, warp_state) in state.warps.iter().enumerate() {
        for gathering in &warp_state.gatherings {
            handler.event(Event::Misuse(Misuse::LaneNeverCame {
                site: gathering.site,
                block,
                warp: warp as u8,
                given: gathering.mask,
                came: gathering.came,
            }));
        }
    }
}

const RANKS: [u8; 32] = {
    let mut ranks = [0; 32];
    let mut rank = 0;
    while rank < 32 {
        ranks[rank] = rank as u8;
        rank += 1;
    }
    ranks
};

pub(super) fn all_ranks(record: &Record<'_>) -> &'static [u8] {
    RANKS.get(..record.lane_count()).unwrap_or(&RANKS)
}

/// The lanes of some ranks.
pub(super) fn lanes_of(record: &Record<'_>, ranks: &[u8]) -> u32 {
    let lanes = record.lanes().enumerate().filter(|(rank, _)| ranks.contains(&(*rank as u8)));
    lanes.fold(0, |mask, (_, lane)| mask | 1 << lane)
}
