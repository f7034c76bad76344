//! Accesses to textures and surfaces.
//!
//! Fetches see memory as it is: what a texture cache would keep is not modelled.

use super::access::{halt, operand, read, write};
use super::{Block, Core, Halt};
use crate::abi::{LANES, Lanes, lanes};
use crate::backend::FaultKind;
use crate::backend::emu::image::{ImageCode, LoggedSite, Query, Values};
use crate::backend::emu::memory::Refused;
use crate::backend::emu::sample::{self, Reader};
use crate::backend::image::{ImageObject, SurfacePlace, Unresolved};
use crate::isa::ImageOp;

/// Four registers of all lanes.
type Rows = [Lanes; 4];

/// What it is is not known.
fn unsupported(why: Unresolved) -> Halt {
    Halt::Unsupported { what: why }
}

impl Core<'_> {
    /// An access by the lanes of the mask.
    pub(super) fn image(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        code: &ImageCode,
        mask: u32,
        site: Option<LoggedSite>,
    ) -> Result<(), Halt> {
        let at = &block.warps[warp];
        let here = at.groups[group];
        let handles = operand(at, here, code.handle);
        let mut given = [[0; LANES]; 3];
        for (row, src) in given.iter_mut().zip(&code.coordinates) {
            *row = operand(at, here, *src).map(|value| value & 0xffff_ffff);
        }
        let mut values = [[0; LANES]; 4];
        if let Values::Store(from) = &code.values {
            for (row, src) in values.iter_mut().zip(from) {
                *row = operand(at, here, *src);
            }
        }
        if let Some(site) = site {
            let [x, y, z] = &given;
            self.recorder.a = handles;
            self.recorder.read = std::array::from_fn(|lane| x[lane] | y[lane] << 32);
            self.recorder.written = *z;
            self.recorder.write(site, mask, block.who(warp), (0, 0));
        }
        let images = self.images.clone();
        for lane in lanes(mask) {
            let image = images.find(&code.access, handles[lane]).map_err(unsupported)?;
            let coordinates = given.map(|row| row[lane] as u32);
            match code.access.op {
                ImageOp::Fetch | ImageOp::Gather => {
                    let fetched = self.fetch(image, code, coordinates, lane)?;
                    values.iter_mut().zip(fetched).for_each(|(row, value)| row[lane] = value.into());
                }
                _ => self.surface(image, code, coordinates, lane, &mut values)?,
            }
        }
        if let Values::Load(to) = &code.values {
            self.with_regs(block, warp, group, |regs| {
                for (to, row) in to.iter().zip(&values) {
                    regs.set(*to, mask, |lane| row[lane]);
                }
            });
        }
        Ok(())
    }

    fn fetch(
        &mut self,
        image: &ImageObject,
        code: &ImageCode,
        coordinates: [u32; 3],
        lane: usize,
    ) -> Result<sample::Values, Halt> {
        let axes = image.axes(&code.access, coordinates).map_err(unsupported)?;
        let reader = Reader::of(image);
        let size = image.texel.bytes() as usize;
        let mut bytes = |[x, y, z]: [Option<u32>; 3]| {
            let (Some(x), Some(y), Some(z)) = (x, y, z) else { return Ok(None) };
            let found = self.memory.bytes(image.address([x, y, z]), size, false);
            let mut bytes = sample::Bytes::default();
            bytes[..size].copy_from_slice(found.map_err(|refused| halt(lane, refused))?);
            Ok(Some(bytes))
        };
        let [x, y, z] = axes;
        if code.access.op == ImageOp::Gather {
            // Counter-clockwise, from the lower left.
            let corners = [(0, 1), (1, 1), (1, 0), (0, 0)];
            let mut gathered = [0; 4];
            for (value, (i, j)) in gathered.iter_mut().zip(corners) {
                let bytes = bytes([x.at[i], y.at[j], z.at[0]])?;
                *value = reader.texel(bytes.as_ref().map(|bytes| &bytes[..size]))[code.channel];
            }
            return Ok(gathered);
        }
        if image.filters(&code.access) {
            return reader.filtered(axes, bytes);
        }
        let bytes = bytes([x.at[0], y.at[0], z.at[0]])?;
        Ok(reader.texel(bytes.as_ref().map(|bytes| &bytes[..size])))
    }

    fn surface(
        &mut self,
        image: &ImageObject,
        code: &ImageCode,
        coordinates: [u32; 3],
        lane: usize,
        values: &mut Rows,
    ) -> Result<(), Halt> {
        let (place, bytes) = image.surface(&code.access, coordinates).map_err(unsupported)?;
        let unit = code.unit as usize;
        let address = match place {
            SurfacePlace::At(address) => address,
            SurfacePlace::Nowhere => {
                if matches!(code.values, Values::Load(_)) {
                    values.iter_mut().for_each(|row| row[lane] = 0);
                }
                return Ok(());
            }
            SurfacePlace::Trap => {
                let detail = format!("surface access of {bytes} bytes at {coordinates:?}, beyond the edge");
                return Err(halt(lane, Refused { kind: FaultKind::OutOfBounds, detail }));
            }
        };
        if !address.is_multiple_of(bytes.into()) {
            let detail =
                format!("surface access of {bytes} bytes at {coordinates:?}, which is no multiple of that");
            return Err(halt(lane, Refused { kind: FaultKind::Misaligned, detail }));
        }
        let stores = matches!(code.values, Values::Store(_));
        if stores {
            self.changed = self.clock;
        }
        let memory = self.memory.bytes(address, bytes as usize, stores);
        let memory = memory.map_err(|refused| halt(lane, refused))?;
        for (row, bytes) in values.iter_mut().zip(memory.chunks_exact_mut(unit)) {
            if stores { write(bytes, row[lane]) } else { row[lane] = read(bytes) }
        }
        Ok(())
    }

    /// What an image is like.
    pub(super) fn query(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        query: &Query,
        mask: u32,
    ) -> Result<(), Halt> {
        let handles = operand(&block.warps[warp], block.warps[warp].groups[group], query.handle);
        let images = self.images.clone();
        let mut row = [0; LANES];
        for lane in lanes(mask) {
            let image = images.get(query.surface, handles[lane]);
            let extent = image.and_then(ImageObject::extent);
            let extent =
                extent.ok_or_else(|| unsupported("its handle is of no image that is known".into()))?;
            row[lane] = extent[query.axis].into();
        }
        self.with_regs(block, warp, group, |regs| regs.set(query.to, mask, |lane| row[lane]));
        Ok(())
    }
}
