//! Barriers and masks used wrongly: rules S001 and S002; and what a backend noticed by itself: S003 and M004.

use super::collect::Conflict;
use super::{Core, Role};
use crate::backend::{Notice, NoticeKind};
use crate::diag::Severity;
use crate::event::{Arrival, BarrierMisuse, ClusterMisuse, Misuse};
use crate::finding::{AccessClass, Missing, Relation, Rule, Witness};
use crate::instrument::SiteId;

impl Core {
    pub(super) fn misuse(&mut self, misuse: Misuse) {
        let conflict = match misuse {
            Misuse::Barrier { what, arrival, other } => {
                let detail = match what {
                    BarrierMisuse::Counts => {
                        "the two instructions give different thread counts for one barrier"
                    }
                    BarrierMisuse::Reduction => "a `red` meets a `sync` or `arrive` at one barrier",
                    BarrierMisuse::Diverged => {
                        "lanes of one warp meet at an aligned barrier from different instructions"
                    }
                };
                let relation = if arrival.warp == other.warp { Relation::Warp } else { Relation::Block };
                self.barrier(relation, detail.into(), [other, arrival])
            }
            Misuse::NeverCompletes { arrival, arrived, expected } => {
                let id = arrival.id;
                let detail = format!("barrier {id} never completes: {arrived} of {expected} threads arrived");
                self.barrier(Relation::Block, detail, [arrival, arrival])
            }
            Misuse::Cluster { what, arrival } => {
                let detail = match what {
                    ClusterMisuse::Twice => {
                        "threads arrive at the barrier of their cluster again without having waited".into()
                    }
                    ClusterMisuse::NotArrived => {
                        "threads wait at the barrier of their cluster without having arrived".into()
                    }
                    ClusterMisuse::NeverCompletes { arrived, expected } => format!(
                        "the barrier of the cluster never completes: {arrived} of {expected} threads arrived"
                    ),
                };
                self.barrier(Relation::Cluster, detail, [arrival, arrival])
            }
            Misuse::LaneOutsideMask { site, block, warp, given, executing } => {
                self.mask(site, block, warp, given, executing)
            }
            Misuse::LaneNeverCame { site, block, warp, given, came } => {
                self.mask(site, block, warp, given, came)
            }
        };
        let block = conflict.witnesses[0].thread.block;
        self.collector.add((0, block), conflict);
    }

    /// What no record tells of, at the end of a launch.
    pub(super) fn notice(&mut self, notice: &Notice) {
        let (rule, severity, missing) = match notice.kind {
            NoticeKind::Starved { waiting } => (Rule::S003, Severity::Note, Missing::Starved { waiting }),
            // Where a race decides whether it was written, the race is what to tell of.
            NoticeKind::NeverWritten if self.collector.has_race_at(notice.site) => return,
            NoticeKind::NeverWritten => (Rule::M004, Severity::Warning, Missing::FirstWrite),
        };
        let witness = Witness {
            site: notice.site,
            thread: self.thread(notice.block, notice.warp, notice.lane),
            class: match self.roles.get(notice.site.0 as usize) {
                Some(Role::Access(access)) if access.is_rmw() => AccessClass::Atomic,
                _ => AccessClass::Read,
            },
            address: notice.address,
            bytes: notice.bytes,
            value: None,
            interval: 0,
        };
        let alone = conflict(rule, Relation::Thread, [witness, witness], missing);
        self.collector.note(Conflict { severity, ..alone }, notice.count);
    }

    fn barrier(&self, relation: Relation, detail: String, arrivals: [Arrival; 2]) -> Conflict {
        let witnesses = arrivals.map(|a| self.lanes(a.site, a.block, a.warp, a.mask));
        conflict(Rule::S001, relation, witnesses, Missing::Barrier { detail })
    }

    fn mask(&self, site: SiteId, block: u32, warp: u8, given: u32, executing: u32) -> Conflict {
        let outside = executing & !given;
        let shown = if outside != 0 { outside } else { given & !executing };
        let witness = self.lanes(site, block, warp, shown);
        conflict(Rule::S002, Relation::Warp, [witness, witness], Missing::Mask { given, executing })
    }

    fn lanes(&self, site: SiteId, block: u32, warp: u8, mask: u32) -> Witness {
        let interval = self
            .blocks
            .get(block)
            .and_then(|b| b.warps.get(usize::from(warp)))
            .map_or(0, |warp| warp.interval);
        Witness {
            site,
            thread: self.thread(block, warp, (mask.trailing_zeros() & 31) as u8),
            class: AccessClass::Read,
            address: 0,
            bytes: 0,
            value: None,
            interval,
        }
    }
}

fn conflict(rule: Rule, relation: Relation, witnesses: [Witness; 2], missing: Missing) -> Conflict {
    Conflict {
        rule,
        severity: Severity::Error,
        kind: None,
        relation,
        witnesses,
        missing,
        same_value: false,
        same_instruction: true,
    }
}
