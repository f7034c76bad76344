//! An access against the shadow.

use std::sync::Arc;

use smallvec::SmallVec;

use super::clock::{self, Know, Phases};
use super::copies::Copies;
use super::judge::{Facts, Judge};
use super::publish::{Observation, Party};
use super::shadow::{Cell, Entry, Key, Path, Shadow, WORD};
use super::sync::{Home, Message, Write, is_wide};
use super::thread::{LaneKnow, View};
use super::{Core, Launch};
use crate::abi::{Record, Tagged};
use crate::event::{Geometry, Place};
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
}

impl Stroke {
    /// A weak access of one lane.
    pub(super) fn weak(class: AccessClass, element: u8, entry: Entry) -> Self {
        Self { class, scope: None, order: Order::Weak, marking: Marking::Plain, element, entry }
    }
}

/// Elements that a range may be met by: none is larger.
const LARGEST: u64 = 16;

impl Core {
    /// Handles lanes of an access record, in the order of `ranks`.
    pub(super) fn access(&mut self, access: &Access, record: &Record<'_>, ranks: &[u8]) {
        let path = match access.marking {
            Marking::NonCoherent => Path::ReadOnly,
            _ => Path::Plain,
        };
        let Some(entry) = self.entry(record, path) else { return };
        let stroke = Stroke {
            class: class_of(access),
            scope: if access.order.is_strong() { access.scope } else { None },
            order: access.order,
            marking: access.marking,
            element: access.element,
            entry,
        };
        if access.order.is_strong() {
            self.strong(access, record, ranks, stroke);
        } else {
            self.weak(access, record, ranks, stroke);
        }
    }

    /// What all accesses of a record have in common.
    pub(super) fn entry(&mut self, record: &Record<'_>, path: Path) -> Option<Entry> {
        let (index, warp_index) = (record.block(), record.warp());
        let (current, events) = (self.current, self.events);
        let warp = self.block(index).warps.get(usize::from(warp_index))?;
        Some(Entry {
            launch: current,
            block: index,
            warp: warp_index,
            mask: 0,
            time: warp.time,
            site: SiteId(record.site()),
            order: 0,
            record: events,
            value: None,
            interval: warp.interval,
            single: record.mask().is_power_of_two()
                || record.a_progression().is_some_and(|(_, stride)| stride == 0),
            path,
        })
    }

    fn weak(&mut self, access: &Access, record: &Record<'_>, ranks: &[u8], mut stroke: Stroke) {
        let whole = ranks.len() as u32 == record.mask().count_ones();
        let alike = self
            .blocks
            .get(&record.block())
            .and_then(|block| block.warps.get(usize::from(record.warp())))
            .is_some_and(|warp| matches!(warp.know, LaneKnow::All(_)));
        // All lanes at one address: one access of many lanes. Lanes of a store still conflict with each other.
        if whole
            && alike
            && ranks.len() > 1
            && !access.writes()
            && record.a_progression().is_some_and(|(_, s)| s == 0)
        {
            stroke.entry.mask = record.mask();
            self.elements(access, Place::of(record, 0, self.geometry()), stroke);
            return;
        }
        let mut mask_at = [0u8; 32];
        for (rank, lane) in record.lanes().enumerate() {
            mask_at[rank] = lane as u8;
        }
        for rank in ranks {
            let rank = usize::from(*rank);
            stroke.entry.mask = 1 << mask_at[rank & 31];
            stroke.entry.value = record.written(rank);
            self.elements(access, Place::of(record, rank, self.geometry()), stroke);
        }
        if access.writes() && !self.locations.is_empty() {
            for rank in ranks {
                self.weak_write(access, record, usize::from(*rank), stroke);
            }
        }
    }

    /// A weak store to a strong location breaks its chain and hands on nothing.
    fn weak_write(&mut self, access: &Access, record: &Record<'_>, rank: usize, stroke: Stroke) {
        let place = Place::of(record, rank, self.geometry());
        if !self.locations.contains_key(&place) {
            return;
        }
        let lane = record.lanes().nth(rank).unwrap_or(0);
        let write = self.write(access, record, rank, lane, stroke, Message::default());
        if let (Some(write), Some(location)) = (write, self.locations.get_mut(&place)) {
            location.push(write, false);
        }
    }

    fn strong(&mut self, access: &Access, record: &Record<'_>, ranks: &[u8], mut stroke: Stroke) {
        for rank in ranks {
            let rank = usize::from(*rank);
            let lane = record.lanes().nth(rank).unwrap_or(0);
            let place = Place::of(record, rank, self.geometry());
            let reads = access.kind != AccessKind::Store;
            let mut inherited = None;
            if reads {
                inherited = self.strong_read(access, record, rank, lane, place, stroke);
            }
            // A failed compare-and-swap is a strong read.
            let failed =
                access.op == Some(crate::isa::AtomOp::Cas) && record.read(rank) == record.written(rank);
            let writes = access.writes() && !failed;
            stroke.entry.mask = 1 << lane;
            stroke.entry.value = record.written(rank);
            if place.is_shared() && !self.locations.contains_key(&place) {
                self.block(place.block).locations.push(place);
            }
            stroke.entry.order = self.locations.entry(place).or_default().next_order();
            self.elements(access, place, stroke);
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
        let strong_hop = observed.scope.is_some_and(|written| {
            writer == reader
                || (includes(written, writer, reader, launch) && includes(scope, reader, writer, launch))
        });
        let message = if strong_hop { observed.message.clone() } else { Message::default() };
        let fences = if strong_hop { observed.fences.clone() } else { None };
        if strong_hop {
            location.note_observer(order, reader, stroke.entry.time);
        }
        let events = self.events;
        let home = Home::new(index, self.geometry());
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
        let home = Home::new(index, self.geometry());
        let reach = home.reach(access.scope.unwrap_or(Scope::Cta));
        let Some(warp) = self.block(index).warps.get_mut(usize::from(warp_index)) else { return };
        let mut message = Message::default();
        let own = access.order.releases().then(|| warp.lane_know(index, warp_index, lane));
        if own.is_some() || warp.sync.is_some() {
            let lane_sync = warp.lane_sync(lane);
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
        let geometry = self.geometry();
        let warp = self.block(index).warps.get(usize::from(warp_index))?;
        let know = warp.lane_know(index, warp_index, lane);
        let fenced_elsewhere =
            warp.sync.as_ref().is_some_and(|lanes| lanes[lane & 31].release_fence.is_some());
        Some(Write {
            order: 0,
            value: record.written(rank),
            thread,
            time: warp.time,
            fences: know.fences.clone(),
            know,
            message,
            scope: stroke.scope,
            rmw: access.is_rmw(),
            marking: access.marking,
            witness: witness(stroke, thread, Place::of(record, rank, geometry).address, stroke.class),
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
        let last = (address + bytes.max(1) - 1) / WORD;
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
            let stop = end.min(at + WORD + LARGEST);
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
            self.peer_word(word, key, stroke, place);
            return;
        }
        let Some(block) = self.blocks.get_mut(&entry.block) else { return };
        let shadow = if place.is_shared() { &mut block.shared } else { &mut self.global };
        let view = View { warps: &block.warps, observations: &block.observations };
        let shared = Shared {
            sites: &self.sites,
            launches: &self.launches,
            locations: &self.locations,
            copies: &self.copies,
            mbarriers: &self.mbarriers,
            explained: &self.explained,
        };
        let mut flags = SmallVec::new();
        self.lost += touch(shadow, word, key, &entry, place, view, shared, &mut self.collector, &mut flags);
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
            };
            block.observe(seen);
        }
    }

    /// A word in the shared memory of another block of the cluster.
    fn peer_word(&mut self, word: u64, key: Key, stroke: Stroke, place: Place) {
        let entry = stroke.entry;
        if let Some(end) = self.ended.get(&place.block) {
            let now = entry_witness(&entry, key, word);
            let conflict = super::blocks::after_end(now, *end, stroke.class);
            self.collector.add((word, place.block), conflict);
            return;
        }
        let mut shadow = std::mem::take(&mut self.block(place.block).shared);
        let shared = Shared {
            sites: &self.sites,
            launches: &self.launches,
            locations: &self.locations,
            copies: &self.copies,
            mbarriers: &self.mbarriers,
            explained: &self.explained,
        };
        let mut flags = SmallVec::new();
        if let Some(block) = self.blocks.get(&entry.block) {
            let view = View { warps: &block.warps, observations: &block.observations };
            self.lost +=
                touch(&mut shadow, word, key, &entry, place, view, shared, &mut self.collector, &mut flags);
        }
        self.block(place.block).shared = shadow;
    }
}

/// What all accesses are judged with.
#[derive(Clone, Copy)]
struct Shared<'s> {
    sites: &'s crate::instrument::SiteTable,
    launches: &'s [Launch],
    locations: &'s super::sync::Locations,
    copies: &'s Copies,
    mbarriers: &'s super::mbarrier::Mbarriers,
    explained: &'s super::judge::Explained,
}

/// Checks an access against a cell and puts it there; gives how many entries were lost.
#[expect(clippy::too_many_arguments, reason = "one call, all of it state of one access")]
fn touch(
    shadow: &mut Shadow,
    word: u64,
    key: Key,
    entry: &Entry,
    place: Place,
    block: View<'_>,
    shared: Shared<'_>,
    collector: &mut super::collect::Collector,
    flags: &mut Flags,
) -> u64 {
    let cell = shadow.cell(word);
    let lane = entry.mask.trailing_zeros() as usize & 31;
    let Some(warp) = block.warps.get(usize::from(entry.warp)) else { return 0 };
    let know = warp.know.get(lane);
    let launch = shared.launches.get(entry.launch as usize);
    let viewer = Viewer { know, launch, copies: shared.copies, shared: place.is_shared() };
    let judge = Judge {
        sites: shared.sites,
        launches: shared.launches,
        locations: shared.locations,
        mbarriers: shared.mbarriers,
        block,
        home: place.block,
        viewer,
        explained: shared.explained,
    };
    check(cell, &judge, key, entry, word, collector, flags);
    u64::from(cell.add(key, *entry, |earlier| viewer.preceding(earlier, entry)))
}

/// Who asks what came before: what the thread knows.
#[derive(Clone, Copy)]
pub(super) struct Viewer<'v> {
    pub(super) know: &'v Know,
    pub(super) launch: Option<&'v Launch>,
    pub(super) copies: &'v Copies,
    /// The access is to shared memory.
    pub(super) shared: bool,
}

impl Viewer<'_> {
    /// Lanes of an earlier entry that precede the access in base causality. An earlier access of a lane that takes part in
    /// the new one precedes it by program order.
    pub(super) fn preceding(self, earlier: &Entry, now: &Entry) -> u32 {
        if earlier.launch != now.launch {
            let after = self.launch.and_then(|launch| launch.after.get(earlier.launch as usize));
            return if after.copied().unwrap_or(false) { earlier.mask } else { 0 };
        }
        let same_warp = earlier.block == now.block && earlier.warp == now.warp;
        self.before(earlier, now, if same_warp { now.mask } else { 0 })
    }

    /// The same without program order, in one launch.
    pub(super) fn known(self, earlier: &Entry, now: &Entry) -> u32 {
        self.before(earlier, now, 0)
    }

    fn before(self, earlier: &Entry, now: &Entry, own: u32) -> u32 {
        if earlier.path.is_direct() && now.path != Path::Bulk {
            let known = self.know.clock.known(earlier.block, earlier.warp, earlier.mask, earlier.time);
            return known | earlier.mask & own;
        }
        let causal = self.causal(earlier, own);
        if causal == 0 || now.path != Path::Bulk || earlier.path == Path::Bulk {
            return causal;
        }
        // Into the async proxy: what comes before has to be fenced as well.
        let fenced = self.know.asynchronous.as_ref().map(|known| {
            let seen = if self.shared { &known.shared } else { &known.global };
            if earlier.path.is_asynchronous() {
                self.copies.complete(earlier, &seen.clock, Some(&seen.phases), 0)
            } else {
                seen.clock.known(earlier.block, earlier.warp, earlier.mask, earlier.time)
            }
        });
        causal & fenced.unwrap_or(0)
    }

    /// Lanes that precede if proxies do not count.
    pub(super) fn causal(self, earlier: &Entry, own: u32) -> u32 {
        let (clock, asynchronous) = (&self.know.clock, self.know.asynchronous.as_deref());
        if earlier.path.is_asynchronous() {
            return self.copies.complete(earlier, clock, self.phases(), own);
        }
        let mut known = clock.known(earlier.block, earlier.warp, earlier.mask, earlier.time);
        if earlier.path == Path::Mbarrier
            && let Some(asynchronous) = asynchronous
        {
            known |= asynchronous.inits.known(earlier.block, earlier.warp, earlier.mask, earlier.time);
        }
        known | earlier.mask & own
    }

    pub(super) fn phases(&self) -> Option<&Phases> {
        self.know.asynchronous.as_ref().map(|known| &known.phases)
    }
}

/// Racing reads that look like looking at a flag: the writer, its write, the read.
type Flags = SmallVec<[(Party, Witness, Witness); 1]>;

/// Whether an operation of this scope by `from` includes `to`.
pub(super) fn includes(scope: Scope, from: ThreadId, to: ThreadId, launch: Option<&Launch>) -> bool {
    match scope {
        Scope::Gpu | Scope::Sys => true,
        Scope::Cta => from.launch == to.launch && from.block == to.block,
        Scope::Cluster => {
            let geometry = launch.map_or(Geometry::new(1), |launch| launch.geometry);
            from.launch == to.launch && geometry.same_cluster(from.block, to.block)
        }
    }
}

fn check(
    cell: &Cell,
    judge: &Judge<'_>,
    key: Key,
    now: &Entry,
    word: u64,
    collector: &mut super::collect::Collector,
    flags: &mut Flags,
) {
    for group in &cell.groups {
        let other = &group.key;
        if !(key.writes() || other.writes()) || !key.overlaps(other) {
            continue;
        }
        // The word that holds the first common byte reports, so that an access of two words counts once.
        if key.start.max(other.start) < 0 && !(key.path.is_range() && other.path.is_range()) {
            continue;
        }
        let wide = |scope: Option<Scope>| scope.is_some_and(is_wide);
        // Morally strong whoever they are: only lanes of one warp are of interest, for the pre-Volta idiom, and data
        // behind a flag.
        let strong = wide(key.scope) && wide(other.scope) && key.same_bytes(other);
        let atomic = key.class == AccessClass::Atomic || other.class == AccessClass::Atomic;
        if strong && atomic {
            continue;
        }
        // A strong load of what a strong store left is no race, but it may be the data of a publication that went wrong.
        let data = other.class == AccessClass::Write && key.class == AccessClass::Read;
        let published = data && !judge.block.observations.is_empty();
        for earlier in &group.entries {
            let same_warp =
                earlier.launch == now.launch && earlier.block == now.block && earlier.warp == now.warp;
            if earlier.mask == 0 || (strong && !same_warp && !published) {
                continue;
            }
            let read_only =
                (key.path == Path::ReadOnly || other.path == Path::ReadOnly) && earlier.launch == now.launch;
            let ordered = if read_only { 0 } else { judge.viewer.preceding(earlier, now) };
            let mut open = earlier.mask & !ordered;
            if same_warp && !read_only && now.mask.count_ones() > 1 {
                // Another lane of the access may be unordered with a lane that takes part itself.
                open = earlier.mask & !judge.viewer.known(earlier, now);
            }
            let asynchronous = key.path.is_asynchronous() || other.path.is_asynchronous();
            if same_warp && earlier.record == now.record && is_one(key, other, earlier.mask & now.mask != 0) {
                continue;
            }
            let Some(pair) = pair(open, now.mask, same_warp && !read_only, asynchronous) else { continue };
            let facts =
                Facts { key: *other, entry: earlier, lane: pair.0, now_key: key, now, now_lane: pair.1 };
            if let Some(conflict) = judge.judge(&facts, word) {
                let [write, read] = conflict.witnesses;
                // Between strong ones the read has been noted already, with what it observed.
                let weak = !(key.is_strong() && other.is_strong());
                let flag = weak && other.writes() && key.class == AccessClass::Read;
                if flag && earlier.single && now.single {
                    flags.push((Party { thread: write.thread, time: earlier.time }, write, read));
                }
                let block = if Tagged(word).is_shared() { judge.home } else { 0 };
                collector.add((word, block), conflict);
            }
        }
    }
}

/// Whether two accesses of one record are one: the lanes of a tile, and the read and write of a copy.
fn is_one(key: Key, other: &Key, same_lane: bool) -> bool {
    key.path == Path::Tile || (key.path.is_asynchronous() && same_lane && key.class != other.class)
}

/// One lane of each side, different threads; a thread may race with its own copy.
fn pair(open: u32, now: u32, same_warp: bool, asynchronous: bool) -> Option<(u8, u8)> {
    if open == 0 {
        return None;
    }
    if !same_warp {
        return Some((open.trailing_zeros() as u8, now.trailing_zeros() as u8));
    }
    let apart = if open & !now != 0 { open & !now } else { open };
    let earlier = apart.trailing_zeros();
    let rest = now & !(1 << earlier);
    let now = if rest == 0 && asynchronous { now } else { rest };
    (now != 0).then(|| (earlier as u8, now.trailing_zeros() as u8))
}

/// The first lane's side of a conflict.
pub(super) fn entry_witness(entry: &Entry, key: Key, word: u64) -> Witness {
    let Entry { launch, block, warp, .. } = *entry;
    let thread = ThreadId { launch, block, warp, lane: (entry.mask.trailing_zeros() & 31) as u8 };
    super::judge::witness(entry, thread, key, word)
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
