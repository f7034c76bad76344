//! The record layout shared with device code.
//!
//! A record is the execution of one site by the lanes of a warp that execute it together. It is a run of 16-byte
//! *units*. Bit 127 of every unit is the *lap bit*: it flips each time the ring is filled once, so a reader can tell a
//! finished unit from an old one without a fence on the device, since 16-byte stores are single transactions. The
//! first lap writes 1 into a zeroed ring.
//!
//! ```text
//! unit 0, header   lo: site (bits 0..32) | lane mask (32..64)
//!                  hi: block (0..32) | warp of the block (32..40) | flags (40..48) | units of the record (48..56)
//! [tickets]        lo: ticket before the operation     hi: ticket after it
//!                  (before a wait for an mbarrier: the last one that any operation drew)
//! then, for each of `a`, `read`, `written` that the site logs, in this order
//!                  lo: value of the first lane         hi: stride as i32 (0..32) | top bits (32..63)
//! [packed values]  for each of them that is no progression, in the same order, by its form in the header:
//!                  narrow: 8 units with the lower halves of four lanes each; all share the upper half of the first
//!                  wide: 16 units with two lanes each
//! or, by lanes     for each active lane in order:
//!                  lo: `read`, else `written`          hi: `a` (63 bits)
//!                  and, if the site logs both values, a second unit
//!                  lo: `written`                       hi: 0
//! ```
//!
//! `rank` counts the active lanes below. A value is *compact* if it is exactly first + rank * stride in each lane, with a
//! stride that fits 32 bits (arithmetic wraps at 64 bits); the writer checks, so that both backends encode the same execution to
//! the same bytes. Where some value is not, the record of a whole warp packs that value, *narrow* if it can, else *wide*; that of
//! some lanes goes by lanes altogether. What the lap bit displaces in packed values, the top bits of the last lane of each unit,
//! stands in the value's own unit: bit 32 + l - 1 is the top bit (of the packed part) of lane l, for all lanes but lane 0.
//!
//! `a` is an address with its space tag (see `Tagged`), a barrier's `id | count << 8` (count 0 is the whole block) or a
//! warp mask. `read` is the value a strong read or an atomic saw; `written` the value a store or an atomic left there.
//! Values wider than 8 bytes are mixed to 64 bits (`mix_value`).

pub mod control;
mod decode;
mod encode;

pub use decode::{DecodeError, Record, decode, records};
pub use encode::{Encoder, Lanes, count_lanes, lanes};

/// One 16-byte unit as two words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C, align(16))]
pub struct Unit {
    /// Bits 0..64.
    pub lo: u64,
    /// Bits 64..128; the top bit is the lap bit.
    pub hi: u64,
}

const _: () = assert!(size_of::<Unit>() == 16 && align_of::<Unit>() == 16);

/// The lap bit within `Unit::hi`.
pub const LAP: u64 = 1 << 63;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// Most units that a record can have: header, tickets, two units for each lane.
pub const MAX_UNITS: usize = 2 + 2 * LANES;

/// Most units that a group reserves at once: a compact record with everything for each lane on its own.
pub const MAX_RESERVED: usize = 5 * LANES;

/// Header flag: `a` is logged.
pub const HAS_A: u64 = 1 << 40;
/// Header flag: the value read is logged.
pub const HAS_READ: u64 = 1 << 41;
/// Header flag: the value written is logged.
pub const HAS_WRITTEN: u64 = 1 << 42;
/// Header flag: there is a unit with tickets.
pub const HAS_TICKETS: u64 = 1 << 43;
/// Header flag: values stand lane by lane.
pub const BY_LANES: u64 = 1 << 44;
/// Where the number of units stands in the header's `hi`.
pub const UNITS_SHIFT: u32 = 48;
/// Header flag: the record stands for one of each load in its site's bundle (`instrument::bundle`).
pub const BUNDLE: u64 = 1 << 62;
/// Where the forms of `a`, `read` and `written` stand in the header's `hi`, two bits each: 0 is compact.
pub const FORMS_SHIFT: u32 = 56;
/// The form of packed values that share their upper half.
pub const NARROW: u64 = 1;
/// The form of packed values that do not.
pub const WIDE: u64 = 2;
/// Units of packed values, for each step of the form.
pub const PACKED_UNITS: usize = 8;

/// A value that each lane logs. Records hold those of their payload in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// An address, barrier word or mask.
    A,
    /// The value read.
    Read,
    /// The value written.
    Written,
}

impl Value {
    /// Where its form stands among the forms of a header.
    pub fn form_shift(self) -> u32 {
        2 * self as u32
    }
}

/// What the records of a site hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Payload {
    /// An address, barrier word or mask.
    pub a: bool,
    /// The value read.
    pub read: bool,
    /// The value written.
    pub written: bool,
    /// Tickets from before and after the operation.
    pub tickets: bool,
}

impl Payload {
    /// Nothing but the header.
    pub const NONE: Self = Self { a: false, read: false, written: false, tickets: false };

    /// The header flags.
    pub fn flags(self) -> u64 {
        let flag = |set, bit| if set { bit } else { 0 };
        flag(self.a, HAS_A)
            | flag(self.read, HAS_READ)
            | flag(self.written, HAS_WRITTEN)
            | flag(self.tickets, HAS_TICKETS)
    }

    /// The values.
    pub fn values(self) -> impl Iterator<Item = Value> {
        let all = [(self.a, Value::A), (self.read, Value::Read), (self.written, Value::Written)];
        all.into_iter().filter(|(logged, _)| *logged).map(|(_, value)| value)
    }

    fn from_flags(hi: u64) -> Self {
        Self {
            a: hi & HAS_A != 0,
            read: hi & HAS_READ != 0,
            written: hi & HAS_WRITTEN != 0,
            tickets: hi & HAS_TICKETS != 0,
        }
    }
}

/// An address in a record: bits 0..60 hold it, bits 60..63 its space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tagged(pub u64);

/// Tag of global memory.
pub const TAG_GLOBAL: u64 = 0;
/// Tag of the own block's shared memory; the address is the offset in the block's shared window.
pub const TAG_SHARED: u64 = 1 << 60;
/// More bytes than the shared memory of any block: what claims to copy or fill more is damaged, or faults.
pub const MOST_SHARED: u32 = 1 << 18;
/// The bits of an address in the shared window that are its offset. In a cluster, the block's rank stands above.
pub const SHARED_OFFSET: u64 = (1 << 24) - 1;
/// Set beside `TAG_SHARED` for the shared memory of another block of the cluster: the address is then the rank of that
/// block, shifted by the bits of `SHARED_OFFSET`, and its offset there. It equals no address of the own block.
pub const PEER: u64 = 1 << 40;

impl Tagged {
    /// Whether it is in the block's shared memory.
    pub fn is_shared(self) -> bool {
        self.0 >> 60 & 7 == TAG_SHARED >> 60
    }

    /// The address without its tag.
    pub fn address(self) -> u64 {
        self.0 & ((1 << 60) - 1)
    }
}

/// The word that a CTA barrier logs as `a`.
pub fn barrier_word(id: u32, count: Option<u32>) -> u64 {
    u64::from(id) | u64::from(count.unwrap_or(0)) << 8
}

/// Bits of the number of bytes and of the mbarrier's offset in a `bulk_word`.
pub const BULK_BITS: u32 = 24;

/// The word that a bulk copy logs as `written`: its bytes, the offset of its mbarrier in the shared window of each block
/// that gets data (0 if it completes by a group), and the mask of blocks that get data (0 for the one that the destination
/// is in).
pub fn bulk_word(bytes: u32, mbarrier: u64, multicast: u16) -> u64 {
    u64::from(bytes) & SHARED_OFFSET | (mbarrier & SHARED_OFFSET) << BULK_BITS | u64::from(multicast) << 48
}

/// Bytes, mbarrier offset and mask of a `bulk_word`.
pub fn bulk_parts(word: u64) -> (u32, u64, u16) {
    let bytes = (word & SHARED_OFFSET) as u32;
    (bytes.min(MOST_SHARED), word >> BULK_BITS & SHARED_OFFSET, (word >> 48) as u16)
}

/// The values `a`, `read` and `written` of a record of a box's coordinates.
pub fn coordinate_words(at: [i32; 5]) -> [u64; 3] {
    let [x, y, z, u, v] = at.map(|at| u64::from(at.cast_unsigned()));
    [v, x | y << 32, z | u << 32]
}

/// The coordinates in these values.
pub fn coordinates([a, read, written]: [u64; 3]) -> [i32; 5] {
    let all = [read as u32, (read >> 32) as u32, written as u32, (written >> 32) as u32, a as u32];
    all.map(u32::cast_signed)
}

/// The word that an mbarrier operation logs as `written`: arrivals (or the expected count) and bytes.
pub fn mbarrier_word(count: u32, bytes: u32) -> u64 {
    u64::from(count) | u64::from(bytes) << 32
}

/// Folds one more 64-bit word into the value that stands for a wide access. Device code does the same: the first
/// word is taken as it is, each further one by `mix_value`.
pub fn mix_value(so_far: u64, next: u64) -> u64 {
    (so_far.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (so_far >> 29)).wrapping_add(next)
}

/// How a store of several elements makes its logged value: elements are packed little-endian into 64-bit words, low
/// element first, and further words are mixed in.
pub fn packed_value(elements: &[u64], element_bytes: u32) -> u64 {
    let bits = (element_bytes * 8).min(64);
    let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    let per_word = (64 / bits).max(1) as usize;
    let mut words = elements
        .chunks(per_word)
        .map(|chunk| chunk.iter().enumerate().fold(0, |word, (i, e)| word | (e & mask) << (i as u32 * bits)));
    let first = words.next().unwrap_or(0);
    words.fold(first, mix_value)
}
