//! Accesses by textures and surfaces.
//!
//! The memory model leaves them out ("the memory consistency model does not apply to texture (including `ld.global.nc`) and surface
//! accesses", PTX ISA). What holds is the CUDA programming guide's "Read/Write Coherency": what is fetched by a texture or read by a
//! surface from where the same kernel call has written before, by a surface or otherwise, is undefined, whichever thread wrote;
//! what earlier calls and copies have written can be read. Therefore:
//!
//! - A texture fetch of what the same launch writes is R009, whatever the order, as `ld.global.nc` is.
//! - A surface read of what the same launch has written by a surface is R009, too, though it was ordered; then it is a warning, since
//!   devices that have one cache for global memory and surfaces do what the program means.
//! - Else surface accesses are weak accesses: a thread's own are ordered, those of several threads race unless barriers or other
//!   synchronisation lie between. A read, then a write of the same texel by one thread, as updates in place have it, is right.
//! - Surface reductions are relaxed atomics of the device.

use smallvec::SmallVec;

use super::Core;
use super::access::Stroke;
use super::shadow::{Entry, Path};
use crate::abi::Record;
use crate::event::Place;
use crate::finding::AccessClass;
use crate::instrument::SiteId;
use crate::isa::{ImageAccess, ImageOp, Order, Scope};

/// Reasons that are kept at most.
const MOST_UNRESOLVED: usize = 64;

/// The coordinates that the lane with this rank gives.
pub(super) fn coordinates(record: &Record<'_>, rank: usize) -> [u32; 3] {
    let pair = record.read(rank).unwrap_or(0);
    [pair as u32, (pair >> 32) as u32, record.written(rank).unwrap_or(0) as u32]
}

impl Core {
    /// Lanes access a texture or a surface.
    pub(super) fn image(&mut self, access: &ImageAccess, record: &Record<'_>) {
        let path = if access.is_surface() { Path::Surface } else { Path::ReadOnly };
        let Some(entry) = self.entry(record, path) else { return };
        let (class, order, scope) = match access.op {
            ImageOp::Fetch | ImageOp::Gather | ImageOp::Load => (AccessClass::Read, Order::Weak, None),
            ImageOp::Store => (AccessClass::Write, Order::Weak, None),
            ImageOp::Reduce(_) => (AccessClass::Atomic, Order::Relaxed, Some(Scope::Gpu)),
        };
        // Neighbours fetch the same texels: lanes that know the same read one in one go.
        let together = class == AccessClass::Read && self.are_alike(record);
        let mut places = SmallVec::<[(u64, u32, u32); 64]>::new();
        let images = self.images.clone();
        for (rank, lane) in record.lanes().enumerate() {
            let touched = images
                .find(access, record.a(rank))
                .and_then(|image| image.touched(access, coordinates(record, rank)));
            match touched {
                Ok(touched) => places.extend(touched.into_iter().map(|(at, bytes)| (at, bytes, 1 << lane))),
                Err(why) => self.unresolved(SiteId(record.site()), why),
            }
        }
        if together {
            places.sort_unstable();
            places.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.2 |= if same { next.2 } else { 0 };
                same
            });
        }
        for (address, bytes, mask) in places {
            let entry = Entry { mask, single: false, ..entry };
            let stroke = Stroke { order, scope, ..Stroke::weak(class, bytes as u8, entry) };
            self.element(Place { address, block: 0 }, stroke);
        }
    }

    fn unresolved(&mut self, site: SiteId, why: String) {
        let is_new = !self.unresolved.iter().any(|(other, said)| *other == site && *said == why);
        if is_new && self.unresolved.len() < MOST_UNRESOLVED {
            self.unresolved.push((site, why));
        }
    }
}
