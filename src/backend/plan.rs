//! What to launch, with which buffers: validated values, made by the session from flags, TOML or inference.

use serde::{Deserialize, Serialize};

use super::Owner;
use super::image::{ARRAYS, ArrayShape, ImageObject, Images, Sampling, Storage, Texel};
use crate::tensor::TensorMap;

/// Element types of buffers and scalar arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the launch description")]
pub enum ElementType {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

impl ElementType {
    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

/// A buffer in global memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// The name reports use.
    pub name: String,
    /// Element type under that name.
    pub ty: ElementType,
    /// Contents before the first launch.
    pub contents: Vec<u8>,
    /// These count as not written.
    pub unwritten: bool,
    /// Whose memory it lies in.
    pub owner: Owner,
}

/// A kernel argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// The address of a buffer, by its index in the plan.
    Buffer(usize),
    /// A value, exactly as large as the parameter.
    Value(Vec<u8>),
    /// A tensor map of a buffer, by its index in the plan. The map's address counts from where the buffer begins.
    Tensor(usize, Box<TensorMap>),
    /// The handle of a texture or a surface, by its index in the plan.
    Image(usize),
}

/// The map of a tensor in a buffer that begins here.
pub fn placed(map: &TensorMap, buffer: u64) -> TensorMap {
    TensorMap { address: buffer.wrapping_add(map.address), ..map.clone() }
}

/// A CUDA array.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanArray {
    /// The name reports use.
    pub name: String,
    /// Its shape and its place among addresses.
    pub shape: ArrayShape,
    /// The buffer that it is copied from before the first launch, and to behind the last one. They are of one size.
    pub contents: usize,
}

/// The memory of a texture or a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanStorage {
    /// A buffer.
    Buffer(usize),
    /// Rows in a buffer.
    Rows {
        /// The buffer.
        buffer: usize,
        /// Texels of a row, and rows.
        extent: [u32; 2],
        /// Bytes from row to row.
        pitch: u64,
    },
    /// An array.
    Array(usize),
}

/// A texture or a surface.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanImage {
    /// It is a surface.
    pub surface: bool,
    /// Its memory.
    pub storage: PlanStorage,
    /// Its texels.
    pub texel: Texel,
    /// Of textures.
    pub sampling: Sampling,
}

/// One launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The entry.
    pub kernel: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster, if the launch gives them.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes.
    pub shared: u32,
    /// The device that runs it. To threads of one, those of another are outside of scope `.gpu`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub device: u32,
    /// Stream. Launches of one stream follow each other; of two streams they are unordered.
    pub stream: u32,
    /// Launches this one waits for.
    pub after: Vec<usize>,
    /// Arguments, one for each parameter. Only who runs it needs them.
    #[serde(skip)]
    pub args: Vec<Arg>,
}

/// For numbers that files leave out.
pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Launch {
    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product()
    }

    /// Warps of a block.
    pub fn warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }

    /// Its clusters; without any, each block is one.
    pub fn clusters(&self) -> Clusters {
        let cluster = self.cluster.unwrap_or([1; 3]).map(|n| n.max(1));
        Clusters { grid: self.grid.map(|n| n.max(1)), cluster }
    }

    /// Index of a block from its linear number; x runs fastest.
    pub fn block_index(&self, linear: u32) -> [u32; 3] {
        unravel(linear, self.grid)
    }

    /// Index of a thread from warp and lane; x runs fastest.
    pub fn thread_index(&self, warp: u32, lane: u32) -> [u32; 3] {
        unravel(warp * 32 + lane, self.block)
    }
}

/// How the blocks of a grid are put together in clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clusters {
    grid: [u32; 3],
    cluster: [u32; 3],
}

impl Clusters {
    /// Blocks of one cluster along each axis.
    pub fn extent(self) -> [u32; 3] {
        self.cluster
    }

    /// Blocks of one cluster.
    pub fn size(self) -> u32 {
        self.cluster.iter().product()
    }

    /// The rank of a block in its cluster (`%cluster_ctarank`); x runs fastest.
    pub fn rank(self, block: u32) -> u32 {
        let [x, y, z] = unravel(block, self.grid);
        let [cx, cy, cz] = self.cluster;
        x % cx + (y % cy + z % cz * cy) * cx
    }

    /// The block of this rank in the cluster of `block`, if there is one.
    pub fn peer(self, block: u32, rank: u32) -> Option<u32> {
        if rank >= self.size() {
            return None;
        }
        let at = unravel(block, self.grid);
        let within = unravel(rank, self.cluster);
        let [x, y, z] = [0, 1, 2].map(|axis| {
            let cluster = self.cluster[axis];
            at[axis] / cluster * cluster + within[axis]
        });
        Some(x + (y + z * self.grid[1]) * self.grid[0])
    }

    /// The block of rank 0 in the cluster of `block`, which stands for the cluster.
    pub fn first(self, block: u32) -> u32 {
        self.peer(block, 0).unwrap_or(block)
    }
}

fn unravel(linear: u32, extent: [u32; 3]) -> [u32; 3] {
    let (x, y) = (extent[0].max(1), extent[1].max(1));
    [linear % x, linear / x % y, linear / x / y]
}

/// All launches of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Buffers, shared by all launches.
    pub buffers: Vec<Buffer>,
    /// Launches in issue order.
    pub launches: Vec<Launch>,
    /// Arrays, shared by all launches.
    pub arrays: Vec<PlanArray>,
    /// Textures and surfaces, shared by all launches.
    pub images: Vec<PlanImage>,
}

/// Bytes between arrays, so that what lies behind one is none of another's.
const ARRAY_GAP: u64 = 1 << 20;

impl Plan {
    /// Where the next array lies.
    pub fn next_array(&self) -> u64 {
        let end = |array: &PlanArray| array.shape.base + array.shape.bytes().unwrap_or(0);
        self.arrays.last().map_or(ARRAYS, |last| (end(last) + ARRAY_GAP).next_multiple_of(ARRAY_GAP))
    }

    /// What lies behind the handles of the plan's images, with the address of each buffer.
    pub fn images(&self, handles: &[u64], address: impl Fn(usize) -> u64) -> Images {
        let object = |(image, handle): (&PlanImage, &u64)| {
            let storage = match image.storage {
                PlanStorage::Buffer(buffer) => {
                    let bytes = self.buffers.get(buffer).map_or(0, |buffer| buffer.contents.len() as u64);
                    Storage::Linear { address: address(buffer), bytes }
                }
                PlanStorage::Rows { buffer, extent, pitch } => {
                    Storage::Pitched { address: address(buffer), extent, pitch }
                }
                PlanStorage::Array(array) => match self.arrays.get(array) {
                    Some(array) => Storage::Array(array.shape),
                    None => Storage::Unknown("an array that is none of the plan's".into()),
                },
            };
            let PlanImage { surface, texel, sampling, .. } = *image;
            ImageObject { handle: *handle, surface, storage, texel, sampling }
        };
        self.images.iter().zip(handles).map(object).collect::<Vec<_>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_cluster_are_neighbours() {
        let clusters = Clusters { grid: [4, 2, 2], cluster: [2, 2, 1] };
        assert_eq!(clusters.size(), 4);
        // (3,1,1) is (1,1,0) in the cluster that begins at (2,0,1).
        assert_eq!(clusters.rank(15), 3);
        let all: Vec<_> = (0..5).map(|rank| clusters.peer(15, rank)).collect();
        assert_eq!(all, [Some(10), Some(11), Some(14), Some(15), None]);
        assert_eq!(clusters.first(15), 10);
        assert!((0..16).all(|block| clusters.peer(block, clusters.rank(block)) == Some(block)));
    }
}
