//! `wgmma`. Each warp multiplies its own lines of the first matrix when it comes to the instruction: who waits for the product
//! before touching what it reads and writes cannot tell.

use super::super::decode::{Bad, Cx};
use super::super::image::{Code, Line, MatrixOp, WarpgroupOp};
use super::super::regs::{Dst, Regs, Src};
use super::super::types::Ty;
use super::fragment::{Fragment, Layout};
use super::matrix::{Kind, gather, kind, scatter};
use super::tensor::{FRACTION, FRACTION_OF_EIGHT, Number, Rule, Short, Steps};
use crate::isa::warpgroup::{LINE, LINES};
use crate::isa::{self, Effect, Product};

/// `wgmma.fence`, `.commit_group`, `.wait_group`, `.mma_async`
pub(super) fn wgmma(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    match isa::classify(cx.instruction).effect {
        Effect::None => Ok(Code::Nothing),
        Effect::Group(group) => Ok(Code::Group(group)),
        Effect::Product(product) => multiply(cx, product),
        _ => cx.refuse(),
    }
}

/// What a warp does.
struct Part {
    /// The first matrix, if it is in registers.
    a: Option<(Fragment, Box<[Src]>)>,
    c: (Fragment, Box<[Src]>),
    d: (Fragment, Box<[Dst]>),
    types: (Ty, Ty),
    /// Zero: the product alone.
    adds: Src,
    /// The elements of A, and of B, with their signs changed.
    negated: (bool, bool),
    rule: Rule,
}

/// The elements of lines.
fn elements<T: Number>(ty: Ty, lines: &[Line], negated: bool) -> Vec<T> {
    let bits = ty.bits() as usize;
    let of = |line: &Line, at: usize| {
        let from = at * bits;
        let word = line[from / 32 * 4..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let element = T::read(ty, u64::from(word >> (from % 32)));
        if negated { element.negated() } else { element }
    };
    lines.iter().flat_map(|line| (0..LINE * 8 / bits).map(move |at| of(line, at))).collect()
}

impl Part {
    fn run<T: Number>(&self, regs: &mut Regs<'_>, mask: u32, a: &[Line], b: &[Line]) {
        let inner = LINE * 8 / self.types.0.bits() as usize;
        let mut a = match &self.a {
            Some(registers) => gather::<T>(regs, registers, false),
            None => elements::<T>(self.types.0, a, false),
        };
        if self.negated.0 {
            a.iter_mut().for_each(|element| *element = element.negated());
        }
        let b = elements::<T>(self.types.1, b, self.negated.1);
        let lane = (mask.trailing_zeros() & 31) as usize;
        let mut sums = if regs.get(self.adds)[lane] & 0xffff_ffff == 0 {
            vec![T::default(); self.c.0.rows * self.c.0.columns]
        } else {
            gather(regs, &self.c, false)
        };
        for (row, sums) in a.chunks(inner).zip(sums.chunks_mut(self.c.0.columns)) {
            for (sum, column) in sums.iter_mut().zip(b.chunks(inner)) {
                *sum = T::dot(*sum, row, column, self.d.0.ty, &self.rule);
            }
        }
        scatter(regs, mask, &self.d, &sums, &self.rule);
    }
}

fn multiply(cx: &Cx<'_, '_>, product: Product) -> Result<Code, Bad> {
    let &[d, a, b] = cx.types.as_slice() else { return cx.refuse() };
    let known = ["mma_async", "sync", "aligned", "satfinite", "and", "popc"];
    let is_known =
        |word: &str| known.contains(&word) || Ty::parse(word).is_some() || word.starts_with("m64n");
    if !cx.instruction.modifiers().iter().all(|word| is_known(word.text)) {
        return cx.refuse();
    }
    let inner = LINE * 8 / a.bits().max(1) as usize;
    let sums = Fragment { ty: d, layout: Layout::C, rows: LINES as usize, columns: product.columns.into() };
    let first = Fragment { ty: a, layout: Layout::A, rows: LINES as usize, columns: inner };
    let wide = |operand: u8| cx.src(operand.into(), Ty::B(64));
    let minus = |index: usize| match cx.operand(index) {
        Ok(crate::ptx::ast::Operand::Int(value, _)) => (value.get() as i64) < 0,
        _ => false,
    };
    let fraction = if matches!(a, Ty::E4m3 | Ty::E5m2) { FRACTION_OF_EIGHT } else { FRACTION };
    let part = Part {
        a: if product.a.is_some() { None } else { Some((first, cx.srcs(1, Ty::B(32))?.into())) },
        c: (sums, cx.srcs(0, d)?.into()),
        d: (sums, cx.dsts(0)?.into()),
        types: (a, b),
        adds: cx.src(3, Ty::Pred)?,
        negated: (cx.len() > 4 && minus(4), cx.len() > 5 && minus(5)),
        rule: Rule { saturates: cx.has("satfinite"), fraction, ..Rule::new(Steps::Fused(inner)) },
    };
    let fits = part.d.0.fits(part.d.1.len()) && part.a.as_ref().is_none_or(|(a, srcs)| a.fits(srcs.len()));
    let run: fn(&Part, &mut Regs<'_>, u32, &[Line], &[Line]) = match kind(a, b, d, d) {
        Some(Kind::Short) if fits => Part::run::<Short>,
        Some(Kind::Whole) if fits => Part::run::<i64>,
        _ => return cx.refuse(),
    };
    Ok(Code::Matrix(Box::new(MatrixOp::Warpgroup(WarpgroupOp {
        a: product.a.map(wide).transpose()?,
        b: wide(product.b)?,
        columns: product.columns,
        transposed: product.transposed,
        multiply: Box::new(move |regs, mask, a, b| run(&part, regs, mask, a, b)),
    }))))
}
