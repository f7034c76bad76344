//! How much memory an analysis may take, and which part of it may have how much.

use serde::{Deserialize, Serialize};

/// Bytes of memory. What is counted is what grows with a run: records that are kept, and what is known of the memory that they
/// touch. The rest is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget(u64);

/// Records that are kept for the engine while a launch may be clean.
const MOST_KEPT: u64 = 4 << 30;
/// Records that are kept to be sorted. Those of a launch with more are taken as they come: which of several races at a place is
/// reported may then depend on it.
const MOST_SORTED: u64 = 1 << 30;
/// What triage may know of memory, for each of its workers.
const MOST_LINES: u64 = 1 << 30;

impl Budget {
    /// No limit but those of the parts that can do with less.
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// So many bytes.
    pub fn of(bytes: u64) -> Self {
        Self(bytes)
    }

    /// How many.
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// What each of so many that run at once may take.
    #[must_use]
    pub fn shared_by(self, count: u64) -> Self {
        Self(self.0 / count.max(1))
    }

    pub(super) fn kept(self) -> usize {
        (self.0 / 4).min(MOST_KEPT) as usize
    }

    pub(super) fn sorted(self) -> usize {
        (self.0 / 8).min(MOST_SORTED) as usize
    }

    /// For each of so many workers, who give it back when the engine takes over.
    pub(super) fn lines(self, workers: usize) -> usize {
        (self.0 / 4 * 3 / workers.max(1) as u64).min(MOST_LINES) as usize
    }

    /// What the engine may know of memory.
    pub(super) fn shadow(self) -> usize {
        usize::try_from(self.0 / 2).unwrap_or(usize::MAX)
    }
}

/// How a run is analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// Clean launches are told before the engine sees them.
    pub triage: bool,
    /// What it may take.
    pub memory: Budget,
}

impl Default for Analysis {
    fn default() -> Self {
        Self { triage: true, memory: Budget::UNLIMITED }
    }
}
