//! Every way in which programs load the driver, under `ptxrace exec`: who gets the call, the wrapper or the driver that is installed?
//! The latter is `tests/exec/driver.c`, which says that its version is 1. No GPU is needed.
//!
//! Without a C compiler the trials are listed as ignored.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up should stop")]

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

/// What the wrapper says on the emulator.
const WRAPPER: &str = "13000";
/// What `tests/exec/driver.c` says.
const DRIVER: &str = "1";
/// What the program says when there is no such file.
const NOTHING: &str = "not found";

/// Name; program; how it loads, `@` is the folder of the installed driver; what it gets.
const WAYS: [(&str, &str, &[&str], &str); 16] = [
    ("linked", "linked", &["linked"], WRAPPER),
    // The program says itself where the driver is.
    ("linked-rpath", "rpath", &["linked"], WRAPPER),
    ("linked-runpath", "runpath", &["linked"], WRAPPER),
    ("name", "plain", &["dlopen", "libcuda.so.1"], WRAPPER),
    ("name-without-number", "plain", &["dlopen", "libcuda.so"], WRAPPER),
    ("name-rpath", "rpath", &["dlopen", "libcuda.so.1"], WRAPPER),
    ("name-without-number-rpath", "rpath", &["dlopen", "libcuda.so"], WRAPPER),
    ("path", "plain", &["dlopen", "@/libcuda.so.1"], WRAPPER),
    ("path-without-number", "plain", &["dlopen", "@/libcuda.so"], WRAPPER),
    ("path-deep", "plain", &["deep", "@/libcuda.so.1"], WRAPPER),
    ("symbol", "plain", &["default"], WRAPPER),
    // A library that needs the driver and says itself where it is. It is found by the run path of the program alone.
    ("plugin", "plain", &["plugin"], WRAPPER),
    // Two ways that are missed: the file behind the links, and a namespace of its own.
    ("path-of-version", "plain", &["dlopen", "@/libcuda.so.999.99"], DRIVER),
    ("path-in-namespace", "plain", &["namespace", "@/libcuda.so.999.99"], DRIVER),
    // What is no driver is loaded as ever, whatever folder it is in.
    ("missing", "plain", &["dlopen", "@/libcuda.so.2"], NOTHING),
    ("other", "plain", &["dlopen", "@/libcuda.so.1/libother.so"], NOTHING),
];

/// A folder with the programs, and one below it with the installed driver.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Option<Self> {
        Command::new("cc").arg("--version").output().ok()?;
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        let installed = scene.path("installed");
        let plugins = scene.path("plugins");
        std::fs::create_dir(&installed).unwrap();
        std::fs::create_dir(&plugins).unwrap();
        let file = installed.join("libcuda.so.999.99");
        cc("driver.c", &file, &["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]);
        for name in ["libcuda.so", "libcuda.so.1"] {
            symlink(&file, installed.join(name)).unwrap();
        }
        let at = format!("-L{}", installed.display());
        let rpath = format!("-Wl,-rpath,{}", installed.display());
        let old = "-Wl,--disable-new-dtags";
        let plugin = plugins.join("libplugin.so");
        cc("plugin.c", &plugin, &["-shared", "-fPIC", &at, "-lcuda", &rpath, old]);
        let own = format!("-Wl,-rpath,{}", plugins.display());
        let new = "-Wl,--enable-new-dtags";
        cc("loader.c", &scene.path("plain"), &[&own, new, "-ldl"]);
        cc("loader.c", &scene.path("linked"), &["-DLINKED", &at, "-lcuda", "-ldl"]);
        cc("loader.c", &scene.path("rpath"), &["-DLINKED", &at, "-lcuda", &rpath, old, "-ldl"]);
        cc("loader.c", &scene.path("runpath"), &["-DLINKED", &at, "-lcuda", &rpath, new, "-ldl"]);
        Some(scene)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The version that a program gets, under `exec` or not.
    fn version(&self, wrapped: bool, program: &str, arguments: &[&str]) -> String {
        let installed = self.path("installed");
        let arguments: Vec<_> =
            arguments.iter().map(|argument| argument.replace('@', &installed.to_string_lossy())).collect();
        let program = self.path(program);
        let mut command = Command::new(if wrapped {
            OsStr::new(env!("CARGO_BIN_EXE_ptxrace"))
        } else {
            program.as_os_str()
        });
        if wrapped {
            command.args(["exec", "--backend", "emu", "--"]).arg(program);
        }
        let output = command.args(arguments).env("LD_LIBRARY_PATH", installed).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

fn cc(source: &str, to: &Path, flags: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec").join(source);
    let output = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(to)
        .arg(source)
        .args(flags)
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn main() {
    let scene = Scene::new().map(Arc::new);
    let trial =
        |(name, program, arguments, wanted): (&str, &'static str, &'static [&'static str], &'static str)| {
            let (scene, ignored) = (scene.clone(), scene.is_none());
            let run = move || {
                let scene = scene.ok_or("there is no C compiler")?;
                // By itself, the program gets what is installed, or the trial shows nothing.
                let by_itself = match wanted {
                    NOTHING => NOTHING,
                    _ if arguments == ["default"] => "-1",
                    _ => DRIVER,
                };
                let native = scene.version(false, program, arguments);
                if native != by_itself {
                    return Err(format!("natively {native}, not {by_itself}").into());
                }
                match scene.version(true, program, arguments) {
                    version if version == wanted => Ok(()),
                    version => Err(format!("{version}, not {wanted}").into()),
                }
            };
            Trial::test(name, run).with_ignored_flag(ignored)
        };
    let trials = WAYS.into_iter().map(trial).collect();
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    drop(scene);
    conclusion.exit();
}
