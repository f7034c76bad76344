//! The barrier of a cluster, and the end of a block whose shared memory others of its cluster access.

use std::sync::Arc;

use super::Core;
use super::clock::{self, Know};
use super::collect::Conflict;
use super::conflict::{Viewer, entry_witness};
use super::shadow::Entry;
use super::sync::Home;
use crate::abi::TAG_SHARED;
use crate::diag::Severity;
use crate::event::Arrival;
use crate::finding::{AccessClass, Kind, Missing, Relation, Rule, ThreadId, Witness};
use crate::instrument::SiteId;

/// The barrier of a cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    /// What has arrived in the current phase.
    arriving: Know,
    /// What had at the end of the last one.
    done: Arc<Know>,
}

/// The end of a block: the last of its threads, and the instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockEnd {
    pub(super) site: SiteId,
    pub(super) thread: ThreadId,
}

impl Core {
    fn cluster(&mut self, cluster: u32) -> &mut Cluster {
        self.clusters
            .entry(cluster)
            .or_insert_with(|| Cluster { arriving: Know::new(cluster), done: Arc::new(Know::new(cluster)) })
    }

    pub(super) fn cluster_arrive(&mut self, arrival: Arrival, release: bool) {
        let Arrival { block: index, warp: warp_index, mask, .. } = arrival;
        let geometry = self.geometry;
        let home = Home::new(index, geometry);
        let cluster = geometry.cluster(index);
        let mut know = std::mem::take(&mut self.cluster(cluster).arriving);
        if let Some(warp) = self.block(index).warps.get_mut(usize::from(warp_index)) {
            if release {
                warp.hand_on(index, warp_index, mask, &mut know);
                warp.time += 1;
            } else {
                for known in warp.know.distinct(mask) {
                    if let Some(asynchronous) = &known.asynchronous {
                        know.asynchronous_mut().inits.join(&asynchronous.inits);
                    }
                }
                let lanes = warp.sync.iter().flat_map(|lanes| lanes.iter().enumerate());
                for (_, lane) in lanes.filter(|(lane, _)| mask >> lane & 1 != 0) {
                    if let Some(released) = &lane.released[usize::from(home.has_peers())] {
                        know.join(released);
                    }
                }
            }
        }
        self.cluster(cluster).arriving = know;
    }

    pub(super) fn cluster_done(&mut self, cluster: u32) {
        let state = self.cluster(cluster);
        state.done = Arc::new(std::mem::replace(&mut state.arriving, Know::new(cluster)));
    }

    pub(super) fn cluster_wait(&mut self, index: u32, warp: u8, mask: u32) {
        let cluster = self.geometry.cluster(index);
        let know = Arc::clone(&self.cluster(cluster).done);
        let Some(warp) = self.block(index).warps.get_mut(usize::from(warp)) else { return };
        let live = warp.live();
        warp.know.update(mask, live, |own| clock::join(own, &know));
        warp.time += 1;
    }

    /// The last threads of a block end, and its shared memory with them.
    pub(super) fn end_block(&mut self, index: u32, end: BlockEnd) {
        let Some(block) = self.blocks.remove(index) else { return };
        self.of_blocks = self.of_blocks.saturating_sub(block.shared.bytes());
        for place in &block.locations {
            self.locations.remove(place);
        }
        self.mbarriers.end(&block.mbarriers);
        if !self.geometry.has_clusters() {
            return;
        }
        self.ended.insert(index, end);
        let mut know = Know::new(index);
        for (warp, state) in block.warps.iter().enumerate() {
            state.hand_on(index, warp as u8, state.exists, &mut know);
        }
        let launch = self.launches.get(self.current as usize);
        let viewer = Viewer { know: &know, launch, copies: &self.copies, shared: true };
        let mut open = Vec::new();
        for (word, cell) in block.shared.cells() {
            for group in &cell.groups {
                let theirs = group.entries.iter().filter(|entry| entry.block != index && entry.mask != 0);
                for entry in theirs {
                    let left = entry.mask & !viewer.causal(entry, 0);
                    if left != 0 && group.key.start >= 0 {
                        open.push((word, group.key, Entry { mask: left, ..*entry }));
                    }
                }
            }
        }
        open.sort_by_key(|(word, _, entry)| (*word, entry.block, entry.warp, entry.time, entry.site));
        for (word, key, entry) in open {
            let conflict = after_end(entry_witness(&entry, key, word), end, key.class);
            self.collector.add((word, index), conflict);
        }
    }
}

/// An access to the shared memory of a block that may have ended.
pub(super) fn after_end(access: Witness, end: BlockEnd, class: AccessClass) -> Conflict {
    let last = Witness {
        site: end.site,
        thread: end.thread,
        class: AccessClass::Write,
        value: None,
        address: access.address | TAG_SHARED,
        ..access
    };
    Conflict {
        rule: Rule::R003,
        severity: Severity::Error,
        kind: Some(Kind::of(class, AccessClass::Write)),
        relation: Relation::Cluster,
        witnesses: [access, last],
        missing: Missing::BlockEnd,
        same_value: false,
        same_instruction: false,
    }
}
