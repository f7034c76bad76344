//! Traces: what a run delivered, in a file, so that it can be checked again where the program is not.
//!
//! A run's trace has everything that a report is made of: the module and the sources that its lines name, the launches, and for each
//! schedule the records and how it ended. Contents of buffers and arguments of launches are not in it. It is written as the
//! run goes on; schedules that run side by side have their chunks between each other's.
//!
//! ```text
//! file     MAGIC | version u32 | chunk ...
//! chunk    kind u32 | schedule u64 | bytes u32 | stored u32 | CRC-32 u32 | `stored` bytes: `bytes` bytes as an LZ4 block
//! kinds    HEAD, MODULE, SOURCE ...  then, of any schedule, BEGIN, UNITS ..., END ..., DONE  then FINISH
//!          EXEC, SOURCE ...          then, of any process, EVENT ..., UNITS ...             then FINISH
//! ```
//!
//! A program under `exec` has a tape for each of its processes, whose number stands for a schedule's. What happens in a process
//! is told by whoever has it checked (`session::exec`), as lines of JSON in EVENT; records of a launch stand between.
//!
//! Numbers are little endian. The checksum is that of the chunk without it. UNITS hold records as `units` lays them out, a
//! MODULE is its text, everything else is JSON (`wire`). A trace that does not end with FINISH was cut off.
//!
//! What is damaged is read up to there, and said to be. Nothing that a damaged trace says is believed: an allocation is at most
//! as large as LZ4 can make what is there.

mod chunk;
mod play;
mod process;
mod read;
mod units;
mod wire;
mod write;

pub use play::{Played, Player};
pub use process::ProcessTape;
pub use read::{Break, ReadAt, Trace, TraceError};
pub use wire::{ExecHead, Head, MOST_LAUNCHES, Text, is_possible, sites_digest};
pub use write::{Tape, Writer};

/// What every trace begins with.
pub const MAGIC: &[u8; 8] = b"ptxrace\n";

/// The version of what is written here. A change of `wire`, or of what it is made of, is another version; so is one of the
/// record layout, or of the events of `session::exec`.
pub const VERSION: u32 = 2;
