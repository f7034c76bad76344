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
    /// The batch that took a conflict with this site last, of this distance.
    last: Option<(SiteId, Relation, usize)>,
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

/// Whether an access may be judged in short.
#[inline]
pub(super) fn is_plain(key: &Key) -> bool {
    key.path == Path::Plain && !key.is_strong() && key.class != AccessClass::Atomic
}

/// Whether accesses of such kinds may be judged in short.
pub(super) fn is_short(judge: &Judge<'_>, key: &Key, other: &Key, now: &Entry) -> bool {
    if !is_plain(key) || !is_plain(other) || !key.same_bytes(other) || judge.viewer.know.converged.is_some() {
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
        if let Some((site, distance, at)) = self.last
            && (site, distance) == (earlier.site, relation)
            && let Some(batch) = self.batches.get_mut(at)
        {
            batch.count += 1;
            return true;
        }
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
        let at = self.batches.iter().position(|batch| batch.key == key);
        if let Some(at) = at
            && let Some(batch) = self.batches.get_mut(at)
        {
            if relation > batch.widest {
                return false;
            }
            batch.count += 1;
            self.last = Some((earlier.site, relation, at));
            return true;
        }
        let Some(widest) = collector.widest(&key).filter(|widest| relation <= *widest) else { return false };
        let threads = [(earlier, open), (now, now.mask)].map(|(entry, mask)| {
            let Entry { launch, block, warp, .. } = *entry;
            ThreadId { launch, block, warp, lane: (mask.trailing_zeros() & 31) as u8 }
        });
        self.last = Some((earlier.site, relation, self.batches.len()));
        self.batches.push(Batch { key, widest, count: 1, threads });
        true
    }

    /// Hands over what was taken.
    #[inline]
    pub(super) fn flush(&mut self, collector: &mut Collector, word: Word, address: u64) {
        if self.batches.is_empty() {
            return;
        }
        self.last = None;
        collector.contest(word);
        for Batch { key, count, threads, .. } in self.batches.drain(..) {
            collector.again(&key, address, threads, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use crate::abi::{Encoder, LANES, TAG_SHARED, Unit};
    use crate::backend::{Launch, LaunchEnd, LaunchInfo, Plan, Sink};
    use crate::engine::{Engine, Report};
    use crate::instrument::SiteTable;
    use crate::ptx;

    /// What warps may do: each is a site.
    const INSTRUCTIONS: [&str; 13] = [
        "ld.global.u32 %r1, [%d1];",
        "st.global.u32 [%d1], %r1;",
        "st.global.u32 [%d2], %r1;",
        "st.global.u16 [%d1], %h1;",
        "st.global.u64 [%d1], %d2;",
        "ld.global.nc.u32 %r1, [%d1];",
        "ld.shared.u32 %r1, [%d1];",
        "st.shared.u32 [%d1], %r1;",
        "ld.relaxed.gpu.global.u32 %r1, [%d1];",
        "st.relaxed.gpu.global.u32 [%d1], %r1;",
        "atom.relaxed.gpu.global.add.u32 %r1, [%d1], 1;",
        "fence.acq_rel.gpu;",
        "bar.sync 0;",
    ];

    #[derive(Clone, Copy, Debug)]
    struct Step {
        instruction: usize,
        block: u32,
        warp: u8,
        mask: u32,
        /// The first address, and how many words it is to the next lane's.
        at: u64,
        stride: u64,
        value: u64,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Plain accesses mostly, so that there are races enough.
        let instruction = prop_oneof![9 => 0usize..3, 1 => 6usize..8, 2 => 0..INSTRUCTIONS.len()];
        let mask =
            prop_oneof![4 => Just(u32::MAX), 1 => (0u32..32).prop_map(|lane| 1 << lane), 1 => 1..=u32::MAX];
        let stride = prop_oneof![3 => Just(1u64), 1 => Just(0u64)];
        let step = (instruction, 0u32..3, 0u8..2, mask, 0u64..24, stride, 0u64..3);
        let step = step.prop_map(|(instruction, block, warp, mask, at, stride, value)| Step {
            instruction,
            block,
            warp,
            mask,
            at: at * 8,
            stride,
            value,
        });
        proptest::collection::vec(step, 1..60)
    }

    fn run(steps: &[Step], clusters: bool, rounds: u64, anew: bool) -> Report {
        let text = format!(
            ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k()\n{{\n.reg .b16 %h<2>;\n\
             .reg .b32 %r<2>;\n.reg .b64 %d<3>;\n{}\nret;\n}}\n",
            INSTRUCTIONS.join("\n")
        );
        let parsed = ptx::parse(&text);
        assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
        let sites = Arc::new(SiteTable::new(&parsed.module));
        let launch = |stream| Launch {
            kernel: "k".into(),
            grid: [3, 1, 1],
            block: [64, 1, 1],
            cluster: clusters.then_some([3, 1, 1]),
            shared: 2048,
            stream,
            after: Vec::new(),
            args: Vec::new(),
        };
        let plan = Plan { launches: vec![launch(0), launch(1)], ..Plan::default() };
        let mut engine = Engine::new(Arc::clone(&sites), &plan);
        engine.core.collector.anew = anew;
        let mut ticket = 0;
        for index in 0..2 {
            engine.begin(&LaunchInfo { index, ..LaunchInfo::default() });
            for step in std::iter::repeat_n(steps, rounds as usize).flatten() {
                let instruction = INSTRUCTIONS[step.instruction];
                let mut found =
                    sites.sites().iter().filter(|site| text[site.span.range()].starts_with(instruction));
                let site = found.next().expect("a site");
                let payload = site.payload();
                let tag = if instruction.contains("shared") { TAG_SHARED } else { 0x1000 };
                let a: [u64; LANES] =
                    std::array::from_fn(|lane| tag | (step.at + lane as u64 * step.stride * 4));
                let values = [step.value; LANES];
                // All of a block arrive at a barrier.
                let is_barrier = instruction.starts_with("bar");
                let warps = if is_barrier { 0..2 } else { step.warp..step.warp + 1 };
                for warp in warps {
                    ticket += 2;
                    let mut units: Vec<Unit> = Vec::new();
                    Encoder {
                        site: site.id.0,
                        mask: if is_barrier { u32::MAX } else { step.mask },
                        block: step.block,
                        warp,
                        payload,
                        tickets: if payload.tickets { (ticket - 1, ticket) } else { (0, 0) },
                        a: &a,
                        read: &values,
                        written: &values,
                    }
                    .encode(&mut units);
                    engine.records(&units);
                }
            }
            engine.end(&LaunchEnd::default());
        }
        engine.finish()
    }

    proptest! {
        #[test]
        fn in_short_as_at_length(steps in steps(), clusters: bool) {
            let [short, long] = [false, true].map(|anew| run(&steps, clusters, 4, anew));
            prop_assert_eq!(short.lost, long.lost);
            prop_assert_eq!(short.findings, long.findings);
        }
    }
}
