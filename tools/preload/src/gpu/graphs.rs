//! Graphs: what is in them is read when they are made ready, and kept up with what the program changes then. A launch gives their
//! nodes to the stream one by one, each watched as if the program had; the engine is told of edges only. A graph of which not
//! everything is understood is launched as it is, and the run says so.

use std::sync::Arc;

use ptxrace::session::exec::log::Gap;

use super::launch::Config;
use super::nodes::{self, OfDriver};
use super::{Gpu, driver, hooks};
use crate::graph::{Fill, HostFunction, Kernel, Plan, Work};
use crate::watch::{Ended, Stream, Timing};

/// A graph that is ready to be launched.
pub(super) struct Ready {
    /// Or why it is not followed.
    plan: Result<Arc<Plan>, String>,
    /// How it ended when it was launched last.
    last: Option<Ended>,
}

/// For graphs that kernels may launch.
const DEVICE_LAUNCH: u64 = 4;

impl Gpu {
    /// The program has made a graph ready.
    pub(super) fn made_ready(&mut self, ready: u64, graph: u64, flags: u64) {
        let plan = match flags & DEVICE_LAUNCH {
            0 => Plan::new(&mut OfDriver, graph).map(Arc::new),
            _ => Err("kernels may launch it".into()),
        };
        self.graphs.insert(ready, Ready { plan, last: None });
    }

    /// A graph that was ready is gone.
    pub(super) fn not_ready(&mut self, ready: u64) {
        let gone = self.graphs.remove(&ready).and_then(|ready| ready.last);
        gone.into_iter().for_each(|ended| self.watch.forget_graph(ended));
    }

    /// A graph that is ready does what another does.
    pub(super) fn updated(&mut self, ready: u64, graph: u64) {
        let Some(known) = self.graphs.get_mut(&ready) else { return };
        known.plan = match &known.plan {
            Ok(plan) if plan.has_disabled() => {
                Err("nodes of it had been left out when it was updated".into())
            }
            // Which nodes of the two belong together is the driver's business.
            _ => Plan::new(&mut OfDriver, graph).map(|plan| Arc::new(plan.without_names())),
        };
    }

    /// Something of a graph that is ready was changed. `change` says whether it could be followed.
    pub(super) fn changed(&mut self, ready: u64, change: impl FnOnce(&mut Plan) -> bool) {
        let Some(known) = self.graphs.get_mut(&ready) else { return };
        if let Ok(plan) = &mut known.plan
            && !change(Arc::make_mut(plan))
        {
            known.plan = Err("its nodes were changed in a way that is not followed".into());
        }
    }

    /// Launches a graph in a stream, by a handle that means the same for calls of all variants. `None` if it has to be launched
    /// as it is.
    pub(super) fn launch_graph(&mut self, ready: u64, stream: u64) -> Option<u32> {
        let known = self.graphs.get_mut(&ready).map(|known| (known.plan.clone(), known.last.take()));
        let (plan, last) = match known {
            Some((Ok(plan), last)) => (plan, last),
            other => {
                let (plan, last) = other.map_or((None, None), |(plan, last)| (plan.err(), last));
                last.into_iter().for_each(|ended| self.watch.forget_graph(ended));
                let why = plan.unwrap_or_else(|| "it was made ready in a way that is not followed".into());
                self.watch.gap(Gap::Call, format!("launches of a graph are not checked: {why}"));
                self.silence();
                return None;
            }
        };
        let own = self.stream(stream);
        let mut branches = self.watch.begin_graph(own, last);
        let mut code = 0;
        for step in plan.steps() {
            let branch = self.watch.branch(&mut branches, &step.after);
            if step.enabled {
                code = self.step(&step.work, stream, branch);
            }
            self.watch.stepped(&mut branches, branch);
            if code != 0 {
                break;
            }
        }
        let ended = self.watch.end_graph(branches, plan.last());
        match self.graphs.get_mut(&ready) {
            Some(known) => known.last = Some(ended),
            None => self.watch.forget_graph(ended),
        }
        Some(code)
    }

    /// Gives a stream what a node does, in the order of a branch.
    fn step(&mut self, work: &Work, stream: u64, branch: Stream) -> u32 {
        match work {
            Work::Kernel(kernel) => self.launch_node(kernel, stream, branch),
            Work::Copy(copy) => {
                let code = nodes::copy(copy, stream);
                match copy.sides(&self.watch.textures) {
                    _ if code != 0 => {}
                    Ok((_, slices)) => {
                        for rows in
                            slices.into_iter().map(|rows| rows.joined()).filter(|rows| !rows.is_empty())
                        {
                            let places = (driver::place(rows.to), driver::place(rows.from));
                            self.watch.copied("memcpy node", places, rows, branch, Timing::Async);
                        }
                    }
                    Err(_) => {
                        self.watch.gap(Gap::Call, "copies of some arrays in graphs are not followed".into());
                    }
                }
                code
            }
            Work::Fill(fill) => self.fill_node(fill, stream, branch),
            Work::Host(function, data) => self.call_node(*function, *data, stream, branch),
            Work::Record(event) => {
                let code = nodes::record(*event, stream);
                if code == 0 {
                    let _ = self.watch.record(*event, branch);
                }
                code
            }
            Work::Wait(event) => {
                let code = nodes::wait(*event, stream);
                if code == 0 {
                    let _ = self.watch.wait(branch, *event);
                }
                code
            }
            Work::Empty => 0,
        }
    }

    fn launch_node(&mut self, kernel: &Kernel, stream: u64, branch: Stream) -> u32 {
        let Kernel { function, grid, block, cluster, shared, .. } = *kernel;
        let config = Config { function, grid, block, cluster, shared, stream, branch: Some(branch) };
        self.launch(&config, |function| nodes::launch(kernel, function, stream))
    }

    fn fill_node(&mut self, fill: &Fill, stream: u64, branch: Stream) -> u32 {
        let code = nodes::fill(fill, stream);
        let rows = fill.rows().joined();
        if code == 0 && !rows.is_empty() {
            self.watch.filled("memset node", driver::place(fill.to), rows, branch, Timing::Async);
        }
        code
    }

    fn call_node(&mut self, function: HostFunction, data: u64, stream: u64, branch: Stream) -> u32 {
        let before = self.watch.moment(branch);
        hooks::call_later(function, data as *mut _, before, |function, data| {
            nodes::call(function, data, stream)
        })
    }
}
