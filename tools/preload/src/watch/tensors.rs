//! Tensor maps that the program has encoded.

use ptxrace::tensor::{BYTES, TensorMap, digest};
use rustc_hash::FxHashMap;

use super::Watch;

/// Tensor maps by the digests of their bytes.
#[derive(Default)]
pub(super) struct Tensors {
    known: FxHashMap<u64, TensorMap>,
    /// Those that the engine has not been told of.
    pub(super) pending: Vec<(u64, TensorMap)>,
}

impl Watch {
    /// A tensor map was encoded to these bytes.
    pub(crate) fn tensor_map(&mut self, bytes: &[u8; BYTES], map: TensorMap) {
        let digest = digest(bytes);
        if self.tensors.known.get(&digest) != Some(&map) {
            self.tensors.pending.push((digest, map.clone()));
            self.tensors.known.insert(digest, map);
        }
    }

    /// The tensor map of this digest.
    pub(crate) fn known_tensor_map(&self, digest: u64) -> Option<TensorMap> {
        self.tensors.known.get(&digest).cloned()
    }
}
