//! Accesses: what they observe and hand on, and the words that they touch.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Core;
use super::clock::{self, Know};
use super::conflict::{Shared, entry_witness, includes, touch};
use super::outward::Release;
use super::publish::Observation;
use super::quiet::Now;
use super::shadow::{Entry, Key, Path, WORD};
use super::stands::Stands;
use super::sync::{Home, Message, Write};
use super::thread::{LaneKnow, View};
use crate::abi::{Record, Tagged};
use crate::event::Place;
use crate::finding::{AccessClass, ThreadId, Witness};
use crate::instrument::SiteId;
use crate::isa::{Access, AccessKind, Marking, Order, Scope};

fn class_of(access: &Access) -> AccessClass {
    match access.kind {
        AccessKind::Load => AccessClass::Read,
        AccessKind::Store => AccessClass::Write,
        AccessKind::Atom | AccessKind::Red => AccessClass::Atomic,
    }
}

/// Places of which a lane remembers what it released there or saw there. Beyond, patterns (b) of the model may be missed.
const PLACES: usize = 64;

/// What is common to all lanes and elements of one record.
#[derive(Clone, Copy)]
pub(super) struct Stroke {
    pub(super) class: AccessClass,
    pub(super) scope: Option<Scope>,
    pub(super) order: Order,
    pub(super) marking: Marking,
    pub(super) element: u8,
    pub(super) entry: Entry,
    /// Later accesses are judged against it, too.
    pub(super) keep: bool,
    /// Quiet words have been seen to.
    pub(super) quiet: bool,
}

impl Stroke {
    /// A weak access of one lane.
    pub(super) fn weak(class: AccessClass, element: u8, entry: Entry) -> Self {
        let (order, marking) = (Order::Weak, Marking::Plain);
        Self { class, scope: None, order, marking, element, entry, keep: true, quiet: false }
    }
}

/// Elements that a range may be met by: none is larger.
const LARGEST: u64 = 16;

impl Core {
    /// Handles lanes of an access record, in the order of `ranks`.
    pub(super) fn accessed(&mut self, access: &Access, record: &Record<'_>, ranks: &[u8]) {
        let path = match access.marking {
            Marking::NonCoherent => Path::ReadOnly,
            _ => Path::Plain,
        };
        let Some(entry) = self.entry(record, path) else { return };
        let strong = access.order.is_strong();
        // What meets an operation of the host goes word by word.
        let whole = !strong && ranks.len() == record.lane_count() && !self.host.meets(record, access);
        let left = if whole { self.quiet(access, record, &entry) } else { None };
        if left == Some(false) && (!access.writes() || self.locations.is_empty()) {
            return;
        }
        let stroke = Stroke {
            class: class_of(access),
            scope: if strong { access.scope } else { None },
            order: access.order,
            marking: access.marking,
            element: access.element,
            entry,
            keep: true,
            quiet: left.is_some(),
        };
        if strong {
            self.strong(access, record, ranks, stroke);
            return;
        }
        if left != Some(false) {
            self.weak(access, record, ranks, stroke, whole);
        }
        self.weak_writes(access, record, ranks, stroke);
    }

    /// What all accesses of a record have in common, with all of its lanes.
    #[inline(always)] // done for each record
    pub(super) fn entry(&mut self, record: &Record<'_>, path: Path) -> Option<Entry> {
        let (index, warp_index) = (record.block(), record.warp());
        let (current, events) = (self.current, self.events);
        let warp = self.block(index).warps.get(usize::from(warp_index))?;
        Some(Entry {
            launch: current,
            block: index,
            warp: warp_index,
            mask: record.mask(),
            time: warp.time,
            site: SiteId(record.site()),
            order: 0,
            record: events,
            value: None,
            interval: warp.interval,
            single: record.mask().is_power_of_two()
                || record.a_progression().is_some_and(|(_, stride)| stride == 0),
            stands: Stands::default(),
            path,
        })
    }

    /// Whether all lanes of the warp know the same.
    pub(super) fn are_alike(&self, record: &Record<'_>) -> bool {
        let block = self.blocks.get(record.block());
        let warp = block.and_then(|block| block.warps.get(usize::from(record.warp())));
        warp.is_some_and(|warp| matches!(warp.know, LaneKnow::All(_)))
    }

    /// A weak access of words that are not quiet, or not of a whole record.
    fn weak(&mut self, access: &Access, record: &Record<'_>, ranks: &[u8], mut stroke: Stroke, whole: bool) {
        let alike = self.are_alike(record);
        // All lanes at one address: one access of many lanes. Lanes of a store still conflict with each other.
        if whole
            && alike
            && ranks.len() > 1
            && !access.writes()
            && record.a_progression().is_some_and(|(_, s)| s == 0)
        {
            stroke.entry.mask = record.mask();
            self.elements(access, Place::of(record, 0, &self.geometry), stroke);
            return;
        }
        let lanes = record.lanes_by_rank();
        for rank in ranks {
            let rank = usize::from(*rank);
            stroke.entry.mask = 1 << lanes[rank & 31];
            stroke.entry.value = record.written(rank);
            self.elements(access, Place::of(record, rank, &self.geometry), stroke);
        }
    }

    /// Takes the access to quiet words. Tells whether any are left, all for `None`.
    #[inline]
    fn quiet(&mut self, access: &Access, record: &Record<'_>, entry: &Entry) -> Option<bool> {
        let block = self.blocks.get_mut(record.block())?;
        let warp = block.warps.get(usize::from(record.warp()))?;
        let now = Now {
            record,
            entry,
            class: class_of(access),
            element: access.element,
            bytes: access.bytes() as u8,
            know: &warp.know,
            launch: self.launches.get(self.current as usize),
        };
        let shared = Tagged(record.a(0)).is_shared();
        let shadow = if shared { &mut block.shared } else { &mut self.global };
        shadow.access_quiet(&now)
    }

    /// Weak stores to strong locations.
    fn weak_writes(&mut self, access: &Access, record: &Record<'_>, ranks: &[u8], stroke: Stroke) {
        if !access.writes() || self.locations.is_empty() {
            return;
        }
        let lanes = record.lanes_by_rank();
        for rank in ranks {
            let rank = usize::from(*rank);
            self.weak_write(access, record, rank, lanes[rank & 31].into(), stroke);
        }
    }

    /// A weak store to a strong location breaks its chain and hands on nothing.
    fn weak_write(&mut self, access: &Access, record: &Record<'_>, rank: usize, lane: usize, stroke: Stroke) {
        let place = Place::of(record, rank, &self.geometry);
        if !self.locations.contains_key(&place) {
            return;
        }
        let write = self.write(access, record, rank, lane, stroke, Message::default());
        if let (Some(write), Some(location)) = (write, self.locations.get_mut(&place)) {
            location.push(write, false);
        }
    }

    fn strong(&mut self, access: &Access, record: &Record<'_>, ranks: &[u8], mut stroke: Stroke) {
        let lanes = record.lanes_by_rank();
        for rank in ranks {
            let rank = usize::from(*rank);
            let lane = usize::from(lanes[rank & 31]);
            let place = Place::of(record, rank, &self.geometry);
            let reads = access.kind != AccessKind::Store;
            let mut inherited = None;
            if reads {
                inherited = self.strong_read(access, record, rank, lane, place, stroke);
                self.read_outward(record, lane, place);
            }
            // A failed compare-and-swap is a strong read. One that succeeds and changes nothing looks the same.
            let failed =
                access.op == Some(crate::isa::AtomOp::Cas) && record.read(rank) == record.written(rank);
            let writes = access.writes() && !failed;
            stroke.entry.mask = 1 << lane;
            stroke.entry.value = record.written(rank);
            stroke.entry.order = match self.locations.get(&place) {
                Some(location) => location.next_order(),
                None => {
                    if place.is_shared() {
                        self.block(place.block).locations.push(place);
                    }
                    self.locations.entry(place).or_default().next_order()
                }
            };
            let class = if failed { AccessClass::Read } else { stroke.class };
            self.elements(access, place, Stroke { class, ..stroke });
            if writes {
                self.strong_write(access, record, rank, lane, place, stroke, inherited);
            }
        }
        if access.writes()
            && let Some(warp) = self.block(record.block()).warps.get_mut(usize::from(record.warp()))
        {
            warp.time += 1;
        }
    }

    /// Observation, and what it brings. Gives the message that a read-modify-write inherits, if its hop is morally strong.
    fn strong_read(
        &mut self,
        access: &Access,
        record: &Record<'_>,
        rank: usize,
        lane: usize,
        place: Place,
        stroke: Stroke,
    ) -> Option<Message> {
        let (index, warp_index) = (record.block(), record.warp());
        let scope = access.scope.unwrap_or(Scope::Cta);
        let reader = self.thread(index, warp_index, lane as u8);
        let launch = self.launches.get(self.current as usize);
        let location = self.locations.get_mut(&place)?;
        let observed = location.observed(record.read(rank))?;
        let (order, writer) = (observed.order, observed.thread);
        // Morally strong accesses are of one size.
        let whole = observed.witness.bytes == stroke.element;
        let strong_hop = observed.scope.filter(|_| whole).is_some_and(|written| {
            writer == reader
                || (includes(written, writer, reader, launch) && includes(scope, reader, writer, launch))
        });
        let message = if strong_hop { observed.message.clone() } else { Message::default() };
        // Forced `fence.sc` order needs no more than that the value was read.
        let fences = observed.fences.clone();
        if strong_hop {
            location.note_observer(order, reader, stroke.entry.time);
        }
        let events = self.events;
        let home = Home::new(index, self.geometry);
        let reach = home.reach(scope);
        let block = self.block(index);
        if writer != reader {
            block.observe(Observation {
                place,
                order,
                event: events,
                time: stroke.entry.time,
                read: witness(stroke, reader, place.address, AccessClass::Read.max(stroke.class)),
                scope,
                mem_order: access.order,
                marking: access.marking,
                rmw: access.is_rmw(),
                plain: None,
                narrow: None,
            });
        }
        let warp = block.warps.get_mut(usize::from(warp_index))?;
        let live = warp.live();
        // `red` returns nothing, so it begins no acquire pattern.
        if !message.is_empty() && access.kind != AccessKind::Red {
            let lane_sync = warp.lane_sync(lane);
            lane_sync.pending.join(&message);
            match lane_sync.pending_on.iter_mut().find(|(at, _)| *at == place) {
                Some((_, pending)) => pending.join(&message),
                None => {
                    if lane_sync.pending_on.len() >= PLACES {
                        lane_sync.pending_on.remove(0);
                    }
                    lane_sync.pending_on.push((place, message.clone()));
                }
            }
        }
        if access.order.acquires() {
            let lane_sync = warp.lane_sync(lane);
            let pending = lane_sync.pending_on.iter().find(|(at, _)| *at == place);
            let taken: Vec<_> = pending
                .into_iter()
                .flat_map(|(_, message)| message.eligible(home, reach))
                .chain(message.eligible(home, reach))
                .cloned()
                .collect();
            for know in taken {
                warp.know.update(1 << lane, live, |own| clock::join(own, &know));
            }
        }
        if let Some(fences) = fences {
            warp.know.update(1 << lane, live, |own| {
                let mut know = Know::clone(own);
                clock::join_sc(&mut know.observed, Some(&fences), writer.block == index);
                if know == **own { Arc::clone(own) } else { Arc::new(know) }
            });
        }
        strong_hop.then_some(message)
    }

    #[expect(clippy::too_many_arguments, reason = "one call, all of it state of one access")]
    fn strong_write(
        &mut self,
        access: &Access,
        record: &Record<'_>,
        rank: usize,
        lane: usize,
        place: Place,
        stroke: Stroke,
        inherited: Option<Message>,
    ) {
        let (index, warp_index) = (record.block(), record.warp());
        let home = Home::new(index, self.geometry);
        let reach = home.reach(access.scope.unwrap_or(Scope::Cta));
        let outward = !self.outward.is_empty() && !place.is_shared();
        let Some(warp) = self.block(index).warps.get_mut(usize::from(warp_index)) else { return };
        let mut message = Message::default();
        let mut release = None;
        let own = access.order.releases().then(|| warp.lane_know(index, warp_index, lane));
        if own.is_some() || warp.sync.is_some() {
            let lane_sync = warp.lane_sync(lane);
            if outward {
                release = Release::of(access, lane_sync, own.as_ref());
            }
            if let Some(know) = own {
                lane_sync.released_on.retain(|(at, _, _)| *at != place);
                if lane_sync.released_on.len() >= PLACES {
                    lane_sync.released_on.remove(0);
                }
                lane_sync.released_on.push((place, know, reach));
            }
            lane_sync.hand_on(home, &mut message);
            for (_, released, reach) in lane_sync.released_on.iter().filter(|(at, _, _)| *at == place) {
                message.add(home, *reach, released);
            }
        }
        // What a read-modify-write observed, it passes on.
        let continues = access.is_rmw() && inherited.is_some();
        if let Some(inherited) = inherited.filter(|_| access.is_rmw()) {
            message.join(&inherited);
        }
        let Some(mut write) = self.write(access, record, rank, lane, stroke, message) else { return };
        if let Some(release) = release {
            self.outward.released(&write.witness, release);
        }
        let location = self.locations.entry(place).or_default();
        // Fences before the writes that an RMW observed precede what the RMW writes, too.
        if continues && let Some(previous) = location.observed(record.read(rank)) {
            let same_block = previous.thread.block == index;
            clock::join_sc(&mut write.fences, previous.fences.as_ref(), same_block);
        }
        location.push(write, continues);
    }

    fn write(
        &mut self,
        access: &Access,
        record: &Record<'_>,
        rank: usize,
        lane: usize,
        stroke: Stroke,
        message: Message,
    ) -> Option<Write> {
        let (index, warp_index) = (record.block(), record.warp());
        let thread = self.thread(index, warp_index, lane as u8);
        let geometry = self.geometry;
        let warp = self.block(index).warps.get(usize::from(warp_index))?;
        let know = Arc::clone(warp.know.get(lane));
        let fenced_elsewhere =
            warp.sync.as_ref().is_some_and(|lanes| lanes[lane & 31].release_fence.is_some());
        Some(Write {
            order: 0,
            value: record.written(rank),
            thread,
            time: warp.time,
            fences: warp.fences_before(index, warp_index, lane),
            know,
            message,
            scope: stroke.scope,
            rmw: access.is_rmw(),
            marking: access.marking,
            witness: witness(stroke, thread, Place::of(record, rank, &geometry).address, stroke.class),
            fenced_elsewhere,
        })
    }

    /// Each element is an access of its own.
    fn elements(&mut self, access: &Access, place: Place, stroke: Stroke) {
        for element in 0..u64::from(access.count) {
            let address = place.address.wrapping_add(element * u64::from(access.element));
            self.element(Place { address, ..place }, stroke);
        }
    }

    pub(super) fn element(&mut self, place: Place, stroke: Stroke) {
        let address = place.address;
        let bytes = u64::from(stroke.element);
        let first = address / WORD;
        let last = address.saturating_add(bytes.max(1) - 1) / WORD;
        for word in first..=last {
            let start = address.wrapping_sub(word * WORD).cast_signed();
            let key = Key {
                class: stroke.class,
                scope: stroke.scope,
                path: stroke.entry.path,
                start: start as i8,
                bytes: stroke.element,
            };
            self.word(word * WORD, key, stroke, place);
        }
    }

    /// An access to a range. Seen from each word it is as large as an element there can be, so that it takes the place of
    /// whatever lies within.
    pub(super) fn range(&mut self, place: Place, bytes: u64, stroke: Stroke) {
        let (begin, end) = (place.address, place.address.saturating_add(bytes));
        for word in begin / WORD..end.div_ceil(WORD) {
            let at = word * WORD;
            let start = begin.max(at.saturating_sub(LARGEST));
            let stop = end.min(at.saturating_add(WORD + LARGEST));
            let key = Key {
                class: stroke.class,
                scope: stroke.scope,
                path: stroke.entry.path,
                start: start.wrapping_sub(at).cast_signed() as i8,
                bytes: (stop - start) as u8,
            };
            self.word(at, key, stroke, Place { address: start.max(at), ..place });
        }
    }

    fn word(&mut self, word: u64, key: Key, stroke: Stroke, place: Place) {
        let entry = stroke.entry;
        if place.is_shared() && place.block != entry.block {
            return self.peer_word(word, key, stroke, place);
        }
        self.against_host(word, key, &entry);
        let Some(block) = self.blocks.get_mut(entry.block) else { return };
        let shadow = if place.is_shared() { &mut block.shared } else { &mut self.global };
        let view = View { warps: &block.warps, observations: &block.observations };
        let Self { sites, launches, locations, copies, mbarriers, explained, several_devices, .. } = self;
        let several_devices = *several_devices;
        let shared = Shared { sites, launches, locations, copies, mbarriers, explained, several_devices };
        let mut flags = SmallVec::new();
        self.lost += touch(shadow, word, key, &stroke, place, view, shared, &mut self.collector, &mut flags);
        for (writer, write, read) in flags {
            let seen = Observation {
                place: Place { address: place.address, block: 0 },
                order: 0,
                event: self.events,
                time: entry.time,
                read,
                scope: stroke.scope.unwrap_or(Scope::Cta),
                mem_order: stroke.order,
                marking: stroke.marking,
                rmw: false,
                plain: Some((writer, write)),
                narrow: None,
            };
            block.observe(seen);
        }
    }

    /// A word in the shared memory of another block of the cluster.
    #[cold]
    fn peer_word(&mut self, word: u64, key: Key, stroke: Stroke, place: Place) {
        let entry = stroke.entry;
        if let Some(end) = self.ended.get(&place.block) {
            let now = entry_witness(&entry, key, word);
            let conflict = super::blocks::after_end(now, *end, stroke.class);
            self.collector.add((word, place.block), conflict);
            return;
        }
        let mut shadow = std::mem::take(&mut self.block(place.block).shared);
        let Self { sites, launches, locations, copies, mbarriers, explained, several_devices, .. } = self;
        let several_devices = *several_devices;
        let shared = Shared { sites, launches, locations, copies, mbarriers, explained, several_devices };
        let mut flags = SmallVec::new();
        if let Some(block) = self.blocks.get(entry.block) {
            let view = View { warps: &block.warps, observations: &block.observations };
            self.lost +=
                touch(&mut shadow, word, key, &stroke, place, view, shared, &mut self.collector, &mut flags);
        }
        self.block(place.block).shared = shadow;
    }
}

fn witness(stroke: Stroke, thread: ThreadId, address: u64, class: AccessClass) -> Witness {
    Witness {
        site: stroke.entry.site,
        thread,
        class,
        address,
        bytes: stroke.element,
        value: stroke.entry.value,
        interval: stroke.entry.interval,
    }
}
