//! Copies and memsets.

use super::{calls, get};
use crate::code::{Answer, Code};
use crate::process::within;
use crate::state::{Driver, Side};
use crate::watch::{Rows, Textures, Timing};

/// `CUDA_MEMCPY2D`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Copy2D {
    from: End2D,
    to: End2D,
    width: usize,
    height: usize,
}

/// One side of it.
#[derive(Clone, Copy)]
#[repr(C)]
struct End2D {
    x: usize,
    y: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

/// `CUDA_MEMCPY3D`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Copy3D {
    from: End3D,
    to: End3D,
    width: usize,
    height: usize,
    depth: usize,
}

/// One side of it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct End3D {
    x: usize,
    y: usize,
    z: usize,
    lod: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    reserved: u64,
    pitch: usize,
    height: usize,
}

/// Memory of one side of a copy: where it is, its address, and if it is an array, bytes of a row and rows of a slice.
type Memory = (Side, u64, Option<(usize, usize)>);

/// Memory of this kind.
fn memory(kind: u32, host: u64, device: u64, array: u64, textures: &Textures) -> Answer<Memory> {
    match kind {
        1 => Ok((Side::Host, host, None)),
        2 => Ok((Side::Device, device, None)),
        3 => {
            let shape = textures.array(array).ok_or(Code::NOT_SUPPORTED)?;
            // Where layers are lines, each is a slice.
            Ok((Side::Device, shape.base, Some((shape.pitch() as usize, shape.size()[1] as usize))))
        }
        4 => Ok((Side::Any, device, None)),
        _ => Err(Code::NOT_SUPPORTED),
    }
}

/// The address of a byte of an array.
fn in_array(array: u64, offset: usize, textures: &Textures) -> Answer<u64> {
    let shape = textures.array(array).ok_or(Code::INVALID_HANDLE)?;
    Ok(shape.base.wrapping_add(offset as u64))
}

/// The sides of a copy in two dimensions, and its rows.
fn sides_2d(copy: &Copy2D, textures: &Textures) -> Answer<((Side, Side), Rows)> {
    let resolve = |end: &End2D| {
        let (side, base, array) = memory(end.kind, end.host, end.device, end.array, textures)?;
        let pitch = if end.pitch == 0 { copy.width } else { end.pitch };
        let pitch = array.map_or(pitch, |(pitch, _)| pitch);
        let at = end.y.checked_mul(pitch).and_then(|y| y.checked_add(end.x)).ok_or(Code::INVALID_VALUE)?;
        Ok((side, base.wrapping_add(at as u64), pitch as u64))
    };
    let (to_side, to, to_pitch) = resolve(&copy.to)?;
    let (from_side, from, from_pitch) = resolve(&copy.from)?;
    let rows = Rows { to, from, width: copy.width, height: copy.height, to_pitch, from_pitch };
    Ok(((to_side, from_side), rows))
}

/// The same in three dimensions, slice by slice.
fn sides_3d(copy: &Copy3D, textures: &Textures) -> Answer<((Side, Side), Vec<Rows>)> {
    let resolve = |end: &End3D| {
        let (side, base, array) = memory(end.kind, end.host, end.device, end.array, textures)?;
        let pitch = if end.pitch == 0 { copy.width } else { end.pitch };
        let height = if end.height == 0 { copy.height } else { end.height };
        let (pitch, height) = array.unwrap_or((pitch, height));
        let slice = pitch.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
        let at = end.z.wrapping_mul(slice).wrapping_add(end.y.wrapping_mul(pitch)).wrapping_add(end.x);
        Ok((side, base.wrapping_add(at as u64), pitch as u64, slice as u64))
    };
    let (to_side, to, to_pitch, to_slice) = resolve(&copy.to)?;
    let (from_side, from, from_pitch, from_slice) = resolve(&copy.from)?;
    let slice = |slice: u64| {
        let (to, from) = (to.wrapping_add(slice * to_slice), from.wrapping_add(slice * from_slice));
        Rows { to, from, width: copy.width, height: copy.height, to_pitch, from_pitch }
    };
    Ok(((to_side, from_side), (0..copy.depth as u64).map(slice).collect()))
}

impl Copy3D {
    /// Rows between two sides.
    pub(crate) fn of_rows((to_side, from_side): (Side, Side), rows: Rows) -> Self {
        let end = |side: Side, base: u64, pitch: u64| {
            let kind = match side {
                Side::Host => 1,
                Side::Device => 2,
                Side::Any => 4,
            };
            let (host, device) = if side == Side::Host { (base, 0) } else { (0, base) };
            let pitch = pitch as usize;
            End3D { x: 0, y: 0, z: 0, lod: 0, kind, host, device, array: 0, reserved: 0, pitch, height: 0 }
        };
        let (width, height) = (rows.width, rows.height);
        let (from, to) = (end(from_side, rows.from, rows.from_pitch), end(to_side, rows.to, rows.to_pitch));
        Self { from, to, width, height, depth: 1 }
    }

    /// Its sides, and its rows slice by slice.
    pub(crate) fn sides(&self, textures: &Textures) -> Answer<((Side, Side), Vec<Rows>)> {
        sides_3d(self, textures)
    }
}

/// The rows of a copy in two dimensions.
pub(crate) fn rows_2d(copy: *const Copy2D, textures: &Textures) -> Answer<Vec<Rows>> {
    Ok(vec![sides_2d(&get(copy)?, textures)?.1])
}

/// The rows of a copy in three dimensions, slice by slice.
pub(crate) fn rows_3d(copy: *const Copy3D, textures: &Textures) -> Answer<Vec<Rows>> {
    Ok(sides_3d(&get(copy)?, textures)?.1)
}

fn copy_2d(driver: &mut Driver, cx: super::Cx, copy: *const Copy2D, stream: u64, timing: Timing) -> Answer {
    let (sides, rows) = sides_2d(&get(copy)?, &driver.watch.textures)?;
    let stream = cx.stream(driver, stream)?;
    driver.copy(cx.call, sides, rows, stream, timing)
}

fn copy_3d(driver: &mut Driver, cx: super::Cx, copy: *const Copy3D, stream: u64, timing: Timing) -> Answer {
    let (sides, slices) = sides_3d(&get(copy)?, &driver.watch.textures)?;
    let stream = cx.stream(driver, stream)?;
    slices.into_iter().try_for_each(|rows| driver.copy(cx.call, sides, rows, stream, timing))
}

/// Copies bytes to one side from the other.
fn copy(
    cx: super::Cx,
    sides: (Side, Side),
    to: u64,
    from: u64,
    bytes: usize,
    stream: u64,
    timing: Timing,
) -> Answer {
    within(|driver| {
        let stream = cx.stream(driver, stream)?;
        driver.copy(cx.call, sides, Rows::one(to, from, bytes), stream, timing)
    })
}

/// One side of a copy of bytes: memory, or an array from an offset on.
#[derive(Clone, Copy)]
pub(crate) enum Bytes {
    At(Side, u64),
    Array(u64, usize),
}

impl Bytes {
    pub(crate) fn array(handle: u64, offset: usize) -> Self {
        Self::Array(handle, offset)
    }

    pub(crate) fn device(address: u64) -> Self {
        Self::At(Side::Device, address)
    }

    pub(crate) fn host(address: u64) -> Self {
        Self::At(Side::Host, address)
    }

    pub(crate) fn address(self, textures: &Textures) -> Answer<u64> {
        Ok(self.resolve(textures)?.1)
    }

    fn resolve(self, textures: &Textures) -> Answer<(Side, u64)> {
        match self {
            Self::At(side, address) => Ok((side, address)),
            Self::Array(handle, offset) => Ok((Side::Device, in_array(handle, offset, textures)?)),
        }
    }
}

/// Copies bytes of which some lie in arrays.
fn of_arrays(cx: super::Cx, to: Bytes, from: Bytes, bytes: usize, stream: u64, timing: Timing) -> Answer {
    within(|driver| {
        let textures = &driver.watch.textures;
        let ((to_side, to), (from_side, from)) = (to.resolve(textures)?, from.resolve(textures)?);
        let stream = cx.stream(driver, stream)?;
        driver.copy(cx.call, (to_side, from_side), Rows::one(to, from, bytes), stream, timing)
    })
}

/// Where elements are set: how many in a row, how many rows, and bytes from one row to the next.
#[derive(Clone, Copy)]
struct Field {
    to: u64,
    pitch: usize,
    width: usize,
    height: usize,
}

impl Field {
    /// One row, for which the pitch does not matter.
    fn row(to: u64, count: usize) -> Self {
        Self { to, pitch: 0, width: count, height: 1 }
    }
}

/// Sets elements to a value, which has these bytes.
fn set(cx: super::Cx, value: &[u8], field: Field, stream: u64, timing: Timing) -> Answer {
    let Field { to, pitch, width, height } = field;
    let width = width.checked_mul(value.len()).ok_or(Code::INVALID_VALUE)?;
    let rows = Rows { to, from: 0, width, height, to_pitch: pitch as u64, from_pitch: width as u64 };
    within(|driver| {
        let stream = cx.stream(driver, stream)?;
        driver.fill(cx.call, value, rows, stream, timing)
    })
}

calls! {
    fn cuMemcpy(cx; to: u64, from: u64, bytes: usize) as [] per_thread [cuMemcpy_ptds] {
        copy(cx, (Side::Any, Side::Any), to, from, bytes, 0, Timing::Waits)
    }

    fn cuMemcpyAsync(cx; to: u64, from: u64, bytes: usize, stream: u64) as [] per_thread [cuMemcpyAsync_ptsz] {
        copy(cx, (Side::Any, Side::Any), to, from, bytes, stream, Timing::Async)
    }

    fn cuMemcpyHtoD(cx; to: u64, from: u64, bytes: usize) as [cuMemcpyHtoD_v2] per_thread [cuMemcpyHtoD_v2_ptds cuMemcpyHtoD_ptds] {
        copy(cx, (Side::Device, Side::Host), to, from, bytes, 0, Timing::Waits)
    }

    fn cuMemcpyHtoDAsync(cx; to: u64, from: u64, bytes: usize, stream: u64) as [cuMemcpyHtoDAsync_v2] per_thread [cuMemcpyHtoDAsync_v2_ptsz cuMemcpyHtoDAsync_ptsz] {
        copy(cx, (Side::Device, Side::Host), to, from, bytes, stream, Timing::Async)
    }

    fn cuMemcpyDtoH(cx; to: u64, from: u64, bytes: usize) as [cuMemcpyDtoH_v2] per_thread [cuMemcpyDtoH_v2_ptds cuMemcpyDtoH_ptds] {
        copy(cx, (Side::Host, Side::Device), to, from, bytes, 0, Timing::Waits)
    }

    fn cuMemcpyDtoHAsync(cx; to: u64, from: u64, bytes: usize, stream: u64) as [cuMemcpyDtoHAsync_v2] per_thread [cuMemcpyDtoHAsync_v2_ptsz cuMemcpyDtoHAsync_ptsz] {
        copy(cx, (Side::Host, Side::Device), to, from, bytes, stream, Timing::Async)
    }

    fn cuMemcpyDtoD(cx; to: u64, from: u64, bytes: usize) as [cuMemcpyDtoD_v2] per_thread [cuMemcpyDtoD_v2_ptds cuMemcpyDtoD_ptds] {
        copy(cx, (Side::Device, Side::Device), to, from, bytes, 0, Timing::Waits)
    }

    fn cuMemcpyDtoDAsync(cx; to: u64, from: u64, bytes: usize, stream: u64) as [cuMemcpyDtoDAsync_v2] per_thread [cuMemcpyDtoDAsync_v2_ptsz cuMemcpyDtoDAsync_ptsz] {
        copy(cx, (Side::Device, Side::Device), to, from, bytes, stream, Timing::Async)
    }

    fn cuMemcpyPeer(
        cx;
        to: u64,
        to_context: u64,
        from: u64,
        from_context: u64,
        bytes: usize
    ) as [] per_thread [cuMemcpyPeer_ptds] {
        let _ = (to_context, from_context);
        copy(cx, (Side::Device, Side::Device), to, from, bytes, 0, Timing::Waits)
    }

    fn cuMemcpyPeerAsync(
        cx;
        to: u64,
        to_context: u64,
        from: u64,
        from_context: u64,
        bytes: usize, stream: u64
    ) as [] per_thread [cuMemcpyPeerAsync_ptsz] {
        let _ = (to_context, from_context);
        copy(cx, (Side::Device, Side::Device), to, from, bytes, stream, Timing::Async)
    }

    fn cuMemcpy2D(cx; copy: *const Copy2D) as [cuMemcpy2D_v2 cuMemcpy2DUnaligned cuMemcpy2DUnaligned_v2] per_thread [cuMemcpy2D_v2_ptds cuMemcpy2D_ptds cuMemcpy2DUnaligned_v2_ptds cuMemcpy2DUnaligned_ptds] {
        within(|driver| copy_2d(driver, cx, copy, 0, Timing::Waits))
    }

    fn cuMemcpy2DAsync(cx; copy: *const Copy2D, stream: u64) as [cuMemcpy2DAsync_v2] per_thread [cuMemcpy2DAsync_v2_ptsz cuMemcpy2DAsync_ptsz] {
        within(|driver| copy_2d(driver, cx, copy, stream, Timing::Async))
    }

    fn cuMemcpy3D(cx; copy: *const Copy3D) as [cuMemcpy3D_v2] per_thread [cuMemcpy3D_v2_ptds cuMemcpy3D_ptds] {
        within(|driver| copy_3d(driver, cx, copy, 0, Timing::Waits))
    }

    fn cuMemcpy3DAsync(cx; copy: *const Copy3D, stream: u64) as [cuMemcpy3DAsync_v2] per_thread [cuMemcpy3DAsync_v2_ptsz cuMemcpy3DAsync_ptsz] {
        within(|driver| copy_3d(driver, cx, copy, stream, Timing::Async))
    }

    fn cuMemcpyAtoA(cx; to: u64, to_offset: usize, from: u64, from_offset: usize, bytes: usize) as [cuMemcpyAtoA_v2] per_thread [cuMemcpyAtoA_v2_ptds] {
        of_arrays(cx, Bytes::array(to, to_offset), Bytes::array(from, from_offset), bytes, 0, Timing::Waits)
    }

    fn cuMemcpyAtoD(cx; to: u64, from: u64, offset: usize, bytes: usize) as [cuMemcpyAtoD_v2] per_thread [cuMemcpyAtoD_v2_ptds] {
        of_arrays(cx, Bytes::device(to), Bytes::array(from, offset), bytes, 0, Timing::Waits)
    }

    fn cuMemcpyDtoA(cx; to: u64, offset: usize, from: u64, bytes: usize) as [cuMemcpyDtoA_v2] per_thread [cuMemcpyDtoA_v2_ptds] {
        of_arrays(cx, Bytes::array(to, offset), Bytes::device(from), bytes, 0, Timing::Waits)
    }

    fn cuMemcpyAtoH(cx; to: u64, from: u64, offset: usize, bytes: usize) as [cuMemcpyAtoH_v2] per_thread [cuMemcpyAtoH_v2_ptds] {
        of_arrays(cx, Bytes::host(to), Bytes::array(from, offset), bytes, 0, Timing::Waits)
    }

    fn cuMemcpyHtoA(cx; to: u64, offset: usize, from: u64, bytes: usize) as [cuMemcpyHtoA_v2] per_thread [cuMemcpyHtoA_v2_ptds] {
        of_arrays(cx, Bytes::array(to, offset), Bytes::host(from), bytes, 0, Timing::Waits)
    }

    fn cuMemcpyAtoHAsync(cx; to: u64, from: u64, offset: usize, bytes: usize, stream: u64) as [cuMemcpyAtoHAsync_v2] per_thread [cuMemcpyAtoHAsync_v2_ptsz] {
        of_arrays(cx, Bytes::host(to), Bytes::array(from, offset), bytes, stream, Timing::Async)
    }

    fn cuMemcpyHtoAAsync(cx; to: u64, offset: usize, from: u64, bytes: usize, stream: u64) as [cuMemcpyHtoAAsync_v2] per_thread [cuMemcpyHtoAAsync_v2_ptsz] {
        of_arrays(cx, Bytes::array(to, offset), Bytes::host(from), bytes, stream, Timing::Async)
    }

    fn cuMemsetD8(cx; to: u64, value: u8, count: usize) as [cuMemsetD8_v2] per_thread [cuMemsetD8_v2_ptds cuMemsetD8_ptds] {
        set(cx, &value.to_le_bytes(), Field::row(to, count), 0, Timing::Waits)
    }

    fn cuMemsetD2D8(
        cx;
        to: u64,
        pitch: usize,
        value: u8,
        width: usize,
        height: usize
    ) as [cuMemsetD2D8_v2] per_thread [cuMemsetD2D8_v2_ptds cuMemsetD2D8_ptds] {
        set(cx, &value.to_le_bytes(), Field { to, pitch, width, height }, 0, Timing::Waits)
    }

    fn cuMemsetD8Async(cx; to: u64, value: u8, count: usize, stream: u64) as [] per_thread [cuMemsetD8Async_ptsz] {
        set(cx, &value.to_le_bytes(), Field::row(to, count), stream, Timing::Async)
    }

    fn cuMemsetD2D8Async(
        cx;
        to: u64,
        pitch: usize,
        value: u8,
        width: usize,
        height: usize, stream: u64
    ) as [] per_thread [cuMemsetD2D8Async_ptsz] {
        set(cx, &value.to_le_bytes(), Field { to, pitch, width, height }, stream, Timing::Async)
    }

    fn cuMemsetD16(cx; to: u64, value: u16, count: usize) as [cuMemsetD16_v2] per_thread [cuMemsetD16_v2_ptds cuMemsetD16_ptds] {
        set(cx, &value.to_le_bytes(), Field::row(to, count), 0, Timing::Waits)
    }

    fn cuMemsetD2D16(
        cx;
        to: u64,
        pitch: usize,
        value: u16,
        width: usize,
        height: usize
    ) as [cuMemsetD2D16_v2] per_thread [cuMemsetD2D16_v2_ptds cuMemsetD2D16_ptds] {
        set(cx, &value.to_le_bytes(), Field { to, pitch, width, height }, 0, Timing::Waits)
    }

    fn cuMemsetD16Async(cx; to: u64, value: u16, count: usize, stream: u64) as [] per_thread [cuMemsetD16Async_ptsz] {
        set(cx, &value.to_le_bytes(), Field::row(to, count), stream, Timing::Async)
    }

    fn cuMemsetD2D16Async(
        cx;
        to: u64,
        pitch: usize,
        value: u16,
        width: usize,
        height: usize, stream: u64
    ) as [] per_thread [cuMemsetD2D16Async_ptsz] {
        set(cx, &value.to_le_bytes(), Field { to, pitch, width, height }, stream, Timing::Async)
    }

    fn cuMemsetD32(cx; to: u64, value: u32, count: usize) as [cuMemsetD32_v2] per_thread [cuMemsetD32_v2_ptds cuMemsetD32_ptds] {
        set(cx, &value.to_le_bytes(), Field::row(to, count), 0, Timing::Waits)
    }

    fn cuMemsetD2D32(
        cx;
        to: u64,
        pitch: usize,
        value: u32,
        width: usize,
        height: usize
    ) as [cuMemsetD2D32_v2] per_thread [cuMemsetD2D32_v2_ptds cuMemsetD2D32_ptds] {
        set(cx, &value.to_le_bytes(), Field { to, pitch, width, height }, 0, Timing::Waits)
    }

    fn cuMemsetD32Async(cx; to: u64, value: u32, count: usize, stream: u64) as [] per_thread [cuMemsetD32Async_ptsz] {
        set(cx, &value.to_le_bytes(), Field::row(to, count), stream, Timing::Async)
    }

    fn cuMemsetD2D32Async(
        cx;
        to: u64,
        pitch: usize,
        value: u32,
        width: usize,
        height: usize, stream: u64
    ) as [] per_thread [cuMemsetD2D32Async_ptsz] {
        set(cx, &value.to_le_bytes(), Field { to, pitch, width, height }, stream, Timing::Async)
    }
}
