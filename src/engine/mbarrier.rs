//! mbarriers: what the arrivals of each phase hand on, and what waits take.
//!
//! The replay says which phase an operation belongs to. A wait takes what the arrivals of the completed phase released, and
//! knows the asynchronous accesses that this phase completes. Initialising and ending an object are weak writes to it;
//! everything else is strong and never in conflict with its like.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Core;
use super::access::Stroke;
use super::clock::{self, Know};
use super::copies::{Copies, End};
use super::publish::{Narrow, Observation};
use super::shadow::Path;
use super::sync::{Home, Message, Reach};
use crate::abi::{Record, lanes};
use crate::event::Place;
use crate::finding::{AccessClass, Side, ThreadId, Witness};
use crate::instrument::SiteId;
use crate::isa::{Marking, Mbarrier, MbarrierOp, Scope};

/// Phases kept of each mbarrier. Nobody can wait for one older than the last.
const PHASES: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Phase {
    number: u32,
    message: Message,
    /// Its arrivals, where a scope may leave out who waits.
    arrivals: SmallVec<[Arrival; 1]>,
    /// Asynchronous writes and reads that it completes.
    copies: [Option<u32>; 2],
}

/// An arrival: by whom, how far its scope reaches, and what it hands on.
#[derive(Debug)]
struct Arrival {
    home: Home,
    reach: Reach,
    know: Arc<Know>,
    witness: Witness,
}

/// Arrivals kept of a phase, to tell whose scope is too narrow.
const ARRIVALS: usize = 32;

#[derive(Debug)]
struct State {
    place: Place,
    phases: VecDeque<Phase>,
    /// Asynchronous accesses complete by it.
    completes: bool,
}

impl State {
    fn phase(&mut self, number: u32) -> Option<&mut Phase> {
        if !self.phases.iter().any(|phase| phase.number == number) {
            if self.phases.len() >= PHASES {
                self.phases.pop_front();
            }
            self.phases.push_back(Phase { number, ..Phase::default() });
        }
        self.phases.iter_mut().find(|phase| phase.number == number)
    }
}

/// All mbarriers of a launch.
#[derive(Debug, Default)]
pub(super) struct Mbarriers {
    numbers: FxHashMap<Place, u32>,
    all: Vec<State>,
}

impl Mbarriers {
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.all.clear();
    }

    /// The number of the one here, and whether it is new.
    fn number(&mut self, place: Place) -> (u32, bool) {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(place).or_insert(next);
        if number == next {
            self.all.push(State { place, phases: VecDeque::new(), completes: false });
        }
        (number, number == next)
    }

    fn state(&mut self, mbarrier: u32) -> Option<&mut State> {
        self.all.get_mut(mbarrier as usize)
    }

    /// Where the one of this number is.
    pub(super) fn place(&self, mbarrier: u32) -> Place {
        self.all.get(mbarrier as usize).map_or(Place { address: 0, block: 0 }, |state| state.place)
    }

    /// The number for asynchronous accesses that a phase completes.
    pub(super) fn completed_by(
        &mut self,
        copies: &mut Copies,
        mbarrier: u32,
        phase: u32,
        reads: bool,
        site: SiteId,
    ) -> u32 {
        let slot = self.state(mbarrier).and_then(|state| {
            state.completes = true;
            state.phase(phase).map(|phase| &mut phase.copies[usize::from(reads)])
        });
        match slot {
            Some(slot) => *slot.get_or_insert_with(|| copies.by_phase(reads, mbarrier, phase, site)),
            None => copies.by_phase(reads, mbarrier, phase, site),
        }
    }

    /// The block of these is gone: nobody waits any more.
    pub(super) fn end(&mut self, mbarriers: &[u32]) {
        for mbarrier in mbarriers {
            if let Some(state) = self.state(*mbarrier) {
                state.phases.clear();
            }
        }
    }
}

/// Lanes of a record that do one thing to one mbarrier.
#[derive(Clone, Copy)]
struct Party {
    place: Place,
    phase: u32,
    mask: u32,
}

impl Core {
    /// The number of the mbarrier here.
    pub(super) fn mbarrier_at(&mut self, place: Place) -> u32 {
        let (number, new) = self.mbarriers.number(place);
        if new && place.is_shared() && !self.ended.contains_key(&place.block) {
            self.block(place.block).mbarriers.push(number);
        }
        number
    }

    pub(super) fn mbarrier(&mut self, mbarrier: &Mbarrier, record: &Record<'_>, ranks: &[(u8, u32)]) {
        let geometry = self.geometry;
        let by_rank = record.lanes_by_rank();
        let mut parties: SmallVec<[Party; 2]> = SmallVec::new();
        for (rank, phase) in ranks {
            let place = Place::of(record, usize::from(*rank), &geometry);
            let lane = 1 << by_rank[usize::from(*rank) & 31];
            match parties.iter_mut().find(|party| party.place == place && party.phase == *phase) {
                Some(party) => party.mask |= lane,
                None => parties.push(Party { place, phase: *phase, mask: lane }),
            }
        }
        for party in parties {
            self.mbarrier_access(mbarrier, record, party);
            let number = self.mbarrier_at(party.place);
            match mbarrier.op {
                MbarrierOp::Arrive { .. } => self.mbarrier_arrive(mbarrier, record, party, number),
                MbarrierOp::Wait { .. } if party.phase != 0 => {
                    self.mbarrier_wait(mbarrier, record, party, number);
                }
                MbarrierOp::CopyArrive { .. } => {
                    if let Some(state) = self.mbarriers.state(number) {
                        state.completes = true;
                    }
                    let end = End::Phase { mbarrier: number, phase: party.phase };
                    let block = self.blocks.get_mut(record.block());
                    let warp = block.and_then(|block| block.warps.get_mut(usize::from(record.warp())));
                    let Some(groups) = warp.and_then(|warp| warp.groups.as_mut()) else { continue };
                    for lane in lanes(party.mask) {
                        groups.arm(&mut self.copies, lane, end, SiteId(record.site()));
                    }
                }
                _ => {}
            }
        }
    }

    /// The object as memory.
    fn mbarrier_access(&mut self, mbarrier: &Mbarrier, record: &Record<'_>, party: Party) {
        let Some(entry) = self.entry(record, Path::Mbarrier) else { return };
        let (class, scope) = match mbarrier.op {
            MbarrierOp::Init { .. } | MbarrierOp::Inval => (AccessClass::Write, None),
            MbarrierOp::Wait { .. } => (AccessClass::Read, Some(Scope::Sys)),
            _ => (AccessClass::Atomic, Some(Scope::Sys)),
        };
        let mut stroke = Stroke { scope, ..Stroke::weak(class, 8, entry) };
        stroke.entry.single = false;
        if self.are_alike(record) && scope.is_some() {
            stroke.entry.mask = party.mask;
            self.element(party.place, stroke);
            return;
        }
        for lane in lanes(party.mask) {
            stroke.entry.mask = 1 << lane;
            self.element(party.place, stroke);
        }
    }

    fn mbarrier_arrive(&mut self, mbarrier: &Mbarrier, record: &Record<'_>, party: Party, number: u32) {
        let (index, warp_index, launch) = (record.block(), record.warp(), self.current);
        let home = Home::new(index, self.geometry);
        let Some(block) = self.blocks.get_mut(index) else { return };
        let Some(warp) = block.warps.get_mut(usize::from(warp_index)) else { return };
        let Some(phase) = self.mbarriers.state(number).and_then(|state| state.phase(party.phase)) else {
            return;
        };
        if mbarrier.order.releases() {
            let mut know = Know::new(index);
            warp.hand_on(index, warp_index, party.mask, &mut know);
            let (know, reach) = (Arc::new(know), home.reach(mbarrier.scope));
            phase.message.add(home, reach, &know);
            if home.has_peers() && phase.arrivals.len() < ARRIVALS {
                let lane = (party.mask.trailing_zeros() & 31) as u8;
                let thread = ThreadId { launch, block: index, warp: warp_index, lane };
                let witness = witness(record, thread, AccessClass::Atomic, party.place, warp.interval);
                phase.arrivals.push(Arrival { home, reach, know, witness });
            }
            warp.time += 1;
        }
        if let Some(of_lanes) = &warp.sync {
            lanes(party.mask).for_each(|lane| of_lanes[lane].hand_on(home, &mut phase.message));
        }
    }

    fn mbarrier_wait(&mut self, mbarrier: &Mbarrier, record: &Record<'_>, party: Party, number: u32) {
        let (index, launch, event) = (record.block(), self.current, self.events);
        let home = Home::new(index, self.geometry);
        let mut missed: SmallVec<[Arc<Narrow>; 1]> = SmallVec::new();
        let Some(block) = self.blocks.get_mut(index) else { return };
        let Some(warp) = block.warps.get_mut(usize::from(record.warp())) else { return };
        let Some(state) = self.mbarriers.state(number) else { return };
        let mut know = Know::new(index);
        if state.completes {
            know.asynchronous_mut().phases.raise(number, party.phase);
        }
        let Some(phase) = state.phase(party.phase) else { return };
        if mbarrier.order.acquires() {
            let reach = home.reach(mbarrier.scope);
            for known in phase.message.eligible(home, reach) {
                know.join(known);
            }
            for arrival in &phase.arrivals {
                let distance = home.distance(arrival.home);
                let side = match (arrival.reach < distance, reach < distance) {
                    (true, true) => Side::Both,
                    (true, false) => Side::Release,
                    (false, true) => Side::Acquire,
                    (false, false) => continue,
                };
                let narrow = Narrow { know: Arc::clone(&arrival.know), arrival: arrival.witness, side };
                missed.push(Arc::new(narrow));
            }
            let (live, know) = (warp.live(), Arc::new(know));
            warp.know.update(party.mask, live, |own| clock::join(own, &know));
            let (time, interval) = (warp.time, warp.interval);
            for (narrow, lane) in missed.iter().flat_map(|narrow| {
                (0..32u8).filter(|lane| party.mask >> lane & 1 != 0).map(move |lane| (narrow, lane))
            }) {
                let thread = ThreadId { launch, block: index, warp: record.warp(), lane };
                block.observe(Observation {
                    place: party.place,
                    order: 0,
                    event,
                    time,
                    read: witness(record, thread, AccessClass::Read, party.place, interval),
                    scope: mbarrier.scope,
                    mem_order: mbarrier.order,
                    marking: Marking::Plain,
                    rmw: false,
                    plain: None,
                    narrow: Some(Arc::clone(narrow)),
                });
            }
            return;
        }
        let know = Arc::new(know);
        for lane in lanes(party.mask) {
            let pending = &mut warp.lane_sync(lane).pending;
            pending.join(&phase.message);
            pending.add(home, Reach::Block, &know);
        }
    }
}

/// An operation on an mbarrier.
fn witness(
    record: &Record<'_>,
    thread: ThreadId,
    class: AccessClass,
    place: Place,
    interval: u32,
) -> Witness {
    Witness {
        site: SiteId(record.site()),
        thread,
        class,
        address: place.address,
        bytes: 8,
        value: None,
        interval,
    }
}
