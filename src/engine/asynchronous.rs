//! Copies and their groups, proxy fences, fills and tiles.

use std::ops::Range;
use std::sync::Arc;

use super::access::Stroke;
use super::copies::{Groups, Wait};
use super::shadow::{Entry, Path};
use super::{Core, Role};
use crate::abi::{Record, TAG_SHARED};
use crate::event::{Place, Target, TensorBox, copied, filled};
use crate::finding::AccessClass;
use crate::instrument::SiteId;
use crate::isa::{
    AsyncCopy, Completion, CopyBytes, Fill, GroupKind, GroupOp, ProxyFence, Scope, Tile, warpgroup,
};

/// Why it is not known what a copy touches.
const UNKNOWN_MAP: &str =
    "its tensor map was not encoded by `cuTensorMapEncodeTiled`, or is of a kind that is not covered";

/// Bytes of an element of a range: any number would do.
const ELEMENT: u8 = 4;

impl Core {
    /// Lanes issue copies, stores or reductions.
    pub(super) fn copy(
        &mut self,
        copy: &AsyncCopy,
        record: &Record<'_>,
        targets: &[Target],
        boxes: &[Option<TensorBox>],
    ) {
        if boxes.iter().any(Option::is_none) {
            self.unresolved(SiteId(record.site()), UNKNOWN_MAP);
        }
        let path = if copy.bulk { Path::Bulk } else { Path::Copy };
        let Some(entry) = self.entry(record, path) else { return };
        match copy.completion {
            Completion::Group => self.grouped(copy, GroupKind::Copy, record, boxes, entry),
            Completion::BulkGroup => self.grouped(copy, GroupKind::Bulk, record, boxes, entry),
            Completion::Mbarrier(_) => self.targeted(copy, record, (targets, boxes), entry),
        }
    }

    fn grouped(
        &mut self,
        copy: &AsyncCopy,
        kind: GroupKind,
        record: &Record<'_>,
        boxes: &[Option<TensorBox>],
        entry: Entry,
    ) {
        let block = self.blocks.get_mut(record.block());
        let Some(warp) = block.and_then(|block| block.warps.get_mut(usize::from(record.warp()))) else {
            return;
        };
        let groups = warp.groups.get_or_insert_default();
        let mut issue = |reads| groups.issue(&mut self.copies, kind, reads, record.mask());
        let writes = issue(false);
        // Only bulk copies let their reads be waited for alone.
        let reads = if kind == GroupKind::Bulk { issue(true) } else { writes.clone() };
        let number = |numbers: &[(u32, u32)], lane: usize| {
            numbers.iter().find(|(_, mask)| mask >> lane & 1 != 0).map_or(u32::MAX, |(copy, _)| *copy)
        };
        for (rank, lane) in record.lanes().enumerate() {
            let (written, read) = copied(copy, record, rank);
            let entry = Entry { mask: 1 << lane, ..entry };
            let (reads, writes) = (
                Entry { order: number(&reads, lane), ..entry },
                Entry { order: number(&writes, lane), ..entry },
            );
            let to = Place::of(record, rank, &self.geometry);
            if let CopyBytes::Tensor(_) = copy.bytes {
                let Some(Some(at)) = boxes.get(rank) else { continue };
                let reads = Entry { single: false, ..reads };
                for (address, bytes) in at.map.shared_ranges(to.address) {
                    let from = Place { address, ..to };
                    self.range(from, bytes, Stroke::weak(AccessClass::Read, ELEMENT, reads));
                }
                let value = Some(crate::abi::mix_value(at.number(), to.address));
                for (address, bytes) in at.map.ranges(at.at) {
                    let element = at.map.ty.bytes() as u8;
                    self.put(copy, element, (Place { address, block: 0 }, bytes), Entry { value, ..writes });
                }
                continue;
            }
            self.source(copy, record, rank, read, reads);
            self.destination(copy, record, rank, (to, written), writes);
        }
    }

    fn targeted(
        &mut self,
        copy: &AsyncCopy,
        record: &Record<'_>,
        (targets, boxes): (&[Target], &[Option<TensorBox>]),
        entry: Entry,
    ) {
        let lanes = record.lanes_by_rank();
        let mut last = None;
        for target in targets {
            let mbarrier = self.mbarrier_at(target.mbarrier);
            let rank = usize::from(target.rank);
            let mask = 1 << lanes[rank & 31];
            let mut number = |reads| {
                let site = SiteId(record.site());
                self.mbarriers.completed_by(&mut self.copies, mbarrier, target.phase, reads, site)
            };
            let write = number(false);
            // What goes to several blocks is read once.
            if copy.from.is_some() && last != Some(target.rank) {
                let order = number(true);
                let entry = Entry { mask, order, ..entry };
                match boxes.get(rank) {
                    None => self.source(copy, record, rank, target.bytes, entry),
                    Some(at) => {
                        let stroke =
                            Stroke::weak(AccessClass::Read, ELEMENT, Entry { single: false, ..entry });
                        for (address, bytes) in at.iter().flat_map(|at| at.map.ranges(at.at)) {
                            self.range(Place { address, block: 0 }, bytes, stroke);
                        }
                    }
                }
            }
            last = Some(target.rank);
            // Its completion works on the mbarrier, which has to be one by then, and still when the phase is complete.
            if let Some(entry) = self.entry(record, Path::Completion) {
                let entry = Entry { mask, order: write, single: false, ..entry };
                let completes = Stroke::weak(AccessClass::Atomic, 8, entry);
                self.element(target.mbarrier, Stroke { scope: Some(Scope::Sys), ..completes });
            }
            let to = (target.to, target.bytes);
            let entry = Entry { mask, order: write, ..entry };
            match boxes.get(rank) {
                None => self.destination(copy, record, rank, to, entry),
                Some(None) => {}
                Some(Some(at)) => {
                    // Where it comes from stands for its value, as below.
                    let value = Some(at.number().wrapping_sub(target.to.address));
                    for (address, bytes) in at.map.shared_ranges(target.to.address) {
                        let to = Place { address, ..target.to };
                        self.put(copy, ELEMENT, (to, bytes), Entry { value, ..entry });
                    }
                }
            }
        }
    }

    /// The read of a copy's source.
    fn source(&mut self, copy: &AsyncCopy, record: &Record<'_>, rank: usize, bytes: u32, entry: Entry) {
        if copy.from.is_none() || bytes == 0 {
            return;
        }
        let from = Place::new(record.read(rank).unwrap_or(0), record.block(), &self.geometry);
        let entry = Entry { single: false, ..entry };
        self.range(from, bytes.into(), Stroke::weak(AccessClass::Read, ELEMENT, entry));
    }

    /// The write of its destination, or the reduction there.
    fn destination(
        &mut self,
        copy: &AsyncCopy,
        record: &Record<'_>,
        rank: usize,
        (to, bytes): (Place, u32),
        entry: Entry,
    ) {
        // Copies of the same bytes to the same place do no harm: where they come from stands for their value.
        let value = copy.from.and(record.read(rank)).map(|from| from.wrapping_sub(to.address));
        self.put(copy, copy.element, (to, bytes.into()), Entry { value, ..entry });
    }

    /// The write of a range, or the reduction of its elements of so many bytes.
    fn put(&mut self, copy: &AsyncCopy, element: u8, (to, bytes): (Place, u64), entry: Entry) {
        let entry = Entry { single: false, ..entry };
        if copy.op.is_none() {
            return self.range(to, bytes, Stroke::weak(AccessClass::Write, ELEMENT, entry));
        }
        let element = element.max(1);
        // `cp.reduce` is relaxed.gpu, `red.async` relaxed.cluster.
        let scope = Some(if copy.bulk { Scope::Gpu } else { Scope::Cluster });
        let stroke =
            Stroke { scope, ..Stroke::weak(AccessClass::Atomic, element, Entry { value: None, ..entry }) };
        for offset in (0..bytes).step_by(element.into()) {
            self.element(Place { address: to.address.wrapping_add(offset), ..to }, stroke);
        }
    }

    /// Groups are closed or waited for.
    pub(super) fn group(&mut self, group: GroupOp, record: &Record<'_>) {
        let block = self.blocks.get_mut(record.block());
        let Some(warp) = block.and_then(|block| block.warps.get_mut(usize::from(record.warp()))) else {
            return;
        };
        let (mask, site) = (record.mask(), SiteId(record.site()));
        let wait = Wait { warp: record.warp(), mask, time: warp.time, site };
        let groups = warp.groups.get_or_insert_with(|| Box::new(Groups::default()));
        match group {
            GroupOp::Commit(kind) => groups.commit(kind, mask),
            GroupOp::Wait { kind, pending, reads } => {
                groups.wait(&mut self.copies, kind, Some(pending), reads, wait);
                if kind == GroupKind::Warpgroup {
                    // Its own lanes know of this wait as others will: it ends what other warps have issued, too.
                    let (block, index, time, live) = (record.block(), record.warp(), warp.time, warp.live());
                    warp.know.update(mask, live, |own| {
                        let mut know = super::clock::Know::clone(own);
                        know.clock.raise(block, index, mask, time);
                        Arc::new(know)
                    });
                    warp.time += 1;
                }
            }
            GroupOp::WaitAll => groups.wait(&mut self.copies, GroupKind::Copy, None, false, wait),
        }
    }

    /// The warps of a warpgroup begin a product: each reads its own lines of the first matrix, and all of the second.
    pub(super) fn product(&mut self, records: &[Record<'_>]) {
        let mut number = None;
        for record in records {
            let Some(Role::Product(product)) = self.roles.get(record.site() as usize).copied() else {
                continue;
            };
            let Some(entry) = self.entry(record, Path::Bulk) else { continue };
            let block = self.blocks.get_mut(record.block());
            let Some(warp) = block.and_then(|block| block.warps.get_mut(usize::from(record.warp()))) else {
                continue;
            };
            let groups = warp.groups.get_or_insert_default();
            let order = match number {
                Some(copy) => {
                    groups.share(copy, record.mask());
                    copy
                }
                None => {
                    let issued = groups.issue(&mut self.copies, GroupKind::Warpgroup, true, record.mask());
                    issued.first().map_or(u32::MAX, |(copy, _)| *copy)
                }
            };
            // One entry is enough for what all of them read.
            let first = number.is_none();
            number = Some(order);
            let own = u64::from(record.warp() % warpgroup::WARPS) * warpgroup::LINES;
            for mask in warp.know.alike(record.mask()) {
                let entry = Entry { mask, order, single: false, ..entry };
                let stroke = Stroke::weak(AccessClass::Read, ELEMENT, entry);
                self.matrix(
                    record,
                    record.a(0),
                    (0..product.columns.into(), product.transposed.1),
                    Stroke { keep: first, ..stroke },
                );
                if product.a.is_some() {
                    let of_a = record.read(0).unwrap_or(0);
                    self.matrix(record, of_a, (own..own + warpgroup::LINES, product.transposed.0), stroke);
                }
            }
        }
    }

    /// Lines of a matrix in shared memory.
    fn matrix(&mut self, record: &Record<'_>, descriptor: u64, lines: (Range<u64>, bool), stroke: Stroke) {
        for piece in warpgroup::pieces(descriptor, lines.0, lines.1) {
            let place = Place { address: TAG_SHARED | piece.address, block: record.block() };
            self.range(place, warpgroup::PIECE as u64, stroke);
        }
    }

    pub(super) fn proxy_fence(&mut self, fence: ProxyFence, record: &Record<'_>) {
        let (index, warp_index, mask) = (record.block(), record.warp(), record.mask());
        let block = self.block(index);
        let Some(warp) = block.warps.get_mut(usize::from(warp_index)) else { return };
        let (live, time) = (warp.live(), warp.time);
        warp.know.update(mask, live, |own| {
            let mut know = super::clock::Know::clone(own);
            let known = know.asynchronous_mut();
            if fence == ProxyFence::MbarrierInit {
                known.inits.raise(index, warp_index, mask, time);
                return Arc::new(know);
            }
            let phases = known.phases.clone();
            let raise = |seen: &mut super::clock::Seen| {
                seen.clock.join(&own.clock);
                seen.clock.raise(index, warp_index, mask, time);
                seen.phases = phases.clone();
            };
            if fence != ProxyFence::AsyncGlobal {
                raise(&mut known.shared);
            }
            if fence != ProxyFence::AsyncShared {
                raise(&mut known.global);
            }
            Arc::new(know)
        });
        warp.time += 1;
    }

    pub(super) fn fill(&mut self, fill: &Fill, record: &Record<'_>) {
        let Some(entry) = self.entry(record, Path::Range) else { return };
        for (rank, lane) in record.lanes().enumerate() {
            let entry = Entry { mask: 1 << lane, single: false, ..entry };
            let place = Place::of(record, rank, &self.geometry);
            if fill.bytes.is_none() && !place.is_shared() {
                // `st.bulk` writes shared memory only; elsewhere it faults.
                continue;
            }
            let bytes = filled(fill, record, rank).into();
            self.range(place, bytes, Stroke::weak(AccessClass::Write, ELEMENT, entry));
        }
    }

    /// Every lane of the warp may touch any element, so that all of them have to know what comes before.
    pub(super) fn tile(&mut self, tile: &Tile, record: &Record<'_>) {
        let Some(entry) = self.entry(record, Path::Tile) else { return };
        let (base, stride) = (Place::of(record, 0, &self.geometry), record.read(0).unwrap_or(0));
        let class = if tile.store { AccessClass::Write } else { AccessClass::Read };
        // Lanes hold the same elements of matrices of one shape.
        let shape = [tile.lines, tile.length, tile.element_bits].map(u64::from);
        let value = shape.into_iter().chain([stride]).fold(base.address, crate::abi::mix_value);
        let warp = self.blocks.get(record.block()).and_then(|b| b.warps.get(usize::from(record.warp())));
        let Some(warp) = warp else { return };
        for mask in warp.know.alike(record.mask()) {
            let entry = Entry { mask, value: Some(value), single: false, ..entry };
            let stroke = Stroke::weak(class, ELEMENT, entry);
            for (address, bytes) in tile.spans(base.address, stride) {
                self.range(Place { address, ..base }, bytes.into(), stroke);
            }
        }
    }
}
