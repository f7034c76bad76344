//! What an instruction does to memory and to order: one table from opcode to meaning, and the classifier that reads
//! the modifiers. Modifiers are an unordered set of dot words, as ptxas takes them.
//!
//! Shapes follow the PTX ISA 9.0; the defaults are its defaults (`atom` is `.relaxed.gpu`, no `.sem` on a fence is
//! `.acq_rel`, `membar` is `fence.sc`, no state space is generic).

mod asynchronous;
mod classify;
mod image;
mod range;
mod table;
pub mod warpgroup;

pub use asynchronous::{
    AsyncCopy, ClusterBarrier, Completion, CopyBytes, GroupKind, GroupOp, Mbarrier, MbarrierOp, ProxyFence,
};
pub use classify::{Classified, classify};
pub use image::{ImageAccess, ImageOp, ImageShape, Outside, coordinates};
pub use range::{Fill, Tile};
pub use table::{Meaning, Row, lookup, rows};
pub use warpgroup::Product;

/// State space of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Decided by the address at run time.
    Generic,
    /// `.global`
    Global,
    /// `.shared`, `.shared::cta`: the own block's.
    Shared,
    /// `.shared::cluster`: any block's of the cluster.
    SharedCluster,
    /// `.local`: private to a thread.
    Local,
    /// `.const`: read-only.
    Const,
    /// `.param`: private or read-only.
    Param,
}

/// Scopes, narrow to wide; each contains those before it. A warp is no scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The block.
    Cta,
    /// The cluster.
    Cluster,
    /// The device.
    Gpu,
    /// Everything, host and other devices included.
    Sys,
}

impl Scope {
    /// The modifier that names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cta => "cta",
            Self::Cluster => "cluster",
            Self::Gpu => "gpu",
            Self::Sys => "sys",
        }
    }
}

/// Memory order of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Weak: gives no order and may race.
    Weak,
    /// Strong without order. `.volatile` and `.mmio` are this at system scope.
    Relaxed,
    /// Strong, acquires.
    Acquire,
    /// Strong, releases.
    Release,
    /// Strong, both.
    AcqRel,
}

impl Order {
    /// Whether accesses of this order are strong operations.
    pub fn is_strong(self) -> bool {
        self != Self::Weak
    }

    /// Whether it acquires.
    pub fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcqRel)
    }

    /// Whether it releases.
    pub fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel)
    }

    /// The name reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weak => "weak",
            Self::Relaxed => "relaxed",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::AcqRel => "acq_rel",
        }
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes atomically and gives the old value.
    Atom,
    /// As `Atom`, giving nothing; never the read of an acquire pattern.
    Red,
}

/// Operation of an `atom` or `red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the ISA")]
pub enum AtomOp {
    And,
    Or,
    Xor,
    Exch,
    Add,
    Inc,
    Dec,
    Min,
    Max,
    Cas,
}

/// How an access is marked beyond its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Marking {
    /// Nothing special.
    Plain,
    /// `.volatile`: strong, `.relaxed.sys`.
    Volatile,
    /// `.mmio`: strong, `.relaxed.sys`.
    Mmio,
    /// `ld.global.nc`, `ldu`: the read-only path.
    NonCoherent,
}

/// A memory access: what is static about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// What it does.
    pub kind: AccessKind,
    /// Where.
    pub space: Space,
    /// Its memory order.
    pub order: Order,
    /// Its scope; `None` when weak.
    pub scope: Option<Scope>,
    /// `.volatile` and its like.
    pub marking: Marking,
    /// Bytes of one element; each element is an access of its own in the memory model.
    pub element: u8,
    /// Number of elements.
    pub count: u8,
    /// Operation of an atomic.
    pub op: Option<AtomOp>,
    /// Index of the address among the operands.
    pub address: u8,
    /// `ldmatrix`, `stmatrix`: lanes whose address counts, from lane 0 on. What lands in a row comes from many lanes.
    pub rows: Option<u8>,
}

impl Access {
    /// All bytes, from the address on.
    pub fn bytes(&self) -> u32 {
        u32::from(self.element) * u32::from(self.count)
    }

    /// Whether it can write.
    pub fn writes(&self) -> bool {
        self.kind != AccessKind::Load
    }

    /// Whether it is a read-modify-write.
    pub fn is_rmw(&self) -> bool {
        matches!(self.kind, AccessKind::Atom | AccessKind::Red)
    }
}

/// Order of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceOrder {
    /// `fence.acquire`
    Acquire,
    /// `fence.release`
    Release,
    /// `fence.acq_rel`
    AcqRel,
    /// `fence.sc` and `membar`
    Sc,
}

impl FenceOrder {
    /// Whether it can end an acquire pattern.
    pub fn acquires(self) -> bool {
        self != Self::Release
    }

    /// Whether it can begin a release pattern.
    pub fn releases(self) -> bool {
        self != Self::Acquire
    }
}

/// A thread fence of the generic proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    /// Its order.
    pub order: FenceOrder,
    /// Its scope.
    pub scope: Scope,
}

/// What a CTA barrier instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierKind {
    /// Arrives and waits.
    Sync,
    /// Arrives only.
    Arrive,
    /// Arrives, waits and reduces a predicate.
    Red,
}

/// A CTA barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Barrier {
    /// What it does.
    pub kind: BarrierKind,
    /// Index of the barrier's number among the operands.
    pub id: u8,
    /// Index of the thread count; `None` means the whole block.
    pub count: Option<u8>,
}

/// What an instruction does to memory and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: registers, branches, hints.
    None,
    /// Reads or writes memory.
    Access(Access),
    /// Orders memory.
    Fence(Fence),
    /// CTA barrier.
    Barrier(Barrier),
    /// `bar.warp.sync`: orders memory among the lanes of its mask, operand 0.
    WarpBarrier,
    /// Begins a product of a warpgroup.
    Product(Product),
    /// Begins an asynchronous copy, store or reduction.
    AsyncCopy(AsyncCopy),
    /// Closes a group of asynchronous copies or waits for groups.
    Group(GroupOp),
    /// An operation on an mbarrier object.
    Mbarrier(Mbarrier),
    /// `barrier.cluster`
    ClusterBarrier(ClusterBarrier),
    /// Orders the generic proxy with another.
    ProxyFence(ProxyFence),
    /// A weak write of a range whose values are of no interest.
    Fill(Fill),
    /// A weak access to a matrix by the warp as a whole.
    Tile(Tile),
    /// An access to a texture or a surface.
    Image(ImageAccess),
    /// `shfl.sync` and its like: the lanes of the mask meet, but memory is not ordered. The mask is this operand.
    Converge(u8),
    /// `ret`: ends the thread when the function is an entry.
    Return,
    /// `exit`: ends the thread.
    Exit,
    /// A call.
    Call,
    /// Touches memory or synchronises, and is not covered yet.
    NotCovered {
        /// What it is.
        what: &'static str,
        /// It may order other accesses, so that what is found without it is doubtful.
        orders: bool,
    },
    /// Not in the table, and has an address operand: it may touch memory.
    Unknown,
}
