//! Memory, and what there is to know of pointers.

use std::ffi::c_void;

use super::{calls, get, put, put_if};
use crate::code::{Answer, Code};
use crate::process::within;
use crate::state::Kind;

/// The handle of the only memory pool.
pub(super) const POOL: u64 = 0x900;

/// Rows of memory begin at multiples of this.
const PITCH: usize = 512;

/// What `cuPointerGetAttribute` says.
fn attribute(to: *mut c_void, which: u32, pointer: u64) -> Answer {
    let (found, range, context) = within(|driver| {
        let context = driver.context(crate::process::thread()).unwrap_or(0);
        Ok((driver.allocation(pointer), driver.range(pointer), context))
    })?;
    let kind = found.map_or(Kind::Device, |found| found.kind);
    let (base, bytes) = range.ok_or(Code::INVALID_VALUE)?;
    let on_host = matches!(kind, Kind::Pinned | Kind::Registered);
    match which {
        1 => put(to.cast(), context),
        2 => put(to.cast(), if on_host { 1u32 } else { 2 }),
        3 => put(to.cast(), pointer),
        4 if kind == Kind::Device => Err(Code::INVALID_VALUE),
        4 => put(to.cast(), pointer),
        6 | 10 | 15 | 21 => put(to.cast(), 0u32),
        7 | 20 => put(to.cast(), base),
        8 => put(to.cast(), u32::from(kind == Kind::Managed)),
        9 => put(to.cast(), found.map_or(0, |found| found.device).cast_signed()),
        11 | 19 => put(to.cast(), base),
        12 | 18 => put(to.cast(), bytes),
        13 => put(to.cast(), 1u32),
        14 => put(to.cast(), 0u64),
        16 => put(to.cast(), 3u32),
        17 => put(to.cast(), 0u64),
        _ => Err(Code::INVALID_VALUE),
    }
}

calls! {
    fn cuMemGetInfo(cx; free: *mut usize, total: *mut usize) as [cuMemGetInfo_v2] per_thread [] {
        let left = within(|driver| Ok(driver.free_bytes()))?;
        put_if(free, left as usize);
        put_if(total, crate::state::TOTAL_BYTES as usize);
        Ok(())
    }

    fn cuMemAlloc(cx; pointer: *mut u64, bytes: usize) as [cuMemAlloc_v2] per_thread [] {
        put(pointer, within(|driver| driver.allocate(cx.call, bytes))?)
    }

    fn cuMemAllocPitch(
        cx;
        pointer: *mut u64,
        pitch: *mut usize,
        width: usize,
        height: usize,
        element: u32,
    ) as [cuMemAllocPitch_v2] per_thread [] {
        let _ = element;
        let row = width.checked_next_multiple_of(PITCH).ok_or(Code::INVALID_VALUE)?;
        let bytes = row.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
        put(pointer, within(|driver| driver.allocate(cx.call, bytes))?)?;
        put(pitch, row)
    }

    fn cuMemAllocManaged(cx; pointer: *mut u64, bytes: usize, flags: u32) as [] per_thread [] {
        let _ = flags;
        put(pointer, within(|driver| driver.allocate_host(cx.call, bytes, Kind::Managed))?)
    }

    fn cuMemFree(cx; pointer: u64) as [cuMemFree_v2] per_thread [] {
        within(|driver| driver.free(pointer))
    }

    fn cuMemAllocHost(cx; pointer: *mut u64, bytes: usize) as [cuMemAllocHost_v2] per_thread [] {
        put(pointer, within(|driver| driver.allocate_host(cx.call, bytes, Kind::Pinned))?)
    }

    fn cuMemHostAlloc(cx; pointer: *mut u64, bytes: usize, flags: u32) as [] per_thread [] {
        let _ = flags;
        put(pointer, within(|driver| driver.allocate_host(cx.call, bytes, Kind::Pinned))?)
    }

    fn cuMemFreeHost(cx; pointer: u64) as [] per_thread [] {
        within(|driver| driver.free_host(pointer))
    }

    fn cuMemHostRegister(cx; pointer: u64, bytes: usize, flags: u32) as [cuMemHostRegister_v2] per_thread [] {
        let _ = flags;
        within(|driver| driver.register(cx.call, pointer, bytes))
    }

    fn cuMemHostUnregister(cx; pointer: u64) as [] per_thread [] {
        within(|driver| driver.unregister(pointer))
    }

    fn cuMemHostGetDevicePointer(cx; to: *mut u64, pointer: u64, flags: u32) as [cuMemHostGetDevicePointer_v2] per_thread [] {
        let _ = flags;
        within(|driver| driver.allocation(pointer).map(|_| ()).ok_or(Code::INVALID_VALUE))?;
        put(to, pointer)
    }

    fn cuMemHostGetFlags(cx; flags: *mut u32, pointer: u64) as [] per_thread [] {
        within(|driver| driver.allocation(pointer).map(|_| ()).ok_or(Code::INVALID_VALUE))?;
        put(flags, 2)
    }

    fn cuMemGetAddressRange(cx; base: *mut u64, bytes: *mut usize, pointer: u64) as [cuMemGetAddressRange_v2] per_thread [] {
        let (start, size) = within(|driver| driver.range(pointer).ok_or(Code::NOT_FOUND))?;
        put_if(base, start);
        put_if(bytes, size as usize);
        Ok(())
    }

    fn cuPointerGetAttribute(cx; to: *mut c_void, which: u32, pointer: u64) as [] per_thread [] {
        attribute(to, which, pointer)
    }

    fn cuPointerGetAttributes(
        cx;
        count: u32,
        which: *const u32,
        to: *const *mut c_void,
        pointer: u64,
    ) as [] per_thread [] {
        for at in 0..count as usize {
            let (which, to) = (get(which.wrapping_add(at))?, get(to.wrapping_add(at))?);
            // Of a pointer that is not the driver's, all is null.
            if attribute(to, which, pointer).is_err() {
                match which {
                    2 | 6 | 8 | 10 | 13 | 15 | 16 | 21 => put(to.cast(), 0u32)?,
                    9 => put(to.cast(), -2i32)?,
                    _ => put(to.cast(), 0u64)?,
                }
            }
        }
        Ok(())
    }

    fn cuPointerSetAttribute(cx; value: *const c_void, which: u32, pointer: u64) as [] per_thread [] {
        let _ = (value, which, pointer);
        Ok(())
    }

    fn cuMemAllocAsync(cx; pointer: *mut u64, bytes: usize, stream: u64) as [] per_thread [cuMemAllocAsync_ptsz] {
        let base = within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.allocate_async(cx.call, bytes, stream)
        })?;
        put(pointer, base)
    }

    fn cuMemAllocFromPoolAsync(
        cx;
        pointer: *mut u64,
        bytes: usize,
        pool: u64,
        stream: u64,
    ) as [] per_thread [cuMemAllocFromPoolAsync_ptsz] {
        let _ = pool;
        let base = within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.allocate_async(cx.call, bytes, stream)
        })?;
        put(pointer, base)
    }

    fn cuMemFreeAsync(cx; pointer: u64, stream: u64) as [] per_thread [cuMemFreeAsync_ptsz] {
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.free_async(cx.call, pointer, stream)
        })
    }

    fn cuMemPoolSetAttribute(cx; pool: u64, which: u32, value: *mut c_void) as [] per_thread [] {
        let _ = (pool, which, value);
        Ok(())
    }

    fn cuMemPoolGetAttribute(cx; pool: u64, which: u32, value: *mut c_void) as [] per_thread [] {
        let _ = pool;
        // The first three are of 32 bits.
        if which <= 3 { put(value.cast(), 0u32) } else { put(value.cast(), 0u64) }
    }

    fn cuMemPoolTrimTo(cx; pool: u64, bytes: usize) as [] per_thread [] {
        let _ = (pool, bytes);
        Ok(())
    }

    fn cuMemAdvise(cx; pointer: u64, bytes: usize, advice: u32, place: u64) as [cuMemAdvise_v2] per_thread [] {
        let _ = (pointer, bytes, advice, place);
        Ok(())
    }

    fn cuMemPrefetchAsync(
        cx;
        pointer: u64,
        bytes: usize,
        place: u64,
        stream: u64,
    ) as [cuMemPrefetchAsync_v2] per_thread [cuMemPrefetchAsync_ptsz cuMemPrefetchAsync_v2_ptsz] {
        let _ = (pointer, bytes, place, stream);
        Ok(())
    }

    fn cuStreamAttachMemAsync(
        cx;
        stream: u64,
        pointer: u64,
        bytes: usize,
        flags: u32,
    ) as [] per_thread [cuStreamAttachMemAsync_ptsz] {
        let _ = (stream, pointer, bytes, flags);
        Ok(())
    }
}
