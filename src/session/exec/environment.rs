//! What a program's environment needs so that the PTX of its kernels is seen on a GPU: frameworks that compile at run time
//! have to do so under our eyes, once more, and the driver has to take PTX.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::ptxas;

/// The link to ourselves for each name of ptxas.
const TOOLS: &str = "bin";
/// Folders for what is compiled.
const CACHES: &str = "cache";

/// Caches whose contents would hide from us what was compiled: they are made anew.
const FRESH: [(&str, &str); 3] =
    [("TRITON_CACHE_DIR", "triton"), ("CUPY_CACHE_DIR", "cupy"), ("TORCHINDUCTOR_CACHE_DIR", "inductor")];
/// Variables that make the driver refuse PTX.
const REFUSING: [&str; 2] = ["CUDA_DISABLE_PTX_JIT", "CUDA_DISABLE_JIT"];
/// What names the assembler that Triton runs, for each of `ptxas::NAMES`.
const ASSEMBLERS: [&str; 2] = ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"];

/// Variables to set or, without a value, to unset, and what the user had set that is not heeded, a sentence each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Names and values.
    pub variables: Vec<(&'static str, Option<OsString>)>,
    /// For the report.
    pub notes: Vec<String>,
}

/// The environment of programs that run on a GPU. `folder` is that of the settings; `inherited` tells what a variable is now.
pub fn environment(folder: &Path, inherited: impl Fn(&str) -> Option<OsString>) -> Environment {
    let set = |name: &str| inherited(name).filter(|value| !value.is_empty());
    let mut environment = Environment::default();
    for ((variable, name), real) in ASSEMBLERS.into_iter().zip(ptxas::NAMES).zip(ptxas::REAL) {
        // The user's own is what ours runs.
        if let Some(path) = set(variable) {
            environment.variables.push((real, Some(path)));
        }
        environment.variables.push((variable, Some(folder.join(TOOLS).join(name).into())));
    }
    let caches = folder.join(CACHES);
    for (variable, name) in FRESH {
        if set(variable).is_some() {
            let note =
                format!("`{variable}` is not heeded: a cache of machine code hides the PTX it was made from");
            environment.notes.push(note);
        }
        environment.variables.push((variable, Some(caches.join(name).into())));
    }
    if set("CUPY_COMPILE_WITH_PTX").is_some_and(|value| value == "0") {
        environment
            .notes
            .push("`CUPY_COMPILE_WITH_PTX=0` is not heeded: CuPy has to give PTX to the driver".into());
    }
    environment.variables.push(("CUPY_COMPILE_WITH_PTX", Some("1".into())));
    for variable in REFUSING {
        if set(variable).is_some_and(|value| value != "0") {
            environment
                .notes
                .push(format!("`{variable}` is not heeded: the driver has to compile instrumented PTX"));
        }
        environment.variables.push((variable, None));
    }
    // The driver's cache goes by the PTX, so one of the user's does no harm. By default what is instrumented has its own, which
    // lasts: the next run need not compile it again.
    if set("CUDA_CACHE_PATH").is_none() {
        let home = || set("HOME").map(|home| Path::new(&home).join(".cache"));
        let lasting = set("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
        let cache =
            lasting.map_or_else(|| caches.join("driver"), |folder| folder.join("ptxrace").join("driver"));
        environment.variables.push(("CUDA_CACHE_PATH", Some(cache.into())));
    }
    environment
}

/// Makes what the variables name. `executable` is ourselves.
pub fn prepare(folder: &Path, executable: &Path) -> io::Result<()> {
    let tools = folder.join(TOOLS);
    std::fs::create_dir_all(&tools)?;
    std::fs::create_dir_all(folder.join(CACHES))?;
    ptxas::NAMES.into_iter().try_for_each(|name| symlink(executable, tools.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(user: &'static [(&'static str, &'static str)]) -> Environment {
        environment(Path::new("/run"), |name| {
            user.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
        })
    }

    fn value<'e>(environment: &'e Environment, name: &str) -> Option<Option<&'e str>> {
        let found = environment.variables.iter().find(|(known, _)| *known == name)?;
        Some(found.1.as_deref().and_then(|value| value.to_str()))
    }

    #[test]
    fn frameworks_compile_under_our_eyes() {
        let plain = with(&[]);
        assert_eq!(value(&plain, "TRITON_PTXAS_PATH"), Some(Some("/run/bin/ptxas")));
        assert_eq!(value(&plain, "TRITON_PTXAS_BLACKWELL_PATH"), Some(Some("/run/bin/ptxas-blackwell")));
        assert_eq!(value(&plain, "PTXRACE_PTXAS"), None);
        assert_eq!(value(&plain, "TRITON_CACHE_DIR"), Some(Some("/run/cache/triton")));
        assert_eq!(value(&plain, "CUPY_COMPILE_WITH_PTX"), Some(Some("1")));
        assert_eq!(value(&plain, "CUDA_DISABLE_PTX_JIT"), Some(None));
        assert_eq!(value(&plain, "CUDA_CACHE_PATH"), Some(Some("/run/cache/driver")));
        let at_home = with(&[("HOME", "/home/me")]);
        assert_eq!(value(&at_home, "CUDA_CACHE_PATH"), Some(Some("/home/me/.cache/ptxrace/driver")));
        assert_eq!(plain.notes, [] as [&str; 0]);
    }

    #[test]
    fn what_the_user_has_set_is_heeded_or_told_of() {
        let own = with(&[
            ("TRITON_PTXAS_PATH", "/opt/ptxas"),
            ("CUDA_CACHE_PATH", "/home/cache"),
            ("CUPY_COMPILE_WITH_PTX", "1"),
            ("CUDA_DISABLE_JIT", "0"),
        ]);
        assert_eq!(value(&own, "PTXRACE_PTXAS"), Some(Some("/opt/ptxas")));
        assert_eq!(value(&own, "TRITON_PTXAS_PATH"), Some(Some("/run/bin/ptxas")));
        assert_eq!(value(&own, "CUDA_CACHE_PATH"), None);
        assert_eq!(own.notes, [] as [&str; 0]);
        let not_heeded = with(&[
            ("TRITON_CACHE_DIR", "/home/triton"),
            ("CUPY_COMPILE_WITH_PTX", "0"),
            ("CUDA_DISABLE_PTX_JIT", "1"),
        ]);
        let about = |note: &String| note.split('`').nth(1).map(str::to_owned).unwrap_or_default();
        let about: Vec<_> = not_heeded.notes.iter().map(about).collect();
        assert_eq!(about, ["TRITON_CACHE_DIR", "CUPY_COMPILE_WITH_PTX=0", "CUDA_DISABLE_PTX_JIT"]);
    }
}
