//! Traces made by hand, after what `src/trace/mod.rs` says of the format and without what writes it.

#![allow(dead_code, reason = "each test uses a part")]

/// The chunks' kinds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Head = 1,
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

pub(crate) fn start(version: u32) -> Vec<u8> {
    [&b"ptxrace\n"[..], &version.to_le_bytes()].concat()
}

/// A chunk that is sound, whatever it holds.
pub(crate) fn chunk(kind: u32, schedule: u64, bytes: &[u8]) -> Vec<u8> {
    let stored = lz4_flex::block::compress(bytes);
    let mut chunk = kind.to_le_bytes().to_vec();
    chunk.extend(schedule.to_le_bytes());
    chunk.extend((bytes.len() as u32).to_le_bytes());
    chunk.extend((stored.len() as u32).to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&chunk);
    hasher.update(&stored);
    chunk.extend(hasher.finalize().to_le_bytes());
    chunk.extend(stored);
    chunk
}

/// A trace with one bit flipped, for each of its bytes, with that byte's place.
pub(crate) fn flipped(whole: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    (0..whole.len()).map(|at| {
        let mut flipped = whole.to_vec();
        flipped[at] ^= 1 << (at % 8);
        (at, flipped)
    })
}
