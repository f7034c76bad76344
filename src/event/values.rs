//! What strong locations hold, as far as replayed writes tell. Only locations that a strong operation touched are kept.

use super::Place;
use rustc_hash::FxHashMap;

#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    global: FxHashMap<u64, Option<u64>>,
    /// By block, so that those of one that has ended can be dropped.
    shared: FxHashMap<u32, FxHashMap<u64, Option<u64>>>,
}

impl Values {
    /// The value there; `None` when nothing is known and any value will do.
    pub(super) fn current(&self, place: Place) -> Option<u64> {
        let map = if place.is_shared() { self.shared.get(&place.block)? } else { &self.global };
        map.get(&place.address).copied().flatten()
    }

    /// A strong operation left this value.
    pub(super) fn set(&mut self, place: Place, value: Option<u64>) {
        let map =
            if place.is_shared() { self.shared.entry(place.block).or_default() } else { &mut self.global };
        map.insert(place.address, value);
    }

    /// A weak store left this value: it counts only where strong operations are at work.
    pub(super) fn set_weak(&mut self, place: Place, value: Option<u64>) {
        let map = if place.is_shared() { self.shared.get_mut(&place.block) } else { Some(&mut self.global) };
        if let Some(known) = map.and_then(|map| map.get_mut(&place.address)) {
            *known = value;
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
