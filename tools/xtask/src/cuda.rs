//! `cargo xtask cuda`: the CUDA compiler, from the wheels that NVIDIA publishes for Python.
//!
//! No GPU, driver or system-wide toolkit is needed. A stamp names the versions that were installed
//! completely; without a matching stamp the folder is made anew, which also repairs a broken install.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// nvcc needs each of these: cicc is in nvvm, the headers that nvcc includes by itself are in crt.
const WHEELS: [&str; 5] = [
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.0.85",
];

/// Makes sure that the compiler is in `target/cuda` and returns its CUDA_HOME.
pub(crate) fn install() -> Result<PathBuf, String> {
    let venv = crate::root().join("target/cuda");
    // venv refuses to work through a link.
    let venv = fs::canonicalize(&venv).unwrap_or(venv);
    let stamp = venv.join("wheels.txt");
    let wanted = WHEELS.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|text| text == wanted)
        && let Some(home) = home(&venv)
    {
        return Ok(home);
    }

    eprintln!("installing the CUDA compiler into {} (about 110 MB to download)", venv.display());
    crate::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))
        .map_err(|error| format!("{error}\nPython 3 with its venv module is needed"))?;
    crate::run(
        Command::new(venv.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .args(WHEELS),
    )?;
    let packages = site_packages(&venv).ok_or_else(|| format!("no site-packages in {}", venv.display()))?;
    // nvcc looks for libraries in lib64, the wheels have lib.
    symlink("lib", packages.join("nvidia/cu13/lib64"))
        .map_err(|error| format!("failed to link lib64 to lib: {error}"))?;
    let home =
        home(&venv).ok_or_else(|| format!("the wheels left no complete compiler in {}", venv.display()))?;
    crate::run(Command::new(home.join("bin/nvcc")).arg("--version"))?;
    fs::write(&stamp, wanted).map_err(|error| format!("failed to write {}: {error}", stamp.display()))?;
    Ok(home)
}

/// The CUDA_HOME of the compiler, if it is there.
pub(crate) fn installed() -> Option<PathBuf> {
    home(&crate::root().join("target/cuda"))
}

/// The CUDA_HOME inside the virtual environment, if the parts that a compilation needs are there.
fn home(venv: &Path) -> Option<PathBuf> {
    let home = site_packages(venv)?.join("nvidia/cu13");
    let parts =
        ["bin/nvcc", "bin/ptxas", "nvvm/bin/cicc", "include/crt/host_config.h", "lib64/libcudart_static.a"];
    parts.iter().all(|part| home.join(part).exists()).then_some(home)
}

/// `lib/python3.N/site-packages`, whichever Python it is.
fn site_packages(venv: &Path) -> Option<PathBuf> {
    let pythons = fs::read_dir(venv.join("lib")).ok()?;
    pythons.flatten().map(|python| python.path().join("site-packages")).find(|path| path.is_dir())
}
