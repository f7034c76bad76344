//! Graphs and their nodes, as they are built.

use std::ffi::c_void;

use super::functions::{cluster_of, packed};
use super::{Copy3D, calls, get, put};
use crate::code::{Answer, Code};
use crate::graph::{self, Fill, GRAPH, HostParams, Item, KernelParams, KernelParamsV2, NodeParams, Of, Work};
use crate::process::within;
use crate::state::Config;
use crate::watch::Stream;

/// So many handles of the program's.
fn list(from: *const u64, count: usize) -> Answer<Vec<u64>> {
    (0..count).map(|at| get(from.wrapping_add(at))).collect()
}

/// Edges between nodes: without data, or with data that says no more than that they are whole.
fn edges(from: *const u64, to: *const u64, data: *const u64, count: usize) -> Answer<Vec<(u64, u64)>> {
    if !data.is_null() && list(data, count)?.iter().any(|data| *data != 0) {
        return Err(Code::NOT_SUPPORTED);
    }
    Ok(list(from, count)?.into_iter().zip(list(to, count)?).collect())
}

/// Gives a list to the program, which has room for `count` entries and is told how many there are.
fn give(to: *mut u64, count: *mut usize, all: &[u64]) -> Answer {
    if !to.is_null() {
        let room = get(count)?;
        let padded = all.iter().copied().chain(std::iter::repeat(0));
        padded.take(room).enumerate().try_for_each(|(at, one)| put(to.wrapping_add(at), one))?;
        return put(count, room.min(all.len()));
    }
    put(count, all.len())
}

fn add(node: *mut u64, graph: u64, after: *const u64, count: usize, item: Item) -> Answer {
    let after = list(after, count)?;
    put(node, within(|driver| driver.add_node(graph, &after, item))?)
}

/// What a kernel node is to launch.
pub(super) fn kernel(params: KernelParamsV2) -> Answer<Work> {
    let first = params.first;
    let packed = packed(first.extra as *const usize)?;
    let config = Config {
        grid: first.grid,
        block: first.block,
        cluster: None,
        shared: first.shared,
        stream: Stream::LEGACY,
        arguments: first.arguments,
        packed,
    };
    within(|driver| driver.prepare(params.function(), &config)).map(Work::Kernel)
}

pub(super) fn first_kernel(params: *const KernelParams) -> Answer<Work> {
    kernel(KernelParamsV2::from(get(params)?))
}

pub(super) fn fill(params: Fill) -> Answer<Work> {
    if !matches!(params.size, 1 | 2 | 4) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(Work::Fill(params))
}

pub(super) fn host(params: HostParams) -> Answer<Work> {
    Ok(Work::Host(params.function.ok_or(Code::INVALID_VALUE)?, params.data))
}

/// What a node of any kind is to do.
fn item(params: *const c_void) -> Answer<Item> {
    Ok(Item::Work(match NodeParams::read(params)? {
        Of::Kernel(params) => kernel(params)?,
        Of::Copy(copy) => Work::Copy(copy),
        Of::Fill(params) => fill(params)?,
        Of::Host(params) => host(params)?,
        Of::Other(GRAPH, at) => return Ok(Item::Graph(get(at.cast())?)),
        Of::Other(graph::EMPTY, _) => Work::Empty,
        Of::Other(graph::WAIT, at) => Work::Wait(get(at.cast())?),
        Of::Other(graph::RECORD, at) => Work::Record(get(at.cast())?),
        Of::Other(kind, _) => {
            let detail = format!("the program made a graph's node of kind {kind}, which is not provided");
            crate::process::gap(ptxrace::session::exec::log::Gap::Call, detail);
            return Err(Code::NOT_SUPPORTED);
        }
    }))
}

pub(super) fn work(params: *const c_void) -> Answer<Work> {
    match item(params)? {
        Item::Work(work) => Ok(work),
        Item::Graph(_) => Err(Code::NOT_SUPPORTED),
    }
}

/// Asks a node for what only nodes of one kind have.
fn ask<T>(node: u64, of: impl Fn(&Work) -> Option<T>) -> Answer<T> {
    within(|driver| match driver.item(node)? {
        Item::Work(work) => of(work).ok_or(Code::INVALID_VALUE),
        Item::Graph(_) => Err(Code::INVALID_VALUE),
    })
}

fn kernel_params(node: u64) -> Answer<KernelParams> {
    let of = |work: &Work| match work {
        Work::Kernel(kernel) => Some((kernel.function, kernel.grid, kernel.block, kernel.shared)),
        _ => None,
    };
    let (function, grid, block, shared) = ask(node, of)?;
    let arguments = within(|driver| driver.argument_addresses(node))? as u64;
    Ok(KernelParams { function, grid, block, shared, arguments, extra: 0 })
}

fn set(node: u64, work: Work) -> Answer {
    within(|driver| driver.set_work(node, work))
}

/// Attributes of kernel nodes.
const COOPERATIVE: u32 = 2;
const CLUSTER: u32 = 4;

calls! {
    fn cuGraphCreate(cx; graph: *mut u64, flags: u32) as [] per_thread [] {
        let _ = flags;
        put(graph, within(|driver| Ok(driver.create_graph()))?)
    }

    fn cuGraphDestroy(cx; graph: u64) as [] per_thread [] {
        within(|driver| driver.destroy_graph(graph))
    }

    fn cuGraphClone(cx; clone: *mut u64, graph: u64) as [] per_thread [] {
        put(clone, within(|driver| driver.clone_graph(graph))?)
    }

    fn cuGraphNodeFindInClone(cx; node: *mut u64, original: u64, clone: u64) as [] per_thread [] {
        put(node, within(|driver| driver.in_clone(original, clone))?)
    }

    fn cuGraphDestroyNode(cx; node: u64) as [] per_thread [] {
        within(|driver| driver.remove_node(node))
    }

    fn cuGraphAddKernelNode(
        cx;
        node: *mut u64,
        graph: u64,
        after: *const u64,
        count: usize,
        params: *const KernelParams,
    ) as [] per_thread [] {
        add(node, graph, after, count, Item::Work(first_kernel(params)?))
    }

    fn cuGraphAddKernelNode_v2(
        cx;
        node: *mut u64,
        graph: u64,
        after: *const u64,
        count: usize,
        params: *const KernelParamsV2,
    ) as [] per_thread [] {
        add(node, graph, after, count, Item::Work(kernel(get(params)?)?))
    }

    fn cuGraphAddMemcpyNode(
        cx;
        node: *mut u64,
        graph: u64,
        after: *const u64,
        count: usize,
        copy: *const Copy3D,
        context: u64,
    ) as [] per_thread [] {
        let _ = context;
        add(node, graph, after, count, Item::Work(Work::Copy(get(copy)?)))
    }

    fn cuGraphAddMemsetNode(
        cx;
        node: *mut u64,
        graph: u64,
        after: *const u64,
        count: usize,
        params: *const Fill,
        context: u64,
    ) as [] per_thread [] {
        let _ = context;
        add(node, graph, after, count, Item::Work(fill(get(params)?)?))
    }

    fn cuGraphAddHostNode(
        cx;
        node: *mut u64,
        graph: u64,
        after: *const u64,
        count: usize,
        params: *const HostParams,
    ) as [] per_thread [] {
        add(node, graph, after, count, Item::Work(host(get(params)?)?))
    }

    fn cuGraphAddChildGraphNode(
        cx;
        node: *mut u64,
        graph: u64,
        after: *const u64,
        count: usize,
        child: u64,
    ) as [] per_thread [] {
        add(node, graph, after, count, Item::Graph(child))
    }

    fn cuGraphAddEmptyNode(cx; node: *mut u64, graph: u64, after: *const u64, count: usize) as [] per_thread [] {
        add(node, graph, after, count, Item::Work(Work::Empty))
    }

    fn cuGraphAddEventRecordNode(
        cx;
        node: *mut u64,
        graph: u64,
        after: *const u64,
        count: usize,
        event: u64,
    ) as [] per_thread [] {
        add(node, graph, after, count, Item::Work(Work::Record(event)))
    }

    fn cuGraphAddEventWaitNode(
        cx;
        node: *mut u64,
        graph: u64,
        after: *const u64,
        count: usize,
        event: u64,
    ) as [] per_thread [] {
        add(node, graph, after, count, Item::Work(Work::Wait(event)))
    }

    fn cuGraphAddNode(
        cx;
        node: *mut u64,
        graph: u64,
        after: *const u64,
        count: usize,
        params: *const c_void,
    ) as [] per_thread [] {
        add(node, graph, after, count, item(params)?)
    }

    fn cuGraphAddNode_v2(
        cx;
        node: *mut u64,
        graph: u64,
        after: *const u64,
        data: *const u64,
        count: usize,
        params: *const c_void,
    ) as [] per_thread [] {
        edges(after, after, data, count)?;
        add(node, graph, after, count, item(params)?)
    }

    fn cuGraphAddDependencies(cx; graph: u64, from: *const u64, to: *const u64, count: usize) as [] per_thread [] {
        let edges = edges(from, to, std::ptr::null(), count)?;
        within(|driver| driver.connect(graph, &edges, true))
    }

    fn cuGraphAddDependencies_v2(
        cx;
        graph: u64,
        from: *const u64,
        to: *const u64,
        data: *const u64,
        count: usize,
    ) as [] per_thread [] {
        let edges = edges(from, to, data, count)?;
        within(|driver| driver.connect(graph, &edges, true))
    }

    fn cuGraphRemoveDependencies(
        cx;
        graph: u64,
        from: *const u64,
        to: *const u64,
        count: usize,
    ) as [] per_thread [] {
        let edges = edges(from, to, std::ptr::null(), count)?;
        within(|driver| driver.connect(graph, &edges, false))
    }

    fn cuGraphRemoveDependencies_v2(
        cx;
        graph: u64,
        from: *const u64,
        to: *const u64,
        data: *const u64,
        count: usize,
    ) as [] per_thread [] {
        let edges = edges(from, to, data, count)?;
        within(|driver| driver.connect(graph, &edges, false))
    }

    fn cuGraphGetNodes(cx; graph: u64, nodes: *mut u64, count: *mut usize) as [] per_thread [] {
        give(nodes, count, &within(|driver| driver.graph_nodes(graph))?)
    }

    fn cuGraphGetRootNodes(cx; graph: u64, nodes: *mut u64, count: *mut usize) as [] per_thread [] {
        let roots = within(|driver| {
            let nodes = driver.graph_nodes(graph)?;
            Ok(nodes.into_iter().filter(|node| driver.nodes_before(*node).is_empty()).collect::<Vec<_>>())
        })?;
        give(nodes, count, &roots)
    }

    fn cuGraphGetEdges(cx; graph: u64, from: *mut u64, to: *mut u64, count: *mut usize) as [] per_thread [] {
        let (start, end): (Vec<_>, Vec<_>) = within(|driver| driver.graph_edges(graph))?.into_iter().unzip();
        let mut room = get(count)?;
        give(from, count, &start)?;
        give(to, &raw mut room, &end)
    }

    fn cuGraphGetEdges_v2(
        cx;
        graph: u64,
        from: *mut u64,
        to: *mut u64,
        data: *mut u64,
        count: *mut usize,
    ) as [] per_thread [] {
        let (start, end): (Vec<_>, Vec<_>) = within(|driver| driver.graph_edges(graph))?.into_iter().unzip();
        let (mut room, mut same) = (get(count)?, get(count)?);
        give(from, count, &start)?;
        give(to, &raw mut room, &end)?;
        give(data, &raw mut same, &vec![0; start.len()])
    }

    fn cuGraphNodeGetDependencies(cx; node: u64, nodes: *mut u64, count: *mut usize) as [] per_thread [] {
        give(nodes, count, &within(|driver| Ok(driver.nodes_before(node)))?)
    }

    fn cuGraphNodeGetType(cx; node: u64, kind: *mut u32) as [] per_thread [] {
        let of = within(|driver| match driver.item(node)? {
            Item::Work(work) => Ok(work.kind()),
            Item::Graph(_) => Ok(GRAPH),
        })?;
        put(kind, of)
    }

    fn cuGraphKernelNodeGetParams(cx; node: u64, params: *mut KernelParams) as [] per_thread [] {
        put(params, kernel_params(node)?)
    }

    fn cuGraphKernelNodeGetParams_v2(cx; node: u64, params: *mut KernelParamsV2) as [] per_thread [] {
        put(params, kernel_params(node)?.into())
    }

    fn cuGraphKernelNodeSetParams(cx; node: u64, params: *const KernelParams) as [] per_thread [] {
        set(node, first_kernel(params)?)
    }

    fn cuGraphKernelNodeSetParams_v2(cx; node: u64, params: *const KernelParamsV2) as [] per_thread [] {
        set(node, kernel(get(params)?)?)
    }

    fn cuGraphKernelNodeGetAttribute(cx; node: u64, which: u32, value: *mut [u32; 16]) as [] per_thread [] {
        let of = |work: &Work| match work {
            Work::Kernel(kernel) => Some((kernel.cluster.unwrap_or_default(), kernel.cooperative)),
            _ => None,
        };
        let (cluster, cooperative) = ask(node, of)?;
        let mut all = [0; 16];
        match which {
            COOPERATIVE => all[0] = cooperative.into(),
            CLUSTER => all[..3].copy_from_slice(&cluster),
            _ => {}
        }
        put(value, all)
    }

    fn cuGraphKernelNodeSetAttribute(cx; node: u64, which: u32, value: *const [u32; 16]) as [] per_thread [] {
        let value = get(value)?;
        let of = |work: &Work| match work {
            Work::Kernel(kernel) => Some(kernel.clone()),
            _ => None,
        };
        let mut kernel = ask(node, of)?;
        match which {
            COOPERATIVE => kernel.cooperative = value[0] != 0,
            CLUSTER => kernel.cluster = cluster_of(&value).or(kernel.cluster),
            _ => {}
        }
        set(node, Work::Kernel(kernel))
    }

    fn cuGraphMemcpyNodeGetParams(cx; node: u64, copy: *mut Copy3D) as [] per_thread [] {
        let of = |work: &Work| match work {
            Work::Copy(copy) => Some(*copy),
            _ => None,
        };
        put(copy, ask(node, of)?)
    }

    fn cuGraphMemcpyNodeSetParams(cx; node: u64, copy: *const Copy3D) as [] per_thread [] {
        set(node, Work::Copy(get(copy)?))
    }

    fn cuGraphMemsetNodeGetParams(cx; node: u64, params: *mut Fill) as [] per_thread [] {
        let of = |work: &Work| match work {
            Work::Fill(fill) => Some(*fill),
            _ => None,
        };
        put(params, ask(node, of)?)
    }

    fn cuGraphMemsetNodeSetParams(cx; node: u64, params: *const Fill) as [] per_thread [] {
        set(node, fill(get(params)?)?)
    }

    fn cuGraphHostNodeGetParams(cx; node: u64, params: *mut HostParams) as [] per_thread [] {
        let of = |work: &Work| match work {
            Work::Host(function, data) => Some(HostParams { function: Some(*function), data: *data }),
            _ => None,
        };
        put(params, ask(node, of)?)
    }

    fn cuGraphHostNodeSetParams(cx; node: u64, params: *const HostParams) as [] per_thread [] {
        set(node, host(get(params)?)?)
    }

    fn cuGraphChildGraphNodeGetGraph(cx; node: u64, graph: *mut u64) as [] per_thread [] {
        let child = within(|driver| match driver.item(node)? {
            Item::Graph(child) => Ok(*child),
            Item::Work(_) => Err(Code::INVALID_VALUE),
        })?;
        put(graph, child)
    }

    fn cuGraphEventRecordNodeGetEvent(cx; node: u64, event: *mut u64) as [] per_thread [] {
        let of = |work: &Work| match work {
            Work::Record(event) => Some(*event),
            _ => None,
        };
        put(event, ask(node, of)?)
    }

    fn cuGraphEventRecordNodeSetEvent(cx; node: u64, event: u64) as [] per_thread [] {
        set(node, Work::Record(event))
    }

    fn cuGraphEventWaitNodeGetEvent(cx; node: u64, event: *mut u64) as [] per_thread [] {
        let of = |work: &Work| match work {
            Work::Wait(event) => Some(*event),
            _ => None,
        };
        put(event, ask(node, of)?)
    }

    fn cuGraphEventWaitNodeSetEvent(cx; node: u64, event: u64) as [] per_thread [] {
        set(node, Work::Wait(event))
    }

    fn cuGraphNodeSetParams(cx; node: u64, params: *const c_void) as [] per_thread [] {
        set(node, work(params)?)
    }
}
