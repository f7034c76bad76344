//! Tensor maps: what they say of a tensor in global memory and of the boxes that are copied from and to it.
//!
//! The 128 bytes of a map are opaque. A driver has its own encoding, which nobody reads here: whoever sees a map being encoded
//! keeps what it was made of by the `digest` of its bytes, and device code that logs a copy gives the same digest. The emulator
//! has an encoding of its own (`encode`, `decode`). Only tiled maps without interleaving are covered; im2col and packed
//! elements of less than a byte are not.

use serde::{Deserialize, Serialize};

use crate::abi::mix_value;

/// Bytes of a map.
pub const BYTES: usize = 128;

/// What addresses of maps are multiples of.
pub const ALIGN: u64 = 64;

/// Dimensions of a tensor at most.
pub const MOST_RANK: usize = 5;

/// Bytes that swizzling keeps together.
pub const CHUNK: u64 = 16;

/// What the shared memory of a box is aligned to.
pub const SHARED_ALIGN: u64 = 128;

/// Coordinates of a box, the innermost first; those beyond the rank are 0.
pub type Coordinates = [i32; MOST_RANK];

/// Types of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the driver")]
pub enum DataType {
    U8,
    U16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
    Bf16,
    F32Ftz,
    Tf32,
    Tf32Ftz,
}

impl DataType {
    /// All of them, in the order of the driver's numbers, with the names of the launch description.
    pub const ALL: [(&'static str, Self); 13] = [
        ("u8", Self::U8),
        ("u16", Self::U16),
        ("u32", Self::U32),
        ("i32", Self::I32),
        ("u64", Self::U64),
        ("i64", Self::I64),
        ("f16", Self::F16),
        ("f32", Self::F32),
        ("f64", Self::F64),
        ("bf16", Self::Bf16),
        ("f32ftz", Self::F32Ftz),
        ("tf32", Self::Tf32),
        ("tf32ftz", Self::Tf32Ftz),
    ];

    /// The type with this number of the driver.
    pub fn numbered(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).map(|(_, ty)| *ty)
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::F32Ftz | Self::Tf32 | Self::Tf32Ftz => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether boxes may be filled with NaNs.
    pub fn is_float(self) -> bool {
        !matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::I32 | Self::U64 | Self::I64)
    }
}

/// How the chunks of a box's rows are exchanged in shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the driver")]
pub enum Swizzle {
    #[default]
    None,
    B32,
    B64,
    B128,
}

impl Swizzle {
    /// All of them, in the order of the driver's numbers.
    pub const ALL: [Self; 4] = [Self::None, Self::B32, Self::B64, Self::B128];

    /// Bytes within which chunks are exchanged; 0 is none.
    pub fn width(self) -> u32 {
        match self {
            Self::None => 0,
            Self::B32 => 32,
            Self::B64 => 64,
            Self::B128 => 128,
        }
    }

    /// Where the byte of this address of the box lies: the number of its chunk of 16 bytes is combined with that of its
    /// 128 bytes.
    #[inline]
    pub fn apply(self, address: u64) -> u64 {
        let chunks = u64::from(self.width() / 16).saturating_sub(1);
        address ^ (address >> 7 & chunks) << 4
    }
}

/// A tiled tensor map. Dimension 0 is the innermost.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TensorMap {
    /// Type of the elements.
    pub ty: DataType,
    /// Dimensions.
    pub rank: u8,
    /// Address of the tensor.
    pub address: u64,
    /// Elements along each dimension.
    pub sizes: [u64; MOST_RANK],
    /// Bytes from one element to the next along each dimension.
    pub strides: [u64; MOST_RANK],
    /// Extent of a box.
    pub extent: [u32; MOST_RANK],
    /// Each so many elements of the extent are in the box. Has no effect along dimension 0.
    pub steps: [u32; MOST_RANK],
    /// How shared memory is laid out.
    pub swizzle: Swizzle,
    /// What lies outside the tensor is NaN, not zero.
    pub nan: bool,
}

/// Of this are the NaNs, of whatever type, that stand for what lies outside of a tensor. The ISA leaves their bits open; these are an H200's.
pub const OUT_OF_BOUNDS: u16 = 0x7ff7;

impl TensorMap {
    /// A tensor of one element, which is the box, in so many dimensions.
    pub fn new(ty: DataType, rank: usize, address: u64) -> Self {
        let mut strides = [0; MOST_RANK];
        strides[0] = ty.bytes().into();
        Self {
            ty,
            rank: rank as u8,
            address,
            sizes: [1; MOST_RANK],
            strides,
            extent: [1; MOST_RANK],
            steps: [1; MOST_RANK],
            swizzle: Swizzle::None,
            nan: false,
        }
    }
}

/// A row of a box, with what of it lies in the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it begins among the bytes of the box, before they are swizzled.
    pub offset: u64,
    /// Bytes of the row before those in the tensor.
    pub before: u64,
    /// Bytes in the tensor.
    pub bytes: u64,
    /// The address of those.
    pub address: u64,
}

impl TensorMap {
    /// What a driver would refuse, in words.
    pub fn check(&self) -> Result<(), String> {
        let rank = usize::from(self.rank);
        if !(1..=MOST_RANK).contains(&rank) {
            return Err(format!("a tensor has 1 to 5 dimensions, not {rank}"));
        }
        if !self.address.is_multiple_of(16) {
            return Err(format!("the tensor's address {:#x} is no multiple of 16", self.address));
        }
        if let Some(size) = self.sizes[..rank].iter().find(|size| !(1..=1 << 32).contains(*size)) {
            return Err(format!("{size} is no size of a tensor"));
        }
        if let Some(stride) =
            self.strides[1..rank].iter().find(|stride| !stride.is_multiple_of(16) || **stride >= 1 << 40)
        {
            return Err(format!("a stride of {stride} bytes is no multiple of 16 below 2^40"));
        }
        if let Some(extent) = self.extent[..rank].iter().find(|extent| !(1..=256).contains(*extent)) {
            return Err(format!("{extent} is no size of a box: 1 to 256"));
        }
        if let Some(step) = self.steps[..rank].iter().find(|step| !(1..=8).contains(*step)) {
            return Err(format!("{step} is no element stride: 1 to 8"));
        }
        let row = self.row_bytes();
        if !row.is_multiple_of(16) {
            return Err(format!("a row of the box has {row} bytes, which is no multiple of 16"));
        }
        let width = u64::from(self.swizzle.width());
        if width != 0 && row > width {
            return Err(format!("a row of the box has {row} bytes, more than the swizzle's {width}"));
        }
        if self.nan && !self.ty.is_float() {
            return Err("only floating-point elements can be filled with NaN".into());
        }
        Ok(())
    }

    /// Elements of a box along a dimension.
    pub fn count(&self, dimension: usize) -> u64 {
        let step = if dimension == 0 { 1 } else { self.steps[dimension].max(1) };
        u64::from(self.extent[dimension].div_ceil(step))
    }

    /// Bytes of a row of a box.
    pub fn row_bytes(&self) -> u64 {
        self.count(0) * u64::from(self.ty.bytes())
    }

    /// Bytes from one row of a box to the next in shared memory: a row that is narrower than the swizzle leaves a gap.
    pub fn pitch(&self) -> u64 {
        self.row_bytes().max(self.swizzle.width().into())
    }

    fn rows_of_box(&self) -> u64 {
        (1..usize::from(self.rank)).map(|dimension| self.count(dimension)).product()
    }

    /// Bytes of a box, those outside the tensor included: so many complete.
    pub fn box_bytes(&self) -> u64 {
        self.row_bytes() * self.rows_of_box()
    }

    /// Bytes of shared memory from the first to the last of a box, gaps included.
    pub fn shared_bytes(&self) -> u64 {
        self.pitch() * self.rows_of_box()
    }

    /// Where the chunk of 16 bytes lies that begins at this byte of a box, which begins at this address of shared memory.
    pub fn shared_place(&self, begin: u64, offset: u64) -> u64 {
        let row = self.row_bytes().max(1);
        self.swizzle.apply(begin + offset / row * self.pitch() + offset % row)
    }

    /// What a box that begins at this address of shared memory touches there: addresses and bytes.
    pub fn shared_ranges(&self, begin: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        // Without gaps, chunks are exchanged among themselves.
        let is_whole = self.pitch() == self.row_bytes();
        let whole = is_whole.then_some((begin, self.box_bytes()));
        let chunks = if is_whole { 0 } else { self.box_bytes() / CHUNK };
        let chunks = (0..chunks).map(move |chunk| (self.shared_place(begin, chunk * CHUNK), CHUNK));
        whole.into_iter().chain(chunks)
    }

    /// The rows of the box at these coordinates.
    pub fn rows(&self, at: Coordinates) -> impl Iterator<Item = Row> + '_ {
        let element = u64::from(self.ty.bytes());
        let first = i64::from(at[0]);
        let size = i64::try_from(self.sizes[0]).unwrap_or(i64::MAX);
        let end = first.saturating_add(self.count(0).cast_signed());
        let (from, to) = (first.clamp(0, size), end.clamp(0, size));
        let (skipped, inside) = ((from - first).cast_unsigned(), (to - from).cast_unsigned());
        (0..self.rows_of_box()).map(move |number| {
            let mut rest = number;
            let mut inside = inside;
            let mut address = self.address.wrapping_add(from.cast_unsigned().wrapping_mul(element));
            for (dimension, at) in at.iter().enumerate().take(self.rank.into()).skip(1) {
                let count = self.count(dimension).max(1);
                let step = (rest % count) * u64::from(self.steps[dimension]);
                rest /= count;
                let coordinate = i64::from(*at) + step.cast_signed();
                match u64::try_from(coordinate) {
                    Ok(coordinate) if coordinate < self.sizes[dimension] => {
                        address = address.wrapping_add(coordinate.wrapping_mul(self.strides[dimension]));
                    }
                    _ => inside = 0,
                }
            }
            let before = if inside == 0 { 0 } else { skipped * element };
            Row { offset: number * self.row_bytes(), before, bytes: inside * element, address }
        })
    }

    /// What the box at these coordinates touches in global memory: addresses and bytes, where rows that follow each other are
    /// one range.
    pub fn ranges(&self, at: Coordinates) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut rows =
            self.rows(at).filter(|row| row.bytes > 0).map(|row| (row.address, row.bytes)).peekable();
        std::iter::from_fn(move || {
            let (address, mut bytes) = rows.next()?;
            while let Some((_, more)) = rows.next_if(|(next, _)| *next == address.wrapping_add(bytes)) {
                bytes += more;
            }
            Some((address, bytes))
        })
    }

    /// The map in the emulator's encoding.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let ty = DataType::ALL.iter().position(|(_, ty)| *ty == self.ty).unwrap_or(0) as u8;
        let swizzle = Swizzle::ALL.iter().position(|swizzle| *swizzle == self.swizzle).unwrap_or(0) as u8;
        let mut all = Vec::with_capacity(BYTES);
        all.extend_from_slice(&MAGIC);
        all.extend_from_slice(&self.address.to_le_bytes());
        all.extend_from_slice(&[self.rank, ty, swizzle, u8::from(self.nan)]);
        for dimension in 0..MOST_RANK {
            // A size of 2^32 is none of 32 bits.
            all.extend_from_slice(&(self.sizes[dimension].wrapping_sub(1) as u32).to_le_bytes());
            all.extend_from_slice(&self.strides[dimension].to_le_bytes());
            all.extend_from_slice(&(self.extent[dimension] as u16).to_le_bytes());
            all.push(self.steps[dimension] as u8);
        }
        bytes[..all.len()].copy_from_slice(&all);
        bytes
    }

    /// What a map in the emulator's encoding says; `None` if it is none.
    pub fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (address, rest) = rest.split_first_chunk()?;
        let ([rank, ty, swizzle, nan], mut rest) = rest.split_first_chunk()?;
        let mut map = Self {
            ty: DataType::numbered((*ty).into())?,
            rank: *rank,
            address: u64::from_le_bytes(*address),
            sizes: [0; MOST_RANK],
            strides: [0; MOST_RANK],
            extent: [0; MOST_RANK],
            steps: [0; MOST_RANK],
            swizzle: *Swizzle::ALL.get(usize::from(*swizzle))?,
            nan: *nan != 0,
        };
        for dimension in 0..MOST_RANK {
            let (size, behind) = rest.split_first_chunk()?;
            let (stride, behind) = behind.split_first_chunk()?;
            let (extent, behind) = behind.split_first_chunk()?;
            let (step, behind) = behind.split_first()?;
            map.sizes[dimension] = u64::from(u32::from_le_bytes(*size)) + 1;
            map.strides[dimension] = u64::from_le_bytes(*stride);
            map.extent[dimension] = u16::from_le_bytes(*extent).into();
            map.steps[dimension] = (*step).into();
            rest = behind;
        }
        map.check().is_ok().then_some(map)
    }
}

/// What the emulator's encoding begins with.
const MAGIC: [u8; 8] = *b"ptxrace\x01";

/// The number by which a map is known. Device code computes the same.
pub fn digest(bytes: &[u8; BYTES]) -> u64 {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).fold(0, mix_value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map(ty: DataType, sizes: &[u64], strides: &[u64], extent: &[u32], steps: &[u32]) -> TensorMap {
        let mut map = TensorMap::new(ty, sizes.len(), 0x1000);
        map.sizes[..sizes.len()].copy_from_slice(sizes);
        map.strides[1..=strides.len()].copy_from_slice(strides);
        map.extent[..extent.len()].copy_from_slice(extent);
        map.steps[..steps.len()].copy_from_slice(steps);
        map
    }

    fn ranges(map: &TensorMap, at: &[i32]) -> Vec<(u64, u64)> {
        let mut all = [0; MOST_RANK];
        all[..at.len()].copy_from_slice(at);
        map.ranges(all).collect()
    }

    #[test]
    fn boxes_are_clipped_to_the_tensor() {
        let map = map(DataType::U32, &[10, 4], &[64], &[4, 2], &[1, 1]);
        assert_eq!(map.box_bytes(), 32);
        assert_eq!(ranges(&map, &[2, 1]), [(0x1048, 16), (0x1088, 16)]);
        assert_eq!(ranges(&map, &[-1, 3]), [(0x10c0, 12)]);
        assert_eq!(ranges(&map, &[8, -1]), [(0x1020, 8)]);
        assert_eq!(ranges(&map, &[10, 0]), []);
        assert_eq!(ranges(&map, &[i32::MIN, i32::MAX]), []);
        let row = map.rows([-1, 3, 0, 0, 0]).next().unwrap();
        assert_eq!(row, Row { offset: 0, before: 4, bytes: 12, address: 0x10c0 });
    }

    #[test]
    fn rows_that_follow_each_other_are_one_range() {
        let whole = map(DataType::U16, &[8, 4, 2], &[16, 64], &[8, 4, 2], &[1, 1, 1]);
        assert_eq!(ranges(&whole, &[0, 0, 0]), [(0x1000, 128)]);
        assert_eq!(ranges(&whole, &[0, 1, 0]), [(0x1010, 48), (0x1050, 48)]);
    }

    #[test]
    fn element_strides_skip_rows() {
        let map = map(DataType::U16, &[8, 16], &[16], &[8, 5], &[3, 2]);
        assert_eq!(map.box_bytes(), 48);
        assert_eq!(ranges(&map, &[0, 1]), [(0x1010, 16), (0x1030, 16), (0x1050, 16)]);
    }

    #[test]
    fn swizzles_exchange_chunks_by_the_place_of_their_row() {
        assert_eq!(Swizzle::B128.apply(0x1000), 0x1000);
        assert_eq!(Swizzle::B128.apply(0x1080), 0x1090);
        assert_eq!(Swizzle::B128.apply(0x13ff), 0x138f);
        assert_eq!(Swizzle::B64.apply(0x1180), 0x11b0);
        assert_eq!(Swizzle::B64.apply(0x1200), 0x1200);
        assert_eq!(Swizzle::B32.apply(0x1080), 0x1090);
        assert_eq!(Swizzle::B32.apply(0x1100), 0x1100);
        assert_eq!(Swizzle::None.apply(0x1080), 0x1080);
    }

    #[test]
    fn rows_narrower_than_the_swizzle_leave_gaps() {
        let mut narrow = map(DataType::U16, &[64, 16], &[128], &[16, 3], &[1, 1]);
        assert_eq!(narrow.shared_ranges(0x400).collect::<Vec<_>>(), [(0x400, 96)]);
        narrow.swizzle = Swizzle::B64;
        assert_eq!((narrow.pitch(), narrow.box_bytes(), narrow.shared_bytes()), (64, 96, 192));
        let ranges: Vec<_> = narrow.shared_ranges(0x400).collect();
        let places = [0x400, 0x410, 0x440, 0x450, 0x490, 0x480];
        assert_eq!(ranges, places.map(|at| (at, 16)));
        narrow.swizzle = Swizzle::B32;
        assert_eq!(narrow.shared_ranges(0x400).collect::<Vec<_>>(), [(0x400, 96)]);
    }

    #[test]
    fn what_a_driver_refuses_is_refused() {
        let good = map(DataType::U16, &[64, 16], &[128], &[32, 8], &[1, 1]);
        assert_eq!(good.check(), Ok(()));
        let refused = |change: &dyn Fn(&mut TensorMap)| {
            let mut map = good.clone();
            change(&mut map);
            assert!(TensorMap::decode(&map.encode()).is_none());
            map.check().unwrap_err()
        };
        assert_eq!(refused(&|map| map.rank = 6), "a tensor has 1 to 5 dimensions, not 6");
        assert_eq!(refused(&|map| map.address = 8), "the tensor's address 0x8 is no multiple of 16");
        assert_eq!(
            refused(&|map| map.strides[1] = 120),
            "a stride of 120 bytes is no multiple of 16 below 2^40"
        );
        assert_eq!(refused(&|map| map.extent[1] = 257), "257 is no size of a box: 1 to 256");
        assert_eq!(refused(&|map| map.steps[1] = 9), "9 is no element stride: 1 to 8");
        assert_eq!(
            refused(&|map| map.extent[0] = 7),
            "a row of the box has 14 bytes, which is no multiple of 16"
        );
        assert_eq!(
            refused(&|map| map.swizzle = Swizzle::B32),
            "a row of the box has 64 bytes, more than the swizzle's 32"
        );
        assert_eq!(refused(&|map| map.nan = true), "only floating-point elements can be filled with NaN");
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            ty in 0u32..13, rank in 1u8..=5, address in any::<u64>(), sizes in proptest::array::uniform5(1u64..=1 << 32),
            strides in proptest::array::uniform5(0u64..1 << 36), extent in proptest::array::uniform5(1u32..=256),
            steps in proptest::array::uniform5(1u32..=8), nan: bool,
        ) {
            let ty = DataType::numbered(ty).unwrap();
            let (mut strides, mut extent) = (strides.map(|stride| stride << 4), extent);
            strides[0] = ty.bytes().into();
            extent[0] = extent[0].next_multiple_of(16).min(256);
            let (address, nan) = (address & !15, nan && ty.is_float());
            let map = TensorMap { ty, rank, address, sizes, strides, extent, steps, swizzle: Swizzle::None, nan };
            let bytes = map.encode();
            prop_assert_eq!(TensorMap::decode(&bytes), Some(map));
            // Maps that differ in a byte have other digests.
            for at in 0..BYTES {
                let mut other = bytes;
                other[at] ^= 1;
                prop_assert_ne!(digest(&other), digest(&bytes));
            }
        }

        #[test]
        fn rows_are_what_each_element_says(
            sizes in proptest::array::uniform3(1u64..12), at in proptest::array::uniform3(-14i32..14),
            extent in proptest::array::uniform3(1u32..9), steps in proptest::array::uniform3(1u32..4),
        ) {
            let map = map(DataType::U16, &sizes, &[64, 1024], &[extent[0] * 8, extent[1], extent[2]], &steps);
            let mut elements = Vec::new();
            for row in map.rows([at[0], at[1], at[2], 0, 0]) {
                elements.extend((0..row.bytes / 2).map(|n| (row.offset + row.before + n * 2, row.address + n * 2)));
            }
            let mut expected = Vec::new();
            let mut offset = 0;
            for z in 0..extent[2].div_ceil(steps[2]) {
                for y in 0..extent[1].div_ceil(steps[1]) {
                    for x in 0..extent[0] * 8 {
                        let c = [
                            i64::from(at[0]) + i64::from(x), i64::from(at[1]) + i64::from(y * steps[1]),
                            i64::from(at[2]) + i64::from(z * steps[2]),
                        ];
                        if c.iter().zip(sizes).all(|(c, size)| (0..size as i64).contains(c)) {
                            expected.push((offset, 0x1000 + (c[0] * 2 + c[1] * 64 + c[2] * 1024) as u64));
                        }
                        offset += 2;
                    }
                }
            }
            prop_assert_eq!(elements, expected);
        }
    }
}
