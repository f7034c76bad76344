//! Which hook stands for which symbol, and what `cuGetProcAddress` gives.

use std::ffi::c_char;
use std::sync::OnceLock;

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::hooks;
use crate::api::{get, put, text};

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
            super::tensors::table(),
            super::textures::table(),
            super::values::table(),
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
    all().keys().copied().filter(|name| !RUNTIME.iter().any(|(_, runtime)| runtime == name))
}

/// What makes memory, and which call of the runtime it then does, after which reports name the memory.
const RUNTIME: [(&str, &str); 9] = [
    ("cuArray3DCreate", "cudaMallocArray"),
    ("cuMemAlloc", "cudaMalloc"),
    ("cuMemAllocPitch", "cudaMallocPitch"),
    ("cuMemAllocManaged", "cudaMallocManaged"),
    ("cuMemAllocHost", "cudaMallocHost"),
    ("cuMemHostAlloc", "cudaHostAlloc"),
    ("cuMemHostRegister", "cudaHostRegister"),
    ("cuMemAllocAsync", "cudaMallocAsync"),
    ("cuMemAllocFromPoolAsync", "cudaMallocFromPoolAsync"),
];

/// Who asks for functions by `cuGetProcAddress`.
#[derive(Debug, Default)]
struct Asking {
    /// What the runtime has asked for, after it has begun to ask.
    by_runtime: Option<FxHashSet<(String, i32)>>,
}

impl Asking {
    /// Whether it is the runtime that asks for this. It begins with an empty name and asks for everything at once; what is asked
    /// for again, someone else wants.
    fn is_runtime(&mut self, symbol: &str, version: i32) -> bool {
        if symbol.is_empty() {
            self.by_runtime = Some(FxHashSet::default());
            return false;
        }
        self.by_runtime.as_mut().is_some_and(|asked| asked.insert((symbol.into(), version)))
    }
}

static ASKING: Mutex<Asking> = Mutex::new(Asking { by_runtime: None });

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

fn exchange(symbol: *const c_char, address: *mut usize, version: i32, flags: u64) {
    const PER_THREAD: u64 = 2;
    let symbol = text(symbol).unwrap_or_default();
    let runtime = ASKING.lock().is_runtime(symbol, version) && flags & PER_THREAD == 0;
    let Ok(given) = get(address) else { return };
    if let Some(hook) = by_address().get(&given) {
        let of_runtime = RUNTIME.iter().filter(|_| runtime).find(|(name, _)| *name == symbol);
        let of_runtime = of_runtime.and_then(|(_, runtime)| find(runtime));
        let _ = put(address, of_runtime.unwrap_or(*hook));
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
        exchange(symbol, address, version, flags);
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
        exchange(symbol, address, version, flags);
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_is_who_asks_first_after_an_empty_name() {
        let mut asking = Asking::default();
        assert!(!asking.is_runtime("cuMemAlloc", 3020));
        assert!(!asking.is_runtime("", 0));
        assert!(asking.is_runtime("cuMemAlloc", 3020));
        assert!(!asking.is_runtime("cuMemAlloc", 3020));
        assert!(asking.is_runtime("cuMemFree", 3020));
        // Another copy of it.
        assert!(!asking.is_runtime("", 0));
        assert!(asking.is_runtime("cuMemAlloc", 3020));
    }

    #[test]
    fn calls_of_the_runtime_have_hooks() {
        assert!(RUNTIME.iter().all(|(_, runtime)| find(runtime).is_some()));
    }
}
