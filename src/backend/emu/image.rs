//! A kernel and all it can call, decoded: what the machine executes. Nothing borrows from the text.

use super::regs::{Compute, Dst, PredDst, PredSrc, Src};
use crate::abi::Payload;
use crate::instrument::SiteId;
use crate::isa::{BarrierKind, ClusterBarrier, GroupKind, GroupOp, ImageAccess};
use crate::span::Span;

/// One instruction.
pub(super) struct Op {
    /// What it does.
    pub(super) code: Code,
    /// Its predicate.
    pub(super) guard: Option<PredSrc>,
    /// What it logs, natively.
    pub(super) site: Option<LoggedSite>,
    /// Its index among the unlogged instructions.
    pub(super) unlogged: Option<u32>,
    /// Where it stands.
    pub(super) span: Span,
    /// Whether it is an instruction of the program, or where inserted code belongs.
    pub(super) part: Part,
    /// An instruction of the program that accesses memory which others see.
    pub(super) visible: bool,
}

impl Op {
    /// Lanes for which its predicate holds, in the frame whose predicates begin here.
    #[inline]
    pub(super) fn guarded(&self, preds: &[u32], base: u32) -> u32 {
        let Some(guard) = self.guard else { return u32::MAX };
        let bits = guard.slot.map_or(0, |slot| preds[(base + slot) as usize]);
        if guard.negated { !bits } else { bits }
    }
}

/// Which registers an instruction reads and writes, by their rows in the frame.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    pub(super) reads: Box<[u32]>,
    /// Read for an address.
    pub(super) addresses: Box<[u32]>,
    pub(super) writes: Box<[u32]>,
    pub(super) uses: Uses,
}

/// What an instruction does with the values that it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Uses {
    /// What it does depends on all of them.
    #[default]
    All,
    /// They are stored.
    Stored,
    /// They are moved to what it writes.
    Moved,
    /// It depends on other things whether they matter.
    Nothing,
}

/// Where an instruction of an instrumented text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The program's own: a schedule point.
    Original,
    /// Inserted code that belongs to the next original instruction.
    Before,
    /// Inserted code that belongs to the last original instruction.
    After,
    /// Inside an inserted function; belongs to whoever called it.
    Runtime,
}

/// A site with what its records hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedSite {
    pub(super) id: SiteId,
    pub(super) payload: Payload,
}

/// What an instruction does.
pub(super) enum Code {
    /// Registers only.
    Compute(Compute),
    /// `ld`, `st`
    Memory(Box<Transfer>),
    /// `atom`, `red`
    Atomic(Box<Atomic>),
    /// Fences: nothing but a record.
    Fence,
    /// Nothing at all.
    Nothing,
    /// To a label, which decoding replaces by a position.
    Branch {
        /// Where to.
        target: u32,
        /// Backwards, over an access that may wait for others.
        spins: bool,
    },
    /// `brx.idx`
    BranchTable(Src, Box<[u32]>),
    /// A call.
    Call(Box<Call>),
    /// `ret` of this function (index in `Image::functions`).
    Return(u32),
    /// `exit`
    Exit,
    /// `trap` and `brkpt`.
    Trap,
    /// `nanosleep`: another warp goes first.
    Yield,
    /// A CTA barrier.
    Barrier(Box<BarrierOp>),
    /// `barrier.cluster`
    ClusterBarrier(ClusterBarrier),
    /// An asynchronous copy, store or reduction.
    Copy(Box<CopyOp>),
    /// A copy or reduction of a box of a tensor.
    Tensor(Box<TensorOp>),
    /// Groups of copies.
    Group(GroupOp),
    /// `mbarrier`
    Mbarrier(Box<MbarrierCode>),
    /// `st.bulk`, `discard`
    Fill(Box<FillOp>),
    /// `tex`, `tld4`, `suld`, `sust`
    Image(Box<ImageCode>),
    /// `txq`, `suq`
    Query(Box<Query>),
    /// A matrix instruction, which all live lanes of the warp execute together.
    Matrix(Box<MatrixOp>),
    /// A warp instruction whose lanes wait for each other.
    Converge(Box<ConvergeOp>),
    /// Changes the thread's stack of local memory.
    Stack(StackOp),
    /// Cannot be executed; the text says why.
    Poison(Box<str>),
}

/// Where a memory operand points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Generic,
    Global,
    /// The block's own.
    Shared,
    /// The cluster's.
    SharedCluster,
    Local,
    Const,
    Param,
}

/// The address operand of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub(super) space: Space,
    pub(super) base: Src,
    pub(super) offset: u64,
}

/// A load or a store.
pub(super) struct Transfer {
    pub(super) address: Address,
    /// Bytes of one element.
    pub(super) unit: u32,
    /// The elements' registers.
    pub(super) values: Values,
    /// Neither weak nor read-only: others may be waited for with it.
    pub(super) strong: bool,
    /// Loads extend the sign of narrow elements.
    pub(super) signed: bool,
}

/// The registers of a transfer, one for each element.
pub(super) enum Values {
    /// Loaded into.
    Load(Box<[Dst]>),
    /// Stored from.
    Store(Box<[Src]>),
}

impl Values {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Load(to) => to.len(),
            Self::Store(from) => from.len(),
        }
    }
}

/// The new value of an atomic from the old one and the operands.
pub(super) type Update = Box<dyn Fn(u64, u64, u64) -> u64 + Send + Sync>;

/// An atomic.
pub(super) struct Atomic {
    pub(super) address: Address,
    /// Bytes that one update covers.
    pub(super) unit: u32,
    /// Where the old values go.
    pub(super) old: Box<[Dst]>,
    /// First operand, by element.
    pub(super) b: Box<[Src]>,
    /// Second operand, of `cas`.
    pub(super) c: Box<[Src]>,
    pub(super) update: Update,
    /// The old value does not matter to the new one.
    pub(super) overwrites: bool,
    /// A 16-byte exchange or compare-and-swap: both words together.
    pub(super) wide_cas: bool,
}

/// An asynchronous operation.
pub(super) struct CopyOp {
    pub(super) to: Address,
    pub(super) from: CopySource,
    pub(super) bytes: CopyLength,
    /// What `bytes` and the addresses must be multiples of.
    pub(super) align: u32,
    /// In the async proxy.
    pub(super) bulk: bool,
    pub(super) completion: CopyCompletion,
    /// Mask of the blocks that get the data.
    pub(super) multicast: Option<Src>,
    /// Bytes of an element, and what becomes of it.
    pub(super) reduce: Option<(u32, Update)>,
}

/// A copy between shared memory and a box of a tensor.
pub(super) struct TensorOp {
    /// Where the tensor map is.
    pub(super) map: Address,
    /// Coordinates of the box.
    pub(super) at: Box<[Src]>,
    pub(super) shared: Address,
    /// From global memory, and not to it.
    pub(super) loads: bool,
    pub(super) completion: CopyCompletion,
    /// Mask of the blocks that get the data.
    pub(super) multicast: Option<Src>,
    /// What becomes of an element, by the number of its type; `None` for types without such a reduction.
    pub(super) reduce: Option<Box<[Option<Update>]>>,
}

/// Where the data of an asynchronous operation comes from.
pub(super) enum CopySource {
    Memory(Address),
    /// Elements of so many bytes.
    Registers(Box<[Src]>, u32),
}

/// How much an asynchronous operation moves.
#[derive(Clone, Copy)]
pub(super) enum CopyLength {
    Static(u32),
    /// So much, of which as much is read as the operand says; the rest is zeros.
    AtMost(u32, Src),
    /// All or, if the predicate holds, zeros.
    Unless(u32, PredSrc),
    Operand(Src),
}

/// By what an asynchronous operation completes.
#[derive(Clone, Copy)]
pub(super) enum CopyCompletion {
    Group,
    BulkGroup,
    Mbarrier(Address),
}

impl CopyCompletion {
    /// The groups of the issuing thread by which it is.
    pub(super) fn group(&self) -> Option<GroupKind> {
        match self {
            Self::Group => Some(GroupKind::Copy),
            Self::BulkGroup => Some(GroupKind::Bulk),
            Self::Mbarrier(_) => None,
        }
    }
}

/// `mbarrier` with an address, and `cp.async.mbarrier.arrive`.
pub(super) struct MbarrierCode {
    pub(super) address: Address,
    pub(super) action: MbarrierAction,
}

/// What is done with an mbarrier.
pub(super) enum MbarrierAction {
    Init(Src),
    Inval,
    Arrive {
        state: Dst,
        count: Option<Src>,
        expect: Option<Src>,
        drop: bool,
        /// The phase must not end by it.
        no_complete: bool,
    },
    ExpectTx(Src),
    CompleteTx(Src),
    Wait {
        done: PredDst,
        phase: Src,
        parity: bool,
    },
    /// When the thread's copies are complete.
    CopyArrive {
        increments: bool,
    },
}

/// A write of a range.
pub(super) struct FillOp {
    pub(super) address: Address,
    /// Bytes, where an operand says so.
    pub(super) bytes: Option<Src>,
}

/// An access to a texture or a surface.
pub(super) struct ImageCode {
    pub(super) access: ImageAccess,
    pub(super) handle: Src,
    pub(super) coordinates: Box<[Src]>,
    pub(super) values: Values,
    /// Bytes of one of the values.
    pub(super) unit: u32,
    /// The channel that is gathered.
    pub(super) channel: usize,
}

/// A question about a texture or a surface.
pub(super) struct Query {
    pub(super) surface: bool,
    pub(super) handle: Src,
    /// Whose extent is asked for.
    pub(super) axis: usize,
    pub(super) to: Dst,
}

/// A matrix instruction.
pub(super) enum MatrixOp {
    /// `mma`, `movmatrix`
    Registers(Compute),
    /// `ldmatrix`, `stmatrix`: matrices of eight rows of eight 16-bit elements, one in each register; lanes give the
    /// addresses of the rows.
    Rows { address: Address, values: Values, transposed: bool },
    /// `wmma.load`, `wmma.store`
    Tile(TileOp),
    /// `wgmma.mma_async`
    Warpgroup(WarpgroupOp),
}

/// A line of a matrix that a warpgroup multiplies.
pub(super) type Line = [u8; crate::isa::warpgroup::LINE];

/// Multiplies the lines of the first matrix that are a warp's, none if they are in registers, and the columns of the second.
pub(super) type Multiply = Box<dyn Fn(&mut super::regs::Regs<'_>, u32, &[Line], &[Line]) + Send + Sync>;

/// A product of a warpgroup.
pub(super) struct WarpgroupOp {
    /// Descriptors of the matrices.
    pub(super) a: Option<Src>,
    pub(super) b: Src,
    pub(super) columns: u16,
    pub(super) transposed: (bool, bool),
    pub(super) multiply: Multiply,
}

/// A matrix in memory that a warp loads or stores together.
pub(super) struct TileOp {
    pub(super) address: Address,
    pub(super) values: Values,
    /// Elements from line to line, where an operand says so.
    pub(super) stride: Option<Src>,
    /// Elements of a line.
    pub(super) length: u32,
    pub(super) lines: u32,
    /// Lines are columns.
    pub(super) columns: bool,
    /// Bytes of what is moved at once: an element, or a word of small ones.
    pub(super) bytes: u32,
    /// Elements in that. `length` counts such, but the stride elements.
    pub(super) together: u32,
    /// How many such one register holds.
    pub(super) packed: u32,
}

/// `bar` and `barrier`.
pub(super) struct BarrierOp {
    pub(super) kind: BarrierKind,
    pub(super) id: Src,
    pub(super) count: Option<Src>,
    pub(super) reduce: Option<BarrierReduce>,
}

/// The reduction of `barrier.red`.
pub(super) struct BarrierReduce {
    pub(super) input: PredSrc,
    pub(super) output: ReduceOutput,
}

/// Where a barrier's reduction goes.
#[derive(Clone, Copy)]
pub(super) enum ReduceOutput {
    Popc(Dst),
    And(PredDst),
    Or(PredDst),
}

/// What the lanes of a converging instruction bring and take.
pub(super) struct ConvergeOp {
    /// Lanes wait for those of this mask; without, they run at once with those that are there.
    pub(super) mask: Option<Src>,
    /// Instructions meet only their like.
    pub(super) class: u32,
    /// Up to three inputs; predicates come as 0 and 1.
    pub(super) inputs: [Src; 3],
    pub(super) exchange: Exchange,
}

/// What all lanes that met brought: inputs by lane, and which lanes they are.
pub(super) struct Met<'m> {
    pub(super) inputs: &'m [[u64; 32]; 3],
    pub(super) lanes: u32,
}

/// Computes and writes the results of the lanes in the mask.
pub(super) type Exchange = Box<dyn Fn(&mut super::regs::Regs<'_>, u32, &Met<'_>) + Send + Sync>;

/// A call.
pub(super) struct Call {
    /// The function it is in.
    pub(super) caller: u32,
    pub(super) target: Target,
    pub(super) args: Box<[Slot]>,
    pub(super) rets: Box<[Slot]>,
}

/// Who is called.
pub(super) enum Target {
    /// Index in `Image::functions`.
    Function(u32),
    /// By address.
    Indirect(Src),
    /// A function that the driver provides.
    Builtin(Builtin),
    /// Nobody that is known.
    Unknown(Box<str>),
}

/// Functions that need no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builtin {
    Vprintf,
    Malloc,
    Free,
    AssertFail,
}

/// A place for one argument or result, in the frame of its function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Slot {
    /// In the frame's local memory.
    Local { offset: u64, bytes: u64 },
    /// A value or a register.
    Value(Src),
    /// A predicate register.
    Pred(PredDst),
    /// `_`
    Sink,
}

/// Operations on the stack of local memory.
pub(super) enum StackOp {
    /// `alloca`
    Alloca { to: Dst, bytes: Src, align: u64 },
    /// `stacksave`
    Save(Dst),
    /// `stackrestore`
    Restore(Src),
}

/// A decoded function.
#[derive(Clone, Debug, Default)]
pub(super) struct Function {
    pub(super) entry: u32,
    pub(super) registers: u32,
    /// Those that no inserted code declares.
    pub(super) own_registers: u32,
    pub(super) predicates: u32,
    pub(super) local_bytes: u64,
    pub(super) params: Vec<Slot>,
    pub(super) returns: Vec<Slot>,
    pub(super) body: bool,
}

/// A kernel and all it can call.
#[derive(Default)]
pub(super) struct Image {
    pub(super) ops: Vec<Op>,
    /// What each of them does with registers.
    pub(super) flows: Vec<Flow>,
    pub(super) functions: Vec<Function>,
    /// The kernel, among them.
    pub(super) kernel: u32,
    /// Bytes of the kernel's parameters.
    pub(super) param_bytes: u64,
    /// Offset and size of each kernel parameter.
    pub(super) params: Vec<(u64, u64)>,
    /// Bytes of static shared memory.
    pub(super) shared_bytes: u64,
    /// Where dynamic shared memory begins.
    pub(super) dynamic_base: u64,
    /// Something in it looks at a clock.
    pub(super) timed: bool,
    /// Offsets of the kernel's logged shared variables, by site.
    pub(super) shared_sites: Vec<(LoggedSite, u64)>,
}
