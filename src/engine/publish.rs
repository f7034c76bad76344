//! Publications that went wrong: a thread saw a flag, but the flag's release or acquire is wanting. This explains
//! races that were found already, and never makes or hides one; `judge::strong_data` warns by it where there is no race.

use std::sync::Arc;

use super::clock::{Know, Time};
use super::sync::{Home, Location, Locations, Reach, Write};
use super::thread::View;
use crate::event::{Geometry, Place};
use crate::finding::{Instead, Missing, Rule, Side, ThreadId, Witness};
use crate::instrument::SiteId;
use crate::isa::{Marking, Order, Scope};

/// A strong read that saw a write of another thread.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    pub(super) place: Place,
    /// Which write it saw.
    pub(super) order: u32,
    /// When, by the engine's count of events.
    pub(super) event: u64,
    pub(super) time: Time,
    pub(super) read: Witness,
    pub(super) scope: Scope,
    pub(super) mem_order: Order,
    pub(super) marking: Marking,
    pub(super) rmw: bool,
    /// The write is a plain one, or the read is, so that flag and reader race: who wrote it, when, and the write. Only
    /// accesses to a single address are taken for flags.
    pub(super) plain: Option<(Party, Witness)>,
    /// It is a wait for an mbarrier, and what it would have acquired but for a scope.
    pub(super) narrow: Option<Arc<Narrow>>,
}

/// An arrival at an mbarrier that a wait did not acquire, as a scope leaves the other thread out.
#[derive(Debug)]
pub(super) struct Narrow {
    /// What the arrival handed on.
    pub(super) know: Arc<Know>,
    pub(super) arrival: Witness,
    /// Whose scope is too narrow.
    pub(super) side: Side,
}

/// Observations kept for each block.
pub(super) const OBSERVATIONS: usize = 256;

/// One side of the conflict, as far as publication goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Party {
    pub(super) thread: ThreadId,
    pub(super) time: Time,
}

/// Looks for a flag that the later access's thread, or one it is ordered after, has seen, and whose writer came after
/// the earlier access. Gives the rule and what is wanting.
#[expect(clippy::too_many_arguments, reason = "one call, all of it state of one conflict")]
pub(super) fn explain(
    earlier: Party,
    later: Party,
    sites: [SiteId; 2],
    address: u64,
    know: &Know,
    block: View<'_>,
    locations: &Locations,
    geometry: Geometry,
) -> Option<(Rule, Missing)> {
    for seen in block.observations.iter().rev() {
        let reader = seen.read.thread;
        let before = reader == later.thread
            || know.clock.known(reader.block, reader.warp, 1 << reader.lane, seen.time) != 0;
        // A flag does not publish itself, nor a part of itself.
        let flag = seen.place.address..seen.place.address.saturating_add(seen.read.bytes.into());
        let itself =
            seen.place.address == address || flag.contains(&address) || sites.contains(&seen.read.site);
        if !before || reader == earlier.thread || itself {
            continue;
        }
        if let Some((writer, write)) = seen.plain {
            if writer.thread == earlier.thread && earlier.time <= writer.time {
                return Some(plain(seen, write));
            }
            continue;
        }
        if let Some(narrow) = &seen.narrow {
            if knows(&narrow.know, earlier) {
                return Some(scopes(narrow, seen.read));
            }
            continue;
        }
        let Some(write) = locations.get(&seen.place).and_then(|l| covering(l, seen, earlier)) else {
            continue;
        };
        if let Some(found) = judge(earlier, seen, write, block, geometry) {
            return Some(found);
        }
    }
    None
}

fn scopes(narrow: &Narrow, wait: Witness) -> (Rule, Missing) {
    let instead = |side| (narrow.side == side || narrow.side == Side::Both).then_some(Instead::NarrowScope);
    let missing = Missing::Publication {
        side: narrow.side,
        writer: instead(Side::Release),
        reader: instead(Side::Acquire),
        flag_write: narrow.arrival,
        flag_read: wait,
        lock: false,
    };
    (Rule::R004, missing)
}

/// What lies around a complete publication between the two blocks: other threads released and acquired, and the earlier
/// access is not ordered before the one, or the later access not after the other. `intervals` are those of the two
/// accesses.
#[expect(clippy::too_many_arguments, reason = "one call, all of it state of one conflict")]
pub(super) fn apart(
    earlier: Party,
    later: Party,
    intervals: [u32; 2],
    address: u64,
    know: &Know,
    block: View<'_>,
    locations: &Locations,
    geometry: Geometry,
) -> Option<Missing> {
    let mut found = None;
    for seen in block.observations.iter().rev().filter(|seen| seen.plain.is_none() && seen.narrow.is_none()) {
        let reader = seen.read.thread;
        let after = reader != later.thread
            && know.clock.known(reader.block, reader.warp, 1 << reader.lane, seen.time) == 0;
        let itself = seen.place.address == address || reader == earlier.thread;
        if itself || (after && seen.read.interval > intervals[1]) {
            continue;
        }
        let Some(location) = locations.get(&seen.place) else { continue };
        let (write, before) = match covering(location, seen, earlier) {
            Some(write) => (write, false),
            // A release that came before the access cannot publish it.
            None => match of_block(location, seen, earlier) {
                Some(write) if intervals[0] <= write.witness.interval => (write, true),
                _ => continue,
            },
        };
        let released = if before { Party { thread: write.thread, time: 1 } } else { earlier };
        if !(before || after) || judge(released, seen, write, block, geometry).is_some() {
            continue;
        }
        let missing = Missing::Apart { before, after, flag_write: write.witness, flag_read: seen.read };
        if before != after {
            return Some(missing);
        }
        found = found.or(Some(missing));
    }
    found
}

/// The latest write by another thread of the earlier access's block, among the one seen and those it follows.
fn of_block<'l>(location: &'l Location, seen: &Observation, earlier: Party) -> Option<&'l Write> {
    let mut follows = true;
    for write in location.writes.iter().rev().filter(|write| write.order <= seen.order) {
        if !std::mem::replace(&mut follows, write.rmw) {
            return None;
        }
        if write.thread.block == earlier.thread.block && write.thread != earlier.thread {
            return Some(write);
        }
    }
    None
}

/// The write that came after the earlier access, among the one seen and those it follows as read-modify-writes.
fn covering<'l>(location: &'l Location, seen: &Observation, earlier: Party) -> Option<&'l Write> {
    let mut follows = true;
    for write in location.writes.iter().rev().filter(|write| write.order <= seen.order) {
        if !follows {
            return None;
        }
        follows = write.rmw;
        let own = write.thread == earlier.thread && earlier.time <= write.time;
        if own || knows(&write.know, earlier) {
            return Some(write);
        }
    }
    None
}

fn plain(seen: &Observation, write: Witness) -> (Rule, Missing) {
    let reader = match seen.mem_order {
        Order::Weak => Some(Instead::Plain),
        Order::Acquire | Order::AcqRel => None,
        _ if seen.marking == Marking::Volatile => Some(Instead::Volatile),
        _ => Some(Instead::Relaxed),
    };
    let writer = Some(Instead::Plain);
    let side = if reader.is_some() { Side::Both } else { Side::Release };
    let missing =
        Missing::Publication { side, writer, reader, flag_write: write, flag_read: seen.read, lock: false };
    (Rule::R005, missing)
}

fn knows(know: &Arc<Know>, party: Party) -> bool {
    let ThreadId { block, warp, lane, .. } = party.thread;
    know.clock.known(block, warp, 1 << lane, party.time) != 0
}

fn judge(
    earlier: Party,
    seen: &Observation,
    write: &Write,
    block: View<'_>,
    geometry: Geometry,
) -> Option<(Rule, Missing)> {
    let reader = seen.read.thread;
    let home = Home::new(reader.block, geometry);
    let distance = home.distance(Home::new(write.thread.block, geometry));
    let reaches = |scope: Scope| home.reach(scope) >= distance;
    let writer = writer_side(earlier, write, distance, home);
    let acquired = seen.mem_order.acquires().then_some(seen.scope);
    let fence = block
        .warps
        .get(usize::from(reader.warp))
        .and_then(|warp| warp.sync.as_ref())
        .and_then(|lanes| lanes[usize::from(reader.lane) & 31].acquire_fence)
        .filter(|(event, _)| *event > seen.event)
        .map(|(_, scope)| scope);
    // `red` gives no value, so nothing can be acquired by it.
    let reader_side = match acquired.into_iter().chain(fence).max() {
        Some(scope) if reaches(scope) && reaches(seen.scope) => None,
        Some(_) => Some(Instead::NarrowScope),
        None if seen.marking == Marking::Volatile => Some(Instead::Volatile),
        None => Some(Instead::Relaxed),
    };
    let side = match (writer, reader_side) {
        (Some(_), Some(_)) => Side::Both,
        (Some(_), None) => Side::Release,
        (None, Some(_)) => Side::Acquire,
        // Both sides are in order, so this flag is not what is wrong.
        (None, None) => return None,
    };
    let narrow = |instead: Option<Instead>| instead.is_none_or(|i| i == Instead::NarrowScope);
    let rule = if narrow(writer) && narrow(reader_side) { Rule::R004 } else { Rule::R005 };
    let missing = Missing::Publication {
        side,
        writer,
        reader: reader_side,
        flag_write: write.witness,
        flag_read: seen.read,
        lock: write.rmw && seen.rmw,
    };
    Some((rule, missing))
}

fn writer_side(earlier: Party, write: &Write, distance: Reach, home: Home) -> Option<Instead> {
    let ThreadId { block: of, warp, lane, .. } = earlier.thread;
    let covered = write.message.covers(of, warp, 1 << lane, earlier.time);
    match write.scope {
        None => return Some(Instead::Plain),
        Some(scope) if home.reach(scope) < distance => return Some(Instead::NarrowScope),
        Some(_) => {}
    }
    if covered.is_some_and(|reach| reach >= distance) {
        return None;
    }
    if covered.is_some() {
        return Some(Instead::NarrowScope);
    }
    Some(if write.fenced_elsewhere {
        Instead::FenceElsewhere
    } else if write.marking == Marking::Volatile {
        Instead::Volatile
    } else {
        Instead::Relaxed
    })
}
