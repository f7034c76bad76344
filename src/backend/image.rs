//! Textures and surfaces as the host has made them: what lies behind a handle, and which bytes an access touches.
//!
//! The memory of an array has no address. It is taken to lie in a range of its own from `ARRAYS` on, where no device has memory,
//! row by row and layer by layer. So accesses by textures and surfaces of one array meet.
//!
//! Absent: mipmaps, cube maps, anisotropic filters, block-compressed formats. What lies behind a handle of such is `Unknown`, with
//! the reason.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::isa::{ImageAccess, ImageOp, Outside};

/// First address of arrays.
pub const ARRAYS: u64 = 1 << 58;
/// Texels that one access touches at most: those of a linear filter over three axes.
pub const MOST_TEXELS: usize = 8;

/// What a channel of a texel holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the types")]
pub enum Channel {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    F16,
    F32,
}

impl Channel {
    /// Its bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 | Self::F16 => 2,
            Self::U32 | Self::S32 | Self::F32 => 4,
        }
    }

    /// Whether it holds a float.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32)
    }
}

/// Channels that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Texel {
    /// What each holds.
    pub channel: Channel,
    /// How many: 1, 2 or 4.
    pub channels: u8,
}

impl Texel {
    /// Its bytes, 16 at most.
    pub fn bytes(self) -> u32 {
        self.channel.bytes() * u32::from(self.channels)
    }
}

/// The memory of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Storage {
    /// Texels one behind the other.
    Linear {
        /// The first byte.
        address: u64,
        /// How many.
        bytes: u64,
    },
    /// Rows of texels in linear memory.
    Pitched {
        /// The first byte.
        address: u64,
        /// Texels of a row, and rows.
        extent: [u32; 2],
        /// Bytes from row to row.
        pitch: u64,
    },
    /// A CUDA array.
    Array(ArrayShape),
    /// What it is that nobody here reads.
    Unknown(String),
}

/// A CUDA array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayShape {
    /// The first byte, from `ARRAYS` on.
    pub base: u64,
    /// Width in texels, height, and depth or layers; 0 where there is no such axis.
    pub extent: [u32; 3],
    /// The last of them counts layers.
    pub layered: bool,
    /// Its texels.
    pub texel: Texel,
}

impl ArrayShape {
    /// Width, height and depth, at least 1 each.
    pub fn size(&self) -> [u32; 3] {
        self.extent.map(|n| n.max(1))
    }

    /// All of its bytes; `None` for more than there can be.
    pub fn bytes(&self) -> Option<u64> {
        let size = self.size().into_iter().try_fold(1u64, |all, n| all.checked_mul(n.into()))?;
        size.checked_mul(self.texel.bytes().into()).filter(|bytes| *bytes < 1 << 48)
    }

    /// Bytes from row to row.
    pub fn pitch(&self) -> u64 {
        u64::from(self.size()[0]) * u64::from(self.texel.bytes())
    }

    /// How many axes there are, besides layers.
    pub fn axes(&self) -> usize {
        let given = if self.layered { &self.extent[..2] } else { &self.extent[..] };
        1 + given.iter().skip(1).filter(|n| **n > 0).count()
    }
}

/// What becomes of coordinates beyond the edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edge {
    /// The image goes on from its other side.
    Wrap,
    /// The texel at the edge.
    #[default]
    Clamp,
    /// The image goes back.
    Mirror,
    /// Zeros.
    Border,
}

/// How a texture is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// For each axis.
    pub edges: [Edge; 3],
    /// Texels are interpolated.
    pub linear: bool,
    /// Coordinates go from 0 to 1.
    pub normalized: bool,
    /// Integers of 8 and 16 bits are read as floats from 0 or -1 to 1.
    pub floats: bool,
}

/// What lies behind a handle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageObject {
    /// The handle.
    pub handle: u64,
    /// It is a surface, else a texture. Their handles are numbers of their own.
    pub surface: bool,
    /// Its memory.
    pub storage: Storage,
    /// Its texels.
    pub texel: Texel,
    /// Of textures.
    pub sampling: Sampling,
}

/// All that there are while a launch runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<ImageObject>", into = "Vec<ImageObject>")]
pub struct Images(Arc<[ImageObject]>);

impl From<Vec<ImageObject>> for Images {
    fn from(mut all: Vec<ImageObject>) -> Self {
        all.sort_by_key(|image| (image.surface, image.handle));
        Self(all.into())
    }
}

impl From<Images> for Vec<ImageObject> {
    fn from(images: Images) -> Self {
        images.0.to_vec()
    }
}

impl Images {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What lies behind a handle.
    pub fn get(&self, surface: bool, handle: u64) -> Option<&ImageObject> {
        let at =
            self.0.binary_search_by_key(&(surface, handle), |image| (image.surface, image.handle)).ok()?;
        self.0.get(at)
    }

    /// The same for an access, or why that is not known.
    pub fn find(&self, access: &ImageAccess, handle: u64) -> Result<&ImageObject, Unresolved> {
        let unknown = if access.is_surface() { NO_SURFACE } else { NO_TEXTURE };
        self.get(access.is_surface(), handle).ok_or_else(|| unknown.to_owned())
    }
}

const NO_TEXTURE: &str = "its handle is no texture object that is known";
const NO_SURFACE: &str = "its handle is no surface object that is known";

/// Why it is not known what an access touches.
pub type Unresolved = String;

/// Where a fetch reads along an axis: two texels at most, `None` where zeros are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The texels.
    pub at: [Option<u32>; 2],
    /// How much the second counts, of 256.
    pub fraction: u32,
}

impl Axis {
    const ORIGIN: Self = Self { at: [Some(0), Some(0)], fraction: 0 };

    fn one(at: Option<u32>) -> Self {
        Self { at: [at, at], fraction: 0 }
    }

    /// Those that count.
    fn counted(self) -> impl Iterator<Item = Option<u32>> {
        let [first, second] = self.at;
        std::iter::once(first).chain((self.fraction > 0).then_some(second))
    }
}

/// Where a surface access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfacePlace {
    /// To this address.
    At(u64),
    /// Nowhere.
    Nowhere,
    /// It faults.
    Trap,
}

impl ImageObject {
    /// Whether fetches give floats.
    pub fn gives_floats(&self) -> bool {
        let channel = self.texel.channel;
        channel.is_float() || self.sampling.floats && channel.bytes() < 4
    }

    /// Texels of each axis; rows of layered lines are layers.
    fn size(&self) -> [u32; 3] {
        match &self.storage {
            Storage::Linear { bytes, .. } => {
                [u32::try_from(bytes / u64::from(self.texel.bytes().max(1))).unwrap_or(u32::MAX), 1, 1]
            }
            Storage::Pitched { extent: [width, height], .. } => [*width, *height, 1],
            Storage::Array(array) => array.size(),
            Storage::Unknown(_) => [0; 3],
        }
    }

    /// Width, height and depth or layers, 0 where there is no such axis.
    pub fn extent(&self) -> Option<[u32; 3]> {
        match &self.storage {
            Storage::Linear { .. } => Some([self.size()[0], 0, 0]),
            Storage::Pitched { extent: [width, height], .. } => Some([*width, *height, 0]),
            Storage::Array(array) => Some(array.extent),
            Storage::Unknown(_) => None,
        }
    }

    /// The address of a texel.
    pub fn address(&self, [x, y, z]: [u32; 3]) -> u64 {
        let texel = u64::from(self.texel.bytes());
        let [x, y, z] = [x, y, z].map(u64::from);
        match &self.storage {
            Storage::Linear { address, .. } => address + x * texel,
            Storage::Pitched { address, pitch, .. } => {
                address.wrapping_add(y.wrapping_mul(*pitch)) + x * texel
            }
            Storage::Array(array) => {
                let [_, height, _] = array.size().map(u64::from);
                array.base + (z * height + y) * array.pitch() + x * texel
            }
            Storage::Unknown(_) => 0,
        }
    }

    /// Whether an access has the coordinates that the image has.
    fn fits(&self, access: &ImageAccess) -> Result<(), Unresolved> {
        let (axes, layered) = match &self.storage {
            Storage::Linear { .. } => (1, false),
            Storage::Pitched { .. } => (2, false),
            Storage::Array(array) => (array.axes(), array.layered),
            Storage::Unknown(what) => return Err(format!("it is of {what}, which is not covered yet")),
        };
        let asked = (access.shape.axes(), access.shape.is_layered());
        if asked != (axes, layered) {
            let says = |(axes, layered)| {
                let axes = if axes == 1 { "1 axis".to_owned() } else { format!("{axes} axes") };
                axes + if layered { " and layers" } else { "" }
            };
            return Err(format!("it has {}, where the image has {}", says(asked), says((axes, layered))));
        }
        if matches!(self.storage, Storage::Linear { .. }) && access.floats {
            return Err("linear memory is read by coordinates that are floats".into());
        }
        Ok(())
    }

    /// Whether a fetch weighs texels.
    pub fn filters(&self, access: &ImageAccess) -> bool {
        self.sampling.linear && self.gives_floats() && access.floats && access.op == ImageOp::Fetch
    }

    /// Where a fetch of a texture reads along each axis.
    pub fn axes(&self, access: &ImageAccess, coordinates: [u32; 3]) -> Result<[Axis; 3], Unresolved> {
        self.fits(access)?;
        let size = self.size();
        let mut axes = [Axis::ORIGIN; 3];
        let shape = access.shape;
        let given = &coordinates[usize::from(shape.is_layered())..shape.coordinates()];
        for (at, given) in given.iter().enumerate() {
            axes[at] = self.axis(access, at, size[at], *given);
        }
        if shape.axes() == 1 && self.filters(access) {
            // Lines are the middle of an image of one row, also where beyond its edge there is nothing.
            axes[1] = self.axis(access, 1, 1, 0);
        }
        if shape.is_layered() {
            axes[2] = Axis::one(Some(coordinates[0].min(size[2].saturating_sub(1))));
        }
        Ok(axes)
    }

    fn axis(&self, access: &ImageAccess, axis: usize, size: u32, given: u32) -> Axis {
        let Sampling { edges, normalized, .. } = self.sampling;
        let edge = edges[axis];
        if !access.floats {
            let at = i64::from(given.cast_signed());
            // Integers say which texel, whatever lies beyond the edges. On an H200 no line of an array is read by them.
            let is_line = access.shape.axes() == 1 && matches!(self.storage, Storage::Array(_));
            return Axis::one(texel_at(Edge::Border, false, at, size).filter(|_| !is_line));
        }
        let x = f64::from(f32::from_bits(given));
        let x = if normalized { folded(edge, x) * f64::from(size) } else { x };
        let gathers = access.op == ImageOp::Gather;
        if !(gathers || self.filters(access)) {
            return Axis::one(texel_at(edge, normalized, whole(x), size));
        }
        // Fractions have 8 bits.
        let fixed = whole((x * 256.0).round()).saturating_sub(128);
        let first = fixed.div_euclid(256);
        let at = [first, first.saturating_add(1)].map(|at| texel_at(edge, normalized, at, size));
        let fraction = match at {
            _ if gathers => 128,
            // Beyond the edge nothing is weighed.
            [first, second] if first == second => 0,
            _ => fixed.rem_euclid(256) as u32,
        };
        Axis { at, fraction }
    }

    /// Where a surface access goes, and how many bytes it touches.
    pub fn surface(
        &self,
        access: &ImageAccess,
        coordinates: [u32; 3],
    ) -> Result<(SurfacePlace, u32), Unresolved> {
        self.fits(access)?;
        let [width, height, depth] = self.size().map(i64::from);
        let texel = i64::from(self.texel.bytes());
        let shape = access.shape;
        let given = coordinates.map(|c| i64::from(c.cast_signed()));
        let (layer, given) = if shape.is_layered() { (given[0], &given[1..]) } else { (0, &given[..]) };
        let axis = |at: usize| if at < shape.axes() { given[at] } else { 0 };
        let (bytes, x) = match access.bytes {
            Some(bytes) => (i64::from(bytes), axis(0)),
            None => (texel, axis(0).saturating_mul(texel)),
        };
        let z = if shape.is_layered() { layer } else { axis(2) };
        let most = [width * texel - bytes, height - 1, depth - 1];
        let at = [x, axis(1), z];
        let inside = at.iter().zip(most).all(|(at, most)| (0..=most).contains(at));
        let at = match access.outside {
            _ if inside => at,
            Outside::Clamp if most[0] >= 0 => [0, 1, 2].map(|axis| at[axis].clamp(0, most[axis])),
            Outside::Trap => return Ok((SurfacePlace::Trap, bytes as u32)),
            _ => return Ok((SurfacePlace::Nowhere, bytes as u32)),
        };
        let row = self.address([0, at[1] as u32, at[2] as u32]);
        Ok((SurfacePlace::At(row + at[0] as u64), bytes as u32))
    }

    /// Address and bytes of all that an access touches.
    pub fn touched(
        &self,
        access: &ImageAccess,
        coordinates: [u32; 3],
    ) -> Result<SmallVec<[(u64, u32); MOST_TEXELS]>, Unresolved> {
        if access.is_surface() {
            let (place, bytes) = self.surface(access, coordinates)?;
            return Ok(match place {
                SurfacePlace::At(address) => SmallVec::from_slice(&[(address, bytes)]),
                SurfacePlace::Nowhere | SurfacePlace::Trap => SmallVec::new(),
            });
        }
        let [x, y, z] = self.axes(access, coordinates)?;
        let mut touched = SmallVec::new();
        for z in z.counted() {
            for y in y.counted() {
                for x in x.counted() {
                    if let (Some(x), Some(y), Some(z)) = (x, y, z) {
                        touched.push((self.address([x, y, z]), self.texel.bytes()));
                    }
                }
            }
        }
        Ok(touched)
    }
}

/// A normalised coordinate as one near 0, where it comes round again. What is no finite number is 0 there. An H200 cuts them off somewhere
/// from 18 to 21 bits behind the point.
fn folded(edge: Edge, x: f64) -> f64 {
    const CUT: f64 = (1 << 20) as f64;
    let period = match edge {
        Edge::Wrap => Some(1.0),
        Edge::Mirror => Some(2.0),
        Edge::Clamp | Edge::Border => None,
    };
    let x = match period {
        None => x,
        Some(period) if x.is_finite() => x.rem_euclid(period),
        Some(_) => 0.0,
    };
    (x * CUT).floor() / CUT
}

/// The largest integer that is not above; none is not a number.
fn whole(x: f64) -> i64 {
    // Values beyond go to the ends.
    x.floor() as i64
}

/// The texel of an index that may lie beyond the edge.
fn texel_at(edge: Edge, normalized: bool, at: i64, size: u32) -> Option<u32> {
    let n = i64::from(size.max(1));
    let at = match edge {
        Edge::Wrap if normalized => at.rem_euclid(n),
        Edge::Mirror if normalized => match at.rem_euclid(2 * n) {
            at if at < n => at,
            at => 2 * n - 1 - at,
        },
        Edge::Border if !(0..n).contains(&at) => return None,
        _ => at.clamp(0, n - 1),
    };
    u32::try_from(at).ok()
}
