//! `cargo xtask samples`: the PTX of the sample programs, compiled from the `.cu` beside it.
//!
//! The PTX is committed, so that neither tests nor users need the compiler. `--check` proves that what is
//! committed is what the pinned compiler makes of the source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Folders, below the workspace root, whose `.cu` files have a `.ptx` beside them.
const FOLDERS: [&str; 3] = ["ptx-samples", "tests/cases", "benches/kernels"];

#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// Write the PTX beside its source.
    Write,
    /// Fail if the committed PTX differs.
    Check,
}

/// Compiles every sample, on as many threads as there are cores.
pub(crate) fn compile(mode: Mode) -> Result<(), String> {
    let nvcc = crate::cuda::install()?.join("bin/nvcc");
    let mut sources = Vec::new();
    for folder in FOLDERS {
        find_sources(&crate::root().join(folder), &mut sources)?;
    }
    sources.sort();
    let count = sources.len();

    let queue = Mutex::new(sources.into_iter());
    let errors = Mutex::new(Vec::new());
    let next = || queue.lock().ok()?.next();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(source) = next() {
                    if let Err(error) = compile_one(&nvcc, &source, mode)
                        && let Ok(mut errors) = errors.lock()
                    {
                        errors.push(format!("{}: {error}", source.display()));
                    }
                }
            });
        }
    });

    let mut errors = errors.into_inner().map_err(|_| "a compilation thread panicked")?;
    if errors.is_empty() {
        eprintln!("{count} samples compiled");
        return Ok(());
    }
    errors.sort();
    Err(format!("{} of {count} samples failed\n{}", errors.len(), errors.join("\n")))
}

fn find_sources(folder: &Path, sources: &mut Vec<PathBuf>) -> Result<(), String> {
    let cannot_read = |error| format!("failed to read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(cannot_read)? {
        let path = entry.map_err(cannot_read)?.path();
        if path.is_dir() {
            find_sources(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "cu") {
            sources.push(path);
        }
    }
    Ok(())
}

fn compile_one(nvcc: &Path, source: &Path, mode: Mode) -> Result<(), String> {
    let (Some(folder), Some(name)) = (source.parent(), source.file_name()) else {
        return Err("not a file".to_owned());
    };
    let target = source.with_extension("ptx");
    let scratch = source.with_extension("ptx.new");
    let compiled = crate::run(
        Command::new(nvcc)
            .args(["-ptx", "-arch=sm_90", "-lineinfo", "-o"])
            .args([scratch.as_os_str(), name])
            .current_dir(folder),
    )
    .and_then(|()| fs::read_to_string(&scratch).map_err(|error| format!("failed to read the PTX: {error}")));
    // A failed compilation leaves nothing behind, so this error says nothing new.
    let _ = fs::remove_file(&scratch);
    let ptx: String = compiled?.split_inclusive('\n').map(|line| portable(line, folder)).collect();

    match mode {
        Mode::Write => fs::write(&target, ptx).map_err(|error| format!("failed to write the PTX: {error}")),
        Mode::Check => match fs::read_to_string(&target) {
            Ok(committed) if committed == ptx => Ok(()),
            Ok(_) => Err("the committed PTX differs; run `cargo xtask samples`".to_owned()),
            Err(error) => Err(format!("failed to read the committed PTX: {error}")),
        },
    }
}

/// A line of PTX without what depends on this machine. `.file` names the source relative to its folder, and
/// CUDA's own headers as `cuda/include/...`; names that are internal to a file lose the hash of its path.
fn portable(line: &str, folder: &Path) -> String {
    if line.starts_with(".b8 ") {
        return without_path_hash(line);
    }
    let Some((before, path)) = line.split_once('"').filter(|_| line.starts_with("\t.file")) else {
        return line.to_owned();
    };
    let folder = format!("{}/", folder.display());
    if let Some(name) = path.strip_prefix(&folder) {
        return format!("{before}\"{name}");
    }
    match path.rfind("/include/") {
        Some(at) => format!("{before}\"cuda{}", &path[at..]),
        None => line.to_owned(),
    }
}

/// Internal names read `_ZN37_INTERNAL_`, eight hexadecimal digits, and so on; nvcc derives the digits from
/// the absolute path. They appear as the bytes of a string; a name starts on a line of its own.
fn without_path_hash(line: &str) -> String {
    let marker: String = b"_INTERNAL_".iter().map(|byte| format!("{byte},")).collect();
    let Some((before, after)) = line.split_once(&marker) else { return line.to_owned() };
    match after.splitn(9, ',').nth(8) {
        Some(rest) => format!("{before}{marker}{}{rest}", "48,".repeat(8)),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lose_what_depends_on_the_machine() {
        let portable = |line: &str| portable(line, Path::new("/home/me/samples"));
        assert_eq!(portable("\t.file\t1 \"/home/me/samples/a.cu\"\n"), "\t.file\t1 \"a.cu\"\n");
        assert_eq!(
            portable("\t.file\t2 \"/opt/cu13/bin/..//include/sm_30_intrinsics.hpp\"\n"),
            "\t.file\t2 \"cuda/include/sm_30_intrinsics.hpp\"\n"
        );
        let bytes = |text: &str| {
            let bytes: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
            format!(".b8 {}\n", bytes.join(","))
        };
        assert_eq!(
            portable(&bytes("_ZN37_INTERNAL_a009c5c0_7_racy_cu")),
            bytes("_ZN37_INTERNAL_00000000_7_racy_cu")
        );
        for line in ["\tld.global.u32 \t%r1, [%rd1];\n", &bytes("_INTERNAL_1"), "\t.file\n"] {
            assert_eq!(portable(line), line);
        }
    }
}
