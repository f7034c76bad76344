//! Flags for the host: stores that release data to host threads which look at both while the kernel runs, with a scope that
//! leaves the host out. That is a warning: what the host does is not seen.
//!
//! It is said of a release, by a store or by a fence with no other strong access between it and the store, where data and flag
//! lie in memory that the host reaches and no thread of the device reads what this instruction stores. Then nobody
//! but the host can be meant. Flags in managed memory are left out where the module reads strongly at all: all that a program has may lie
//! there, and in a run of one block its flags stay unread. Silent are releases by read-modify-writes, flags that release
//! nothing, as counters of progress do not, and data that its own thread has fenced for the host.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Core;
use super::clock::{Know, Time};
use super::collect::Conflict;
use super::conflict::entry_witness;
use super::shadow::Entry;
use super::thread::LaneSync;
use crate::abi::Record;
use crate::backend::{Owner, Region};
use crate::diag::Severity;
use crate::event::Place;
use crate::finding::{AccessClass, Kind, Missing, Relation, Rule, Witness};
use crate::instrument::SiteId;
use crate::isa::{Access, AccessKind, Scope};

/// Places of flags that are kept for each launch. More are written by the same few instructions.
const FLAGS: usize = 1024;

/// What a store releases.
#[derive(Debug)]
pub(super) struct Release {
    /// To somebody.
    know: Arc<Know>,
    /// Of that, what to host threads.
    system: Option<Arc<Know>>,
    /// The store itself reaches them.
    wide: bool,
}

impl Release {
    /// What a strong write releases: `own` if it does itself, else by a fence right before it.
    pub(super) fn of(access: &Access, lane: &mut LaneSync, own: Option<&Arc<Know>>) -> Option<Self> {
        let fresh = std::mem::take(&mut lane.fresh);
        if access.kind != AccessKind::Store {
            return None;
        }
        let wide = access.scope == Some(Scope::Sys);
        let fenced = lane.system.as_ref().filter(|_| wide);
        let (know, system) = match own {
            Some(own) => (own, if wide { Some(own) } else { None }),
            None => (lane.released.first()?.as_ref().filter(|_| fresh)?, fenced),
        };
        Some(Self { know: Arc::clone(know), system: system.cloned(), wide })
    }
}

/// What there is to know of memory that the host reaches.
#[derive(Debug, Default)]
pub(super) struct Outward {
    /// That memory: ends and owners by first address.
    ranges: BTreeMap<u64, (u64, Owner)>,
    /// The last release of the launch by each instruction at each place.
    flags: BTreeMap<(SiteId, u64), (Witness, Release)>,
    /// Places where strong operations of the launch have read.
    read: FxHashSet<u64>,
    /// Instructions that store what the device reads.
    inward: FxHashSet<SiteId>,
    /// When warps of the launch last fenced for the host.
    fenced: FxHashMap<(u32, u8), Time>,
}

impl Outward {
    pub(super) fn begin(&mut self) {
        self.flags.clear();
        self.read.clear();
        self.fenced.clear();
    }

    /// There is no such memory.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Memory was made. What was known of the addresses is gone.
    pub(super) fn region(&mut self, region: &Region) {
        let (start, end) = (region.base, region.base.saturating_add(region.bytes));
        if !self.is_empty() {
            self.ranges.retain(|at, (to, _)| *to <= start || end <= *at);
        }
        if region.owner != Owner::Device && start < end {
            self.ranges.insert(start, (end, region.owner));
        }
    }

    fn owner(&self, address: u64) -> Option<Owner> {
        let (_, (end, owner)) = self.ranges.range(..=address).next_back()?;
        (address < *end).then_some(*owner)
    }

    /// A warp fences for the host.
    pub(super) fn fenced(&mut self, block: u32, warp: u8, time: Time) {
        self.fenced.insert((block, warp), time);
    }

    /// A store releases something.
    pub(super) fn released(&mut self, flag: &Witness, release: Release) {
        if self.owner(flag.address).is_none() {
            return;
        }
        self.flags.insert((flag.site, flag.address), (*flag, release));
        if self.flags.len() > FLAGS {
            self.flags.pop_last();
        }
    }

    /// Of lanes that wrote, those whose data a release covers, but not for the host.
    fn uncovered(&self, release: &Release, data: &Entry) -> u32 {
        let Entry { block, warp, mask, time, .. } = *data;
        let known = |know: &Know| know.clock.known(block, warp, mask, time);
        let for_host = release.system.as_ref().map_or(0, |know| known(know));
        let apart = release.wide && self.fenced.get(&(block, warp)).is_some_and(|fence| time <= *fence);
        if apart { 0 } else { known(&release.know) & !for_host }
    }
}

impl Core {
    /// A lane reads strongly, by a load or as part of an atomic.
    #[inline]
    pub(super) fn read_outward(&mut self, record: &Record<'_>, lane: usize, place: Place) {
        if self.outward.is_empty() {
            return;
        }
        if self.outward.owner(place.address).is_some() {
            self.outward.read.insert(place.address);
        }
        let warp = self.block(record.block()).warps.get_mut(usize::from(record.warp()));
        if let Some(lanes) = warp.and_then(|warp| warp.sync.as_mut()) {
            lanes[lane & 31].fresh = false;
        }
    }

    /// At the end of a launch: which flags were for the host and left it out.
    pub(super) fn published_outward(&mut self) {
        if self.outward.flags.is_empty() {
            return;
        }
        let flags = std::mem::take(&mut self.outward.flags);
        self.note_inward(&flags);
        let mut left: BTreeMap<SiteId, &(Witness, Release)> = BTreeMap::new();
        for ((site, address), flag) in &flags {
            let managed = self.outward.owner(*address) == Some(Owner::Managed);
            if !(self.outward.inward.contains(site) || managed && self.reads_strongly(*site)) {
                left.entry(*site).or_insert(flag);
            }
        }
        if left.is_empty() {
            return;
        }
        let Self { outward, global, collector, locations, current, .. } = self;
        let mut found = FxHashSet::default();
        for (start, (end, _)) in &outward.ranges {
            global.look(
                *start,
                *end,
                |launch| launch == *current,
                |word, cell| {
                    let written = |scope: Option<Scope>| scope.is_none_or(|scope| scope < Scope::Sys);
                    for group in cell
                        .groups
                        .iter()
                        .filter(|g| g.key.class == AccessClass::Write && written(g.key.scope))
                    {
                        let address = word.wrapping_add_signed(group.key.start.into());
                        if locations.contains_key(&Place { address, block: 0 }) {
                            continue;
                        }
                        for entry in group.entries.iter().filter(|e| e.mask != 0 && e.launch == *current) {
                            for (flag, release) in left.values() {
                                let lanes = outward.uncovered(release, entry);
                                if lanes != 0 && found.insert((flag.site, entry.site)) {
                                    let data =
                                        entry_witness(&Entry { mask: lanes, ..*entry }, group.key, word);
                                    collector.note(outward_conflict(data, *flag, release), 1);
                                }
                            }
                        }
                    }
                },
            );
        }
    }

    /// Which instructions store what the device reads, in this launch or another.
    fn note_inward(&mut self, flags: &BTreeMap<(SiteId, u64), (Witness, Release)>) {
        let Self { outward, locations, global, current, .. } = self;
        for (place, location) in locations.iter().filter(|(place, _)| outward.read.contains(&place.address)) {
            debug_assert!(!place.is_shared());
            outward.inward.extend(location.writes.iter().map(|write| write.witness.site));
        }
        for (site, address) in flags.keys() {
            global.look(
                *address,
                address.saturating_add(1),
                |launch| launch == *current,
                |_, cell| {
                    let reads = |class| class != AccessClass::Write;
                    if cell.groups.iter().any(|g| {
                        reads(g.key.class) && g.entries.iter().any(|e| e.mask != 0 && e.launch == *current)
                    }) {
                        outward.inward.insert(*site);
                    }
                },
            );
        }
    }

    /// Whether the module of an instruction has strong reads.
    fn reads_strongly(&self, site: SiteId) -> bool {
        self.sites.table(site).is_none_or(|table| {
            table
                .sites()
                .iter()
                .filter_map(|site| site.access())
                .any(|access| access.order.is_strong() && access.kind != AccessKind::Store)
        })
    }
}

fn outward_conflict(data: Witness, flag: Witness, release: &Release) -> Conflict {
    Conflict {
        rule: Rule::R004,
        severity: Severity::Warning,
        kind: Some(Kind::RW),
        relation: Relation::Host,
        witnesses: [data, flag],
        missing: Missing::ToHost { store: !release.wide },
        same_value: false,
        same_instruction: false,
    }
}
