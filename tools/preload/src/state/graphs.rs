//! Graphs: built node by node or captured, made ready, launched.

use std::sync::Arc;

use ptxrace::session::exec::log::Gap;
use rustc_hash::FxHashMap;

use super::{Driver, Side, Stream};
use crate::api::Copy3D;
use crate::code::{Answer, Code};
use crate::graph::{Fill, HostFunction, Item, Plan, Source, Work};
use crate::watch::{Branches, Ended, Rows, Timing};

#[derive(Debug, Default)]
struct Graph {
    /// In the order in which they were made.
    nodes: Vec<u64>,
    /// What became of the nodes of the graph that this one is a clone of.
    clones: FxHashMap<u64, u64>,
}

#[derive(Debug)]
struct Node {
    graph: u64,
    item: Item,
    after: Vec<u64>,
    /// Where the arguments of a kernel lie, for who asks.
    addresses: Vec<u64>,
}

#[derive(Debug)]
struct Ready {
    plan: Arc<Plan>,
    /// How it ended when it was launched last.
    last: Option<Ended>,
}

/// All graphs.
#[derive(Debug, Default)]
pub(super) struct Graphs {
    all: FxHashMap<u64, Graph>,
    nodes: FxHashMap<u64, Node>,
    ready: FxHashMap<u64, Ready>,
}

/// A launch of a graph.
pub(crate) struct Running {
    graph: u64,
    plan: Arc<Plan>,
    branches: Branches,
}

impl Running {
    pub(crate) fn steps(&self) -> usize {
        self.plan.steps().len()
    }
}

impl Source for Graphs {
    fn nodes(&mut self, graph: u64) -> Result<Vec<u64>, String> {
        self.all.get(&graph).map(|graph| graph.nodes.clone()).ok_or_else(|| "there is no such graph".into())
    }

    fn edges(&mut self, graph: u64) -> Result<Vec<(u64, u64)>, String> {
        let nodes = self.nodes(graph)?;
        let before = |node: u64| self.nodes.get(&node).map_or(Vec::new(), |found| found.after.clone());
        Ok(nodes.into_iter().flat_map(|to| before(to).into_iter().map(move |from| (from, to))).collect())
    }

    fn item(&mut self, node: u64) -> Result<Item, String> {
        self.nodes.get(&node).map(|node| node.item.clone()).ok_or_else(|| "there is no such node".into())
    }
}

impl Driver {
    pub(crate) fn create_graph(&mut self) -> u64 {
        let handle = self.handle();
        self.graphs.all.insert(handle, Graph::default());
        handle
    }

    pub(crate) fn destroy_graph(&mut self, graph: u64) -> Answer {
        let gone = self.graphs.all.remove(&graph).ok_or(Code::INVALID_VALUE)?;
        for node in gone.nodes {
            if let Some(Node { item: Item::Graph(child), .. }) = self.graphs.nodes.remove(&node) {
                self.destroy_graph(child)?;
            }
        }
        Ok(())
    }

    /// Adds a node behind others.
    pub(crate) fn add_node(&mut self, graph: u64, after: &[u64], item: Item) -> Answer<u64> {
        let known = self.graphs.all.get(&graph).ok_or(Code::INVALID_VALUE)?;
        if !after.iter().all(|node| known.nodes.contains(node)) {
            return Err(Code::INVALID_VALUE);
        }
        let item = match item {
            Item::Graph(child) => Item::Graph(self.clone_graph(child)?),
            work @ Item::Work(_) => work,
        };
        let handle = self.handle();
        let addresses = addresses(&item);
        self.graphs.nodes.insert(handle, Node { graph, item, after: after.to_vec(), addresses });
        if let Some(graph) = self.graphs.all.get_mut(&graph) {
            graph.nodes.push(handle);
        }
        Ok(handle)
    }

    pub(crate) fn remove_node(&mut self, node: u64) -> Answer {
        let gone = self.graphs.nodes.remove(&node).ok_or(Code::INVALID_VALUE)?;
        let graph = self.graphs.all.get_mut(&gone.graph).ok_or(Code::INVALID_VALUE)?;
        graph.nodes.retain(|other| *other != node);
        self.graphs.nodes.values_mut().for_each(|other| other.after.retain(|before| *before != node));
        Ok(())
    }

    /// Adds edges, or takes them away.
    pub(crate) fn connect(&mut self, graph: u64, edges: &[(u64, u64)], add: bool) -> Answer {
        let known = self.graphs.all.get(&graph).ok_or(Code::INVALID_VALUE)?;
        if !edges.iter().all(|(from, to)| known.nodes.contains(from) && known.nodes.contains(to)) {
            return Err(Code::INVALID_VALUE);
        }
        for (from, to) in edges {
            let node = self.graphs.nodes.get_mut(to).ok_or(Code::INVALID_VALUE)?;
            let there = node.after.contains(from);
            match add {
                true if !there => node.after.push(*from),
                false if there => node.after.retain(|before| before != from),
                _ => return Err(Code::INVALID_VALUE),
            }
        }
        Ok(())
    }

    pub(crate) fn clone_graph(&mut self, graph: u64) -> Answer<u64> {
        let nodes = self.graphs.all.get(&graph).ok_or(Code::INVALID_VALUE)?.nodes.clone();
        let clone = self.create_graph();
        let mut clones = FxHashMap::default();
        for node in &nodes {
            let item = self.graphs.nodes.get(node).ok_or(Code::INVALID_VALUE)?.item.clone();
            clones.insert(*node, self.add_node(clone, &[], item)?);
        }
        for node in &nodes {
            let before = self.nodes_before(*node);
            let after = before.iter().filter_map(|before| clones.get(before).copied()).collect();
            let own = clones.get(node).and_then(|own| self.graphs.nodes.get_mut(own));
            own.ok_or(Code::INVALID_VALUE)?.after = after;
        }
        if let Some(clone) = self.graphs.all.get_mut(&clone) {
            clone.clones = clones;
        }
        Ok(clone)
    }

    /// What became of a node in a clone of its graph.
    pub(crate) fn in_clone(&self, node: u64, clone: u64) -> Answer<u64> {
        let clone = self.graphs.all.get(&clone).ok_or(Code::INVALID_VALUE)?;
        clone.clones.get(&node).copied().ok_or(Code::INVALID_VALUE)
    }

    pub(crate) fn graph_nodes(&mut self, graph: u64) -> Answer<Vec<u64>> {
        self.graphs.nodes(graph).map_err(|_| Code::INVALID_VALUE)
    }

    pub(crate) fn graph_edges(&mut self, graph: u64) -> Answer<Vec<(u64, u64)>> {
        self.graphs.edges(graph).map_err(|_| Code::INVALID_VALUE)
    }

    /// What a node comes after.
    pub(crate) fn nodes_before(&self, node: u64) -> Vec<u64> {
        self.graphs.nodes.get(&node).map_or(Vec::new(), |node| node.after.clone())
    }

    pub(crate) fn item(&self, node: u64) -> Answer<&Item> {
        self.graphs.nodes.get(&node).map(|node| &node.item).ok_or(Code::INVALID_VALUE)
    }

    /// Where the addresses of a kernel node's arguments lie, until it is changed.
    pub(crate) fn argument_addresses(&self, node: u64) -> Answer<usize> {
        let node = self.graphs.nodes.get(&node).ok_or(Code::INVALID_VALUE)?;
        Ok(node.addresses.as_ptr() as usize)
    }

    /// A node does something else, of the same kind.
    pub(crate) fn set_work(&mut self, node: u64, work: Work) -> Answer {
        let node = self.graphs.nodes.get_mut(&node).ok_or(Code::INVALID_VALUE)?;
        let Item::Work(own) = &mut node.item else { return Err(Code::INVALID_VALUE) };
        if !own.replace(work) {
            return Err(Code::INVALID_VALUE);
        }
        node.addresses = addresses(&node.item);
        Ok(())
    }

    /// Makes a graph ready. What becomes of it later does not matter to what is launched.
    pub(crate) fn instantiate(&mut self, graph: u64) -> Answer<u64> {
        let plan = Plan::new(&mut self.graphs, graph).map_err(|_| Code::INVALID_VALUE)?;
        let handle = self.handle();
        self.graphs.ready.insert(handle, Ready { plan: Arc::new(plan), last: None });
        Ok(handle)
    }

    pub(crate) fn destroy_ready(&mut self, graph: u64) -> Answer {
        let gone = self.graphs.ready.remove(&graph).ok_or(Code::INVALID_VALUE)?;
        gone.last.into_iter().for_each(|ended| self.watch.forget_graph(ended));
        Ok(())
    }

    fn ready_plan(&mut self, graph: u64) -> Answer<&mut Plan> {
        let ready = self.graphs.ready.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
        Ok(Arc::make_mut(&mut ready.plan))
    }

    /// A node of a graph that is ready does something else.
    pub(crate) fn set_ready_work(&mut self, graph: u64, node: u64, work: Work) -> Answer {
        if self.ready_plan(graph)?.set(node, work) { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }

    pub(crate) fn enable(&mut self, graph: u64, node: u64, enabled: bool) -> Answer {
        if self.ready_plan(graph)?.enable(node, enabled) { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }

    pub(crate) fn is_enabled(&mut self, graph: u64, node: u64) -> Answer<bool> {
        self.ready_plan(graph)?.is_enabled(node).ok_or(Code::INVALID_VALUE)
    }

    /// A graph that is ready does what another does, if their nodes are alike.
    pub(crate) fn update(&mut self, ready: u64, graph: u64) -> Answer {
        let other = Plan::new(&mut self.graphs, graph).map_err(|_| Code::INVALID_VALUE)?;
        let plan = self.ready_plan(ready)?;
        if !plan.is_like(&other) {
            return Err(Code::GRAPH_EXEC_UPDATE_FAILURE);
        }
        plan.update(&other);
        Ok(())
    }

    pub(crate) fn begin_graph(&mut self, graph: u64, stream: Stream) -> Answer<Running> {
        if self.is_capturing(stream) {
            let detail = "the program captured a launch of a graph, which is not provided";
            self.watch.gap(Gap::Call, detail.into());
            return Err(Code::NOT_SUPPORTED);
        }
        let ready = self.graphs.ready.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
        let plan = Arc::clone(&ready.plan);
        let branches = self.watch.begin_graph(stream, ready.last.take());
        Ok(Running { graph, plan, branches })
    }

    /// Runs the next step. Gives the function of the host that it calls, and its data.
    pub(crate) fn step(&mut self, running: &mut Running, at: usize) -> Answer<Option<(HostFunction, u64)>> {
        let step = running.plan.steps().get(at).ok_or(Code::INVALID_VALUE)?;
        let stream = self.watch.branch(&mut running.branches, &step.after);
        let mut call = None;
        match &step.work {
            _ if !step.enabled => {}
            Work::Kernel(kernel) => self.run(kernel, stream)?,
            Work::Copy(copy) => {
                let (sides, slices) = copy.sides(&self.watch.textures)?;
                for rows in slices {
                    self.copy("memcpy node", sides, rows, stream, Timing::Async)?;
                }
            }
            Work::Fill(fill) => self.run_fill(fill, stream)?,
            Work::Host(function, data) => call = Some((*function, *data)),
            Work::Record(event) => self.watch.record(*event, stream)?,
            Work::Wait(event) => self.watch.wait(stream, *event)?,
            Work::Empty => {}
        }
        self.watch.stepped(&mut running.branches, stream);
        Ok(call)
    }

    fn run_fill(&mut self, fill: &Fill, stream: Stream) -> Answer {
        let value = fill.value.to_le_bytes();
        let pattern = value.get(..fill.size as usize).ok_or(Code::INVALID_VALUE)?;
        self.fill("memset node", pattern, fill.rows(), stream, Timing::Async)
    }

    pub(crate) fn end_graph(&mut self, running: Running) {
        let ended = self.watch.end_graph(running.branches, running.plan.last());
        match self.graphs.ready.get_mut(&running.graph) {
            Some(ready) => ready.last = Some(ended),
            None => self.watch.forget_graph(ended),
        }
    }

    /// Rows as the node of a graph that copies them.
    pub(super) fn capture_copy(&mut self, sides: (Side, Side), rows: Rows, stream: Stream) -> Answer {
        self.capture(stream, Work::Copy(Copy3D::of_rows(sides, rows)))
    }
}

/// Addresses of a kernel's arguments.
fn addresses(item: &Item) -> Vec<u64> {
    match item {
        Item::Work(Work::Kernel(kernel)) => {
            kernel.arguments.iter().map(|bytes| bytes.as_ptr() as u64).collect()
        }
        _ => Vec::new(),
    }
}
