//! Matrix instructions. `mma` has the fragments of the PTX ISA, in which one rule covers all shapes; those of `wmma` are
//! for each implementation to choose, and are as simple as can be. Products are exact; sums of floats are rounded to `f32`
//! (or `f64`) one by one, which hardware does otherwise: results may differ from it in the last bits.

use super::super::decode::{Bad, Cx};
use super::super::image::{Code, MatrixOp, Space, TileOp, Values};
use super::super::regs::{Dst, Regs, Src};
use super::super::types::{Ty, extend, low};
use super::float::{Round, canonical};
use super::{asynchronous, half};
use crate::abi::lanes;
use crate::isa::{self, Effect, Tile};

/// Elements of the largest operand: 32 by 16.
const MOST: usize = 512;

fn code(op: MatrixOp) -> Code {
    Code::Matrix(Box::new(op))
}

/// `ldmatrix`
pub(super) fn ldmatrix(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    rows(cx, Values::Load(cx.dsts(0)?.into()), 1)
}

/// `stmatrix`
pub(super) fn stmatrix(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let from = cx.srcs(1, Ty::B(32))?;
    if from.iter().any(|src| matches!(src, Src::Special(_))) {
        return cx.refuse();
    }
    rows(cx, Values::Store(from.into()), 0)
}

fn rows(cx: &Cx<'_, '_>, values: Values, address: usize) -> Result<Code, Bad> {
    let matrices = match cx.one_of(&["x1", "x2", "x4"]) {
        Some("x1") => 1,
        Some("x2") => 2,
        _ => 4,
    };
    if !cx.has("m8n8") || !cx.has("b16") || values.len() != matrices {
        return cx.refuse();
    }
    let address = cx.address(address)?;
    Ok(code(MatrixOp::Rows { address, values, transposed: cx.has("trans") }))
}

/// `movmatrix`: the transpose
pub(super) fn movmatrix(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let (d, a) = (cx.dst(0)?, cx.src(1, Ty::B(32))?);
    if !cx.has("m8n8") || !cx.has("trans") {
        return cx.refuse();
    }
    Ok(code(MatrixOp::Registers(Box::new(move |regs, mask| {
        let a = regs.get(a);
        regs.set(d, mask, |lane| {
            let element = |half: usize| {
                let (row, column) = (lane % 4 * 2 + half, lane / 4);
                low(a[row * 4 + column / 2] >> (column % 2 * 16), 16)
            };
            element(0) | element(1) << 16
        });
    }))))
}

/// Rows, columns, and the inner size.
type Shape = (usize, usize, usize);

fn shape(cx: &Cx<'_, '_>) -> Option<Shape> {
    cx.instruction.modifiers().iter().find_map(|word| {
        let (m, rest) = word.text.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
    })
}

/// Where the elements of an operand are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// First operand of `mma`.
    A,
    /// Second operand.
    B,
    /// Sum and result.
    C,
    /// `wmma`: element `i` of a lane is number `32 * i + lane`.
    Linear,
}

/// An operand of a product.
#[derive(Clone, Copy, Debug)]
struct Fragment {
    ty: Ty,
    layout: Layout,
    rows: usize,
    columns: usize,
}

impl Fragment {
    /// Elements of a register.
    fn packed(self) -> usize {
        match self.ty {
            Ty::F16 | Ty::Bf16 => 2,
            Ty::U(8) | Ty::S(8) => 4,
            _ => 1,
        }
    }

    /// Row and column of an element, by lane, register and place in it; `None` if it holds none.
    fn place(self, lane: usize, register: usize, part: usize) -> Option<(usize, usize)> {
        let (group, member) = (lane / 4, lane % 4);
        let packed = self.packed();
        let number = register * packed + part;
        Some(match self.layout {
            Layout::A if self.rows == 16 => {
                (group + 8 * (register & 1), member * packed + part + 4 * packed * (register >> 1))
            }
            Layout::A => (group, member * packed + part + 4 * packed * register),
            Layout::B => (member * packed + part + 4 * packed * register, group),
            Layout::C => (group + 8 * (number >> 1), member * 2 + (number & 1)),
            Layout::Linear => {
                let number = number * 32 + lane;
                if number >= self.rows * self.columns {
                    return None;
                }
                (number / self.columns, number % self.columns)
            }
        })
    }

    /// Whether so many registers are right.
    fn fits(self, registers: usize) -> bool {
        let elements = registers * self.packed() * 32;
        let all = self.rows * self.columns;
        all <= MOST && if self.layout == Layout::Linear { elements >= all } else { elements == all }
    }

    /// Calls with place in the matrix, lane, register and shift of each element.
    fn each(self, registers: usize, mut f: impl FnMut(usize, usize, usize, usize)) {
        let (packed, bits) = (self.packed(), self.ty.bits() as usize);
        for register in 0..registers {
            for lane in 0..32 {
                for part in 0..packed {
                    if let Some((row, column)) = self.place(lane, register, part) {
                        f(row * self.columns + column, lane, register, part * bits);
                    }
                }
            }
        }
    }
}

/// What products and sums are made of.
trait Number: Copy + Default + 'static {
    fn read(ty: Ty, bits: u64) -> Self;
    fn write(self, ty: Ty, saturate: bool) -> u64;
    fn add_product(self, a: Self, b: Self) -> Self;
}

impl Number for f32 {
    fn read(ty: Ty, bits: u64) -> Self {
        match ty {
            Ty::F16 => half::to_f32(bits as u16),
            Ty::Bf16 => Self::from_bits((bits as u32) << 16),
            // The low bits do not count.
            Ty::Tf32 => Self::from_bits(bits as u32 & !0x1fff),
            _ => Self::from_bits(bits as u32),
        }
    }
    fn write(self, ty: Ty, _: bool) -> u64 {
        match ty {
            Ty::F16 => half::from_f64(f64::from(self), Round::Nearest).into(),
            _ => canonical(self).to_bits().into(),
        }
    }
    fn add_product(self, a: Self, b: Self) -> Self {
        self + a * b
    }
}

impl Number for f64 {
    fn read(_: Ty, bits: u64) -> Self {
        Self::from_bits(bits)
    }
    fn write(self, _: Ty, _: bool) -> u64 {
        self.to_bits()
    }
    fn add_product(self, a: Self, b: Self) -> Self {
        a.mul_add(b, self)
    }
}

impl Number for i64 {
    fn read(ty: Ty, bits: u64) -> Self {
        match ty {
            Ty::U(8) => low(bits, 8).cast_signed(),
            Ty::S(8) => extend(bits, 8).cast_signed(),
            _ => extend(bits, 32).cast_signed(),
        }
    }
    fn write(self, _: Ty, saturate: bool) -> u64 {
        let value = if saturate { self.clamp(i32::MIN.into(), i32::MAX.into()) } else { self };
        low(value.cast_unsigned(), 32)
    }
    fn add_product(self, a: Self, b: Self) -> Self {
        self + a * b
    }
}

/// `d = a * b + c`
struct Product {
    a: (Fragment, Box<[Src]>),
    b: (Fragment, Box<[Src]>),
    c: (Fragment, Box<[Src]>),
    d: (Fragment, Box<[Dst]>),
    saturate: bool,
}

fn gather<T: Number>(regs: &Regs<'_>, (fragment, srcs): &(Fragment, Box<[Src]>)) -> [T; MOST] {
    let mut out = [T::default(); MOST];
    let mut rows = [[0; 32]; 16];
    for (row, src) in rows.iter_mut().zip(srcs) {
        *row = regs.get(*src);
    }
    fragment.each(srcs.len(), |at, lane, register, shift| {
        out[at] = T::read(fragment.ty, rows[register][lane] >> shift);
    });
    out
}

impl Product {
    fn run<T: Number>(&self, regs: &mut Regs<'_>, mask: u32) {
        let (a, b, mut c) = (gather::<T>(regs, &self.a), gather::<T>(regs, &self.b), gather(regs, &self.c));
        let (inner, columns) = (self.a.0.columns, self.b.0.columns);
        for row in 0..self.a.0.rows {
            for column in 0..columns {
                let sum: &mut T = &mut c[row * columns + column];
                for k in 0..inner {
                    *sum = sum.add_product(a[row * inner + k], b[k * columns + column]);
                }
            }
        }
        let (fragment, to) = &self.d;
        let mut rows = [[0; 32]; 16];
        fragment.each(to.len(), |at, lane, register, shift| {
            rows[register][lane] |= c[at].write(fragment.ty, self.saturate) << shift;
        });
        for (row, dst) in rows.iter().zip(to) {
            if let Some(slot) = dst.0 {
                let to = &mut regs.file[slot as usize];
                lanes(mask).for_each(|lane| to[lane] = row[lane]);
            }
        }
    }
}

/// `mma`
pub(super) fn mma(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let known = [
        "sync",
        "aligned",
        "row",
        "col",
        "satfinite",
        "f16",
        "bf16",
        "tf32",
        "f32",
        "f64",
        "s8",
        "u8",
        "s32",
    ];
    let is_known = |word: &str| known.contains(&word) || word.starts_with('m') && word.contains('k');
    let layouts = cx.instruction.modifiers().iter().filter(|w| matches!(w.text, "row" | "col"));
    let usual = layouts.map(|w| w.text).eq(["row", "col"]);
    match (shape(cx), cx.types.as_slice()) {
        (Some(shape @ (8 | 16, 8, _)), &[d, a, b, c])
            if usual && cx.instruction.modifiers().iter().all(|w| is_known(w.text)) =>
        {
            product(cx, shape, [d, a, b, c], [Layout::A, Layout::B, Layout::C])
        }
        _ => cx.refuse(),
    }
}

/// `wmma`
pub(super) fn wmma(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    if !cx.has("mma") {
        return tile(cx);
    }
    let types = match *cx.types.as_slice() {
        [d, c] => [d, Ty::F16, Ty::F16, c],
        [d, a, b, c] => [d, a, b, c],
        _ => return cx.refuse(),
    };
    match shape(cx) {
        Some(shape) => product(cx, shape, types, [Layout::Linear; 3]),
        None => cx.refuse(),
    }
}

fn product(
    cx: &Cx<'_, '_>,
    (m, n, k): Shape,
    [d, a, b, c]: [Ty; 4],
    layouts: [Layout; 3],
) -> Result<Code, Bad> {
    let fragment = |ty, layout, rows, columns| Fragment { ty, layout, rows, columns };
    let [of_a, of_b, of_c] = layouts;
    let product = Product {
        a: (fragment(a, of_a, m, k), cx.srcs(1, Ty::B(32))?.into()),
        b: (fragment(b, of_b, k, n), cx.srcs(2, Ty::B(32))?.into()),
        c: (fragment(c, of_c, m, n), cx.srcs(3, c)?.into()),
        d: (fragment(d, of_c, m, n), cx.dsts(0)?.into()),
        saturate: cx.has("satfinite"),
    };
    let (pa, pb, pc, pd) = (&product.a, &product.b, &product.c, &product.d);
    let registers = [pa.1.len(), pb.1.len(), pc.1.len(), pd.1.len()];
    let fit = pa.0.fits(registers[0]) && pb.0.fits(registers[1]) && pc.0.fits(registers[2]);
    if !fit || !pd.0.fits(registers[3]) || registers.iter().any(|count| *count > 16) {
        return cx.refuse();
    }
    let float = |ty| matches!(ty, Ty::F16 | Ty::F32);
    let byte = |ty| matches!(ty, Ty::U(8) | Ty::S(8));
    let run: fn(&Product, &mut Regs<'_>, u32) = match (a, b) {
        (Ty::F16 | Ty::Bf16 | Ty::Tf32, _) if a == b && float(c) && float(d) => Product::run::<f32>,
        (Ty::F64, Ty::F64) if c == Ty::F64 && d == c => Product::run::<f64>,
        _ if byte(a) && byte(b) && c == Ty::S(32) && d == c => Product::run::<i64>,
        _ => return cx.refuse(),
    };
    Ok(code(MatrixOp::Registers(Box::new(move |regs, mask| run(&product, regs, mask)))))
}

/// `wmma.load`, `wmma.store`
fn tile(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let Effect::Tile(tile) = isa::classify(cx.instruction).effect else { return cx.refuse() };
    let Tile { store, lines, length, element_bits, .. } = tile;
    let ty = cx.types.last().copied();
    let (Some(ty), true) = (ty, element_bits >= 8) else { return cx.refuse() };
    let fragment = Fragment { ty, layout: Layout::Linear, rows: lines.into(), columns: length.into() };
    let values = if store {
        let from = cx.srcs(1, ty)?;
        if from.iter().any(|src| matches!(src, Src::Special(_))) {
            return cx.refuse();
        }
        Values::Store(from.into())
    } else {
        Values::Load(cx.dsts(0)?.into())
    };
    if !fragment.fits(values.len()) || values.len() > 16 {
        return cx.refuse();
    }
    let space: Space = asynchronous::space(tile.space);
    Ok(code(MatrixOp::Tile(TileOp {
        address: cx.address_in(tile.address.into(), space)?,
        values,
        stride: tile.stride.map(|operand| cx.src(operand.into(), Ty::U(32))).transpose()?,
        length: length.into(),
        lines: lines.into(),
        columns: cx.has("col"),
        bytes: u32::from(element_bits) / 8,
        packed: u32::try_from(fragment.packed()).unwrap_or(1),
    })))
}
