//! The size of an ELF file of which only the beginning is known: a cubin in memory, to which the driver is given a bare pointer.

use super::bytes::{u16_at, u32_at, u64_at};
use super::fault::{Fault, Problem};

/// First word of an ELF file, as its bytes lie in a file.
const MAGIC: [u8; 4] = *b"\x7fELF";
/// Bytes of the header of a 64-bit ELF file.
const HEADER_BYTES: u64 = 64;
/// Bytes of a section in the table of sections.
const SECTION_BYTES: u64 = 64;
/// Bytes of a segment in the table of segments.
const SEGMENT_BYTES: u64 = 56;
/// A section of this type has no bytes in the file.
const NO_BITS: u32 = 8;

/// What the beginning of an ELF file tells of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElfSize {
    /// It has at least so many bytes, more than were given: ask again with them.
    AtLeast(u64),
    /// It has so many bytes.
    Exactly(u64),
}

/// The size of the ELF file that begins with `head`: behind the last of its tables, sections and segments. Asked with more
/// and more bytes, it comes to an end.
pub fn elf_size(head: &[u8]) -> Result<ElfSize, Fault> {
    let there = head.len() as u64;
    if there < HEADER_BYTES {
        return Ok(ElfSize::AtLeast(HEADER_BYTES));
    }
    let truncated = || Problem::Truncated { what: "an ELF header", needed: HEADER_BYTES, left: there }.at(0);
    let unexpected = |expected, found: u64, at| Problem::Unexpected { expected, found }.at(at);
    let word = |at| u32_at(head, at).ok_or_else(truncated);
    let half = |at| u16_at(head, at).map(u64::from).ok_or_else(truncated);
    let long = |at| u64_at(head, at).ok_or_else(truncated);
    if word(0)?.to_le_bytes() != MAGIC {
        return Err(unexpected("the magic number of an ELF file, 0x464c457f", word(0)?.into(), 0));
    }
    if half(4)? != 0x0102 {
        return Err(unexpected("a 64-bit little-endian ELF file, 0x102", half(4)?, 4));
    }
    let (segments, sections) = (long(32)?, long(40)?);
    let (segment_bytes, segment_count) = (half(54)?, half(56)?);
    let (section_bytes, mut section_count) = (half(58)?, half(60)?);
    if segment_count > 0 && segment_bytes != SEGMENT_BYTES {
        return Err(unexpected("segments of 56 bytes", segment_bytes, 54));
    }
    if sections > 0 && section_bytes != SECTION_BYTES {
        return Err(unexpected("sections of 64 bytes", section_bytes, 58));
    }
    let field = |table: u64, index: u64, bytes: u64, at: u64| {
        let at = table.checked_add(index.checked_mul(bytes)?)?.checked_add(at)?;
        usize::try_from(at).ok()
    };
    if sections > 0 && section_count == 0 {
        // There are more than the header can say; the first one, which is no section, says how many.
        let first = sections.saturating_add(SECTION_BYTES);
        match field(sections, 0, 0, 32).and_then(|at| u64_at(head, at)) {
            Some(count) => section_count = count,
            None if first > there => return Ok(ElfSize::AtLeast(first)),
            None => return Err(truncated()),
        }
    }
    let behind = |table: u64, count: u64, bytes: u64| table.saturating_add(count.saturating_mul(bytes));
    let tables = HEADER_BYTES.max(behind(segments, segment_count, SEGMENT_BYTES)).max(behind(
        sections,
        section_count,
        SECTION_BYTES,
    ));
    if tables > there {
        return Ok(ElfSize::AtLeast(tables));
    }
    let mut size = tables;
    for index in 0..section_count {
        let at = |offset| field(sections, index, SECTION_BYTES, offset);
        let kind = at(4).and_then(|at| u32_at(head, at)).ok_or_else(truncated)?;
        let start = at(24).and_then(|at| u64_at(head, at)).ok_or_else(truncated)?;
        let bytes = at(32).and_then(|at| u64_at(head, at)).ok_or_else(truncated)?;
        // The first entry of the table is no section.
        if index > 0 && kind != NO_BITS {
            size = size.max(start.saturating_add(bytes));
        }
    }
    for index in 0..segment_count {
        let at = |offset| field(segments, index, SEGMENT_BYTES, offset);
        let start = at(8).and_then(|at| u64_at(head, at)).ok_or_else(truncated)?;
        let bytes = at(32).and_then(|at| u64_at(head, at)).ok_or_else(truncated)?;
        size = size.max(start.saturating_add(bytes));
    }
    Ok(ElfSize::Exactly(size))
}
