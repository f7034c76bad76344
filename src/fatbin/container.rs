//! A container: a header of 16 bytes, then its images, one behind the other.

use super::bytes::{u16_at, u32_at, u64_at};
use super::fault::{Fault, Problem};
use super::image::{self, Image};

/// First word of a container, as its bytes lie in a file.
pub(super) const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];
/// Bytes of a container's header.
pub const HEADER_BYTES: usize = 16;

/// The images of one translation unit, or of one linked program.
#[derive(Clone, Debug)]
pub struct Container<'f> {
    /// Where its header is.
    pub offset: usize,
    /// The section of an ELF file that it is in, if one that is meant for fatbins.
    pub section: Option<&'f str>,
    /// Its images.
    pub images: Vec<Image<'f>>,
}

/// The size of the container that begins with `head`, header included. For one in memory that nothing else bounds.
pub fn container_bytes(head: &[u8]) -> Result<u64, Fault> {
    let fields = (u32_at(head, 0), u16_at(head, 4), u16_at(head, 6), u64_at(head, 8));
    let (Some(magic), Some(version), Some(header), Some(images)) = fields else {
        let (needed, left) = (HEADER_BYTES as u64, head.len() as u64);
        return Err(Problem::Truncated { what: "the header of a fatbin", needed, left }.at(0));
    };
    let unexpected = |expected, found: u64, at| Err(Problem::Unexpected { expected, found }.at(at));
    if magic.to_le_bytes() != MAGIC {
        return unexpected("the magic number of a fatbin, 0xba55ed50", magic.into(), 0);
    }
    if version != 1 {
        return unexpected("a fatbin of version 1", version.into(), 4);
    }
    if usize::from(header) != HEADER_BYTES {
        return unexpected("a fatbin header of 16 bytes", header.into(), 6);
    }
    Ok(images.saturating_add(HEADER_BYTES as u64))
}

/// Reads the container at `offset`, of which nothing lies behind `limit`, and gives where to look on: behind it, or where it
/// stopped making sense. What is wrong goes into `faults`; an error is what has no header.
pub(super) fn parse<'f>(
    file: &'f [u8],
    offset: usize,
    limit: usize,
    faults: &mut impl FnMut(Fault),
) -> Result<(Container<'f>, usize), Fault> {
    let there = file.get(offset..limit).unwrap_or_default();
    let moved = |fault: Fault| Fault { offset: offset.saturating_add(fault.offset), ..fault };
    let stated = container_bytes(there).map_err(moved)?;
    let left = there.len() as u64;
    let cut_off = stated > left;
    if cut_off {
        faults(Problem::Truncated { what: "a fatbin", needed: stated, left }.at(offset));
    }
    let end = if cut_off { limit } else { offset.saturating_add(stated as usize) };
    let mut container = Container { offset, section: None, images: Vec::new() };
    let mut at = offset.saturating_add(HEADER_BYTES);
    while at < end {
        match image::parse(file, at, end, faults) {
            Ok((image, next)) => {
                container.images.push(image);
                at = next;
            }
            Err(fault) => {
                if !(cut_off && matches!(fault.problem, Problem::Truncated { .. })) {
                    faults(fault);
                }
                return Ok((container, at));
            }
        }
    }
    Ok((container, end))
}
