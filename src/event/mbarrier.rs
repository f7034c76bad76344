//! mbarriers as the replay sees them: arrivals and bytes that a phase still waits for, and the number of the phase.
//!
//! Phases are numbered from 1 on, and an object that is made anew goes on counting, so that a number is never used
//! twice. Bytes of a copy are taken as come when the copy is issued; waits can only succeed later. Approximations: the
//! bytes of a copy whose size is not known make the object *opaque*, and no phase waits for bytes any more; operations
//! on an object that was never made are let through.

use rustc_hash::FxHashMap;

use super::Place;

/// Tokens kept; older ones belong to phases long gone.
const TOKENS: usize = 1024;

#[derive(Clone, Debug, Default)]
struct Object {
    live: bool,
    /// Number of its first phase.
    first: u32,
    /// Number of the phase that is not complete.
    phase: u32,
    /// Arrivals of a whole phase.
    expected: i64,
    /// Arrivals that the phase still waits for.
    pending: i64,
    /// Bytes that it still waits for; negative when more have come than were announced.
    bytes: i64,
    opaque: bool,
    /// State that an arrival gave: its phase.
    tokens: FxHashMap<u64, u32>,
}

impl Object {
    fn settle(&mut self) {
        if self.live && self.pending <= 0 && (self.bytes == 0 || self.opaque) {
            self.phase = self.phase.wrapping_add(1);
            self.pending = self.expected;
            self.bytes = 0;
        }
    }
}

/// All mbarriers of a launch, by block.
#[derive(Clone, Debug, Default)]
pub(super) struct Mbarriers {
    blocks: FxHashMap<u32, FxHashMap<u64, Object>>,
}

impl Mbarriers {
    fn get(&self, place: Place) -> Option<&Object> {
        self.blocks.get(&place.block)?.get(&place.address).filter(|object| object.live)
    }

    fn change(&mut self, place: Place, f: impl FnOnce(&mut Object)) -> u32 {
        let object = self.blocks.get_mut(&place.block).and_then(|objects| objects.get_mut(&place.address));
        let Some(object) = object.filter(|object| object.live) else { return 0 };
        let phase = object.phase;
        f(object);
        object.settle();
        phase
    }

    /// Makes an object.
    pub(super) fn init(&mut self, place: Place, count: u32) {
        let object = self.blocks.entry(place.block).or_default().entry(place.address).or_default();
        let phase = object.phase.wrapping_add(1);
        let expected = i64::from(count);
        let bytes = if object.live { 0 } else { object.bytes };
        *object = Object {
            live: true,
            first: phase,
            phase,
            expected,
            pending: expected,
            bytes,
            ..Object::default()
        };
    }

    /// Ends an object.
    pub(super) fn inval(&mut self, place: Place) {
        let object = self.blocks.get_mut(&place.block).and_then(|objects| objects.get_mut(&place.address));
        if let Some(object) = object {
            (object.live, object.bytes) = (false, 0);
        }
    }

    /// Arrivals, perhaps with bytes to wait for besides. Gives the phase they count for; 0 if there is no object.
    pub(super) fn arrive(&mut self, place: Place, count: u32, bytes: u32, drop: bool, token: u64) -> u32 {
        self.change(place, |object| {
            if token != 0 {
                if object.tokens.len() >= TOKENS {
                    let phase = object.phase;
                    object.tokens.retain(|_, of| of.wrapping_add(1) >= phase);
                }
                object.tokens.insert(token, object.phase);
            }
            object.bytes += i64::from(bytes);
            object.pending -= i64::from(count);
            if drop {
                object.expected -= i64::from(count);
            }
        })
    }

    /// More bytes are expected.
    pub(super) fn expect(&mut self, place: Place, bytes: u32) -> u32 {
        self.change(place, |object| object.bytes += i64::from(bytes))
    }

    /// Bytes come. Gives the phase they count for. Copies draw no tickets, so one may be replayed before the object is made to
    /// which it was issued.
    pub(super) fn complete(&mut self, place: Place, bytes: u32) -> u32 {
        let object = self.blocks.entry(place.block).or_default().entry(place.address).or_default();
        object.bytes -= i64::from(bytes);
        let phase = object.phase.wrapping_add(u32::from(!object.live));
        object.settle();
        phase
    }

    /// Nobody knows how many bytes come.
    pub(super) fn make_opaque(&mut self, place: Place) {
        self.change(place, |object| object.opaque = true);
    }

    /// The phase that is not complete; 0 if there is no object.
    pub(super) fn phase(&self, place: Place) -> u32 {
        self.get(place).map_or(0, |object| object.phase)
    }

    /// Whether a wait for this state or parity is over, and for which phase it was; 0 for none.
    pub(super) fn waited(&self, place: Place, state: u64, parity: bool) -> Option<u32> {
        let Some(object) = self.get(place) else { return Some(0) };
        if parity {
            let completed = object.phase.wrapping_sub(object.first);
            return (u64::from(completed & 1) != state & 1)
                .then(|| if completed == 0 { 0 } else { object.phase.wrapping_sub(1) });
        }
        match object.tokens.get(&state) {
            Some(phase) => (*phase < object.phase).then_some(*phase),
            // A state that no arrival gave: what is complete is all that it can mean.
            None => Some(if object.phase == object.first { 0 } else { object.phase.wrapping_sub(1) }),
        }
    }

    /// Forgets those of a block.
    pub(super) fn end_block(&mut self, block: u32) {
        self.blocks.remove(&block);
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Place = Place { address: 1 << 60, block: 0 };

    #[test]
    fn a_phase_waits_for_arrivals_and_bytes() {
        let mut all = Mbarriers::default();
        all.init(AT, 2);
        assert_eq!(all.waited(AT, 0, true), None);
        // The phase before the first has odd parity, and counts as complete.
        assert_eq!(all.waited(AT, 1, true), Some(0));
        assert_eq!(all.complete(AT, 64), 1);
        assert_eq!(all.arrive(AT, 1, 64, false, 7), 1);
        assert_eq!(all.waited(AT, 7, false), None);
        assert_eq!(all.arrive(AT, 1, 0, false, 8), 1);
        assert_eq!(all.waited(AT, 0, true), Some(1));
        assert_eq!(all.waited(AT, 7, false), Some(1));
        assert_eq!(all.waited(AT, 1, true), None);
        assert_eq!(all.arrive(AT, 2, 16, false, 0), 2);
        assert_eq!(all.phase(AT), 2);
        all.complete(AT, 16);
        assert_eq!(all.waited(AT, 1, true), Some(2));
    }

    #[test]
    fn a_drop_lowers_later_phases_and_a_new_object_counts_on() {
        let mut all = Mbarriers::default();
        all.init(AT, 2);
        all.arrive(AT, 1, 0, true, 0);
        all.arrive(AT, 1, 0, false, 0);
        assert_eq!(all.phase(AT), 2);
        all.arrive(AT, 1, 0, false, 0);
        assert_eq!(all.phase(AT), 3);
        all.inval(AT);
        assert_eq!(all.arrive(AT, 1, 0, false, 0), 0);
        all.init(AT, 1);
        assert_eq!(all.phase(AT), 4);
        assert_eq!(all.waited(AT, 0, true), None);
    }

    #[test]
    fn bytes_may_come_before_the_object_is_made() {
        let mut all = Mbarriers::default();
        assert_eq!(all.complete(AT, 64), 1);
        assert_eq!(all.phase(AT), 0);
        all.init(AT, 1);
        assert_eq!(all.arrive(AT, 1, 64, false, 0), 1);
        assert_eq!(all.waited(AT, 0, true), Some(1));
    }

    #[test]
    fn where_the_number_of_bytes_is_unknown_none_are_waited_for() {
        let mut all = Mbarriers::default();
        all.init(AT, 1);
        all.arrive(AT, 1, 4096, false, 0);
        assert_eq!(all.phase(AT), 1);
        all.make_opaque(AT);
        assert_eq!(all.phase(AT), 2);
    }
}
