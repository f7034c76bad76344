//! The shape of a launch: which threads there are and how they belong together.

use crate::backend::{Clusters, Launch};

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Threads of a block.
    pub threads: u32,
    /// Warps of a block.
    pub warps: u32,
    /// `None` where each block is a cluster of its own.
    clusters: Option<Clusters>,
}

impl Geometry {
    /// Of blocks with this many threads, without clusters.
    pub fn new(threads: u32) -> Self {
        Self { threads, warps: threads.div_ceil(32), clusters: None }
    }

    /// Of a launch.
    pub fn of(launch: &Launch) -> Self {
        let clusters = Some(launch.clusters()).filter(|clusters| clusters.size() > 1);
        Self { clusters, ..Self::new(launch.threads()) }
    }

    /// Lanes of a warp that exist.
    pub fn lanes(self, warp: u32) -> u32 {
        let left = self.threads.saturating_sub(warp * 32).min(32);
        u32::MAX.checked_shr(32 - left).unwrap_or(0)
    }

    /// Blocks of a cluster.
    pub fn cluster_size(self) -> u32 {
        self.clusters.map_or(1, Clusters::size)
    }

    /// Whether clusters have more than one block.
    pub fn has_clusters(self) -> bool {
        self.clusters.is_some()
    }

    /// The first block of a block's cluster, which stands for the cluster.
    pub fn cluster(self, block: u32) -> u32 {
        self.clusters.map_or(block, |clusters| clusters.first(block))
    }

    /// The rank of a block in its cluster.
    pub fn rank(self, block: u32) -> u32 {
        self.clusters.map_or(0, |clusters| clusters.rank(block))
    }

    /// The block of this rank in the cluster of `block`.
    pub fn peer(self, block: u32, rank: u32) -> Option<u32> {
        match self.clusters {
            Some(clusters) => clusters.peer(block, rank),
            None => (rank == 0).then_some(block),
        }
    }

    /// Whether two blocks are of one cluster.
    #[inline]
    pub fn same_cluster(self, a: u32, b: u32) -> bool {
        a == b || self.clusters.is_some_and(|clusters| clusters.first(a) == clusters.first(b))
    }
}
