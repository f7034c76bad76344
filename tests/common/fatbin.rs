//! A writer of fatbins.

#![allow(dead_code, reason = "each test uses a part")]

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Flags of images.
pub(crate) const EXACT: u64 = 0x10_0000;
pub(crate) const FAMILY: u64 = 0x20_0000;
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;

/// How to store an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Raw,
    Lz4,
    Zstd,
}

/// An image to write.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: u16,
    pub(crate) sm: u32,
    pub(crate) flags: u64,
    pub(crate) version: (u16, u16),
    pub(crate) name: &'a str,
    pub(crate) options: &'a str,
    pub(crate) bytes: &'a [u8],
    pub(crate) stored: Stored,
}

impl Default for Entry<'_> {
    /// Empty PTX for `sm_90`.
    fn default() -> Self {
        let (name, options, bytes) = ("", "", &[][..]);
        Self { kind: 1, sm: 90, flags: 0, version: (8, 0), name, options, bytes, stored: Stored::Raw }
    }
}

/// The header and the payload of an image.
pub(crate) fn image(entry: &Entry<'_>) -> Vec<u8> {
    let (flag, payload) = match entry.stored {
        Stored::Raw => (0, entry.bytes.to_vec()),
        Stored::Lz4 => (LZ4, lz4_flex::block::compress(entry.bytes)),
        Stored::Zstd => (ZSTD, compress_to_vec(entry.bytes, CompressionLevel::Fastest)),
    };
    let (compressed, size) =
        if flag == 0 { (0, 0) } else { (payload.len() as u32, entry.bytes.len() as u64) };
    image_of(entry, flag, compressed, size, &payload)
}

/// An image whose header says these things of its payload.
pub(crate) fn image_of(entry: &Entry<'_>, flag: u64, compressed: u32, size: u64, payload: &[u8]) -> Vec<u8> {
    let mut tail = entry.name.as_bytes().to_vec();
    pad(&mut tail);
    let mut record = 0;
    if !entry.options.is_empty() {
        record = 64 + tail.len() as u32;
        tail.extend((record + 8).to_le_bytes());
        tail.extend((entry.options.len() as u32).to_le_bytes());
        tail.extend_from_slice(entry.options.as_bytes());
        pad(&mut tail);
    }
    let mut out = Vec::new();
    out.extend(entry.kind.to_le_bytes());
    out.extend(0x0101u16.to_le_bytes());
    out.extend((64 + tail.len() as u32).to_le_bytes());
    out.extend((payload.len().next_multiple_of(8) as u64).to_le_bytes());
    out.extend(compressed.to_le_bytes());
    out.extend(record.to_le_bytes());
    out.extend(entry.version.1.to_le_bytes());
    out.extend(entry.version.0.to_le_bytes());
    out.extend(entry.sm.to_le_bytes());
    let name = if entry.name.is_empty() { 0u32 } else { 64 };
    out.extend(name.to_le_bytes());
    out.extend((entry.name.len() as u32).to_le_bytes());
    out.extend((0x11 | flag | entry.flags).to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(tail);
    out.extend_from_slice(payload);
    pad(&mut out);
    out
}

/// A container of images.
pub(crate) fn container(images: &[Vec<u8>]) -> Vec<u8> {
    let images = images.concat();
    let mut out = b"\x50\xed\x55\xba\x01\0\x10\0".to_vec();
    out.extend((images.len() as u64).to_le_bytes());
    out.extend(images);
    out
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}
