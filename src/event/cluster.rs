//! When the barrier of a cluster completes: once every thread of its blocks that has not exited has arrived.
//!
//! A thread arrives once and waits once, in turn. Blocks of which no record has come yet have not arrived.

use super::{Arrival, Geometry};

/// The barrier of one cluster.
#[derive(Clone, Debug)]
pub(super) struct ClusterBarrier {
    warps: usize,
    /// By rank of the block, then warp.
    exists: Vec<u32>,
    arrived: Vec<u32>,
    exited: Vec<u32>,
    /// Lanes that have arrived, in this phase or the one before, and not waited since.
    owed: Vec<u32>,
    waiting: Vec<u32>,
    /// One of those that wait.
    first: Option<Arrival>,
}

/// What becomes of lanes that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waited {
    pub(super) pass: u32,
    pub(super) block: u32,
    /// Lanes that had not arrived; they pass.
    pub(super) wrong: u32,
}

impl ClusterBarrier {
    pub(super) fn new(geometry: Geometry) -> Self {
        let warps = geometry.warps as usize;
        let blocks = geometry.cluster_size() as usize;
        let exists: Vec<u32> =
            (0..blocks * warps).map(|at| geometry.lanes((at % warps.max(1)) as u32)).collect();
        let none = vec![0; exists.len()];
        Self {
            warps,
            arrived: none.clone(),
            exited: none.clone(),
            owed: none.clone(),
            waiting: none,
            exists,
            first: None,
        }
    }

    fn at(&self, rank: u32, warp: u8) -> usize {
        rank as usize * self.warps + usize::from(warp)
    }

    /// Notes an arrival; gives the lanes that should have waited first.
    pub(super) fn arrive(&mut self, rank: u32, arrival: Arrival) -> u32 {
        let at = self.at(rank, arrival.warp);
        let (Some(arrived), Some(owed)) = (self.arrived.get_mut(at), self.owed.get_mut(at)) else { return 0 };
        let twice = *owed & arrival.mask;
        *arrived |= arrival.mask;
        *owed |= arrival.mask;
        twice
    }

    /// Lanes wait.
    pub(super) fn wait(&mut self, rank: u32, arrival: Arrival) -> Waited {
        let at = self.at(rank, arrival.warp);
        let (Some(arrived), Some(owed), Some(waiting)) =
            (self.arrived.get(at), self.owed.get_mut(at), self.waiting.get_mut(at))
        else {
            return Waited { pass: arrival.mask, block: 0, wrong: 0 };
        };
        let wrong = arrival.mask & !*owed;
        let block = arrival.mask & *arrived;
        *waiting |= block;
        *owed &= !arrival.mask | block;
        if block != 0 {
            self.first = self.first.or(Some(arrival));
        }
        Waited { pass: arrival.mask & !block, block, wrong }
    }

    /// Lanes end.
    pub(super) fn exit(&mut self, rank: u32, warp: u8, mask: u32) {
        let at = self.at(rank, warp);
        if let Some(exited) = self.exited.get_mut(at) {
            *exited |= mask;
        }
    }

    /// Threads that have arrived, exited ones included, and all.
    pub(super) fn progress(&self) -> (u32, u32) {
        let mut all = (0, 0);
        for ((exists, arrived), exited) in self.exists.iter().zip(&self.arrived).zip(&self.exited) {
            all.0 += ((arrived | exited) & exists).count_ones();
            all.1 += exists.count_ones();
        }
        all
    }

    /// Completes the phase if it can be; gives the lanes that waited, by rank and warp.
    pub(super) fn complete(&mut self) -> Option<Vec<(u32, u8, u32)>> {
        let (arrived, all) = self.progress();
        if arrived < all || self.arrived.iter().all(|mask| *mask == 0) {
            return None;
        }
        self.arrived.fill(0);
        self.first = None;
        let warps = self.warps.max(1);
        let mut released = Vec::new();
        for (at, (waiting, owed)) in self.waiting.iter_mut().zip(&mut self.owed).enumerate() {
            if *waiting != 0 {
                released.push(((at / warps) as u32, (at % warps) as u8, *waiting));
                *owed &= !*waiting;
                *waiting = 0;
            }
        }
        Some(released)
    }

    /// One of those that wait, if none of the cluster's threads runs.
    pub(super) fn stuck(&self) -> Option<Arrival> {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Launch;
    use crate::instrument::SiteId;

    fn pair() -> ClusterBarrier {
        let launch = Launch {
            kernel: String::new(),
            grid: [2, 1, 1],
            block: [40, 1, 1],
            cluster: Some([2, 1, 1]),
            shared: 0,
            stream: 0,
            device: 0,
            after: Vec::new(),
            args: Vec::new(),
        };
        ClusterBarrier::new(Geometry::of(&launch))
    }

    fn by(warp: u8, mask: u32) -> Arrival {
        Arrival { site: SiteId(0), block: 0, warp, mask, id: 0 }
    }

    #[test]
    fn all_blocks_have_to_come_and_exited_threads_count() {
        let mut barrier = pair();
        assert_eq!(barrier.arrive(0, by(0, u32::MAX)), 0);
        assert_eq!(barrier.wait(0, by(0, 1)), Waited { pass: 0, block: 1, wrong: 0 });
        barrier.arrive(1, by(0, u32::MAX));
        barrier.arrive(0, by(1, 0xff));
        assert_eq!(barrier.complete(), None);
        barrier.exit(1, 1, 0xff);
        assert_eq!(barrier.complete(), Some(vec![(0, 0, 1)]));
        // The others find it complete.
        assert_eq!(barrier.wait(1, by(0, 2)), Waited { pass: 2, block: 0, wrong: 0 });
    }

    #[test]
    fn arriving_twice_and_waiting_without_arrival_are_wrong() {
        let mut barrier = pair();
        assert_eq!(barrier.arrive(0, by(0, 3)), 0);
        assert_eq!(barrier.arrive(0, by(0, 6)), 2);
        assert_eq!(barrier.wait(0, by(0, 8)), Waited { pass: 8, block: 0, wrong: 8 });
    }
}
