//! The order in which the engine takes a launch's records: always the same, whatever the order in which they came.
//!
//! A device delivers records in one of many orders, by chance: those of a warp in the order of the program, those of warps
//! interleaved somehow. All of them say the same, but of three accesses of which none is ordered with the others, which pair is
//! reported depends on which is looked at first. So a launch's records are sorted when it has ended: strong operations by the
//! tickets that they drew; what others can't see, such as plain loads, as late as the next of these in its warp allows, all else as
//! early as the last one does, so that what may be seen comes before who may see it. What that leaves open goes by block, by barrier,
//! and as if warps went on step by step together.
//!
//! It is no order of the memory model: `event::order` is what keeps what depends on each other in order. But it is near to the one in
//! which things happened, so that hardly anything has to wait for what comes later.

use crate::abi::{Unit, decode};
use crate::event::ByBlock;

/// What a site's records are to the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Others see it.
    Early,
    /// Nobody does.
    Late,
    /// The same: a barrier of the block. What its warps do lies in intervals between such.
    Barrier,
}

/// Where a record lies, and what it is sorted by.
#[derive(Clone, Copy, Debug)]
struct Entry {
    ticket: u64,
    block: u32,
    /// So many barriers came before it in its warp.
    interval: u32,
    /// So many records of its warp since.
    step: u32,
    segment: u32,
    from: u32,
    /// Its length.
    units: u8,
    warp: u8,
    /// Nothing but what is late follows, up to the next ticket or barrier.
    late: bool,
}

/// How far a warp has come.
#[derive(Clone, Copy, Debug, Default)]
struct Warp {
    /// The last ticket.
    ticket: u64,
    interval: u32,
    step: u32,
    /// By what the next record is sorted.
    next: Option<(u64, u32, bool)>,
}

/// The last ticket that was drawn in an interval, and in those before it.
#[derive(Clone, Copy, Debug, Default)]
struct Drawn {
    within: u64,
    before: u64,
}

#[derive(Debug, Default)]
struct Block {
    warps: Vec<Warp>,
    /// By interval, as far as there are tickets.
    drawn: Vec<Drawn>,
    closed: bool,
}

impl Block {
    fn warp(&mut self, warp: u8) -> &mut Warp {
        let at = usize::from(warp);
        if at >= self.warps.len() {
            self.warps.resize(at + 1, Warp::default());
        }
        &mut self.warps[at]
    }

    /// Takes the next record of a warp. Gives the last ticket of the warp, the interval, and the step in it.
    fn next(&mut self, warp: u8, ticket: Option<u64>, is_barrier: bool) -> (u64, u32, u32) {
        let warp = self.warp(warp);
        warp.ticket = warp.ticket.max(ticket.unwrap_or(0));
        let next = (warp.ticket, warp.interval, warp.step);
        warp.step += 1;
        if is_barrier {
            (warp.interval, warp.step) = (warp.interval + 1, 0);
        }
        if let Some(ticket) = ticket {
            let at = next.1 as usize;
            if at >= self.drawn.len() {
                self.drawn.resize(at + 1, Drawn::default());
            }
            self.drawn[at].within = self.drawn[at].within.max(ticket);
        }
        next
    }

    fn close(&mut self) {
        self.closed = true;
        self.drawn.push(Drawn::default());
        let mut last = 0;
        for drawn in &mut self.drawn {
            drawn.before = last;
            last = last.max(drawn.within);
        }
    }

    /// Places a record that has the last ticket of its warp and comes before those that were placed already.
    fn place(&mut self, entry: &mut Entry, part: Part) {
        if !self.closed {
            self.close();
        }
        let drawn =
            self.drawn.get(entry.interval as usize).or(self.drawn.last()).copied().unwrap_or_default();
        entry.ticket = entry.ticket.max(drawn.before);
        let warp = self.warp(entry.warp);
        if part != Part::Early {
            // A block goes on to its next interval, or ends, as soon as it can.
            let next = warp.next.map_or(u64::MAX, |(ticket, ..)| ticket);
            entry.ticket = entry.ticket.max(next.min(drawn.within));
            let here = (entry.ticket, entry.interval);
            entry.late = warp.next.is_none_or(|(ticket, interval, late)| late || (ticket, interval) != here);
        }
        warp.next = Some((entry.ticket, entry.interval, entry.late));
    }
}

/// What came in segments, sorted.
pub(super) struct Sequence<'s> {
    segments: &'s [&'s [Unit]],
    entries: Vec<(Entry, Part)>,
    /// What no record can be made of.
    damaged: Vec<&'s [Unit]>,
}

impl<'s> Sequence<'s> {
    /// Sorts them. `part` tells of sites.
    pub(super) fn of(segments: &'s [&'s [Unit]], part: impl Fn(u32) -> Part) -> Self {
        let mut blocks: ByBlock<Block> = ByBlock::default();
        let mut entries: Vec<(Entry, Part)> = Vec::new();
        let mut damaged = Vec::new();
        for (segment, units) in (0..).zip(segments) {
            let mut rest = *units;
            while !rest.is_empty() {
                let Ok(Some(record)) = decode(rest) else {
                    damaged.push(rest);
                    break;
                };
                let (block, warp, part) = (record.block(), record.warp(), part(record.site()));
                let ticket = record.tickets().map(|(_, after)| after);
                let state = blocks.get_or_insert_with(block, Block::default);
                let (ticket, interval, step) = state.next(warp, ticket, part == Part::Barrier);
                let (length, from) = (record.units().len(), (units.len() - rest.len()) as u32);
                let units = length as u8;
                let entry = Entry { ticket, block, interval, step, segment, from, units, warp, late: false };
                entries.push((entry, part));
                rest = rest.get(length..).unwrap_or(&[]);
            }
        }
        for (entry, part) in entries.iter_mut().rev() {
            blocks.get_or_insert_with(entry.block, Block::default).place(entry, *part);
        }
        // Of a warp, no later record is sorted before an earlier one.
        entries.sort_by_key(|(entry, _)| {
            let Entry { ticket, block, interval, late, step, warp, .. } = *entry;
            (ticket, block, interval, late, step, warp)
        });
        Self { segments, entries, damaged }
    }

    /// Hands it over, what is damaged last.
    pub(super) fn each(self, mut take: impl FnMut(&[Unit])) {
        let mut entries = self.entries.into_iter().map(|(entry, _)| entry).peekable();
        while let Some(first) = entries.next() {
            // What lies together goes together.
            let mut to = first.from as usize + usize::from(first.units);
            while let Some(next) =
                entries.next_if(|next| next.segment == first.segment && next.from as usize == to)
            {
                to += usize::from(next.units);
            }
            let segment = self.segments.get(first.segment as usize);
            take(segment.and_then(|units| units.get(first.from as usize..to)).unwrap_or(&[]));
        }
        self.damaged.into_iter().for_each(take);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::abi::{Encoder, LANES, Payload};

    const PARTS: [Part; 4] = [Part::Early, Part::Late, Part::Barrier, Part::Early];
    /// The site whose records have tickets.
    const TICKETED: u32 = 3;
    const WARPS: usize = 6;

    type Who = (u32, u8);

    /// A record of site `kind`; what it is known by stands in its address.
    fn record((block, warp): Who, kind: u32, name: u64, tickets: (u64, u64)) -> Vec<Unit> {
        let (a, none) = ([name; LANES], [0; LANES]);
        let payload = Payload { a: true, tickets: kind == TICKETED, ..Payload::NONE };
        let mut units = Vec::new();
        Encoder { site: kind, mask: 1, block, warp, payload, tickets, a: &a, read: &none, written: &none }
            .encode(&mut units);
        units
    }

    /// Each warp's records, in one interleaving of many.
    fn interleaved(warps: &[Vec<Vec<Unit>>], picks: &[usize]) -> Vec<Unit> {
        let mut queues: Vec<_> = warps.iter().map(|warp| warp.iter()).collect();
        let mut out = Vec::new();
        let mut picks = picks.iter().cycle();
        while queues.iter().any(|queue| queue.len() > 0) {
            let pick = picks.next().copied().unwrap_or(0) % queues.len();
            match queues[pick].next() {
                Some(record) => out.extend_from_slice(record),
                None => {
                    let _ = queues.remove(pick);
                }
            }
            if queues.is_empty() {
                break;
            }
        }
        out
    }

    /// What comes out: who, and the name of the record.
    fn order(units: &[Unit], pieces: usize) -> Vec<(Who, u32, u64)> {
        let mut segments: Vec<&[Unit]> = Vec::new();
        let mut rest = units;
        while !rest.is_empty() {
            let mut at = 0;
            for _ in 0..pieces {
                let next = decode(&rest[at..]).unwrap();
                at += next.map_or(0, |record| record.units().len());
            }
            let (segment, after) = rest.split_at(at);
            segments.push(segment);
            rest = after;
        }
        let mut out = Vec::new();
        Sequence::of(&segments, |site| PARTS[site as usize]).each(|mut units| {
            while let Some(record) = decode(units).unwrap() {
                out.push(((record.block(), record.warp()), record.site(), record.a(0)));
                units = &units[record.units().len()..];
            }
        });
        out
    }

    proptest! {
        #[test]
        fn it_is_the_same_in_whatever_order_records_come(
            kinds in prop::collection::vec(prop::collection::vec(0u32..4, 0..12), WARPS),
            ticketed in prop::collection::vec(0usize..WARPS, 1..40),
            picks in prop::collection::vec(0usize..WARPS, 1..40),
            pieces in 1usize..9,
        ) {
            let who = |warp: usize| ((warp / 2) as u32, (warp % 2) as u8);
            // Tickets are drawn in one of the orders in which records may come.
            let mut next = [0; WARPS];
            let (mut ticket, mut name) = (1, 0);
            let mut warps = vec![Vec::new(); WARPS];
            let turns = ticketed.iter().copied().chain((0..WARPS).flat_map(|warp| [warp; 12]));
            for warp in turns {
                let Some(kind) = kinds[warp].get(next[warp]) else { continue };
                next[warp] += 1;
                warps[warp].push(record(who(warp), *kind, name, (ticket, ticket + 1)));
                ticket += if *kind == TICKETED { 2 } else { 0 };
                name += 1;
            }
            let one = order(&interleaved(&warps, &[0]), 1);
            let other = order(&interleaved(&warps, &picks), pieces);
            prop_assert_eq!(&one, &other);
            // Nothing is lost, and each warp's records are in their order.
            prop_assert_eq!(one.len() as u64, name);
            for warp in 0..WARPS {
                let names: Vec<_> = one.iter().filter(|(of, ..)| *of == who(warp)).map(|(.., name)| *name).collect();
                prop_assert!(names.is_sorted());
            }
            // What has tickets goes by them. A warp may have drawn one behind a barrier where none could go on.
            let drawn: Vec<_> = one.iter().filter(|(_, kind, _)| *kind == TICKETED).map(|(.., name)| *name).collect();
            let has_barriers = kinds.iter().flatten().any(|kind| *kind == 2);
            prop_assert!(has_barriers || drawn.is_sorted());
        }
    }

    #[test]
    fn what_may_be_seen_comes_first() {
        let two = [
            vec![record((0, 0), 1, 1, (0, 0)), record((0, 0), 2, 2, (0, 0))],
            vec![
                record((0, 1), 0, 3, (0, 0)),
                record((0, 1), TICKETED, 4, (1, 2)),
                record((0, 1), 2, 5, (0, 0)),
            ],
        ];
        let names: Vec<_> = order(&interleaved(&two, &[0]), 1).into_iter().map(|(.., name)| name).collect();
        assert_eq!(names, [3, 4, 1, 2, 5]);
    }

    #[test]
    fn damage_comes_last_and_is_not_lost() {
        let mut units = record((0, 0), 0, 1, (0, 0));
        let whole = units.clone();
        units.push(Unit { lo: 0, hi: u64::MAX });
        let mut taken = Vec::new();
        Sequence::of(&[&units, &whole], |_| Part::Early).each(|units| taken.push(units.len()));
        assert_eq!(taken, [whole.len(), whole.len(), 1]);
    }
}
