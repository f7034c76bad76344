//! mbarriers, copies that complete by them, and the barrier of a cluster.

use smallvec::SmallVec;

use super::Orderer;
use super::pool::WarpKey;
use crate::abi::{Record, SHARED_OFFSET, TAG_SHARED, bulk_parts};
use crate::event::cluster::ClusterBarrier;
use crate::event::{
    Arrival, ClusterMisuse, Event, Handler, Misuse, Place, Target, TensorBox, copied, filled,
};
use crate::isa::{self, AsyncCopy, Completion, CopyBytes, Fill, Mbarrier, MbarrierOp, Tile};

impl Orderer {
    /// Replays lanes of an mbarrier operation; gives those that have to wait.
    pub(super) fn mbarrier(
        &mut self,
        mbarrier: &Mbarrier,
        record: &Record<'_>,
        lanes: u32,
        force: bool,
        handler: &mut impl Handler,
    ) -> u32 {
        let mut left = lanes;
        let mut done: SmallVec<[(u8, u32); 32]> = SmallVec::new();
        for (rank, lane) in record.lanes().enumerate() {
            if lanes >> lane & 1 == 0 {
                continue;
            }
            let place = Place::of(record, rank, &self.geometry);
            let word = record.written(rank).unwrap_or(0);
            let (count, bytes) = (word as u32, (word >> 32) as u32);
            let all = &mut self.mbarriers;
            let phase = match mbarrier.op {
                MbarrierOp::Init { .. } => {
                    all.init(place, count);
                    all.phase(place)
                }
                MbarrierOp::Inval => {
                    all.inval(place);
                    0
                }
                MbarrierOp::Arrive { drop, .. } => {
                    all.arrive(place, count, bytes, drop, record.read(rank).unwrap_or(0))
                }
                MbarrierOp::ExpectTx { .. } => all.expect(place, bytes),
                MbarrierOp::CompleteTx { .. } => all.complete(place, bytes),
                // What raises the expected count first changes nothing in the end.
                MbarrierOp::CopyArrive { increments: true } => all.phase(place),
                MbarrierOp::CopyArrive { increments: false } => all.arrive(place, 1, 0, false, 0),
                MbarrierOp::Wait { parity, .. } => match all.waited(place, word, parity) {
                    Some(phase) => phase,
                    None if force => {
                        self.degraded += u64::from(!self.unseen);
                        all.phase(place)
                    }
                    None => continue,
                },
            };
            done.push((rank as u8, phase));
            left &= !(1 << lane);
        }
        if !done.is_empty() {
            self.stalled = false;
            handler.event(Event::Mbarrier { record: *record, ranks: &done });
        }
        left
    }

    /// Replays the issue of copies: bytes that complete by an mbarrier count at once.
    pub(super) fn copy(&mut self, copy: &AsyncCopy, record: &Record<'_>, handler: &mut impl Handler) {
        let mut boxes: SmallVec<[Option<TensorBox>; 1]> = SmallVec::new();
        if let CopyBytes::Tensor(_) = copy.bytes {
            let lanes = record.lanes().enumerate();
            boxes.extend(lanes.map(|(rank, lane)| self.tensors.take(record, rank, lane)));
        }
        if copy.completion == Completion::Group || copy.completion == Completion::BulkGroup {
            for rank in 0..record.lane_count() {
                let (bytes, _) = copied(copy, record, rank);
                self.note_copied(Place::of(record, rank, &self.geometry), bytes);
            }
            for at in boxes.iter().flatten() {
                for (address, bytes) in at.map.ranges(at.at) {
                    self.note_copied(Place { address, block: 0 }, bytes as u32);
                }
            }
            handler.event(Event::Copy { record: *record, targets: &[], boxes: &boxes });
            return;
        }
        let mut targets: SmallVec<[Target; 4]> = SmallVec::new();
        for rank in 0..record.lane_count() {
            let to = Place::of(record, rank, &self.geometry);
            let (mut bytes, _) = copied(copy, record, rank);
            let mut complete = bytes;
            let tensor = boxes.get(rank);
            if let Some(Some(at)) = tensor {
                bytes = at.map.shared_bytes() as u32;
                complete = at.map.box_bytes() as u32;
            }
            let mut add = |orderer: &mut Self, to: Place, mbarrier: Place| {
                if let Some(None) = tensor {
                    orderer.mbarriers.make_opaque(mbarrier);
                    return;
                }
                orderer.note_copied(to, bytes);
                let phase = orderer.mbarriers.complete(mbarrier, complete);
                targets.push(Target { rank: rank as u8, to, bytes, mbarrier, phase });
            };
            if copy.from.is_none() {
                let mbarrier = Place::new(record.read(rank).unwrap_or(0), record.block(), &self.geometry);
                add(self, to, mbarrier);
                continue;
            }
            let (_, offset, mask) = bulk_parts(record.written(rank).unwrap_or(0));
            let in_block =
                |address: u64, block| Place { address: TAG_SHARED | address & SHARED_OFFSET, block };
            if mask == 0 {
                add(self, to, in_block(offset, to.block));
                continue;
            }
            for peer in (0..16).filter(|peer| mask >> peer & 1 != 0) {
                if let Some(block) = self.geometry.peer(record.block(), peer) {
                    add(self, in_block(to.address, block), in_block(offset, block));
                }
            }
        }
        self.stalled = false;
        handler.event(Event::Copy { record: *record, targets: &targets, boxes: &boxes });
    }

    /// Replays a fill.
    pub(super) fn fill(&mut self, fill: &Fill, record: &Record<'_>, handler: &mut impl Handler) {
        for rank in 0..record.lane_count() {
            self.note_copied(Place::of(record, rank, &self.geometry), filled(fill, record, rank));
        }
        handler.event(Event::Own { record: *record });
    }

    /// Replays the store of a tile.
    pub(super) fn tile_store(&mut self, tile: &Tile, record: &Record<'_>, handler: &mut impl Handler) {
        let base = Place::of(record, 0, &self.geometry);
        for (address, bytes) in tile.spans(base.address, record.read(0).unwrap_or(0)) {
            self.note_copied(Place { address, ..base }, bytes);
        }
        handler.event(Event::Own { record: *record });
    }

    /// What is written there is not known.
    pub(super) fn note_copied(&mut self, to: Place, bytes: u32) {
        if self.values.is_empty() {
            return;
        }
        for offset in (0..u64::from(bytes)).step_by(4) {
            self.values.set_weak(Place { address: to.address.wrapping_add(offset), ..to }, None);
        }
        self.stalled = false;
    }

    /// The barrier of a cluster: lanes arrive, or wait.
    pub(super) fn cluster_barrier(
        &mut self,
        barrier: isa::ClusterBarrier,
        arrival: Arrival,
        handler: &mut impl Handler,
    ) {
        let (geometry, block) = (self.geometry, arrival.block);
        let (cluster, rank) = (geometry.cluster(block), geometry.rank(block));
        let state = self.clusters.entry(cluster).or_insert_with(|| ClusterBarrier::new(geometry));
        let wrong = |what, mask, handler: &mut _| {
            if mask != 0 {
                let misuse = Misuse::Cluster { what, arrival: Arrival { mask, ..arrival } };
                Handler::event(handler, Event::Misuse(misuse));
            }
        };
        match barrier {
            isa::ClusterBarrier::Arrive { release } => {
                let twice = state.arrive(rank, arrival);
                wrong(ClusterMisuse::Twice, twice, handler);
                handler.event(Event::ClusterArrive { arrival, release });
                self.complete_cluster(cluster, handler);
            }
            isa::ClusterBarrier::Wait => {
                let waited = state.wait(rank, arrival);
                wrong(ClusterMisuse::NotArrived, waited.wrong, handler);
                if let Some(block) = self.blocks.get_mut(block) {
                    block.warps[usize::from(arrival.warp)].waiting |= waited.block;
                }
                if waited.pass != 0 {
                    let (block, warp, mask) = (arrival.block, arrival.warp, waited.pass);
                    handler.event(Event::ClusterWait { block, warp, mask });
                }
            }
        }
    }

    /// Lanes end: the barrier of their cluster no longer waits for them.
    pub(super) fn exit_cluster(&mut self, key: WarpKey, mask: u32, handler: &mut impl Handler) {
        if !self.has_cluster_barriers {
            return;
        }
        let (geometry, block) = (self.geometry, key.block);
        let cluster = geometry.cluster(block);
        let state = self.clusters.entry(cluster).or_insert_with(|| ClusterBarrier::new(geometry));
        state.exit(geometry.rank(block), key.warp, mask);
        self.complete_cluster(cluster, handler);
    }

    fn complete_cluster(&mut self, cluster: u32, handler: &mut impl Handler) {
        let Some(released) = self.clusters.get_mut(&cluster).and_then(ClusterBarrier::complete) else {
            return;
        };
        handler.event(Event::ClusterDone { cluster });
        for (rank, warp, mask) in released {
            let Some(block) = self.geometry.peer(cluster, rank) else { continue };
            if let Some(state) = self.blocks.get_mut(block) {
                state.warps[usize::from(warp)].waiting &= !mask;
            }
            handler.event(Event::ClusterWait { block, warp, mask });
            self.ready.push(WarpKey { block, warp });
        }
    }

    /// Barriers of clusters that keep lanes waiting although no lane that has come runs any more.
    pub(super) fn report_stuck_clusters(&mut self, handler: &mut impl Handler) {
        let mut clusters: Vec<_> = self.clusters.drain().collect();
        clusters.sort_by_key(|(cluster, _)| *cluster);
        for (cluster, state) in clusters {
            let Some(arrival) = state.stuck() else { continue };
            let mut blocks =
                (0..self.geometry.cluster_size()).filter_map(|rank| self.geometry.peer(cluster, rank));
            let runs = blocks.any(|block| {
                let Some(state) = self.blocks.get(block) else { return false };
                let lanes = state.warps.iter().zip(&state.exists).zip(&state.exited);
                lanes.into_iter().any(|((warp, exists), exited)| exists & !exited & !warp.waiting != 0)
            });
            if !runs {
                let (arrived, expected) = state.progress();
                let what = ClusterMisuse::NeverCompletes { arrived, expected };
                handler.event(Event::Misuse(Misuse::Cluster { what, arrival }));
            }
        }
    }
}
