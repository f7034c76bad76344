//! All schedules of a program, up to swapping steps that do not touch the same memory.
//!
//! This is dynamic partial-order reduction with source sets and sleep sets (Abdulla, Aronis, Jonsson, Sagonas: *Optimal
//! Dynamic Partial Order Reduction*, POPL 2014): a run is replayed up to the last choice that has an alternative left, and
//! takes that. Alternatives are added where two steps of a run conflict and nothing orders them but their turn. Arrivals
//! at a barrier do not conflict with each other; what follows the barrier comes after all of them.

use std::collections::BTreeMap;

use ptxrace::backend::emu::{Arrival, Schedule, Touch, Turn};

/// Lanes that run together, by block, warp and the first of them.
type Key = (u32, u32, u32);

/// What is remembered of a possible step.
#[derive(Clone, Debug)]
struct Step {
    thread: usize,
    touches: Vec<Touch>,
    barrier: Option<Arrival>,
}

impl Step {
    fn conflicts(&self, other: &Self) -> bool {
        self.touches.iter().any(|own| other.touches.iter().any(|theirs| own.conflicts(theirs)))
    }
}

/// A choice.
#[derive(Debug)]
struct Node {
    steps: Vec<Step>,
    /// Index of the step that is taken.
    chosen: usize,
    /// Threads to begin with here, sooner or later.
    backtrack: Vec<usize>,
    /// Threads that need not begin here: whatever follows was or will be seen elsewhere.
    sleep: Vec<usize>,
    /// Which writes the reads of the step take, each of how many.
    reads: Vec<(usize, usize)>,
}

impl Node {
    fn step_of(&self, thread: usize) -> Option<&Step> {
        self.steps.iter().find(|step| step.thread == thread)
    }

    fn chosen(&self) -> Option<&Step> {
        self.steps.get(self.chosen)
    }
}

/// How many steps of each thread are known to come before.
#[derive(Clone, Debug, Default)]
struct Clock(Vec<u32>);

impl Clock {
    fn get(&self, thread: usize) -> u32 {
        self.0.get(thread).copied().unwrap_or(0)
    }

    fn set(&mut self, thread: usize, steps: u32) {
        if self.0.len() <= thread {
            self.0.resize(thread + 1, 0);
        }
        if let Some(slot) = self.0.get_mut(thread) {
            *slot = steps;
        }
    }

    fn join(&mut self, other: &Self) {
        for (thread, steps) in other.0.iter().enumerate() {
            self.set(thread, self.get(thread).max(*steps));
        }
    }
}

/// A step that was taken in this run.
#[derive(Debug)]
struct Taken {
    thread: usize,
    /// Its number among those of its thread, from 1.
    number: u32,
    clock: Clock,
}

/// Goes through all schedules: `run` once, then as long as `advance` says so.
#[derive(Debug, Default)]
pub struct Explorer {
    threads: BTreeMap<Key, usize>,
    nodes: Vec<Node>,
    /// Nodes from here on are new in this run, or take a new step.
    fresh: usize,
    /// This run.
    taken: Vec<Taken>,
    clocks: Vec<Clock>,
    barriers: BTreeMap<(u32, u32), Clock>,
    /// The barrier at which each thread waits.
    waiting: BTreeMap<usize, (u32, u32)>,
    blocked: bool,
    /// Reads of the last step so far.
    reads: usize,
}

impl Explorer {
    /// Whether the last run was given up because others show the same.
    pub fn is_redundant(&self) -> bool {
        self.blocked
    }

    /// Prepares the next run; false when all have been.
    pub fn advance(&mut self) -> bool {
        self.taken.clear();
        self.clocks.clear();
        self.barriers.clear();
        self.waiting.clear();
        self.blocked = false;
        while let Some(node) = self.nodes.last_mut() {
            // Another write for a read of the step, then another step.
            while let Some((write, writes)) = node.reads.last_mut() {
                if *write + 1 < *writes {
                    *write += 1;
                    self.fresh = self.nodes.len() - 1;
                    return true;
                }
                node.reads.pop();
            }
            if let Some(done) = node.chosen().map(|step| step.thread)
                && !node.sleep.contains(&done)
            {
                node.sleep.push(done);
            }
            let next = node
                .steps
                .iter()
                .position(|step| node.backtrack.contains(&step.thread) && !node.sleep.contains(&step.thread));
            if let Some(next) = next {
                node.chosen = next;
                self.fresh = self.nodes.len() - 1;
                return true;
            }
            self.nodes.pop();
        }
        false
    }

    fn thread(&mut self, key: Key) -> usize {
        let next = self.threads.len();
        *self.threads.entry(key).or_insert(next)
    }

    fn clock(&mut self, thread: usize) -> &mut Clock {
        if self.clocks.len() <= thread {
            self.clocks.resize(thread + 1, Clock::default());
        }
        &mut self.clocks[thread]
    }

    /// Who can run only since the last step comes after it, and after all that arrived where it waited.
    fn wake(&mut self, steps: &[Step]) {
        let Some(last) = self.taken.len().checked_sub(1) else { return };
        let Some(before) = self.nodes.get(last) else { return };
        let mut woken: Vec<usize> = steps.iter().map(|step| step.thread).collect();
        woken.retain(|thread| before.step_of(*thread).is_none() || self.waiting.contains_key(thread));
        for thread in woken {
            let cause = self.taken[last].clock.clone();
            self.clock(thread).join(&cause);
            if let Some(barrier) = self.waiting.remove(&thread)
                && let Some(arrived) = self.barriers.get(&barrier).cloned()
            {
                self.clock(thread).join(&arrived);
            }
        }
    }

    /// A step that is taken now: what conflicts with it, and where the other order has to be tried.
    fn take(&mut self, step: &Step, block: u32) {
        let depth = self.taken.len();
        let mut clock = self.clock(step.thread).clone();
        for at in (0..depth).rev() {
            let earlier = &self.taken[at];
            let known = clock.get(earlier.thread) >= earlier.number;
            let conflicts = self.nodes.get(at).and_then(Node::chosen).is_some_and(|s| s.conflicts(step));
            if known || !conflicts {
                continue;
            }
            if depth >= self.fresh {
                self.reverse(at, step.thread, &clock);
            }
            clock.join(&self.taken[at].clock);
        }
        let number = clock.get(step.thread) + 1;
        clock.set(step.thread, number);
        *self.clock(step.thread) = clock.clone();
        if let Some(arrival) = step.barrier {
            let barrier = (block, arrival.id);
            self.barriers.entry(barrier).or_default().join(&clock);
            if arrival.waits {
                self.waiting.insert(step.thread, barrier);
            }
        }
        self.taken.push(Taken { thread: step.thread, number, clock });
    }

    /// The step at `at` and the one that `thread` takes now could come the other way round: someone has to begin there with
    /// what does not depend on the earlier one. `clock` is what comes before the step of `thread`, as far as it lies between.
    fn reverse(&mut self, at: usize, thread: usize, clock: &Clock) {
        let first = &self.taken[at];
        let independent: Vec<&Taken> = self.taken[at + 1..]
            .iter()
            .filter(|later| later.clock.get(first.thread) < first.number)
            .collect();
        let mut initials = Vec::new();
        for (index, taken) in independent.iter().enumerate() {
            let follows = |earlier: &&Taken| taken.clock.get(earlier.thread) >= earlier.number;
            if !independent[..index].iter().any(follows) {
                initials.push(taken.thread);
            }
        }
        if !independent.iter().any(|taken| clock.get(taken.thread) >= taken.number) {
            initials.push(thread);
        }
        let Some(node) = self.nodes.get_mut(at) else { return };
        if initials.iter().any(|initial| node.backtrack.contains(initial)) {
            return;
        }
        let here = |candidate: &&usize| node.step_of(**candidate).is_some();
        match initials.iter().rev().find(here) {
            Some(initial) => node.backtrack.push(*initial),
            None => node.backtrack = node.steps.iter().map(|step| step.thread).collect(),
        }
    }
}

impl Schedule for Explorer {
    fn next(&mut self, turns: &[Turn]) -> Option<usize> {
        let steps: Vec<Step> = turns
            .iter()
            .map(|turn| Step {
                thread: self.thread((turn.block, turn.warp, turn.lanes.trailing_zeros())),
                touches: turn.touches.to_vec(),
                barrier: turn.barrier,
            })
            .collect();
        self.wake(&steps);
        let depth = self.taken.len();
        if depth >= self.nodes.len() {
            // Who slept before goes on sleeping unless the last step woke it.
            let sleep: Vec<usize> = match self.nodes.last() {
                None => Vec::new(),
                Some(parent) => {
                    let sleeping = parent.sleep.iter().filter(|sleeper| {
                        let other = parent.step_of(**sleeper);
                        let own = parent.chosen();
                        other
                            .zip(own)
                            .is_some_and(|(other, own)| other.thread != own.thread && !other.conflicts(own))
                    });
                    sleeping.copied().collect()
                }
            };
            let Some(chosen) = steps.iter().position(|step| !sleep.contains(&step.thread)) else {
                self.blocked = true;
                return None;
            };
            let backtrack = steps.get(chosen).map(|step| step.thread).into_iter().collect();
            self.nodes.push(Node { steps, chosen, backtrack, sleep, reads: Vec::new() });
        }
        let node = self.nodes.get(depth)?;
        let (chosen, step) = (node.chosen, node.chosen()?.clone());
        self.take(&step, turns.get(chosen)?.block);
        self.reads = 0;
        Some(chosen)
    }

    fn read(&mut self, writes: usize) -> usize {
        let Some(node) = self.taken.len().checked_sub(1).and_then(|at| self.nodes.get_mut(at)) else {
            return 0;
        };
        let at = self.reads;
        self.reads += 1;
        if node.reads.len() <= at {
            node.reads.push((0, writes));
        }
        node.reads.get(at).map_or(0, |(write, _)| *write)
    }
}

/// Chooses at random.
#[derive(Clone, Debug)]
pub struct Lottery(pub crate::random::Random);

impl Schedule for Lottery {
    fn next(&mut self, turns: &[Turn]) -> Option<usize> {
        Some(self.0.below(turns.len()))
    }

    fn read(&mut self, writes: usize) -> usize {
        self.0.below(writes)
    }
}
