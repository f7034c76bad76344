//! One image of a container: its header, and its bytes.
//!
//! | offset | field |
//! | --- | --- |
//! | 0, 2 | u16 kind; u16 version, 0x0101 |
//! | 4, 8 | u32 bytes of the header; u64 bytes of the payload, padding included |
//! | 16 | u32 bytes of the compressed image, 0 when it is raw |
//! | 20 | u32 offset of a record (u32 offset, u32 length) of the options for ptxas |
//! | 24, 26 | u16 minor, u16 major version |
//! | 28 | u32 number of the architecture |
//! | 32, 36 | u32 offset, u32 length of the name |
//! | 40 | u64 flags |
//! | 56 | u64 bytes of the decompressed image |

use std::borrow::Cow;
use std::fmt;

use super::arch::{Arch, Suffix};
use super::bytes::{slice, u16_at, u32_at, u64_at};
use super::decompress::Compression;
use super::fault::{Fault, Problem};

/// A limit for `Image::bytes` and `Image::text` that no PTX is known to come near.
pub const IMAGE_LIMIT: usize = 512 << 20;

/// Bytes of a header up to the flags, and with the decompressed size.
const SHORT_HEADER: u32 = 48;
const HEADER: u32 = 64;
const VERSION: u16 = 0x0101;

const FLAG_ZLIB: u64 = 0x1000;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_EXACT: u64 = 0x10_0000;
const FLAG_FAMILY: u64 = 0x20_0000;

/// What an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// PTX text.
    Ptx,
    /// Machine code, an ELF file.
    Cubin,
    /// Intermediate code for link-time optimisation.
    LtoIr,
    /// Something else.
    Other(u16),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ptx => f.pad("PTX"),
            Self::Cubin => f.pad("cubin"),
            Self::LtoIr => f.pad("LTO-IR"),
            Self::Other(kind) => f.pad(&format!("kind {kind:#x}")),
        }
    }
}

/// An image of a container.
#[derive(Clone)]
pub struct Image<'f> {
    /// Where its header is.
    pub offset: usize,
    /// What it is.
    pub kind: Kind,
    /// What it is for.
    pub arch: Arch,
    /// Version of its language, major and minor: of PTX, if it is that.
    pub version: (u16, u16),
    /// The flags, of which some are not known.
    pub flags: u64,
    /// The source file, or several; empty when unknown.
    pub name: Cow<'f, str>,
    /// Options that the PTX wants to be compiled with; empty when there are none.
    pub options: Cow<'f, str>,
    /// How it is stored.
    pub compression: Compression,
    /// Bytes when decompressed.
    pub size: u64,
    /// The bytes stored.
    pub stored: &'f [u8],
    /// Where those are.
    stored_at: usize,
}

impl fmt::Debug for Image<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("offset", &self.offset)
            .field("kind", &self.kind)
            .field("arch", &self.arch)
            .field("version", &self.version)
            .field("flags", &self.flags)
            .field("name", &self.name)
            .field("options", &self.options)
            .field("compression", &self.compression)
            .field("size", &self.size)
            .field("stored", &self.stored.len())
            .finish_non_exhaustive()
    }
}

impl<'f> Image<'f> {
    /// The bytes of the image, decompressed, of which there may be `limit`.
    pub fn bytes(&self, limit: usize) -> Result<Cow<'f, [u8]>, Fault> {
        if self.compression == Compression::None {
            return Ok(Cow::Borrowed(self.stored));
        }
        let bytes = self.compression.decompress(self.stored, self.size, limit);
        bytes.map(Cow::Owned).map_err(|problem| problem.at(self.stored_at))
    }

    /// The text of PTX, of which there may be `limit` bytes, without the zero bytes that may end it.
    pub fn text(&self, limit: usize) -> Result<Cow<'f, str>, Fault> {
        let bad = |at| Problem::NotText { at }.at(self.stored_at);
        match self.bytes(limit)? {
            Cow::Borrowed(bytes) => {
                let text = std::str::from_utf8(trimmed(bytes)).map_err(|error| bad(error.valid_up_to()))?;
                Ok(Cow::Borrowed(text))
            }
            Cow::Owned(mut bytes) => {
                bytes.truncate(trimmed(&bytes).len());
                let text = String::from_utf8(bytes).map_err(|error| bad(error.utf8_error().valid_up_to()))?;
                Ok(Cow::Owned(text))
            }
        }
    }

    /// Whether this is to be linked with other images before it can be loaded.
    pub fn is_relocatable(&self) -> bool {
        self.options.split_whitespace().any(|option| option == "--compile-only")
    }
}

/// Without zero bytes at the end.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.get(..len).unwrap_or(bytes)
}

/// Reads the image whose header is at `offset` of `file`, in a container that ends at `end`. Gives where the next one
/// is, too. What is not essential, as its name, is noted in `faults` only.
pub(super) fn parse<'f>(
    file: &'f [u8],
    offset: usize,
    end: usize,
    faults: &mut impl FnMut(Fault),
) -> Result<(Image<'f>, usize), Fault> {
    let rest = file.get(offset..end).unwrap_or_default();
    let truncated =
        |what, needed: u64| Problem::Truncated { what, needed, left: rest.len() as u64 }.at(offset);
    let header_bytes = u32_at(rest, 4).ok_or_else(|| truncated("the header of an image", HEADER.into()))?;
    let version = u16_at(rest, 2).unwrap_or(0);
    if version != VERSION {
        let problem = Problem::Unexpected { expected: "an image of version 0x101", found: version.into() };
        return Err(problem.at(offset + 2));
    }
    if header_bytes < SHORT_HEADER {
        let expected = "a header of at least 48 bytes";
        return Err(Problem::Unexpected { expected, found: header_bytes.into() }.at(offset + 4));
    }
    let header = slice(rest, 0, header_bytes.into())
        .ok_or_else(|| truncated("the header of an image", header_bytes.into()))?;
    // The header has these, as it is long enough.
    let number = |at| u32_at(header, at).unwrap_or(0);
    let payload_bytes = u64_at(header, 8).unwrap_or(0);
    let payload = slice(rest, header_bytes.into(), payload_bytes)
        .ok_or_else(|| truncated("an image", payload_bytes.saturating_add(header_bytes.into())))?;
    let stored_at = offset + header.len();
    let next = stored_at + payload.len();

    let flags = u64_at(header, 40).unwrap_or(0);
    let kind = match u16_at(header, 0).unwrap_or(0) {
        1 => Kind::Ptx,
        2 => Kind::Cubin,
        8 => Kind::LtoIr,
        other => Kind::Other(other),
    };
    let compressed_bytes = number(16);
    let compression = match flags & (FLAG_ZLIB | FLAG_LZ4 | FLAG_ZSTD) {
        0 if compressed_bytes == 0 => Compression::None,
        FLAG_LZ4 => Compression::Lz4,
        FLAG_ZSTD => Compression::Zstd,
        _ => Compression::Unknown,
    };
    let (stored, size) = if compression == Compression::None {
        (payload, payload.len() as u64)
    } else {
        let stored = slice(payload, 0, compressed_bytes.into()).ok_or_else(|| {
            let (needed, left) = (compressed_bytes.into(), payload.len() as u64);
            Problem::Truncated { what: "a compressed image", needed, left }.at(stored_at)
        })?;
        (stored, u64_at(header, 56).unwrap_or(0))
    };
    let mut text = |what, at: u32, len: u32| match slice(header, at.into(), len.into()) {
        Some(bytes) => String::from_utf8_lossy(trimmed(bytes)),
        None => {
            let needed = u64::from(at) + u64::from(len);
            faults(Problem::Truncated { what, needed, left: header.len() as u64 }.at(offset));
            Cow::Borrowed("")
        }
    };
    let name = text("the header of an image, for its name,", number(32), number(36));
    // Cubins have something else there.
    let record = if kind == Kind::Cubin { 0 } else { number(20) as usize };
    let options = match (record, u32_at(header, record), u32_at(header, record.saturating_add(4))) {
        (0, ..) => Cow::Borrowed(""),
        (_, at, len) => {
            text("the header of an image, for its options,", at.unwrap_or(u32::MAX), len.unwrap_or(0))
        }
    };
    let suffix = match flags & (FLAG_EXACT | FLAG_FAMILY) {
        0 => Suffix::None,
        FLAG_FAMILY => Suffix::Family,
        _ => Suffix::Exact,
    };
    let image = Image {
        offset,
        kind,
        arch: Arch { sm: number(28), suffix },
        version: (u16_at(header, 26).unwrap_or(0), u16_at(header, 24).unwrap_or(0)),
        flags,
        name,
        options,
        compression,
        size,
        stored,
        stored_at,
    };
    Ok((image, next))
}
