//! Schedules that somebody else chooses, one visible instruction at a time: for replaying a run exactly, and for going
//! through all schedules of a small program.

use smallvec::SmallVec;

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
