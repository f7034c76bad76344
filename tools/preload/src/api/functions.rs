//! Kernels: attributes, occupancy, launches.

use std::ffi::c_char;

use ptxrace::session::exec::log::Gap;

use super::{calls, get, put, put_if};
use crate::code::{Answer, Code};
use crate::process::within;
use crate::state::{Config, Function, MULTIPROCESSORS, THREADS_PER_MULTIPROCESSOR};

/// `CUlaunchConfig`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) stream: u64,
    attributes: *const LaunchAttribute,
    count: u32,
}

/// `CUlaunchAttribute`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct LaunchAttribute {
    id: u32,
    pad: u32,
    value: [u32; 16],
}

impl LaunchAttribute {
    pub(crate) fn new(id: u32, [x, y, z]: [u32; 3]) -> Self {
        let mut value = [0; 16];
        value[..3].copy_from_slice(&[x, y, z]);
        Self { id, pad: 0, value }
    }
}

impl LaunchConfig {
    /// Attributes have to stay as long as it is used.
    pub(crate) fn new(
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        stream: u64,
        attributes: &[LaunchAttribute],
    ) -> Self {
        let (attributes, count) = (attributes.as_ptr(), attributes.len() as u32);
        Self { grid, block, shared, stream, attributes, count }
    }
}

const CLUSTER_DIMENSION: u32 = 4;
const PROGRAMMATIC_EVENT: u32 = 7;
const COMPLETION_EVENT: u32 = 12;

/// The cluster that the attributes of a launch ask for. What else they ask for and is not followed is said.
pub(crate) fn cluster(config: &LaunchConfig) -> Answer<Option<[u32; 3]>> {
    let mut cluster = None;
    for at in 0..config.count as usize {
        let attribute = get(config.attributes.wrapping_add(at))?;
        match attribute.id {
            CLUSTER_DIMENSION => cluster = cluster_of(&attribute.value),
            PROGRAMMATIC_EVENT | COMPLETION_EVENT => {
                let detail = "a launch with an event attribute: the order by that event is not known";
                crate::process::gap(Gap::Call, detail.into());
            }
            _ => {}
        }
    }
    Ok(cluster)
}

/// The cluster that the value of an attribute asks for.
pub(super) fn cluster_of(value: &[u32; 16]) -> Option<[u32; 3]> {
    let [x, y, z, ..] = *value;
    (x != 0 || y != 0 || z != 0).then_some([x, y, z])
}

/// Ends the list of `extra`; a buffer with arguments; its size.
const END: usize = 0;
const BUFFER: usize = 1;
const BUFFER_BYTES: usize = 2;

/// What `extra` says: address and size of a buffer.
pub(crate) fn packed(extra: *const usize) -> Answer<Option<(u64, u64)>> {
    if extra.is_null() {
        return Ok(None);
    }
    let (mut address, mut bytes) = (0, 0);
    for at in (0..8).step_by(2) {
        let (what, value) = (get(extra.wrapping_add(at))?, extra.wrapping_add(at + 1));
        match what {
            END => break,
            BUFFER => address = get(value)? as u64,
            BUFFER_BYTES => bytes = get(get(value)? as *const usize)? as u64,
            _ => return Err(Code::INVALID_VALUE),
        }
    }
    Ok((address != 0).then_some((address, bytes)))
}

/// Blocks of a kernel that a multiprocessor holds.
fn occupancy(function: &Function, block: i32, dynamic: usize) -> i32 {
    let by_threads = THREADS_PER_MULTIPROCESSOR / ((block.clamp(1, 1024) + 31) & !31);
    let shared = function.kernel.shared_bytes() + dynamic as u64 + 1024;
    let by_shared = i32::try_from((228u64 << 10) / shared).unwrap_or(32);
    by_threads.min(by_shared).min(32)
}

type SharedBytes = Option<extern "C" fn(i32) -> usize>;

/// The largest block, unless a limit is given, with as many blocks as fit.
fn potential(function: u64, dynamic: usize, of_block: SharedBytes, limit: i32) -> Answer<(i32, i32)> {
    let function = within(|driver| driver.function(function).cloned())?;
    let most = function.most_threads.cast_signed();
    let block = if limit > 0 { most.min(limit) } else { most };
    let dynamic = of_block.map_or(dynamic, |bytes| bytes(block));
    Ok((occupancy(&function, block, dynamic).max(1) * MULTIPROCESSORS, block))
}

calls! {
    fn cuFuncGetAttribute(cx; value: *mut i32, which: u32, function: u64) as [] per_thread [] {
        put(value, within(|driver| driver.function_attribute(function, which))?)
    }

    fn cuKernelGetAttribute(cx; value: *mut i32, which: u32, kernel: u64, device: i32) as [] per_thread [] {
        let _ = device;
        put(value, within(|driver| driver.function_attribute(kernel, which))?)
    }

    fn cuFuncSetAttribute(cx; function: u64, which: u32, value: i32) as [] per_thread [] {
        within(|driver| driver.set_function_attribute(function, which, value))
    }

    fn cuKernelSetAttribute(cx; which: u32, value: i32, kernel: u64, device: i32) as [] per_thread [] {
        let _ = device;
        within(|driver| driver.set_function_attribute(kernel, which, value))
    }

    fn cuFuncSetCacheConfig(cx; function: u64, config: u32) as [cuFuncSetSharedMemConfig] per_thread [] {
        let _ = config;
        within(|driver| driver.function(function).map(|_| ()))
    }

    fn cuKernelSetCacheConfig(cx; kernel: u64, config: u32, device: i32) as [] per_thread [] {
        let _ = (config, device);
        within(|driver| driver.function(kernel).map(|_| ()))
    }

    fn cuFuncGetName(cx; name: *mut *const c_char, function: u64) as [cuKernelGetName] per_thread [] {
        let text = within(|driver| driver.c_name(function))?;
        put(name, text as *const c_char)
    }

    fn cuFuncGetParamInfo(
        cx;
        function: u64,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) as [cuKernelGetParamInfo] per_thread [] {
        let found = within(|driver| driver.function(function).map(|f| f.kernel.params().get(index).copied()))?;
        let (at, bytes) = found.ok_or(Code::INVALID_VALUE)?;
        put_if(offset, at as usize);
        put_if(size, bytes as usize);
        Ok(())
    }

    fn cuFuncIsLoaded(cx; state: *mut u32, function: u64) as [] per_thread [] {
        within(|driver| driver.function(function).map(|_| ()))?;
        put(state, 1)
    }

    fn cuFuncLoad(cx; function: u64) as [] per_thread [] {
        within(|driver| driver.function(function).map(|_| ()))
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        cx;
        blocks: *mut i32,
        function: u64,
        block: i32,
        dynamic: usize,
    ) as [] per_thread [] {
        let function = within(|driver| driver.function(function).cloned())?;
        put(blocks, occupancy(&function, block, dynamic))
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        cx;
        blocks: *mut i32,
        function: u64,
        block: i32,
        dynamic: usize,
        flags: u32,
    ) as [] per_thread [] {
        let _ = flags;
        let function = within(|driver| driver.function(function).cloned())?;
        put(blocks, occupancy(&function, block, dynamic))
    }

    fn cuOccupancyMaxPotentialBlockSize(
        cx;
        grid: *mut i32,
        block: *mut i32,
        function: u64,
        of_block: SharedBytes,
        dynamic: usize,
        limit: i32,
    ) as [] per_thread [] {
        let (blocks, threads) = potential(function, dynamic, of_block, limit)?;
        put(grid, blocks)?;
        put(block, threads)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        cx;
        grid: *mut i32,
        block: *mut i32,
        function: u64,
        of_block: SharedBytes,
        dynamic: usize,
        limit: i32,
        flags: u32,
    ) as [] per_thread [] {
        let _ = flags;
        let (blocks, threads) = potential(function, dynamic, of_block, limit)?;
        put(grid, blocks)?;
        put(block, threads)
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock(
        cx;
        bytes: *mut usize,
        function: u64,
        blocks: i32,
        block: i32,
    ) as [] per_thread [] {
        let _ = block;
        let function = within(|driver| driver.function(function).cloned())?;
        let each = (228usize << 10) / usize::try_from(blocks).unwrap_or(1).max(1);
        put(bytes, each.saturating_sub(1024 + function.kernel.shared_bytes() as usize))
    }

    fn cuOccupancyMaxPotentialClusterSize(
        cx;
        size: *mut i32,
        function: u64,
        config: *const LaunchConfig,
    ) as [] per_thread [] {
        let _ = config;
        within(|driver| driver.function(function).map(|_| ()))?;
        put(size, 8)
    }

    fn cuOccupancyMaxActiveClusters(
        cx;
        clusters: *mut i32,
        function: u64,
        config: *const LaunchConfig,
    ) as [] per_thread [] {
        let _ = config;
        within(|driver| driver.function(function).map(|_| ()))?;
        put(clusters, 1)
    }

    fn cuLaunchKernel(
        cx;
        function: u64,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared: u32,
        stream: u64,
        arguments: u64,
        extra: *const usize,
    ) as [] per_thread [cuLaunchKernel_ptsz] {
        let packed = packed(extra)?;
        within(|driver| {
            let config = Config {
                grid: [grid_x, grid_y, grid_z],
                block: [block_x, block_y, block_z],
                cluster: None,
                shared,
                stream: cx.stream(driver, stream)?,
                arguments,
                packed,
            };
            driver.launch(function, &config)
        })
    }

    fn cuLaunchCooperativeKernel(
        cx;
        function: u64,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared: u32,
        stream: u64,
        arguments: u64,
    ) as [] per_thread [cuLaunchCooperativeKernel_ptsz] {
        within(|driver| {
            let config = Config {
                grid: [grid_x, grid_y, grid_z],
                block: [block_x, block_y, block_z],
                cluster: None,
                shared,
                stream: cx.stream(driver, stream)?,
                arguments,
                packed: None,
            };
            driver.launch(function, &config)
        })
    }

    fn cuLaunchKernelEx(
        cx;
        config: *const LaunchConfig,
        function: u64,
        arguments: u64,
        extra: *const usize,
    ) as [] per_thread [cuLaunchKernelEx_ptsz] {
        let given = get(config)?;
        let packed = packed(extra)?;
        let cluster = cluster(&given)?;
        within(|driver| {
            let config = Config {
                grid: given.grid,
                block: given.block,
                cluster,
                shared: given.shared,
                stream: cx.stream(driver, given.stream)?,
                arguments,
                packed,
            };
            driver.launch(function, &config)
        })
    }
}
