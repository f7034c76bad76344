//! Which image suits a device.

use super::arch::Device;
use super::image::{Image, Kind};

/// What a container has for a device.
#[derive(Clone, Copy, Debug)]
pub enum Pick<'c, 'f> {
    /// PTX that the device compiles.
    Ptx(&'c Image<'f>),
    /// Only machine code that the device runs.
    Opaque(&'c Image<'f>),
    /// Nothing.
    Nothing,
}

/// The PTX of a container that suits a device best: that of the highest architecture, of those the one made for this very
/// device, then for its family; of those the newest PTX, then the first. Other than the driver, which prefers machine
/// code, this takes machine code only where there is no PTX.
pub fn pick<'c, 'f>(images: &'c [Image<'f>], device: Device) -> Pick<'c, 'f> {
    let best = |kind: Kind| {
        let suits = move |image: &&Image<'_>| match kind {
            Kind::Ptx => image.arch.ptx_runs_on(device),
            _ => image.arch.code_runs_on(device),
        };
        let of_kind = images.iter().filter(|image| image.kind == kind).filter(suits);
        // Of equals `max_by_key` gives the last one.
        of_kind.rev().max_by_key(|image| (image.arch.sm, image.arch.suffix, image.version))
    };
    match (best(Kind::Ptx), best(Kind::Cubin)) {
        (Some(ptx), _) => Pick::Ptx(ptx),
        (None, Some(code)) => Pick::Opaque(code),
        (None, None) => Pick::Nothing,
    }
}
