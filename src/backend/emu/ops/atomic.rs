//! Atomics.

use super::super::decode::{Bad, Cx};
use super::super::image::{Atomic, Code, Update};
use super::super::regs::Src;
use super::super::types::{Ty, extend, low};
use super::asynchronous;
use super::float::{canonical, extreme, flush};
use super::half;

/// `atom`
pub(super) fn atom(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    atomic(cx, true)
}

/// `red`
pub(super) fn red(cx: &Cx<'_, '_>) -> Result<Code, Bad> {
    atomic(cx, false)
}

fn atomic(cx: &Cx<'_, '_>, returns: bool) -> Result<Code, Bad> {
    if cx.has("async") {
        return asynchronous::remote(cx);
    }
    let ty = cx.ty()?;
    let first = usize::from(returns);
    let address = cx.address(first)?;
    let old = if returns { cx.dsts(0)? } else { Vec::new() };
    let b = cx.srcs(first + 1, ty)?;
    let cas = cx.has("cas");
    let c = if cas { cx.srcs(first + 2, ty)? } else { Vec::new() };
    let wide = ty == Ty::B(128);
    let special = |srcs: &[Src]| srcs.iter().any(|src| matches!(src, Src::Special(_)));
    if b.len() > 8
        || c.len() > 8
        || special(&b)
        || special(&c)
        || wide && (b.len() != 2 || cas && c.len() != 2)
    {
        return cx.refuse();
    }
    let update = if wide && cx.has("exch") {
        Box::new(|_: u64, b: u64, _: u64| b)
    } else if wide {
        Box::new(|old: u64, _: u64, _: u64| old)
    } else {
        match update(cx, ty) {
            Some(update) => update,
            None => return cx.refuse(),
        }
    };
    Ok(Code::Atomic(Box::new(Atomic {
        address,
        unit: if wide { 8 } else { ty.bytes().max(1) },
        old: old.into(),
        b: b.into(),
        c: c.into(),
        update,
        overwrites: cx.has("exch"),
        wide_cas: wide && cas,
    })))
}

/// The new value of a read-modify-write, if there is such an operation.
pub(super) fn update(cx: &Cx<'_, '_>, ty: Ty) -> Option<Update> {
    let bits = ty.bits();
    let signed = ty.is_signed();
    let op = cx.one_of(&["and", "or", "xor", "exch", "add", "inc", "dec", "min", "max", "cas"])?;
    if let Some(format) = half::format(ty) {
        let f: fn(f64, f64) -> f64 = match op {
            "add" => half::exact_sum,
            "min" => |a, b| extreme(a, b, false, false),
            "max" => |a, b| extreme(a, b, true, false),
            _ => return None,
        };
        return Some(Box::new(move |old, b, _| format.map([old, b, 0], |[a, b, _]| f(a, b))));
    }
    Some(match (op, ty) {
        ("add", Ty::F32) => {
            let ftz = cx.has("ftz");
            Box::new(move |old, b, _| {
                let (a, b) = (f32::from_bits(old as u32), f32::from_bits(b as u32));
                let sum = if ftz { flush(flush(a) + flush(b)) } else { a + b };
                u64::from(canonical(sum).to_bits())
            })
        }
        ("add", Ty::F64) => Box::new(|old, b, _| (f64::from_bits(old) + f64::from_bits(b)).to_bits()),
        ("min" | "max", Ty::F32) => {
            let max = op == "max";
            Box::new(move |old, b, _| {
                let (a, b) = (f32::from_bits(old as u32), f32::from_bits(b as u32));
                u64::from((extreme(f64::from(a), f64::from(b), max, false) as f32).to_bits())
            })
        }
        ("and", _) => Box::new(|old, b, _| old & b),
        ("or", _) => Box::new(move |old, b, _| low(old | b, bits)),
        ("xor", _) => Box::new(move |old, b, _| low(old ^ b, bits)),
        ("exch", _) => Box::new(move |_, b, _| low(b, bits)),
        ("add", _) => Box::new(move |old, b, _| low(old.wrapping_add(b), bits)),
        ("inc", _) => Box::new(move |old, b, _| if old >= low(b, bits) { 0 } else { old + 1 }),
        ("dec", _) => Box::new(move |old, b, _| {
            let b = low(b, bits);
            if old == 0 || old > b { b } else { old - 1 }
        }),
        ("min" | "max", _) => {
            let max = op == "max";
            Box::new(move |old, b, _| {
                let value = |v: u64| if signed { extend(v, bits) ^ 1 << 63 } else { low(v, bits) };
                if (value(old) < value(b)) != max { old } else { low(b, bits) }
            })
        }
        ("cas", _) => Box::new(move |old, b, c| if old == low(b, bits) { low(c, bits) } else { old }),
        _ => return None,
    })
}
