//! Programs that compile or link when they run, and load the machine code, under `ptxrace exec`: on the emulator, and before a
//! driver. Libraries of our own take the place of NVRTC and nvJitLink; `tools/gpu/exec-check` has the real ones.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up should stop")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use ptxrace::session::exec::find_wrapper;

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        let wrapper = find_wrapper(Path::new(env!("CARGO_BIN_EXE_ptxrace"))).unwrap();
        symlink(&wrapper, scene.at("libcuda.so")).unwrap();
        // A file of its own, or it would be the wrapper itself.
        fs::copy(&wrapper, scene.at("driver.so")).unwrap();
        for library in ["libnvrtc", "libnvJitLink"] {
            let file = format!("{library}.so.13");
            // Symbols have versions named after the library, as those of the real ones do.
            let name = format!("-Wl,-soname,{file},--default-symver");
            scene.compile(&format!("{library}.c"), &file, &["-shared", "-fPIC", &name]);
            symlink(&file, scene.at(&format!("{library}.so"))).unwrap();
        }
        scene.compile("compilers.c", "opened", &["-lcuda", "-ldl"]);
        let path = format!("-Wl,-rpath,{}", scene.folder.path().display());
        scene.compile("compilers.c", "linked", &["-DLINKED", "-lcuda", "-lnvrtc", "-lnvJitLink", &path]);
        scene
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn compile(&self, source: &str, to: &str, flags: &[&str]) {
        let mut command = Command::new("cc");
        command.args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"]).arg(self.at(to));
        command.arg(root().join("tests/exec").join(source)).arg("-L").arg(self.folder.path());
        let output = command.args(flags).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// How `exec` ends, and what it says.
    fn exec(&self, backend: &str, app: &str, what: &str) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptxrace"));
        command.args(["exec", "--backend", backend, "--"]).arg(self.at(app)).arg(what).arg(kernels());
        if app == "opened" {
            command.arg(self.at(if what == "nvrtc" { "libnvrtc.so.13" } else { "libnvJitLink.so.13" }));
        }
        let output = command
            .env("PTXRACE_DRIVER", self.at("driver.so"))
            .env("FAKE_PTX", kernels())
            .current_dir(self.folder.path())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn kernels() -> PathBuf {
    root().join("tests/exec/kernels.ptx")
}

#[test]
fn kernels_that_are_compiled_at_run_time_are_checked() {
    let scene = Scene::new();
    for backend in ["emu", "gpu"] {
        for app in ["opened", "linked"] {
            for what in ["nvrtc", "nvjitlink", "nvjitlink-lto"] {
                let (status, said) = scene.exec(backend, app, what);
                assert_eq!(status, Some(66), "{backend} {app} {what}: {said}");
                assert!(said.contains("error[R001]: data race on `tile`"), "{backend} {app} {what}: {said}");
            }
        }
    }
}

#[test]
fn what_is_linked_from_other_things_is_opaque() {
    let scene = Scene::new();
    for app in ["opened", "linked"] {
        let (status, said) = scene.exec("emu", app, "nvjitlink-other");
        // The emulator cannot load it, and the program gives up.
        assert_eq!(status, Some(99), "{said}");
        assert!(said.contains("has machine code only"), "{said}");
    }
}
