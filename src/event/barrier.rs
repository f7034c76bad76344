//! When CTA barriers and warp barriers complete.
//!
//! A warp has arrived at a barrier once all its threads that have not exited executed it. A barrier without a count
//! waits for every warp of the block; exited threads count as arrived. A barrier with a count waits for that many
//! threads, counted by whole warps, and exited warps do not count.

use super::{Arrival, BarrierMisuse};
use crate::abi::count_lanes;
use crate::isa::BarrierKind;

/// One arrival as the state machine keeps it.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    arrival: Arrival,
    kind: BarrierKind,
    count: Option<u32>,
}

/// The current phase of one barrier of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    arrivals: Vec<Arrived>,
    /// Lanes that have arrived, by warp, as far as any has.
    lanes: Vec<u32>,
    /// How many lanes and warps these are.
    count: (u32, u32),
    /// Not all arrivals go with each other.
    mixed: bool,
    /// A warp has come in parts.
    parts: bool,
}

/// The threads of a block, as barriers see them: by warp, lanes that exist and lanes that have exited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads<'t> {
    pub(super) exists: &'t [u32],
    pub(super) exited: &'t [u32],
}

impl Phase {
    /// Notes an arrival; gives what is wrong with it, and the earlier arrival it does not go with. `aligned` barriers must be the same instruction for all lanes of a warp.
    pub(super) fn arrive(
        &mut self,
        arrival: Arrival,
        kind: BarrierKind,
        count: Option<u32>,
        aligned: bool,
    ) -> Option<(BarrierMisuse, Arrival)> {
        let of_warp = self.arrived_lanes(arrival.warp.into());
        // Those that go with each other go with this one if the first does, but for those of the same warp.
        let earlier = if self.mixed || of_warp != 0 { self.arrivals.len() } else { 1 };
        let wrong = self.arrivals.iter().take(earlier).find_map(|earlier| {
            let what = if earlier.count != count {
                BarrierMisuse::Counts
            } else if (earlier.kind == BarrierKind::Red) != (kind == BarrierKind::Red) {
                BarrierMisuse::Reduction
            } else if aligned
                && earlier.arrival.warp == arrival.warp
                && earlier.arrival.site != arrival.site
                && earlier.arrival.mask & arrival.mask == 0
            {
                BarrierMisuse::Diverged
            } else {
                return None;
            };
            Some((what, earlier.arrival))
        });
        self.mixed |= wrong.is_some();
        self.arrivals.push(Arrived { arrival, kind, count });
        let warp = usize::from(arrival.warp);
        if self.lanes.len() <= warp {
            self.lanes.resize(warp + 1, 0);
        }
        self.parts |= of_warp != 0;
        self.count.0 += count_lanes(arrival.mask & !of_warp);
        self.count.1 += u32::from(of_warp == 0);
        self.lanes[warp] |= arrival.mask;
        wrong
    }

    /// Whether anyone has arrived.
    pub(super) fn is_idle(&self) -> bool {
        self.arrivals.is_empty()
    }

    fn arrived_lanes(&self, warp: usize) -> u32 {
        self.lanes.get(warp).copied().unwrap_or(0)
    }

    /// Threads that have arrived and threads awaited.
    pub(super) fn progress(&self, threads: Threads<'_>) -> (u32, u32) {
        let count = self.arrivals.first().and_then(|first| first.count);
        let (mut arrived, mut total) = (0, 0);
        for (warp, (exists, exited)) in threads.exists.iter().zip(threads.exited).enumerate() {
            let lanes = self.arrived_lanes(warp);
            let all_here = (lanes | exited) & exists == *exists;
            total += exists.count_ones();
            match count {
                None => arrived += ((lanes | exited) & exists).count_ones(),
                Some(_) if all_here && lanes != 0 => arrived += 32,
                Some(_) => {}
            }
        }
        (arrived, count.unwrap_or(total))
    }

    /// Whether so many have arrived that it may be complete, if so many threads are live. Some of those that have arrived may
    /// have exited.
    pub(super) fn may_be_complete(&self, live: u32) -> bool {
        let (lanes, warps) = self.count;
        match self.arrivals.first().and_then(|first| first.count) {
            None => lanes >= live,
            Some(count) => warps.saturating_mul(32) >= count,
        }
    }

    /// Whether it is complete.
    pub(super) fn is_complete(&self, threads: Threads<'_>) -> bool {
        let Some(first) = self.arrivals.first() else { return false };
        if first.count.is_none() {
            let mut warps = threads.exists.iter().zip(threads.exited).enumerate();
            return warps.all(|(warp, (exists, exited))| exists & !(self.arrived_lanes(warp) | exited) == 0);
        }
        let (arrived, expected) = self.progress(threads);
        arrived >= expected
    }

    /// Lanes that wait, by warp.
    pub(super) fn waiters(&self) -> Vec<(u8, u32)> {
        let waiting = self.arrivals.iter().filter(|a| a.kind != BarrierKind::Arrive);
        let mut waiters: Vec<(u8, u32)> = Vec::with_capacity(self.lanes.len());
        for Arrived { arrival, .. } in waiting {
            if self.parts
                && let Some((_, mask)) = waiters.iter_mut().find(|(warp, _)| *warp == arrival.warp)
            {
                *mask |= arrival.mask;
                continue;
            }
            waiters.push((arrival.warp, arrival.mask));
        }
        waiters
    }

    /// Exited lanes that count as arrived although they did not come, by warp. A barrier with a count has none.
    pub(super) fn absent(&self, threads: Threads<'_>) -> Vec<(u8, u32)> {
        if self.arrivals.iter().any(|a| a.count.is_some()) {
            return Vec::new();
        }
        let exited = threads.exited.iter().enumerate();
        let absent = exited.map(|(warp, exited)| (warp as u8, exited & !self.arrived_lanes(warp)));
        absent.filter(|(_, mask)| *mask != 0).collect()
    }

    /// The first arrival that waits.
    pub(super) fn first_waiting(&self) -> Option<Arrival> {
        self.arrivals.iter().find(|a| a.kind != BarrierKind::Arrive).map(|a| a.arrival)
    }

    /// Begins the next phase.
    pub(super) fn reset(&mut self) {
        self.arrivals.clear();
        self.lanes.clear();
        self.count = (0, 0);
        self.mixed = false;
        self.parts = false;
    }
}

/// Lanes of a warp that gather at one mask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathering {
    pub(super) site: crate::instrument::SiteId,
    pub(super) mask: u32,
    pub(super) came: u32,
    /// Orders memory, as `bar.warp.sync` does.
    pub(super) orders: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::SiteId;

    #[test]
    fn a_warp_that_comes_in_parts_waits_once() {
        let mut phase = Phase::default();
        for (warp, mask) in [(0, 0xffff), (0, 0xffff_0000), (2, u32::MAX)] {
            let arrival = Arrival { site: SiteId(0), block: 0, warp, mask, id: 1 };
            assert_eq!(phase.arrive(arrival, BarrierKind::Sync, Some(64), false), None);
        }
        assert_eq!(phase.waiters(), [(0, u32::MAX), (2, u32::MAX)]);
    }
}
