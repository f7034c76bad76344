//! The exported symbols. Each is a jump through a slot of its own, so that whatever stands behind it gets the arguments where
//! the program has put them, and costs nothing more.
//!
//! At first all slots lead to `first_call`, which keeps the registers that arguments are passed in, has the address looked
//! up, puts it into the slot and goes on there. What is looked up depends on what `ptxrace exec` was told: a function of
//! the emulator's driver, a hook, or the real driver's own function.

mod names;

use std::arch::naked_asm;
use std::ffi::CStr;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::code::Code;
use names::{COUNT, NAMES};

/// Where each symbol leads.
static SLOTS: [AtomicPtr<()>; COUNT] = [const { AtomicPtr::new(first_call as *mut ()) }; COUNT];

macro_rules! symbols {
    ($($name:ident)*) => {
        #[allow(non_camel_case_types, reason = "the names are the driver's")]
        #[repr(u32)]
        enum Index {
            $($name),*
        }
        $(
            // SAFETY: no other symbol of this name is meant to be used: to stand in for the driver's is the purpose.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            #[allow(non_snake_case, reason = "the names are the driver's")]
            extern "C" fn $name() {
                // A jump changes nothing but `r11`, which no argument is passed in and nobody expects to be kept.
                std::arch::naked_asm!(
                    "mov r11d, {index}",
                    "jmp qword ptr [rip + {slots} + 8 * {index}]",
                    index = const Index::$name as u32,
                    slots = sym super::SLOTS,
                );
            }
        )*
        /// Their names, sorted.
        pub(super) const NAMES: [&std::ffi::CStr; COUNT] = [$(
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name holds no zero"),
            }
        ),*];
        pub(super) const COUNT: usize = [$(stringify!($name)),*].len();
    };
}
use symbols;

/// Looks up the symbol whose number is in `r11`, and goes there as if it had been called.
#[unsafe(naked)]
extern "C" fn first_call() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push r10",
        "push rax",
        "sub rsp, 128",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "mov edi, r11d",
        "call {look_up}",
        "mov r11, rax",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "add rsp, 128",
        "pop rax",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "jmp r11",
        look_up = sym look_up,
    );
}

/// Where a symbol leads from now on.
extern "C" fn look_up(index: u32) -> usize {
    let find = || {
        let name = NAMES.get(index as usize)?;
        crate::process::address(name)
    };
    let address = catch_unwind(find).ok().flatten().unwrap_or(unavailable as *const () as usize);
    if let Some(slot) = SLOTS.get(index as usize) {
        slot.store(address as *mut (), Ordering::Release);
    }
    address
}

/// What a symbol leads to that nobody has. Arguments are left where they are, which the C calling conventions of Linux allow.
extern "C" fn unavailable() -> u32 {
    Code::NOT_FOUND.0
}

/// All names.
pub(crate) fn names() -> impl Iterator<Item = &'static CStr> {
    NAMES.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_none_is_twice() {
        assert!(NAMES.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn whatever_is_provided_or_hooked_is_exported() {
        let exported = |name: &str| NAMES.iter().any(|other| other.to_bytes() == name.as_bytes());
        let all = crate::api::all_names().chain(crate::gpu::hooked_names());
        let missing: Vec<_> = all.filter(|name| !exported(name)).collect();
        assert_eq!(missing, [""; 0]);
        assert!(crate::gpu::hooked_names().count() > 100);
    }
}
