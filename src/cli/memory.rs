//! How much memory an analysis takes where the user does not say.

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::engine::Budget;

/// What was given, else this part of the machine's memory, or of what the container that we are in may take of it.
pub(super) fn limit(given: Option<Budget>, part: u64, of: u64) -> Budget {
    given.unwrap_or_else(|| {
        let refresh = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(refresh);
        let all =
            system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory).min(system.total_memory());
        if all == 0 { Budget::UNLIMITED } else { Budget::of(all / of * part) }
    })
}
