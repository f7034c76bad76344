//! What stands in for ptxas: it runs the real one, and notes which PTX the cubin was made from.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use super::{Ended, Settings, VARIABLE, provenance};

/// Names that it goes by. Triton has a ptxas of its own for newer devices.
pub(super) const NAMES: [&str; 2] = ["ptxas", "ptxas-blackwell"];
/// Variables that hold the paths of what the user wants run under these names.
pub(super) const REAL: [&str; 2] = ["PTXRACE_PTXAS", "PTXRACE_PTXAS_BLACKWELL"];
/// Where ptxas writes when it is not told where.
const DEFAULT_OUTPUT: &str = "elf.o";

/// The name among `NAMES` that a program was called by.
pub fn called_as(program: &OsStr) -> Option<&'static str> {
    let file = Path::new(program).file_name()?;
    NAMES.into_iter().find(|name| file == *name)
}

/// Runs the real assembler with these arguments. What it prints and how it ends is passed on.
pub fn run(name: &'static str, arguments: &[OsString]) -> io::Result<Ended> {
    let own = std::env::current_exe()?;
    let real = find(name, &own).ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, format!("no `{name}` found in PATH or /usr/local/cuda"))
    })?;
    // Read before it runs: inputs may be temporary.
    let inputs = inputs(arguments);
    let status = Command::new(real).args(arguments).status()?;
    if status.success()
        && !inputs.is_empty()
        && let Some(settings) = std::env::var(VARIABLE).ok().and_then(|text| Settings::parse(&text))
        && let Ok(cubin) = std::fs::read(output(arguments))
    {
        // The program gets its cubin whether or not this can be written; the report will say that its PTX is not known.
        let _ = provenance::record(&provenance::folder(&settings.folder), &cubin, &inputs);
    }
    Ok(ended(status))
}

fn ended(status: ExitStatus) -> Ended {
    match status.code() {
        Some(code) => Ended::Status(code),
        None => Ended::Signal(status.signal().unwrap_or(0)),
    }
}

/// The PTX files among arguments. An argument that belongs to an option may be one only if it is a file with PTX in it.
fn inputs(arguments: &[OsString]) -> Vec<(PathBuf, String)> {
    let plain = arguments.iter().filter(|argument| !argument.as_encoded_bytes().starts_with(b"-"));
    let output = output(arguments);
    let read = |argument: &OsString| {
        let path = PathBuf::from(argument);
        let text = (path != output).then(|| std::fs::read_to_string(&path).ok()).flatten()?;
        text.contains(".version").then(|| (shown(&path, &text), text))
    };
    plain.filter_map(read).collect()
}

/// What reports call a text: a temporary file has another name in each run, so its first kernel gives the name.
fn shown(path: &Path, text: &str) -> PathBuf {
    let temporary = path.starts_with(std::env::temp_dir());
    temporary.then(|| provenance::by_kernel(text)).flatten().unwrap_or_else(|| path.into())
}

/// Where the cubin goes: `-o FILE`, `--output-file FILE` or `--output-file=FILE`.
fn output(arguments: &[OsString]) -> PathBuf {
    let mut output = PathBuf::from(DEFAULT_OUTPUT);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let joined = ["-o=", "--output-file=", "-output-file="]
            .into_iter()
            .find_map(|option| argument.to_str()?.strip_prefix(option));
        if let Some(joined) = joined {
            output = joined.into();
        } else if ["-o", "--output-file", "-output-file"].into_iter().any(|option| argument == option)
            && let Some(next) = rest.next()
        {
            output = next.into();
        }
    }
    output
}

/// The real assembler: what the user names, else that of the Triton which asks, else the next one in PATH, else CUDA's.
fn find(name: &'static str, own: &Path) -> Option<PathBuf> {
    let variable =
        NAMES.into_iter().zip(REAL).find(|(known, _)| *known == name).map(|(_, variable)| variable);
    let named = variable.and_then(std::env::var_os).map(PathBuf::from);
    let parent = std::fs::read_to_string(format!("/proc/{}/maps", std::os::unix::process::parent_id()));
    let of_triton = parent.ok().and_then(|maps| beside_triton(&maps)).map(|folder| folder.join(name));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).flat_map(|folder| [folder.join(name), folder.join(NAMES[0])]);
    let of_cuda = glob::glob("/usr/local/cuda*/bin/ptxas").into_iter().flatten().flatten();
    let real = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path.is_file() && path != own);
    named.into_iter().chain(of_triton).chain(in_path).chain(of_cuda).find(real)
}

/// Where Triton keeps its tools, by the memory map of a process that has it loaded: its library is `triton/_C/libtriton.so`.
fn beside_triton(maps: &str) -> Option<PathBuf> {
    let library = maps.lines().find(|line| line.ends_with("/_C/libtriton.so"))?;
    let path = Path::new(library.get(library.find('/')?..)?);
    Some(path.parent()?.parent()?.join("backends/nvidia/bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn it_knows_its_names() {
        assert_eq!(called_as(OsStr::new("/tmp/x/bin/ptxas")), Some("ptxas"));
        assert_eq!(called_as(OsStr::new("ptxas-blackwell")), Some("ptxas-blackwell"));
        assert_eq!(called_as(OsStr::new("/usr/bin/ptxrace")), None);
    }

    #[test]
    fn outputs_are_found_in_every_form() {
        let output = |text| output(&words(text)).into_os_string();
        assert_eq!(output("-lineinfo -v --gpu-name=sm_90a /tmp/a.ptx -o /tmp/a.ptx.o"), "/tmp/a.ptx.o");
        assert_eq!(output("a.ptx --output-file b"), "b");
        assert_eq!(output("--output-file=b a.ptx"), "b");
        assert_eq!(output("a.ptx"), "elf.o");
    }

    #[test]
    fn inputs_are_files_with_ptx() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let text = ".version 8.0\n.target sm_90\n.visible .entry\tkernel_1(\n)";
        std::fs::write(at("a.ptx"), text).unwrap();
        std::fs::write(at("a.ptx.o"), text).unwrap();
        std::fs::write(at("options"), "--verbose").unwrap();
        let words: Vec<OsString> = vec![
            "-arch".into(),
            "sm_90".into(),
            "-optf".into(),
            at("options").into(),
            at("a.ptx").into(),
            "-o".into(),
            at("a.ptx.o").into(),
        ];
        // The folder is a temporary one, so the kernel gives the name.
        assert_eq!(inputs(&words), [("kernel_1.ptx".into(), text.to_owned())]);
        assert_eq!(shown(Path::new("/src/a.ptx"), text), Path::new("/src/a.ptx"));
    }

    #[test]
    fn tritons_own_is_found_by_its_library() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 5 /usr/lib/libc.so.6\n\
             7f02-7f03 r--p 00000000 08:01 6     /opt/my env/site-packages/triton/_C/libtriton.so\n";
        let found = beside_triton(maps);
        assert_eq!(found, Some("/opt/my env/site-packages/triton/backends/nvidia/bin".into()));
        assert_eq!(beside_triton("7f00-7f01 r-xp 00000000 08:01 5 /usr/lib/libc.so.6\n"), None);
    }
}
