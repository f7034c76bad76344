//! Opcodes that exist for integers and floats alike: each goes to the family of its type.

use super::super::decode::{Bad, Cx};
use super::super::image::Code;
use super::super::types::Ty;
use super::{float, half, integer, packed};

macro_rules! by_type {
    ($($(#[$doc:meta])* $name:ident => $int:path, $float:path, $half:path;)*) => {$(
        $(#[$doc])*
        pub(super) fn $name(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
            match cx.ty()? {
                Ty::F32 | Ty::F64 => $float(cx),
                Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2 => $half(cx),
                Ty::U16x2 | Ty::S16x2 | Ty::F32x2 => packed::$name(cx),
                _ => $int(cx),
            }
        }
    )*};
}

by_type! {
    /// `abs`
    abs => integer::abs, float::abs, half::abs;
    /// `add`
    add => integer::add, float::add, half::add;
    /// `sub`
    sub => integer::sub, float::sub, half::sub;
    /// `mul`
    mul => integer::mul, float::mul, half::mul;
    /// `mad`
    mad => integer::mad, float::fma, half::fma;
    /// `div`
    div => integer::div, float::div, half::refuse;
    /// `neg`
    neg => integer::neg, float::neg, half::neg;
    /// `min`
    min => integer::min, float::min, half::min;
    /// `max`
    max => integer::max, float::max, half::max;
}
