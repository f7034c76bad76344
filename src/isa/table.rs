//! The table: one row per opcode word. An opcode that is not here passes through unchanged, and makes a run
//! inconclusive only if it has an address operand.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

/// How the modifiers and operands of an opcode are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Computes on registers, or is a hint: no effect on memory or order.
    Pure,
    /// `ld`, `ldu`
    Load,
    /// `st`
    Store,
    /// `atom`
    Atom,
    /// `red`
    Red,
    /// `fence`
    Fence,
    /// `membar`
    Membar,
    /// `bar`, `barrier`
    Barrier,
    /// A warp instruction whose mask is this operand, counted from the end.
    Converge {
        /// 1 is the last operand.
        mask_from_end: u8,
    },
    /// `ret`
    Return,
    /// `exit`
    Exit,
    /// `call`
    Call,
    /// `cp`
    AsyncCopy,
    /// `mbarrier`
    Mbarrier,
    /// `ldmatrix`
    MatrixLoad,
    /// `stmatrix`
    MatrixStore,
    /// `wmma`
    Tile,
    /// `wgmma`
    Wgmma,
    /// `tex`, `tld4`
    Texture,
    /// `suld`, `sust`, `sured`
    Surface,
    /// `discard`
    Discard,
    /// Touches memory or synchronises; not covered yet.
    NotCovered {
        /// What it is.
        what: &'static str,
        /// It may order other accesses.
        orders: bool,
    },
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The word before the first dot.
    pub opcode: &'static str,
    /// How to read it.
    pub meaning: Meaning,
}

const fn row(opcode: &'static str, meaning: Meaning) -> Row {
    Row { opcode, meaning }
}

/// It may order other accesses.
const fn orders(opcode: &'static str, what: &'static str) -> Row {
    row(opcode, Meaning::NotCovered { what, orders: true })
}

/// It only reads or writes.
const fn touches(opcode: &'static str, what: &'static str) -> Row {
    row(opcode, Meaning::NotCovered { what, orders: false })
}

use Meaning::{
    AsyncCopy, Atom, Barrier, Call, Converge, Discard, Exit, Fence, Load, MatrixLoad, MatrixStore, Mbarrier,
    Membar, Pure, Red, Return, Store, Surface, Texture, Tile, Wgmma,
};

/// Sorted by opcode.
const ROWS: &[Row] = &[
    row("abs", Pure),
    row("activemask", Pure),
    row("add", Pure),
    row("addc", Pure),
    row("alloca", Pure),
    row("and", Pure),
    row("applypriority", Pure),
    row("atom", Atom),
    row("bar", Barrier),
    row("barrier", Barrier),
    row("bfe", Pure),
    row("bfi", Pure),
    row("bfind", Pure),
    row("bmsk", Pure),
    row("bra", Pure),
    row("brev", Pure),
    row("brkpt", Pure),
    row("brx", Pure),
    row("call", Call),
    orders("clusterlaunchcontrol", "a cluster launch request"),
    row("clz", Pure),
    row("cnot", Pure),
    row("copysign", Pure),
    row("cos", Pure),
    row("cp", AsyncCopy),
    row("createpolicy", Pure),
    row("cvt", Pure),
    row("cvta", Pure),
    row("discard", Discard),
    row("div", Pure),
    row("dp2a", Pure),
    row("dp4a", Pure),
    row("elect", Converge { mask_from_end: 1 }),
    row("ex2", Pure),
    row("exit", Exit),
    row("fence", Fence),
    row("fma", Pure),
    row("fns", Pure),
    row("getctarank", Pure),
    // Orders grids that overlap by programmatic launch, which launches here do not.
    row("griddepcontrol", Pure),
    row("isspacep", Pure),
    row("istypep", Pure),
    row("ld", Load),
    row("ldmatrix", MatrixLoad),
    row("ldu", Load),
    row("lg2", Pure),
    row("lop3", Pure),
    row("mad", Pure),
    row("mad24", Pure),
    row("madc", Pure),
    row("mapa", Pure),
    row("match", Converge { mask_from_end: 1 }),
    row("max", Pure),
    row("mbarrier", Mbarrier),
    row("membar", Membar),
    row("min", Pure),
    row("mma", Pure),
    row("mov", Pure),
    row("movmatrix", Pure),
    row("mul", Pure),
    row("mul24", Pure),
    touches("multimem", "a multicast access"),
    row("nanosleep", Pure),
    row("neg", Pure),
    row("not", Pure),
    row("or", Pure),
    row("pmevent", Pure),
    row("popc", Pure),
    row("prefetch", Pure),
    row("prefetchu", Pure),
    row("prmt", Pure),
    row("rcp", Pure),
    row("red", Red),
    row("redux", Converge { mask_from_end: 1 }),
    row("rem", Pure),
    row("ret", Return),
    row("rsqrt", Pure),
    row("sad", Pure),
    row("selp", Pure),
    row("set", Pure),
    row("setmaxnreg", Pure),
    row("setp", Pure),
    row("shf", Pure),
    row("shfl", Converge { mask_from_end: 1 }),
    row("shl", Pure),
    row("shr", Pure),
    row("sin", Pure),
    row("slct", Pure),
    row("sqrt", Pure),
    row("st", Store),
    row("stackrestore", Pure),
    row("stacksave", Pure),
    row("stmatrix", MatrixStore),
    row("sub", Pure),
    row("subc", Pure),
    row("suld", Surface),
    row("suq", Pure),
    row("sured", Surface),
    row("sust", Surface),
    row("szext", Pure),
    row("tanh", Pure),
    orders("tcgen05", "a tensor memory operation"),
    orders("tensormap", "a tensor map update"),
    row("testp", Pure),
    row("tex", Texture),
    row("tld4", Texture),
    row("trap", Pure),
    row("txq", Pure),
    row("vabsdiff", Pure),
    row("vabsdiff2", Pure),
    row("vabsdiff4", Pure),
    row("vadd", Pure),
    row("vadd2", Pure),
    row("vadd4", Pure),
    row("vavrg2", Pure),
    row("vavrg4", Pure),
    row("vmad", Pure),
    row("vmax", Pure),
    row("vmax2", Pure),
    row("vmax4", Pure),
    row("vmin", Pure),
    row("vmin2", Pure),
    row("vmin4", Pure),
    row("vote", Converge { mask_from_end: 1 }),
    row("vset", Pure),
    row("vset2", Pure),
    row("vset4", Pure),
    row("vshl", Pure),
    row("vshr", Pure),
    row("vsub", Pure),
    row("vsub2", Pure),
    row("vsub4", Pure),
    row("wgmma", Wgmma),
    row("wmma", Tile),
    row("xor", Pure),
];

/// The row of an opcode word.
pub fn lookup(opcode: &str) -> Option<&'static Row> {
    static BY_NAME: LazyLock<FxHashMap<&str, &Row>> =
        LazyLock::new(|| ROWS.iter().map(|row| (row.opcode, row)).collect());
    BY_NAME.get(opcode).copied()
}

/// All rows.
pub fn rows() -> &'static [Row] {
    ROWS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_found() {
        assert!(ROWS.is_sorted_by(|a, b| a.opcode < b.opcode));
        assert_eq!(lookup("ld").map(|row| row.meaning), Some(Meaning::Load));
        assert!(lookup("frob").is_none());
    }
}
