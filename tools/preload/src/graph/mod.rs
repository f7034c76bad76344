//! Graphs, whoever runs them: what their nodes do, and in which order. A graph that is ready to be launched is a list of steps in
//! an order that keeps its edges; child graphs are taken apart, so that what is left is order between single steps.

mod params;

pub(crate) use params::{Fill, HostParams, KernelParams, KernelParamsV2, NodeParams, Of};

use std::collections::BTreeSet;
use std::ffi::c_void;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::api::Copy3D;

/// A function of the host that a node calls.
pub(crate) type HostFunction = extern "C" fn(*mut c_void);

/// A launch, with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) function: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) shared: u32,
    pub(crate) cooperative: bool,
    /// The bytes of each.
    pub(crate) arguments: Vec<Vec<u8>>,
}

/// What a node does.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Kernel(Kernel),
    Copy(Copy3D),
    Fill(Fill),
    /// Calls a function of the host with this data.
    Host(HostFunction, u64),
    /// Records an event.
    Record(u64),
    /// Waits for an event.
    Wait(u64),
    Empty,
}

/// Kinds of nodes, as the driver numbers them.
pub(crate) const KERNEL: u32 = 0;
pub(crate) const COPY: u32 = 1;
pub(crate) const FILL: u32 = 2;
pub(crate) const HOST: u32 = 3;
pub(crate) const GRAPH: u32 = 4;
pub(crate) const EMPTY: u32 = 5;
pub(crate) const WAIT: u32 = 6;
pub(crate) const RECORD: u32 = 7;

impl Work {
    pub(crate) fn kind(&self) -> u32 {
        match self {
            Self::Kernel(_) => KERNEL,
            Self::Copy(_) => COPY,
            Self::Fill(_) => FILL,
            Self::Host(..) => HOST,
            Self::Empty => EMPTY,
            Self::Wait(_) => WAIT,
            Self::Record(_) => RECORD,
        }
    }

    /// Does something else from now on, if that is of the same kind. Attributes of a kernel stay.
    pub(crate) fn replace(&mut self, mut other: Self) -> bool {
        if let (Self::Kernel(own), Self::Kernel(other)) = (&*self, &mut other) {
            other.cluster = other.cluster.or(own.cluster);
            other.cooperative |= own.cooperative;
        }
        let alike = self.kind() == other.kind();
        if alike {
            *self = other;
        }
        alike
    }
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Work(Work),
    /// A graph of its own, by its handle.
    Graph(u64),
}

/// Where graphs are read from. What cannot be read is a reason why a graph is not followed.
pub(crate) trait Source {
    fn nodes(&mut self, graph: u64) -> Result<Vec<u64>, String>;
    /// From one node to another.
    fn edges(&mut self, graph: u64) -> Result<Vec<(u64, u64)>, String>;
    fn item(&mut self, node: u64) -> Result<Item, String>;
}

/// A node that is ready to be run.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) work: Work,
    /// Steps before it.
    pub(crate) after: Vec<usize>,
    pub(crate) enabled: bool,
}

/// A graph that is ready to be launched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    steps: Vec<Step>,
    by_node: FxHashMap<u64, usize>,
}

/// Graphs in graphs in graphs.
const DEPTH: usize = 32;

impl Plan {
    pub(crate) fn new(source: &mut dyn Source, graph: u64) -> Result<Self, String> {
        let mut plan = Self::default();
        plan.add(source, graph, &[], DEPTH)?;
        Ok(plan)
    }

    /// Adds the nodes of a graph behind some steps. Gives the steps that come last.
    fn add(
        &mut self,
        source: &mut dyn Source,
        graph: u64,
        behind: &[usize],
        depth: usize,
    ) -> Result<Vec<usize>, String> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err("its child graphs are nested too deep".into());
        };
        let nodes = source.nodes(graph)?;
        let edges = source.edges(graph)?;
        // What each node, by its place in the list, comes after; and what its end is once it was added.
        let place: FxHashMap<u64, usize> = nodes.iter().enumerate().map(|(at, node)| (*node, at)).collect();
        let (mut before, mut behind_it) = (vec![Vec::new(); nodes.len()], vec![Vec::new(); nodes.len()]);
        for (from, to) in edges {
            let (Some(from), Some(to)) = (place.get(&from), place.get(&to)) else {
                return Err("its edges lead to other graphs".into());
            };
            before[*to].push(*from);
            behind_it[*from].push(*to);
        }
        let mut missing: Vec<_> = before.iter().map(Vec::len).collect();
        let mut ready: BTreeSet<_> = (0..nodes.len()).filter(|at| missing[*at] == 0).collect();
        let mut ends: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        let mut added = 0;
        while let Some(at) = ready.pop_first() {
            added += 1;
            let mut after: Vec<usize> = before[at].iter().flat_map(|before| ends[*before].clone()).collect();
            if before[at].is_empty() {
                after.extend(behind);
            }
            after.sort_unstable();
            after.dedup();
            ends[at] = match source.item(nodes[at])? {
                Item::Graph(child) => self.add(source, child, &after, depth)?,
                Item::Work(work) => {
                    self.by_node.insert(nodes[at], self.steps.len());
                    self.steps.push(Step { work, after, enabled: true });
                    vec![self.steps.len() - 1]
                }
            };
            for next in &behind_it[at] {
                missing[*next] -= 1;
                if missing[*next] == 0 {
                    ready.insert(*next);
                }
            }
        }
        if added < nodes.len() {
            return Err("its edges go round in a circle".into());
        }
        if nodes.is_empty() {
            return Ok(behind.to_vec());
        }
        let last = (0..nodes.len()).filter(|at| behind_it[*at].is_empty());
        let last: BTreeSet<usize> = last.flat_map(|at| ends[at].clone()).collect();
        Ok(last.into_iter().collect())
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Steps that no other comes after.
    pub(crate) fn last(&self) -> impl Iterator<Item = usize> {
        let inner: FxHashSet<usize> = self.steps.iter().flat_map(|step| step.after.iter().copied()).collect();
        (0..self.steps.len()).filter(move |at| !inner.contains(at))
    }

    /// A node does something else from now on, of the same kind. Gives whether there is such a node.
    pub(crate) fn set(&mut self, node: u64, work: Work) -> bool {
        let step = self.by_node.get(&node).and_then(|at| self.steps.get_mut(*at));
        match step {
            Some(step) => step.work.replace(work),
            None => false,
        }
    }

    /// Whether a node does anything; `None` where there is no such node.
    pub(crate) fn is_enabled(&self, node: u64) -> Option<bool> {
        self.by_node.get(&node).and_then(|at| self.steps.get(*at)).map(|step| step.enabled)
    }

    /// A node is left out from now on, or not any more.
    pub(crate) fn enable(&mut self, node: u64, enabled: bool) -> bool {
        let step = self.by_node.get(&node).and_then(|at| self.steps.get_mut(*at));
        step.is_some_and(|step| {
            step.enabled = enabled;
            true
        })
    }

    /// Whether another plan has the same kinds of steps in the same order, so that it can take this one's place.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let alike = |(a, b): (&Step, &Step)| a.work.kind() == b.work.kind() && a.after == b.after;
        self.steps.len() == other.steps.len() && self.steps.iter().zip(&other.steps).all(alike)
    }

    /// Takes what the steps of a plan that is alike do. The nodes by which steps are known stay.
    pub(crate) fn update(&mut self, other: &Self) {
        self.steps.iter_mut().zip(&other.steps).for_each(|(own, other)| own.work = other.work.clone());
    }

    /// Whether some node is left out.
    pub(crate) fn has_disabled(&self) -> bool {
        self.steps.iter().any(|step| !step.enabled)
    }

    /// The same, of which no node is known any more.
    pub(crate) fn without_names(self) -> Self {
        Self { by_node: FxHashMap::default(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes, and edges between them.
    type Graph = (Vec<u64>, Vec<(u64, u64)>);

    /// Graphs by their handles, and which nodes are graphs.
    #[derive(Default)]
    struct Made {
        graphs: FxHashMap<u64, Graph>,
        children: FxHashMap<u64, u64>,
    }

    impl Source for Made {
        fn nodes(&mut self, graph: u64) -> Result<Vec<u64>, String> {
            Ok(self.graphs[&graph].0.clone())
        }
        fn edges(&mut self, graph: u64) -> Result<Vec<(u64, u64)>, String> {
            Ok(self.graphs[&graph].1.clone())
        }
        fn item(&mut self, node: u64) -> Result<Item, String> {
            Ok(self.children.get(&node).map_or(Item::Work(Work::Record(node)), |graph| Item::Graph(*graph)))
        }
    }

    fn order(plan: &Plan) -> Vec<(u64, Vec<u64>)> {
        let node = |at: usize| *plan.by_node.iter().find(|(_, other)| **other == at).unwrap().0;
        let steps = plan.steps().iter().enumerate();
        steps.map(|(at, step)| (node(at), step.after.iter().map(|at| node(*at)).collect())).collect()
    }

    #[test]
    fn steps_keep_the_edges_of_their_nodes() {
        let mut made = Made::default();
        made.graphs.insert(1, (vec![10, 11, 12, 13], vec![(13, 11), (11, 10), (12, 10), (13, 12)]));
        let plan = Plan::new(&mut made, 1).unwrap();
        let wanted = [(13, vec![]), (11, vec![13]), (12, vec![13]), (10, vec![11, 12])];
        assert_eq!(order(&plan), wanted);
        assert_eq!(plan.last().collect::<Vec<_>>(), [3]);
        made.graphs.get_mut(&1).unwrap().1.push((10, 13));
        assert!(Plan::new(&mut made, 1).unwrap_err().contains("circle"));
    }

    #[test]
    fn a_child_graph_comes_behind_what_its_node_comes_behind() {
        let mut made = Made::default();
        made.graphs.insert(1, (vec![10, 11, 12], vec![(10, 11), (11, 12)]));
        made.graphs.insert(2, (vec![20, 21], vec![]));
        made.children.insert(11, 2);
        let plan = Plan::new(&mut made, 1).unwrap();
        assert_eq!(order(&plan), [(10, vec![]), (20, vec![10]), (21, vec![10]), (12, vec![20, 21])]);
        // An empty one hands order on.
        made.graphs.insert(2, (vec![], vec![]));
        assert_eq!(order(&Plan::new(&mut made, 1).unwrap()), [(10, vec![]), (12, vec![10])]);
        // One in itself ends.
        made.graphs.insert(2, (vec![11], vec![]));
        assert!(Plan::new(&mut made, 1).unwrap_err().contains("too deep"));
    }

    #[test]
    fn a_node_keeps_its_kind() {
        let mut made = Made::default();
        made.graphs.insert(1, (vec![10], vec![]));
        let mut plan = Plan::new(&mut made, 1).unwrap();
        assert!(plan.set(10, Work::Record(7)));
        assert!(!plan.set(10, Work::Wait(7)));
        assert!(!plan.set(11, Work::Record(7)));
        assert!(matches!(plan.steps()[0].work, Work::Record(7)));
        assert!(plan.enable(10, false) && plan.has_disabled());
        let same = Plan::new(&mut made, 1).unwrap();
        assert!(plan.is_like(&same));
        plan.update(&same);
        assert!(matches!(plan.steps()[0].work, Work::Record(10)));
        assert_eq!(plan.is_enabled(10), Some(false));
        assert!(!plan.without_names().set(10, Work::Record(7)));
    }
}
