//! Memory that is made and given back.

use ptxrace::backend::Owner;

use super::{done, hooks, in_order};
use crate::api::get;
use crate::gpu::driver;
use crate::watch::write;

fn made(code: u32, call: &'static str, pointer: *mut u64, bytes: usize, owner: Owner) -> u32 {
    done(code, |gpu| {
        if let Ok(base) = get(pointer) {
            gpu.made(call, base, bytes as u64, owner);
        }
    })
}

fn gone(code: u32, pointer: u64) -> u32 {
    done(code, |gpu| {
        if pointer != 0 {
            gpu.gone(pointer);
        }
    })
}

hooks! {
    fn cuMemAlloc(cx, real; pointer: *mut u64, bytes: usize) as [cuMemAlloc_v2] per_thread [] runtime [cudaMalloc = cuMemAlloc_v2] {
        made(real(pointer, bytes), cx.call, pointer, bytes, Owner::Device)
    }

    fn cuMemAllocPitch(
        cx, real;
        pointer: *mut u64,
        pitch: *mut usize,
        width: usize,
        height: usize,
        element: u32,
    ) as [cuMemAllocPitch_v2] per_thread [] runtime [cudaMallocPitch = cuMemAllocPitch_v2] {
        let code = real(pointer, pitch, width, height, element);
        made(code, cx.call, pointer, get(pitch).unwrap_or(width).saturating_mul(height), Owner::Device)
    }

    fn cuMemAllocManaged(cx, real; pointer: *mut u64, bytes: usize, flags: u32) as [cuMemAllocManaged] per_thread [] runtime [cudaMallocManaged = cuMemAllocManaged] {
        made(real(pointer, bytes, flags), cx.call, pointer, bytes, Owner::Managed)
    }

    fn cuMemAllocHost(cx, real; pointer: *mut u64, bytes: usize) as [cuMemAllocHost_v2] per_thread [] runtime [cudaMallocHost = cuMemAllocHost_v2] {
        made(real(pointer, bytes), cx.call, pointer, bytes, Owner::Host)
    }

    fn cuMemHostAlloc(cx, real; pointer: *mut u64, bytes: usize, flags: u32) as [cuMemHostAlloc] per_thread [] runtime [cudaHostAlloc = cuMemHostAlloc] {
        made(real(pointer, bytes, flags), cx.call, pointer, bytes, Owner::Host)
    }

    fn cuMemHostRegister(cx, real; pointer: u64, bytes: usize, flags: u32) as [cuMemHostRegister cuMemHostRegister_v2] per_thread [] runtime [cudaHostRegister = cuMemHostRegister_v2] {
        done(real(pointer, bytes, flags), |gpu| gpu.made(cx.call, pointer, bytes as u64, Owner::Host))
    }

    fn cuMemFree(cx, real; pointer: u64) as [cuMemFree_v2] per_thread [] {
        gone(real(pointer), pointer)
    }

    fn cuMemFreeHost(cx, real; pointer: u64) as [cuMemFreeHost] per_thread [] {
        gone(real(pointer), pointer)
    }

    fn cuMemHostUnregister(cx, real; pointer: u64) as [cuMemHostUnregister] per_thread [] {
        gone(real(pointer), pointer)
    }

    fn cuMemAllocAsync(
        cx, real;
        pointer: *mut u64,
        bytes: usize,
        stream: u64,
    ) as [cuMemAllocAsync] per_thread [cuMemAllocAsync_ptsz] runtime [cudaMallocAsync = cuMemAllocAsync] {
        made_in_order(cx, real(pointer, bytes, stream), pointer, bytes, stream)
    }

    fn cuMemAllocFromPoolAsync(
        cx, real;
        pointer: *mut u64,
        bytes: usize,
        pool: u64,
        stream: u64,
    ) as [cuMemAllocFromPoolAsync] per_thread [cuMemAllocFromPoolAsync_ptsz] runtime [cudaMallocFromPoolAsync = cuMemAllocFromPoolAsync] {
        made_in_order(cx, real(pointer, bytes, pool, stream), pointer, bytes, stream)
    }

    fn cuMemFreeAsync(cx, real; pointer: u64, stream: u64) as [cuMemFreeAsync] per_thread [cuMemFreeAsync_ptsz] {
        // Asked before, as afterwards nothing is known of it.
        let bytes = driver::range(pointer).map_or(0, |(_, bytes)| bytes);
        in_order(real(pointer, stream), cx, stream, |gpu, stream| {
            if pointer != 0 {
                let bytes = gpu.forget(pointer).unwrap_or(bytes);
                gpu.watch.operate(cx.call, &[write(pointer, bytes)], stream);
            }
        })
    }
}

/// Memory is made in the order of a stream.
fn made_in_order(cx: super::Cx, code: u32, pointer: *mut u64, bytes: usize, stream: u64) -> u32 {
    let code = made(code, cx.call, pointer, bytes, Owner::Device);
    in_order(code, cx, stream, |gpu, stream| {
        if let Ok(base) = get(pointer) {
            gpu.watch.operate(cx.call, &[write(base, bytes as u64)], stream);
        }
    })
}
