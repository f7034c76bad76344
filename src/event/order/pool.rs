//! Strong operations in flight: which of those whose tickets overlap goes first.
//!
//! The one that ended first does, unless values say otherwise: what reads a value goes before what takes it away, and
//! after what brings it.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::queue::{lanes_of, retire};
use super::{Orderer, Role};
use crate::abi::control::FIRST_TICKET;
use crate::abi::{Record, decode};
use crate::event::{Handler, Place};
use crate::isa::{Access, AccessKind, MbarrierOp};

pub(super) type Ranks = SmallVec<[u8; 32]>;

/// A strong operation at the head of its lanes, by its end ticket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) before: u64,
    /// Lanes not yet replayed.
    pub(super) left: u32,
    /// It leaves every value as it read it.
    pub(super) reads_only: bool,
    /// It waits for a phase of an mbarrier.
    pub(super) waits: bool,
}

/// End ticket, warp, and where its record starts.
pub(super) type PoolKey = (u64, WarpKey, usize);

/// A change that an operation will make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) place: Place,
    /// What it takes away; `None`: whatever is there.
    pub(super) read: Option<u64>,
    pub(super) written: u64,
}

/// What helps to tell whether an operation can act now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hints<'h> {
    /// Changes that overlapping operations will make.
    changes: &'h [(PoolKey, Change)],
    /// The operation itself, whose changes do not count.
    own: Option<PoolKey>,
    /// Values that overlapping operations read and leave there: they go before the next change.
    wanted: &'h [(Place, u64)],
    /// A place of which nothing is known may be taken to hold what was read.
    guess: bool,
}

impl Hints<'_> {
    /// Nothing is known of others.
    pub(super) fn none(guess: bool) -> Self {
        Self { changes: &[], own: None, wanted: &[], guess }
    }

    /// Whether other operations have no say.
    fn is_none(&self) -> bool {
        self.changes.is_empty() && self.wanted.is_empty()
    }

    /// Whether another operation is about to leave this value there.
    fn brings(&self, place: Place, value: Option<u64>) -> bool {
        let mut others = self.changes.iter().filter(|(of, _)| Some(*of) != self.own);
        others.any(|(_, change)| change.place == place && Some(change.written) == value)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WarpKey {
    pub(super) block: u32,
    pub(super) warp: u8,
}

/// Which tickets belong to operations that have been replayed or are in the pool. One that waits behind a barrier in its
/// queue has arrived, but what comes after it must wait as well.
#[derive(Debug)]
pub(super) struct Watermark {
    pub(super) next: u64,
    pub(super) ahead: FxHashSet<u64>,
}

impl Default for Watermark {
    fn default() -> Self {
        Self { next: FIRST_TICKET, ahead: FxHashSet::default() }
    }
}

impl Watermark {
    pub(super) fn note(&mut self, ticket: u64) {
        if ticket > self.next {
            self.ahead.insert(ticket);
        } else if ticket == self.next {
            self.next += 1;
            while !self.ahead.is_empty() && self.ahead.remove(&self.next) {
                self.next += 1;
            }
        }
    }

    /// Takes all tickets up to this one for known.
    pub(super) fn pass(&mut self, ticket: u64) {
        self.next = self.next.max(ticket.saturating_add(1));
    }

    /// Takes all tickets up to the latest for known.
    pub(super) fn skip(&mut self) {
        self.next = self.ahead.drain().max().map_or(self.next, |latest| self.next.max(latest + 1));
    }

    /// Whether all tickets up to this one are.
    pub(super) fn covers(&self, ticket: u64) -> bool {
        ticket < self.next
    }
}

impl Orderer {
    /// Which of the lanes can act now, in which order, by the values they read. Notes what they leave.
    pub(super) fn runnable(
        &mut self,
        access: &Access,
        record: &Record<'_>,
        lanes: u32,
        hints: Hints<'_>,
    ) -> Ranks {
        let mut order = Ranks::new();
        let mut pending: Ranks = ranks_of(record, lanes).collect();
        if hints.is_none() && access.kind != AccessKind::Store && pending.len() > 1 {
            // Where no other operation has a say, lanes at different places do not concern each other.
            let (all, _) = record.all_a();
            let address = |rank: &u8| all[usize::from(*rank) & 31];
            pending.sort_by_key(address);
            for lanes in pending.chunk_by(|a, b| address(a) == address(b)) {
                self.run_lanes(access, record, lanes.into(), hints, &mut order);
            }
            return order;
        }
        self.run_lanes(access, record, pending, hints, &mut order);
        order
    }

    /// Takes lanes that can act from those pending, one after the other.
    fn run_lanes(
        &mut self,
        access: &Access,
        record: &Record<'_>,
        mut pending: Ranks,
        hints: Hints<'_>,
        order: &mut Ranks,
    ) {
        while let Some(index) = self.next_lane(access, record, &pending, hints) {
            let rank = pending.remove(index);
            let rank_index = usize::from(rank);
            // A failed compare-and-swap and a load leave the value as it was.
            let left = record.written(rank_index).or(record.read(rank_index));
            let place = Place::of(record, rank_index, &self.geometry);
            if access.writes() {
                self.values.set(place, left);
            } else {
                self.values.set_loaded(place, left);
            }
            order.push(rank);
            if left.is_some_and(|left| hints.wanted.contains(&(place, left))) {
                break;
            }
        }
    }

    /// The lane that acts next: one that reads what is there and leaves what another wants to read; else one that reads what
    /// is there; else, where nothing is known, one that reads what no other is about to write; else, as such lanes go round
    /// in a circle and any of them may begin, the first.
    fn next_lane(
        &self,
        access: &Access,
        record: &Record<'_>,
        pending: &[u8],
        hints: Hints<'_>,
    ) -> Option<usize> {
        if access.kind == AccessKind::Store {
            return (!pending.is_empty()).then_some(0);
        }
        let (mut fits, mut begins, mut first) = (None, None, None);
        for (index, rank) in pending.iter().enumerate() {
            let rank = usize::from(*rank);
            let place = Place::of(record, rank, &self.geometry);
            let (read, written) = (record.read(rank), record.written(rank));
            let others = || {
                let others = pending.iter().map(|other| usize::from(*other));
                others
                    .filter(move |other| *other != rank && Place::of(record, *other, &self.geometry) == place)
            };
            match self.values.current(place) {
                Some(value) if Some(value) == read => {
                    let wanted =
                        written.is_none() || written == read || others().any(|o| record.read(o) == written);
                    if wanted || others().next().is_none() {
                        return Some(index);
                    }
                    fits = fits.or(Some(index));
                }
                Some(_) => {}
                None if !hints.guess => {}
                None if hints.brings(place, read) => {}
                None => {
                    // Lanes go round in a circle only if no other warp comes in between.
                    if !others().any(|other| hints.brings(place, record.read(other))) {
                        first = first.or(Some(index));
                    }
                    let follows = access.is_rmw()
                        && others().any(|o| record.written(o) == read && record.written(o) != record.read(o));
                    if !follows {
                        begins = begins.or(Some(index));
                    }
                }
            }
        }
        fits.or(begins).or(first)
    }

    /// Takes a record that stands at `at` in its warp's queue into the pool.
    pub(super) fn enter(&mut self, record: &Record<'_>, key: WarpKey, at: usize, left: u32) {
        let (before, after) = record.tickets().unwrap_or_default();
        let keeps = |rank| match (record.read(rank), record.written(rank)) {
            (Some(read), written) => written.is_none_or(|written| written == read),
            (None, _) => false,
        };
        let mbarrier = match self.roles.get(record.site() as usize) {
            Some(Role::Mbarrier(mbarrier)) => Some(mbarrier.op),
            _ => None,
        };
        let waits = matches!(mbarrier, Some(MbarrierOp::Wait { .. }));
        let reads_only = waits || (mbarrier.is_none() && (0..record.lane_count()).all(keeps));
        self.readers += usize::from(reads_only);
        self.stalled = false;
        self.pool.insert((after, key, at), Candidate { before, left, reads_only, waits });
    }

    fn leave(&mut self, at: &PoolKey) {
        if let Some(candidate) = self.pool.remove(at) {
            self.readers -= usize::from(candidate.reads_only);
        }
    }

    /// Replays one strong operation of the pool, or lanes of one; tells whether anything happened.
    pub(super) fn step_pool(&mut self, handler: &mut impl Handler) -> bool {
        let Some((&first_key, _)) = self.pool.first_key_value() else { return false };
        let after = first_key.0;
        if self.stalled {
            return false;
        }
        if !self.flushing && !self.watermark.covers(after) {
            return false;
        }
        // Where every operation changes what it reads, as with a counter, the first whose value is there may go at once.
        let known = Hints::none(false);
        if self.readers == 0 && self.attempt(first_key, false, known, handler) {
            return true;
        }
        // Others whose intervals overlap may come first; its value tells, or theirs do.
        let overlapping: Vec<_> =
            self.pool.iter().filter(|(_, c)| c.before < after).map(|(key, _)| *key).collect();
        let waits = |orderer: &Self, key: &PoolKey| orderer.pool.get(key).is_some_and(|c| c.waits);
        // A phase that is waited for may not be complete much longer.
        for key in &overlapping {
            if waits(self, key) && self.attempt(*key, false, known, handler) {
                return true;
            }
        }
        let changes = self.changes(&overlapping);
        // A place of which nothing is known holds what the first operation read, or what it was made from.
        self.assume_origin(first_key, &changes);
        // Those that change nothing go first: a change may take away the value that they saw.
        let wanted = self.wanted(&overlapping);
        for changing in [false, true] {
            for key in &overlapping {
                if changes.iter().any(|(of, _)| of == key) != changing {
                    continue;
                }
                let wanted = if changing { &wanted[..] } else { &[] };
                let hints = Hints { changes: &changes, own: Some(*key), wanted, guess: *key == first_key };
                if self.attempt(*key, false, hints, handler) {
                    return true;
                }
            }
        }
        // No order explains the values: without what others will do first, then by force.
        let hints = Hints::none(true);
        let mut forced = first_key;
        if waits(self, &first_key) {
            if !self.flushing && !self.unseen {
                self.stalled = true;
                return false;
            }
            // Others may lead on to what this one waits for.
            forced = overlapping.iter().copied().find(|key| !waits(self, key)).unwrap_or(first_key);
        }
        if self.attempt(forced, false, hints, handler) {
            return true;
        }
        // That is the first of the chain of values that leads to it.
        let first = changes.iter().find(|(key, _)| *key == forced);
        let begins =
            first.and_then(|(_, change)| back(&changes, change.place, change.read?).0).unwrap_or(forced);
        self.attempt(begins, true, Hints { changes: &changes, own: Some(begins), ..hints }, handler)
    }

    /// Follows the values that an operation read at places of which nothing is known back to where they began. What brought
    /// a value began before the operation ended, so it is among those that overlap.
    fn assume_origin(&mut self, first: PoolKey, changes: &[(PoolKey, Change)]) {
        let Some(candidate) = self.pool.get(&first) else { return };
        let Some(record) = self.record(first).filter(|record| self.is_strong(record)) else {
            return;
        };
        let mut origins: SmallVec<[(Place, u64); 1]> = SmallVec::new();
        for (rank, lane) in record.lanes().enumerate() {
            let place = Place::of(&record, rank, &self.geometry);
            let unknown = candidate.left >> lane & 1 != 0
                && self.values.current(place).is_none()
                && origins.iter().all(|(known, _)| *known != place);
            let Some(read) = record.read(rank).filter(|_| unknown) else { continue };
            let (_, origin) = back(changes, place, read);
            origins.extend(origin.map(|origin| (place, origin)));
        }
        for (place, origin) in origins {
            self.values.set(place, Some(origin));
        }
    }

    /// The record of a candidate.
    fn record(&self, (_, key, at): PoolKey) -> Option<Record<'_>> {
        let block = self.blocks.get(key.block)?;
        let units = block.warps.get(usize::from(key.warp))?.queue.units.get(at..)?;
        decode(units).ok().flatten()
    }

    /// Whether its values are those of memory: mbarrier operations log other things.
    fn is_strong(&self, record: &Record<'_>) -> bool {
        matches!(self.roles.get(record.site() as usize), Some(Role::Strong(_)))
    }

    /// Values that operations of the pool read and leave where they are.
    fn wanted(&self, keys: &[PoolKey]) -> Vec<(Place, u64)> {
        let mut wanted = Vec::new();
        for key in keys {
            let Some(candidate) = self.pool.get(key).filter(|candidate| candidate.reads_only) else {
                continue;
            };
            let Some(record) = self.record(*key).filter(|record| self.is_strong(record)) else {
                continue;
            };
            for (rank, lane) in record.lanes().enumerate() {
                let read = record.read(rank).filter(|_| candidate.left >> lane & 1 != 0);
                wanted.extend(read.map(|read| (Place::of(&record, rank, &self.geometry), read)));
            }
        }
        wanted
    }

    /// What operations of the pool will change.
    pub(super) fn changes(&self, keys: &[PoolKey]) -> Vec<(PoolKey, Change)> {
        let mut changes = Vec::new();
        for key in keys {
            let Some(candidate) = self.pool.get(key) else { continue };
            let Some(record) = self.record(*key).filter(|record| self.is_strong(record)) else {
                continue;
            };
            for (rank, lane) in record.lanes().enumerate() {
                let place = Place::of(&record, rank, &self.geometry);
                if let Some(written) = record.written(rank)
                    && candidate.left >> lane & 1 != 0
                    && record.read(rank) != Some(written)
                {
                    changes.push((*key, Change { place, read: record.read(rank), written }));
                }
            }
        }
        changes
    }

    /// Replays lanes of a candidate that can act, or all of them when forced.
    pub(super) fn attempt(
        &mut self,
        at: PoolKey,
        force: bool,
        hints: Hints<'_>,
        handler: &mut impl Handler,
    ) -> bool {
        let Some(&candidate) = self.pool.get(&at) else { return false };
        let (_, key, start) = at;
        let Some(block) = self.blocks.get_mut(key.block) else {
            self.leave(&at);
            return true;
        };
        let mut queue = std::mem::take(&mut block.warps[usize::from(key.warp)].queue);
        let mut left = candidate.left;
        let mut length = 0;
        if let Some(record) = queue.units.get(start..).and_then(|units| decode(units).ok().flatten()) {
            length = record.units().len();
            let role = self.roles.get(record.site() as usize).copied();
            if let Some(Role::Mbarrier(mbarrier)) = role {
                left = self.mbarrier(&mbarrier, &record, left, force, handler);
            } else if let Some(Role::Strong(access)) = role {
                let mut ranks = self.runnable(&access, &record, left, hints);
                if force && (ranks.len() as u32) < left.count_ones() {
                    self.force(&access, &record, left, hints, &mut ranks);
                }
                if !ranks.is_empty() {
                    handler.access(&record, &ranks);
                }
                left &= !lanes_of(&record, &ranks);
            } else {
                left = 0;
            }
        } else {
            left = 0;
        }
        let progressed = left != candidate.left;
        if left == 0 {
            self.leave(&at);
            if length != 0 {
                retire(&mut queue, start, length);
            }
            self.ready.push(key);
        } else if let Some(entry) = self.pool.get_mut(&at) {
            entry.left = left;
        }
        self.put_back(key, queue);
        progressed
    }

    /// Whether all that is known of the places of these lanes is what loads saw: one that saw an older value than the latest
    /// is no sign that the order is wrong.
    fn follows_a_load(&self, record: &Record<'_>, lanes: u32) -> bool {
        let places = record.lanes().enumerate().filter(|(_, lane)| lanes >> lane & 1 != 0);
        places
            .map(|(rank, _)| Place::of(record, rank, &self.geometry))
            .all(|place| self.values.is_loaded(place))
    }

    /// Adds lanes that no value explains: of loads all; of others those that read what nobody brings, and what goes on from these.
    fn force(
        &mut self,
        access: &Access,
        record: &Record<'_>,
        left: u32,
        hints: Hints<'_>,
        ranks: &mut Ranks,
    ) {
        let rest = left & !lanes_of(record, ranks);
        if !access.is_rmw() {
            // A stale load says nothing of what the place holds now.
            ranks.extend(ranks_of(record, rest));
            return;
        }
        let brought = |rank: &u8| {
            let at = |rank: usize| Place::of(record, rank, &self.geometry);
            let (place, read) = (at(usize::from(*rank)), record.read(usize::from(*rank)));
            let mut others = ranks_of(record, rest).filter(|other| other != rank).map(usize::from);
            hints.brings(place, read)
                || others.any(|other| at(other) == place && read.is_some() && record.written(other) == read)
        };
        let mut begin: Ranks = ranks_of(record, rest).filter(|rank| !brought(rank)).collect();
        if begin.is_empty() {
            // Values that go round in a circle have no beginning.
            begin.extend(ranks_of(record, rest).next());
        }
        let begun = lanes_of(record, &begin);
        if !self.follows_a_load(record, begun) {
            self.doubt(access, record, &begin);
        }
        for rank in &begin {
            let rank = usize::from(*rank);
            self.values.set(Place::of(record, rank, &self.geometry), record.written(rank));
        }
        ranks.extend(begin);
        ranks.extend(self.runnable(access, record, rest & !begun, Hints::none(false)));
    }
}

/// Follows a value back to where it began: the operation that began the chain, if any brings the value, and the value that was there
/// before, unless nobody knows it or values go round in a circle.
fn back(changes: &[(PoolKey, Change)], place: Place, mut value: u64) -> (Option<PoolKey>, Option<u64>) {
    let mut passed: FxHashSet<u64> = FxHashSet::default();
    let mut first = None;
    while passed.insert(value) {
        let Some((key, change)) = changes.iter().find(|(_, c)| c.place == place && c.written == value) else {
            return (first, Some(value));
        };
        first = Some(*key);
        let Some(read) = change.read else { break };
        value = read;
    }
    (first, None)
}

/// The ranks of these lanes.
fn ranks_of(record: &Record<'_>, lanes: u32) -> impl Iterator<Item = u8> {
    record.lanes().enumerate().filter(move |(_, lane)| lanes >> lane & 1 != 0).map(|(rank, _)| rank as u8)
}
