//! The common loads and stores: one element of 4 or 8 bytes by each lane, all in the block's shared memory or in one
//! allocation. Everything else, faults included, is for the general way.

use super::access::operand;
use super::place::{Place, locate};
use super::warp::{Group, Warp};
use crate::abi::{LANES, Lanes, lanes};
use crate::backend::emu::image::{Transfer, Values};
use crate::backend::emu::memory::Memory;
use crate::backend::emu::record::Recorder;
use crate::backend::emu::regs::Dst;
use crate::backend::emu::special::Position;
use crate::backend::emu::types::extend;

/// Does the transfer if it is a common one, and tells whether it was.
#[inline]
#[expect(clippy::too_many_arguments, reason = "the parts of a core and a warp, borrowed apart")]
pub(super) fn simple(
    transfer: &Transfer,
    at: &mut Warp,
    here: Group,
    mask: u32,
    (addresses, position): (&Lanes, &Position),
    memory: &mut Memory,
    shared: &mut [u8],
    recorder: Option<&mut Recorder<'_>>,
) -> bool {
    let first = addresses[mask.trailing_zeros() as usize & 31];
    let write = matches!(transfer.values, Values::Store(_));
    let (base, bytes) = match locate(transfer.address.space, first, position) {
        (Place::Shared, at) => (first.wrapping_sub(at), shared),
        (Place::Global, at) => match memory.around(at, write) {
            Some(found) => found,
            None => return false,
        },
        _ => return false,
    };
    match &transfer.values {
        Values::Load(to) => {
            let [Dst(Some(slot))] = **to else { return false };
            let row = &mut at.file[(here.base + slot) as usize];
            let done = match transfer.unit {
                4 if transfer.signed => gather::<4>(bytes, base, addresses, mask, row, |b| {
                    extend(u64::from(u32::from_le_bytes(b)), 32)
                }),
                4 => gather::<4>(bytes, base, addresses, mask, row, |b| u64::from(u32::from_le_bytes(b))),
                8 => gather::<8>(bytes, base, addresses, mask, row, u64::from_le_bytes),
                _ => false,
            };
            if let (true, Some(recorder)) = (done, recorder) {
                let low = if transfer.unit == 4 { 0xffff_ffff } else { u64::MAX };
                for (to, from) in recorder.read.iter_mut().zip(row.iter()) {
                    *to = from & low;
                }
            }
            done
        }
        Values::Store(from) => {
            let [src] = **from else { return false };
            let values = operand(at, here, src);
            match transfer.unit {
                4 => scatter::<4>(bytes, base, addresses, mask, |lane| (values[lane] as u32).to_le_bytes()),
                8 => scatter::<8>(bytes, base, addresses, mask, |lane| values[lane].to_le_bytes()),
                _ => false,
            }
        }
    }
}

/// Whether all lanes' elements lie in the memory, at multiples of their size from its base.
#[inline(always)]
fn all_inside<const N: usize>(bytes: &[u8], base: u64, addresses: &Lanes, mask: u32) -> bool {
    let Some(last) = (bytes.len() as u64).checked_sub(N as u64) else { return false };
    let mut outside = 0u32;
    for (lane, address) in addresses.iter().enumerate() {
        let offset = address.wrapping_sub(base);
        outside |= u32::from(offset > last || offset & (N as u64 - 1) != 0) << lane;
    }
    outside & mask == 0
}

/// The step from lane to lane, if all addresses are such a progression.
#[inline(always)]
fn progression(addresses: &Lanes) -> Option<u64> {
    let step = addresses[1].wrapping_sub(addresses[0]);
    let mut off = 0;
    for lane in 1..LANES {
        off |= addresses[lane].wrapping_sub(addresses[lane - 1]) ^ step;
    }
    (off == 0).then_some(step)
}

#[inline(always)]
fn gather<const N: usize>(
    bytes: &[u8],
    base: u64,
    addresses: &Lanes,
    mask: u32,
    row: &mut Lanes,
    value: impl Fn([u8; N]) -> u64,
) -> bool {
    if mask == u32::MAX
        && let Some(step) = progression(addresses)
    {
        let offset = addresses[0].wrapping_sub(base);
        let aligned = offset & (N as u64 - 1) == 0;
        let from = usize::try_from(offset).ok().filter(|_| aligned).and_then(|at| bytes.get(at..));
        match step {
            0 => {
                let Some(element) = from.and_then(|from| from.first_chunk::<N>()) else { return false };
                *row = [value(*element); LANES];
                return true;
            }
            _ if step == N as u64 => {
                let Some(from) = from.filter(|from| from.len() >= N * LANES) else { return false };
                for (to, element) in row.iter_mut().zip(from.as_chunks::<N>().0) {
                    *to = value(*element);
                }
                return true;
            }
            _ => {}
        }
    }
    if !all_inside::<N>(bytes, base, addresses, mask) {
        return false;
    }
    let element = |lane: usize| {
        let at = addresses[lane].wrapping_sub(base) as usize;
        bytes.get(at..).and_then(|bytes| bytes.first_chunk::<N>()).map_or(0, |bytes| value(*bytes))
    };
    if mask == u32::MAX {
        for (lane, to) in row.iter_mut().enumerate() {
            *to = element(lane);
        }
    } else {
        for lane in lanes(mask) {
            row[lane] = element(lane);
        }
    }
    true
}

#[inline(always)]
fn scatter<const N: usize>(
    bytes: &mut [u8],
    base: u64,
    addresses: &Lanes,
    mask: u32,
    value: impl Fn(usize) -> [u8; N],
) -> bool {
    if mask == u32::MAX && progression(addresses) == Some(N as u64) {
        let offset = addresses[0].wrapping_sub(base);
        let aligned = offset & (N as u64 - 1) == 0;
        let to = usize::try_from(offset).ok().filter(|_| aligned).and_then(|at| bytes.get_mut(at..));
        let Some(to) = to.filter(|to| to.len() >= N * LANES) else { return false };
        for (lane, element) in to.as_chunks_mut::<N>().0.iter_mut().enumerate().take(LANES) {
            *element = value(lane);
        }
        return true;
    }
    if !all_inside::<N>(bytes, base, addresses, mask) {
        return false;
    }
    for lane in lanes(mask) {
        let at = addresses[lane].wrapping_sub(base) as usize;
        if let Some(to) = bytes.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut::<N>()) {
            *to = value(lane);
        }
    }
    true
}
