//! What the program has the driver link, and where machine code comes from.

use std::path::PathBuf;

use ptxrace::session::exec::provenance;

use super::{Gpu, driver};
use crate::watch::{self, Found};

/// PTX with its names.
pub(super) type Texts = Vec<(PathBuf, String)>;

impl Gpu {
    pub(super) fn link_begins(&mut self, state: u64) {
        self.links.insert(state, Some(Vec::new()));
    }

    /// Something is added, which may have PTX. One part without leaves the whole without.
    pub(super) fn link_adds(&mut self, state: u64, bytes: Vec<u8>, name: PathBuf) {
        let Some(texts) = self.links.get_mut(&state) else { return };
        match driver::device().and_then(|device| watch::file(&bytes, name, device).ok()) {
            Some(Found::Ptx(more)) if !bytes.is_empty() => {
                if let Some(texts) = texts {
                    texts.extend(more);
                }
            }
            _ => *texts = None,
        }
    }

    pub(super) fn link_ends(&mut self, state: u64, cubin: &[u8]) {
        if let (Some(Some(texts)), Some(folder)) = (self.links.get(&state), &self.folder) {
            // Without the note, the kernels count as not instrumented.
            let _ = provenance::record(&provenance::folder(folder), cubin, texts);
        }
    }

    pub(super) fn link_is_gone(&mut self, state: u64) {
        self.links.remove(&state);
    }

    /// The PTX that machine code was made from, if that was seen.
    pub(super) fn provenance(&self, cubin: &[u8]) -> Option<Texts> {
        provenance::lookup(&provenance::folder(self.folder.as_ref()?), cubin)
    }
}
