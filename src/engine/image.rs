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
                Err(why) => self.unresolved(SiteId(record.site()), &why),
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
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::abi::{Encoder, LANES};
    use crate::backend::{Launch, LaunchEnd, LaunchInfo, Plan, Sink};
    use crate::engine::{Engine, Report, Triage};
    use crate::instrument::SiteTable;

    const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 t)\n{\n.reg .b32 %r<9>;\n\
                       .reg .b64 %rd1;\nld.param.u64 %rd1, [t];\n\
                       tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5}];\nret;\n}\n";

    fn launch() -> Launch {
        Launch {
            kernel: "k".into(),
            grid: [1; 3],
            block: [32, 1, 1],
            cluster: None,
            shared: 0,
            stream: 0,
            device: 0,
            after: Vec::new(),
            args: Vec::new(),
        }
    }

    #[test]
    fn a_handle_that_says_nothing_is_told_once() {
        let sites = Arc::new(SiteTable::new(&crate::ptx::parse(PTX).module));
        let [fetch, end] = sites.sites() else { panic!("{:?}", sites.sites()) };
        let plan = Plan { launches: vec![launch()], ..Plan::default() };
        let mut units = Vec::new();
        for site in [fetch, fetch, end] {
            let (a, read, written) = (&[7; LANES], &[3; LANES], &[0; LANES]);
            let (mask, payload, tickets) = (u32::MAX, site.payload(), (0, 0));
            let site = site.id.0;
            Encoder { site, mask, block: 0, warp: 0, payload, tickets, a, read, written }.encode(&mut units);
        }
        let run = |sink: &mut dyn Sink| {
            sink.begin(&LaunchInfo::default());
            sink.records(&units);
            sink.end(&LaunchEnd { records: 3, ..LaunchEnd::default() });
        };
        let mut engine = Engine::new(Arc::clone(&sites), &plan);
        run(&mut engine);
        let told = engine.unresolved();
        let told: Vec<_> =
            told.iter().map(|(site, why)| (&*site.opcode, &*site.function, why.as_str())).collect();
        assert_eq!(told, [("tex.1d.v4.u32.s32", "k", "its handle is no texture object that is known")]);
        assert!(engine.unresolved().is_empty());
        let mut triage = Triage::new(Arc::clone(&sites), &plan);
        run(&mut triage);
        assert_eq!(triage.clean(), 0);
        let Report { unresolved, findings, .. } = triage.finish();
        assert_eq!((unresolved.len(), findings.len()), (1, 0));
    }
}
