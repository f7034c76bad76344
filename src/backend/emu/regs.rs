//! Registers: one row of 32 lanes each, so that an instruction is a loop over contiguous values. Predicates are one
//! bit per lane. A value is kept in the low bits of its 64; readers take as many bits as their type has.

use super::special::{Env, Special};
use crate::abi::{LANES, Lanes, lanes};

/// An instruction on registers.
pub(super) type Compute = Box<dyn Fn(&mut Regs<'_>, u32) + Send + Sync>;

/// The predicate of every frame that holds the carry flag.
pub(super) const CARRY: u32 = 0;

/// A source operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Src {
    /// A register of the frame.
    Reg(u32),
    /// A 32-bit register where 64 bits are read: an address.
    Narrow(u32),
    /// The same value in all lanes.
    Const(u64),
    /// A special register.
    Special(Special),
    /// Address of a local variable: an offset in the frame.
    Local(u64),
    /// Address of a shared variable, by its offset in the block's memory.
    Shared(u64),
    /// A predicate as 0 or 1.
    Pred(PredSrc),
}

/// A destination register, or none (`_`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dst(pub(super) Option<u32>);

/// A predicate destination, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PredDst(pub(super) Option<u32>);

/// A predicate operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PredSrc {
    /// The register; `None` reads false.
    pub(super) slot: Option<u32>,
    /// Written with `!`.
    pub(super) negated: bool,
}

/// The registers that a frame sees.
pub(super) struct Regs<'w> {
    /// Rows from the frame's first on.
    pub(super) file: &'w mut [Lanes],
    /// Predicates from the frame's first on.
    pub(super) preds: &'w mut [u32],
    /// Where each lane's frame of local memory begins.
    pub(super) local: &'w Lanes,
    /// Everything that special registers say.
    pub(super) env: &'w Env<'w>,
}

impl Regs<'_> {
    /// The operand in all lanes.
    pub(super) fn get(&self, src: Src) -> Lanes {
        match src {
            Src::Reg(slot) => self.file[slot as usize],
            Src::Narrow(slot) => self.file[slot as usize].map(|v| v & 0xffff_ffff),
            Src::Const(value) => [value; LANES],
            Src::Special(special) => self.env.read(special),
            Src::Local(offset) => self.local.map(|base| base.wrapping_add(offset)),
            Src::Shared(offset) => [self.env.position.shared_base().wrapping_add(offset); LANES],
            Src::Pred(pred) => {
                let bits = self.pred(pred);
                std::array::from_fn(|lane| u64::from(bits >> lane & 1))
            }
        }
    }

    /// The operand's bits.
    pub(super) fn pred(&self, src: PredSrc) -> u32 {
        let bits = src.slot.map_or(0, |slot| self.preds[slot as usize]);
        if src.negated { !bits } else { bits }
    }

    /// Writes the lanes of the mask.
    #[inline(always)]
    pub(super) fn set(&mut self, dst: Dst, mask: u32, value: impl Fn(usize) -> u64) {
        let Some(slot) = dst.0 else { return };
        let row = &mut self.file[slot as usize];
        if mask == u32::MAX {
            for (lane, to) in row.iter_mut().enumerate() {
                *to = value(lane);
            }
        } else {
            for lane in lanes(mask) {
                row[lane] = value(lane);
            }
        }
    }

    /// `d = f(a)` for the lanes of the mask.
    #[inline(always)]
    pub(super) fn map1(&mut self, d: Dst, mask: u32, a: Src, f: impl Fn(u64) -> u64) {
        if let (u32::MAX, Some(slot), Src::Reg(a)) = (mask, d.0, a) {
            let a = &self.file[a as usize];
            let out: Lanes = std::array::from_fn(|lane| f(a[lane]));
            self.file[slot as usize] = out;
            return;
        }
        let a = self.get(a);
        self.set(d, mask, |lane| f(a[lane]));
    }

    /// `d = f(a, b)` for the lanes of the mask.
    #[inline(always)]
    pub(super) fn map2(&mut self, d: Dst, mask: u32, a: Src, b: Src, f: impl Fn(u64, u64) -> u64) {
        if let (u32::MAX, Some(slot), Src::Reg(a)) = (mask, d.0, a) {
            let row = &self.file[a as usize];
            let out: Option<Lanes> = match b {
                Src::Reg(b) => {
                    let b = &self.file[b as usize];
                    Some(std::array::from_fn(|lane| f(row[lane], b[lane])))
                }
                Src::Const(b) => Some(std::array::from_fn(|lane| f(row[lane], b))),
                _ => None,
            };
            if let Some(out) = out {
                self.file[slot as usize] = out;
                return;
            }
        }
        let (a, b) = (self.get(a), self.get(b));
        self.set(d, mask, |lane| f(a[lane], b[lane]));
    }

    /// `d = f(a, b, c)` for the lanes of the mask.
    #[inline(always)]
    pub(super) fn map3(
        &mut self,
        d: Dst,
        mask: u32,
        (a, b, c): (Src, Src, Src),
        f: impl Fn(u64, u64, u64) -> u64,
    ) {
        if let (u32::MAX, Some(slot), Src::Reg(a), Src::Reg(b), Src::Reg(c)) = (mask, d.0, a, b, c) {
            let (a, b, c) = (&self.file[a as usize], &self.file[b as usize], &self.file[c as usize]);
            let out: Lanes = std::array::from_fn(|lane| f(a[lane], b[lane], c[lane]));
            self.file[slot as usize] = out;
            return;
        }
        let (a, b, c) = (self.get(a), self.get(b), self.get(c));
        self.set(d, mask, |lane| f(a[lane], b[lane], c[lane]));
    }

    /// Writes the lanes of the mask.
    pub(super) fn set_pred(&mut self, dst: PredDst, mask: u32, bits: u32) {
        if let Some(slot) = dst.0 {
            let to = &mut self.preds[slot as usize];
            *to = *to & !mask | bits & mask;
        }
    }
}

/// One bit per lane.
#[inline(always)]
pub(super) fn bits(test: impl Fn(usize) -> bool) -> u32 {
    (0..LANES).fold(0, |bits, lane| bits | u32::from(test(lane)) << lane)
}

/// A value in the low bits of a register.
pub(super) trait Word: Copy + Send + Sync + 'static {
    /// Takes the low bits.
    fn of(bits: u64) -> Self;
    /// Puts it into the low bits, zeros above.
    fn bits(self) -> u64;
}

macro_rules! words {
    ($($ty:ty as $unsigned:ty),*) => {$(
        impl Word for $ty {
            #[inline(always)]
            fn of(bits: u64) -> Self { bits as $ty }
            #[inline(always)]
            fn bits(self) -> u64 { self as $unsigned as u64 }
        }
    )*};
}
words!(u8 as u8, i8 as u8, u16 as u16, i16 as u16, u32 as u32, i32 as u32, u64 as u64, i64 as u64);

impl Word for f32 {
    #[inline(always)]
    fn of(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Word for f64 {
    #[inline(always)]
    fn of(bits: u64) -> Self {
        Self::from_bits(bits)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
}
