//! Modules and libraries, and the handles of their kernels.

use std::ffi::{c_char, c_void};

use super::{done, hooks};
use crate::api::{get, put, text};
use crate::code::given_back;
use crate::gpu::load::Kind;
use crate::gpu::{Gpu, given_up};
use crate::process::watching;

/// Loads instrumented what can be, and otherwise as the program has asked for.
fn load(
    to: *mut u64,
    instrumented: impl FnOnce(&mut Gpu) -> Option<u64>,
    original: impl FnOnce() -> u32,
) -> u32 {
    if to.is_null() || given_up() {
        return original();
    }
    let loaded = watching(|gpu| {
        gpu.catch_up();
        instrumented(gpu)
    });
    match loaded.flatten() {
        Some(handle) => given_back(put(to, handle)),
        None => original(),
    }
}

/// The program asked for a kernel by its name.
fn named(code: u32, kernel: *mut u64, module: u64, name: *const c_char) -> u32 {
    done(code, |gpu| {
        if let (Ok(kernel), Ok(name)) = (get(kernel), text(name)) {
            gpu.named(kernel, module, name);
        }
    })
}

hooks! {
    fn cuModuleLoad(cx, real; module: *mut u64, path: *const c_char) as [cuModuleLoad] per_thread [] {
        let instrumented = |gpu: &mut Gpu| gpu.load_file(text(path).ok()?, &Kind::Module);
        load(module, instrumented, || real(module, path))
    }

    fn cuModuleLoadData(cx, real; module: *mut u64, image: u64) as [cuModuleLoadData] per_thread [] {
        if image == 0 {
            return real(module, image);
        }
        load(module, |gpu| gpu.load_data(cx.call, image, &Kind::Module), || real(module, image))
    }

    fn cuModuleLoadDataEx(
        cx, real;
        module: *mut u64,
        image: u64,
        count: u32,
        options: *mut u32,
        values: *mut *mut c_void,
    ) as [cuModuleLoadDataEx] per_thread [] {
        if image == 0 {
            return real(module, image, count, options, values);
        }
        let instrumented = |gpu: &mut Gpu| gpu.load_data(cx.call, image, &Kind::Module);
        load(module, instrumented, || real(module, image, count, options, values))
    }

    fn cuModuleLoadFatBinary(cx, real; module: *mut u64, image: u64) as [cuModuleLoadFatBinary] per_thread [] {
        if image == 0 {
            return real(module, image);
        }
        load(module, |gpu| gpu.load_data(cx.call, image, &Kind::Module), || real(module, image))
    }

    fn cuModuleUnload(cx, real; module: u64) as [cuModuleUnload] per_thread [] {
        done(real(module), |gpu| gpu.unloaded(module))
    }

    fn cuModuleGetFunction(
        cx, real;
        function: *mut u64,
        module: u64,
        name: *const c_char,
    ) as [cuModuleGetFunction] per_thread [] {
        named(real(function, module, name), function, module, name)
    }

    fn cuLibraryLoadData(
        cx, real;
        library: *mut u64,
        image: u64,
        jit_options: *const u32,
        jit_values: *const *mut c_void,
        jit_count: u32,
        options: *const u32,
        values: *const *mut c_void,
        count: u32,
    ) as [cuLibraryLoadData] per_thread [] {
        let original = || real(library, image, jit_options, jit_values, jit_count, options, values, count);
        if image == 0 {
            return original();
        }
        let kind = Kind::Library((options, values, count));
        load(library, |gpu| gpu.load_data(cx.call, image, &kind), original)
    }

    fn cuLibraryLoadFromFile(
        cx, real;
        library: *mut u64,
        path: *const c_char,
        jit_options: *const u32,
        jit_values: *const *mut c_void,
        jit_count: u32,
        options: *const u32,
        values: *const *mut c_void,
        count: u32,
    ) as [cuLibraryLoadFromFile] per_thread [] {
        let original = || real(library, path, jit_options, jit_values, jit_count, options, values, count);
        let kind = Kind::Library((options, values, count));
        load(library, |gpu| gpu.load_file(text(path).ok()?, &kind), original)
    }

    fn cuLibraryUnload(cx, real; library: u64) as [cuLibraryUnload] per_thread [] {
        done(real(library), |gpu| gpu.unloaded(library))
    }

    fn cuLibraryGetModule(cx, real; module: *mut u64, library: u64) as [cuLibraryGetModule] per_thread [] {
        done(real(module, library), |gpu| {
            if let Ok(module) = get(module) {
                gpu.library_module(module, library);
            }
        })
    }

    fn cuLibraryGetKernel(
        cx, real;
        kernel: *mut u64,
        library: u64,
        name: *const c_char,
    ) as [cuLibraryGetKernel] per_thread [] {
        named(real(kernel, library, name), kernel, library, name)
    }

    fn cuKernelGetFunction(cx, real; function: *mut u64, kernel: u64) as [cuKernelGetFunction] per_thread [] {
        done(real(function, kernel), |gpu| {
            if let Ok(function) = get(function) {
                gpu.also_named(function, kernel);
            }
        })
    }
}
