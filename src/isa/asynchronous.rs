//! What asynchronous operations, mbarriers, clusters and proxies are, and how they are read.
//!
//! Shapes and defaults are those of the PTX ISA 9.0: `mbarrier.arrive` is `.release.cta`, its waits are `.acquire.cta`,
//! `barrier.cluster.arrive` is `.release` and its wait `.acquire`. Only the scope of an mbarrier
//! operation that names none is taken for `.cluster`, since remote arrivals leave it out. An operation is *issued* by its
//! instruction and *completes* later, by a group of the issuing thread or by an mbarrier.

use super::classify::{
    Classified, at, certain, is_address, is_eviction_hint, op_of, scope_of, space_of, spaces, unordered,
};
use super::{AtomOp, Effect, Order, Scope, Space};
use crate::ptx::ast::{Instruction, Operand, Word};
use crate::ptx::type_bytes;

/// By what an asynchronous operation completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Completion {
    /// The issuing thread's groups of `cp.async`, or `cp.async.mbarrier.arrive`.
    Group,
    /// The issuing thread's bulk groups.
    BulkGroup,
    /// `complete_tx` on this operand, an mbarrier of the block that is written to.
    Mbarrier(u8),
}

/// How many bytes an asynchronous operation moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyBytes {
    /// As many as the instruction says.
    Static(u32),
    /// Writes as many as the instruction says, and reads as this operand says: at most so many, or none if it is a
    /// predicate that holds.
    Limited(u32, u8),
    /// This operand.
    Operand(u8),
    /// A box of a tensor of this rank, which a tensor map describes: the operand of global memory is the map with the coordinates
    /// of the box.
    Tensor(u8),
}

/// An asynchronous copy, store or reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsyncCopy {
    /// In the async proxy: bulk copies. Others are in the generic proxy.
    pub bulk: bool,
    /// Where the data comes from; `None` for registers.
    pub from: Option<Space>,
    /// Where it goes.
    pub to: Space,
    /// Operand of the source address, or of the register or vector.
    pub source: u8,
    /// Operand of the destination address.
    pub destination: u8,
    /// Bytes.
    pub bytes: CopyBytes,
    /// The operation of a reduction, `None` for a copy.
    pub op: Option<AtomOp>,
    /// Bytes of one element of a reduction or store, else 0.
    pub element: u8,
    /// How it completes.
    pub completion: Completion,
    /// Operand of the mask of blocks that get the data; `None`: one block.
    pub multicast: Option<u8>,
}

/// Which groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupKind {
    /// `cp.async`
    Copy,
    /// `cp.async.bulk`
    Bulk,
    /// `wgmma.mma_async`
    Warpgroup,
}

impl GroupKind {
    /// How many there are.
    pub const COUNT: usize = 3;
}

/// What is done with the executing thread's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupOp {
    /// What was issued since the last commit becomes a group.
    Commit(GroupKind),
    /// Waits until at most this many of the latest groups are pending; `reads` waits for the reads of the sources only.
    Wait {
        /// Which groups.
        kind: GroupKind,
        /// Groups that may stay.
        pending: u32,
        /// Only the reads.
        reads: bool,
    },
    /// `cp.async.wait_all`: also for what was not committed.
    WaitAll,
}

/// What is done with an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MbarrierOp {
    /// Makes one that expects as many arrivals as this operand says.
    Init {
        /// The operand.
        count: u8,
    },
    /// Ends it.
    Inval,
    /// Arrives.
    Arrive {
        /// Operand of the number of arrivals; `None` is 1.
        count: Option<u8>,
        /// Operand of bytes that the phase is to wait for, besides.
        expect: Option<u8>,
        /// Lowers the expected count of later phases as well.
        drop: bool,
    },
    /// More bytes are expected.
    ExpectTx {
        /// Their operand.
        bytes: u8,
    },
    /// Bytes have come.
    CompleteTx {
        /// Their operand.
        bytes: u8,
    },
    /// Asks whether a phase is complete; only a positive answer says anything.
    Wait {
        /// Operand of the phase's state or parity.
        phase: u8,
        /// It is the parity.
        parity: bool,
    },
    /// Arrives when all `cp.async` that the thread has issued are complete.
    CopyArrive {
        /// The expected count was not made for it: it is raised by one first.
        increments: bool,
    },
}

/// An operation on an mbarrier object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mbarrier {
    /// What.
    pub op: MbarrierOp,
    /// Operand of its address.
    pub address: u8,
    /// Space of the address.
    pub space: Space,
    /// `Release` or `Relaxed` of arrivals, `Acquire` or `Relaxed` of waits, else `Relaxed`.
    pub order: Order,
    /// The scope of that. Where none is written, the ISA says `.cta`, but pipelines across the blocks of a cluster rely on
    /// more, and it is taken for `.cluster`.
    pub scope: Scope,
}

/// `barrier.cluster`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterBarrier {
    /// Arrives.
    Arrive {
        /// And releases.
        release: bool,
    },
    /// Waits for all threads of the cluster to arrive, and acquires.
    Wait,
}

/// A fence between the generic proxy and another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyFence {
    /// `fence.proxy.async`, for all memory.
    Async,
    /// For global memory.
    AsyncGlobal,
    /// For shared memory.
    AsyncShared,
    /// `fence.mbarrier_init`: releases the thread's initialisations of mbarriers to the cluster.
    MbarrierInit,
}

/// The first modifier that none of these describe.
fn unknown<'a>(
    instruction: &Instruction<'a>,
    known: &[&str],
    also: impl Fn(&str) -> bool,
) -> Option<Word<'a>> {
    instruction.modifiers().iter().find(|word| !(known.contains(&word.text) || also(word.text)))
}

/// `cp...`
pub(super) fn copy<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let has = |word| instruction.has(word);
    if has("prefetch") {
        return certain(Effect::None);
    }
    if has("commit_group") {
        return certain(Effect::Group(GroupOp::Commit(group_kind(instruction))));
    }
    if has("wait_all") {
        return certain(Effect::Group(GroupOp::WaitAll));
    }
    if has("wait_group") {
        let Some(Operand::Int(pending, _)) = instruction.operands.first() else {
            return unordered("a wait for groups whose number is no constant");
        };
        let pending = u32::try_from(pending.get()).unwrap_or(u32::MAX);
        let wait = GroupOp::Wait { kind: group_kind(instruction), pending, reads: has("read") };
        return certain(Effect::Group(wait));
    }
    if has("mbarrier") {
        return copy_arrive(instruction);
    }
    if has("bulk") { bulk(instruction) } else { copy_async(instruction) }
}

fn group_kind(instruction: &Instruction<'_>) -> GroupKind {
    if instruction.has("bulk") { GroupKind::Bulk } else { GroupKind::Copy }
}

fn copy_arrive<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let mbarrier = Mbarrier {
        op: MbarrierOp::CopyArrive { increments: !instruction.has("noinc") },
        address: 0,
        space: spaces(instruction).next().unwrap_or(Space::Generic),
        order: Order::Relaxed,
        scope: Scope::Cta,
    };
    if !instruction.operands.first().is_some_and(is_address) {
        return certain(Effect::Unknown);
    }
    let known = ["async", "mbarrier", "arrive", "noinc", "b64"];
    let unknown = unknown(instruction, &known, |word| space_of(word).is_some());
    Classified { effect: Effect::Mbarrier(mbarrier), unknown }
}

/// `cp.async.{ca,cg}.shared.global [dst], [src], bytes{, read-at-most | , ignore}{, policy}`
fn copy_async<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let operands = &instruction.operands[..];
    let Some(Operand::Int(bytes, _)) = operands.get(2) else { return certain(Effect::Unknown) };
    if !operands.iter().take(2).all(is_address) {
        return certain(Effect::Unknown);
    }
    let bytes = u32::try_from(bytes.get()).unwrap_or(0);
    let policy = usize::from(instruction.has("L2::cache_hint"));
    let bytes = match operands.get(3) {
        Some(_) if operands.len() > 3 + policy => CopyBytes::Limited(bytes, 3),
        _ => CopyBytes::Static(bytes),
    };
    let copy = AsyncCopy {
        bulk: false,
        from: Some(Space::Global),
        to: Space::Shared,
        source: 1,
        destination: 0,
        bytes,
        op: None,
        element: 0,
        completion: Completion::Group,
        multicast: None,
    };
    let known = ["async", "ca", "cg"];
    let unknown = unknown(instruction, &known, |word| space_of(word).is_some() || is_eviction_hint(word));
    Classified { effect: Effect::AsyncCopy(copy), unknown }
}

/// `cp.async.bulk` and `cp.reduce.async.bulk`, with and without tensor maps.
fn bulk<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let has = |word| instruction.has(word);
    let mut spaces = spaces(instruction);
    let (Some(to), Some(from)) = (spaces.next(), spaces.next()) else {
        return unordered("a bulk copy without its state spaces");
    };
    let operands = &instruction.operands[..];
    let grouped = has("bulk_group");
    let tensor = has("tensor");
    if has("cp_mask") {
        return unordered("a bulk copy with a byte mask");
    }
    if tensor && let Some(refused) = not_tiled(instruction, grouped) {
        return refused;
    }
    let rank = RANKS.iter().position(|rank| has(rank)).map_or(0, |at| at + 1);
    if tensor && rank == 0 {
        return unordered("a tensor copy without its rank");
    }
    // `[dst], [src], n{, [mbar]}{, mask}{, policy}`; with a tensor map `[dst], [map, {..}], [mbar]{, {..}}{, mask}{, policy}`
    // or `[map, {..}], [src]`.
    let mbarrier = if tensor { 2 } else { 3 };
    let addresses = if tensor && grouped { 2 } else { 2 + usize::from(!grouped) };
    if operands.iter().filter(|o| is_address(o)).count() < addresses
        || (!grouped && !operands.get(mbarrier).is_some_and(is_address))
    {
        return certain(Effect::Unknown);
    }
    let multicast = has("multicast::cluster").then(|| {
        let vector = operands.get(mbarrier + 1).is_some_and(|o| matches!(o, Operand::Vector(..)));
        at(mbarrier + 1 + usize::from(vector))
    });
    let element = instruction.modifiers().iter().filter_map(|word| type_bytes(word.text)).last().unwrap_or(0);
    let copy = AsyncCopy {
        bulk: true,
        from: Some(from),
        to,
        source: 1,
        destination: 0,
        bytes: if tensor { CopyBytes::Tensor(at(rank)) } else { CopyBytes::Operand(2) },
        op: instruction.modifiers().iter().find_map(|word| op_of(word.text)),
        element: u8::try_from(element).unwrap_or(0),
        completion: if grouped { Completion::BulkGroup } else { Completion::Mbarrier(at(mbarrier)) },
        multicast,
    };
    let reduction = instruction.has("reduce");
    if reduction && copy.op.is_none() {
        return unordered("a bulk reduction of unknown operation");
    }
    let known = [
        "async",
        "bulk",
        "reduce",
        "tensor",
        "bulk_group",
        "mbarrier::complete_tx::bytes",
        "multicast::cluster",
        "noftz",
    ];
    let unknown = unknown(instruction, &known, |word| {
        let shape = tensor && (RANKS.contains(&word) || word == "tile" || word == "cta_group::1");
        let reduces = reduction && (op_of(word).is_some() || type_bytes(word).is_some());
        space_of(word).is_some() || is_eviction_hint(word) || shape || reduces
    });
    Classified { effect: Effect::AsyncCopy(copy), unknown }
}

/// The ranks of tensors.
const RANKS: [&str; 5] = ["1d", "2d", "3d", "4d", "5d"];

/// Tensor copies of other shapes than boxes, and those that complete in another block. What completes by a group orders nothing
/// that others would wait for.
fn not_tiled<'a>(instruction: &Instruction<'a>, grouped: bool) -> Option<Classified<'a>> {
    let has = |start| instruction.modifiers().iter().any(|word| word.text.starts_with(start));
    let what = if has("im2col") {
        "a tensor copy by im2col"
    } else if has("tile::gather4") || has("tile::scatter4") {
        "a tensor copy of rows that are picked"
    } else if has("cta_group::2") {
        "a tensor copy for two blocks"
    } else {
        return None;
    };
    Some(certain(Effect::NotCovered { what, orders: !grouped }))
}

/// `st.async`, `red.async` to the shared memory of a cluster.
pub(super) fn remote<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let operands = &instruction.operands[..];
    if !instruction.has("mbarrier::complete_tx::bytes") {
        return unordered("an asynchronous store to global memory");
    }
    if !operands.first().is_some_and(is_address) || !operands.get(2).is_some_and(is_address) {
        return certain(Effect::Unknown);
    }
    let element = instruction.modifiers().iter().filter_map(|word| type_bytes(word.text)).last().unwrap_or(0);
    let count = match operands.get(1) {
        Some(Operand::Vector(items)) => items.len() as u32,
        _ => 1,
    };
    let op = instruction.modifiers().iter().find_map(|word| op_of(word.text));
    let copy = AsyncCopy {
        bulk: false,
        from: None,
        to: spaces(instruction).next().unwrap_or(Space::Generic),
        source: 1,
        destination: 0,
        bytes: CopyBytes::Static(element.saturating_mul(count)),
        op,
        element: u8::try_from(element).unwrap_or(0),
        completion: Completion::Mbarrier(2),
        multicast: None,
    };
    let known = ["async", "weak", "relaxed", "mbarrier::complete_tx::bytes", "v2", "v4"];
    let unknown = unknown(instruction, &known, |word| {
        space_of(word).is_some()
            || scope_of(word).is_some()
            || type_bytes(word).is_some()
            || op_of(word).is_some()
    });
    Classified { effect: Effect::AsyncCopy(copy), unknown }
}

/// `mbarrier...`
pub(super) fn mbarrier<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let has = |word| instruction.has(word);
    if has("pending_count") {
        return certain(Effect::None);
    }
    let operands = &instruction.operands[..];
    let Some(address) = operands.iter().position(is_address) else { return certain(Effect::Unknown) };
    let next = |n: usize| (operands.len() > address + n).then(|| at(address + n));
    let waits = has("test_wait") || has("try_wait");
    let arrives = has("arrive") || has("arrive_drop");
    let op = if has("init") {
        next(1).map(|count| MbarrierOp::Init { count })
    } else if has("inval") {
        Some(MbarrierOp::Inval)
    } else if arrives {
        let (count, expect) = if has("expect_tx") { (None, next(1)) } else { (next(1), None) };
        Some(MbarrierOp::Arrive { count, expect, drop: has("arrive_drop") })
    } else if has("expect_tx") {
        next(1).map(|bytes| MbarrierOp::ExpectTx { bytes })
    } else if has("complete_tx") {
        next(1).map(|bytes| MbarrierOp::CompleteTx { bytes })
    } else if waits {
        next(1).map(|phase| MbarrierOp::Wait { phase, parity: has("parity") })
    } else {
        None
    };
    let Some(op) = op else { return unordered("an mbarrier operation of unknown kind") };
    let order = match (waits, arrives, has("relaxed")) {
        (true, _, false) => Order::Acquire,
        (_, true, false) => Order::Release,
        _ => Order::Relaxed,
    };
    let mbarrier = Mbarrier {
        op,
        address: at(address),
        space: spaces(instruction).next().unwrap_or(Space::Generic),
        order,
        scope: instruction.modifiers().iter().find_map(|word| scope_of(word.text)).unwrap_or(Scope::Cluster),
    };
    let known = [
        "init",
        "inval",
        "arrive",
        "arrive_drop",
        "expect_tx",
        "complete_tx",
        "test_wait",
        "try_wait",
        "parity",
        "noComplete",
        "release",
        "acquire",
        "relaxed",
        "b64",
    ];
    let unknown = unknown(instruction, &known, |word| space_of(word).is_some() || scope_of(word).is_some());
    Classified { effect: Effect::Mbarrier(mbarrier), unknown }
}

/// `barrier.cluster...`
pub(super) fn cluster_barrier<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let op = if instruction.has("wait") {
        ClusterBarrier::Wait
    } else if instruction.has("arrive") {
        ClusterBarrier::Arrive { release: !instruction.has("relaxed") }
    } else {
        return unordered("a cluster barrier of unknown kind");
    };
    let known = ["cluster", "arrive", "wait", "release", "relaxed", "acquire", "aligned"];
    let unknown = unknown(instruction, &known, |_| false);
    Classified { effect: Effect::ClusterBarrier(op), unknown }
}

/// `fence.proxy...`, `fence.mbarrier_init...`, `membar.proxy...`
pub(super) fn proxy_fence<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let has = |word| instruction.has(word);
    if has("alias") {
        // Orders virtual aliases, which there are none of here.
        return certain(Effect::None);
    }
    if has("mbarrier_init") {
        let unknown = unknown(instruction, &["mbarrier_init", "release", "cluster"], |_| false);
        return Classified { effect: Effect::ProxyFence(ProxyFence::MbarrierInit), unknown };
    }
    if !has("async") {
        return unordered("a proxy fence other than `.async`");
    }
    let fence = match spaces(instruction).next() {
        None => ProxyFence::Async,
        Some(Space::Global) => ProxyFence::AsyncGlobal,
        Some(_) => ProxyFence::AsyncShared,
    };
    let unknown = unknown(instruction, &["proxy", "async"], |word| space_of(word).is_some());
    Classified { effect: Effect::ProxyFence(fence), unknown }
}
