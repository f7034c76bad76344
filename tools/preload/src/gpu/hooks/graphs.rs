//! Graphs: made ready, changed, launched. How they are built is not followed: they are read when they are made ready.

use std::ffi::{c_char, c_void};

use super::{done, hooks};
use crate::api::{Copy3D, get};
use crate::gpu::{Gpu, driver, nodes};
use crate::graph::{Fill, HostParams, KernelParams, KernelParamsV2, NodeParams, Of, Work};
use crate::process::watching;

/// A graph was made ready.
fn ready(code: u32, made: *mut u64, graph: u64, flags: u64) -> u32 {
    done(code, |gpu| {
        if let Ok(made) = get(made) {
            gpu.made_ready(made, graph, flags);
        }
    })
}

/// A node does something else from now on; what, is not known where it cannot be read.
fn changed(code: u32, graph: u64, node: u64, work: impl FnOnce() -> Option<Work>) -> u32 {
    done(code, |gpu| gpu.changed(graph, |plan| work().is_some_and(|work| plan.set(node, work))))
}

fn kernel(params: Option<KernelParamsV2>) -> Option<Work> {
    nodes::kernel(&params?).ok().map(Work::Kernel)
}

fn host(params: HostParams) -> Option<Work> {
    Some(Work::Host(params.function?, params.data))
}

fn any(params: *const c_void) -> Option<Work> {
    match NodeParams::read(params).ok()? {
        Of::Kernel(params) => kernel(Some(params)),
        Of::Copy(copy) => Some(Work::Copy(copy)),
        Of::Fill(fill) => Some(Work::Fill(fill)),
        Of::Host(params) => host(params),
        Of::Other(..) => None,
    }
}

hooks! {
    fn cuGraphInstantiate(
        cx, real;
        made: *mut u64,
        graph: u64,
        node: *mut u64,
        log: *mut c_char,
        bytes: usize,
    ) as [cuGraphInstantiate cuGraphInstantiate_v2] per_thread [] {
        ready(real(made, graph, node, log, bytes), made, graph, 0)
    }

    fn cuGraphInstantiateWithFlags(
        cx, real;
        made: *mut u64,
        graph: u64,
        flags: u64,
    ) as [cuGraphInstantiateWithFlags] per_thread [] {
        ready(real(made, graph, flags), made, graph, flags)
    }

    fn cuGraphInstantiateWithParams(
        cx, real;
        made: *mut u64,
        graph: u64,
        params: *mut u64,
    ) as [cuGraphInstantiateWithParams] per_thread [cuGraphInstantiateWithParams_ptsz] {
        // They begin with the flags.
        let flags = get(params).unwrap_or(0);
        ready(real(made, graph, params), made, graph, flags)
    }

    fn cuGraphExecDestroy(cx, real; graph: u64) as [cuGraphExecDestroy] per_thread [] {
        done(real(graph), |gpu| gpu.not_ready(graph))
    }

    fn cuGraphExecUpdate(
        cx, real;
        graph: u64,
        other: u64,
        node: *mut u64,
        result: *mut u32,
    ) as [cuGraphExecUpdate] per_thread [] {
        done(real(graph, other, node, result), |gpu| gpu.updated(graph, other))
    }

    fn cuGraphExecUpdate_v2(
        cx, real;
        graph: u64,
        other: u64,
        result: *mut c_void,
    ) as [cuGraphExecUpdate_v2] per_thread [] {
        done(real(graph, other, result), |gpu| gpu.updated(graph, other))
    }

    fn cuGraphExecKernelNodeSetParams(
        cx, real;
        graph: u64,
        node: u64,
        params: *const KernelParams,
    ) as [cuGraphExecKernelNodeSetParams] per_thread [] {
        changed(real(graph, node, params), graph, node, || kernel(get(params).ok().map(KernelParamsV2::from)))
    }

    fn cuGraphExecKernelNodeSetParams_v2(
        cx, real;
        graph: u64,
        node: u64,
        params: *const KernelParamsV2,
    ) as [cuGraphExecKernelNodeSetParams_v2] per_thread [] {
        changed(real(graph, node, params), graph, node, || kernel(get(params).ok()))
    }

    fn cuGraphExecMemcpyNodeSetParams(
        cx, real;
        graph: u64,
        node: u64,
        copy: *const Copy3D,
        context: u64,
    ) as [cuGraphExecMemcpyNodeSetParams] per_thread [] {
        changed(real(graph, node, copy, context), graph, node, || get(copy).ok().map(Work::Copy))
    }

    fn cuGraphExecMemsetNodeSetParams(
        cx, real;
        graph: u64,
        node: u64,
        params: *const Fill,
        context: u64,
    ) as [cuGraphExecMemsetNodeSetParams] per_thread [] {
        changed(real(graph, node, params, context), graph, node, || get(params).ok().map(Work::Fill))
    }

    fn cuGraphExecHostNodeSetParams(
        cx, real;
        graph: u64,
        node: u64,
        params: *const HostParams,
    ) as [cuGraphExecHostNodeSetParams] per_thread [] {
        changed(real(graph, node, params), graph, node, || host(get(params).ok()?))
    }

    fn cuGraphExecChildGraphNodeSetParams(
        cx, real;
        graph: u64,
        node: u64,
        child: u64,
    ) as [cuGraphExecChildGraphNodeSetParams] per_thread [] {
        changed(real(graph, node, child), graph, node, || None)
    }

    fn cuGraphExecEventRecordNodeSetEvent(
        cx, real;
        graph: u64,
        node: u64,
        event: u64,
    ) as [cuGraphExecEventRecordNodeSetEvent] per_thread [] {
        changed(real(graph, node, event), graph, node, || Some(Work::Record(event)))
    }

    fn cuGraphExecEventWaitNodeSetEvent(
        cx, real;
        graph: u64,
        node: u64,
        event: u64,
    ) as [cuGraphExecEventWaitNodeSetEvent] per_thread [] {
        changed(real(graph, node, event), graph, node, || Some(Work::Wait(event)))
    }

    fn cuGraphExecNodeSetParams(
        cx, real;
        graph: u64,
        node: u64,
        params: *mut c_void,
    ) as [cuGraphExecNodeSetParams] per_thread [] {
        changed(real(graph, node, params), graph, node, || any(params))
    }

    fn cuGraphNodeSetEnabled(
        cx, real;
        graph: u64,
        node: u64,
        enabled: u32,
    ) as [cuGraphNodeSetEnabled] per_thread [] {
        done(real(graph, node, enabled), |gpu| gpu.changed(graph, |plan| plan.enable(node, enabled != 0)))
    }

    fn cuGraphLaunch(cx, real; graph: u64, stream: u64) as [cuGraphLaunch] per_thread [cuGraphLaunch_ptsz] {
        let handle = cx.handle(stream);
        // A launch that is captured becomes a node of another graph.
        if crate::gpu::given_up() || driver::is_capturing(handle) {
            return real(graph, stream);
        }
        let launched = watching(|gpu: &mut Gpu| {
            gpu.catch_up();
            gpu.launch_graph(graph, handle)
        });
        launched.flatten().unwrap_or_else(|| real(graph, stream))
    }
}
