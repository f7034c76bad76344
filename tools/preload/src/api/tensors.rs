//! Tensor maps. Those of the emulator are in an encoding of its own.

use ptxrace::tensor::{BYTES, DataType, MOST_RANK, Swizzle, TensorMap};

use super::{calls, get, put};
use crate::code::{Answer, Code};
use crate::process::within;

/// The arguments of `cuTensorMapEncodeTiled`, as the program gives them.
pub(crate) struct Tiled {
    pub(crate) ty: u32,
    pub(crate) rank: u32,
    pub(crate) address: u64,
    pub(crate) sizes: *const u64,
    pub(crate) strides: *const u64,
    pub(crate) extent: *const u32,
    pub(crate) steps: *const u32,
    pub(crate) interleave: u32,
    pub(crate) swizzle: u32,
    pub(crate) fill: u32,
}

/// `CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA`
const NAN: u32 = 1;

impl Tiled {
    /// The map; `None` for one of a kind that is not covered.
    pub(crate) fn map(&self) -> Answer<Option<TensorMap>> {
        let rank = self.rank as usize;
        if !(1..=MOST_RANK).contains(&rank) {
            return Err(Code::INVALID_VALUE);
        }
        let swizzle = Swizzle::ALL.get(self.swizzle as usize).copied();
        let (Some(ty), Some(swizzle), 0) = (DataType::numbered(self.ty), swizzle, self.interleave) else {
            return Ok(None);
        };
        let mut map = TensorMap { swizzle, nan: self.fill == NAN, ..TensorMap::new(ty, rank, self.address) };
        for dimension in 0..rank {
            map.sizes[dimension] = get(self.sizes.wrapping_add(dimension))?;
            map.extent[dimension] = get(self.extent.wrapping_add(dimension))?;
            map.steps[dimension] = get(self.steps.wrapping_add(dimension))?;
            if dimension > 0 {
                map.strides[dimension] = get(self.strides.wrapping_add(dimension - 1))?;
            }
        }
        Ok(Some(map))
    }
}

/// Puts a map in its place and has it known.
fn encode(to: *mut [u8; BYTES], map: &TensorMap) -> Answer {
    map.check().map_err(|_| Code::INVALID_VALUE)?;
    let bytes = map.encode();
    put(to, bytes)?;
    within(|driver| {
        driver.watch.tensor_map(&bytes, map.clone());
        Ok(())
    })
}

calls! {
    fn cuTensorMapEncodeTiled(
        cx;
        to: *mut [u8; BYTES],
        ty: u32,
        rank: u32,
        address: u64,
        sizes: *const u64,
        strides: *const u64,
        extent: *const u32,
        steps: *const u32,
        interleave: u32,
        swizzle: u32,
        promotion: u32,
        fill: u32,
    ) as [] per_thread [] {
        let _ = promotion;
        let tiled = Tiled { ty, rank, address, sizes, strides, extent, steps, interleave, swizzle, fill };
        match tiled.map()? {
            Some(map) => encode(to, &map),
            None => {
                let what = format!("the program called `{}` for a kind of map that is not provided", cx.call);
                crate::process::gap(ptxrace::session::exec::log::Gap::Call, what);
                Err(Code::NOT_SUPPORTED)
            }
        }
    }

    fn cuTensorMapReplaceAddress(cx; to: *mut [u8; BYTES], address: u64) as [] per_thread [] {
        let map = TensorMap::decode(&get(to)?).ok_or(Code::INVALID_VALUE)?;
        encode(to, &TensorMap { address, ..map })
    }
}
