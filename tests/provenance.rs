//! `ptxrace` under the name of ptxas: it does what ptxas does, and cubins lead back to their PTX.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up should stop")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ptxrace::backend::RunOptions;
use ptxrace::fatbin::{ElfSize, elf_size};
use ptxrace::session::exec::{
    Runner, Settings, VARIABLE, Wanted, environment, find_wrapper, prepare, provenance,
};

const PTX: &str = "tests/exec/kernels.ptx";

/// A folder as the launcher makes it, and what is in its environment.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path(), Path::new(env!("CARGO_BIN_EXE_ptxrace"))).unwrap();
        Self { folder }
    }

    /// Runs our ptxas where `real` is what the user calls ptxas.
    fn run(&self, real: &Path, arguments: &[&OsStr]) -> Output {
        let settings = Settings::new(
            self.folder.path().into(),
            Runner::Emulator,
            &RunOptions::default(),
            Wanted::default(),
        );
        let user = |name: &str| (name == "TRITON_PTXAS_PATH").then(|| real.into());
        let variables = environment(self.folder.path(), user).variables;
        let ours = variables.iter().find(|(name, _)| *name == "TRITON_PTXAS_PATH").unwrap().1.clone();
        let mut command = Command::new(ours.unwrap());
        for (name, value) in variables {
            value.map(|value| command.env(name, value));
        }
        command.env(VARIABLE, serde_json::to_string(&settings).unwrap());
        command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn lookup(&self, cubin: &[u8]) -> Option<Vec<(PathBuf, String)>> {
        provenance::lookup(&provenance::folder(self.folder.path()), cubin)
    }
}

/// A script that is called as ptxas is.
fn script(scene: &Scene, text: &str) -> PathBuf {
    let path = scene.path("real-ptxas");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn what_ptxas_says_and_how_it_ends_is_passed_on() {
    let scene = Scene::new();
    let real = script(&scene, "echo \"out: $*\"; echo err >&2; exit 7");
    let output = scene.run(&real, &["--version".as_ref(), "a  b".as_ref()]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"out: --version a  b\n");
    assert_eq!(output.stderr, b"err\n");
    let real = script(&scene, "kill -SEGV $$");
    assert_eq!(scene.run(&real, &[]).status.code(), Some(128 + 11));
}

#[test]
fn cubins_lead_back_to_their_ptx() {
    let scene = Scene::new();
    let real = script(&scene, "printf cubin > \"$3\"");
    let cubin = scene.path("out.cubin");
    let output = scene.run(&real, &[PTX.as_ref(), "-o".as_ref(), cubin.as_ref()]);
    assert!(output.status.success());
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PTX)).unwrap();
    assert_eq!(scene.lookup(b"cubin"), Some(vec![(PTX.into(), text)]));
    assert_eq!(scene.lookup(b"other"), None);
}

#[test]
fn failures_leave_no_trace() {
    let scene = Scene::new();
    let real = script(&scene, "printf cubin > \"$3\"; exit 1");
    let cubin = scene.path("out.cubin");
    scene.run(&real, &[PTX.as_ref(), "-o".as_ref(), cubin.as_ref()]);
    assert_eq!(scene.lookup(b"cubin"), None);
}

#[test]
fn it_does_not_run_itself() {
    let scene = Scene::new();
    let again = scene.path("again");
    fs::create_dir(&again).unwrap();
    symlink(env!("CARGO_BIN_EXE_ptxrace"), again.join("ptxas")).unwrap();
    // What the user names is ourselves, and so is the first in PATH; the second is a real one.
    let second = scene.path("second");
    fs::create_dir(&second).unwrap();
    let real = script(&scene, "exit 42");
    fs::rename(real, second.join("ptxas")).unwrap();
    let path = std::env::join_paths([&again, &second]).unwrap();
    let output = Command::new(again.join("ptxas"))
        .env("PATH", path)
        .env("PTXRACE_PTXAS", again.join("ptxas"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(42));
}

fn ptxas() -> PathBuf {
    let packages = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("target/cuda/lib")).unwrap();
    let of = |python: fs::DirEntry| python.path().join("site-packages/nvidia/cu13/bin/ptxas");
    let ptxas = packages.flatten().map(of).find(|path| path.exists());
    ptxas.expect("no ptxas in target/cuda: run `cargo xtask cuda` first")
}

#[test]
fn cubins_of_the_compiler_are_known_however_much_lies_behind_them() {
    let ptxas = ptxas();
    let scene = Scene::new();
    for (form, flags) in
        [("a.cubin", &["-arch=sm_90", "-lineinfo"][..]), ("b.cubin", &["-arch=sm_90", "-g", "-c"])]
    {
        let file = scene.path(form);
        let mut arguments: Vec<&OsStr> = flags.iter().map(OsStr::new).collect();
        arguments.extend([OsStr::new(PTX), "--output-file".as_ref(), file.as_ref()]);
        let output = scene.run(&ptxas, &arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut cubin = fs::read(&file).unwrap();
        let whole = cubin.len() as u64;
        // As whoever has nothing but its address finds its end.
        let (mut known, mut questions) = (0, 0);
        let size = loop {
            questions += 1;
            match elf_size(&cubin[..known]).unwrap() {
                ElfSize::AtLeast(more) => known = more as usize,
                ElfSize::Exactly(size) => break size,
            }
        };
        assert_eq!((size, questions), (whole, 3));
        cubin.extend(b"something else");
        assert_eq!(scene.lookup(&cubin).unwrap()[0].0, Path::new(PTX));
    }
}

/// As on a GPU, with the emulator as its driver: a program compiles PTX as Triton does, and loads the cubin.
#[test]
fn kernels_of_cubins_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let wrapper = find_wrapper(Path::new(env!("CARGO_BIN_EXE_ptxrace"))).unwrap();
    symlink(&wrapper, at("libcuda.so")).unwrap();
    // A file of its own, or it would be the wrapper itself.
    fs::copy(&wrapper, at("libcuda.so.1")).unwrap();
    let done = Command::new("cc")
        .arg(root.join("tests/exec/app.c"))
        .arg("-o")
        .arg(at("app"))
        .arg("-L")
        .arg(folder.path())
        .args(["-lcuda", "-lpthread"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let script = "\"$TRITON_PTXAS_PATH\" -arch=sm_90 \"$1\" -o k.cubin && exec ./app race k.cubin";
    let output = Command::new(env!("CARGO_BIN_EXE_ptxrace"))
        .args(["exec", "--backend", "gpu", "--", "sh", "-c", script, "sh"])
        .arg(root.join(PTX))
        .current_dir(folder.path())
        .env("PTXRACE_DRIVER", at("libcuda.so.1"))
        .env("TRITON_PTXAS_PATH", ptxas())
        .env("TRITON_CACHE_DIR", "/home/someone/cache")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(66), "{said}");
    assert!(said.contains("error[R001]: data race on `tile`"), "{said}");
    // What lies in a temporary folder, as this repository may, goes by the name of its first kernel.
    let name = if root.starts_with(std::env::temp_dir()) { "fill.ptx:" } else { "kernels.ptx:" };
    assert!(said.contains(name), "{said}");
    // What the user had set is told.
    assert!(said.contains("note: `TRITON_CACHE_DIR` is not heeded"), "{said}");
}
