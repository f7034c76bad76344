//! `dlopen`, so that programs which load the driver by a path get the wrapper as well, and those that load a compiler get it by
//! way of a front.
//!
//! The loader looks at who calls it: libraries are found by the run path of the caller. So what stands here asks for the
//! file and jumps; it never calls the loader itself. Every other library is loaded as if this were not there.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is loaded already under this name is us.
const OWN: &CStr = c"libcuda.so.1";
/// Files that are the driver.
const DRIVER: [&[u8]; 2] = [b"libcuda.so", b"libcuda.so.1"];

/// What to load, and by which function. The two are returned in registers, as the jump expects.
#[repr(C)]
struct Answer {
    path: *const c_char,
    loader: usize,
}

/// Loads a library by the loader's own function, also one that has the driver's name.
pub(crate) fn load(path: &CStr, flags: c_int) -> *mut c_void {
    let Some(loader) = loader() else { return std::ptr::null_mut() };
    // SAFETY: this is the loader's function, which has these types.
    let loader: extern "C" fn(*const c_char, c_int) -> *mut c_void = unsafe { std::mem::transmute(loader) };
    loader(path.as_ptr(), flags)
}

/// The loader's own function.
fn loader() -> Option<usize> {
    static LOADER: AtomicUsize = AtomicUsize::new(0);
    match LOADER.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: the name ends with a zero byte.
            let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr()) } as usize;
            LOADER.store(found, Ordering::Relaxed);
            (found != 0).then_some(found)
        }
        known => Some(known),
    }
}

/// Where there is no loader.
extern "C" fn nothing(_: *const c_char, _: c_int) -> *mut c_void {
    std::ptr::null_mut()
}

extern "C" fn choose(path: *const c_char) -> Answer {
    let loader = loader().unwrap_or(nothing as *const () as usize);
    if path.is_null() {
        return Answer { path, loader };
    }
    // SAFETY: it is a path that ends with a zero byte.
    let asked = unsafe { CStr::from_ptr(path) };
    let instead = if is_driver(asked) {
        Some(OWN)
    } else {
        std::panic::catch_unwind(|| crate::compilers::instead(asked)).unwrap_or(None)
    };
    Answer { path: instead.map_or(path, CStr::as_ptr), loader }
}

fn is_driver(path: &CStr) -> bool {
    let file = path.to_bytes().rsplit(|byte| *byte == b'/').next();
    file.is_some_and(|file| DRIVER.contains(&file))
}

/// The loader's function, but for the driver.
// SAFETY: the name is the loader's, to stand before it is the purpose. The arguments and the stack are as they were when it jumps on.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "call {choose}",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "mov rdi, rax",
        "jmp rdx",
        ".cfi_endproc",
        choose = sym choose,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_known_by_its_file() {
        for path in [c"libcuda.so", c"libcuda.so.1", c"/usr/lib/libcuda.so.1", c"./libcuda.so"] {
            assert!(is_driver(path), "{path:?}");
        }
        for path in
            [c"", c"/", c"libcuda.so.1/", c"libcudart.so.13", c"libcuda.so.12", c"/libcuda.so.1/libz.so"]
        {
            assert!(!is_driver(path), "{path:?}");
        }
    }

    #[test]
    fn others_are_loaded_as_ever() {
        // SAFETY: the loader's own declaration, which calls what stands above.
        unsafe {
            let own = libc::dlopen(std::ptr::null(), libc::RTLD_NOW);
            assert!(!own.is_null());
            assert!(libc::dlopen(c"/no/such/library.so".as_ptr(), libc::RTLD_NOW).is_null());
            assert!(!libc::dlerror().is_null());
        }
    }
}
