//! Clusters: blocks that are resident together, see each other's shared memory and meet at the cluster barrier. Without
//! clusters, every block is one.
//!
//! The barrier counts threads. Its phase ends when all threads of the cluster that have not exited have arrived; a warp
//! learns of that when it next looks, so that nobody has to reach into it.

use super::place::within;
use super::warp::{Group, State, Warp};
use super::{Block, Core, Halt};
use crate::abi::SHARED_OFFSET;
use crate::backend::FaultKind;
use crate::backend::emu::memory::Refused;
use crate::backend::emu::special::RANK_SHIFT;
use crate::backend::emu::written::Written;

/// A cluster.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    /// Shared memory of the blocks, by rank.
    shared: Vec<u8>,
    /// What of it was written.
    pub(super) written: Written,
    /// Bytes of one block.
    each: usize,
    /// Blocks.
    size: u32,
    /// Blocks that have not ended, by rank.
    pub(super) alive: u32,
    /// Threads that have not exited.
    threads: u32,
    /// Threads that have arrived in this phase.
    arrived: u32,
    /// Phases of the barrier that are over.
    phase: u64,
}

impl Cluster {
    pub(super) fn new(size: u32, each: u32, threads: u32) -> Self {
        Self {
            shared: vec![0; size as usize * each as usize],
            written: Written::nothing(size as usize * each as usize),
            each: each as usize,
            size,
            alive: u32::MAX >> (32 - size.clamp(1, 32)),
            threads: size * threads,
            arrived: 0,
            phase: 0,
        }
    }

    /// The shared memory of a block.
    #[inline]
    pub(super) fn of(&mut self, rank: u32) -> &mut [u8] {
        let start = rank as usize * self.each;
        self.shared.get_mut(start..start + self.each).unwrap_or_default()
    }

    /// Where a place in a block's shared memory is in that of the cluster.
    pub(super) fn offset(&self, rank: u32, at: u64) -> usize {
        (rank as usize).saturating_mul(self.each).saturating_add(at as usize)
    }

    /// These bytes of a block are written.
    #[inline]
    pub(super) fn mark(&mut self, rank: u32, at: u64, size: usize) {
        if !self.written.is_whole() {
            let at = self.offset(rank, at);
            self.written.mark(at, size);
        }
    }

    /// The same, if the block has them.
    pub(super) fn mark_within(&mut self, rank: u32, at: u64, size: usize) {
        if at.saturating_add(size as u64) <= self.each as u64 {
            self.mark(rank, at, size);
        }
    }

    /// The bytes at an address of the cluster: a rank, then the offset in that block.
    pub(super) fn bytes(&mut self, address: u64, size: usize, write: bool) -> Result<&mut [u8], Refused> {
        let what = if write { "store" } else { "load" };
        let rank = address >> RANK_SHIFT;
        if rank >= u64::from(self.size) {
            let blocks = self.size;
            let detail = format!(
                "{what} of {size} bytes at {address:#x}, in shared memory of rank {rank}, where the cluster has \
                 {blocks} {}",
                if blocks == 1 { "block" } else { "blocks" }
            );
            return Err(Refused { kind: FaultKind::OutOfBounds, detail });
        }
        if self.alive >> rank & 1 == 0 {
            let detail = format!(
                "{what} of {size} bytes at {address:#x}, in shared memory of the cluster's block of rank {rank}, \
                 which has exited"
            );
            return Err(Refused { kind: FaultKind::Freed, detail });
        }
        let end = self.each as u64;
        let name = "the shared memory of a block of the cluster";
        if write {
            self.mark_within(rank as u32, address & SHARED_OFFSET, size);
        }
        within(self.of(rank as u32), end, name, address & SHARED_OFFSET, size, write)
    }

    /// What a group at the barrier waits for.
    pub(super) fn describe_barrier(&self) -> String {
        format!("the cluster barrier ({} of {} threads arrived)", self.arrived, self.threads)
    }

    /// Ends the phase if all have arrived.
    fn complete(&mut self) -> bool {
        let complete = self.arrived != 0 && self.arrived == self.threads;
        if complete {
            self.phase += 1;
            self.arrived = 0;
        }
        complete
    }
}

/// What a warp knows of the cluster barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    /// Lanes that have arrived in the phase.
    arrived: u32,
    /// Lanes that have arrived in a phase that is over, and have not waited yet.
    passed: u32,
    phase: u64,
}

impl Arrivals {
    fn look(&mut self, phase: u64) {
        if self.phase != phase {
            self.passed |= self.arrived;
            self.arrived = 0;
            self.phase = phase;
        }
    }
}

impl Warp {
    /// Lets groups go on that wait for a phase that is over.
    pub(super) fn pass_cluster_barrier(&mut self, cluster: &Cluster) {
        self.arrivals.look(cluster.phase);
        let mut at = 0;
        while let Some(group) = self.groups.get(at).copied() {
            at += 1;
            let passed = group.mask & self.arrivals.passed;
            if group.state != State::Cluster || passed == 0 {
                continue;
            }
            self.arrivals.passed &= !passed;
            self.groups[at - 1].mask &= !passed;
            self.groups.push(Group {
                mask: passed,
                state: State::Ready,
                pc: group.pc + 1,
                ran: self.steps,
                ..group
            });
        }
        self.groups.retain(|group| group.mask != 0);
        self.merge();
    }
}

impl Core<'_> {
    /// `barrier.cluster.arrive`
    pub(super) fn cluster_arrive(&mut self, block: &mut Block, warp: usize, mask: u32) -> Result<(), Halt> {
        let cluster = &mut self.clusters[block.cluster];
        let at = &mut block.warps[warp];
        at.arrivals.look(cluster.phase);
        let again = mask & (at.arrivals.arrived | at.arrivals.passed);
        if again != 0 {
            return Err(Halt::Fault {
                kind: FaultKind::Device,
                lane: Some(again.trailing_zeros() as usize),
                detail: "arrival at the cluster barrier by a thread that has arrived and not waited".into(),
            });
        }
        at.arrivals.arrived |= mask;
        cluster.arrived += mask.count_ones();
        if cluster.complete() {
            self.passed_clusters.push(block.cluster);
        }
        Ok(())
    }

    /// `barrier.cluster.wait`
    pub(super) fn cluster_wait(&mut self, block: &mut Block, warp: usize, group: usize) {
        let at = &mut block.warps[warp];
        at.groups[group].state = State::Cluster;
        at.pass_cluster_barrier(&self.clusters[block.cluster]);
    }

    /// Lanes of a warp have exited.
    pub(super) fn left_cluster(&mut self, block: &mut Block, warp: usize, mask: u32) -> Result<(), Halt> {
        let at = &mut block.warps[warp];
        let cluster = &mut self.clusters[block.cluster];
        at.arrivals.look(cluster.phase);
        cluster.threads -= mask.count_ones();
        cluster.arrived -= (mask & at.arrivals.arrived).count_ones();
        at.arrivals.arrived &= !mask;
        if cluster.complete() {
            self.passed_clusters.push(block.cluster);
        }
        if block.warps.iter().all(|warp| warp.live == 0) {
            self.settle_cluster(block)?;
            self.clusters[block.cluster].alive &= !(1 << block.position.rank);
        }
        Ok(())
    }
}
