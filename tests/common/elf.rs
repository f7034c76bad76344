//! A writer of ELF files that have sections and nothing else.

/// Bytes of the header, and of a section's header.
const HEADER: usize = 64;

/// An ELF file of 64 bits with these sections, one behind the other, each at a multiple of 8.
pub(crate) fn elf(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut placed = Vec::new();
    for (name, bytes) in sections {
        body.resize(body.len().next_multiple_of(8), 0);
        placed.push((*name, HEADER + body.len(), bytes.len()));
        body.extend_from_slice(bytes);
    }
    elf_of(&body, &placed)
}

/// An ELF file with this body behind its header, and sections of these names, offsets in the file, and sizes.
pub(crate) fn elf_of(body: &[u8], sections: &[(&str, usize, usize)]) -> Vec<u8> {
    const PROGBITS: u32 = 1;
    const STRTAB: u32 = 3;
    let (mut names, mut headers) = (vec![0u8], vec![0u8; HEADER]);
    let mut header = |names: &mut Vec<u8>, name: &str, kind: u32, offset: usize, size: usize| {
        let at = names.len() as u32;
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        headers.extend(at.to_le_bytes());
        headers.extend(kind.to_le_bytes());
        // Flags, address, offset, size; link and information; alignment, size of entries.
        for field in [2, 0, offset as u64, size as u64, 0, 8, 0] {
            headers.extend(field.to_le_bytes());
        }
    };
    for (name, offset, size) in sections {
        header(&mut names, name, PROGBITS, *offset, *size);
    }
    let names_at = HEADER + body.len();
    let names_size = names.len() + ".shstrtab".len() + 1;
    header(&mut names, ".shstrtab", STRTAB, names_at, names_size);
    let headers_at = (names_at + names_size).next_multiple_of(8);

    // 64 bits, little-endian, version 1; a shared object for x86-64.
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    // Entry point, program headers, section headers; flags and sizes.
    for field in [0, 0, headers_at as u64] {
        file.extend(field.to_le_bytes());
    }
    file.extend(0u32.to_le_bytes());
    let count = sections.len() as u16 + 2;
    for field in [HEADER as u16, 56, 0, HEADER as u16, count, count - 1] {
        file.extend(field.to_le_bytes());
    }
    file.extend_from_slice(body);
    file.extend(names);
    file.resize(headers_at, 0);
    file.extend(headers);
    file
}
