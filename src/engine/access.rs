//! An access against the shadow.

use std::sync::Arc;

use smallvec::SmallVec;

use super::clock::{self, Know};
use super::judge::{Facts, Judge};
use super::publish::{Observation, Party};
use super::shadow::{Cell, Entry, Key, WORD};
use super::sync::{Message, Write, is_wide};
use super::thread::{LaneKnow, View};
use super::{Core, Launch};
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
struct Stroke {
    class: AccessClass,
    scope: Option<Scope>,
    non_coherent: bool,
    order: Order,
    marking: Marking,
    element: u8,
    entry: Entry,
}

impl Core {
    /// Handles lanes of an access record, in the order of `ranks`.
    pub(super) fn access(&mut self, access: &Access, record: &Record<'_>, ranks: &[u8]) {
        let (index, warp_index) = (record.block(), record.warp());
        let (current, events) = (self.current, self.events);
        let block = self.block(index);
        let Some(warp) = block.warps.get(usize::from(warp_index)) else { return };
        let stroke = Stroke {
            class: class_of(access),
            scope: if access.order.is_strong() { access.scope } else { None },
            non_coherent: access.marking == Marking::NonCoherent,
            order: access.order,
            marking: access.marking,
            element: access.element,
            entry: Entry {
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
                    || record.a_progression().is_some_and(|(_, s)| s == 0),
            },
        };
        if access.order.is_strong() {
            self.strong(access, record, ranks, stroke);
        } else {
            self.weak(access, record, ranks, stroke);
        }
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
            self.elements(access, record.a(0), stroke);
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
            self.elements(access, record.a(rank), stroke);
        }
        if access.writes() && !self.locations.is_empty() {
            for rank in ranks {
                self.weak_write(access, record, usize::from(*rank), stroke);
            }
        }
    }

    /// A weak store to a strong location breaks its chain and hands on nothing.
    fn weak_write(&mut self, access: &Access, record: &Record<'_>, rank: usize, stroke: Stroke) {
        let place = Place::of(record, rank, 0);
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
            let place = Place::of(record, rank, 0);
            let reads = access.kind != AccessKind::Store;
            let mut inherited = None;
            if reads {
                inherited = self.strong_read(access, record, rank, lane, place, stroke);
            }
            // A failed compare-and-swap is a strong read. One that succeeds and changes nothing looks the same.
            let failed =
                access.op == Some(crate::isa::AtomOp::Cas) && record.read(rank) == record.written(rank);
            let writes = access.writes() && !failed;
            stroke.entry.mask = 1 << lane;
            stroke.entry.value = record.written(rank);
            if place.is_shared() && !self.locations.contains_key(&place) {
                self.block(record.block()).locations.push(place);
            }
            stroke.entry.order = self.locations.entry(place).or_default().next_order();
            let class = if failed { AccessClass::Read } else { stroke.class };
            self.elements(access, record.a(rank), Stroke { class, ..stroke });
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
        // Forced `fence.sc` order needs no more than that the value was read.
        let fences = observed.fences.clone();
        if strong_hop {
            location.note_observer(order, reader, stroke.entry.time);
        }
        let events = self.events;
        let wide = is_wide(scope);
        let block = self.block(index);
        if writer != reader {
            block.observe(Observation {
                place,
                order,
                event: events,
                time: stroke.entry.time,
                read: witness(stroke, reader, record.a(rank), AccessClass::Read.max(stroke.class)),
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
                .flat_map(|(_, message)| message.eligible(index, wide))
                .chain(message.eligible(index, wide))
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
        let wide = is_wide(access.scope.unwrap_or(Scope::Cta));
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
                lane_sync.released_on.push((place, know, wide));
            }
            if let Some(released) = &lane_sync.released_near {
                message.add(index, false, released);
            }
            if let Some(released) = &lane_sync.released_wide {
                message.add(index, true, released);
            }
            for (_, released, wide) in lane_sync.released_on.iter().filter(|(at, _, _)| *at == place) {
                message.add(index, *wide, released);
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
            witness: witness(stroke, thread, record.a(rank), stroke.class),
            fenced_elsewhere,
        })
    }

    /// Each element is an access of its own.
    fn elements(&mut self, access: &Access, address: u64, stroke: Stroke) {
        for element in 0..u64::from(access.count) {
            self.element(address.wrapping_add(element * u64::from(access.element)), stroke);
        }
    }

    fn element(&mut self, address: u64, stroke: Stroke) {
        let bytes = u64::from(stroke.element);
        let first = address / WORD;
        let last = (address + bytes.max(1) - 1) / WORD;
        for word in first..=last {
            let start = address.wrapping_sub(word * WORD).cast_signed();
            let key = Key {
                class: stroke.class,
                scope: stroke.scope,
                non_coherent: stroke.non_coherent,
                start: start as i8,
                bytes: stroke.element,
            };
            self.word(word * WORD, key, stroke, address);
        }
    }

    fn word(&mut self, word: u64, key: Key, stroke: Stroke, address: u64) {
        let entry = stroke.entry;
        let Some(block) = self.blocks.get_mut(&entry.block) else { return };
        let shadow = if Tagged(address).is_shared() { &mut block.shared } else { &mut self.global };
        let cell = shadow.cell(word);
        let lane = entry.mask.trailing_zeros() as usize & 31;
        let Some(warp) = block.warps.get(usize::from(entry.warp)) else { return };
        let know = warp.know.get(lane);
        let judge = Judge {
            sites: &self.sites,
            launches: &self.launches,
            locations: &self.locations,
            block: View { warps: &block.warps, observations: &block.observations },
            know,
            explained: &self.explained,
        };
        let mut flags = SmallVec::new();
        check(cell, &judge, key, &entry, word, &mut self.collector, &mut flags);
        let launch = self.launches.get(entry.launch as usize);
        self.lost += u64::from(cell.add(key, entry, |earlier| preceding(earlier, &entry, know, launch)));
        for (writer, write, read) in flags {
            let seen = Observation {
                place: Place { address, block: 0 },
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
}

/// Racing reads that look like looking at a flag: the writer, its write, the read.
type Flags = SmallVec<[(Party, Witness, Witness); 1]>;

/// Whether an operation of this scope by `from` includes `to`.
pub(super) fn includes(scope: Scope, from: ThreadId, to: ThreadId, launch: Option<&Launch>) -> bool {
    match scope {
        Scope::Gpu | Scope::Sys => true,
        Scope::Cta => from.launch == to.launch && from.block == to.block,
        Scope::Cluster => {
            let size = launch.map_or(1, |launch| launch.cluster);
            from.launch == to.launch && from.block / size == to.block / size
        }
    }
}

/// Lanes of an earlier entry that precede the access in base causality. An earlier access of a lane that takes part
/// in the new one precedes it by program order.
fn preceding(earlier: &Entry, now: &Entry, know: &Know, launch: Option<&Launch>) -> u32 {
    if earlier.launch != now.launch {
        let ordered =
            launch.and_then(|launch| launch.after.get(earlier.launch as usize)).copied().unwrap_or(false);
        return if ordered { earlier.mask } else { 0 };
    }
    let known = know.clock.known(earlier.block, earlier.warp, earlier.mask, earlier.time);
    if earlier.block == now.block && earlier.warp == now.warp {
        known | (earlier.mask & now.mask)
    } else {
        known
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
    let launch = judge.launches.get(now.launch as usize);
    for group in &cell.groups {
        let other = &group.key;
        if !(key.writes() || other.writes()) || !key.overlaps(other) {
            continue;
        }
        // The word that holds the first common byte reports, so that an access of two words counts once.
        if key.start.max(other.start) < 0 {
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
            let read_only = (key.non_coherent || other.non_coherent) && earlier.launch == now.launch;
            let ordered = if read_only { 0 } else { preceding(earlier, now, judge.know, launch) };
            let mut open = earlier.mask & !ordered;
            if same_warp && !read_only && now.mask.count_ones() > 1 {
                // Another lane of the access may be unordered with a lane that takes part itself.
                let known = judge.know.clock.known(earlier.block, earlier.warp, earlier.mask, earlier.time);
                open = earlier.mask & !known;
            }
            let Some(pair) = pair(open, now.mask, same_warp && !read_only) else { continue };
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
                let block = if Tagged(word).is_shared() { now.block } else { 0 };
                collector.add((word, block), conflict);
            }
        }
    }
}

/// One lane of each side, different threads.
fn pair(open: u32, now: u32, same_warp: bool) -> Option<(u8, u8)> {
    if open == 0 {
        return None;
    }
    if !same_warp {
        return Some((open.trailing_zeros() as u8, now.trailing_zeros() as u8));
    }
    let apart = if open & !now != 0 { open & !now } else { open };
    let earlier = apart.trailing_zeros();
    let rest = now & !(1 << earlier);
    (rest != 0).then(|| (earlier as u8, rest.trailing_zeros() as u8))
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
