//! The reader of fatbins, on containers made by hand, on ones made by nvcc, and on damaged ones.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up should stop")]

#[path = "common/elf.rs"]
mod elf;
#[path = "common/fatbin.rs"]
mod write;

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection};
use proptest::prelude::*;
use ptxrace::fatbin::{
    Arch, Compression, Contents, Device, ElfSize, Fault, HEADER_BYTES, IMAGE_LIMIT, Kind, Pick, Problem,
    WRAPPER_BYTES, Wrapper, container_bytes, elf_size, pick, read,
};

use elf::{elf, elf_of};
use write::{EXACT, Entry, FAMILY, Stored, container, image, image_of};

const PTX: &str = include_str!("fatbin/kernel.ptx");
const ALL: [Stored; 3] = [Stored::Raw, Stored::Lz4, Stored::Zstd];

fn entry(stored: Stored) -> Entry<'static> {
    Entry {
        bytes: PTX.as_bytes(),
        name: "kernel.cu",
        options: "--generate-line-info",
        stored,
        ..Entry::default()
    }
}

/// A container with PTX for this architecture, which is how tests tell containers apart.
fn numbered(sm: u32) -> Vec<u8> {
    container(&[image(&Entry { sm, ..entry(Stored::Zstd) })])
}

/// The architectures of all images.
fn archs(contents: &Contents<'_>) -> Vec<u32> {
    contents.containers.iter().flat_map(|container| &container.images).map(|image| image.arch.sm).collect()
}

fn only_fault(file: &[u8]) -> Fault {
    let contents = read(file);
    assert_eq!((contents.faults.len(), contents.more_faults), (1, 0), "{:?}", contents.faults);
    contents.faults.into_iter().next().unwrap()
}

#[test]
fn what_is_written_is_read() {
    let images = ALL.map(|stored| image(&entry(stored)));
    let file = container(&images);
    let contents = read(&file);
    assert_eq!(contents.faults, []);
    let [read] = &contents.containers[..] else { panic!("{contents:?}") };
    assert_eq!((read.offset, read.section, read.images.len()), (0, None, 3));
    let mut at = HEADER_BYTES;
    for ((image, stored), bytes) in read.images.iter().zip(ALL).zip(&images) {
        let compression = match stored {
            Stored::Raw => Compression::None,
            Stored::Lz4 => Compression::Lz4,
            Stored::Zstd => Compression::Zstd,
        };
        assert_eq!((image.offset, image.kind, image.compression), (at, Kind::Ptx, compression));
        assert_eq!((image.version, image.arch.to_string()), ((8, 0), "sm_90".into()));
        assert_eq!((image.name.as_ref(), image.options.as_ref()), ("kernel.cu", "--generate-line-info"));
        assert_eq!(image.text(IMAGE_LIMIT).unwrap(), PTX);
        at += bytes.len();
    }
    assert_eq!(container_bytes(&file).unwrap(), file.len() as u64);
}

#[test]
fn kinds_and_architectures_are_told_apart() {
    let of = |kind, sm, flags| {
        let bytes = container(&[image(&Entry { kind, sm, flags, bytes: b"\x7fELF", ..Entry::default() })]);
        let contents = read(&bytes);
        let image = &contents.containers[0].images[0];
        (image.kind, image.arch.to_string())
    };
    assert_eq!(of(1, 90, EXACT), (Kind::Ptx, "sm_90a".into()));
    assert_eq!(of(2, 100, FAMILY), (Kind::Cubin, "sm_100f".into()));
    assert_eq!(of(8, 75, 0), (Kind::LtoIr, "sm_75".into()));
    assert_eq!(of(64, 75, 0), (Kind::Other(64), "sm_75".into()));
    for name in ["sm_90a", "sm_100f", "sm_75"] {
        assert_eq!(name.parse::<Arch>().unwrap().to_string(), name);
    }
    for name in ["", "90", "sm_", "sm_9", "sm_+9", "sm_90b", "sm_90af", "sm_1000", "compute_90"] {
        assert!(name.parse::<Arch>().is_err(), "{name}");
    }
}

#[test]
fn relocatable_ptx_is_known_by_its_options() {
    let is = |options| {
        let bytes = container(&[image(&Entry { options, ..Entry::default() })]);
        read(&bytes).containers[0].images[0].is_relocatable()
    };
    assert!(is("--compile-only  --generate-line-info "));
    assert!(!is("--generate-line-info") && !is(""));
}

#[test]
fn zero_bytes_end_a_text() {
    for stored in ALL {
        let bytes = [PTX.as_bytes(), b"\0\0\0"].concat();
        let file = container(&[image(&Entry { bytes: &bytes, stored, ..Entry::default() })]);
        assert_eq!(read(&file).containers[0].images[0].text(IMAGE_LIMIT).unwrap(), PTX);
    }
}

#[test]
fn containers_are_found_wherever_they_are() {
    let both = [numbered(80), numbered(90)].concat();
    let file = elf(&[
        (".text", b"\x48\xb8\x50\xed\x55\xba\x01\0\0\0\x48\xba\x50\xed\x55\xba\x01\0\x10\0\x48\x89\x14\x01\x89\x6c\x01\x08"),
        (".rodata", &[b"odd".to_vec(), numbered(75)].concat()),
        (".nv_fatbin", &[both.clone(), vec![0; 24], numbered(100)].concat()),
        ("__nv_relfatbin", &numbered(103)),
    ]);
    let contents = read(&file);
    assert_eq!(contents.faults, []);
    assert_eq!(archs(&contents), [75, 80, 90, 100, 103]);
    let sections: Vec<_> = contents.containers.iter().map(|container| container.section).collect();
    let own = Some(".nv_fatbin");
    assert_eq!(sections, [None, own, own, own, Some("__nv_relfatbin")]);
    let archive = [b"!<arch>\n".as_slice(), b"a.o/ and what else is there", &file, &file].concat();
    assert_eq!(archs(&read(&archive)), [75, 80, 90, 100, 103].repeat(2));
    assert_eq!(archs(&read(&both)), [80, 90]);
}

#[test]
fn files_without_containers_have_none() {
    for file in [&b""[..], b"\x7fELF", b"\x50\xed\x55", b"MZ", &elf(&[(".text", b"x")]), &[0; 4096]] {
        let contents = read(file);
        assert!(contents.containers.is_empty());
        assert_eq!(contents.faults.is_empty(), file != b"\x7fELF", "{:?}", contents.faults);
    }
}

/// Each is one change of a file, and what is said of it.
#[test]
fn damage_is_told_with_its_place() {
    let file = container(&[image(&entry(Stored::Zstd))]);
    let at = |offset: usize, bytes: &[u8]| {
        let mut file = file.clone();
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        only_fault(&file).to_string()
    };
    let len = file.len();
    let images = len - HEADER_BYTES;
    assert_eq!(at(4, &[7]), "at byte 0x4: expected a fatbin of version 1, found 0x7");
    assert_eq!(at(6, &[8]), "at byte 0x6: expected a fatbin header of 16 bytes, found 0x8");
    assert_eq!(
        at(8, &u64::MAX.to_le_bytes()),
        format!("at byte 0x0: a fatbin should have {} bytes, but there are only {len}", u64::MAX)
    );
    assert_eq!(at(18, &[2]), "at byte 0x12: expected an image of version 0x101, found 0x102");
    assert_eq!(at(20, &[8]), "at byte 0x14: expected a header of at least 48 bytes, found 0x8");
    assert_eq!(
        at(20, &[0xff; 4]),
        format!(
            "at byte 0x10: the header of an image should have {} bytes, but there are only {images}",
            u32::MAX
        )
    );
    assert_eq!(
        at(24, &[0xff; 8]),
        format!("at byte 0x10: an image should have {} bytes, but there are only {images}", u64::MAX)
    );
    let name = "at byte 0x10: the header of an image, for its name, should have 8589934590 bytes, but there are only 112";
    assert_eq!(at(48, &[0xff; 8]), name);
    let compressed = at(32, &[0xff; 4]);
    assert!(compressed.contains("a compressed image should have 4294967295 bytes"), "{compressed}");
    let cut = only_fault(&file[..len - 8]).to_string();
    assert_eq!(cut, format!("at byte 0x0: a fatbin should have {len} bytes, but there are only {}", len - 8));
}

#[test]
fn sections_without_containers_are_told() {
    let fault = only_fault(&elf(&[(".nv_fatbin", b"\0\0\0\0\0\0\0\0something else, but no fatbin")]));
    assert_eq!(fault.offset, 64 + 8);
    assert!(matches!(fault.problem, Problem::Unexpected { .. }), "{fault}");
    assert_eq!(read(&elf(&[(".nv_fatbin", &[0; 64])])).faults, []);
    let outside = elf_of(&[], &[(".nv_fatbin", 64, 1 << 40)]);
    assert!(matches!(only_fault(&outside).problem, Problem::Truncated { .. }));
}

/// Every change of a byte of the second of three containers.
#[test]
fn a_damaged_container_hides_no_other() {
    let parts = [numbered(80), numbered(86), numbered(90)];
    let (start, end) = (parts[0].len(), parts[0].len() + parts[1].len());
    let file = parts.concat();
    for offset in start..end {
        for flip in [0x01, 0x80, 0xff] {
            let mut file = file.clone();
            file[offset] ^= flip;
            let contents = read(&file);
            let all = archs(&contents);
            assert_eq!(
                (all.first(), all.last()),
                (Some(&80), Some(&90)),
                "byte {offset} ^ {flip:#x}: {all:?}"
            );
            let last = contents.containers.last().unwrap();
            assert_eq!((last.offset, last.images[0].text(1 << 16).unwrap().as_ref()), (end, PTX));
        }
    }
}

/// A frame of Zstandard whose blocks repeat a byte: `blocks` times 128 KiB.
fn zstd_bomb(blocks: usize) -> Vec<u8> {
    // A window of 128 KiB, no size, no checksum.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    for block in 0..blocks {
        let header = (128u32 << 10) << 3 | 1 << 1 | u32::from(block + 1 == blocks);
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.push(b' ');
    }
    frame
}

#[test]
fn bombs_stay_small() {
    let bomb = |flag, size, payload: &[u8]| {
        let file = container(&[image_of(&Entry::default(), flag, payload.len() as u32, size, payload)]);
        read(&file).containers[0].images[0].bytes(1 << 20).unwrap_err().problem
    };
    let (lz4, zstd) = (0x2000, 0x8000);
    assert_eq!(
        bomb(zstd, 100, &zstd_bomb(1 << 14)),
        Problem::WrongSize { expected: 100, found: 100, more: true }
    );
    let limit = 1 << 20;
    assert_eq!(bomb(zstd, 2 << 30, &zstd_bomb(1 << 14)), Problem::TooLarge { size: 2 << 30, limit });
    assert_eq!(bomb(zstd, u64::MAX, &zstd_bomb(1)), Problem::TooLarge { size: u64::MAX, limit });
    assert_eq!(bomb(lz4, u64::MAX, b"\x10a"), Problem::TooLarge { size: u64::MAX, limit });
    assert!(matches!(bomb(lz4, 1 << 20, b"\x10a"), Problem::Compression { method: "LZ4", .. }));
    assert!(matches!(bomb(lz4, 1, b"\x20ab"), Problem::Compression { method: "LZ4", .. }));
    assert!(matches!(bomb(lz4, 2, b"\x10a"), Problem::WrongSize { expected: 2, found: 1, more: false }));
    assert!(matches!(bomb(zstd, 9, b"nothing"), Problem::Compression { method: "zstd", .. }));
    assert!(matches!(bomb(0x1000, 9, b"nothing"), Problem::Compression { method: "unknown", .. }));
    assert!(matches!(bomb(lz4 | zstd, 9, b"nothing"), Problem::Compression { method: "unknown", .. }));
    let whole = image_of(&Entry::default(), zstd, zstd_bomb(8).len() as u32, 1 << 20, &zstd_bomb(8));
    let file = container(&[whole]);
    assert_eq!(read(&file).containers[0].images[0].bytes(1 << 20).unwrap().len(), 1 << 20);
}

#[test]
fn bytes_that_are_no_text_are_told() {
    let bytes = [PTX.as_bytes(), b"\xff"].concat();
    for stored in ALL {
        let file = container(&[image(&Entry { bytes: &bytes, stored, ..Entry::default() })]);
        let fault = read(&file).containers[0].images[0].text(IMAGE_LIMIT).unwrap_err();
        assert_eq!(fault.problem, Problem::NotText { at: PTX.len() });
    }
}

/// Faults without end are counted, and no byte is read often.
#[test]
fn hostile_files_cost_no_more_than_others() {
    let words = b"\x50\xed\x55\xba".repeat(1 << 20);
    let contents = read(&words);
    assert_eq!((contents.faults.len(), contents.faults.len() + contents.more_faults), (100, 1 << 20));

    // 10,000 sections that are all of the same bytes, and nearly so.
    let body = [numbered(80), numbered(90)].concat().repeat(500);
    let sections: Vec<_> = (0..10_000).map(|n| (".nv_fatbin", 64 + n % 3, body.len() - n % 3)).collect();
    let file = elf_of(&body, &sections);
    assert_eq!(read(&file).containers.len(), 1000);

    // Headers in headers, each of which says that it goes on to the end.
    let nested: Vec<u8> = (0..100_000u64)
        .rev()
        .flat_map(|left| [b"\x50\xed\x55\xba\x01\0\x10\0".as_slice(), &(16 * left).to_le_bytes()].concat())
        .collect();
    let contents = read(&nested);
    assert_eq!((contents.containers.len(), contents.faults.len() + contents.more_faults), (100_000, 99_999));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is done to a file, reading it ends, without a panic, with images that lie in it.
    #[test]
    fn damaged_files_are_read(
        stored in prop::sample::select(&ALL[..]),
        in_elf in any::<bool>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
        twice in prop::option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>())),
    ) {
        let containers = [container(&[image(&entry(stored)), image(&entry(Stored::Raw))]), numbered(80)].concat();
        let mut file =
            if in_elf { elf(&[(".text", b"code"), (".nv_fatbin", &containers)]) } else { containers };
        for (index, byte) in edits {
            let at = index.index(file.len());
            file[at] = byte;
        }
        if let Some((from, to)) = twice {
            let moved = file[from.index(file.len())..].to_vec();
            let to = to.index(file.len());
            file.splice(to..to, moved);
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len() + 1));
        }
        let contents = read(&file);
        let mut end = 0;
        for container in &contents.containers {
            prop_assert!(container.offset >= end);
            end = container.offset + HEADER_BYTES;
            for image in &container.images {
                prop_assert!(image.offset >= end && image.stored.len() <= file.len() - image.offset);
                end = image.offset + 48 + image.stored.len();
                if let Ok(bytes) = image.bytes(1 << 16) {
                    prop_assert!(image.compression == Compression::None || bytes.len() <= 1 << 16);
                }
                let _ = image.text(1 << 16);
            }
        }
        prop_assert!(end <= file.len());
        let _ = pick(contents.containers.first().map_or(&[], |container| &container.images), Device::new(9, 0));
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let file = [&b"\x50\xed\x55\xba\x01\0\x10\0\x60\0\0\0\0\0\0\0\x01\0\x01\x01\x40"[..], &bytes].concat();
        for image in read(&file).containers.iter().flat_map(|container| &container.images) {
            let _ = image.bytes(1 << 16);
        }
        let _ = Wrapper::parse(&bytes);
    }
}

/// Which image is taken of which, for which device.
#[test]
fn the_image_that_suits_a_device_is_picked() {
    for (images, device, picked) in [
        // Compatible PTX: the newest that the device is not older than.
        ("sm_75 sm_80 sm_90", (9, 0), "sm_90"),
        ("sm_75 sm_80 sm_90", (8, 9), "sm_80"),
        ("sm_90 sm_75", (12, 0), "sm_90"),
        ("sm_120", (9, 0), ""),
        // PTX for one device only.
        ("sm_90 sm_90a", (9, 0), "sm_90a"),
        ("sm_90a sm_90", (10, 0), "sm_90"),
        ("sm_90a", (10, 0), ""),
        ("sm_100a", (10, 3), ""),
        // PTX for a family.
        ("sm_100f sm_90", (10, 0), "sm_100f"),
        ("sm_100f sm_90", (10, 3), "sm_100f"),
        ("sm_103f sm_90", (10, 0), "sm_90"),
        ("sm_100f sm_90", (12, 0), "sm_90"),
        ("sm_120f", (12, 1), "sm_120f"),
        ("sm_100f sm_100a sm_100", (10, 0), "sm_100a"),
        ("sm_100f sm_103", (10, 3), "sm_103"),
        // One device of two names.
        ("sm_101f", (11, 0), "sm_101f"),
        ("sm_110a", (10, 1), "sm_110a"),
        ("sm_100f", (10, 1), ""),
        // Machine code, here with a `!`, only where there is no PTX.
        ("!sm_90 sm_80", (9, 0), "sm_80"),
        ("!sm_90a !sm_80", (9, 0), "!sm_90a"),
        ("!sm_80", (9, 0), ""),
        ("!sm_80 !sm_86 sm_90", (8, 9), "!sm_86"),
        ("!sm_90 sm_120", (9, 0), "!sm_90"),
        ("", (9, 0), ""),
    ] {
        let entry = |name: &str| {
            let kind = if name.starts_with('!') { 2 } else { 1 };
            let name = name.trim_start_matches('!');
            let flags =
                if name.ends_with('a') { EXACT } else { 0 } | if name.ends_with('f') { FAMILY } else { 0 };
            let sm = name.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
            image(&Entry { kind, sm, flags, ..Entry::default() })
        };
        let file = container(&images.split_whitespace().map(entry).collect::<Vec<_>>());
        let contents = read(&file);
        let found = match pick(&contents.containers[0].images, Device::new(device.0, device.1)) {
            Pick::Ptx(image) => image.arch.to_string(),
            Pick::Opaque(image) => format!("!{}", image.arch),
            Pick::Nothing => String::new(),
        };
        assert_eq!(found, picked, "{images} on {device:?}");
    }
}

#[test]
fn of_equal_images_the_newest_ptx_is_picked_then_the_first() {
    let entry = |version, name| image(&Entry { version, name, ..Entry::default() });
    let file = container(&[entry((8, 0), "old"), entry((9, 0), "new"), entry((9, 0), "newer")]);
    let contents = read(&file);
    let picked = pick(&contents.containers[0].images, Device::new(9, 0));
    assert!(matches!(picked, Pick::Ptx(image) if image.name == "new"), "{picked:?}");
}

#[test]
fn wrappers_are_read() {
    let wrapper = |magic: u32, version: u32, data: u64, extra: u64| {
        let words = [magic.to_le_bytes(), version.to_le_bytes()].concat();
        Wrapper::parse(&[&words[..], &data.to_le_bytes(), &extra.to_le_bytes()].concat())
    };
    let magic = 0x4662_43b1;
    assert_eq!(wrapper(magic, 1, 0x1000, 7).unwrap(), Wrapper { data: 0x1000, prelinked: None });
    assert_eq!(wrapper(magic, 2, 0x1000, 0).unwrap(), Wrapper { data: 0x1000, prelinked: None });
    assert_eq!(wrapper(magic, 2, 0x1000, 0x20).unwrap(), Wrapper { data: 0x1000, prelinked: Some(0x20) });
    assert_eq!(wrapper(magic, 3, 0, 0).unwrap_err().offset, 4);
    assert_eq!(wrapper(0xba55_ed50, 1, 0, 0).unwrap_err().offset, 0);
    assert!(matches!(Wrapper::parse(&[0; 23]).unwrap_err().problem, Problem::Truncated { left: 23, .. }));
}

/// What nvcc's `fatbinary` makes of `kernel.ptx`. The files are committed, so that this needs no compiler.
const MADE: [(&str, &str, Compression); 3] = [
    ("raw.fatbin", "none", Compression::None),
    ("lz4.fatbin", "speed", Compression::Lz4),
    ("zstd.fatbin", "size", Compression::Zstd),
];

/// The size of an ELF file of which at first nothing is known, as one asks for it.
fn asked(file: &[u8]) -> Result<u64, Fault> {
    let mut known = 0;
    loop {
        match elf_size(&file[..known])? {
            ElfSize::Exactly(size) => return Ok(size),
            ElfSize::AtLeast(more) => {
                assert!(more > known as u64, "no progress");
                let Ok(more) = usize::try_from(more) else { return Ok(u64::MAX) };
                if more > file.len() {
                    return Ok(more as u64);
                }
                known = more;
            }
        }
    }
}

#[test]
fn the_size_of_an_elf_file_is_behind_all_that_is_in_it() {
    let file = elf(&[(".text", &[1; 100]), (".nv.info", &[2; 30])]);
    let size = file.len() as u64;
    assert_eq!(asked(&file), Ok(size));
    // A section that ends behind the table of sections, and one without bytes, which has none.
    let far = elf_of(&[0; 8], &[(".far", 64, 5000)]);
    assert_eq!(asked(&far), Ok(5064));
    let mut without = far.clone();
    let table = u64::from_le_bytes(*far[40..].first_chunk().unwrap()) as usize;
    without[table + 64 + 4] = 8;
    assert_eq!(asked(&without), Ok(far.len() as u64));
    // A number of sections that the header has no room for.
    let mut many = file.clone();
    let (table, count) = (u64::from_le_bytes(*file[40..].first_chunk().unwrap()) as usize, file[60]);
    many[60] = 0;
    many[table + 32] = count;
    assert_eq!(asked(&many), Ok(size));
    let fault = asked(&numbered(90).repeat(8)).unwrap_err();
    assert!(fault.to_string().contains("the magic number of an ELF file"), "{fault}");
}

proptest! {
    #[test]
    fn the_size_of_a_damaged_elf_file_is_some_number(
        damage in prop::collection::vec((0usize..64, any::<u8>()), 1..8),
    ) {
        let mut file = elf(&[(".text", &[1; 100])]);
        for (at, byte) in damage {
            file[at] = byte;
        }
        let _ = asked(&file);
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fatbin")
}

#[test]
fn fatbins_of_the_compiler_are_read() {
    for (name, _, compression) in MADE {
        let file = std::fs::read(folder().join(name)).unwrap();
        let contents = read(&file);
        assert_eq!((contents.faults.as_slice(), contents.containers.len()), (&[][..], 1), "{name}");
        let [image] = &contents.containers[0].images[..] else { panic!("{name}: {contents:?}") };
        assert_eq!(
            (image.kind, image.compression, image.version),
            (Kind::Ptx, compression, (8, 0)),
            "{name}"
        );
        assert_eq!(image.arch.to_string(), "sm_90");
        assert_eq!((image.name.as_ref(), image.options.as_ref()), ("kernel.cu", "--generate-line-info"));
        assert_eq!(image.text(IMAGE_LIMIT).unwrap(), PTX, "{name}");
    }
}

/// The tools that `cargo xtask cuda` installs.
fn cuda() -> PathBuf {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/cuda/lib");
    let pythons = lib.read_dir().expect("no CUDA in target/cuda: run `cargo xtask cuda` first");
    let homes = pythons.flatten().map(|python| python.path().join("site-packages/nvidia/cu13"));
    homes.into_iter().find(|home| home.join("bin/nvcc").exists()).expect("no nvcc in target/cuda")
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// With `PTXRACE_BLESS=1` they are written.
#[test]
fn the_compiler_makes_the_committed_fatbins() {
    let scratch = tempfile::tempdir().unwrap();
    for (name, mode, _) in MADE {
        let made = scratch.path().join(name);
        run(Command::new(cuda().join("bin/fatbinary"))
            .current_dir(folder())
            .args(["-64", "--ident=kernel.cu", "--cmdline=--generate-line-info"])
            .args([&format!("--compress-mode={mode}"), "--image3=kind=ptx,sm=90,file=kernel.ptx"])
            .arg(format!("--create={}", made.display())));
        let made = std::fs::read(made).unwrap();
        if std::env::var_os("PTXRACE_BLESS").is_some_and(|value| value == "1") {
            std::fs::write(folder().join(name), &made).unwrap();
        }
        assert!(made == std::fs::read(folder().join(name)).unwrap(), "{name} differs");
    }
}

const DEVICE_CODE: &str = "__device__ int next(int value) { return value + 1; }\n";
const PROGRAM: &str = "extern __device__ int next(int);\n\
    __global__ void fill(int *out) { out[threadIdx.x] = next(threadIdx.x); }\n\
    int main() { fill<<<1, 32>>>(nullptr); }\n";

/// A linked program of two translation units, for two architectures; its wrappers, and its PTX.
#[test]
fn programs_of_the_compiler_are_read() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("fill.cu"), PROGRAM).unwrap();
    std::fs::write(scratch.path().join("next.cu"), DEVICE_CODE).unwrap();
    run(Command::new(cuda().join("bin/nvcc"))
        .current_dir(scratch.path())
        .args([
            "-lineinfo",
            "-rdc=true",
            "-compress-mode=speed",
            "-Xcompiler=-no-pie",
            "-Xlinker=-no-pie",
            "-o",
            "fill",
        ])
        .args(["-gencode", "arch=compute_80,code=compute_80"])
        .args(["-gencode", "arch=compute_90a,code=[compute_90a,sm_90a]", "fill.cu", "next.cu"]));
    let file = std::fs::read(scratch.path().join("fill")).unwrap();
    let contents = read(&file);
    assert_eq!(contents.faults, []);
    let relocatable: Vec<_> =
        contents.containers.iter().filter(|container| container.section == Some("__nv_relfatbin")).collect();
    for (own, word) in [("fill.cu", ".entry"), ("next.cu", ".func")] {
        let images: Vec<_> = relocatable
            .iter()
            .flat_map(|container| &container.images)
            .filter(|image| image.name == own && image.kind == Kind::Ptx)
            .collect();
        let archs: Vec<_> = images.iter().map(|image| image.arch.to_string()).collect();
        assert_eq!(archs, ["sm_80", "sm_90a"], "{own}: {relocatable:?}");
        for image in images {
            let text = image.text(IMAGE_LIMIT).unwrap();
            assert!(text.contains(&format!(".target {}\n", image.arch)) && text.contains(word), "{text}");
            assert!(image.is_relocatable() && ptxrace::ptx::parse(&text).errors.is_empty());
        }
    }
    // The linked image has machine code only.
    let linked =
        contents.containers.iter().find(|container| container.section == Some(".nv_fatbin")).unwrap();
    assert!(matches!(pick(&linked.images, Device::new(9, 0)), Pick::Opaque(_)), "{linked:?}");

    // Its wrapper points at it: the program is not moved when it is loaded, so addresses are those of the file.
    let program = object::File::parse(&*file).unwrap();
    let section = |name| program.section_by_name(name).unwrap();
    let wrappers: Vec<_> = section(".nvFatBinSegment")
        .data()
        .unwrap()
        .chunks(WRAPPER_BYTES)
        .map(|bytes| Wrapper::parse(bytes).unwrap())
        .collect();
    let code = section(".nv_fatbin");
    let address = linked.offset as u64 - code.file_range().unwrap().0 + code.address();
    let own: Vec<_> = wrappers.iter().filter(|wrapper| wrapper.data == address).collect();
    assert!(matches!(own[..], [Wrapper { prelinked: Some(_), .. }]), "{wrappers:x?}");
}
