//! What runs a program and yields records: the trait that both executors implement, and what they are given.

pub mod emu;
pub mod gpu;
pub mod image;
pub mod plan;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::abi::Unit;
use crate::instrument::{SiteId, SiteTable};
use crate::ptx::ast::Module;
use crate::span::{SourceFile, Span};
use crate::tensor::TensorMap;
pub use image::{ImageObject, Images};
pub use plan::{Arg, Buffer, Clusters, ElementType, Launch, Plan, PlanArray, PlanImage, PlanStorage};

/// The program to run.
#[derive(Clone, Copy, Debug)]
pub struct Program<'p> {
    /// The PTX text.
    pub source: &'p SourceFile,
    /// Its tree.
    pub module: &'p Module<'p>,
    /// Its sites.
    pub sites: &'p SiteTable,
}

/// What to do when the ring is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// Wait for the host.
    #[default]
    Wait,
    /// Drop and count.
    Drop,
}

/// How the emulator's memory behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryOrder {
    /// Sequentially consistent: a read sees the latest write.
    #[default]
    Sequential,
    /// A read sees any write that the memory model allows, as far as the emulator knows how.
    Weak,
}

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// Seed of the emulator's schedule.
    pub seed: u64,
    /// The emulator's memory.
    pub memory: MemoryOrder,
    /// Stop after this long.
    pub timeout: Option<Duration>,
    /// Full rings.
    pub on_full: OnFull,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { seed: 0, memory: MemoryOrder::Sequential, timeout: None, on_full: OnFull::Wait }
    }
}

/// A named range of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Buffer name or PTX symbol.
    pub name: String,
    /// First address.
    pub base: u64,
    /// Size.
    pub bytes: u64,
    /// Bytes of one element, for naming `name[i]`.
    pub element: u64,
    /// Whose memory it is.
    #[serde(default, skip_serializing_if = "Owner::is_device")]
    pub owner: Owner,
}

/// Whose memory something is, and so who may look at it while a kernel runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// The device's.
    #[default]
    Device,
    /// The host's, where kernels reach it: page-locked and mapped.
    Host,
    /// Of both: managed memory.
    Managed,
}

impl Owner {
    fn is_device(&self) -> bool {
        *self == Self::Device
    }
}

/// What is known when a launch begins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LaunchInfo {
    /// Index in the plan.
    pub index: u32,
    /// Global memory: the plan's buffers and the module's variables.
    pub regions: Vec<Region>,
    /// Which counter its tickets are drawn from. Each begins with the first ticket and runs on over launches.
    #[serde(default, skip_serializing_if = "plan::is_zero")]
    pub counter: u32,
    /// Tensor maps that were encoded, by the digests of their bytes; those told of with an earlier launch may be left out.
    #[serde(default)]
    pub tensor_maps: Vec<(u64, TensorMap)>,
    /// Textures and surfaces.
    #[serde(default)]
    pub images: Images,
}

/// What is known when a launch has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchEnd {
    /// Records delivered.
    pub records: u64,
    /// Records dropped.
    pub dropped: u64,
    /// Unlogged instructions that were executed, by index into `SiteTable::unlogged`; for a backend that cannot
    /// tell, all those that the kernel's code holds.
    pub unlogged: Vec<u32>,
    /// Synchronisation may have happened that no record tells of, before accesses that were recorded. Races found in
    /// such a launch may be none.
    pub unseen_order: bool,
    /// What no record tells of. Only the emulator notices anything.
    #[serde(default)]
    pub notices: Vec<Notice>,
}

/// Something that a backend noticed at an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// What.
    pub kind: NoticeKind,
    /// The instruction.
    pub site: SiteId,
    /// The linear block of the thread that came first.
    pub block: u32,
    /// Its warp.
    pub warp: u8,
    /// Its lane.
    pub lane: u8,
    /// Where it read, with the space's tag (`abi::Tagged`).
    pub address: u64,
    /// Bytes of what it read there.
    pub bytes: u8,
    /// How often.
    pub count: u64,
}

/// What a backend can notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoticeKind {
    /// A thread reads this again and again, and nobody who runs will ever change it.
    Starved {
        /// Blocks of the grid that can start only when others end.
        waiting: u64,
    },
    /// A value was read that nobody had written, and used.
    NeverWritten,
}

/// What has come by one ring.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'r> {
    /// The ring's number.
    pub number: u32,
    /// Whole records.
    pub units: &'r [Unit],
}

/// Takes the records as they come. `records` may be called from a thread of the backend.
pub trait Sink: Send {
    /// Launches are being prepared whose records will come by many rings, many at a time.
    fn expect_rings(&mut self) {}
    /// A launch begins. Its records follow, then `end`.
    fn begin(&mut self, info: &LaunchInfo);
    /// Whole records, without lap bits. Those of one warp come in the order it wrote them; nothing is promised
    /// between warps.
    fn records(&mut self, units: &[Unit]);
    /// The same of several rings at once. All records of a block come by one ring, in an order in which those of before a
    /// barrier of the block come before those behind it.
    fn rings(&mut self, rings: &[Ring<'_>]) {
        rings.iter().for_each(|ring| self.records(ring.units));
    }
    /// The launch has ended, or was stopped.
    fn end(&mut self, end: &LaunchEnd);
}

/// Why a run stopped before its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Stop {
    /// It took too long. One line for each warp or group of warps: where it stands and what it waits for.
    Timeout {
        /// What was allowed.
        after: Duration,
        /// Positions, possibly none.
        warps: Vec<WarpPosition>,
    },
    /// No warp can go on.
    Deadlock {
        /// Positions.
        warps: Vec<WarpPosition>,
    },
    /// An access or instruction that may not be.
    Fault(Fault),
    /// The backend does not know an instruction that was reached. Records up to there stand.
    Unsupported {
        /// The instruction, in the PTX text.
        at: Span,
        /// One sentence.
        what: String,
    },
}

/// Where lanes of a warp stand.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WarpPosition {
    /// Block index.
    pub block: [u32; 3],
    /// Warp of the block.
    pub warp: u32,
    /// Lanes that stand there.
    pub mask: u32,
    /// The instruction, in the PTX text.
    pub at: Span,
    /// What they wait for, such as "barrier 1 (32 of 64 threads arrived)"; empty when they run.
    pub waiting: String,
}

/// What kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultKind {
    /// M001
    OutOfBounds,
    /// M002
    Misaligned,
    /// M003
    Freed,
    /// `trap` or a failed device assertion.
    Trap,
    /// Anything the device reports without detail.
    Device,
}

/// A fault.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fault {
    /// Its kind.
    pub kind: FaultKind,
    /// The launch.
    pub launch: u32,
    /// Block and thread, if known.
    pub thread: Option<([u32; 3], [u32; 3])>,
    /// The instruction in the PTX text, if known.
    pub at: Option<Span>,
    /// One sentence with the facts, such as "store of 4 bytes at 0x..., 16 bytes behind the end of `out` (256 bytes)".
    pub detail: String,
}

/// What a run gave.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Final contents of the plan's buffers, in its order.
    pub buffers: Vec<Vec<u8>>,
    /// Why it ended early.
    pub stop: Option<Stop>,
    /// Instructions that were executed, each counted for each of its lanes, if the backend counts them.
    pub executed: u64,
    /// What took how long, if the backend tells.
    pub phases: Vec<Phase>,
}

/// Part of a run's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What was done.
    pub name: &'static str,
    /// How long that took.
    pub time: Duration,
}

/// Why a backend cannot run a program at all.
#[derive(Clone, Debug, thiserror::Error, Serialize, Deserialize)]
pub enum BackendError {
    /// The backend does not know an instruction or a form of it.
    #[error("{what}")]
    Unsupported {
        /// One sentence.
        what: String,
        /// Where.
        at: Option<Span>,
    },
    /// The plan does not fit the program; the session checks first, so this is rare.
    #[error("{0}")]
    Plan(String),
    /// No usable device.
    #[error("no usable GPU: {0}")]
    NoDevice(String),
    /// The driver refused something.
    #[error("{call} failed: {detail}")]
    Driver {
        /// The call.
        call: String,
        /// What the driver said.
        detail: String,
    },
}

/// Runs programs.
pub trait Backend {
    /// `gpu` or `emu`.
    fn name(&self) -> &'static str;
    /// Runs all launches of the plan, in order.
    fn run(
        &mut self,
        program: Program<'_>,
        plan: &Plan,
        options: &RunOptions,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, BackendError>;
}
