//! Any bytes give containers and faults, and images that decompress within their limit or not at all: of files as they come, and
//! of images with a sound header around them.
#![no_main]

#[path = "../../../tests/common/elf.rs"]
mod elf;

use libfuzzer_sys::fuzz_target;
use ptxrace::fatbin::{Compression, Device, Wrapper, container_bytes, pick, read};

const LIMIT: usize = 1 << 20;

/// A container with one image: the first bytes choose how it is stored and its size.
fn sound(data: &[u8]) -> Vec<u8> {
    let Some(([choice, a, b], payload)) = data.split_first_chunk() else { return Vec::new() };
    let flags: u64 = [0x2011, 0x8011, 0x10_2011, 0x20_8011][usize::from(choice % 4)];
    let size = u64::from(u16::from_le_bytes([*a, *b])) << (choice / 4 % 8);
    let mut out = b"\x50\xed\x55\xba\x01\0\x10\0".to_vec();
    out.extend((64 + payload.len() as u64).to_le_bytes());
    out.extend(b"\x01\0\x01\x01\x40\0\0\0");
    out.extend((payload.len() as u64).to_le_bytes());
    out.extend((payload.len() as u32).to_le_bytes());
    out.extend(b"\0\0\0\0\0\0\x09\0\x5a\0\0\0\0\0\0\0\0\0\0\0");
    out.extend(flags.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(payload);
    out
}

fuzz_target!(|data: &[u8]| {
    let Some((first, data)) = data.split_first() else { return };
    let file = match first % 4 {
        0 => data.to_vec(),
        1 => sound(data),
        2 => elf::elf(&[(".rodata", b"odd"), (".nv_fatbin", data), ("__nv_relfatbin", &sound(data))]),
        _ => {
            let (at, size) = (usize::from(data.first().copied().unwrap_or(0)), data.len());
            elf::elf_of(
                data,
                &[(".nv_fatbin", at, size), (".nv_fatbin", 64, size), ("__nv_relfatbin", 72, at)],
            )
        }
    };
    let _ = (Wrapper::parse(data), container_bytes(data));
    let contents = read(&file);
    assert!(contents.faults.len() <= 100);
    let mut end = 0;
    for container in &contents.containers {
        assert!(container.offset >= end, "containers overlap");
        end = container.offset;
        for image in &container.images {
            assert!(image.offset > end && image.offset + image.stored.len() <= file.len());
            end = image.offset;
            if let Ok(bytes) = image.bytes(LIMIT) {
                assert!(image.compression == Compression::None || bytes.len() <= LIMIT);
                assert_eq!(bytes.len() as u64, image.size);
            }
            let _ = image.text(LIMIT);
        }
        let _ = pick(&container.images, Device::new(9, 0));
    }
});
