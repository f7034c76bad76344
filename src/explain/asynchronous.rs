//! What is wanting around asynchronous accesses, in sentences.

use super::advice::Told;
use crate::finding::{AccessClass, Pending, Relation, Witness};
use crate::instrument::{SiteId, SiteKind};
use crate::isa::GroupOp;

impl Told<'_, '_> {
    /// What runs beside the threads: a copy, or a warpgroup's product.
    pub(super) fn work(&self, witness: Option<&Witness>) -> &'static str {
        let site = witness.and_then(|witness| self.context.instruction(witness.site));
        match site {
            Some((_, site)) if matches!(site.kind, SiteKind::Product(_)) => "product",
            _ => "copy",
        }
    }

    /// The work that one of both accesses is of.
    pub(super) fn beside(&self) -> &'static str {
        match self.work(self.first()) {
            "copy" => self.work(self.last()),
            product => product,
        }
    }

    /// The work that (1) is of, and the instructions that wait for such.
    fn groups(&self, bulk: bool) -> (&'static str, &'static str) {
        match (self.work(self.first()), bulk) {
            (product @ "product", _) => (product, "wgmma"),
            (copy, true) => (copy, "cp.async.bulk"),
            (copy, false) => (copy, "cp.async"),
        }
    }

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
            Pending::Issue => {
                format!("nothing orders (1) before {other} issues the {} (2)", self.work(self.last()))
            }
            Pending::ProxyFence { .. } => {
                "(1) is made in the generic proxy and (2) in the async proxy: they are ordered, but no proxy fence lies between"
                    .into()
            }
            Pending::NotCommitted { bulk } => {
                let (work, groups) = self.groups(bulk);
                format!(
                    "the {work} (1) was in no group when its thread waited: no `{groups}.commit_group` stands between"
                )
            }
            Pending::NotWaited { bulk, reads } => {
                let (work, groups) = self.groups(bulk);
                if reads && work == "copy" {
                    format!(
                        "the thread of (1) has not waited until its copy has read the source (`{groups}.wait_group.read`)"
                    )
                } else {
                    format!("the thread of (1) has not waited for its {work} (`{groups}.wait_group`)")
                }
            }
            Pending::Left { wait, pending, .. } => {
                let latest =
                    if pending == 1 { "the latest group".into() } else { format!("the latest {pending} groups") };
                let work = self.groups(false).0;
                format!("{} lets {latest} stay pending, and the {work} (1) with them", self.wait(wait))
            }
            Pending::OnlyReads { wait } => {
                format!("{} waits until the source is read, not until (1) is written", self.wait(wait))
            }
            Pending::OwnOnly if self.work(self.first()) == "product" => {
                format!("nothing orders a wait for the product (1) before (2) in {other}")
            }
            Pending::OwnOnly => format!(
                "the thread of (2) has waited for its own copies, but nothing orders the wait of the thread of (1) before (2) in {other}"
            ),
            Pending::Apart => {
                let work = self.groups(false).0;
                format!("(2) is ordered neither before the issue of the {work} (1) nor behind its completion")
            }
            Pending::Unshared { wait } => format!(
                "the thread of (1) waited for its {} by {}, but nothing orders that before (2) in {other}",
                self.groups(false).0,
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
                let work = self.work(self.last());
                let order = match self.finding.relation {
                    Relation::Thread | Relation::Warp => {
                        format!("put a warp barrier, `__syncwarp()`, between (1) and the {work} (2)")
                    }
                    Relation::Block => format!(
                        "put a block barrier, or an mbarrier at which the thread of (1) arrives and that of (2) waits, before the {work} (2)"
                    ),
                    Relation::Cluster => format!("put a cluster barrier between (1) and the {work} (2)"),
                    _ => format!(
                        "order (1) before the {work} (2) by a release and an acquire, or by another launch"
                    ),
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
                let (work, groups) = self.groups(bulk);
                format!("put `{groups}.commit_group` behind the {work}, before the wait")
            }
            Pending::NotWaited { bulk, reads } => {
                let read = if reads && bulk { ".read" } else { "" };
                let groups = self.groups(bulk).1;
                format!("put `{groups}.wait_group{read} 0` before (2), in the thread of (1){shared}")
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
                match self.work(self.first()) {
                    "product" => format!("put {barrier} between the wait for the product and (2)"),
                    _ => format!(
                        "put {barrier} behind (2), before its bytes are copied to again, or, if (2) is to see them, between the wait for the copy and (2)"
                    ),
                }
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
