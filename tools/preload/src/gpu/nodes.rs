//! Graphs, as the driver tells of them, and what their nodes do, given to a stream by itself.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::AtomicUsize;

use super::driver::{self, cached, imports};
use crate::api::{Copy3D, LaunchAttribute, LaunchConfig};
use crate::code::{Answer, Code, given_back};
use crate::graph::{self, Fill, HostFunction, HostParams, Item, Kernel, KernelParamsV2, Source, Work};

imports! {
    cuEventRecord(event: u64, stream: u64);
    cuFuncGetParamInfo(function: u64, index: usize, offset: *mut usize, bytes: *mut usize);
    cuGraphChildGraphNodeGetGraph(node: u64, graph: *mut u64);
    cuGraphEventRecordNodeGetEvent(node: u64, event: *mut u64);
    cuGraphEventWaitNodeGetEvent(node: u64, event: *mut u64);
    cuGraphGetEdges(graph: u64, from: *mut u64, to: *mut u64, count: *mut usize);
    cuGraphGetNodes(graph: u64, nodes: *mut u64, count: *mut usize);
    cuGraphHostNodeGetParams(node: u64, params: *mut HostParams);
    cuGraphKernelNodeGetAttribute(node: u64, which: u32, value: *mut [u32; 16]);
    cuGraphKernelNodeGetParams_v2(node: u64, params: *mut KernelParamsV2);
    cuGraphMemcpyNodeGetParams(node: u64, copy: *mut Copy3D);
    cuGraphMemsetNodeGetParams(node: u64, params: *mut Fill);
    cuGraphNodeGetType(node: u64, kind: *mut u32);
    cuKernelGetFunction(function: *mut u64, kernel: u64);
    cuLaunchHostFunc(stream: u64, function: HostFunction, data: *mut c_void);
    cuLaunchKernelEx(
        config: *const LaunchConfig,
        function: u64,
        arguments: *const *const u8,
        extra: *const c_void
    );
    cuMemcpy3DAsync_v2(copy: *const Copy3D, stream: u64);
    cuMemsetD16Async(to: u64, value: u16, count: usize, stream: u64);
    cuMemsetD2D16Async(to: u64, pitch: usize, value: u16, width: usize, height: usize, stream: u64);
    cuMemsetD2D32Async(to: u64, pitch: usize, value: u32, width: usize, height: usize, stream: u64);
    cuMemsetD2D8Async(to: u64, pitch: usize, value: u8, width: usize, height: usize, stream: u64);
    cuMemsetD32Async(to: u64, value: u32, count: usize, stream: u64);
    cuMemsetD8Async(to: u64, value: u8, count: usize, stream: u64);
    cuStreamWaitEvent(stream: u64, event: u64, flags: u32);
}

/// Attributes of kernel nodes.
const COOPERATIVE: u32 = 2;
const CLUSTER: u32 = 4;
const UPDATED_BY_KERNELS: u32 = 13;

/// The driver, as who knows graphs.
pub(super) struct OfDriver;

fn failed(call: &str) -> impl Fn(Code) -> String {
    move |code| format!("the driver does not tell what is in it (`{call}` gave {})", code.0)
}

impl Source for OfDriver {
    fn nodes(&mut self, graph: u64) -> Result<Vec<u64>, String> {
        let failed = failed("cuGraphGetNodes");
        let mut count = 0;
        // SAFETY: without a list only the count is written.
        unsafe { cuGraphGetNodes(graph, ptr::null_mut(), &raw mut count) }.map_err(&failed)?;
        let mut nodes = vec![0; count];
        // SAFETY: the list has room for as many as the count says.
        unsafe { cuGraphGetNodes(graph, nodes.as_mut_ptr(), &raw mut count) }.map_err(&failed)?;
        nodes.truncate(count);
        Ok(nodes)
    }

    fn edges(&mut self, graph: u64) -> Result<Vec<(u64, u64)>, String> {
        const LOSSY: Code = Code(402);
        let failed = |code| match code {
            // This version of the call gives whole edges only.
            LOSSY => "it has programmatic edges".into(),
            code => failed("cuGraphGetEdges")(code),
        };
        let mut count = 0;
        // SAFETY: without lists only the count is written.
        unsafe { cuGraphGetEdges(graph, ptr::null_mut(), ptr::null_mut(), &raw mut count) }
            .map_err(failed)?;
        let (mut from, mut to) = (vec![0; count], vec![0; count]);
        if count > 0 {
            // SAFETY: both lists have room for as many as the count says.
            unsafe { cuGraphGetEdges(graph, from.as_mut_ptr(), to.as_mut_ptr(), &raw mut count) }
                .map_err(failed)?;
        }
        Ok(from.into_iter().zip(to).take(count).collect())
    }

    fn item(&mut self, node: u64) -> Result<Item, String> {
        let mut kind = 0;
        // SAFETY: writes one number to a valid place.
        unsafe { cuGraphNodeGetType(node, &raw mut kind) }.map_err(failed("cuGraphNodeGetType"))?;
        let not_followed = match kind {
            8 | 9 => "semaphores of other interfaces",
            10 | 11 => "memory of its own",
            12 => "operations on values in memory",
            13 => "conditions",
            _ => "nodes of a kind that is not known",
        };
        Ok(Item::Work(match kind {
            graph::KERNEL => Work::Kernel(kernel_of(node)?),
            graph::COPY => Work::Copy(ask("cuGraphMemcpyNodeGetParams", |to| {
                // SAFETY: the node is one that copies, and the place is for its parameters.
                unsafe { cuGraphMemcpyNodeGetParams(node, to) }
            })?),
            graph::FILL => Work::Fill(ask("cuGraphMemsetNodeGetParams", |to| {
                // SAFETY: the node is one that fills, and the place is for its parameters.
                unsafe { cuGraphMemsetNodeGetParams(node, to) }
            })?),
            graph::HOST => {
                // SAFETY: the node is one that calls a function, and the place is for its parameters.
                let of: HostParams =
                    ask("cuGraphHostNodeGetParams", |to| unsafe { cuGraphHostNodeGetParams(node, to) })?;
                Work::Host(of.function.ok_or("it calls no function")?, of.data)
            }
            graph::GRAPH => {
                return Ok(Item::Graph(ask("cuGraphChildGraphNodeGetGraph", |to| {
                    // SAFETY: the node is a graph, and the place is for its handle.
                    unsafe { cuGraphChildGraphNodeGetGraph(node, to) }
                })?));
            }
            graph::EMPTY => Work::Empty,
            graph::WAIT => Work::Wait(ask("cuGraphEventWaitNodeGetEvent", |to| {
                // SAFETY: the node is one that waits, and the place is for a handle.
                unsafe { cuGraphEventWaitNodeGetEvent(node, to) }
            })?),
            graph::RECORD => Work::Record(ask("cuGraphEventRecordNodeGetEvent", |to| {
                // SAFETY: the node is one that records, and the place is for a handle.
                unsafe { cuGraphEventRecordNodeGetEvent(node, to) }
            })?),
            _ => return Err(format!("it has {not_followed}")),
        }))
    }
}

/// What a call writes of which all bytes zero are a value.
fn ask<T: Zeros>(call: &str, ask: impl FnOnce(*mut T) -> Answer) -> Result<T, String> {
    let mut value = T::zeros();
    ask(&raw mut value).map_err(failed(call))?;
    Ok(value)
}

/// What is a value with all bytes zero.
trait Zeros: Copy {
    fn zeros() -> Self;
}

macro_rules! zeros {
    ($($ty:ty)*) => {
        $(impl Zeros for $ty {
            fn zeros() -> Self {
                // SAFETY: numbers, and functions that may be missing: all of them may be zero.
                unsafe { std::mem::zeroed() }
            }
        })*
    };
}
zeros! { u64 Copy3D Fill HostParams KernelParamsV2 }

fn kernel_of(node: u64) -> Result<Kernel, String> {
    let params: KernelParamsV2 = ask("cuGraphKernelNodeGetParams", |to| {
        // SAFETY: the node is a kernel, and the place is for its parameters.
        unsafe { cuGraphKernelNodeGetParams_v2(node, to) }
    })?;
    let attribute = |which| {
        let mut value = [0; 16];
        // SAFETY: the node is a kernel; attributes have so many bytes. Which it does not have is not set.
        unsafe { cuGraphKernelNodeGetAttribute(node, which, &raw mut value) }.map_or([0; 16], |()| value)
    };
    if attribute(UPDATED_BY_KERNELS)[0] != 0 {
        return Err("kernels may change its nodes".into());
    }
    let [x, y, z, ..] = attribute(CLUSTER);
    Ok(Kernel {
        cluster: (x != 0 || y != 0 || z != 0).then_some([x, y, z]),
        cooperative: attribute(COOPERATIVE)[0] != 0,
        ..kernel(&params)?
    })
}

/// A launch by the parameters of a node, which the driver or the program gives; their arguments are copied.
pub(super) fn kernel(params: &KernelParamsV2) -> Result<Kernel, String> {
    let first = &params.first;
    let mut function = first.function;
    if function == 0 {
        // SAFETY: writes one handle to a valid place.
        unsafe { cuKernelGetFunction(&raw mut function, params.kernel) }
            .map_err(failed("cuKernelGetFunction"))?;
    }
    if params.context != 0 && params.context != driver::current() {
        return Err("it has kernels of another context".into());
    }
    let packed =
        crate::api::packed(first.extra as *const usize).map_err(failed("cuGraphKernelNodeGetParams"))?;
    let mut arguments = Vec::new();
    for index in 0.. {
        let (mut offset, mut bytes) = (0, 0);
        // SAFETY: both places are valid.
        match unsafe { cuFuncGetParamInfo(function, index, &raw mut offset, &raw mut bytes) } {
            Ok(()) => {}
            Err(Code::INVALID_VALUE) => break,
            Err(code) => return Err(failed("cuFuncGetParamInfo")(code)),
        }
        let from = match packed {
            Some((buffer, _)) => buffer.wrapping_add(offset as u64),
            None if first.arguments == 0 => return Err("a kernel of it lacks its arguments".into()),
            // SAFETY: there are as many addresses as the kernel has parameters.
            None => unsafe { (first.arguments as *const u64).add(index).read_unaligned() },
        };
        // SAFETY: an argument has as many bytes as its parameter.
        arguments.push(unsafe { std::slice::from_raw_parts(from as *const u8, bytes) }.to_vec());
    }
    let (grid, block, shared) = (first.grid, first.block, first.shared);
    Ok(Kernel { function, grid, block, cluster: None, shared, cooperative: false, arguments })
}

/// Launches a kernel, by this handle.
pub(super) fn launch(kernel: &Kernel, function: u64, stream: u64) -> u32 {
    let mut attributes = Vec::new();
    attributes.extend(kernel.cluster.map(|[x, y, z]| LaunchAttribute::new(CLUSTER, [x, y, z])));
    attributes.extend(kernel.cooperative.then(|| LaunchAttribute::new(COOPERATIVE, [1, 0, 0])));
    let config = LaunchConfig::new(kernel.grid, kernel.block, kernel.shared, stream, &attributes);
    let arguments: Vec<_> = kernel.arguments.iter().map(|bytes| bytes.as_ptr()).collect();
    // SAFETY: there is an argument for each parameter, of its size; all lists stay during the call.
    given_back(unsafe { cuLaunchKernelEx(&raw const config, function, arguments.as_ptr(), ptr::null()) })
}

pub(super) fn copy(copy: &Copy3D, stream: u64) -> u32 {
    // SAFETY: the program has given the driver this copy, and vouches for its ranges.
    given_back(unsafe { cuMemcpy3DAsync_v2(copy, stream) })
}

pub(super) fn fill(fill: &Fill, stream: u64) -> u32 {
    let Fill { to, pitch, value, size, width, height } = *fill;
    let [low, second, ..] = value.to_le_bytes();
    let half = u16::from_le_bytes([low, second]);
    // SAFETY: the program has given the driver this memory to fill, and vouches for it.
    given_back(unsafe {
        match (size, height) {
            (1, 0 | 1) => cuMemsetD8Async(to, low, width, stream),
            (2, 0 | 1) => cuMemsetD16Async(to, half, width, stream),
            (4, 0 | 1) => cuMemsetD32Async(to, value, width, stream),
            (1, _) => cuMemsetD2D8Async(to, pitch, low, width, height, stream),
            (2, _) => cuMemsetD2D16Async(to, pitch, half, width, height, stream),
            (4, _) => cuMemsetD2D32Async(to, pitch, value, width, height, stream),
            _ => Err(Code::INVALID_VALUE),
        }
    })
}

/// Has a stream call a function.
pub(super) fn call(function: HostFunction, data: *mut c_void, stream: u64) -> u32 {
    // SAFETY: who gives a function gives the data that it takes.
    given_back(unsafe { cuLaunchHostFunc(stream, function, data) })
}

pub(super) fn record(event: u64, stream: u64) -> u32 {
    // SAFETY: takes handles, which the driver knows or refuses.
    given_back(unsafe { cuEventRecord(event, stream) })
}

pub(super) fn wait(event: u64, stream: u64) -> u32 {
    // SAFETY: takes handles, which the driver knows or refuses.
    given_back(unsafe { cuStreamWaitEvent(stream, event, 0) })
}
