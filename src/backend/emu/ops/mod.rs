//! Opcodes. A newcomer adds one by a row in `TABLE` and the function it names, which reads modifiers and operands and
//! gives the code to run: for register operations, a closure over a row of lanes made by one of the helpers below.
//!
//! Of the opcodes of PTX ISA 9.0 that the isa table has, these are not here; a run that comes to one ends there, inconclusive, and
//! names it (a test holds the list):
//!
//! | opcode | what it is |
//! | --- | --- |
//! | `clusterlaunchcontrol` | asks for the launch of a cluster to be cancelled; sm_100 |
//! | `istypep` | asks what kind of handle a `.texref` and its like are |
//! | `multimem` | accesses to the memory of several devices at once |
//! | `tcgen05` | the matrix units and the memory of their own that sm_100a has |
//! | `tensormap` | changes a tensor map in memory |

mod address;
mod asynchronous;
mod atomic;
mod barrier;
mod bits;
mod carry;
mod compare;
mod control;
mod convert;
mod eight;
mod exact;
mod float;
mod fragment;
mod half;
mod image;
mod integer;
mod logic;
mod matrix;
mod memory;
mod moves;
mod numeric;
mod packed;
mod tensor;
mod video;
mod warp;
mod warpgroup;

use super::decode::{Bad, Cx};
use super::image::Code;
use super::regs::{Dst, Regs, Src, Word};
use super::types::Ty;

pub(super) use half::to_f32 as half_to_float;

type Decode = fn(&Cx<'_, '_>) -> Result<Code, Bad>;

/// Sorted by opcode.
const TABLE: &[(&str, Decode)] = &[
    ("abs", numeric::abs),
    ("activemask", warp::activemask),
    ("add", numeric::add),
    ("addc", carry::addc),
    ("alloca", address::alloca),
    ("and", logic::and),
    ("applypriority", control::nothing),
    ("atom", atomic::atom),
    ("bar", barrier::barrier),
    ("barrier", barrier::barrier),
    ("bfe", bits::bfe),
    ("bfi", bits::bfi),
    ("bfind", bits::bfind),
    ("bmsk", bits::bmsk),
    ("bra", control::bra),
    ("brev", bits::brev),
    ("brkpt", control::trap),
    ("brx", control::brx),
    ("call", control::call),
    ("clz", bits::clz),
    ("cnot", logic::cnot),
    ("copysign", float::copysign),
    ("cos", float::cos),
    ("cp", asynchronous::cp),
    ("createpolicy", moves::zero),
    ("cvt", convert::cvt),
    ("cvta", address::cvta),
    ("discard", asynchronous::fill),
    ("div", numeric::div),
    ("dp2a", packed::dp2a),
    ("dp4a", packed::dp4a),
    ("elect", warp::elect),
    ("ex2", float::ex2),
    ("exit", control::exit),
    ("fence", control::fence),
    ("fma", float::fma),
    ("fns", bits::fns),
    ("getctarank", address::getctarank),
    ("griddepcontrol", control::nothing),
    ("isspacep", address::isspacep),
    ("ld", memory::ld),
    ("ldmatrix", matrix::ldmatrix),
    ("ldu", memory::ld),
    ("lg2", float::lg2),
    ("lop3", logic::lop3),
    ("mad", numeric::mad),
    ("mad24", integer::mad24),
    ("madc", carry::madc),
    ("mapa", address::mapa),
    ("match", warp::matching),
    ("max", numeric::max),
    ("mbarrier", asynchronous::mbarrier),
    ("membar", control::fence),
    ("min", numeric::min),
    ("mma", matrix::mma),
    ("mov", moves::mov),
    ("movmatrix", matrix::movmatrix),
    ("mul", numeric::mul),
    ("mul24", integer::mul24),
    ("nanosleep", control::nanosleep),
    ("neg", numeric::neg),
    ("not", logic::not),
    ("or", logic::or),
    ("pmevent", control::nothing),
    ("popc", bits::popc),
    ("prefetch", control::nothing),
    ("prefetchu", control::nothing),
    ("prmt", packed::prmt),
    ("rcp", float::rcp),
    ("red", atomic::red),
    ("redux", warp::redux),
    ("rem", integer::rem),
    ("ret", control::ret),
    ("rsqrt", float::rsqrt),
    ("sad", integer::sad),
    ("selp", compare::selp),
    ("set", compare::set),
    ("setmaxnreg", control::nothing),
    ("setp", compare::setp),
    ("shf", logic::shf),
    ("shfl", warp::shfl),
    ("shl", logic::shl),
    ("shr", logic::shr),
    ("sin", float::sin),
    ("slct", compare::slct),
    ("sqrt", float::sqrt),
    ("st", memory::st),
    ("stackrestore", address::stackrestore),
    ("stacksave", address::stacksave),
    ("stmatrix", matrix::stmatrix),
    ("sub", numeric::sub),
    ("subc", carry::subc),
    ("suld", image::access),
    ("suq", image::query),
    ("sured", image::access),
    ("sust", image::access),
    ("szext", bits::szext),
    ("tanh", float::tanh),
    ("testp", float::testp),
    ("tex", image::access),
    ("tld4", image::access),
    ("trap", control::trap),
    ("txq", image::query),
    ("vabsdiff", video::absdiff),
    ("vabsdiff2", video::absdiff2),
    ("vabsdiff4", video::absdiff4),
    ("vadd", video::add),
    ("vadd2", video::add2),
    ("vadd4", video::add4),
    ("vavrg2", video::avrg2),
    ("vavrg4", video::avrg4),
    ("vmad", video::mad),
    ("vmax", video::max),
    ("vmax2", video::max2),
    ("vmax4", video::max4),
    ("vmin", video::min),
    ("vmin2", video::min2),
    ("vmin4", video::min4),
    ("vote", warp::vote),
    ("vset", video::set),
    ("vset2", video::set2),
    ("vset4", video::set4),
    ("vshl", video::shl),
    ("vshr", video::shr),
    ("vsub", video::sub),
    ("vsub2", video::sub2),
    ("vsub4", video::sub4),
    ("wgmma", warpgroup::wgmma),
    ("wmma", matrix::wmma),
    ("xor", logic::xor),
];

/// The code of an instruction, or why there is none.
pub(super) fn decode(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let opcode = cx.instruction.opcode.text;
    match TABLE.binary_search_by(|(name, _)| (*name).cmp(opcode)) {
        Ok(at) => TABLE[at].1(cx),
        Err(_) => cx.refuse(),
    }
}

/// `d = f(a)` for each lane.
fn unary<A: Word, R: Word>(
    cx: &Cx<'_, '_>,
    ty: Ty,
    f: impl Fn(A) -> R + Send + Sync + 'static,
) -> Result<Code, Bad> {
    let (d, a) = (cx.dst(0)?, cx.src(1, ty)?);
    Ok(lanewise1(d, a, move |a| f(A::of(a)).bits()))
}

/// `d = f(a, b)` for each lane.
fn binary<A: Word, R: Word>(
    cx: &Cx<'_, '_>,
    ty: Ty,
    f: impl Fn(A, A) -> R + Send + Sync + 'static,
) -> Result<Code, Bad> {
    let (d, a, b) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?);
    Ok(lanewise2(d, a, b, move |a, b| f(A::of(a), A::of(b)).bits()))
}

/// `d = f(a, b, c)` for each lane, where all have one type.
fn ternary<A: Word, R: Word>(
    cx: &Cx<'_, '_>,
    ty: Ty,
    f: impl Fn(A, A, A) -> R + Send + Sync + 'static,
) -> Result<Code, Bad> {
    let (d, a, b, c) = (cx.dst(0)?, cx.src(1, ty)?, cx.src(2, ty)?, cx.src(3, ty)?);
    Ok(lanewise3(d, a, b, c, move |a, b, c| f(A::of(a), A::of(b), A::of(c)).bits()))
}

/// A register operation of one source.
fn lanewise1(d: Dst, a: Src, f: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Code {
    compute(move |regs, mask| regs.map1(d, mask, a, &f))
}

/// A register operation of two sources.
fn lanewise2(d: Dst, a: Src, b: Src, f: impl Fn(u64, u64) -> u64 + Send + Sync + 'static) -> Code {
    compute(move |regs, mask| regs.map2(d, mask, a, b, &f))
}

/// A register operation of three sources.
fn lanewise3(
    d: Dst,
    a: Src,
    b: Src,
    c: Src,
    f: impl Fn(u64, u64, u64) -> u64 + Send + Sync + 'static,
) -> Code {
    compute(move |regs, mask| regs.map3(d, mask, (a, b, c), &f))
}

/// A register operation of any shape.
fn compute(f: impl Fn(&mut Regs<'_>, u32) + Send + Sync + 'static) -> Code {
    Code::Compute(Box::new(f))
}

/// Evaluates an expression with `$T` standing for the integer type of `$ty`; anything else is refused.
macro_rules! with_int {
    ($cx:expr, $ty:expr, $T:ident => $body:expr) => {
        match $ty {
            Ty::U(8) | Ty::B(8) => {
                type $T = u8;
                $body
            }
            Ty::S(8) => {
                type $T = i8;
                $body
            }
            Ty::U(16) | Ty::B(16) => {
                type $T = u16;
                $body
            }
            Ty::S(16) => {
                type $T = i16;
                $body
            }
            Ty::U(32) | Ty::B(32) => {
                type $T = u32;
                $body
            }
            Ty::S(32) => {
                type $T = i32;
                $body
            }
            Ty::U(64) | Ty::B(64) => {
                type $T = u64;
                $body
            }
            Ty::S(64) => {
                type $T = i64;
                $body
            }
            _ => $cx.refuse(),
        }
    };
}
use with_int;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_known_to_the_isa_table() {
        assert!(TABLE.is_sorted_by(|a, b| a.0 < b.0));
        for (opcode, _) in TABLE {
            assert!(crate::isa::lookup(opcode).is_some(), "{opcode}");
        }
    }

    #[test]
    fn opcodes_that_are_not_here_are_those_of_the_header() {
        let here = |opcode: &str| TABLE.binary_search_by(|row| row.0.cmp(opcode)).is_ok();
        let lacking: Vec<_> =
            crate::isa::rows().iter().map(|row| row.opcode).filter(|opcode| !here(opcode)).collect();
        let header = include_str!("mod.rs").lines().filter_map(|line| line.strip_prefix("//! | `"));
        let told: Vec<_> = header.filter_map(|line| line.split('`').next()).collect();
        assert_eq!(lacking, told);
    }
}
