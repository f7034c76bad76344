//! Contexts that end, and waiting for everything.

use super::{done, hooks};
use crate::gpu::driver;
use crate::process::watching;

hooks! {
    fn cuCtxSynchronize(cx, real;) as [cuCtxSynchronize] per_thread [] {
        done(real(), |gpu| gpu.watch.synchronize_context(driver::current()))
    }

    fn cuCtxSynchronize_v2(cx, real; context: u64) as [cuCtxSynchronize_v2] per_thread [] {
        done(real(context), |gpu| {
            let context = if context == 0 { driver::current() } else { context };
            gpu.watch.synchronize_context(context);
        })
    }

    fn cuCtxDestroy(cx, real; context: u64) as [cuCtxDestroy cuCtxDestroy_v2] per_thread [] {
        // Its memory is gone afterwards.
        watching(|gpu| gpu.left(Some(context)));
        real(context)
    }

    fn cuDevicePrimaryCtxReset(cx, real; device: i32) as [cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2] per_thread [] {
        watching(|gpu| gpu.left(None));
        real(device)
    }

    fn cuDevicePrimaryCtxRelease(cx, real; device: i32) as [cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2] per_thread [] {
        // It may be the last one who held it.
        watching(|gpu| gpu.left(None));
        real(device)
    }
}
