//! Where an address leads, and the memory that a warp sees there.

use super::access::read;
use super::cluster::Cluster;
use crate::abi::{LANES, Lanes, PEER, SHARED_OFFSET, TAG_SHARED, lanes};
use crate::backend::FaultKind;
use crate::backend::emu::image::Space;
use crate::backend::emu::memory::{
    CONST_BASE, GLOBAL_BASE, LOCAL_WINDOW, Memory, PARAM_WINDOW, Refused, SHARED_WINDOW, WINDOW,
};
use crate::backend::emu::special::{Position, RANK_SHIFT};

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Global,
    /// The block's own shared memory.
    Shared,
    /// That of another block of the cluster: its rank, then the offset there.
    Peer,
    Local,
    Param,
}

/// Place and address there, as seen by a block.
#[inline]
pub(super) fn locate(space: Space, address: u64, position: &Position) -> (Place, u64) {
    let within = |window: u64| address.wrapping_sub(window) < WINDOW;
    match space {
        Space::Global | Space::Const => (Place::Global, address),
        // Without a rank it is as good as with the own one.
        Space::Shared if address >> RANK_SHIFT == u64::from(position.rank) => {
            (Place::Shared, address & SHARED_OFFSET)
        }
        Space::Shared => (Place::Shared, address),
        Space::SharedCluster => in_cluster(address, position),
        Space::Local => (Place::Local, address),
        Space::Param if within(PARAM_WINDOW) => (Place::Param, address - PARAM_WINDOW),
        Space::Param => (Place::Local, address),
        Space::Generic => {
            if within(SHARED_WINDOW) {
                let offset = address - SHARED_WINDOW;
                if position.alone { (Place::Shared, offset) } else { in_cluster(offset, position) }
            } else if within(LOCAL_WINDOW) {
                (Place::Local, address - LOCAL_WINDOW)
            } else if within(PARAM_WINDOW) {
                (Place::Param, address - PARAM_WINDOW)
            } else {
                (Place::Global, address)
            }
        }
    }
}

fn in_cluster(address: u64, position: &Position) -> (Place, u64) {
    if address >> RANK_SHIFT == u64::from(position.rank) {
        (Place::Shared, address & SHARED_OFFSET)
    } else {
        (Place::Peer, address)
    }
}

/// Addresses as records hold them, and the lanes whose access is logged.
#[inline]
pub(super) fn tagged(
    space: Space,
    mask: u32,
    addresses: &Lanes,
    position: &Position,
    out: &mut Lanes,
) -> u32 {
    match space {
        Space::Global => *out = *addresses,
        Space::Shared => *out = addresses.map(|a| a & SHARED_OFFSET | TAG_SHARED),
        Space::SharedCluster => {
            *out = addresses.map(|a| {
                let own = a as u32 >> RANK_SHIFT == position.rank;
                if own { a & SHARED_OFFSET | TAG_SHARED } else { a | TAG_SHARED | PEER }
            });
        }
        Space::Local | Space::Const | Space::Param => return 0,
        Space::Generic => {
            let mut logged = 0;
            for lane in lanes(mask) {
                let (place, address) = locate(space, addresses[lane], position);
                out[lane] = match place {
                    Place::Shared => address & SHARED_OFFSET | TAG_SHARED,
                    Place::Peer => address | TAG_SHARED | PEER,
                    Place::Global if !(CONST_BASE..GLOBAL_BASE).contains(&address) => address,
                    _ => continue,
                };
                logged |= 1 << lane;
            }
            return logged;
        }
    }
    mask
}

/// The memory that a warp sees.
pub(super) struct View<'v> {
    pub(super) memory: &'v mut Memory,
    pub(super) cluster: &'v mut Cluster,
    pub(super) rank: u32,
    pub(super) local: &'v mut [Vec<u8>],
    pub(super) local_top: &'v Lanes,
    pub(super) params: &'v mut [u8],
}

const NO_LOCAL: Lanes = [0; LANES];

impl<'v> View<'v> {
    /// Without what only one thread sees.
    pub(super) fn shared_only(memory: &'v mut Memory, cluster: &'v mut Cluster, rank: u32) -> Self {
        Self { memory, cluster, rank, local: &mut [], local_top: &NO_LOCAL, params: &mut [] }
    }

    /// The value there, if other threads can see it.
    pub(super) fn value(&mut self, at: (Place, u64), bytes: usize) -> Option<u64> {
        match at.0 {
            Place::Global | Place::Shared => self.bytes(at, 0, bytes, false).ok().map(|bytes| read(bytes)),
            Place::Peer | Place::Local | Place::Param => None,
        }
    }
}

impl View<'_> {
    /// The bytes at a place.
    #[inline]
    pub(super) fn bytes(
        &mut self,
        at: (Place, u64),
        lane: usize,
        size: usize,
        write: bool,
    ) -> Result<&mut [u8], Refused> {
        let (place, address) = at;
        let (memory, end, name): (&mut [u8], u64, _) = match place {
            Place::Global => return self.memory.bytes(address, size, write),
            Place::Peer => return self.cluster.bytes(address, size, write),
            Place::Shared => {
                if write {
                    self.cluster.mark_within(self.rank, address, size);
                }
                let shared = self.cluster.of(self.rank);
                let end = shared.len() as u64;
                (shared, end, "the block's shared memory")
            }
            Place::Local => {
                let top = self.local_top[lane];
                (self.local[lane].as_mut_slice(), top, "the thread's local memory")
            }
            Place::Param if write => {
                let detail = format!("store of {size} bytes to the kernel's parameters at {address:#x}");
                return Err(Refused { kind: FaultKind::Device, detail });
            }
            Place::Param => {
                let end = self.params.len() as u64;
                (self.params, end, "the kernel's parameters")
            }
        };
        within(memory, end, name, address, size, write)
    }
}

/// The bytes of an access within a memory that ends somewhere.
#[inline]
pub(super) fn within<'b>(
    memory: &'b mut [u8],
    end: u64,
    name: &str,
    address: u64,
    size: usize,
    write: bool,
) -> Result<&'b mut [u8], Refused> {
    let stop = address.saturating_add(size as u64);
    if stop <= end && stop <= memory.len() as u64 {
        return Ok(&mut memory[address as usize..stop as usize]);
    }
    let what = if write { "store" } else { "load" };
    let over = stop.saturating_sub(end);
    let detail = if address > i64::MAX.cast_unsigned() {
        let before = address.wrapping_neg();
        format!(
            "{what} of {size} bytes at {address:#x}, {before} bytes before the start of {name} ({end} bytes)"
        )
    } else if address >= end {
        let behind = match address - end {
            0 => "right".to_owned(),
            bytes => format!("{bytes} bytes"),
        };
        format!("{what} of {size} bytes at {address:#x}, {behind} behind the end of {name} ({end} bytes)")
    } else {
        format!(
            "{what} of {size} bytes at {address:#x}, its last {over} bytes behind the end of {name} ({end} bytes)"
        )
    };
    Err(Refused { kind: FaultKind::OutOfBounds, detail })
}

/// Why an address may not be.
pub(super) fn misaligned(write: bool, size: usize, address: u64) -> Refused {
    let what = if write { "store" } else { "load" };
    Refused {
        kind: FaultKind::Misaligned,
        detail: format!("{what} of {size} bytes at {address:#x}, which is no multiple of {size}"),
    }
}
