//! The front of a library: a library with nothing in it that is linked to this one and then to the real one, so that whoever
//! opens it finds our symbols first and all others where they are.

use object::elf;
use object::write::elf::{FileHeader, ProgramHeader, Writer};

/// What this library is loaded as.
const OWN: &[u8] = b"libcuda.so.1";
const PAGE: u64 = 0x1000;

/// The file.
pub(super) fn file(real: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(object::Endianness::Little, true, &mut bytes);
    writer.reserve_file_header();
    writer.reserve_program_headers(3);
    let needed = [writer.add_dynamic_string(OWN), writer.add_dynamic_string(real)];
    let dynamic = writer.reserve_dynamic(8);
    let dynamic_bytes = writer.reserved_len() - dynamic;
    writer.reserve_null_dynamic_symbol_index();
    let hash = writer.reserve_hash(1, 1);
    let symbols = writer.reserve_dynsym();
    let strings = writer.reserve_dynstr().ok()?;
    let strings_bytes = writer.reserved_len() - strings;
    let all = writer.reserved_len();

    let header = FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_DYN,
        e_machine: elf::EM_X86_64,
        e_entry: 0,
        e_flags: elf::FileFlags(0),
    };
    writer.write_file_header(&header).ok()?;
    writer.write_align_program_headers();
    // The loader writes to the dynamic section.
    let segment = |p_type, offset, size, p_align| ProgramHeader {
        p_type,
        p_flags: elf::PF_R | elf::PF_W,
        p_offset: offset,
        p_vaddr: offset,
        p_paddr: offset,
        p_filesz: size,
        p_memsz: size,
        p_align,
    };
    writer.write_program_header(&segment(elf::PT_LOAD, 0, all, PAGE));
    writer.write_program_header(&segment(elf::PT_DYNAMIC, dynamic, dynamic_bytes, 8));
    // Without one, the stack would have to be executable.
    writer.write_program_header(&segment(elf::PT_GNU_STACK, 0, 0, 16));
    writer.write_align_dynamic();
    for name in needed {
        writer.write_dynamic_string(elf::DT_NEEDED, name).ok()?;
    }
    writer.write_dynamic(elf::DT_HASH, hash).ok()?;
    writer.write_dynamic(elf::DT_SYMTAB, symbols).ok()?;
    writer.write_dynamic(elf::DT_SYMENT, 24).ok()?;
    writer.write_dynamic(elf::DT_STRTAB, strings).ok()?;
    writer.write_dynamic(elf::DT_STRSZ, strings_bytes).ok()?;
    writer.write_dynamic(elf::DT_NULL, 0).ok()?;
    writer.write_hash(1, 1, |_| None);
    writer.write_null_dynamic_symbol();
    writer.write_dynstr();
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, CString};

    use super::*;

    /// The C library stands for the real one: a program that opens the front finds its symbols.
    #[test]
    fn what_is_behind_a_front_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("front.so");
        // There is no `libcuda.so.1` here.
        let front = file(b"libm.so.6").unwrap();
        let own = front.windows(OWN.len()).position(|part| part == OWN).unwrap();
        let mut front = front;
        front[own..own + OWN.len()].copy_from_slice(b"libc.so.6\0\0\0");
        std::fs::write(&path, front).unwrap();
        let path = CString::new(path.into_os_string().into_encoded_bytes()).unwrap();
        // SAFETY: a library without code, and functions of the loader.
        unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
            let why = if handle.is_null() { CStr::from_ptr(libc::dlerror()) } else { c"" };
            assert!(!handle.is_null(), "{why:?}");
            assert!(!libc::dlsym(handle, c"cos".as_ptr()).is_null());
            assert!(!libc::dlsym(handle, c"malloc".as_ptr()).is_null());
            assert!(libc::dlsym(handle, c"no_such_symbol".as_ptr()).is_null());
        }
    }
}
