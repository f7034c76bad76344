//! What is said of reads by textures and surfaces.

use super::advice::Told;
use crate::finding::AccessClass;
use crate::isa::ImageAccess;

impl Told<'_, '_> {
    /// The access to a texture or a surface that reads.
    fn image(&self) -> Option<&ImageAccess> {
        let mut reads = self.finding.witnesses.iter().filter(|witness| witness.class == AccessClass::Read);
        reads.find_map(|witness| self.context.site(witness)?.image())
    }

    /// Whether a texture or a surface reads.
    pub(super) fn reads_image(&self) -> bool {
        self.image().is_some()
    }

    /// Whether a surface reads.
    pub(super) fn is_by_surface(&self) -> bool {
        self.image().is_some_and(ImageAccess::is_surface)
    }

    /// Why order does not help.
    pub(super) fn not_coherent(&self) -> &'static str {
        if self.is_by_surface() {
            "surface reads are not kept coherent within a launch: that the write comes first by barriers is no promise that it is seen"
        } else if self.reads_image() {
            "textures are not kept coherent within a launch: no barrier and no fence makes a fetch see a write of the same launch"
        } else {
            "the read-only path is not kept coherent within a launch: no barrier and no fence makes such a read see a write of the same launch"
        }
    }
}
