//! What is wanting around asynchronous accesses, in sentences.

use super::advice::Told;
use crate::finding::{AccessClass, Pending, Relation, Witness};
use crate::instrument::{SiteId, SiteKind};
use crate::isa::GroupOp;

fn of_groups(bulk: bool) -> &'static str {
    if bulk { "cp.async.bulk" } else { "cp.async" }
}

impl Told<'_, '_> {
    /// "`cp.async.wait_group 2` (a.ptx:12)"
    fn wait(&self, wait: SiteId) -> String {
        let Some(first) = self.first() else { return "the wait".into() };
        let place = self.place(&Witness { site: wait, ..*first });
        format!("`{}` ({place})", self.wait_op(wait, None))
    }

    /// The wait as it stands, or with another number of groups.
    fn wait_op(&self, wait: SiteId, groups: Option<u32>) -> String {
        let Some((_, site)) = self.context.instruction(wait) else { return "the wait".into() };
        let groups = groups.or(match site.kind {
            SiteKind::Group(GroupOp::Wait { pending, .. }) => Some(pending),
            _ => None,
        });
        groups.map_or_else(|| site.opcode.to_string(), |groups| format!("{} {groups}", site.opcode))
    }

    /// "warp 3", or what else tells the second thread from the first.
    fn other(&self) -> String {
        let Some(last) = self.last() else { return "the other thread".into() };
        match self.finding.relation {
            Relation::Thread => "the same thread".into(),
            Relation::Warp => format!("lane {}", last.thread.lane),
            Relation::Block => format!("warp {}", last.thread.warp),
            _ => self.block(Some(last)),
        }
    }

    fn mbarrier(&self, address: u64) -> String {
        match self.first().map(|first| self.context.object(first, address)) {
            Some(object) if !object.name.ends_with(" memory") && object.element > 0 => {
                format!("`{}[{}]`", object.name, object.element)
            }
            Some(object) if !object.name.ends_with(" memory") => format!("`{}`", object.name),
            _ => "its mbarrier".into(),
        }
    }

    pub(super) fn pending(&self, pending: Pending) -> String {
        let other = self.other();
        match pending {
            Pending::Issue => format!("nothing orders (1) before {other} issues the copy (2)"),
            Pending::ProxyFence { .. } => {
                "(1) is made in the generic proxy and (2) in the async proxy: they are ordered, but no proxy fence lies between"
                    .into()
            }
            Pending::NotCommitted { bulk } => format!(
                "the copy (1) was in no group when its thread waited: no `{}.commit_group` stands between",
                of_groups(bulk)
            ),
            Pending::NotWaited { bulk, reads: true } => format!(
                "the thread of (1) has not waited until its copy has read the source (`{}.wait_group.read`)",
                of_groups(bulk)
            ),
            Pending::NotWaited { bulk, reads: false } => {
                format!("the thread of (1) has not waited for its copy (`{}.wait_group`)", of_groups(bulk))
            }
            Pending::Left { wait, pending, .. } => {
                let latest =
                    if pending == 1 { "the latest group".into() } else { format!("the latest {pending} groups") };
                format!("{} lets {latest} stay pending, and the copy (1) with them", self.wait(wait))
            }
            Pending::OnlyReads { wait } => {
                format!("{} waits until the source is read, not until (1) is written", self.wait(wait))
            }
            Pending::OwnOnly => format!(
                "the thread of (2) has waited for its own copies, but nothing orders the wait of the thread of (1) before (2) in {other}"
            ),
            Pending::Apart => {
                "(2) is ordered neither before the issue of the copy (1) nor behind its completion".into()
            }
            Pending::Unshared { wait } => format!(
                "the thread of (1) waited for its copy by {}, but nothing orders that before (2) in {other}",
                self.wait(wait)
            ),
            Pending::Phase { mbarrier, seen, phase } => {
                let of = self.mbarrier(mbarrier);
                let knows = if seen == 0 {
                    String::new()
                } else {
                    format!("; it knows of phase {} only", seen - 1)
                };
                format!(
                    "the copy (1) completes phase {} of {of}, and the thread of (2) has neither waited for that phase nor \
                     learned of it from one that did{knows}",
                    phase.saturating_sub(1)
                )
            }
        }
    }

    pub(super) fn pending_help(&self, pending: Pending) -> String {
        let shared = match self.finding.relation {
            Relation::Thread => "",
            Relation::Warp => ", and a warp barrier behind that wait",
            Relation::Block => ", and a block barrier behind that wait",
            Relation::Cluster => ", and a cluster barrier behind that wait",
            _ => ", and a release behind that wait that the thread of (2) acquires",
        };
        match pending {
            Pending::Issue => {
                let order = match self.finding.relation {
                    Relation::Thread | Relation::Warp => {
                        "put a warp barrier, `__syncwarp()`, between (1) and the copy (2)"
                    }
                    Relation::Block => {
                        "put a block barrier, or an mbarrier at which the thread of (1) arrives and that of (2) waits, before the copy (2)"
                    }
                    Relation::Cluster => "put a cluster barrier between (1) and the copy (2)",
                    _ => "order (1) before the copy (2) by a release and an acquire, or by another launch",
                };
                let class = |witness: Option<&Witness>| witness.map(|witness| witness.class);
                let may_see = class(self.first()) == Some(AccessClass::Read)
                    && class(self.last()) == Some(AccessClass::Write);
                let wait = if may_see {
                    ", or, if (1) is to see what is copied, wait for that before (1)"
                } else {
                    ""
                };
                format!("{order}{wait}")
            }
            Pending::ProxyFence { shared } => {
                let space = if shared { "shared::cta" } else { "global" };
                format!(
                    "put `fence.proxy.async.{space}` between (1) and (2): behind (1) in its thread, before the barrier that follows"
                )
            }
            Pending::NotCommitted { bulk } => {
                format!("put `{}.commit_group` behind the copy, before the wait", of_groups(bulk))
            }
            Pending::NotWaited { bulk, reads } => {
                let read = if reads && bulk { ".read" } else { "" };
                format!(
                    "put `{}.wait_group{read} 0` before (2), in the thread of (1){shared}",
                    of_groups(bulk)
                )
            }
            Pending::Left { wait, most, .. } => {
                format!("let fewer groups stay pending: `{}`{shared}", self.wait_op(wait, Some(most)))
            }
            Pending::OnlyReads { .. } => format!("wait by `cp.async.bulk.wait_group 0`{shared}"),
            Pending::Apart => {
                let barrier = match self.finding.relation {
                    Relation::Thread | Relation::Warp => "a warp barrier",
                    Relation::Block => "a block barrier",
                    Relation::Cluster => "a cluster barrier",
                    _ => "a release and an acquire",
                };
                format!(
                    "put {barrier} behind (2), before its bytes are copied to again, or, if (2) is to see them, between the wait for the copy and (2)"
                )
            }
            Pending::OwnOnly | Pending::Unshared { .. } => match self.finding.relation {
                Relation::Warp => "put a warp barrier, `__syncwarp()`, between that wait and (2)".into(),
                Relation::Cluster => "put a cluster barrier between that wait and (2)".into(),
                Relation::Grid => "release behind that wait, and acquire before (2)".into(),
                _ => "put a block barrier, `__syncthreads()`, between that wait and (2)".into(),
            },
            Pending::Phase { mbarrier, phase, .. } => format!(
                "wait for {} before (2), parity {} (`mbarrier.try_wait.parity`), in each thread that uses the bytes or before a barrier of them all",
                self.mbarrier(mbarrier),
                phase.saturating_sub(1) & 1
            ),
        }
    }
}
