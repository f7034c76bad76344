//! Graphs that are ready to be launched: made, changed, launched.

use std::ffi::{c_char, c_void};

use super::graphs::{fill, first_kernel, host, kernel, work};
use super::{Copy3D, calls, get, put, put_if};
use crate::code::Answer;
use crate::graph::{Fill, HostParams, KernelParams, KernelParamsV2, Work};
use crate::process::{with, within};

fn set_ready(graph: u64, node: u64, work: Work) -> Answer {
    within(|driver| driver.set_ready_work(graph, node, work))
}

fn instantiate(ready: *mut u64, graph: u64) -> Answer {
    put(ready, within(|driver| driver.instantiate(graph))?)
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Instantiation {
    flags: u64,
    stream: u64,
    node: u64,
    result: u32,
}

/// `CUgraphExecUpdateResultInfo`
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct UpdateResult {
    result: u32,
    node: u64,
    from: u64,
}

/// The graphs do not have the same nodes.
const TOPOLOGY_CHANGED: u32 = 2;

calls! {
    fn cuGraphInstantiate(
        cx;
        ready: *mut u64,
        graph: u64,
        node: *mut u64,
        log: *mut c_char,
        bytes: usize,
    ) as [cuGraphInstantiate_v2] per_thread [] {
        put_if(node, 0);
        if bytes > 0 {
            put_if(log, 0);
        }
        instantiate(ready, graph)
    }

    fn cuGraphInstantiateWithFlags(cx; ready: *mut u64, graph: u64, flags: u64) as [] per_thread [] {
        let _ = flags;
        instantiate(ready, graph)
    }

    fn cuGraphInstantiateWithParams(
        cx;
        ready: *mut u64,
        graph: u64,
        params: *mut Instantiation,
    ) as [] per_thread [cuGraphInstantiateWithParams_ptsz] {
        let given = get(params)?;
        put(params, Instantiation { node: 0, result: 0, ..given })?;
        instantiate(ready, graph)
    }

    fn cuGraphExecDestroy(cx; graph: u64) as [] per_thread [] {
        within(|driver| driver.destroy_ready(graph))
    }

    fn cuGraphExecGetFlags(cx; graph: u64, flags: *mut u64) as [] per_thread [] {
        let _ = graph;
        put(flags, 0)
    }

    fn cuGraphExecKernelNodeSetParams(
        cx;
        graph: u64,
        node: u64,
        params: *const KernelParams,
    ) as [] per_thread [] {
        set_ready(graph, node, first_kernel(params)?)
    }

    fn cuGraphExecKernelNodeSetParams_v2(
        cx;
        graph: u64,
        node: u64,
        params: *const KernelParamsV2,
    ) as [] per_thread [] {
        set_ready(graph, node, kernel(get(params)?)?)
    }

    fn cuGraphExecMemcpyNodeSetParams(
        cx;
        graph: u64,
        node: u64,
        copy: *const Copy3D,
        context: u64,
    ) as [] per_thread [] {
        let _ = context;
        set_ready(graph, node, Work::Copy(get(copy)?))
    }

    fn cuGraphExecMemsetNodeSetParams(
        cx;
        graph: u64,
        node: u64,
        params: *const Fill,
        context: u64,
    ) as [] per_thread [] {
        let _ = context;
        set_ready(graph, node, fill(get(params)?)?)
    }

    fn cuGraphExecHostNodeSetParams(cx; graph: u64, node: u64, params: *const HostParams) as [] per_thread [] {
        set_ready(graph, node, host(get(params)?)?)
    }

    fn cuGraphExecEventRecordNodeSetEvent(cx; graph: u64, node: u64, event: u64) as [] per_thread [] {
        set_ready(graph, node, Work::Record(event))
    }

    fn cuGraphExecEventWaitNodeSetEvent(cx; graph: u64, node: u64, event: u64) as [] per_thread [] {
        set_ready(graph, node, Work::Wait(event))
    }

    fn cuGraphExecNodeSetParams(cx; graph: u64, node: u64, params: *const c_void) as [] per_thread [] {
        set_ready(graph, node, work(params)?)
    }

    fn cuGraphNodeSetEnabled(cx; graph: u64, node: u64, enabled: u32) as [] per_thread [] {
        within(|driver| driver.enable(graph, node, enabled != 0))
    }

    fn cuGraphNodeGetEnabled(cx; graph: u64, node: u64, enabled: *mut u32) as [] per_thread [] {
        put(enabled, within(|driver| driver.is_enabled(graph, node))?.into())
    }

    fn cuGraphExecUpdate(
        cx;
        ready: u64,
        graph: u64,
        node: *mut u64,
        result: *mut u32,
    ) as [] per_thread [] {
        let updated = within(|driver| driver.update(ready, graph));
        put_if(node, 0);
        put_if(result, if updated.is_ok() { 0 } else { TOPOLOGY_CHANGED });
        updated
    }

    fn cuGraphExecUpdate_v2(cx; ready: u64, graph: u64, result: *mut UpdateResult) as [] per_thread [] {
        let updated = within(|driver| driver.update(ready, graph));
        let code = if updated.is_ok() { 0 } else { TOPOLOGY_CHANGED };
        put_if(result, UpdateResult { result: code, node: 0, from: 0 });
        updated
    }

    fn cuGraphUpload(cx; graph: u64, stream: u64) as [] per_thread [cuGraphUpload_ptsz] {
        let _ = (graph, stream);
        Ok(())
    }

    fn cuGraphLaunch(cx; graph: u64, stream: u64) as [] per_thread [cuGraphLaunch_ptsz] {
        let mut running = within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.begin_graph(graph, stream)
        })?;
        let ran = (0..running.steps()).try_for_each(|at| {
            // No lock is held while the host's functions run.
            if let Some((function, data)) = within(|driver| driver.step(&mut running, at))? {
                function(data as *mut c_void);
            }
            Ok(())
        });
        with(|driver| {
            driver.end_graph(running);
            ran
        })
    }
}
