//! Arrays, textures and surfaces that a program has made: what lies behind their handles.
//!
//! Arrays get addresses here, which are no device's (`ptxrace::backend::image`), and none twice. Cube maps, mipmaps, views and
//! formats that are not read keep their reason, which a launch that uses them is told.

use std::collections::BTreeMap;

use ptxrace::backend::image::{ARRAYS, ArrayShape, Edge, Sampling, Storage, Texel};
use ptxrace::backend::{ImageObject, Images};
use rustc_hash::FxHashMap;

/// Bytes between arrays.
const GAP: u64 = 1 << 20;
/// What `CUDA_ARRAY3D_DESCRIPTOR` says of arrays that are followed: layers, surfaces, gathers.
const LAYERED: u32 = 1;
const FOLLOWED: u32 = LAYERED | 2 | 8;
/// It counts faces.
const CUBEMAP: u32 = 4;

/// An array as described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayDescription {
    pub(crate) extent: [usize; 3],
    pub(crate) format: u32,
    pub(crate) channels: u32,
    pub(crate) flags: u32,
}

impl ArrayDescription {
    /// Its shape at this address, or what it is that is not followed.
    fn shape(&self, base: u64) -> Result<ArrayShape, String> {
        let what = match self.flags {
            flags if flags & CUBEMAP != 0 => "a cube map",
            flags if flags & !FOLLOWED != 0 => "an array of a special kind",
            _ => "",
        };
        if !what.is_empty() {
            return Err(what.into());
        }
        let texel = texel(self.format, self.channels)?;
        let [width, height, depth] = self.extent.map(u32::try_from);
        let (Ok(width), Ok(height), Ok(depth)) = (width, height, depth) else {
            return Err("an array that is too large".into());
        };
        let shape =
            ArrayShape { base, extent: [width, height, depth], layered: self.flags & LAYERED != 0, texel };
        match shape.bytes() {
            Some(_) => Ok(shape),
            None => Err("an array that is too large".into()),
        }
    }
}

/// The texel of a format with so many channels.
fn texel(format: u32, channels: u32) -> Result<Texel, String> {
    use ptxrace::backend::image::Channel as C;
    let channel = match format {
        1 => C::U8,
        2 => C::U16,
        3 => C::U32,
        8 => C::S8,
        9 => C::S16,
        10 => C::S32,
        16 => C::F16,
        32 => C::F32,
        other => return Err(format!("texels of format {other:#x}")),
    };
    match channels {
        1 | 2 | 4 => Ok(Texel { channel, channels: channels as u8 }),
        other => Err(format!("texels of {other} channels")),
    }
}

/// The memory of a texture or a surface, as described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// By its handle.
    Array(u64),
    /// Of several levels.
    Mipmap,
    Linear {
        address: u64,
        format: u32,
        channels: u32,
        bytes: usize,
    },
    Rows {
        address: u64,
        format: u32,
        channels: u32,
        width: usize,
        height: usize,
        pitch: usize,
    },
}

/// How a texture is read, as described.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) edges: [u32; 3],
    pub(crate) filter: u32,
    pub(crate) flags: u32,
    pub(crate) border: [f32; 4],
    /// The texels are seen as others.
    pub(crate) view: bool,
}

impl Reading {
    fn sampling(&self) -> Result<Sampling, String> {
        const INTEGERS: u32 = 1;
        const NORMALIZED: u32 = 2;
        const SRGB: u32 = 0x10;
        let edges = self.edges.map(|edge| match edge {
            0 => Edge::Wrap,
            2 => Edge::Mirror,
            3 => Edge::Border,
            _ => Edge::Clamp,
        });
        if self.view {
            return Err("a resource view".into());
        }
        if self.flags & SRGB != 0 {
            return Err("sRGB texels".into());
        }
        if edges.contains(&Edge::Border) && self.border.iter().any(|part| *part != 0.0) {
            return Err("a texture with a border colour".into());
        }
        let (linear, normalized) = (self.filter == 1, self.flags & NORMALIZED != 0);
        Ok(Sampling { edges, linear, normalized, floats: self.flags & INTEGERS == 0 })
    }
}

/// All that there are.
#[derive(Debug, Default)]
pub(crate) struct Textures {
    arrays: FxHashMap<u64, Result<ArrayShape, String>>,
    objects: BTreeMap<(bool, u64), ImageObject>,
    /// Where the last array ended.
    end: u64,
    /// All objects, until there are others.
    images: Option<Images>,
}

impl Textures {
    /// An array was made. Gives its shape, if it is followed.
    pub(crate) fn add_array(&mut self, handle: u64, description: &ArrayDescription) -> Option<ArrayShape> {
        let base = self.end.max(ARRAYS).next_multiple_of(GAP);
        let shape = description.shape(base);
        if let Ok(shape) = &shape {
            self.end = base + shape.bytes().unwrap_or(0) + GAP;
        }
        self.arrays.insert(handle, shape.clone());
        shape.ok()
    }

    /// The array of a handle, if it is followed.
    pub(crate) fn array(&self, handle: u64) -> Option<&ArrayShape> {
        self.arrays.get(&handle)?.as_ref().ok()
    }

    /// An array is gone.
    pub(crate) fn remove_array(&mut self, handle: u64) -> Option<ArrayShape> {
        self.arrays.remove(&handle)?.ok()
    }

    /// A texture was made, or a surface where nothing is said of reading.
    pub(crate) fn add_object(&mut self, handle: u64, resource: &Resource, reading: Option<&Reading>) {
        let surface = reading.is_none();
        let found = self.storage(resource).and_then(|(storage, texel)| {
            let sampling = reading.map_or(Ok(Sampling::default()), Reading::sampling)?;
            Ok((storage, texel, sampling))
        });
        let (storage, texel, sampling) = found.unwrap_or_else(|what| {
            let texel = Texel { channel: ptxrace::backend::image::Channel::U8, channels: 1 };
            (Storage::Unknown(what), texel, Sampling::default())
        });
        self.objects.insert((surface, handle), ImageObject { handle, surface, storage, texel, sampling });
        self.images = None;
    }

    fn storage(&self, resource: &Resource) -> Result<(Storage, Texel), String> {
        match *resource {
            Resource::Array(handle) => match self.arrays.get(&handle) {
                Some(Ok(shape)) => Ok((Storage::Array(*shape), shape.texel)),
                Some(Err(what)) => Err(what.clone()),
                None => Err("an array that was made in a way which is not followed".into()),
            },
            Resource::Mipmap => Err("a mipmapped array".into()),
            Resource::Linear { address, format, channels, bytes } => {
                Ok((Storage::Linear { address, bytes: bytes as u64 }, texel(format, channels)?))
            }
            Resource::Rows { address, format, channels, width, height, pitch } => {
                let too_large = |_| "a texture that is too large".to_owned();
                let extent =
                    [u32::try_from(width).map_err(too_large)?, u32::try_from(height).map_err(too_large)?];
                let storage = Storage::Pitched { address, extent, pitch: pitch as u64 };
                Ok((storage, texel(format, channels)?))
            }
        }
    }

    /// A texture or a surface is gone.
    pub(crate) fn remove_object(&mut self, surface: bool, handle: u64) -> bool {
        self.images = None;
        self.objects.remove(&(surface, handle)).is_some()
    }

    /// What lies behind all handles.
    pub(crate) fn images(&mut self) -> Images {
        let objects = &self.objects;
        self.images.get_or_insert_with(|| objects.values().cloned().collect::<Vec<_>>().into()).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: ArrayDescription =
        ArrayDescription { extent: [16, 8, 0], format: 32, channels: 1, flags: 2 };

    #[test]
    fn arrays_never_share_addresses() {
        let mut textures = Textures::default();
        let first = textures.add_array(1, &PLAIN).unwrap();
        assert_eq!(textures.remove_array(1), Some(first));
        let second = textures.add_array(1, &PLAIN).unwrap();
        assert!(second.base >= first.base + first.bytes().unwrap());
        assert_eq!(textures.add_array(2, &ArrayDescription { flags: CUBEMAP, ..PLAIN }), None);
    }

    #[test]
    fn what_is_not_followed_says_so() {
        let mut textures = Textures::default();
        let reading = Reading { edges: [1; 3], filter: 0, flags: 1, border: [0.0; 4], view: false };
        textures.add_array(1, &PLAIN);
        textures.add_object(7, &Resource::Array(1), Some(&reading));
        textures.add_object(8, &Resource::Mipmap, Some(&reading));
        textures.add_object(7, &Resource::Array(2), None);
        let images = textures.images();
        let storage = |surface, handle| images.get(surface, handle).map(|image| image.storage.clone());
        assert_eq!(storage(false, 7), Some(Storage::Array(*textures.array(1).unwrap())));
        assert!(matches!(storage(false, 8), Some(Storage::Unknown(what)) if what == "a mipmapped array"));
        assert!(matches!(storage(true, 7), Some(Storage::Unknown(_))));
        assert!(textures.remove_object(true, 7));
        assert_eq!(textures.images().get(true, 7), None);
    }
}
