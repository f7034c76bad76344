//! From records to events in an order that respects happens-before.
//!
//! Records of one warp arrive in the order it wrote them; between warps nothing is promised. `Orderer` replays them as
//! a linear extension of happens-before: lanes wait at barriers until the barrier completes, and strong operations are
//! taken by their tickets and values (`order`). What comes out is typed, and says who takes part in what; clocks are
//! the engine's business.

mod barrier;
mod by_block;
mod cluster;
mod geometry;
mod mbarrier;
mod order;
mod sizes;
mod tensors;
mod values;

use std::sync::Arc;

use crate::abi::{PEER, Record, SHARED_OFFSET, TAG_SHARED, Tagged, mix_value};
use crate::instrument::SiteId;
use crate::tensor::{Coordinates, TensorMap};
pub use by_block::ByBlock;
pub use geometry::Geometry;
pub use order::Orderer;
pub use sizes::{copied, filled};

/// A location: tagged address, with the block for shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The tagged address.
    pub address: u64,
    /// The block whose shared memory it is, else 0.
    pub block: u32,
}

impl Place {
    /// Whether it is in shared memory.
    #[inline]
    pub fn is_shared(self) -> bool {
        Tagged(self.address).is_shared()
    }

    /// Where a thread of `block` acts that logged this tagged address. The shared memory of another block of the cluster is
    /// that block's own place.
    #[inline]
    pub fn new(address: u64, block: u32, geometry: &Geometry) -> Self {
        if !Tagged(address).is_shared() {
            return Self { address, block: 0 };
        }
        if address & PEER == 0 {
            return Self { address, block };
        }
        Self::of_peer(address, block, geometry)
    }

    #[cold]
    fn of_peer(address: u64, block: u32, geometry: &Geometry) -> Self {
        let rank = (address & (PEER - 1)) >> SHARED_OFFSET.count_ones();
        let peer = geometry.peer(block, rank as u32).unwrap_or(block);
        Self { address: TAG_SHARED | address & SHARED_OFFSET, block: peer }
    }

    /// Where the lane of this rank acts.
    #[inline]
    pub fn of(record: &Record<'_>, rank: usize, geometry: &Geometry) -> Self {
        Self::new(record.a(rank), record.block(), geometry)
    }
}

/// One event of the replay.
#[derive(Debug)]
pub enum Event<'r> {
    /// Lanes execute a fence.
    Fence {
        /// The record.
        record: Record<'r>,
    },
    /// Lanes arrive at a CTA barrier.
    Arrive(Arrival),
    /// A CTA barrier completes: its waiting lanes go on.
    BarrierDone {
        /// The block.
        block: u32,
        /// The barrier.
        id: u8,
        /// Lanes that waited, by warp.
        waiters: &'r [(u8, u32)],
        /// Lanes that had exited and so counted as arrived, by warp.
        absent: &'r [(u8, u32)],
    },
    /// Lanes have met at `bar.warp.sync`.
    WarpBarrier {
        /// The block.
        block: u32,
        /// The warp.
        warp: u8,
        /// Lanes that met.
        mask: u32,
    },
    /// Lanes have met at a `.sync` instruction that orders no memory.
    Converge {
        /// The block.
        block: u32,
        /// The warp.
        warp: u8,
        /// Lanes that met.
        mask: u32,
    },
    /// Lanes issue copies, stores or reductions that run beside them.
    Copy {
        /// The record.
        record: Record<'r>,
        /// What completes by mbarriers, in order.
        targets: &'r [Target],
        /// Of a tensor copy, the boxes by rank; `None` where the map is not known.
        boxes: &'r [Option<TensorBox>],
    },
    /// The warps of a warpgroup begin a product.
    Product {
        /// A record of each warp.
        records: &'r [Record<'r>],
    },
    /// Lanes act on mbarriers.
    Mbarrier {
        /// The record.
        record: Record<'r>,
        /// Ranks of lanes, in order, each with the number of the phase that it arrived in or found complete; 0 is none.
        ranks: &'r [(u8, u32)],
    },
    /// Lanes do something that concerns them alone: groups of copies, proxy fences, fills, tiles, textures and surfaces.
    Own {
        /// The record.
        record: Record<'r>,
    },
    /// Lanes arrive at the cluster's barrier.
    ClusterArrive {
        /// The lanes.
        arrival: Arrival,
        /// And release.
        release: bool,
    },
    /// The cluster's barrier completes.
    ClusterDone {
        /// The first block of the cluster.
        cluster: u32,
    },
    /// Lanes go on behind the cluster's barrier.
    ClusterWait {
        /// The block.
        block: u32,
        /// The warp.
        warp: u8,
        /// The lanes.
        mask: u32,
    },
    /// Lanes end.
    Exit {
        /// The instruction.
        site: SiteId,
        /// The block.
        block: u32,
        /// The warp.
        warp: u8,
        /// The lanes.
        mask: u32,
        /// All lanes of the block have ended.
        last: bool,
    },
    /// A shared variable's address.
    SharedVariable {
        /// Its site.
        site: SiteId,
        /// Its offset in the shared window.
        offset: u64,
    },
    /// Synchronisation is used wrongly.
    Misuse(Misuse),
}

/// What an asynchronous operation writes in one block, and the mbarrier's phase that its completion counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Rank of the lane that issued it.
    pub rank: u8,
    /// Where it writes.
    pub to: Place,
    /// Bytes.
    pub bytes: u32,
    /// The mbarrier.
    pub mbarrier: Place,
    /// The number of the phase.
    pub phase: u32,
}

/// A box of a tensor.
#[derive(Clone, Debug)]
pub struct TensorBox {
    /// The map.
    pub map: Arc<TensorMap>,
    /// The number by which the map is known.
    pub digest: u64,
    /// Where the box is.
    pub at: Coordinates,
}

impl TensorBox {
    /// A number for what the box holds.
    pub fn number(&self) -> u64 {
        self.at.iter().map(|at| u64::from(at.cast_unsigned())).fold(self.digest, mix_value)
    }
}

/// Lanes at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The instruction.
    pub site: SiteId,
    /// The block.
    pub block: u32,
    /// The warp.
    pub warp: u8,
    /// The lanes.
    pub mask: u32,
    /// The barrier; that of the cluster has no number.
    pub id: u8,
}

/// Wrong use of barriers and masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// Two instructions meet at one barrier where they may not.
    Barrier {
        /// What is wrong.
        what: BarrierMisuse,
        /// The later arrival.
        arrival: Arrival,
        /// The earlier one.
        other: Arrival,
    },
    /// Lanes wait at a barrier that did not complete before the launch ended.
    NeverCompletes {
        /// Lanes that wait.
        arrival: Arrival,
        /// Threads that arrived, exited ones of a whole-block barrier included.
        arrived: u32,
        /// Threads it waits for.
        expected: u32,
    },
    /// Wrong use of the cluster's barrier.
    Cluster {
        /// What is wrong.
        what: ClusterMisuse,
        /// The lanes.
        arrival: Arrival,
    },
    /// A lane executes a warp instruction whose mask leaves it out.
    LaneOutsideMask {
        /// The instruction.
        site: SiteId,
        /// The block.
        block: u32,
        /// The warp.
        warp: u8,
        /// The mask given.
        given: u32,
        /// Lanes that executed it.
        executing: u32,
    },
    /// A lane that the mask names did not come before the launch ended.
    LaneNeverCame {
        /// The instruction.
        site: SiteId,
        /// The block.
        block: u32,
        /// The warp.
        warp: u8,
        /// The mask given.
        given: u32,
        /// Lanes that came.
        came: u32,
    },
}

/// What is wrong at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierMisuse {
    /// The thread counts differ.
    Counts,
    /// `red` meets `sync` or `arrive`.
    Reduction,
    /// Lanes of one warp stand at different instructions of an aligned barrier.
    Diverged,
}

/// What is wrong at a cluster's barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterMisuse {
    /// Lanes arrive again without having waited.
    Twice,
    /// Lanes wait without having arrived.
    NotArrived,
    /// It did not complete before the launch ended.
    NeverCompletes {
        /// Threads that arrived, exited ones included.
        arrived: u32,
        /// Threads of the cluster.
        expected: u32,
    },
}

/// Takes events.
pub trait Handler {
    /// Lanes access memory. `ranks` says which of the record's lanes, in the order they act; a record with strong lanes may
    /// come in several parts.
    fn access(&mut self, record: &Record<'_>, ranks: &[u8]);

    /// Anything else.
    fn event(&mut self, event: Event<'_>);
}
