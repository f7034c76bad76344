//! Asynchronous accesses: which are pending, and what has completed the others.
//!
//! A copy's source read and destination write are accesses of a thread of their own. They begin when the copy is issued,
//! and precede another access only if that knows what completed them: a wait of the issuing thread for their group, by
//! its clock then, or a phase of an mbarrier. Accesses of one warp that complete together share an entry here.

use smallvec::SmallVec;

use super::clock::{Clock, Phases, Time};
use super::shadow::Entry;
use crate::abi::lanes;
use crate::finding::Pending;
use crate::instrument::SiteId;
use crate::isa::GroupKind;

/// What completed an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A wait of the issuing threads, at this time of theirs.
    Time(Time),
    /// A wait of these lanes of a warp of the same block, whoever issued: the product is the warpgroup's.
    Any {
        /// The warp.
        warp: u8,
        /// The lanes.
        mask: u32,
        /// When they waited, by their clock.
        time: Time,
    },
    /// The completion of a phase.
    Phase {
        /// The engine's number of the mbarrier.
        mbarrier: u32,
        /// The phase.
        phase: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    /// Lanes of the issuing warp whose accesses completed.
    mask: u32,
    end: End,
    /// The wait.
    site: SiteId,
}

/// A wait that was not enough.
#[derive(Clone, Copy, Debug)]
enum Short {
    /// Groups that this wait let stay, and how many may stay at most.
    Left { wait: SiteId, pending: u32, most: u32 },
    /// The copies were in no group yet.
    Uncommitted,
    /// It waited for the reads only.
    Reads { wait: SiteId },
}

/// Accesses that complete together.
#[derive(Clone, Debug)]
struct Copy {
    /// `None`: by an mbarrier.
    kind: Option<GroupKind>,
    /// The number of their group among those of their threads.
    group: u32,
    /// They read.
    reads: bool,
    ends: SmallVec<[Ended; 1]>,
    short: Option<Short>,
}

/// All asynchronous accesses of a launch, by number.
#[derive(Debug, Default)]
pub(super) struct Copies {
    all: Vec<Copy>,
}

impl Copies {
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    fn add(&mut self, kind: Option<GroupKind>, group: u32, reads: bool) -> u32 {
        self.all.push(Copy { kind, group, reads, ends: SmallVec::new(), short: None });
        (self.all.len() - 1) as u32
    }

    fn end(&mut self, copy: u32, mask: u32, end: End, site: SiteId) {
        if let Some(copy) = self.all.get_mut(copy as usize) {
            copy.ends.push(Ended { mask, end, site });
        }
    }

    /// Accesses that complete by a phase.
    pub(super) fn by_phase(&mut self, reads: bool, mbarrier: u32, phase: u32, site: SiteId) -> u32 {
        let copy = self.add(None, 0, reads);
        self.end(copy, u32::MAX, End::Phase { mbarrier, phase }, site);
        copy
    }

    /// Lanes of an asynchronous entry that are complete for who knows this. `own` are lanes of its warp that act now.
    pub(super) fn complete(&self, entry: &Entry, clock: &Clock, phases: Option<&Phases>, own: u32) -> u32 {
        let ends = self.all.get(entry.order as usize).map_or(&[][..], |copy| &copy.ends);
        ends.iter().fold(0, |all, ended| {
            let lanes = entry.mask & ended.mask & !all;
            all | match ended.end {
                _ if lanes == 0 => 0,
                End::Time(time) => lanes & (own | clock.known(entry.block, entry.warp, lanes, time)),
                End::Any { warp, mask, time } => {
                    if clock.known(entry.block, warp, mask, time) != 0 {
                        lanes
                    } else {
                        0
                    }
                }
                End::Phase { mbarrier, phase } => {
                    if phase != 0 && phases.is_some_and(|known| known.latest(mbarrier) >= phase) {
                        lanes
                    } else {
                        0
                    }
                }
            }
        })
    }

    /// Whether a lane with these groups has waited for its own group of that number.
    pub(super) fn has_waited(&self, copy: u32, groups: Option<&Groups>, lane: u8) -> bool {
        let Some(copy) = self.all.get(copy as usize) else { return false };
        let Some((kind, groups)) = copy.kind.zip(groups) else { return false };
        groups.waited[kind as usize][usize::from(lane) & 31] > copy.group
    }

    /// Why a lane's access is not complete for who knows these phases. `place` gives the address of an mbarrier.
    pub(super) fn pending(
        &self,
        copy: u32,
        lane: u8,
        phases: Option<&Phases>,
        place: impl Fn(u32) -> u64,
    ) -> Pending {
        let Some(copy) = self.all.get(copy as usize) else { return Pending::Issue };
        let ended = copy.ends.iter().rev().find(|ended| ended.mask >> (lane & 31) & 1 != 0);
        match ended {
            Some(Ended { end: End::Time(_) | End::Any { .. }, site, .. }) => {
                return Pending::Unshared { wait: *site };
            }
            Some(Ended { end: End::Phase { mbarrier, phase }, .. }) => {
                let seen = phases.map_or(0, |phases| phases.latest(*mbarrier));
                return Pending::Phase { mbarrier: place(*mbarrier), seen, phase: *phase };
            }
            None => {}
        }
        let bulk = copy.kind == Some(GroupKind::Bulk);
        match copy.short {
            Some(Short::Left { wait, pending, most }) => Pending::Left { wait, pending, most },
            Some(Short::Uncommitted) => Pending::NotCommitted { bulk },
            Some(Short::Reads { wait }) => Pending::OnlyReads { wait },
            None => Pending::NotWaited { bulk, reads: copy.reads },
        }
    }
}

/// Accesses of a warp that complete by groups, and are not complete.
#[derive(Clone, Copy, Debug)]
struct Issued {
    copy: u32,
    kind: GroupKind,
    reads: bool,
    /// Lanes that have not waited for it.
    mask: u32,
    /// How many groups those lanes had committed before.
    group: u32,
    /// Lanes whose access an mbarrier completes as well.
    armed: u32,
}

/// A wait for groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) warp: u8,
    /// The lanes.
    pub(super) mask: u32,
    pub(super) time: Time,
    pub(super) site: SiteId,
}

/// Armed accesses kept for waits that follow.
const ARMED: usize = 64;

/// The groups of a warp's lanes.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Committed groups, by kind and lane.
    committed: [[u32; 32]; GroupKind::COUNT],
    /// Groups waited for, likewise.
    waited: [[u32; 32]; GroupKind::COUNT],
    issued: Vec<Issued>,
}

impl Groups {
    /// Lanes issue accesses: gives their numbers with the lanes.
    pub(super) fn issue(
        &mut self,
        copies: &mut Copies,
        kind: GroupKind,
        reads: bool,
        mask: u32,
    ) -> SmallVec<[(u32, u32); 1]> {
        let mut given = SmallVec::new();
        let mut rest = mask;
        while rest != 0 {
            let committed = &self.committed[kind as usize];
            let group = committed[rest.trailing_zeros() as usize & 31];
            let alike = lanes(rest).filter(|lane| committed[*lane] == group);
            let alike = alike.fold(0, |all, lane| all | 1 << lane);
            rest &= !alike;
            let same = |issued: &&Issued| {
                (issued.kind, issued.reads, issued.mask, issued.group, issued.armed)
                    == (kind, reads, alike, group, 0)
            };
            let copy = match self.issued.iter().rev().find(same) {
                Some(issued) => issued.copy,
                None => {
                    let copy = copies.add(Some(kind), group, reads);
                    self.issued.push(Issued { copy, kind, reads, mask: alike, group, armed: 0 });
                    copy
                }
            };
            given.push((copy, alike));
        }
        given
    }

    /// A warp takes part in a product that another one of its warpgroup has issued under this number.
    pub(super) fn share(&mut self, copy: u32, mask: u32) {
        if self.issued.iter().all(|issued| issued.copy != copy) {
            let kind = GroupKind::Warpgroup;
            let group = self.committed[kind as usize][mask.trailing_zeros() as usize & 31];
            self.issued.push(Issued { copy, kind, reads: true, mask, group, armed: 0 });
        }
    }

    pub(super) fn commit(&mut self, kind: GroupKind, mask: u32) {
        lanes(mask).for_each(|lane| self.committed[kind as usize][lane] += 1);
    }

    /// Lanes wait until at most `pending` groups are left, or with `None` for everything; `reads` for the reads only.
    pub(super) fn wait(
        &mut self,
        copies: &mut Copies,
        kind: GroupKind,
        pending: Option<u32>,
        reads: bool,
        wait: Wait,
    ) {
        let Wait { warp, mask, time, site } = wait;
        let committed = &self.committed[kind as usize];
        for lane in lanes(mask) {
            self.waited[kind as usize][lane] = committed[lane].saturating_sub(pending.unwrap_or(0));
        }
        for issued in self.issued.iter_mut().filter(|issued| issued.kind == kind) {
            let here = issued.mask & mask;
            if here == 0 {
                continue;
            }
            if reads && !issued.reads {
                if let Some(copy) = copies.all.get_mut(issued.copy as usize) {
                    copy.short = Some(Short::Reads { wait: site });
                }
                continue;
            }
            let over = |lane: &usize| {
                pending.is_none_or(|pending| issued.group.saturating_add(pending) < committed[*lane])
            };
            let done = lanes(here).filter(over).fold(0, |all, lane| all | 1 << lane);
            if let Some(lane) = lanes(here & !done).next()
                && let Some(copy) = copies.all.get_mut(issued.copy as usize)
            {
                copy.short = Some(match committed[lane].checked_sub(issued.group + 1) {
                    Some(most) => Short::Left { wait: site, pending: pending.unwrap_or(0), most },
                    None => Short::Uncommitted,
                });
            }
            if done != 0 {
                match kind {
                    GroupKind::Warpgroup => {
                        copies.end(issued.copy, u32::MAX, End::Any { warp, mask: done, time }, site);
                    }
                    _ => copies.end(issued.copy, done, End::Time(time), site),
                }
                issued.mask &= !done;
            }
        }
        self.issued.retain(|issued| issued.mask != 0);
    }

    /// What a lane has copied by `cp.async` so far completes by a phase, too.
    pub(super) fn arm(&mut self, copies: &mut Copies, lane: usize, end: End, site: SiteId) {
        for issued in self.issued.iter_mut().filter(|issued| issued.kind == GroupKind::Copy) {
            let new = issued.mask & !issued.armed & 1 << lane;
            if new != 0 {
                issued.armed |= new;
                copies.end(issued.copy, new, end, site);
            }
        }
        if self.issued.len() > ARMED {
            let mut surplus = self.issued.len() - ARMED;
            self.issued.retain(|issued| {
                let goes = surplus > 0 && issued.armed & issued.mask == issued.mask;
                surplus -= usize::from(goes);
                !goes
            });
        }
    }
}
