//! Values that nobody has written: rule M004.
//!
//! A value is such a one if none of its bytes were written before it was read, by a thread, a copy, the host or an initial
//! value. Reading it is no finding; using it is: for an address, a comparison, arithmetic, or in a store. Programs do read
//! such values and drop them, or copy structures together with what lies between their members. So these do not count as
//! uses: moves, selections and exchanges between lanes; logic and bit fields, which may leave only the bits that were
//! written; and stores of values that a vector load brought or that are narrower than four bytes.
//!
//! While no such value is in a register nothing is looked at but one field of the warp, and a memory is looked at until all
//! of it was written. Not followed: values through memory, calls, atomics, copies and matrix instructions; local memory.

use super::place::{Place, locate, tagged};
use super::warp::Group;
use super::{Block, Core};
use crate::abi::{LANES, Lanes, SHARED_OFFSET, lanes};
use crate::backend::emu::image::{Address, Code, LoggedSite, Space, Transfer, Uses, Values};
use crate::backend::emu::special::RANK_SHIFT;
use crate::backend::{Notice, NoticeKind};
use crate::instrument::SiteId;

/// Loads whose values a warp remembers.
const MOST_LOADS: usize = 16;

/// Bytes from which on a value that is only copied counts.
const WIDE: u32 = 4;

/// Instructions that are told of, at most.
const MOST_TOLD: usize = 64;

/// Registers of a warp that hold what nobody has written.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    /// Row, lanes, and the load by its number.
    rows: Vec<(u32, u32, usize)>,
    loads: Vec<Load>,
}

#[derive(Debug)]
struct Load {
    site: SiteId,
    /// With the space's tag.
    addresses: Lanes,
    bytes: u32,
    /// Copying it is no use of it.
    copied: bool,
}

impl Unwritten {
    /// These lanes of a row have another value.
    fn clear(&mut self, row: u32, lanes: u32) {
        for (_, of, _) in self.rows.iter_mut().filter(|(own, ..)| *own == row) {
            *of &= !lanes;
        }
    }

    fn of(&self, row: u32, lanes: u32) -> Option<(u32, usize)> {
        let held = |(own, of, load): &(u32, u32, usize)| {
            (*own == row && of & lanes != 0).then_some((of & lanes, *load))
        };
        self.rows.iter().find_map(held)
    }
}

impl Core<'_> {
    /// Whether a transfer met memory that is not written as a whole.
    #[inline]
    pub(super) fn met_unwritten(&self, cluster: usize, space: Space) -> bool {
        let shared = || !self.clusters[cluster].written.is_whole();
        match space {
            Space::Shared => shared(),
            Space::Global => self.memory.met_unwritten(),
            Space::Generic | Space::SharedCluster => shared() || self.memory.has_unwritten(),
            Space::Local | Space::Const | Space::Param => false,
        }
    }

    /// The same before an atomic.
    #[inline]
    pub(super) fn may_meet_unwritten(&self, cluster: usize) -> bool {
        self.memory.has_unwritten() || !self.clusters[cluster].written.is_whole()
    }

    /// Lanes whose bytes were not all written, and others, where that is not told quickly.
    fn lacking(&self, block: &Block, space: Space, addresses: &Lanes, size: usize) -> u32 {
        match space {
            Space::Shared => {
                let cluster = &self.clusters[block.cluster];
                let rank = block.position.rank;
                let at = |lane: usize| cluster.offset(rank, addresses[lane] & SHARED_OFFSET);
                cluster.written.lacking(size, at)
            }
            Space::Global => self.memory.last_written().map_or(0, |(base, written)| {
                written.lacking(size, |lane| addresses[lane].wrapping_sub(base) as usize)
            }),
            _ => u32::MAX,
        }
    }

    /// After a transfer: what it has written is, and what it has read may not be.
    #[cold]
    pub(super) fn follow(
        &mut self,
        block: &mut Block,
        warp: usize,
        here: Group,
        transfer: &Transfer,
        (mask, addresses): (u32, &Lanes),
        site: LoggedSite,
    ) {
        let size = transfer.unit as usize * transfer.values.len();
        let mask = mask & self.lacking(block, transfer.address.space, addresses, size);
        if mask == 0 {
            return;
        }
        match &transfer.values {
            Values::Store(_) => self.write_lanes(block, &transfer.address, mask, addresses, size),
            Values::Load(to) => {
                let unit = transfer.unit as usize;
                let mut found = [0u32; 8];
                for lane in lanes(mask) {
                    let (place, at) = locate(transfer.address.space, addresses[lane], &block.position);
                    for (element, found) in found.iter_mut().enumerate().take(to.len()) {
                        let at = (place, at + (element * unit) as u64);
                        *found |= u32::from(self.written(block, at, unit) == 0) << lane;
                    }
                }
                if found.iter().all(|lanes| *lanes == 0) {
                    return;
                }
                let mut tags = [0; LANES];
                tagged(transfer.address.space, mask, addresses, &block.position, &mut tags);
                let warp = &mut block.warps[warp];
                let unwritten = warp.unwritten.get_or_insert_default();
                if unwritten.loads.len() >= MOST_LOADS {
                    **unwritten = Unwritten::default();
                }
                let load = unwritten.loads.len();
                let copied = to.len() > 1 || transfer.unit < WIDE;
                let (site, bytes) = (site.id, transfer.unit);
                unwritten.loads.push(Load { site, addresses: tags, bytes, copied });
                for (lanes, dst) in found.iter().zip(to.iter()) {
                    if let (Some(slot), 1..) = (dst.0, *lanes) {
                        unwritten.rows.push((here.base + slot, *lanes, load));
                    }
                }
            }
        }
    }

    /// An atomic reads what it changes.
    #[cold]
    pub(super) fn follow_atomic(
        &mut self,
        block: &Block,
        warp: usize,
        (address, bytes): (&Address, usize),
        (mask, addresses): (u32, &Lanes),
        site: LoggedSite,
        overwrites: bool,
    ) {
        let mut found = 0;
        for lane in lanes(mask) {
            let at = locate(address.space, addresses[lane], &block.position);
            found |= u32::from(!overwrites && self.written(block, at, bytes) == 0) << lane;
            self.write_lanes(block, address, 1 << lane, addresses, bytes);
        }
        if found != 0 {
            let mut tags = [0; LANES];
            tagged(address.space, mask, addresses, &block.position, &mut tags);
            self.used(block.position.linear, warp, found, (site.id, &tags, bytes as u32));
        }
    }

    /// Before an instruction of a warp that holds such values: whether it uses some.
    #[cold]
    pub(super) fn before_use(&mut self, block: &mut Block, warp: usize, here: Group, mask: u32) {
        let number = block.position.linear;
        let Some(flow) = self.image.flows.get(here.pc as usize) else { return };
        let Some(mut held) = block.warps[warp].unwritten.take() else { return };
        // Registers of another frame are others.
        let op = self.image.ops.get(here.pc as usize);
        if op.is_none_or(|op| matches!(op.code, Code::Call(_) | Code::Return(_))) {
            return;
        }
        let mut used: Vec<(u32, usize)> = Vec::new();
        let mut moved: Vec<(u32, usize)> = Vec::new();
        let rows = |list: &[u32]| list.iter().map(|slot| here.base + slot).collect::<Vec<_>>();
        for row in rows(&flow.reads) {
            while let Some((lanes, load)) = held.of(row, mask) {
                let copied = held.loads.get(load).is_none_or(|load| load.copied);
                match flow.uses {
                    Uses::All => used.push((lanes, load)),
                    Uses::Stored if !copied => used.push((lanes, load)),
                    Uses::Moved => {
                        moved.push((lanes, load));
                        break;
                    }
                    Uses::Stored | Uses::Nothing => break,
                }
                // It is told of once.
                held.clear(row, lanes);
            }
        }
        for row in rows(&flow.addresses) {
            while let Some((lanes, load)) = held.of(row, mask) {
                used.push((lanes, load));
                held.clear(row, lanes);
            }
        }
        for row in rows(&flow.writes) {
            held.clear(row, mask);
            // Several parts make one value, which is no longer a value that nobody has written.
            if let [(lanes, load)] = moved[..]
                && flow.reads.len() == 1
            {
                held.rows.push((row, lanes, load));
            }
        }
        for (lanes, load) in used {
            if let Some(load) = held.loads.get(load) {
                self.used(number, warp, lanes, (load.site, &load.addresses, load.bytes));
            }
        }
        held.rows.retain(|(_, lanes, _)| *lanes != 0);
        if !held.rows.is_empty() {
            block.warps[warp].unwritten = Some(held);
        }
    }

    fn used(&mut self, block: u32, warp: usize, lanes: u32, (site, addresses, bytes): (SiteId, &Lanes, u32)) {
        let lane = lanes.trailing_zeros() as usize & (LANES - 1);
        let notice = Notice {
            kind: NoticeKind::NeverWritten,
            site,
            block,
            warp: warp as u8,
            lane: lane as u8,
            address: addresses[lane],
            bytes: bytes as u8,
            count: u64::from(lanes.count_ones()),
        };
        self.notice(notice, MOST_TOLD);
    }

    /// How many of these bytes were written; all, where nobody knows.
    fn written(&mut self, block: &Block, (place, address): (Place, u64), size: usize) -> usize {
        let cluster = &self.clusters[block.cluster];
        match place {
            Place::Shared | Place::Peer => {
                let (rank, at) = in_cluster(block, place, address);
                cluster.written.count(cluster.offset(rank, at), size)
            }
            Place::Global => self.memory.written(address, size),
            Place::Local | Place::Param => size,
        }
    }

    fn write_lanes(&mut self, block: &Block, address: &Address, mask: u32, addresses: &Lanes, size: usize) {
        let Self { clusters, memory, .. } = self;
        let cluster = &mut clusters[block.cluster];
        let mut one = |address: u64, space: Space, size: usize| match locate(space, address, &block.position)
        {
            (place @ (Place::Shared | Place::Peer), at) => {
                let (rank, at) = in_cluster(block, place, at);
                cluster.mark(rank, at, size);
            }
            (Place::Global, at) => memory.mark(at, size),
            (Place::Local | Place::Param, _) => {}
        };
        // Lanes side by side are one range.
        let step = size as u64;
        let side_by_side = mask == u32::MAX
            && addresses.iter().zip(addresses.iter().skip(1)).all(|(a, b)| b.wrapping_sub(*a) == step);
        if side_by_side {
            one(addresses[0], address.space, size * LANES);
        } else {
            lanes(mask).for_each(|lane| one(addresses[lane], address.space, size));
        }
    }
}

/// The rank of the block whose shared memory an address is in, and its offset there.
fn in_cluster(block: &Block, place: Place, address: u64) -> (u32, u64) {
    let rank = if place == Place::Peer { (address >> RANK_SHIFT) as u32 } else { block.position.rank };
    (rank, address & SHARED_OFFSET)
}
