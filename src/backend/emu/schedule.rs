//! Schedules that somebody else chooses, one visible instruction at a time: for replaying a run exactly, and for going
//! through all schedules of a small program.

use smallvec::SmallVec;

use super::rng::Rng;

/// How a seed's schedule goes about it. Neighbouring seeds differ in this, so that a few schedules are unlike each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// All warps in turn, for random times.
    Walk,
    /// By priorities, which change so many times.
    Priorities(Preference, u32),
}

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preference {
    /// Lower blocks, warps and lanes.
    Lower,
    /// Higher ones.
    Higher,
    /// As a number says, or the other way round.
    Drawn { number: u64, reversed: bool },
}

impl Strategy {
    /// That of a seed: of every eight, two are walks, and two others have each other's order, so that of any two warps each
    /// goes first in one of them.
    pub(super) fn of(seed: u64) -> Self {
        let (group, own) = (seed / 8, |reversed| Preference::Drawn { number: seed, reversed });
        let drawn = |reversed| Preference::Drawn { number: group.wrapping_mul(8), reversed };
        match (seed % 8, group) {
            (0 | 4, _) => Self::Walk,
            (1, 0) => Self::Priorities(Preference::Lower, 0),
            (2, 0) => Self::Priorities(Preference::Higher, 0),
            (1, _) => Self::Priorities(drawn(false), 0),
            (2, _) => Self::Priorities(drawn(true), 0),
            (3, _) => Self::Priorities(own(false), 0),
            (5 | 6, _) => Self::Priorities(own(false), 1),
            _ => Self::Priorities(own(false), 2),
        }
    }
}

impl Preference {
    /// Where a warp or a lane comes: those with lower numbers go first.
    pub(super) fn place(self, of: u64) -> u64 {
        const MOST: u64 = u64::MAX >> 2;
        match self {
            Self::Lower => of.min(MOST),
            Self::Higher => MOST - of.min(MOST),
            Self::Drawn { number, reversed } => {
                let drawn = Rng::new(number ^ of.rotate_left(32)).next() & MOST;
                if reversed { MOST - drawn } else { drawn }
            }
        }
    }
}

/// Memory that an instruction touches and that others may touch too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The block whose shared memory it is; `None` is global memory.
    pub shared: Option<u32>,
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub bytes: u32,
    /// Whether it may be written.
    pub writes: bool,
}

impl Touch {
    /// Whether the order of the two makes a difference.
    pub fn conflicts(&self, other: &Self) -> bool {
        let end = |touch: &Self| touch.address.saturating_add(u64::from(touch.bytes));
        (self.writes || other.writes)
            && self.shared == other.shared
            && self.address < end(other)
            && other.address < end(self)
    }
}

/// Lanes that could run next, and what their next instruction does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Linear block.
    pub block: u32,
    /// Warp of the block.
    pub warp: u32,
    /// Lanes that run together.
    pub lanes: u32,
    /// What the next instruction touches.
    pub touches: SmallVec<[Touch; 1]>,
    /// The CTA barrier at which it arrives.
    pub barrier: Option<Arrival>,
}

/// An arrival at a CTA barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The barrier.
    pub id: u32,
    /// Whether the lanes wait until it completes.
    pub waits: bool,
}

/// Chooses who runs next.
pub trait Schedule {
    /// One of these, by index; `None` ends the run here. The chosen lanes execute their next instruction and then go on as
    /// long as nobody could tell: to the next access of memory that is shared, barrier or warp instruction, or to their end.
    fn next(&mut self, turns: &[Turn]) -> Option<usize>;

    /// Which write a read takes, of so many: 0 is the latest one, 1 the one before. Asked only where memory is weak.
    fn read(&mut self, writes: usize) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_any_two_warps_each_goes_first_under_some_seed() {
        for group in 0..4 {
            for (a, b) in [(0, 1), (3, 1 << 40), (31, 32)] {
                let first = |seed| match Strategy::of(seed) {
                    Strategy::Priorities(preference, 0) => preference.place(a) < preference.place(b),
                    other => panic!("{other:?}"),
                };
                assert_ne!(first(8 * group + 1), first(8 * group + 2), "{group}: {a}, {b}");
            }
        }
    }
}
