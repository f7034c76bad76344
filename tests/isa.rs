//! Every form of the instructions that compute, in the emulator and as an H200 gave it: some lanes of what `tools/gpu/isa-check`
//! recorded there (`tests/isa/`). Needs Python 3, but no GPU.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up should stop")]

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
    let output = Command::new("python3")
        .arg(root.join("tools/gpu/isa-check"))
        .arg(env!("CARGO_BIN_EXE_ptxrace"))
        .args(records.iter().flat_map(|path| ["--replay".as_ref(), path.as_os_str()]))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // None may be missing or refused.
    let last = said.lines().last().unwrap_or_default();
    let numbers: Vec<usize> = last.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    let [all, equal, within] = numbers[..] else { panic!("{said}") };
    assert!(last.ends_with("within bound"), "{last}");
    assert_eq!((all, equal + within), (FORMS, FORMS), "{said}");
}
