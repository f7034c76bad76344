//! Chunks: a header, and bytes that are compressed.

use std::io::{self, Write};

/// Bytes of a header.
pub(super) const HEADER: usize = 24;

/// The most bytes that records of one chunk have.
pub(super) const MOST_UNITS: usize = 1 << 21;

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Head,
    Module,
    Source,
    Begin,
    Units,
    End,
    Done,
    Finish,
    Exec,
    Event,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Head,
        Self::Module,
        Self::Source,
        Self::Begin,
        Self::Units,
        Self::End,
        Self::Done,
        Self::Finish,
        Self::Exec,
        Self::Event,
    ];

    fn number(self) -> u32 {
        self as u32 + 1
    }
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) schedule: u64,
    /// Bytes when decompressed.
    pub(super) bytes: u32,
    /// Bytes in the file.
    pub(super) stored: u32,
    pub(super) checksum: u32,
}

impl Header {
    /// Reads a header; `None` if no writer has written it.
    pub(super) fn read(raw: &[u8; HEADER]) -> Option<Self> {
        let word =
            |at: usize| raw.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes);
        let number = word(0)?;
        let header = Self {
            kind: Kind::ALL.into_iter().find(|kind| kind.number() == number)?,
            schedule: u64::from(word(4)?) | u64::from(word(8)?) << 32,
            bytes: word(12)?,
            stored: word(16)?,
            checksum: word(20)?,
        };
        header.is_possible().then_some(header)
    }

    /// Whether LZ4 can have made that many bytes of it.
    fn is_possible(&self) -> bool {
        let most = if self.kind == Kind::Units { MOST_UNITS as u64 } else { u64::from(u32::MAX) };
        u64::from(self.bytes) <= most.min(u64::from(self.stored) * 255 + 64)
    }

    /// The checksum of what stands before it.
    pub(super) fn hasher(raw: &[u8; HEADER]) -> crc32fast::Hasher {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(raw.split_at(HEADER - 4).0);
        hasher
    }
}

/// Puts a chunk together, in a buffer that is used again.
pub(super) fn pack(kind: Kind, schedule: u64, bytes: &[u8], packed: &mut Vec<u8>) -> io::Result<()> {
    let large = |_| io::Error::other("a part of the trace has more than 4 GiB");
    let size = u32::try_from(bytes.len()).map_err(large)?;
    packed.clear();
    packed.resize(HEADER + lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
    let (header, rest) = packed.split_at_mut(HEADER);
    let stored = lz4_flex::block::compress_into(bytes, rest).map_err(io::Error::other)?;
    let mut to = &mut *header;
    to.write_all(&kind.number().to_le_bytes())?;
    to.write_all(&schedule.to_le_bytes())?;
    to.write_all(&size.to_le_bytes())?;
    to.write_all(&u32::try_from(stored).map_err(large)?.to_le_bytes())?;
    packed.truncate(HEADER + stored);
    let mut hasher = crc32fast::Hasher::new();
    let (header, stored) = packed.split_at_mut(HEADER);
    let (before, checksum) = header.split_at_mut(HEADER - 4);
    hasher.update(before);
    hasher.update(stored);
    checksum.copy_from_slice(&hasher.finalize().to_le_bytes());
    Ok(())
}

/// The bytes of a chunk, into a buffer that is used again. Whether it held that many.
pub(super) fn unpack(header: &Header, stored: &[u8], bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
    bytes.resize(header.bytes as usize, 0);
    lz4_flex::block::decompress_into(stored, bytes).is_ok_and(|size| size == bytes.len())
}
