//! How many bytes an asynchronous copy or a fill touches, by its site and its record.

use crate::abi::{MOST_SHARED, Record, bulk_parts};
use crate::isa::{AsyncCopy, CopyBytes, Fill};

/// Bytes that the copy of the lane with this rank writes and reads. Those of a tensor copy stand in its map.
pub fn copied(copy: &AsyncCopy, record: &Record<'_>, rank: usize) -> (u32, u32) {
    let logged = record.written(rank).unwrap_or(0);
    match copy.bytes {
        CopyBytes::Static(bytes) => (bytes.min(MOST_SHARED), bytes.min(MOST_SHARED)),
        CopyBytes::Limited(bytes, _) => {
            let bytes = bytes.min(MOST_SHARED);
            (bytes, logged.min(bytes.into()) as u32)
        }
        CopyBytes::Operand(_) => {
            let (bytes, ..) = bulk_parts(logged);
            (bytes, bytes)
        }
        CopyBytes::Tensor(_) => (0, 0),
    }
}

/// Bytes that the lane with this rank fills.
pub fn filled(fill: &Fill, record: &Record<'_>, rank: usize) -> u32 {
    let bytes = fill.bytes.map_or_else(|| record.written(rank).unwrap_or(0), u64::from);
    bytes.min(MOST_SHARED.into()) as u32
}
