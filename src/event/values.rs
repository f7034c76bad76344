//! What strong locations hold, as far as replayed writes tell. Only locations that a strong operation touched are kept.

use super::Place;
use rustc_hash::FxHashMap;

/// What a location holds.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// `None` when any value will do.
    value: Option<u64>,
    /// A load told it, which may have seen an older value than the latest.
    loaded: bool,
    /// A weak store left it, which has no ticket: what was replayed after it may have come before it.
    weak: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    global: FxHashMap<u64, Known>,
    /// By block, so that those of one that has ended can be dropped.
    shared: FxHashMap<u32, FxHashMap<u64, Known>>,
}

/// About what one place takes, when a map has grown.
const PLACE_BYTES: usize = 2 * size_of::<(u64, Known)>();

impl Values {
    /// About how much memory those of global memory take. There are few of shared memory.
    pub(super) fn bytes(&self) -> usize {
        self.global.len() * PLACE_BYTES
    }

    /// The value there; `None` when nothing is known and any value will do.
    pub(super) fn current(&self, place: Place) -> Option<u64> {
        self.known(place)?.value
    }

    /// Whether the value there is only what a load saw.
    pub(super) fn is_loaded(&self, place: Place) -> bool {
        self.known(place).is_some_and(|known| known.loaded)
    }

    fn known(&self, place: Place) -> Option<Known> {
        let map = if place.is_shared() { self.shared.get(&place.block)? } else { &self.global };
        map.get(&place.address).copied()
    }

    /// A strong operation left this value.
    pub(super) fn set(&mut self, place: Place, value: Option<u64>) {
        *self.entry(place) = Known { value, ..Known::default() };
    }

    /// Whether a weak store was the last that was replayed there: what was read instead may have come before it.
    pub(super) fn is_weak(&self, place: Place) -> bool {
        self.known(place).is_some_and(|known| known.weak)
    }

    /// A load saw this value; what a write left stays known as that.
    pub(super) fn set_loaded(&mut self, place: Place, value: Option<u64>) {
        let known = self.entry(place);
        let loaded = known.value.is_none() || known.loaded;
        *known = Known { value, loaded, ..*known };
    }

    fn entry(&mut self, place: Place) -> &mut Known {
        let map =
            if place.is_shared() { self.shared.entry(place.block).or_default() } else { &mut self.global };
        map.entry(place.address).or_default()
    }

    /// A weak store left this value: it counts only where strong operations are at work.
    pub(super) fn set_weak(&mut self, place: Place, value: Option<u64>) {
        let map = if place.is_shared() { self.shared.get_mut(&place.block) } else { Some(&mut self.global) };
        if let Some(known) = map.and_then(|map| map.get_mut(&place.address)) {
            *known = Known { value, loaded: false, weak: true };
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.global.is_empty() && self.shared.is_empty()
    }

    /// Forgets the shared memory of a block.
    pub(super) fn end_block(&mut self, block: u32) {
        self.shared.remove(&block);
    }

    pub(super) fn clear(&mut self) {
        self.global.clear();
        self.shared.clear();
    }
}
