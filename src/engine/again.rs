//! Conflicts that are judged as earlier ones were: where a program races all the time, only their number is news.
//!
//! Two weak accesses of the same bytes by different warps of one launch, neither of them asynchronous nor by the read-only
//! path, have a rule that hangs on the pair of sites and on the distance alone, once the pair is explained for good
//! (`judge::EXPLANATIONS`); they are errors. A finding there is that is as wide keeps its witnesses, so nothing has to be
//! known of another conflict but where it is. All others go the long way: stores of one value, reads that look like looking
//! at a flag, lanes that converged, threads that exited.

use smallvec::SmallVec;

use super::collect::{Collector, GroupKey, Word};
use super::judge::{Judge, by_distance};
use super::shadow::{Entry, Key, Path};
use super::thread::LaneKnow;
use crate::finding::{AccessClass, Relation, Rule, ThreadId};
use crate::instrument::SiteId;

/// Conflicts of one access to a word, on their way to the collector.
#[derive(Default)]
pub(super) struct Again {
    /// What explains conflicts with a site, if that is settled.
    explained: Option<(SiteId, Option<Rule>)>,
    batches: SmallVec<[Batch; 3]>,
}

/// Conflicts of one finding.
struct Batch {
    key: GroupKey,
    /// How wide the finding is.
    widest: Relation,
    count: u64,
    /// Of the first one.
    threads: [ThreadId; 2],
}

/// Whether accesses of such kinds may be judged in short.
pub(super) fn is_short(judge: &Judge<'_>, key: &Key, other: &Key, now: &Entry) -> bool {
    let plain = |key: &Key| key.path == Path::Plain && !key.is_strong() && key.class != AccessClass::Atomic;
    if !plain(key) || !plain(other) || !key.same_bytes(other) || judge.viewer.know.converged.is_some() {
        return false;
    }
    // One lane stands for all.
    let warp = judge.block.warps.get(usize::from(now.warp));
    now.mask.is_power_of_two() || warp.is_some_and(|warp| matches!(warp.know, LaneKnow::All(_)))
}

impl Again {
    /// Takes a conflict of such kinds, of other warps in one launch; not if it has to go the long way.
    #[inline]
    pub(super) fn take(
        &mut self,
        judge: &Judge<'_>,
        earlier: &Entry,
        open: u32,
        now: &Entry,
        class: AccessClass,
        collector: &Collector,
    ) -> bool {
        let writes = class == AccessClass::Write;
        // A read has no value.
        let same_value = writes && earlier.value.is_some() && earlier.value == now.value;
        if same_value || (!writes && earlier.single && now.single) {
            return false;
        }
        let relation = if earlier.block == now.block {
            let warp = judge.block.warps.get(usize::from(earlier.warp));
            if warp.is_none_or(|warp| warp.has_absent()) {
                return false;
            }
            Relation::Block
        } else if judge.near(now, earlier.block) {
            Relation::Cluster
        } else {
            Relation::Grid
        };
        let explained = match self.explained {
            Some((site, rule)) if site == earlier.site => rule,
            _ => {
                let Some(rule) = judge.settled(earlier.site, now.site) else { return false };
                self.explained = Some((earlier.site, rule));
                rule
            }
        };
        let rule = explained.unwrap_or_else(|| by_distance(relation).0);
        let key = GroupKey::error(rule, earlier.site, now.site);
        if let Some(batch) = self.batches.iter_mut().find(|batch| batch.key == key) {
            let within = relation <= batch.widest;
            batch.count += u64::from(within);
            return within;
        }
        let Some(widest) = collector.widest(&key).filter(|widest| relation <= *widest) else { return false };
        let threads = [(earlier, open), (now, now.mask)].map(|(entry, mask)| {
            let Entry { launch, block, warp, .. } = *entry;
            ThreadId { launch, block, warp, lane: (mask.trailing_zeros() & 31) as u8 }
        });
        self.batches.push(Batch { key, widest, count: 1, threads });
        true
    }

    /// Hands over what was taken.
    #[inline]
    pub(super) fn flush(&mut self, collector: &mut Collector, word: Word, address: u64) {
        for Batch { key, count, threads, .. } in self.batches.drain(..) {
            collector.again(&key, word, address, threads, count);
        }
    }
}
