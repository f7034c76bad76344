//! What strong locations hold, as far as replayed writes tell. Only locations that a strong operation touched are kept.

use super::Place;
use rustc_hash::FxHashMap;

#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    known: FxHashMap<Place, Option<u64>>,
}

impl Values {
    /// The value there; `None` when nothing is known and any value will do.
    pub(super) fn current(&self, place: Place) -> Option<u64> {
        self.known.get(&place).copied().flatten()
    }

    /// A strong operation left this value.
    pub(super) fn set(&mut self, place: Place, value: Option<u64>) {
        self.known.insert(place, value);
    }

    /// A weak store left this value: it counts only where strong operations are at work.
    pub(super) fn set_weak(&mut self, place: Place, value: Option<u64>) {
        if let Some(known) = self.known.get_mut(&place) {
            *known = value;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
    }
}
