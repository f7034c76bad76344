//! What each device says of itself: all are alike.

/// Its name.
pub(crate) const NAME: &str = "ptxrace emulator";
/// Its memory.
pub(crate) const TOTAL_BYTES: u64 = 64 << 30;
/// Its compute capability: that of the newest instructions which the emulator runs.
pub(crate) const CAPABILITY: (u32, u32) = (9, 0);
/// Few, as programs fill a device with blocks, and each costs time here.
pub(crate) const MULTIPROCESSORS: i32 = 8;
pub(crate) const THREADS_PER_MULTIPROCESSOR: i32 = 2048;
/// Shared memory of a block, at most.
pub(crate) const SHARED_BYTES: i32 = 227 << 10;

/// The value of an attribute. Most that are not listed say whether something is supported, or how large it may be.
pub(crate) fn attribute(attribute: u32) -> i32 {
    match attribute {
        1..=3 => 1024,
        4 => 64,
        5 => i32::MAX,
        6 | 7 => 65535,
        8 => 48 << 10,
        9 => 64 << 10,
        10 => 32,
        11 => i32::MAX,
        12 | 82 => 65536,
        13 => 1_000_000,
        14 | 30 => 512,
        // It overlaps copies and kernels, maps memory of the host, runs kernels at once, waits for values.
        15 | 19 | 31 | 41 | 78 | 79 | 80 | 83 | 91..=95 | 99 | 115 | 120 | 122 | 123 => 1,
        16 => MULTIPROCESSORS,
        36 => 1_000_000,
        37 => 512,
        38 => 32 << 20,
        39 => THREADS_PER_MULTIPROCESSOR,
        40 => 2,
        51 => 32,
        75 => CAPABILITY.0.cast_signed(),
        76 => CAPABILITY.1.cast_signed(),
        81 => SHARED_BYTES + 1024,
        97 => SHARED_BYTES,
        106 => 32,
        111 => 1024,
        _ => 0,
    }
}
