//! Which hook stands for which symbol, and what `cuGetProcAddress` gives.

use std::ffi::c_char;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::hooks;
use crate::api::{get, put};

fn all() -> &'static FxHashMap<&'static str, usize> {
    static ALL: OnceLock<FxHashMap<&'static str, usize>> = OnceLock::new();
    ALL.get_or_init(|| {
        let tables = [
            super::contexts::table(),
            super::copies::table(),
            super::graphs::table(),
            super::launches::table(),
            super::link::table(),
            super::memory::table(),
            super::modules::table(),
            super::others::table(),
            super::streams::table(),
            table(),
        ];
        tables.into_iter().flatten().collect()
    })
}

/// The hook of a symbol.
pub(in crate::gpu) fn find(name: &str) -> Option<usize> {
    all().get(name).copied()
}

/// The names of all symbols that have one.
#[cfg(test)]
pub(crate) fn hooked_names() -> impl Iterator<Item = &'static str> {
    all().keys().copied()
}

/// Hooks by the addresses of the driver's functions that they stand for: names alone do not say which version of a function
/// `cuGetProcAddress` gives.
fn by_address() -> &'static FxHashMap<usize, usize> {
    static ALL: OnceLock<FxHashMap<usize, usize>> = OnceLock::new();
    ALL.get_or_init(|| {
        let hooked = |name: &'static std::ffi::CStr| {
            Some((crate::gpu::driver::function(name)?, find(name.to_str().ok()?)?))
        };
        crate::stubs::names().filter_map(hooked).collect()
    })
}

fn exchange(address: *mut usize) {
    let Ok(given) = get(address) else { return };
    if let Some(hook) = by_address().get(&given) {
        let _ = put(address, *hook);
    }
}

hooks! {
    fn cuGetProcAddress(
        cx, real;
        symbol: *const c_char,
        address: *mut usize,
        version: i32,
        flags: u64,
    ) as [cuGetProcAddress] per_thread [] {
        let code = real(symbol, address, version, flags);
        exchange(address);
        code
    }

    fn cuGetProcAddress_v2(
        cx, real;
        symbol: *const c_char,
        address: *mut usize,
        version: i32,
        flags: u64,
        status: *mut u32,
    ) as [cuGetProcAddress_v2] per_thread [cuGetProcAddress_v2_ptsz] {
        let code = real(symbol, address, version, flags, status);
        exchange(address);
        code
    }
}
