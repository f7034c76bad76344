//! Runs a program with the wrapper in place of the driver.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGQUIT};

use super::{Settings, VARIABLE};

/// The wrapper's file.
const WRAPPER: &str = "libptxrace_preload.so";
/// Names that programs load the driver by.
const DRIVER: [&str; 2] = ["libcuda.so", "libcuda.so.1"];

/// What to run.
#[derive(Clone, Debug)]
pub struct Child {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Further variables to set or, without a value, to unset.
    pub variables: Vec<(&'static str, Option<OsString>)>,
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Status(i32),
    /// Killed by this signal.
    Signal(i32),
}

impl Ended {
    /// The status as a shell gives it.
    pub fn code(self) -> u8 {
        match self {
            Self::Status(status) => (status & 0xff) as u8,
            Self::Signal(signal) => 128u8.wrapping_add((signal & 0x7f) as u8),
        }
    }
}

/// The wrapper: beside the executable, in a `lib` folder next to that, or below as Cargo's tests leave it; the newest of them.
pub fn find_wrapper(executable: &Path) -> Result<PathBuf, Vec<PathBuf>> {
    let folder = executable.parent().unwrap_or(Path::new("."));
    let places =
        vec![folder.join(WRAPPER), folder.join("deps").join(WRAPPER), folder.join("../lib").join(WRAPPER)];
    let built = |place: &&PathBuf| Some((place.metadata().ok()?.modified().ok()?, PathBuf::clone(place)));
    match places.iter().filter_map(|place| built(&place)).max() {
        Some((_, newest)) => Ok(newest),
        None => Err(places),
    }
}

/// Runs the program to its end. The folder of the settings gets the logs.
pub fn launch(child: &Child, wrapper: &Path, settings: &Settings) -> io::Result<Ended> {
    let wrapper = wrapper.canonicalize()?;
    let shadow = settings.folder.join("lib");
    std::fs::create_dir_all(&shadow)?;
    for name in DRIVER {
        symlink(&wrapper, shadow.join(name))?;
    }
    let told = serde_json::to_string(settings).map_err(io::Error::other)?;
    // A terminal sends these to the program as well; what it found is worth a report.
    let seen = Arc::new(AtomicBool::new(false));
    let kept: Vec<_> = [SIGINT, SIGQUIT]
        .into_iter()
        .filter_map(|signal| signal_hook::flag::register(signal, Arc::clone(&seen)).ok())
        .collect();
    let mut command = Command::new(&child.program);
    for (name, value) in &child.variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let status = command
        .args(&child.arguments)
        .env("LD_PRELOAD", before(wrapper.as_os_str(), std::env::var_os("LD_PRELOAD")))
        .env("LD_LIBRARY_PATH", before(shadow.as_os_str(), std::env::var_os("LD_LIBRARY_PATH")))
        .env(VARIABLE, told)
        .status();
    kept.into_iter().for_each(|signal| {
        signal_hook::low_level::unregister(signal);
    });
    let status = status?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Status(code),
        (None, signal) => Ended::Signal(signal.unwrap_or(0)),
    })
}

/// A list of paths with one more at its head.
fn before(first: &OsStr, rest: Option<OsString>) -> OsString {
    let mut list = first.to_owned();
    if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
        list.push(":");
        list.push(rest);
    }
    list
}
