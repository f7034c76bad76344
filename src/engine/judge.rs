//! From an unordered conflict to its rule and severity.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::clock::{Clock, Time};
use super::collect::Conflict;
use super::conflict::{Viewer, includes};
use super::mbarrier::Mbarriers;
use super::publish::{self, Party};
use super::shadow::{Entry, Key, Path, WORD};
use super::sync::Locations;
use super::thread::{View, Warp};
use super::{Launch, Sites};
use crate::abi::lanes;
use crate::diag::Severity;
use crate::event::{Geometry, Place};
use crate::finding::{AccessClass, Kind, Missing, Pending, Relation, Rule, ThreadId, Witness};
use crate::instrument::SiteId;
use crate::isa::Scope;

/// What judging needs to know.
pub(super) struct Judge<'j> {
    pub(super) sites: &'j Sites,
    pub(super) launches: &'j [Launch],
    pub(super) locations: &'j Locations,
    /// The block of the later access.
    pub(super) block: View<'j>,
    pub(super) mbarriers: &'j Mbarriers,
    /// The block whose shared memory it is, else 0.
    pub(super) home: u32,
    /// What the later access's thread knows.
    pub(super) viewer: Viewer<'j>,
    pub(super) explained: &'j Explained,
    pub(super) several_devices: bool,
}

/// Explanations by pair of sites. Two sites that race in a loop do so for one reason: after `EXPLANATIONS` of them the last
/// stands for the rest.
pub(super) type Explained = RefCell<FxHashMap<(SiteId, SiteId), (u32, Option<(Rule, Missing)>)>>;

const EXPLANATIONS: u32 = 64;

/// Two accesses that overlap, at least one a write, not ordered in base causality.
pub(super) struct Facts<'f> {
    pub(super) key: Key,
    pub(super) entry: &'f Entry,
    pub(super) lane: u8,
    pub(super) now_key: Key,
    pub(super) now: &'f Entry,
    pub(super) now_lane: u8,
    /// A surface reads what was written in the same launch, in order.
    pub(super) stale: bool,
}

impl Facts<'_> {
    fn earlier(&self) -> ThreadId {
        let Entry { launch, block, warp, .. } = *self.entry;
        ThreadId { launch, block, warp, lane: self.lane }
    }

    fn later(&self) -> ThreadId {
        let Entry { launch, block, warp, .. } = *self.now;
        ThreadId { launch, block, warp, lane: self.now_lane }
    }

    fn same_record(&self) -> bool {
        self.entry.record == self.now.record && self.entry.launch == self.now.launch
    }
}

impl Judge<'_> {
    /// Decides a conflict; `None` when it is none after all.
    pub(super) fn judge(&self, facts: &Facts<'_>, word: u64) -> Option<Conflict> {
        let (key, now_key) = (facts.key, facts.now_key);
        let relation = self.relation(facts);
        let both_strong = key.is_strong() && now_key.is_strong();
        let same_bytes = key.same_bytes(&now_key);
        let read_only = (key.path == Path::ReadOnly || now_key.path == Path::ReadOnly || facts.stale)
            && relation < Relation::Launch;
        let asynchronous =
            (key.path.is_asynchronous() || now_key.path.is_asynchronous()) && relation < Relation::Launch;
        let atomics = [key, now_key].iter().filter(|k| k.class == AccessClass::Atomic).count();
        let mut severity = Severity::Error;
        let mut converged = false;
        let (rule, missing) = if read_only {
            // The read-only path sees no order at all.
            (Rule::R009, by_distance(relation).1)
        } else {
            if both_strong && same_bytes && self.inclusive(facts) {
                return match relation {
                    Relation::Warp => self.volatile_lanes(facts, relation, atomics, word),
                    _ => self.strong_data(facts, relation, word),
                };
            }
            if !asynchronous && self.ordered_by_observation(facts, word) {
                return None;
            }
            converged = self.converged(facts, word);
            if converged && !asynchronous {
                let (by_distance, missing) = self.distance(facts, relation);
                let missing = if relation == Relation::Warp { missing } else { Missing::Converged };
                (if atomics == 1 { Rule::R007 } else { by_distance }, missing)
            } else if converged {
                (Rule::R008, Missing::Converged)
            } else if asynchronous {
                let pending = self.pending(facts);
                // Its data has come, whatever the proxies do; nothing but the letter of the model asks for a fence.
                if matches!(pending, Pending::ProxyFence { .. }) && key.class == AccessClass::Read {
                    severity = Severity::Warning;
                }
                (Rule::R008, Missing::Asynchronous(pending))
            } else if key.path.is_of_mbarrier() && now_key.path.is_of_mbarrier() {
                self.distance(facts, relation)
            } else if both_strong && !self.inclusive(facts) {
                (Rule::R004, Missing::AccessScope)
            } else {
                self.unordered(facts, relation, word)
            }
        };
        // Atomics stay mutually atomic at different sizes if their scopes include each other; libraries make byte atomics so.
        if rule == Rule::R011 && (atomics == 2 || (atomics == 1 && both_strong && self.inclusive(facts))) {
            severity = Severity::Warning;
        }
        let plain_writes = key.class == AccessClass::Write && now_key.class == AccessClass::Write;
        let same_instruction = facts.same_record() && plain_writes && !both_strong;
        let same_tile = key.path == Path::Tile
            && now_key.path == Path::Tile
            && facts.entry.value.is_some()
            && facts.entry.value == facts.now.value;
        if same_instruction
            || same_tile
            || converged
            || facts.stale
            || self.exited_before_barrier(facts, relation)
        {
            severity = severity.min(Severity::Warning);
        }
        let same_value = plain_writes
            && same_bytes
            && rule != Rule::R009
            && key.path != Path::Tile
            && key.path.is_asynchronous() == now_key.path.is_asynchronous()
            && !self.stands(facts, relation)
            && facts.entry.value.is_some()
            && facts.entry.value == facts.now.value
            && self.same_shape(facts);
        let witnesses = self.witnesses(facts, word);
        let kind = Some(Kind::of(key.class, now_key.class));
        Some(Conflict { rule, severity, kind, relation, witnesses, missing, same_value, same_instruction })
    }

    /// Nothing special about the accesses: what is wanting is order, or they differ in size only.
    fn unordered(&self, facts: &Facts<'_>, relation: Relation, word: u64) -> (Rule, Missing) {
        let (key, now_key) = (facts.key, facts.now_key);
        let found = match self.publication(facts, relation, word) {
            Some((rule, missing)) if !matches!(missing, Missing::Apart { .. }) => return (rule, missing),
            found => found,
        };
        if self.differ_in_size(facts) {
            return (Rule::R011, Missing::Size);
        }
        let (rule, missing) = found.unwrap_or_else(|| self.distance(facts, relation));
        let atomics = [key, now_key].iter().filter(|k| k.class == AccessClass::Atomic).count();
        (if atomics == 1 { Rule::R007 } else { rule }, missing)
    }

    /// Whether the program chose different sizes. It does not where ranges, tiles or rows of a matrix are accessed.
    fn differ_in_size(&self, facts: &Facts<'_>) -> bool {
        let is_access = |key: Key, site| {
            let rows = self.sites.get(site).and_then(|s| s.access()).and_then(|access| access.rows);
            !key.path.is_range() && rows.is_none()
        };
        !facts.key.same_bytes(&facts.now_key)
            && is_access(facts.key, facts.entry.site)
            && is_access(facts.now_key, facts.now.site)
    }

    /// Whether the earlier store also stands for what races with the later one and has another value.
    fn stands(&self, facts: &Facts<'_>, relation: Relation) -> bool {
        let Entry { launch, block, warp, stands, .. } = *facts.entry;
        let is_after = |time| {
            let known = self.viewer.know.clock.known(block, warp, 1 << (facts.lane & 31), time);
            launch == facts.now.launch && known != 0
        };
        stands.counts(facts.now_key.scope, relation > Relation::Block, is_after)
    }

    /// Values are logged for whole stores, so only stores of one shape can be compared.
    fn same_shape(&self, facts: &Facts<'_>) -> bool {
        let shape = |site| self.sites.get(site).and_then(|s| s.access()).map(|a| (a.element, a.count));
        facts.entry.site == facts.now.site || shape(facts.entry.site) == shape(facts.now.site)
    }

    fn relation(&self, facts: &Facts<'_>) -> Relation {
        let (a, b) = (facts.earlier(), facts.later());
        if a.launch != b.launch {
            return Relation::Launch;
        }
        if a.block != b.block {
            let near = self.geometry(b).same_cluster(a.block, b.block);
            return if near { Relation::Cluster } else { Relation::Grid };
        }
        if a.warp != b.warp {
            Relation::Block
        } else if a.lane != b.lane {
            Relation::Warp
        } else {
            Relation::Thread
        }
    }

    fn geometry(&self, thread: ThreadId) -> Geometry {
        self.launches.get(thread.launch as usize).map_or(Geometry::new(1), |launch| launch.geometry)
    }

    /// What is wanting around an asynchronous access.
    fn pending(&self, facts: &Facts<'_>) -> Pending {
        let entry = Entry { mask: 1 << facts.lane, ..*facts.entry };
        let (earlier, later) = (facts.earlier(), facts.later());
        let own = if earlier == later { entry.mask } else { 0 };
        if self.viewer.causal(&entry, own) != 0 {
            return Pending::ProxyFence { shared: self.viewer.shared };
        }
        if !entry.path.is_asynchronous() {
            return Pending::Issue;
        }
        let place = |mbarrier| self.mbarriers.place(mbarrier).address;
        let pending = self.viewer.copies.pending(entry.order, facts.lane, self.viewer.phases(), place);
        let issued = earlier == later
            || self.viewer.know.clock.known(entry.block, entry.warp, entry.mask, entry.time) != 0;
        let warp = self.block.warps.get(usize::from(later.warp));
        let groups = warp.and_then(|warp| warp.groups.as_deref());
        match pending {
            Pending::NotWaited { .. } | Pending::Left { .. }
                if earlier != later && self.viewer.copies.has_waited(entry.order, groups, later.lane) =>
            {
                Pending::OwnOnly
            }
            // Who has not waited at all meant to see what is copied.
            Pending::Unshared { .. } | Pending::Phase { seen: 0, .. } => pending,
            _ if issued => pending,
            _ => Pending::Apart,
        }
    }

    /// Whether each scope includes the other thread.
    fn inclusive(&self, facts: &Facts<'_>) -> bool {
        let (a, b) = (facts.earlier(), facts.later());
        let launch = self.launches.get(b.launch as usize);
        if self.several_devices && !self.of_one_device(a.launch, b.launch) {
            let all = |scope: Option<Scope>| scope == Some(Scope::Sys);
            return all(facts.key.scope) && all(facts.now_key.scope);
        }
        facts.key.scope.is_some_and(|scope| includes(scope, a, b, launch))
            && facts.now_key.scope.is_some_and(|scope| includes(scope, b, a, launch))
    }

    /// Whether two launches are of one device.
    pub(super) fn of_one_device(&self, a: u32, b: u32) -> bool {
        let device = |of: u32| self.launches.get(of as usize).map(|launch| launch.device);
        a == b || device(a) == device(b)
    }

    /// Causality through observation: the earlier access is a write that a thread observed which the later access is
    /// ordered after (or which made the later access itself).
    fn ordered_by_observation(&self, facts: &Facts<'_>, word: u64) -> bool {
        let later = facts.later();
        self.observed(facts, word, |thread, time| {
            thread == later
                || self.viewer.know.clock.known(thread.block, thread.warp, 1 << thread.lane, time) != 0
        })
    }

    /// Whether the earlier access is a write that a thread observed of which this is so, and of the time when it did.
    fn observed(&self, facts: &Facts<'_>, word: u64, before: impl Fn(ThreadId, Time) -> bool) -> bool {
        if !facts.key.is_strong() || !facts.key.writes() || facts.entry.launch != facts.now.launch {
            return false;
        }
        let Some(location) = self.locations.get(&self.place(facts, word)) else { return false };
        location.observed_before(facts.entry.order, before)
    }

    /// Where the earlier access is.
    fn place(&self, facts: &Facts<'_>, word: u64) -> Place {
        let address = word.wrapping_add_signed(i64::from(facts.key.start));
        let block = if crate::abi::Tagged(address).is_shared() { self.home } else { 0 };
        Place { address, block }
    }

    fn publication(&self, facts: &Facts<'_>, relation: Relation, word: u64) -> Option<(Rule, Missing)> {
        if relation == Relation::Launch || facts.same_record() {
            return None;
        }
        let pair = (facts.entry.site, facts.now.site);
        let mut explained = self.explained.borrow_mut();
        let (count, last) = explained.entry(pair).or_default();
        if *count >= EXPLANATIONS {
            return last.clone();
        }
        *count += 1;
        let earlier = Party { thread: facts.earlier(), time: facts.entry.time };
        let later = Party { thread: facts.later(), time: facts.now.time };
        let address = word.wrapping_add_signed(i64::from(facts.key.start));
        let sites = [pair.0, pair.1];
        *last = publish::explain(
            earlier,
            later,
            sites,
            address,
            self.viewer.know,
            self.block,
            self.locations,
            self.geometry(facts.later()),
        );
        if last.is_none() && matches!(relation, Relation::Cluster | Relation::Grid) {
            let apart = publish::apart(
                earlier,
                later,
                [facts.entry.interval, facts.now.interval],
                address,
                self.viewer.know,
                self.block,
                self.locations,
                self.geometry(facts.later()),
            );
            *last = apart.map(|missing| (Rule::R003, missing));
        }
        last.clone()
    }

    /// What conflicts of two sites are explained by, if that is settled.
    pub(super) fn settled(&self, earlier: SiteId, now: SiteId) -> Option<Option<Rule>> {
        let explained = self.explained.borrow();
        let (count, last) = explained.get(&(earlier, now))?;
        (*count >= EXPLANATIONS).then(|| last.as_ref().map(|(rule, _)| *rule))
    }

    /// Whether a block is of the cluster of the later access.
    pub(super) fn near(&self, now: &Entry, block: u32) -> bool {
        let launch = self.launches.get(now.launch as usize);
        launch.is_some_and(|launch| launch.geometry.same_cluster(block, now.block))
    }

    /// Strong data behind a flag whose publication is incomplete: no race, but the read may be stale.
    fn strong_data(&self, facts: &Facts<'_>, relation: Relation, word: u64) -> Option<Conflict> {
        let data = facts.key.class == AccessClass::Write && facts.now_key.class == AccessClass::Read;
        let (rule, missing) =
            self.publication(facts, relation, word).filter(|(rule, _)| data && *rule != Rule::R003)?;
        // A store that releases is a flag, not data.
        let place = self.place(facts, word);
        let write = self.locations.get(&place).and_then(|location| location.write(facts.entry.order));
        if write.is_some_and(|write| !write.message.is_empty()) {
            return None;
        }
        Some(Conflict {
            rule,
            severity: Severity::Warning,
            kind: Some(Kind::RW),
            relation,
            witnesses: self.witnesses(facts, word),
            missing,
            same_value: false,
            same_instruction: true,
        })
    }

    fn witnesses(&self, facts: &Facts<'_>, word: u64) -> [Witness; 2] {
        [
            witness(facts.entry, facts.earlier(), facts.key, word),
            witness(facts.now, facts.later(), facts.now_key, word),
        ]
    }

    /// Lanes of one warp that communicate by volatile or relaxed accesses alone: no race, but lockstep is assumed.
    fn volatile_lanes(
        &self,
        facts: &Facts<'_>,
        relation: Relation,
        atomics: usize,
        word: u64,
    ) -> Option<Conflict> {
        let same_value = facts.entry.value.is_some() && facts.entry.value == facts.now.value;
        let harmless = facts.same_record() && same_value;
        if relation != Relation::Warp || atomics != 0 || harmless || self.converged(facts, word) {
            return None;
        }
        let missing = Missing::WarpBarrier { converged: false, same_instruction: facts.same_record() };
        Some(Conflict {
            rule: Rule::R002,
            severity: Severity::Warning,
            kind: Some(Kind::of(facts.key.class, facts.now_key.class)),
            relation,
            witnesses: self.witnesses(facts, word),
            missing,
            same_value: false,
            same_instruction: true,
        })
    }

    /// They would be ordered, if lanes that converge at a `.sync` instruction were ordered by that.
    fn converged(&self, facts: &Facts<'_>, word: u64) -> bool {
        self.meets(facts)
            || self.observed(facts, word, |thread, time| {
                let entry = Entry {
                    block: thread.block,
                    warp: thread.warp,
                    mask: 1 << thread.lane,
                    time,
                    ..*facts.entry
                };
                self.would_precede(&entry, facts.now, facts.now_lane) != 0
            })
    }

    /// The same, not counting causality through observation.
    fn meets(&self, facts: &Facts<'_>) -> bool {
        let entry = Entry { mask: 1 << facts.lane, ..*facts.entry };
        self.would_precede(&entry, facts.now, facts.now_lane) != 0
    }

    /// Lanes of an earlier entry that would precede what a lane does now, if convergence ordered memory.
    fn would_precede(&self, earlier: &Entry, now: &Entry, lane: u8) -> u32 {
        let fenced = now.path == Path::Bulk && earlier.path != Path::Bulk;
        let Some(warp) = self.block.warps.get(usize::from(now.warp)) else { return 0 };
        if earlier.launch != now.launch || fenced {
            return 0;
        }
        let Entry { block, warp: of, mask, time, .. } = *earlier;
        let met = warp.met.iter().filter(|(met, _)| earlier.same_warp(now) && met >> (lane & 31) & 1 != 0);
        let seen = warp.know.get(usize::from(lane)).converged.as_deref();
        if !earlier.path.is_asynchronous() {
            let met = met.filter(|(_, at)| *at >= time).fold(0, |all, (met, _)| all | met & mask);
            return met | seen.map_or(0, |seen| seen.clock.known(block, of, mask, time));
        }
        let complete = |clock: &Clock, phases| self.viewer.copies.complete(earlier, clock, phases, 0);
        let met = met.fold(0, |all, (met, at)| {
            let mut clock = Clock::default();
            clock.raise(block, of, *met, *at);
            all | complete(&clock, None)
        });
        met | seen.map_or(0, |seen| complete(&seen.clock, Some(&seen.phases)))
    }

    /// Of earlier lanes and lanes of now that are unordered, those that would be so even if convergence ordered memory, if there
    /// are any.
    pub(super) fn least_ordered(&self, open: u32, earlier: &Entry, now: &Entry) -> (u32, u32) {
        let any = |warp: &Warp| {
            !warp.met.is_empty() || warp.know.distinct(now.mask).iter().any(|k| k.converged.is_some())
        };
        if open == 0 || !self.block.warps.get(usize::from(now.warp)).is_some_and(any) {
            return (open, now.mask);
        }
        for lane in lanes(now.mask) {
            let others = if earlier.same_warp(now)
                && !(now.path.is_asynchronous() || earlier.path.is_asynchronous())
            {
                open & !(1 << lane)
            } else {
                open
            };
            let left = others & !self.would_precede(&Entry { mask: open, ..*earlier }, now, lane as u8);
            if left != 0 {
                return (left, 1 << lane);
            }
        }
        (open, now.mask)
    }

    /// The earlier thread had exited, and a barrier that the later one passed since counted it as arrived. The ISA gives no
    /// edge; in practice the barrier comes after its accesses.
    fn exited_before_barrier(&self, facts: &Facts<'_>, relation: Relation) -> bool {
        if relation > Relation::Block || facts.key.path.is_asynchronous() {
            return false;
        }
        let (a, b) = (facts.earlier(), facts.later());
        let absent = self.block.warps.get(usize::from(a.warp)).and_then(|warp| warp.absent_phase(a.lane));
        let passed = self.block.warps.get(usize::from(b.warp)).map_or(0, |warp| warp.passed_phase);
        absent.is_some_and(|phase| passed >= phase)
    }

    fn distance(&self, facts: &Facts<'_>, relation: Relation) -> (Rule, Missing) {
        if relation == Relation::Warp {
            let converged = self.meets(facts);
            return (Rule::R002, Missing::WarpBarrier { converged, same_instruction: facts.same_record() });
        }
        let (rule, missing) = by_distance(relation);
        if missing == (Missing::BetweenBlocks { acquired: false }) {
            let acquired = self.viewer.know.clock.knows_of(facts.entry.block);
            return (rule, Missing::BetweenBlocks { acquired });
        }
        (rule, missing)
    }
}

pub(super) fn by_distance(relation: Relation) -> (Rule, Missing) {
    match relation {
        Relation::Thread | Relation::Warp => {
            (Rule::R002, Missing::WarpBarrier { converged: false, same_instruction: false })
        }
        Relation::Block => (Rule::R001, Missing::BlockBarrier),
        Relation::Cluster | Relation::Grid => (Rule::R003, Missing::BetweenBlocks { acquired: false }),
        Relation::Launch | Relation::Host => (Rule::R006, Missing::StreamOrder),
    }
}

pub(super) fn witness(entry: &Entry, thread: ThreadId, key: Key, word: u64) -> Witness {
    // Of a range, the part in this word.
    let (start, bytes) = if key.path.is_range() {
        let start = key.start.max(0);
        (start, (i16::from(key.start) + i16::from(key.bytes)).min(WORD as i16) - i16::from(start))
    } else {
        (key.start, i16::from(key.bytes))
    };
    Witness {
        site: entry.site,
        thread,
        class: key.class,
        address: word.wrapping_add_signed(i64::from(start)),
        bytes: bytes as u8,
        value: entry.value,
        interval: entry.interval,
    }
}
