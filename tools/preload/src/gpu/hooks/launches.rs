//! Launches of kernels.

use std::ffi::c_void;

use super::{Cx, hooks, skipped};
use crate::api::{LaunchConfig, cluster, get};
use crate::gpu::launch::Config;
use crate::process::watching;

/// Launches through `go`, watched where that is possible.
fn launch(config: &Config, go: impl Fn(u64) -> u32) -> u32 {
    if crate::gpu::given_up() {
        return go(config.function);
    }
    let launched = watching(|gpu| {
        gpu.catch_up();
        gpu.launch(config, &go)
    });
    launched.unwrap_or_else(|| go(config.function))
}

fn config(cx: Cx, function: u64, grid: [u32; 3], block: [u32; 3], shared: u32, stream: u64) -> Config {
    Config { function, grid, block, cluster: None, shared, stream: cx.handle(stream), branch: None }
}

hooks! {
    fn cuLaunchKernel(
        cx, real;
        function: u64,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared: u32,
        stream: u64,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) as [cuLaunchKernel] per_thread [cuLaunchKernel_ptsz] {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        launch(&config(cx, function, grid, block, shared, stream), |function| {
            real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments, extra)
        })
    }

    fn cuLaunchCooperativeKernel(
        cx, real;
        function: u64,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared: u32,
        stream: u64,
        arguments: *mut *mut c_void,
    ) as [cuLaunchCooperativeKernel] per_thread [cuLaunchCooperativeKernel_ptsz] {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        launch(&config(cx, function, grid, block, shared, stream), |function| {
            real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments)
        })
    }

    fn cuLaunchKernelEx(
        cx, real;
        given: *const LaunchConfig,
        function: u64,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) as [cuLaunchKernelEx] per_thread [cuLaunchKernelEx_ptsz] {
        // What cannot be read, the driver refuses.
        let Ok((launched, cluster)) = get(given).and_then(|given| Ok((given, cluster(&given)?))) else {
            return real(given, function, arguments, extra);
        };
        let wanted = Config {
            cluster,
            ..config(cx, function, launched.grid, launched.block, launched.shared, launched.stream)
        };
        launch(&wanted, |function| real(given, function, arguments, extra))
    }

    fn cuLaunch(cx, real; function: u64) as [cuLaunch] per_thread [] {
        skipped(real(function), cx)
    }

    fn cuLaunchGrid(cx, real; function: u64, width: i32, height: i32) as [cuLaunchGrid] per_thread [] {
        skipped(real(function, width, height), cx)
    }

    fn cuLaunchGridAsync(cx, real; function: u64, width: i32, height: i32, stream: u64) as [cuLaunchGridAsync] per_thread [] {
        skipped(real(function, width, height, stream), cx)
    }

    fn cuLaunchCooperativeKernelMultiDevice(
        cx, real;
        list: *mut c_void,
        count: u32,
        flags: u32,
    ) as [cuLaunchCooperativeKernelMultiDevice] per_thread [] {
        skipped(real(list, count, flags), cx)
    }
}
