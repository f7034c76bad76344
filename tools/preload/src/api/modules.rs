//! Modules, libraries, and what is in them.

use std::ffi::{c_char, c_void};

use super::{calls, put, put_if, text};
use crate::code::{Answer, Code};
use crate::process::{with, within};

calls! {
    fn cuModuleLoad(cx; module: *mut u64, path: *const c_char) as [] per_thread [] {
        let path = text(path)?;
        put(module, within(|driver| driver.load_file(path))?)
    }

    fn cuModuleLoadData(cx; module: *mut u64, image: u64) as [] per_thread [] {
        if image == 0 {
            return Err(Code::INVALID_VALUE);
        }
        put(module, within(|driver| driver.load_data(cx.call, image))?)
    }

    fn cuModuleLoadDataEx(
        cx;
        module: *mut u64,
        image: u64,
        count: u32,
        options: *const u32,
        values: *const *mut c_void,
    ) as [] per_thread [] {
        let _ = (count, options, values);
        if image == 0 {
            return Err(Code::INVALID_VALUE);
        }
        put(module, within(|driver| driver.load_data(cx.call, image))?)
    }

    fn cuModuleLoadFatBinary(cx; module: *mut u64, image: u64) as [] per_thread [] {
        if image == 0 {
            return Err(Code::INVALID_VALUE);
        }
        put(module, within(|driver| driver.load_data(cx.call, image))?)
    }

    fn cuModuleUnload(cx; module: u64) as [] per_thread [] {
        within(|driver| driver.unload(module))
    }

    fn cuModuleGetFunction(cx; function: *mut u64, module: u64, name: *const c_char) as [] per_thread [] {
        let name = text(name)?;
        put(function, within(|driver| driver.find(module, name))?)
    }

    fn cuModuleGetFunctionCount(cx; count: *mut u32, module: u64) as [] per_thread [] {
        put(count, within(|driver| driver.kernels(module))?.len() as u32)
    }

    fn cuModuleEnumerateFunctions(cx; functions: *mut u64, count: u32, module: u64) as [] per_thread [] {
        enumerate(functions, count, module)
    }

    fn cuModuleGetGlobal(
        cx;
        pointer: *mut u64,
        bytes: *mut usize,
        module: u64,
        name: *const c_char,
    ) as [cuModuleGetGlobal_v2] per_thread [] {
        variable(pointer, bytes, module, name)
    }

    fn cuLibraryLoadData(
        cx;
        library: *mut u64,
        image: u64,
        jit_options: *const u32,
        jit_values: *const *mut c_void,
        jit_count: u32,
        options: *const u32,
        values: *const *mut c_void,
        count: u32,
    ) as [] per_thread [] {
        let _ = (jit_options, jit_values, jit_count, options, values, count);
        if image == 0 {
            return Err(Code::INVALID_VALUE);
        }
        put(library, with(|driver| driver.load_data(cx.call, image))?)
    }

    fn cuLibraryLoadFromFile(
        cx;
        library: *mut u64,
        path: *const c_char,
        jit_options: *const u32,
        jit_values: *const *mut c_void,
        jit_count: u32,
        options: *const u32,
        values: *const *mut c_void,
        count: u32,
    ) as [] per_thread [] {
        let _ = (jit_options, jit_values, jit_count, options, values, count);
        let path = text(path)?;
        put(library, with(|driver| driver.load_file(path))?)
    }

    fn cuLibraryUnload(cx; library: u64) as [] per_thread [] {
        with(|driver| driver.unload(library))
    }

    fn cuLibraryGetModule(cx; module: *mut u64, library: u64) as [] per_thread [] {
        let known = with(|driver| Ok(driver.is_module(library)))?;
        if !known {
            return Err(Code::INVALID_HANDLE);
        }
        put(module, library)
    }

    fn cuLibraryGetKernel(cx; kernel: *mut u64, library: u64, name: *const c_char) as [] per_thread [] {
        let name = text(name)?;
        put(kernel, with(|driver| driver.find(library, name))?)
    }

    fn cuLibraryGetKernelCount(cx; count: *mut u32, library: u64) as [] per_thread [] {
        put(count, with(|driver| driver.kernels(library))?.len() as u32)
    }

    fn cuLibraryEnumerateKernels(cx; kernels: *mut u64, count: u32, library: u64) as [] per_thread [] {
        enumerate(kernels, count, library)
    }

    fn cuLibraryGetGlobal(
        cx;
        pointer: *mut u64,
        bytes: *mut usize,
        library: u64,
        name: *const c_char,
    ) as [cuLibraryGetManaged] per_thread [] {
        variable(pointer, bytes, library, name)
    }

    fn cuKernelGetFunction(cx; function: *mut u64, kernel: u64) as [] per_thread [] {
        within(|driver| driver.function(kernel).map(|_| ()))?;
        put(function, kernel)
    }

    fn cuKernelGetLibrary(cx; library: *mut u64, kernel: u64) as [] per_thread [] {
        put(library, within(|driver| driver.function(kernel).map(|function| function.module))?)
    }

    fn cuFuncGetModule(cx; module: *mut u64, function: u64) as [] per_thread [] {
        put(module, within(|driver| driver.function(function).map(|function| function.module))?)
    }
}

/// Address and size of a variable.
fn variable(pointer: *mut u64, bytes: *mut usize, module: u64, name: *const c_char) -> Answer {
    let name = text(name)?;
    let (base, size) = within(|driver| driver.variable(module, name))?;
    put_if(pointer, base);
    put_if(bytes, size as usize);
    Ok(())
}

fn enumerate(to: *mut u64, count: u32, module: u64) -> Answer {
    let handles = with(|driver| {
        let names = driver.kernels(module)?;
        names.iter().take(count as usize).map(|name| driver.find(module, name)).collect::<Result<Vec<_>, _>>()
    })?;
    for (at, handle) in handles.into_iter().enumerate() {
        put(to.wrapping_add(at), handle)?;
    }
    Ok(())
}
