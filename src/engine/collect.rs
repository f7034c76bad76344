//! Conflicts, grouped into findings: one for each rule, severity and pair of sites.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::marks::Marks;
use super::shadow::WORD;
use crate::diag::Severity;
use crate::finding::{Finding, Kind, Missing, Relation, Rule, Spot, ThreadId, Witness};
use crate::instrument::SiteId;

/// One conflict, judged.
#[derive(Clone, Debug)]
pub(super) struct Conflict {
    pub(super) rule: Rule,
    pub(super) severity: Severity,
    pub(super) kind: Option<Kind>,
    pub(super) relation: Relation,
    pub(super) witnesses: [Witness; 2],
    pub(super) missing: Missing,
    /// Both are plain stores that left the same value.
    pub(super) same_value: bool,
    /// Both are lanes of one execution of one instruction.
    pub(super) same_instruction: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct GroupKey {
    rule: Rule,
    severity: Severity,
    sites: (SiteId, SiteId),
}

impl GroupKey {
    /// Of errors between two sites.
    pub(super) fn error(rule: Rule, a: SiteId, b: SiteId) -> Self {
        Self { rule, severity: Severity::Error, sites: (a.min(b), a.max(b)) }
    }
}

#[derive(Debug)]
struct Group {
    conflict: Conflict,
    count: u64,
    addresses: Marks,
    more_addresses: u64,
    range: (u64, u64),
    /// By a hash of their addresses; those of the lowest are kept, whatever the order they come in.
    spots: BTreeMap<u64, Spot>,
    doubtful: bool,
}

impl Group {
    /// Adds the same group of another launch.
    fn unite(&mut self, other: Self) {
        self.count += other.count;
        let known = self.addresses.common(&other.addresses);
        self.more_addresses += other.more_addresses + other.addresses.len() as u64 - known;
        self.range = (self.range.0.min(other.range.0), self.range.1.max(other.range.1));
        self.doubtful &= other.doubtful;
        other.spots.into_values().for_each(|spot| self.spot(spot));
        if other.conflict.relation > self.conflict.relation {
            self.conflict = other.conflict;
        }
    }

    /// Counts conflicts at an address.
    fn count(&mut self, address: u64, threads: [ThreadId; 2], count: u64) {
        self.count += count;
        if self.addresses.len() < MAX_ADDRESSES {
            if self.addresses.insert(address, 0) {
                self.spot(Spot { address, threads });
            }
        } else if !self.addresses.contains(address, 0) {
            self.more_addresses += count;
        }
    }

    /// Keeps a spot, if it is one of the few to keep.
    fn spot(&mut self, spot: Spot) {
        let hash = mixed(spot.address);
        if self.spots.len() < MAX_SPOTS || self.spots.last_key_value().is_some_and(|(last, _)| hash < *last) {
            self.spots.entry(hash).or_insert(spot);
            if self.spots.len() > MAX_SPOTS {
                self.spots.pop_last();
            }
        }
    }

    fn finding(&self) -> Finding {
        let conflict = &self.conflict;
        let mut spots: Vec<_> = self.spots.values().copied().collect();
        spots.sort_unstable();
        Finding {
            rule: conflict.rule,
            severity: conflict.severity,
            kind: conflict.kind,
            relation: conflict.relation,
            witnesses: conflict.witnesses.to_vec(),
            count: self.count,
            addresses: self.addresses.len() as u64 + self.more_addresses,
            range: self.range,
            spots,
            missing: conflict.missing.clone(),
            doubtful: self.doubtful,
        }
    }
}

/// Different addresses of a group are counted exactly up to here.
const MAX_ADDRESSES: usize = 1 << 16;

/// Addresses of a group that are kept with their threads.
const MAX_SPOTS: usize = 16;

/// A number that says nothing of the address, and is no other address's (the mixer of splitmix64).
fn mixed(address: u64) -> u64 {
    let once = (address ^ address >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ once >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ twice >> 31
}

/// A word of memory: its address, with the block for shared memory.
pub(super) type Word = (u64, u32);

/// Collects conflicts of a run.
#[derive(Debug, Default)]
pub(super) struct Collector {
    groups: FxHashMap<GroupKey, Group>,
    /// Those of the launch that runs.
    current: FxHashMap<GroupKey, Group>,
    /// Same-value conflicts wait until the launch's end: another race on their bytes makes them errors.
    same_value: Vec<(Word, Conflict)>,
    same_value_seen: FxHashMap<(GroupKey, Word), usize>,
    contested: Marks,
    /// Groups that were told of: their numbers and counts.
    told: FxHashMap<GroupKey, (u32, u64)>,
    /// Every conflict is judged anew (`again`).
    #[cfg(test)]
    pub(super) anew: bool,
}

impl Collector {
    /// Takes a conflict on a word.
    pub(super) fn add(&mut self, word: Word, conflict: Conflict) {
        if conflict.same_value {
            let seen = self.same_value_seen.entry((key_of(&conflict), word)).or_insert(0);
            *seen += 1;
            if *seen == 1 {
                self.same_value.push((word, conflict));
            }
            return;
        }
        if !conflict.same_instruction {
            self.contest(word);
        }
        self.group(conflict, 1);
    }

    /// Takes what is no conflict, but was seen so often.
    pub(super) fn note(&mut self, conflict: Conflict, count: u64) {
        self.group(conflict, count);
    }

    /// Whether the launch has a race between this instruction and another, or itself.
    pub(super) fn has_race_at(&self, site: SiteId) -> bool {
        let mut races = self.current.keys().filter(|key| key.rule < Rule::S001);
        races.any(|key| key.sites.0 == site || key.sites.1 == site)
    }

    /// How wide a finding of the launch is, if there is one.
    pub(super) fn widest(&self, key: &GroupKey) -> Option<Relation> {
        #[cfg(test)]
        if self.anew {
            return None;
        }
        self.current.get(key).map(|group| group.conflict.relation)
    }

    /// Notes a word with a conflict that is none of equal values.
    pub(super) fn contest(&mut self, word: Word) {
        self.contested.insert(word.0 / WORD, word.1);
    }

    /// Takes more conflicts of a finding, no wider than it is, on a contested word.
    pub(super) fn again(&mut self, key: &GroupKey, address: u64, threads: [ThreadId; 2], count: u64) {
        if let Some(group) = self.current.get_mut(key) {
            group.count(address, threads, count);
            group.range = (group.range.0.min(address), group.range.1.max(address));
        }
    }

    /// Ends a launch: decides its same-value conflicts, and doubts its errors if order may have gone unseen.
    pub(super) fn end_launch(&mut self, unseen_order: bool) {
        for (word, conflict) in std::mem::take(&mut self.same_value) {
            let count = self.same_value_seen.get(&(key_of(&conflict), word)).copied().unwrap_or(1) as u64;
            if self.contested.contains(word.0 / WORD, word.1) {
                self.group(conflict, count);
                continue;
            }
            // Lanes of one store that leave one value: nothing that anybody relies on.
            let severity = if conflict.same_instruction { Severity::Note } else { Severity::Warning };
            self.group(
                Conflict { rule: Rule::R010, severity: severity.min(conflict.severity), ..conflict },
                count,
            );
        }
        self.same_value_seen.clear();
        self.contested = Marks::default();
        for (mut key, mut group) in std::mem::take(&mut self.current) {
            if unseen_order && key.rule < Rule::S001 {
                key.severity = key.severity.min(Severity::Warning);
                group.conflict.severity = key.severity;
                group.doubtful = true;
            }
            match self.groups.entry(key) {
                Entry::Vacant(free) => {
                    free.insert(group);
                }
                Entry::Occupied(mut same) => same.get_mut().unite(group),
            }
        }
    }

    fn group(&mut self, conflict: Conflict, count: u64) {
        let [first, second] = conflict.witnesses.map(|witness| witness.address);
        // The others are at one place, as far as their sizes allow.
        let address =
            if matches!(conflict.missing, Missing::ToHost { .. }) { first } else { first.max(second) };
        let group = self.current.entry(key_of(&conflict)).or_insert_with(|| Group {
            conflict: conflict.clone(),
            count: 0,
            addresses: Marks::default(),
            more_addresses: 0,
            range: (address, address),
            spots: BTreeMap::new(),
            doubtful: false,
        });
        group.count(address, conflict.witnesses.map(|witness| witness.thread), count);
        group.range = (group.range.0.min(address), group.range.1.max(address));
        if conflict.relation > group.conflict.relation {
            group.conflict = conflict;
        }
    }

    /// All findings, in an order that depends on nothing but them.
    pub(super) fn finish(self) -> Vec<Finding> {
        let mut groups: Vec<_> = self.groups.into_iter().collect();
        groups.sort_by_key(|(key, _)| *key);
        groups.into_iter().map(|(_, group)| group.finding()).collect()
    }

    /// Findings that were not told of before, with their numbers; with `changes` also those that have grown.
    pub(super) fn news(&mut self, changes: bool) -> Vec<(u32, Finding)> {
        let is_new = |(key, group): &(&GroupKey, &Group)| match self.told.get(key) {
            Some((_, count)) => changes && *count != group.count,
            None => true,
        };
        let mut new: Vec<_> = self.groups.iter().filter(is_new).collect();
        new.sort_by_key(|(key, _)| **key);
        let mut news = Vec::new();
        for (key, group) in new {
            let next = u32::try_from(self.told.len()).unwrap_or(u32::MAX);
            let told = self.told.entry(*key).or_insert((next, 0));
            told.1 = group.count;
            news.push((told.0, group.finding()));
        }
        news
    }
}

fn key_of(conflict: &Conflict) -> GroupKey {
    let (a, b) = (conflict.witnesses[0].site, conflict.witnesses[1].site);
    GroupKey { rule: conflict.rule, severity: conflict.severity, sites: (a.min(b), a.max(b)) }
}
