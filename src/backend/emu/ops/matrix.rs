//! Matrix instructions. Elements are found by `fragment`, sums are made by `tensor`.
//!
//! Left out: `ldmatrix` and `stmatrix` of bytes (`.m16n16`, `.m8n16`, `.m16n8`), which no device before sm_100a has.

use super::super::decode::{Bad, Cx};
use super::super::image::{Code, MatrixOp, Space, TileOp, Values};
use super::super::regs::{Dst, Regs, Src};
use super::super::types::{Ty, low};
use super::asynchronous;
use super::float::Round;
use super::fragment::{Fragment, Layout};
use super::tensor::{Number, Rule, Short, Steps};
use crate::abi::{Lanes, lanes};
use crate::isa::{self, Effect, Tile};
use crate::ptx::ast::Operand;

/// Registers of the largest operand.
const MOST: usize = 16;

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
    if let Some(shape) = cx.one_of(&["m16n16", "m8n16", "m16n8"]) {
        let why = format!("`.{shape}` needs sm_100a or later, and the emulator has no matrices of bytes");
        return cx.refuse().map_err(|refused| format!("{refused}: {why}"));
    }
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

/// `d = a * b + c`, so many times.
struct Product {
    a: (Fragment, Box<[Src]>),
    b: (Fragment, Box<[Src]>),
    c: (Fragment, Box<[Src]>),
    d: (Fragment, Box<[Dst]>),
    /// Which elements of A there are, where half of them are left out.
    chosen: Option<Chosen>,
    rule: Rule,
}

/// The elements, by rows, or by columns.
pub(super) fn gather<T: Number>(
    regs: &Regs<'_>,
    (fragment, srcs): &(Fragment, Box<[Src]>),
    by_columns: bool,
) -> Vec<T> {
    let mut out = vec![T::default(); fragment.rows * fragment.columns];
    let rows: Vec<Lanes> = srcs.iter().map(|src| regs.get(*src)).collect();
    fragment.each(srcs.len(), |(row, column), lane, register, shift| {
        let at = if by_columns { column * fragment.rows + row } else { row * fragment.columns + column };
        out[at] = T::read(fragment.ty, rows[register][lane] >> shift);
    });
    out
}

impl Product {
    fn run<T: Number>(&self, regs: &mut Regs<'_>, mask: u32) {
        let (a, b, mut c) = (
            gather::<T>(regs, &self.a, false),
            gather::<T>(regs, &self.b, true),
            gather(regs, &self.c, false),
        );
        let (inner, of_a) = (self.b.0.rows, self.a.0.columns);
        let places = self.chosen.as_ref().map(|chosen| chosen.places(self.a.0, &regs.get(chosen.which)));
        let mut met = Vec::with_capacity(of_a);
        let (columns, lines) = (self.c.0.columns, self.a.0.rows);
        // Products side by side in B.
        let height = lines * columns / self.b.0.columns;
        for row in 0..lines {
            for column in 0..columns {
                let other = (row / height * columns + column) * inner;
                let sum: &mut T = &mut c[row * columns + column];
                let (a, mut b) = (&a[row * of_a..][..of_a], &b[other..][..inner]);
                if let Some(places) = &places {
                    met.clear();
                    met.extend(places[row * of_a..][..of_a].iter().map(|place| b[*place]));
                    b = &met;
                }
                *sum = T::dot(*sum, a, b, self.d.0.ty, &self.rule);
            }
        }
        scatter(regs, mask, &self.d, &c, &self.rule);
    }
}

/// Writes the elements, which are there by rows.
pub(super) fn scatter<T: Number>(
    regs: &mut Regs<'_>,
    mask: u32,
    (fragment, to): &(Fragment, Box<[Dst]>),
    elements: &[T],
    rule: &Rule,
) {
    let mut rows: Vec<Lanes> = vec![[0; 32]; to.len()];
    fragment.each(to.len(), |(row, column), lane, register, shift| {
        rows[register][lane] |= elements[row * fragment.columns + column].write(fragment.ty, rule) << shift;
    });
    for (row, dst) in rows.iter().zip(to) {
        if let Some(slot) = dst.0 {
            let to = &mut regs.file[slot as usize];
            lanes(mask).for_each(|lane| to[lane] = row[lane]);
        }
    }
}

/// What `mma.sp` says about the elements of A.
struct Chosen {
    which: Src,
    /// The first of the lanes of four that are asked.
    first: usize,
}

impl Chosen {
    /// Where the elements of A belong in their rows. Of each four (of 32 bits: two; of 4 bits: pairs of four), two are there.
    fn places(&self, fragment: Fragment, which: &Lanes) -> Vec<usize> {
        // Elements that go together, and places of which two (of 32 bits: one) are taken.
        let (unit, places, taken) = match fragment.ty.bits() {
            32 => (1, 2, 1),
            4 => (2, 4, 2),
            _ => (1, 4, 2),
        };
        let mut out = Vec::with_capacity(fragment.rows * fragment.columns);
        for row in 0..fragment.rows {
            for element in 0..fragment.columns {
                let (set, index) = (element / unit / taken, element / unit % taken);
                let (lane, shift) = if fragment.ty.bits() <= 8 {
                    // A lane has 32 bits of a row, the next one those of the row eight below.
                    (self.first + row / 8 + set / 8 * 2, set % 8 * 4)
                } else {
                    // A lane has 16 bits of a row, and 16 of the row eight below.
                    (self.first + set / 4, row / 8 * 16 + set % 4 * 4)
                };
                let bits = which[row % 8 * 4 + lane % 4] >> shift & 15;
                let place = if taken == 1 { u64::from(bits == 0b1110) } else { bits >> (index * 2) & 3 };
                out.push((set * places + place as usize) * unit + element % unit);
            }
        }
        out
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
        "e4m3",
        "e5m2",
        "s8",
        "u8",
        "s4",
        "u4",
        "b1",
        "s32",
        "xor",
        "and",
        "popc",
        "rn",
        "rz",
        "rm",
        "rp",
        "sp",
        "sp::ordered_metadata",
    ];
    let is_known = |word: &str| known.contains(&word) || word.starts_with('m') && word.contains('k');
    let by_columns = |at: usize| {
        let mut layouts = cx.instruction.modifiers().iter().filter(|w| matches!(w.text, "row" | "col"));
        layouts.nth(at).is_some_and(|word| word.text == "col")
    };
    match (shape(cx), cx.types.as_slice()) {
        _ if !cx.instruction.modifiers().iter().all(|w| is_known(w.text)) => cx.refuse(),
        (Some((8, 8, 4)), &[d, Ty::F16, Ty::F16, c]) => {
            let layouts =
                [Layout::QuarterA(by_columns(0)), Layout::QuarterB(by_columns(1)), Layout::QuarterC];
            product(cx, (32, 8, 4), [d, Ty::F16, Ty::F16, c], layouts)
        }
        (Some(shape @ (8 | 16, 8, _)), &[d, a, b, c]) if !by_columns(0) && by_columns(1) => {
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
    // Words of small elements are those that `mma` has.
    let layouts =
        if types[1].bits() < 8 { [Layout::A, Layout::B, Layout::Linear] } else { [Layout::Linear; 3] };
    match shape(cx) {
        Some(shape) => product(cx, shape, types, layouts),
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
    let is_sparse = cx.has("sp") || cx.has("sp::ordered_metadata");
    let of_elements = if is_sparse { k / 2 } else { k };
    let side = if of_c == Layout::QuarterC { 4 * n } else { n };
    let product = Product {
        a: (fragment(a, of_a, m, of_elements), cx.srcs(1, Ty::B(32))?.into()),
        b: (fragment(b, of_b, k, side), cx.srcs(2, Ty::B(32))?.into()),
        c: (fragment(c, of_c, m, n), cx.srcs(3, c)?.into()),
        d: (fragment(d, of_c, m, n), cx.dsts(0)?.into()),
        chosen: if is_sparse { Some(chosen(cx, a, k)?) } else { None },
        rule: rule(cx, of_a, a, d, of_elements),
    };
    let (pa, pb, pc, pd) = (&product.a, &product.b, &product.c, &product.d);
    let registers = [pa.1.len(), pb.1.len(), pc.1.len(), pd.1.len()];
    let fit = pa.0.fits(registers[0]) && pb.0.fits(registers[1]) && pc.0.fits(registers[2]);
    if !fit || !pd.0.fits(registers[3]) || registers.iter().any(|count| *count > MOST) {
        return cx.refuse();
    }
    let run: fn(&Product, &mut Regs<'_>, u32) = match kind(a, b, c, d) {
        Some(Kind::Short) => Product::run::<Short>,
        Some(Kind::Double) => Product::run::<f64>,
        Some(Kind::Whole) => Product::run::<i64>,
        None => return cx.refuse(),
    };
    Ok(code(MatrixOp::Registers(Box::new(move |regs, mask| run(&product, regs, mask)))))
}

/// What a product computes with.
pub(super) enum Kind {
    Short,
    Double,
    Whole,
}

pub(super) fn kind(a: Ty, b: Ty, c: Ty, d: Ty) -> Option<Kind> {
    let float = |ty| matches!(ty, Ty::F16 | Ty::F32);
    let small = |ty| matches!(ty, Ty::E4m3 | Ty::E5m2);
    let whole = |ty| matches!(ty, Ty::U(4 | 8) | Ty::S(4 | 8) | Ty::B(1));
    match a {
        Ty::F16 | Ty::Bf16 | Ty::Tf32 if a == b && float(c) && float(d) => Some(Kind::Short),
        Ty::E4m3 | Ty::E5m2 if small(b) && float(c) && float(d) => Some(Kind::Short),
        Ty::F64 if (b, c, d) == (a, a, a) => Some(Kind::Double),
        _ if whole(a) && a.bits() == b.bits() && whole(b) && (c, d) == (Ty::S(32), Ty::S(32)) => {
            Some(Kind::Whole)
        }
        _ => None,
    }
}

fn rule(cx: &Cx<'_, '_>, layout: Layout, a: Ty, d: Ty, products: usize) -> Rule {
    let steps = match a {
        Ty::E4m3 | Ty::E5m2 => Steps::Pairs,
        Ty::Tf32 if layout == Layout::Linear => Steps::Fused(4),
        _ if matches!(layout, Layout::QuarterA(_)) && d == Ty::F32 => Steps::Single,
        _ => Steps::Fused(products),
    };
    let (saturates, differs) = (cx.has("satfinite"), cx.has("xor"));
    Rule { round: Round::of(cx), saturates, differs, ..Rule::new(steps) }
}

/// The operands behind the sum of `mma.sp`: what says which elements there are, and which lanes are asked.
fn chosen(cx: &Cx<'_, '_>, a: Ty, k: usize) -> Result<Chosen, Bad> {
    let Operand::Int(selector, _) = cx.operand(5)? else { return cx.refuse() };
    // Bits that say it of a row, of which a lane has 16.
    let bits = match a.bits() {
        32 => k * 2,
        4 => k / 2,
        _ => k,
    };
    let asked = bits / 16;
    let first = selector.get() as usize * asked;
    if asked == 0 || first + asked > 4 {
        return cx.refuse();
    }
    Ok(Chosen { which: cx.src(4, Ty::B(32))?, first })
}

/// `wmma.load`, `wmma.store`
fn tile(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    let Effect::Tile(tile) = isa::classify(cx.instruction).effect else { return cx.refuse() };
    let Tile { store, lines, length, element_bits, .. } = tile;
    let Some(ty) = cx.types.last().copied() else { return cx.refuse() };
    // Elements of less than a byte are moved by the word.
    let together = if element_bits < 8 { 32 / u32::from(element_bits) } else { 1 };
    let ty = if together > 1 { Ty::B(32) } else { ty };
    let length = u32::from(length) / together;
    let fragment = Fragment { ty, layout: Layout::Linear, rows: lines.into(), columns: length as usize };
    let values = if store {
        let from = cx.srcs(1, ty)?;
        if from.iter().any(|src| matches!(src, Src::Special(_))) {
            return cx.refuse();
        }
        Values::Store(from.into())
    } else {
        Values::Load(cx.dsts(0)?.into())
    };
    if !fragment.fits(values.len()) || values.len() > MOST {
        return cx.refuse();
    }
    let space: Space = asynchronous::space(tile.space);
    Ok(code(MatrixOp::Tile(TileOp {
        address: cx.address_in(tile.address.into(), space)?,
        values,
        stride: tile.stride.map(|operand| cx.src(operand.into(), Ty::U(32))).transpose()?,
        length,
        lines: lines.into(),
        columns: cx.has("col") && together == 1,
        bytes: u32::from(element_bits) * together / 8,
        together,
        packed: u32::try_from(fragment.packed()).unwrap_or(1),
    })))
}
