//! An access against a cell of the shadow: which earlier ones conflict with it and do not precede it.

use smallvec::SmallVec;

use super::access::Stroke;
use super::again::{self, Again};
use super::clock::{Know, Phases};
use super::collect::Collector;
use super::copies::Copies;
use super::judge::{Explained, Facts, Judge};
use super::mbarrier::Mbarriers;
use super::publish::Party;
use super::shadow::{Cell, Entry, Key, Path, Shadow};
use super::sync::{Locations, is_wide};
use super::thread::View;
use super::{Launch, Sites};
use crate::abi::Tagged;
use crate::event::{Geometry, Place};
use crate::finding::{AccessClass, ThreadId, Witness};
use crate::isa::Scope;

/// What all accesses are judged with.
#[derive(Clone, Copy)]
pub(super) struct Shared<'s> {
    pub(super) sites: &'s Sites,
    pub(super) launches: &'s [Launch],
    pub(super) locations: &'s Locations,
    pub(super) copies: &'s Copies,
    pub(super) mbarriers: &'s Mbarriers,
    pub(super) explained: &'s Explained,
    /// Launches may be of devices that differ.
    pub(super) several_devices: bool,
}

/// Checks an access against a cell and puts it there, if it is to be kept; gives how many entries were lost.
#[expect(clippy::too_many_arguments, reason = "one call, all of it state of one access")]
#[inline]
pub(super) fn touch(
    shadow: &mut Shadow,
    word: u64,
    key: Key,
    stroke: &Stroke,
    place: Place,
    block: View<'_>,
    shared: Shared<'_>,
    collector: &mut Collector,
    flags: &mut Flags,
) -> u64 {
    // What stayed quiet has been seen to already.
    let cell = if stroke.quiet { shadow.loud_cell(word) } else { Some(shadow.cell(word)) };
    let Some(cell) = cell else { return 0 };
    let entry = &stroke.entry;
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
        several_devices: shared.several_devices,
    };
    let open = check(cell, &judge, key, entry, word, collector, flags);
    if !stroke.keep {
        return 0;
    }
    let before = cell.apart();
    let lost = cell.add(key, *entry, open, |earlier| viewer.preceding(earlier, entry));
    let after = cell.apart();
    shadow.grew(before, after);
    u64::from(lost)
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
    #[inline]
    pub(super) fn preceding(self, earlier: &Entry, now: &Entry) -> u32 {
        if earlier.launch != now.launch {
            let after = self.launch.is_some_and(|launch| launch.follows(earlier.launch));
            return if after { earlier.mask } else { 0 };
        }
        self.before(earlier, now, if earlier.same_warp(now) { now.mask } else { 0 })
    }

    /// The same without program order, in one launch.
    #[inline]
    pub(super) fn known(self, earlier: &Entry, now: &Entry) -> u32 {
        self.before(earlier, now, 0)
    }

    #[inline]
    fn before(self, earlier: &Entry, now: &Entry, own: u32) -> u32 {
        if earlier.path.is_direct() && now.path != Path::Bulk {
            let known = self.know.clock.known(earlier.block, earlier.warp, earlier.mask, earlier.time);
            return known | earlier.mask & own;
        }
        self.indirect(earlier, now, own)
    }

    /// The same where program order and clocks do not say all.
    #[inline(never)]
    fn indirect(self, earlier: &Entry, now: &Entry, own: u32) -> u32 {
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
        if earlier.path.is_asynchronous() || earlier.path == Path::Completion {
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
pub(super) type Flags = SmallVec<[(Party, Witness, Witness); 1]>;

/// Whether an operation of this scope by `from` includes `to`, on the same device.
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

/// Checks an access against a cell. Gives the groups, a bit each, of which none precedes the access, as far as that is known.
#[inline]
fn check(
    cell: &Cell,
    judge: &Judge<'_>,
    key: Key,
    now: &Entry,
    word: u64,
    collector: &mut Collector,
    flags: &mut Flags,
) -> u32 {
    let block = if Tagged(word).is_shared() { judge.home } else { 0 };
    let address = word.wrapping_add_signed(i64::from(key.start));
    let mut again = Again::default();
    let mut all_open = 0;
    let plain = again::is_plain(&key);
    let alone = plain && judge.viewer.know.clock.is_of(now.block);
    for (at, group) in cell.groups.iter().enumerate() {
        let other = &group.key;
        if !(key.writes() || other.writes()) || !key.overlaps(other) {
            continue;
        }
        // The word that holds the first common byte reports, so that an access of two words counts once.
        if key.start.max(other.start) < 0 && !(key.path.is_range() && other.path.is_range()) {
            continue;
        }
        let wide = |scope: Option<Scope>| scope.is_some_and(is_wide);
        let alike = wide(key.scope) && wide(other.scope) && key.same_bytes(other);
        // Morally strong whoever they are: only lanes of one warp are of interest, for the pre-Volta idiom, and data
        // behind a flag. Where there are several devices, narrower scopes do for launches of one.
        let everybody = key.scope == Some(Scope::Sys) && other.scope == Some(Scope::Sys);
        let strong = alike && (everybody || !judge.several_devices);
        let atomic = key.class == AccessClass::Atomic || other.class == AccessClass::Atomic;
        let settled = atomic || group.last_but_one;
        if strong && settled {
            continue;
        }
        // A strong load of what a strong store left is no race, but it may be the data of a publication that went wrong.
        let data = other.class == AccessClass::Write && key.class == AccessClass::Read;
        let published = data && !judge.block.observations.is_empty();
        let short = plain && again::is_short(judge, &key, other, now);
        let class = key.class.min(other.class);
        let mut none_before = at < u32::BITS as usize;
        for earlier in &group.entries {
            let same_warp = earlier.same_warp(now);
            let strong = strong || (alike && judge.of_one_device(earlier.launch, now.launch));
            if earlier.mask == 0 || (strong && (settled || (!same_warp && !published))) {
                none_before = false;
                continue;
            }
            if short && !same_warp && earlier.launch == now.launch {
                let unknown = alone && earlier.block != now.block;
                let ordered = if unknown { 0 } else { judge.viewer.preceding(earlier, now) };
                none_before &= ordered & earlier.mask == 0;
                let open = earlier.mask & !ordered;
                if open == 0 || again.take(judge, earlier, open, now, class, collector) {
                    continue;
                }
            }
            let stale = key.may_be_stale(other) && is_stale(judge, earlier, now);
            let read_only = (key.path == Path::ReadOnly || other.path == Path::ReadOnly || stale)
                && earlier.launch == now.launch;
            let ordered = if read_only { 0 } else { judge.viewer.preceding(earlier, now) };
            none_before &= !read_only && ordered & earlier.mask == 0;
            let mut open = earlier.mask & !ordered;
            if same_warp && !read_only && now.mask.count_ones() > 1 {
                // Another lane of the access may be unordered with a lane that takes part itself.
                open = earlier.mask & !judge.viewer.known(earlier, now);
            }
            let asynchronous = key.path.is_asynchronous() || other.path.is_asynchronous();
            if same_warp && earlier.record == now.record && is_one(key, other, earlier.mask & now.mask != 0) {
                continue;
            }
            let (open, lanes) =
                if read_only { (open, now.mask) } else { judge.least_ordered(open, earlier, now) };
            let Some(pair) = pair(open, lanes, same_warp && !read_only, asynchronous) else { continue };
            let facts = Facts {
                key: *other,
                entry: earlier,
                lane: pair.0,
                now_key: key,
                now,
                now_lane: pair.1,
                stale,
            };
            if let Some(conflict) = judge.judge(&facts, word) {
                let [write, read] = conflict.witnesses;
                // Between strong ones the read has been noted already, with what it observed.
                let weak = !(key.is_strong() && other.is_strong());
                let flag = weak && other.writes() && key.class == AccessClass::Read;
                if flag && earlier.single && now.single {
                    flags.push((Party { thread: write.thread, time: earlier.time }, write, read));
                }
                again.flush(collector, (word, block), address);
                collector.add((word, block), conflict);
            }
        }
        all_open |= u32::from(none_before) << (at & 31);
    }
    again.flush(collector, (word, block), address);
    all_open
}

/// Whether a surface reads what was written in the same launch, in order.
#[cold]
fn is_stale(judge: &Judge<'_>, earlier: &Entry, now: &Entry) -> bool {
    let same_warp = earlier.same_warp(now) && now.mask.count_ones() > 1;
    let ordered =
        if same_warp { judge.viewer.known(earlier, now) } else { judge.viewer.preceding(earlier, now) };
    earlier.launch == now.launch && earlier.mask & !ordered == 0
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
