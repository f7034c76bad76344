//! Copies and memsets.

use ptxrace::session::exec::log::Gap;

use super::{Cx, hooks, in_order, skipped};
use crate::api::{Bytes, Copy2D, Copy3D, rows_2d, rows_3d};
use crate::code::Answer;
use crate::gpu::driver;
use crate::watch::{Rows, Textures, Timing};

fn copy(cx: Cx, code: u32, rows: Rows, stream: u64, timing: Timing) -> u32 {
    in_order(code, cx, stream, |gpu, stream| {
        let rows = rows.joined();
        if !rows.is_empty() {
            let places = (driver::place(rows.to), driver::place(rows.from));
            gpu.watch.copied(cx.call, places, rows, stream, timing);
        }
    })
}

/// Copies of rows, slice by slice. Those of arrays that are not known are not followed.
fn rows(
    cx: Cx,
    code: u32,
    slices: impl FnOnce(&Textures) -> Answer<Vec<Rows>>,
    stream: u64,
    timing: Timing,
) -> u32 {
    in_order(code, cx, stream, |gpu, stream| match slices(&gpu.watch.textures) {
        Ok(slices) => {
            for rows in slices.into_iter().map(Rows::joined).filter(|rows| !rows.is_empty()) {
                let places = (driver::place(rows.to), driver::place(rows.from));
                gpu.watch.copied(cx.call, places, rows, stream, timing);
            }
        }
        Err(_) => gpu.watch.gap(Gap::Call, format!("`{}` is not followed", cx.call)),
    })
}

/// Bytes between an array and other memory, or another array.
fn of_array(cx: Cx, code: u32, (to, from): (Bytes, Bytes), bytes: usize, stream: u64, timing: Timing) -> u32 {
    let one =
        |textures: &Textures| Ok(vec![Rows::one(to.address(textures)?, from.address(textures)?, bytes)]);
    rows(cx, code, one, stream, timing)
}

/// Where elements of so many bytes are set: how many in a row, how many rows, and bytes from one row to the next.
struct Field {
    to: u64,
    pitch: usize,
    width: usize,
    height: usize,
    size: usize,
}

impl Field {
    fn row(to: u64, count: usize, size: usize) -> Self {
        Self { to, pitch: 0, width: count, height: 1, size }
    }
}

fn set(cx: Cx, code: u32, field: Field, stream: u64, timing: Timing) -> u32 {
    let Field { to, pitch, width, height, size } = field;
    in_order(code, cx, stream, |gpu, stream| {
        let width = width.saturating_mul(size);
        let rows =
            Rows { to, from: 0, width, height, to_pitch: pitch as u64, from_pitch: width as u64 }.joined();
        if !rows.is_empty() {
            gpu.watch.filled(cx.call, driver::place(to), rows, stream, timing);
        }
    })
}

hooks! {
    fn cuMemcpy(cx, real; to: u64, from: u64, bytes: usize) as [cuMemcpy] per_thread [cuMemcpy_ptds] {
        copy(cx, real(to, from, bytes), Rows::one(to, from, bytes), 0, Timing::Waits)
    }

    fn cuMemcpyAsync(cx, real; to: u64, from: u64, bytes: usize, stream: u64) as [cuMemcpyAsync] per_thread [cuMemcpyAsync_ptsz] {
        copy(cx, real(to, from, bytes, stream), Rows::one(to, from, bytes), stream, Timing::Async)
    }

    fn cuMemcpyHtoD(cx, real; to: u64, from: u64, bytes: usize) as [cuMemcpyHtoD_v2] per_thread [cuMemcpyHtoD_v2_ptds cuMemcpyHtoD_ptds] {
        copy(cx, real(to, from, bytes), Rows::one(to, from, bytes), 0, Timing::Waits)
    }

    fn cuMemcpyHtoDAsync(cx, real; to: u64, from: u64, bytes: usize, stream: u64) as [cuMemcpyHtoDAsync_v2] per_thread [cuMemcpyHtoDAsync_v2_ptsz cuMemcpyHtoDAsync_ptsz] {
        copy(cx, real(to, from, bytes, stream), Rows::one(to, from, bytes), stream, Timing::Async)
    }

    fn cuMemcpyDtoH(cx, real; to: u64, from: u64, bytes: usize) as [cuMemcpyDtoH_v2] per_thread [cuMemcpyDtoH_v2_ptds cuMemcpyDtoH_ptds] {
        copy(cx, real(to, from, bytes), Rows::one(to, from, bytes), 0, Timing::Waits)
    }

    fn cuMemcpyDtoHAsync(cx, real; to: u64, from: u64, bytes: usize, stream: u64) as [cuMemcpyDtoHAsync_v2] per_thread [cuMemcpyDtoHAsync_v2_ptsz cuMemcpyDtoHAsync_ptsz] {
        copy(cx, real(to, from, bytes, stream), Rows::one(to, from, bytes), stream, Timing::Async)
    }

    fn cuMemcpyDtoD(cx, real; to: u64, from: u64, bytes: usize) as [cuMemcpyDtoD_v2] per_thread [cuMemcpyDtoD_v2_ptds cuMemcpyDtoD_ptds] {
        copy(cx, real(to, from, bytes), Rows::one(to, from, bytes), 0, Timing::Waits)
    }

    fn cuMemcpyDtoDAsync(cx, real; to: u64, from: u64, bytes: usize, stream: u64) as [cuMemcpyDtoDAsync_v2] per_thread [cuMemcpyDtoDAsync_v2_ptsz cuMemcpyDtoDAsync_ptsz] {
        copy(cx, real(to, from, bytes, stream), Rows::one(to, from, bytes), stream, Timing::Async)
    }

    fn cuMemcpyPeer(cx, real; to: u64, to_context: u64, from: u64, from_context: u64, bytes: usize) as [cuMemcpyPeer] per_thread [cuMemcpyPeer_ptds] {
        copy(cx, real(to, to_context, from, from_context, bytes), Rows::one(to, from, bytes), 0, Timing::Waits)
    }

    fn cuMemcpyPeerAsync(cx, real; to: u64, to_context: u64, from: u64, from_context: u64, bytes: usize, stream: u64) as [cuMemcpyPeerAsync] per_thread [cuMemcpyPeerAsync_ptsz] {
        copy(cx, real(to, to_context, from, from_context, bytes, stream), Rows::one(to, from, bytes), stream, Timing::Async)
    }

    fn cuMemcpy2D(cx, real; copy: *const Copy2D) as [cuMemcpy2D_v2 cuMemcpy2DUnaligned cuMemcpy2DUnaligned_v2] per_thread [cuMemcpy2D_v2_ptds cuMemcpy2D_ptds cuMemcpy2DUnaligned_v2_ptds cuMemcpy2DUnaligned_ptds] {
        rows(cx, real(copy), |textures| rows_2d(copy, textures), 0, Timing::Waits)
    }

    fn cuMemcpy2DAsync(cx, real; copy: *const Copy2D, stream: u64) as [cuMemcpy2DAsync_v2] per_thread [cuMemcpy2DAsync_v2_ptsz cuMemcpy2DAsync_ptsz] {
        rows(cx, real(copy, stream), |textures| rows_2d(copy, textures), stream, Timing::Async)
    }

    fn cuMemcpy3D(cx, real; copy: *const Copy3D) as [cuMemcpy3D_v2] per_thread [cuMemcpy3D_v2_ptds cuMemcpy3D_ptds] {
        rows(cx, real(copy), |textures| rows_3d(copy, textures), 0, Timing::Waits)
    }

    fn cuMemcpy3DAsync(cx, real; copy: *const Copy3D, stream: u64) as [cuMemcpy3DAsync_v2] per_thread [cuMemcpy3DAsync_v2_ptsz cuMemcpy3DAsync_ptsz] {
        rows(cx, real(copy, stream), |textures| rows_3d(copy, textures), stream, Timing::Async)
    }

    fn cuMemcpyAtoA(cx, real; to: u64, to_offset: usize, from: u64, from_offset: usize, bytes: usize) as [cuMemcpyAtoA_v2] per_thread [cuMemcpyAtoA_v2_ptds] {
        let ends = (Bytes::array(to, to_offset), Bytes::array(from, from_offset));
        of_array(cx, real(to, to_offset, from, from_offset, bytes), ends, bytes, 0, Timing::Waits)
    }

    fn cuMemcpyAtoD(cx, real; to: u64, from: u64, offset: usize, bytes: usize) as [cuMemcpyAtoD_v2] per_thread [cuMemcpyAtoD_v2_ptds] {
        of_array(cx, real(to, from, offset, bytes), (Bytes::device(to), Bytes::array(from, offset)), bytes, 0, Timing::Waits)
    }

    fn cuMemcpyDtoA(cx, real; to: u64, offset: usize, from: u64, bytes: usize) as [cuMemcpyDtoA_v2] per_thread [cuMemcpyDtoA_v2_ptds] {
        of_array(cx, real(to, offset, from, bytes), (Bytes::array(to, offset), Bytes::device(from)), bytes, 0, Timing::Waits)
    }

    fn cuMemcpyAtoH(cx, real; to: u64, from: u64, offset: usize, bytes: usize) as [cuMemcpyAtoH_v2] per_thread [cuMemcpyAtoH_v2_ptds] {
        of_array(cx, real(to, from, offset, bytes), (Bytes::host(to), Bytes::array(from, offset)), bytes, 0, Timing::Waits)
    }

    fn cuMemcpyHtoA(cx, real; to: u64, offset: usize, from: u64, bytes: usize) as [cuMemcpyHtoA_v2] per_thread [cuMemcpyHtoA_v2_ptds] {
        of_array(cx, real(to, offset, from, bytes), (Bytes::array(to, offset), Bytes::host(from)), bytes, 0, Timing::Waits)
    }

    fn cuMemcpyAtoHAsync(cx, real; to: u64, from: u64, offset: usize, bytes: usize, stream: u64) as [cuMemcpyAtoHAsync_v2] per_thread [cuMemcpyAtoHAsync_v2_ptsz] {
        of_array(cx, real(to, from, offset, bytes, stream), (Bytes::host(to), Bytes::array(from, offset)), bytes, stream, Timing::Async)
    }

    fn cuMemcpyHtoAAsync(cx, real; to: u64, offset: usize, from: u64, bytes: usize, stream: u64) as [cuMemcpyHtoAAsync_v2] per_thread [cuMemcpyHtoAAsync_v2_ptsz] {
        of_array(cx, real(to, offset, from, bytes, stream), (Bytes::array(to, offset), Bytes::host(from)), bytes, stream, Timing::Async)
    }

    fn cuMemsetD8(cx, real; to: u64, value: u8, count: usize) as [cuMemsetD8_v2] per_thread [cuMemsetD8_v2_ptds cuMemsetD8_ptds] {
        set(cx, real(to, value, count), Field::row(to, count, 1), 0, Timing::Waits)
    }

    fn cuMemsetD2D8(cx, real; to: u64, pitch: usize, value: u8, width: usize, height: usize) as [cuMemsetD2D8_v2] per_thread [cuMemsetD2D8_v2_ptds cuMemsetD2D8_ptds] {
        set(cx, real(to, pitch, value, width, height), Field { to, pitch, width, height, size: 1 }, 0, Timing::Waits)
    }

    fn cuMemsetD8Async(cx, real; to: u64, value: u8, count: usize, stream: u64) as [cuMemsetD8Async] per_thread [cuMemsetD8Async_ptsz] {
        set(cx, real(to, value, count, stream), Field::row(to, count, 1), stream, Timing::Async)
    }

    fn cuMemsetD2D8Async(cx, real; to: u64, pitch: usize, value: u8, width: usize, height: usize, stream: u64) as [cuMemsetD2D8Async] per_thread [cuMemsetD2D8Async_ptsz] {
        set(cx, real(to, pitch, value, width, height, stream), Field { to, pitch, width, height, size: 1 }, stream, Timing::Async)
    }

    fn cuMemsetD16(cx, real; to: u64, value: u16, count: usize) as [cuMemsetD16_v2] per_thread [cuMemsetD16_v2_ptds cuMemsetD16_ptds] {
        set(cx, real(to, value, count), Field::row(to, count, 2), 0, Timing::Waits)
    }

    fn cuMemsetD2D16(cx, real; to: u64, pitch: usize, value: u16, width: usize, height: usize) as [cuMemsetD2D16_v2] per_thread [cuMemsetD2D16_v2_ptds cuMemsetD2D16_ptds] {
        set(cx, real(to, pitch, value, width, height), Field { to, pitch, width, height, size: 2 }, 0, Timing::Waits)
    }

    fn cuMemsetD16Async(cx, real; to: u64, value: u16, count: usize, stream: u64) as [cuMemsetD16Async] per_thread [cuMemsetD16Async_ptsz] {
        set(cx, real(to, value, count, stream), Field::row(to, count, 2), stream, Timing::Async)
    }

    fn cuMemsetD2D16Async(cx, real; to: u64, pitch: usize, value: u16, width: usize, height: usize, stream: u64) as [cuMemsetD2D16Async] per_thread [cuMemsetD2D16Async_ptsz] {
        set(cx, real(to, pitch, value, width, height, stream), Field { to, pitch, width, height, size: 2 }, stream, Timing::Async)
    }

    fn cuMemsetD32(cx, real; to: u64, value: u32, count: usize) as [cuMemsetD32_v2] per_thread [cuMemsetD32_v2_ptds cuMemsetD32_ptds] {
        set(cx, real(to, value, count), Field::row(to, count, 4), 0, Timing::Waits)
    }

    fn cuMemsetD2D32(cx, real; to: u64, pitch: usize, value: u32, width: usize, height: usize) as [cuMemsetD2D32_v2] per_thread [cuMemsetD2D32_v2_ptds cuMemsetD2D32_ptds] {
        set(cx, real(to, pitch, value, width, height), Field { to, pitch, width, height, size: 4 }, 0, Timing::Waits)
    }

    fn cuMemsetD32Async(cx, real; to: u64, value: u32, count: usize, stream: u64) as [cuMemsetD32Async] per_thread [cuMemsetD32Async_ptsz] {
        set(cx, real(to, value, count, stream), Field::row(to, count, 4), stream, Timing::Async)
    }

    fn cuMemsetD2D32Async(cx, real; to: u64, pitch: usize, value: u32, width: usize, height: usize, stream: u64) as [cuMemsetD2D32Async] per_thread [cuMemsetD2D32Async_ptsz] {
        set(cx, real(to, pitch, value, width, height, stream), Field { to, pitch, width, height, size: 4 }, stream, Timing::Async)
    }

    fn cuMemcpy3DPeer(cx, real; copy: *const std::ffi::c_void) as [cuMemcpy3DPeer] per_thread [cuMemcpy3DPeer_ptds] {
        skipped(real(copy), cx)
    }

    fn cuMemcpy3DPeerAsync(cx, real; copy: *const std::ffi::c_void, stream: u64) as [cuMemcpy3DPeerAsync] per_thread [cuMemcpy3DPeerAsync_ptsz] {
        skipped(real(copy, stream), cx)
    }
}
