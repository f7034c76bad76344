//! Tensor maps that are known, and the boxes of copies that are being issued.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::TensorBox;
use crate::abi::{Record, coordinates};
use crate::tensor::{Coordinates, TensorMap};

/// Maps by their digests.
#[derive(Debug, Default)]
pub(super) struct Tensors {
    /// `None` where two maps have one digest.
    maps: FxHashMap<u64, Option<Arc<TensorMap>>>,
    /// Coordinates that lanes have logged for their next copy, by block, warp and lane.
    coordinates: FxHashMap<(u32, u8, u8), Coordinates>,
}

impl Tensors {
    /// Maps were encoded.
    pub(super) fn add(&mut self, maps: &[(u64, TensorMap)]) {
        for (digest, map) in maps {
            let known = self.maps.entry(*digest).or_insert_with(|| Some(Arc::new(map.clone())));
            if known.as_ref().is_some_and(|known| **known != *map) {
                *known = None;
            }
        }
    }

    /// A launch begins.
    pub(super) fn clear(&mut self) {
        self.coordinates.clear();
    }

    /// Lanes tell coordinates.
    pub(super) fn note(&mut self, record: &Record<'_>) {
        for (rank, lane) in record.lanes().enumerate() {
            let words = [record.a(rank), record.read(rank).unwrap_or(0), record.written(rank).unwrap_or(0)];
            self.coordinates.insert((record.block(), record.warp(), lane as u8), coordinates(words));
        }
    }

    /// The box that the lane of this rank copies.
    pub(super) fn take(&mut self, record: &Record<'_>, rank: usize, lane: usize) -> Option<TensorBox> {
        let at = self.coordinates.remove(&(record.block(), record.warp(), lane as u8))?;
        let digest = record.read(rank)?;
        let map = self.maps.get(&digest)?.clone()?;
        Some(TensorBox { map, digest, at })
    }
}
