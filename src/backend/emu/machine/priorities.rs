//! Schedules by priorities: the first warp that can run does, until it waits, ends or is put behind all others.
//!
//! After Burckhardt, Kothari, Musuvathi and Nagarakatte, *A Randomized Scheduler with Probabilistic Guarantees of Finding
//! Bugs* (ASPLOS 2010): priorities are random, and at a few random points the warp that runs is put last. What needs a
//! certain order at a few places is found that way with a probability that does not fall with the number of its steps
//! elsewhere, where a random walk has to get lucky at every one of them. Points are counted in accesses of memory that
//! others see. The number of accesses is not known beforehand, and is guessed from the text.
//!
//! Besides, whoever spins while nothing changes is put last, so that those it waits for run.

use super::{Block, Core, Halt, Machine};
use crate::backend::Stop;
use crate::backend::emu::rng::Rng;
use crate::backend::emu::schedule::Preference;

/// Steps between two looks at who could run.
const BURST: u32 = 256;

/// Steps that a warp may go on without waiting for anything, while others could run.
const LONGEST: u64 = 1 << 15;

/// Points are drawn from so many accesses, for each that the text has: fewer to meet short runs and beginnings, more to
/// meet loops. In sixteenths.
const SPANS: [u64; 6] = [1, 4, 16, 16, 64, 512];

/// Where warps are put last.
#[derive(Clone, Debug)]
pub(super) struct Points {
    /// Numbers of accesses, the next one last.
    left: Vec<u64>,
    pub(super) next: u64,
}

impl Default for Points {
    /// None.
    fn default() -> Self {
        Self { left: Vec::new(), next: u64::MAX }
    }
}

impl Points {
    /// So many points in a run of about so many accesses.
    pub(super) fn draw(rng: &mut Rng, count: u32, accesses: u64) -> Self {
        let mut left: Vec<_> = (0..count)
            .map(|_| {
                let span = SPANS.get(rng.below(SPANS.len() as u32) as usize).copied().unwrap_or(16);
                let most = accesses.saturating_mul(span) / 16;
                u64::from(1 + rng.below(u32::try_from(most).unwrap_or(u32::MAX)))
            })
            .collect();
        left.sort_unstable_by_key(|point| std::cmp::Reverse(*point));
        let next = left.pop().unwrap_or(u64::MAX);
        Self { left, next }
    }

    /// Passes those that have been reached.
    fn pass(&mut self, accesses: u64) {
        while self.next <= accesses {
            self.next = self.left.pop().unwrap_or(u64::MAX);
        }
    }
}

/// Warps by slot of their block and number, sorted by their place in the order.
#[derive(Default)]
struct Order {
    warps: Vec<(u64, usize, usize)>,
    /// How many have been put last.
    late: u64,
}

impl Order {
    fn add(&mut self, place: u64, slot: usize, warp: usize) {
        let at = self.warps.partition_point(|(other, ..)| *other <= place);
        self.warps.insert(at, (place, slot, warp));
    }

    fn last(&mut self, at: usize) {
        if at + 1 < self.warps.len() {
            let (_, slot, warp) = self.warps.remove(at);
            self.late += 1;
            self.warps.push(((1 << 63) + self.late, slot, warp));
        }
    }

    /// Blocks have ended; those behind them move up.
    fn without(&mut self, ended: &[usize]) {
        self.warps.retain_mut(|(_, slot, _)| {
            let before = ended.partition_point(|gone| *gone < *slot);
            let stays = ended.get(before) != Some(slot);
            *slot -= before;
            stays
        });
    }
}

impl Machine<'_> {
    /// Runs the launch by priorities, to its end or to where it stops.
    pub(super) fn run_by_priority(&mut self, preference: Preference) -> Option<Stop> {
        let mut order = Order::default();
        let mut looked = 0;
        // Who ran last, and since when.
        let mut streak = ((usize::MAX, usize::MAX), 0);
        loop {
            let before = self.blocks.len();
            self.start_blocks();
            for (slot, block) in self.blocks.iter().enumerate().skip(before) {
                let first = u64::from(block.position.linear) << 8;
                (0..block.warps.len())
                    .for_each(|warp| order.add(preference.place(first | warp as u64), slot, warp));
            }
            if self.blocks.is_empty() {
                return None;
            }
            let ready = |(_, slot, warp): &(u64, usize, usize)| {
                let block = self.blocks.get(*slot);
                block.and_then(|block| block.warps.get(*warp)).is_some_and(super::warp::Warp::is_ready)
            };
            let Some(at) = order.warps.iter().position(ready) else {
                return Some(Stop::Deadlock { warps: self.positions() });
            };
            let (_, slot, warp) = order.warps.get(at).copied()?;
            if streak.0 != (slot, warp) {
                streak = ((slot, warp), self.core.clock);
            }
            let block = self.blocks.get_mut(slot)?;
            let turn = self.core.prioritised(block, warp);
            let ended = block.warps.iter().all(|warp| warp.live == 0);
            self.core.drain();
            self.wake_clusters();
            match turn {
                Err(halt) => return Some(self.stop(halt, slot, warp)),
                Ok(puts_last) if puts_last || self.core.clock - streak.1 > LONGEST => {
                    order.last(at);
                    streak.0 = (usize::MAX, usize::MAX);
                }
                Ok(_) => {}
            }
            if ended {
                order.without(&[slot]);
                self.end_blocks();
                streak.0 = (usize::MAX, usize::MAX);
            }
            if let Some(stop) = self.ends_between_turns(&mut looked) {
                return Some(stop);
            }
        }
    }
}

impl Core<'_> {
    /// A burst of a warp; tells whether it goes last then.
    fn prioritised(&mut self, block: &mut Block, warp: usize) -> Result<bool, Halt> {
        if !block.warps[warp].started {
            block.warps[warp].started = true;
            self.shared_variables(block, warp);
        }
        self.released = false;
        let gives_way = self.burst(block, warp, BURST)?;
        if self.accesses < self.points.next {
            return Ok(gives_way);
        }
        self.points.pass(self.accesses);
        // Where lanes have parted, others of the warp may be meant.
        let at = &mut block.warps[warp];
        Ok(at.groups.len() < 2 || !at.turns_to_others(&mut self.rng))
    }
}
