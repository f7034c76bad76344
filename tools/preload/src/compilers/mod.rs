//! Compilers that programs call at run time, NVRTC and nvJitLink: what they make is noted together with the PTX it was made
//! from, so that the cubin leads back to it when it is loaded.
//!
//! The symbols here stand before those of the real library. A program that is linked to it gets ours because this library is
//! loaded first; one that opens it by its path gets a front, whose symbols are ours and then the library's. Each symbol
//! calls the real one, does nothing else to what the program sees, and where anything is wanting notes nothing: then
//! kernels count as not instrumented, and the report says so.

mod front;
mod nvjitlink;
mod nvrtc;
mod real;

pub(crate) use real::instead;

use std::ffi::CStr;
use std::path::PathBuf;

use ptxrace::session::exec::provenance;
use real::Library;

/// A symbol of a compiler is called, with up to five numbers or pointers.
struct Call {
    library: Library,
    symbol: &'static CStr,
    arguments: [usize; 5],
    /// The address that the symbol returns to.
    caller: usize,
}

impl Call {
    /// Calls the real one; `failed` if there is none.
    fn real(&self, failed: u32) -> u32 {
        self.other(self.symbol, self.arguments, failed)
    }

    /// Calls another symbol of the same library.
    fn other(&self, symbol: &CStr, [a, b, c, d, e]: [usize; 5], failed: u32) -> u32 {
        let Some(at) = real::find(self.library, symbol, self.caller) else { return failed };
        // SAFETY: the library's function of that name. It takes up to five integers or pointers and gives an enumerator;
        // by the C calling conventions of Linux those that it does not take do no harm.
        let real: extern "C" fn(usize, usize, usize, usize, usize) -> u32 =
            unsafe { std::mem::transmute(at) };
        real(a, b, c, d, e)
    }
}

/// Notes what a cubin was made from. The program gets it in any case.
fn note(cubin: &[u8], texts: &[(PathBuf, String)]) {
    if let Some(folder) = crate::process::folder() {
        let _ = provenance::record(&provenance::folder(folder), cubin, texts);
    }
}

/// Bytes that the program has said are there.
fn bytes(address: usize, count: usize) -> Vec<u8> {
    use crate::watch::HostMemory;
    let mut bytes = vec![0; count];
    crate::api::Own.read(address as u64, &mut bytes);
    bytes
}

/// Symbols of a library, each of which does what a function makes of its call. Of the sixth argument's register, which
/// none of them uses, they make the address they return to.
macro_rules! symbols {
    ($library:expr, $function:path, $failed:expr; $($name:ident)*) => {
        $(
            #[allow(non_snake_case, reason = "the names are the library's")]
            mod $name {
                use std::ffi::CStr;

                #[allow(unused_imports, reason = "not every file needs all")]
                use super::*;

                extern "C" fn called(a: usize, b: usize, c: usize, d: usize, e: usize, caller: usize) -> u32 {
                    let name = CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes());
                    let Ok(symbol) = name else { return $failed };
                    let call = $crate::compilers::Call { library: $library, symbol, arguments: [a, b, c, d, e], caller };
                    let call = std::panic::AssertUnwindSafe(|| $function(&call));
                    std::panic::catch_unwind(call).unwrap_or($failed)
                }

                // SAFETY: the name is the library's, to stand before it is the purpose. Arguments and stack are as they were
                // when it jumps on.
                #[unsafe(no_mangle)]
                #[unsafe(naked)]
                pub(crate) extern "C" fn $name() -> u32 {
                    core::arch::naked_asm!(
                        ".cfi_startproc",
                        "endbr64",
                        "mov r9, [rsp]",
                        "jmp {called}",
                        ".cfi_endproc",
                        called = sym called,
                    )
                }
            }
        )*
    };
}
use symbols;
