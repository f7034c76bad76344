//! Contended atomics as a GPU serves them: lanes of many warps in any mixture, tickets drawn around them in any order.

use proptest::prelude::*;

use super::*;
use crate::abi::{Encoder, LANES, Payload};

const COUNTER: u64 = 0x1000;

/// A module whose site 0 is a counter's atomic and site 1 a relaxed load of it.
fn sites() -> SiteTable {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.entry k() { .reg .b64 %rd<2>; .reg .b32 %r<2>;\n\
        atom.global.add.u32 %r1, [%rd1], 1;\nld.relaxed.gpu.global.u32 %r1, [%rd1];\nret; }";
    SiteTable::new(&crate::ptx::parse(text).module)
}

/// One operation of a warp: lanes, when each acts, and what it read.
struct Operation {
    warp: usize,
    load: bool,
    mask: u32,
    read: [u64; LANES],
    written: [u64; LANES],
    begin: f64,
    end: f64,
}

/// Operations of `warps` warps, `rounds` each, on `places` counters; in a round, lanes act at random moments of an interval of their warp.
fn operations(
    warps: usize,
    rounds: usize,
    places: usize,
    random: &mut impl FnMut() -> f64,
) -> Vec<Operation> {
    let mut all = Vec::new();
    let mut acts: Vec<(f64, usize, usize)> = Vec::new();
    for warp in 0..warps {
        let mut now = random() * 2.0;
        for _ in 0..rounds {
            let mask = ((random() * 4.0e9) as u32) | 1;
            let (begin, length) = (now, 0.1 + random());
            for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
                acts.push((begin + (0.01 + 0.98 * random()) * length, all.len(), lane));
            }
            all.push(Operation {
                warp,
                load: random() < 0.2,
                mask,
                read: [0; LANES],
                written: [0; LANES],
                begin,
                end: begin + length,
            });
            now = begin + length + random() * 0.3;
        }
    }
    acts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut values = [5; LANES];
    for (_, index, lane) in acts {
        let (operation, value): (&mut Operation, _) = (&mut all[index], &mut values[lane % places]);
        operation.read[lane] = *value;
        if !operation.load {
            *value += 1;
            operation.written[lane] = *value;
        }
    }
    all
}

#[derive(Default)]
struct Values {
    next: FxHashMap<Place, u64>,
    wrong: u64,
}

impl Handler for Values {
    fn event(&mut self, _: Event<'_>) {}

    fn access(&mut self, record: &Record<'_>, ranks: &[u8]) {
        for rank in ranks {
            let rank = usize::from(*rank);
            let (read, written, place) =
                (record.read(rank), record.written(rank), Place { address: record.a(rank), block: 0 });
            // A load may be replayed late, as a stale one: it changes nothing.
            if let Some(written) = written {
                let before = self.next.insert(place, written);
                self.wrong += u64::from(before.is_some() && before != read);
            }
        }
    }
}

proptest! {
    #[test]
    fn a_contended_counter_is_replayed_in_the_order_of_its_values(
        warps in 1usize..9, rounds in 1usize..4, places in 1usize..4, seed: u64,
    ) {
        let mut state = seed | 1;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let operations = operations(warps, rounds, places, &mut random);
        let mut ends: Vec<_> =
            operations.iter().enumerate().flat_map(|(i, o)| [(o.begin, i, false), (o.end, i, true)]).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut tickets = vec![(0, 0); operations.len()];
        for (ticket, (_, index, end)) in (1..).zip(ends) {
            if end { tickets[index].1 = ticket } else { tickets[index].0 = ticket }
        }
        let a = std::array::from_fn(|lane| COUNTER + 4 * (lane % places) as u64);
        let mut queues: Vec<Vec<Vec<Unit>>> = vec![Vec::new(); warps];
        for (operation, tickets) in operations.iter().zip(&tickets) {
            let mut units = Vec::new();
            let payload = Payload { a: true, read: true, written: !operation.load, tickets: true };
            let (mask, warp) = (operation.mask, operation.warp as u8);
            let site = u32::from(operation.load);
            let (read, written) = (&operation.read, &operation.written);
            Encoder { site, mask, block: 0, warp, payload, tickets: *tickets, a: &a, read, written }
                .encode(&mut units);
            queues[operation.warp].push(units);
        }
        let mut orderer = Orderer::new(&sites());
        orderer.begin(Geometry::new(32 * warps as u32));
        let mut values = Values::default();
        queues.iter_mut().for_each(|queue| queue.reverse());
        while queues.iter().any(|queue| !queue.is_empty()) {
            let at = (random() * warps as f64) as usize;
            if let Some(units) = queues[at].pop() {
                orderer.feed(&units, &mut values);
            }
        }
        orderer.end(&mut values);
        prop_assert_eq!((orderer.degraded(), values.wrong), (0, 0));
    }
}
