//! Atomics that read what no replayed operation explains.
//!
//! A weak store has no ticket. One that races with an atomic may have been replayed before it and have come after it, or at a time
//! when nothing told that its place matters. That is a race to be reported, and no sign that the order is wrong. So whether a weak
//! store wrote such a value is asked when the launch has ended, of all its records.

use super::{Orderer, Role};
use crate::abi::{Record, Unit, records};
use crate::event::Place;
use crate::isa::Access;

/// So many of a launch are looked into; the others count at once.
const MOST: usize = 4096;

/// What a lane read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Doubt {
    place: Place,
    bytes: u64,
    read: Option<u64>,
}

impl Orderer {
    /// Lanes of an atomic read something else than what is there.
    pub(super) fn doubt(&mut self, access: &Access, record: &Record<'_>, ranks: &[u8]) {
        for rank in ranks {
            let place = Place::of(record, (*rank).into(), &self.geometry);
            if self.values.is_weak(place) {
                continue;
            }
            if self.doubts.len() < MOST {
                let read = record.read((*rank).into());
                self.doubts.push(Doubt { place, bytes: access.bytes().into(), read });
            } else {
                self.degraded += 1;
            }
        }
    }

    /// Whether `explain` would have something to do.
    pub fn has_doubts(&self) -> bool {
        !self.doubts.is_empty()
    }

    /// Drops doubts that weak stores of the launch at hand explain. These are its records.
    pub fn explain(&mut self, segments: &[&[Unit]]) {
        let mut doubts = std::mem::take(&mut self.doubts);
        doubts.sort_unstable();
        let mut explained = vec![false; doubts.len()];
        for record in segments.iter().flat_map(|units| records(units)) {
            if let Some(Role::Weak(access)) = self.roles.get(record.site() as usize)
                && access.writes()
            {
                self.explain_by(access, &record, &doubts, &mut explained);
            }
        }
        let mut at = explained.into_iter();
        doubts.retain(|_| at.next() != Some(true));
        self.doubts = doubts;
    }

    fn explain_by(&self, access: &Access, record: &Record<'_>, doubts: &[Doubt], explained: &mut [bool]) {
        let bytes = u64::from(access.bytes());
        for rank in 0..record.lane_count() {
            let place = Place::of(record, rank, &self.geometry);
            let end = place.address.wrapping_add(bytes);
            // No atomic is of more than 16 bytes.
            let from = Place { address: place.address.saturating_sub(15), ..place };
            let first = doubts.partition_point(|doubt| doubt.place < from);
            let near = doubts.iter().zip(&mut *explained).skip(first);
            for (doubt, explained) in near.take_while(|(doubt, _)| doubt.place.address < end) {
                let same = doubt.place == place && doubt.bytes == bytes && access.count == 1;
                let meets = doubt.place.block == place.block
                    && doubt.place.address.wrapping_add(doubt.bytes) > place.address;
                // Of one that covers other bytes, too, it is not known what it left in these.
                *explained |= meets && (!same || record.written(rank) == doubt.read);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{Encoder, LANES, Payload};
    use crate::event::{Event, Geometry, Handler};
    use crate::instrument::SiteTable;

    struct Nobody;

    impl Handler for Nobody {
        fn event(&mut self, _: Event<'_>) {}
        fn access(&mut self, _: &Record<'_>, _: &[u8]) {}
    }

    const ATOMIC: u32 = 0;
    const STORE: u32 = 1;
    const WIDE_STORE: u32 = 2;

    fn sites() -> SiteTable {
        let text = ".version 9.0\n.target sm_90\n.address_size 64\n.entry k() { .reg .b64 %rd<2>; .reg .b32 %r<2>;\n\
            atom.global.add.u32 %r1, [%rd1], 1;\nst.global.u32 [%rd1], %r1;\nst.global.v2.u32 [%rd1], {%r1, %r1};\nret; }";
        SiteTable::new(&crate::ptx::parse(text).module)
    }

    /// A record of the first lane of a warp, at an address.
    fn record(site: u32, warp: u8, address: u64, (read, written): (u64, u64), ticket: u64) -> Vec<Unit> {
        let (is_atomic, whole) = (site == ATOMIC, site != WIDE_STORE);
        let payload = Payload { a: true, read: is_atomic, written: whole, tickets: is_atomic };
        let lanes = |value| [value; LANES];
        let (a, read, written) = (lanes(address), lanes(read), lanes(written));
        let mut units = Vec::new();
        let tickets = (ticket, ticket + 1);
        Encoder { site, mask: 1, block: 0, warp, payload, tickets, a: &a, read: &read, written: &written }
            .encode(&mut units);
        units
    }

    /// What is counted before it is asked which weak stores there were, and after.
    fn degraded(records: &[Vec<Unit>]) -> (u64, u64) {
        let mut orderer = Orderer::new(&sites());
        orderer.begin(Geometry::new(96));
        records.iter().for_each(|units| orderer.feed(units, &mut Nobody));
        orderer.end(&mut Nobody);
        let before = orderer.degraded();
        let segments: Vec<_> = records.iter().map(Vec::as_slice).collect();
        orderer.explain(&segments);
        (before, orderer.degraded())
    }

    /// One atomic makes 1 of 0, one makes 8 of 7; of the third, whatever it is, its site and address are given.
    fn third(site: u32, address: u64, written: u64) -> (u64, u64) {
        degraded(&[
            record(site, 2, address, (0, written), 3),
            record(ATOMIC, 0, 0x1000, (0, 1), 1),
            record(ATOMIC, 1, 0x1000, (7, 8), 5),
        ])
    }

    #[test]
    fn a_weak_store_explains_what_it_wrote() {
        assert_eq!(third(STORE, 0x1000, 7), (1, 0));
        assert_eq!(third(WIDE_STORE, 0xffc, 0), (1, 0));
    }

    #[test]
    fn nothing_else_does() {
        assert_eq!(third(STORE, 0x1000, 6), (1, 1));
        assert_eq!(third(STORE, 0x1004, 7), (1, 1));
        assert_eq!(third(WIDE_STORE, 0xff8, 0), (1, 1));
        assert_eq!(third(ATOMIC, 0x2000, 7), (1, 1));
    }

    #[test]
    fn what_was_overwritten_too_early_is_no_sign_of_disorder() {
        let records = [
            record(ATOMIC, 0, 0x1000, (0, 1), 1),
            record(STORE, 2, 0x1000, (0, 7), 0),
            record(ATOMIC, 1, 0x1000, (1, 2), 3),
            record(ATOMIC, 1, 0x1000, (7, 8), 5),
        ];
        assert_eq!(degraded(&records), (1, 0));
    }

    #[test]
    fn of_a_chain_the_first_is_doubted() {
        // In the second warp's atomic the second lane saw the value that nobody brings, and the third warp's goes before both.
        let lanes = |of: [u64; 2]| std::array::from_fn(|lane| of[lane % 2]);
        let payload = Payload { a: true, read: true, written: true, tickets: true };
        let (a, read, written) = (lanes([0x1000; 2]), lanes([9, 8]), lanes([10, 9]));
        let mut chain = Vec::new();
        let tickets = (3, 6);
        Encoder {
            site: ATOMIC,
            mask: 3,
            block: 0,
            warp: 1,
            payload,
            tickets,
            a: &a,
            read: &read,
            written: &written,
        }
        .encode(&mut chain);
        let records = [record(ATOMIC, 0, 0x1000, (0, 1), 1), chain, record(ATOMIC, 2, 0x1000, (7, 8), 4)];
        let mut records = records.to_vec();
        // Its tickets overlap with those of the second.
        records.rotate_left(1);
        assert_eq!(degraded(&records), (1, 1));
    }

    #[test]
    fn doubts_that_nobody_asks_about_count() {
        let mut orderer = Orderer::new(&sites());
        for _ in 0..2 {
            orderer.begin(Geometry::new(96));
            orderer.feed(&record(ATOMIC, 0, 0x1000, (0, 1), 1), &mut Nobody);
            orderer.feed(&record(ATOMIC, 1, 0x1000, (7, 8), 3), &mut Nobody);
            orderer.end(&mut Nobody);
        }
        assert_eq!(orderer.degraded(), 2);
    }
}
