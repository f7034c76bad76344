//! Every form of the instructions that compute, in the emulator and as an H200 gave it: some lanes of what `tools/gpu/isa-check`
//! recorded there, and all fetches of textures that `tools/gpu/texture-check` did (`tests/isa/`). Needs Python 3, but no GPU.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up should stop")]

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Forms in the records.
const FORMS: usize = 3180;

#[test]
fn forms_give_what_a_gpu_gave() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut records: Vec<_> =
        std::fs::read_dir(root.join("tests/isa")).unwrap().map(|entry| entry.unwrap().path()).collect();
    records.retain(|path| path.extension().is_some_and(|extension| extension == "trim"));
    records.sort();
    let replays = records.iter().flat_map(|path| ["--replay".as_ref(), path.as_os_str()]);
    let (succeeded, said) = run("tools/gpu/isa-check", replays);
    assert!(succeeded, "{said}");
    // None may be missing or refused.
    let last = said.lines().last().unwrap_or_default();
    let numbers: Vec<usize> = last.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    let [all, equal, within] = numbers[..] else { panic!("{said}") };
    assert!(last.ends_with("within bound"), "{last}");
    assert_eq!((all, equal + within), (FORMS, FORMS), "{said}");
}

/// But for a few sums of signed bytes in the last of their 16 bits.
#[test]
fn fetches_give_what_a_gpu_gave() {
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/isa/h200-textures.json.gz");
    let (_, said) = run("tools/gpu/texture-check", ["--replay".as_ref(), record.as_os_str()]);
    assert_eq!(said.lines().last(), Some("237 cases: 235 equal, 2 differ"), "{said}");
    let different: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("differs: ")).collect();
    assert_eq!(different, ["formats/i8x4/normalized/linear/clamp: 3 of 12", "plane/i8x1: 5 of 200"]);
}

/// Whether a check succeeded, and what it said.
fn run<'a>(check: &str, arguments: impl IntoIterator<Item = &'a OsStr>) -> (bool, String) {
    let output = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(check))
        .arg(env!("CARGO_BIN_EXE_ptxrace"))
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    (
        output.status.success(),
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr),
    )
}
