//! The real libraries behind the symbols: which of those in the process a call is for, and fronts for those that are opened.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::front;
use crate::trampoline;

/// A compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Library {
    Nvrtc,
    NvJitLink,
}

const ALL: [(Library, &str); 2] = [(Library::Nvrtc, "libnvrtc.so"), (Library::NvJitLink, "libnvJitLink.so")];

/// A library that is opened by way of a front.
struct Fronted {
    real: CString,
    front: CString,
}

/// At most one of each compiler, so that it is known whose call it is.
static FRONTS: [Mutex<Option<&'static Fronted>>; 2] = [const { Mutex::new(None) }; 2];

fn fronted(library: Library) -> Option<&'static Fronted> {
    *FRONTS[library as usize].lock()
}

/// What is to be opened in place of a library. Nothing here calls the loader.
pub(crate) fn instead(path: &CStr) -> Option<&'static CStr> {
    let library = of_file(file(path.to_bytes()))?;
    let folder = crate::process::folder()?;
    let real = if path.to_bytes().contains(&b'/') {
        std::path::absolute(OsStr::from_bytes(path.to_bytes())).ok().filter(|path| path.exists())?
    } else {
        // Where the loader would look for it is the loader's affair.
        loaded(path.to_bytes())?
    };
    let mut known = FRONTS[library as usize].lock();
    if known.is_none() {
        *known = Some(Box::leak(Box::new(make(folder, real.clone())?)));
    }
    let known = (*known)?;
    let same = || {
        let known = Path::new(OsStr::from_bytes(known.real.to_bytes()));
        Some(known.canonicalize().ok()? == real.canonicalize().ok()?)
    };
    same()?.then_some(known.front.as_c_str())
}

/// Writes the front of a library.
fn make(folder: &Path, real: PathBuf) -> Option<Fronted> {
    let own = folder.join("fronts").join(std::process::id().to_string());
    let front = own.join(real.file_name()?);
    std::fs::create_dir_all(&own).ok()?;
    std::fs::write(&front, front::file(real.as_os_str().as_bytes())?).ok()?;
    let path = |path: PathBuf| CString::new(path.into_os_string().into_encoded_bytes()).ok();
    Some(Fronted { real: path(real)?, front: path(front)? })
}

/// The last part of a path.
fn file(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The compiler that is in files of such a name, whatever version.
fn of_file(file: &[u8]) -> Option<Library> {
    let version = |name: &str| file.strip_prefix(name.as_bytes());
    let is =
        |(_, name): &&(Library, &str)| version(name).is_some_and(|rest| rest.is_empty() || rest[0] == b'.');
    ALL.iter().find(is).map(|(library, _)| *library)
}

/// The path of a library that is in the process, by the name of its file.
fn loaded(name: &[u8]) -> Option<PathBuf> {
    struct Search<'s> {
        name: &'s [u8],
        found: Option<PathBuf>,
    }
    extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader gives a structure that is valid during the call; the other is `search` below.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
        if info.dlpi_name.is_null() {
            return 0;
        }
        // SAFETY: the loader's text.
        let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
        if file(path) == search.name && !path.windows(8).any(|part| part == b"/fronts/") {
            search.found = Some(OsStr::from_bytes(path).into());
        }
        search.found.is_some().into()
    }
    let mut search = Search { name, found: None };
    // SAFETY: the function has the type that is called for, and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

/// The library's function: as the caller would find it without us, if it is linked to the library, else that of the library
/// which was opened.
pub(super) fn find(library: Library, symbol: &CStr, caller: usize) -> Option<usize> {
    let linked = match object(caller)? {
        Object::Program => next(symbol),
        Object::Library(path) => in_library(&path, symbol),
    };
    let opened = || in_library(&fronted(library)?.real, symbol);
    linked.or_else(opened).or_else(|| next(symbol))
}

/// What code belongs to.
enum Object {
    Program,
    Library(CString),
}

fn describe(address: usize) -> Option<libc::Dl_info> {
    // SAFETY: all zeros are such a structure.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked about, and the place is valid.
    let known = unsafe { libc::dladdr(address as *const c_void, &raw mut found) } != 0;
    (known && !found.dli_fname.is_null()).then_some(found)
}

fn object(address: usize) -> Option<Object> {
    let found = describe(address)?;
    // SAFETY: no pointers are involved.
    let program = describe(unsafe { libc::getauxval(libc::AT_PHDR) } as usize);
    if program.is_some_and(|program| program.dli_fbase == found.dli_fbase) {
        return Some(Object::Program);
    }
    // SAFETY: the loader's text, which stays as long as the library.
    Some(Object::Library(unsafe { CStr::from_ptr(found.dli_fname) }.to_owned()))
}

/// A symbol of a library in the process, or of what it is linked to.
fn in_library(path: &CStr, symbol: &CStr) -> Option<usize> {
    let handle = trampoline::load(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
    if handle.is_null() {
        return None;
    }
    let found = look_up(handle, symbol.as_ptr());
    // SAFETY: the handle is one of this library, and what it counts was counted up above.
    unsafe { libc::dlclose(handle) };
    found.filter(|at| !is_own(*at))
}

/// What comes behind us among the libraries that are searched for the program.
fn next(symbol: &CStr) -> Option<usize> {
    look_up(libc::RTLD_NEXT, symbol.as_ptr())
}

fn look_up(handle: *mut c_void, symbol: *const c_char) -> Option<usize> {
    // SAFETY: a handle of the loader's, and a name that ends with a zero byte.
    let found = unsafe { libc::dlsym(handle, symbol) } as usize;
    (found != 0).then_some(found)
}

/// Whether code is of this library.
fn is_own(address: usize) -> bool {
    let base = |address| describe(address).map(|found| found.dli_fbase);
    base(address) == base(is_own as *const () as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_known_by_their_files() {
        for path in ["libnvrtc.so", "/x/libnvrtc.so.12", "libnvrtc.so.13.0.88"] {
            assert_eq!(of_file(file(path.as_bytes())), Some(Library::Nvrtc), "{path}");
        }
        assert_eq!(of_file(b"libnvJitLink.so.13"), Some(Library::NvJitLink));
        for path in
            ["libnvrtc-builtins.so.13.0", "libnvrtc.alt.so.13", "libnvrtc.sos", "", "/x/libnvrtc.so/y"]
        {
            assert_eq!(of_file(file(path.as_bytes())), None, "{path}");
        }
    }
}
