//! What the engine finds: plain facts, no text. `explain` turns them into diagnostics.

use serde::{Deserialize, Serialize};

use crate::diag::Severity;
use crate::instrument::SiteId;

/// The rules of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Rule {
    /// Race inside a block.
    R001,
    /// Race inside a warp.
    R002,
    /// Race between blocks of one launch.
    R003,
    /// Scope too narrow.
    R004,
    /// Unsynchronised publication.
    R005,
    /// Launches, or host and kernel, unordered.
    R006,
    /// Atomic against plain.
    R007,
    /// Asynchronous copy.
    R008,
    /// Read-only path.
    R009,
    /// All writers stored the same value.
    R010,
    /// Unordered accesses of different size.
    R011,
    /// Barrier divergence.
    S001,
    /// Warp mask.
    S002,
    /// Spins on a block that may never run.
    S003,
    /// Out of bounds.
    M001,
    /// Misaligned.
    M002,
    /// Freed memory.
    M003,
    /// Uninitialised read.
    M004,
}

impl Rule {
    /// Every rule, in order.
    pub const ALL: [Self; 18] = [
        Self::R001,
        Self::R002,
        Self::R003,
        Self::R004,
        Self::R005,
        Self::R006,
        Self::R007,
        Self::R008,
        Self::R009,
        Self::R010,
        Self::R011,
        Self::S001,
        Self::S002,
        Self::S003,
        Self::M001,
        Self::M002,
        Self::M003,
        Self::M004,
    ];

    /// Its id, such as `R001`.
    pub fn id(self) -> &'static str {
        const IDS: [&str; 18] = [
            "R001", "R002", "R003", "R004", "R005", "R006", "R007", "R008", "R009", "R010", "R011", "S001",
            "S002", "S003", "M001", "M002", "M003", "M004",
        ];
        IDS.get(self as usize).copied().unwrap_or("R000")
    }
}

/// What an access does, as reports name it. Loads and stores of any strength are reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AccessClass {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic or reduction.
    Atomic,
}

/// The pair of access classes: `WW`, `RW`, `AW`, `AR`, `AA`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the report")]
pub enum Kind {
    WW,
    RW,
    AW,
    AR,
    AA,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::WW, Self::RW, Self::AW, Self::AR, Self::AA];

    /// The kind of two accesses. Two reads never conflict; they are named `RW` for want of better.
    pub fn of(a: AccessClass, b: AccessClass) -> Self {
        use AccessClass::{Atomic, Read, Write};
        match (a.min(b), a.max(b)) {
            (Atomic, Atomic) => Self::AA,
            (Read, Atomic) => Self::AR,
            (Write, Atomic) => Self::AW,
            (Write, Write) => Self::WW,
            _ => Self::RW,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::WW => "WW",
            Self::RW => "RW",
            Self::AW => "AW",
            Self::AR => "AR",
            Self::AA => "AA",
        }
    }
}

/// Distance of two threads, near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Relation {
    /// A thread against its own asynchronous copy.
    Thread,
    /// Two lanes of a warp.
    Warp,
    /// Two warps of a block.
    Block,
    /// Two blocks of a cluster.
    Cluster,
    /// Two blocks of a grid.
    Grid,
    /// Two launches.
    Launch,
    /// The host.
    Host,
}

impl Relation {
    /// Every distance.
    pub const ALL: [Self; 7] =
        [Self::Thread, Self::Warp, Self::Block, Self::Cluster, Self::Grid, Self::Launch, Self::Host];

    /// The name in the JSON report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Warp => "warp",
            Self::Block => "block",
            Self::Cluster => "cluster",
            Self::Grid => "grid",
            Self::Launch => "launch",
            Self::Host => "host",
        }
    }
}

/// A thread of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadId {
    /// Index of the launch in the plan.
    pub launch: u32,
    /// Linear block.
    pub block: u32,
    /// Warp of the block.
    pub warp: u8,
    /// Lane of the warp.
    pub lane: u8,
}

/// The first of the numbers that stand for operations of the host, such as copies, in place of sites. Which of them it is, tells
/// the launch of their threads.
pub const HOST_SITES: SiteId = SiteId(0xffff_0000);

/// One side of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The instruction; from `HOST_SITES` on, an operation of the host.
    pub site: SiteId,
    /// The thread.
    pub thread: ThreadId,
    /// Read, write or atomic.
    pub class: AccessClass,
    /// First byte of the element accessed, with its space tag (`abi::Tagged`).
    pub address: u64,
    /// Bytes of that element.
    pub bytes: u8,
    /// The value stored, if known.
    pub value: Option<u64>,
    /// How many CTA barriers the thread's block had completed for it.
    pub interval: u32,
}

impl Witness {
    /// Whether it is an operation of the host.
    pub fn is_host(&self) -> bool {
        self.site >= HOST_SITES
    }
}

/// Which half of a publication is wanting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Side {
    /// The writer does not release.
    Release,
    /// The reader does not acquire.
    Acquire,
    /// Neither does.
    Both,
}

/// What stands where a release or an acquire should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Instead {
    /// A plain access to the flag.
    Plain,
    /// A volatile one.
    Volatile,
    /// A relaxed load, store or atomic.
    Relaxed,
    /// A fence, but not between payload and flag.
    FenceElsewhere,
    /// A fence or access whose scope leaves the other thread out.
    NarrowScope,
}

/// What is wanting around an asynchronous access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pending {
    /// Nothing orders the first access before the second, a copy, was issued.
    Issue,
    /// That order is there, but no proxy fence on it.
    ProxyFence {
        /// In shared memory.
        shared: bool,
    },
    /// The first is a copy that was in no group when its thread waited for groups.
    NotCommitted {
        /// Of bulk copies.
        bulk: bool,
    },
    /// The first is a copy whose group its thread has not waited for.
    NotWaited {
        /// Of bulk copies.
        bulk: bool,
        /// The access is the copy's read.
        reads: bool,
    },
    /// The thread has waited, but let this group stay.
    Left {
        /// The wait.
        wait: SiteId,
        /// Groups that it let stay.
        pending: u32,
        /// Groups that may stay at most.
        most: u32,
    },
    /// The thread has waited for the reads of its copies only.
    OnlyReads {
        /// The wait.
        wait: SiteId,
    },
    /// The thread has waited, but nothing orders its wait before the second access.
    Unshared {
        /// The wait.
        wait: SiteId,
    },
    /// The first is a copy whose thread may not have waited yet; the second's thread has waited for its own copies only.
    OwnOnly,
    /// The first is a copy that is not complete, and the second's thread does not even know that it was issued.
    Apart,
    /// The first is a copy that completes a phase of an mbarrier, which the second access's thread has not waited for.
    Phase {
        /// Where the mbarrier is, with its space tag.
        mbarrier: u64,
        /// The latest phase that the thread knows to be complete, counted from 1; 0 is none.
        seen: u32,
        /// The phase that the copy completes.
        phase: u32,
    },
}

/// Why two accesses are not ordered: what the advice is built on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Missing {
    /// Lanes of one warp without a warp barrier between.
    WarpBarrier {
        /// A `.sync` warp instruction that names both lanes lies between (it orders no memory).
        converged: bool,
        /// Both are lanes of one execution of one store.
        same_instruction: bool,
    },
    /// Threads that are ordered but for lanes of a warp that only met at a `.sync` instruction.
    Converged,
    /// Warps of one block without a block barrier between.
    BlockBarrier,
    /// Blocks of one launch, with nothing that orders them.
    BetweenBlocks {
        /// The second access's thread has acquired something that threads of the first one's block released.
        acquired: bool,
    },
    /// One thread released by a flag and another acquired, but they are not those of the accesses.
    Apart {
        /// The first access is not ordered before the release.
        before: bool,
        /// The second access is not ordered after the acquire.
        after: bool,
        /// The write of the flag.
        flag_write: Witness,
        /// The read that observed it.
        flag_read: Witness,
    },
    /// Both are strong, but a scope leaves the other thread out.
    AccessScope,
    /// A flag was observed, but the pattern is incomplete.
    Publication {
        /// What is wanting.
        side: Side,
        /// What stands there on the writer's side, if that side is wanting.
        writer: Option<Instead>,
        /// What stands there on the reader's side, if that side is wanting.
        reader: Option<Instead>,
        /// The write of the flag.
        flag_write: Witness,
        /// The read that observed it.
        flag_read: Witness,
        /// The flag is taken and given back by atomics, as a lock is.
        lock: bool,
    },
    /// A flag for the host that releases the data of the first with the second, and leaves host threads out.
    ToHost {
        /// The scope of the store itself is too narrow, else that of the fence before it.
        store: bool,
    },
    /// One of them is asynchronous.
    Asynchronous(Pending),
    /// The second is the end of the block whose shared memory the first, of another block, accesses.
    BlockEnd,
    /// Launches in different streams without an event.
    StreamOrder,
    /// Accesses of different size.
    Size,
    /// What is waited for never comes.
    Starved {
        /// Blocks of the grid that can start only when others end.
        waiting: u64,
    },
    /// A write before the read.
    FirstWrite,
    /// A barrier that not all threads reach.
    Barrier {
        /// One sentence with the facts.
        detail: String,
    },
    /// A warp mask that does not fit the lanes.
    Mask {
        /// The mask given.
        given: u32,
        /// Lanes that executed the instruction with it.
        executing: u32,
    },
}

/// One address that is raced on, and who did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Spot {
    /// First byte of the conflict, with its space tag.
    pub address: u64,
    /// The threads of the first conflict seen there, in the order they were replayed.
    pub threads: [ThreadId; 2],
}

/// A group of conflicts: one rule, one pair of sites.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How bad.
    pub severity: Severity,
    /// The classes that conflict; `None` for S rules.
    pub kind: Option<Kind>,
    /// The widest distance seen.
    pub relation: Relation,
    /// The two sides of the first conflict seen at that distance, in the order they were replayed. S rules have one
    /// or two.
    pub witnesses: Vec<Witness>,
    /// Conflicts counted.
    pub count: u64,
    /// Different addresses among them.
    pub addresses: u64,
    /// Lowest and highest address.
    pub range: (u64, u64),
    /// Some of the addresses, spread over all, in order.
    pub spots: Vec<Spot>,
    /// Why.
    pub missing: Missing,
    /// Synchronisation that was not recorded may order these accesses, so this is no error.
    pub doubtful: bool,
}
