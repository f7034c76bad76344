//! The rooms of `src/` import one way, as the architecture in `src/lib.rs` says.

use std::fs;
use std::path::{Path, PathBuf};

/// Rooms from the bottom up: each imports only from itself and from those before it.
const ROOMS: [&str; 15] = [
    "span",
    "diag",
    "fatbin",
    "ptx",
    "isa",
    "abi",
    "tensor",
    "instrument",
    "backend",
    "trace",
    "finding",
    "event",
    "engine",
    "explain",
    "report",
];
/// These wire the rooms and may import anything.
const WIRING: [&str; 4] = ["session", "cli", "main", "lib"];

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("src can be read") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

fn room(path: &Path) -> String {
    let inside = path.strip_prefix(root().join("src")).expect("a file of src");
    let first = inside.components().next().expect("a name");
    Path::new(first.as_os_str()).with_extension("").to_string_lossy().into_owned()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Rooms named after `crate::` in a line of code, braces of a `use` included.
fn mentioned(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        for (at, _) in code.match_indices("crate::") {
            // `$crate::` of a macro and `ptxrace_crate::` are something else.
            if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
                continue;
            }
            let rest = &code[at + "crate::".len()..];
            let names = match rest.strip_prefix('{') {
                Some(list) => list.split('}').next().unwrap_or("").split(',').map(str::trim).collect(),
                None => vec![rest],
            };
            for name in names {
                let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                found.push((number + 1, name));
            }
        }
    }
    found
}

#[test]
fn imports_go_one_way() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    assert!(files.len() > 20, "only {} files found", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let own = room(&file);
        if WIRING.contains(&own.as_str()) {
            continue;
        }
        let Some(level) = ROOMS.iter().position(|r| *r == own) else {
            wrong.push(format!("{}: `{own}` is not a room of tests/tidy.rs", file.display()));
            continue;
        };
        for (line, name) in mentioned(&fs::read_to_string(&file).expect("a source")) {
            match ROOMS.iter().position(|r| *r == name) {
                Some(other) if other <= level => {}
                _ => wrong.push(format!("{}:{line}: `{own}` imports `{name}`", file.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_check_sees_an_import_that_goes_the_wrong_way() {
    assert_eq!(mentioned("use crate::{engine::X, abi};"), [(1, "engine".into()), (1, "abi".into())]);
    assert_eq!(mentioned("// crate::engine"), []);
    assert_eq!(mentioned("let x = crate::report::text();"), [(1, "report".into())]);
}

/// Lines of code with `unsafe`, that of attributes aside.
fn unsafe_lines(text: &str) -> impl Iterator<Item = usize> {
    let code = |line: &str| line.split("//").next().unwrap_or("").replace("#[unsafe(", "");
    let found = text.lines().enumerate().filter(move |(_, line)| {
        let code = code(line);
        code.contains("unsafe ") || code.contains("unsafe{")
    });
    found.map(|(number, _)| number)
}

#[test]
fn unsafe_stays_in_its_rooms() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    sources(&root().join("tools/preload/src"), &mut files);
    for file in files {
        let inside = file.strip_prefix(root()).expect("a file of this repository");
        let allowed = [
            "src/backend/gpu",
            "src/abi",
            "tools/preload/src/api",
            "tools/preload/src/compilers",
            "tools/preload/src/gpu",
            "tools/preload/src/process.rs",
            "tools/preload/src/stubs",
            "tools/preload/src/trampoline.rs",
        ];
        if allowed.iter().any(|allowed| inside.starts_with(allowed)) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source");
        let found = unsafe_lines(&text).next();
        assert_eq!(found, None, "{}:{} uses `unsafe`", inside.display(), found.map_or(0, |n| n + 1));
    }
}

#[test]
fn the_wrapper_gives_a_reason_for_each_unsafe() {
    let mut files = Vec::new();
    sources(&root().join("tools/preload/src"), &mut files);
    let mut reasons = 0;
    for file in files {
        let text = fs::read_to_string(&file).expect("a source");
        let lines: Vec<_> = text.lines().collect();
        // Who calls an unsafe function gives the reason.
        for at in unsafe_lines(&text).filter(|at| !lines[*at].contains("unsafe fn ")) {
            let before = &lines[at.saturating_sub(3)..=at];
            let given = before.iter().any(|line| line.contains("// SAFETY: "));
            assert!(given, "{}:{} has no `// SAFETY:`", file.display(), at + 1);
            reasons += 1;
        }
    }
    assert!(reasons > 5, "only {reasons} found");
}
