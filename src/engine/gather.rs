//! What has arrived at a CTA barrier, and what its waiters know when it completes.
//!
//! Mostly, whole warps arrive that went on together from the barrier before and know the same since. That is joined once,
//! when the barrier completes.

use std::sync::Arc;

use smallvec::SmallVec;

use super::clock::{self, Know, Time};
use super::thread::{Block, Warp};

/// Arrivals of the current phase.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// What those have handed on who did not know the same as others.
    apart: Option<Know>,
    /// What all others know,
    alike: Option<Arc<Know>>,
    /// and who they are: warp, lanes, and the time up to which they are known.
    arrivals: SmallVec<[(u8, u32, Time); 8]>,
}

impl Gathered {
    fn arrive(&mut self, index: u32, warp_index: u8, mask: u32, warp: &Warp) {
        if let Some(know) = warp.is_plain(mask)
            && self.alike.as_ref().is_none_or(|alike| Arc::ptr_eq(alike, know))
        {
            self.alike.get_or_insert_with(|| Arc::clone(know));
            self.arrivals.push((warp_index, mask, warp.time));
            return;
        }
        warp.hand_on(index, warp_index, mask, self.apart.get_or_insert_with(|| Know::new(index)));
    }

    /// All of it. When everyone has arrived, times are taken from elsewhere.
    fn know(self, index: u32, everyone: bool) -> Know {
        let Self { apart, alike, arrivals } = self;
        let mut know = match (apart, &alike) {
            (None, None) => Know::new(index),
            (None, Some(alike)) => Know::clone(alike),
            (Some(apart), None) => apart,
            (Some(mut apart), Some(alike)) => {
                apart.join(alike);
                apart
            }
        };
        if !everyone {
            for (warp, mask, time) in arrivals {
                know.clock.raise(index, warp, mask, time);
            }
        }
        know
    }
}

impl Block {
    /// Lanes of a warp arrive at a barrier.
    pub(super) fn arrive(&mut self, index: u32, id: u8, warp_index: u8, mask: u32) {
        let at = usize::from(id);
        if self.barriers.len() <= at {
            self.barriers.resize_with(at + 1, Gathered::default);
        }
        let gathered = &mut self.barriers[at];
        if let Some(warp) = self.warps.get_mut(usize::from(warp_index)) {
            gathered.arrive(index, warp_index, mask, warp);
            warp.time += 1;
        }
    }

    /// A barrier completes for its waiters.
    pub(super) fn release(&mut self, index: u32, id: u8, waiters: &[(u8, u32)], absent: &[(u8, u32)]) {
        let gathered = self.barriers.get_mut(usize::from(id)).map(std::mem::take).unwrap_or_default();
        // All waiters go on from one time, so that a whole block's clock is one number.
        let latest =
            waiters.iter().filter_map(|(warp, _)| self.warps.get(usize::from(*warp))).map(|w| w.time).max();
        let time = latest.unwrap_or(0);
        let everyone = waiters.len() == self.warps.len()
            && waiters.iter().all(|(warp, mask)| self.warps[usize::from(*warp)].exists == *mask);
        let alike = gathered.alike.clone();
        let mut know = gathered.know(index, everyone);
        if everyone {
            know.clock.raise_block(index, time);
        }
        know.settle();
        let know = Arc::new(know);
        self.phase += 1;
        for (warp, mask) in absent {
            if let Some(warp) = self.warps.get_mut(usize::from(*warp)) {
                warp.absent(*mask, self.phase);
            }
        }
        let joined = |own: &Arc<Know>| match &alike {
            Some(alike) if Arc::ptr_eq(own, alike) => Arc::clone(&know),
            _ => clock::join(&know, own),
        };
        for (warp, mask) in waiters {
            let Some(warp) = self.warps.get_mut(usize::from(*warp)) else { continue };
            warp.time = time + 1;
            warp.interval += 1;
            warp.passed_phase = self.phase;
            let live = warp.live();
            warp.know.update(*mask, live, joined);
        }
    }
}
