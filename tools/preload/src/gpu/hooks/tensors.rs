//! Tensor maps: what each was made of is kept by the digest of its bytes. Those of kinds that are not covered stay unknown, and a
//! copy by them is then not checked, as the run says.

use ptxrace::tensor::{BYTES, TensorMap, digest};

use super::{done, hooks};
use crate::api::{Tiled, get};

fn encoded(code: u32, to: *const [u8; BYTES], map: impl FnOnce() -> Option<TensorMap>) -> u32 {
    done(code, |gpu| {
        if let (Ok(bytes), Some(map)) = (get(to), map()) {
            gpu.watch.tensor_map(&bytes, map);
        }
    })
}

hooks! {
    fn cuTensorMapEncodeTiled(
        cx, real;
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
    ) as [cuTensorMapEncodeTiled] per_thread [] {
        let code =
            real(to, ty, rank, address, sizes, strides, extent, steps, interleave, swizzle, promotion, fill);
        let tiled = Tiled { ty, rank, address, sizes, strides, extent, steps, interleave, swizzle, fill };
        encoded(code, to, || tiled.map().ok().flatten())
    }

    fn cuTensorMapReplaceAddress(cx, real; to: *mut [u8; BYTES], address: u64) as [cuTensorMapReplaceAddress] per_thread [] {
        let before = get(to).map(|bytes| digest(&bytes));
        let code = real(to, address);
        done(code, |gpu| {
            let known = before.ok().and_then(|before| gpu.watch.known_tensor_map(before));
            if let (Ok(bytes), Some(map)) = (get(to), known) {
                gpu.watch.tensor_map(&bytes, TensorMap { address, ..map });
            }
        })
    }
}
