//! nvJitLink: a link is made from the PTX of its parts, where all have some.
//!
//! The header gives each symbol a name with the version that it is of. They differ in nothing else.

use std::ffi::{CStr, CString, c_char};
use std::path::PathBuf;

use parking_lot::Mutex;
use ptxrace::session::exec::provenance;
use rustc_hash::FxHashMap;

use super::real::Library;
use super::{Call, bytes, note, symbols};

/// `NVJITLINK_ERROR_INTERNAL`
const FAILED: u32 = 6;
/// `NVJITLINK_INPUT_PTX`
const PTX: u32 = 2;

/// PTX with its names.
type Texts = Vec<(PathBuf, String)>;

/// Links by their handles: what they are made from, or nothing once a part has no PTX.
static LINKS: Mutex<Option<FxHashMap<usize, Option<Texts>>>> = Mutex::new(None);

macro_rules! versions {
    ($($function:ident: $plain:ident $($version:ident)*;)*) => {
        $(symbols! { Library::NvJitLink, super::$function, FAILED; $plain $($version)* })*
    };
}

versions! {
    add_data: nvJitLinkAddData
        __nvJitLinkAddData_12_0 __nvJitLinkAddData_12_1 __nvJitLinkAddData_12_2 __nvJitLinkAddData_12_3
        __nvJitLinkAddData_12_4 __nvJitLinkAddData_12_5 __nvJitLinkAddData_12_6 __nvJitLinkAddData_12_7
        __nvJitLinkAddData_12_8 __nvJitLinkAddData_12_9 __nvJitLinkAddData_13_0 __nvJitLinkAddData_13_1
        __nvJitLinkAddData_13_2 __nvJitLinkAddData_13_3;
    add_file: nvJitLinkAddFile
        __nvJitLinkAddFile_12_0 __nvJitLinkAddFile_12_1 __nvJitLinkAddFile_12_2 __nvJitLinkAddFile_12_3
        __nvJitLinkAddFile_12_4 __nvJitLinkAddFile_12_5 __nvJitLinkAddFile_12_6 __nvJitLinkAddFile_12_7
        __nvJitLinkAddFile_12_8 __nvJitLinkAddFile_12_9 __nvJitLinkAddFile_13_0 __nvJitLinkAddFile_13_1
        __nvJitLinkAddFile_13_2 __nvJitLinkAddFile_13_3;
    get_cubin: nvJitLinkGetLinkedCubin
        __nvJitLinkGetLinkedCubin_12_0 __nvJitLinkGetLinkedCubin_12_1 __nvJitLinkGetLinkedCubin_12_2
        __nvJitLinkGetLinkedCubin_12_3 __nvJitLinkGetLinkedCubin_12_4 __nvJitLinkGetLinkedCubin_12_5
        __nvJitLinkGetLinkedCubin_12_6 __nvJitLinkGetLinkedCubin_12_7 __nvJitLinkGetLinkedCubin_12_8
        __nvJitLinkGetLinkedCubin_12_9 __nvJitLinkGetLinkedCubin_13_0 __nvJitLinkGetLinkedCubin_13_1
        __nvJitLinkGetLinkedCubin_13_2 __nvJitLinkGetLinkedCubin_13_3;
    destroy: nvJitLinkDestroy
        __nvJitLinkDestroy_12_0 __nvJitLinkDestroy_12_1 __nvJitLinkDestroy_12_2 __nvJitLinkDestroy_12_3
        __nvJitLinkDestroy_12_4 __nvJitLinkDestroy_12_5 __nvJitLinkDestroy_12_6 __nvJitLinkDestroy_12_7
        __nvJitLinkDestroy_12_8 __nvJitLinkDestroy_12_9 __nvJitLinkDestroy_13_0 __nvJitLinkDestroy_13_1
        __nvJitLinkDestroy_13_2 __nvJitLinkDestroy_13_3;
}

/// `AddData(link, kind, data, size, name)`
fn add_data(call: &Call) -> u32 {
    let code = call.real(FAILED);
    let [link, kind, data, size, name] = call.arguments;
    if code == 0 {
        let name = text(name).unwrap_or_else(|| "link.ptx".into());
        add(link, kind as u32, &bytes(data, size), name);
    }
    code
}

/// `AddFile(link, kind, path)`
fn add_file(call: &Call) -> u32 {
    let code = call.real(FAILED);
    let [link, kind, path, ..] = call.arguments;
    if code == 0 {
        let path = text(path).unwrap_or_default();
        add(link, kind as u32, &std::fs::read(&path).unwrap_or_default(), path);
    }
    code
}

fn text(from: usize) -> Option<PathBuf> {
    crate::api::text(from as *const c_char).ok().filter(|text| !text.is_empty()).map(PathBuf::from)
}

/// A part: PTX, or what is known to have been made from some.
fn add(link: usize, kind: u32, bytes: &[u8], name: PathBuf) {
    let texts = match kind {
        PTX => own_ptx(bytes, name),
        _ => {
            crate::process::folder().and_then(|folder| provenance::lookup(&provenance::folder(folder), bytes))
        }
    };
    let mut links = LINKS.lock();
    let parts = links.get_or_insert_default().entry(link).or_insert_with(|| Some(Vec::new()));
    match (parts, texts) {
        (Some(parts), Some(texts)) => parts.extend(texts),
        (parts, _) => *parts = None,
    }
}

fn own_ptx(bytes: &[u8], name: PathBuf) -> Option<Texts> {
    let text = bytes.split(|byte| *byte == 0).next()?;
    Some(vec![(name, String::from_utf8(text.to_vec()).ok()?)])
}

/// `GetLinkedCubin(link, to)`
fn get_cubin(call: &Call) -> u32 {
    let code = call.real(FAILED);
    let [link, to, ..] = call.arguments;
    let texts = LINKS.lock().as_ref().and_then(|links| links.get(&link)?.clone());
    if code == 0
        && let Some(texts) = texts.filter(|texts| !texts.is_empty())
        && let Some(size) = cubin_size(call, link)
    {
        note(&bytes(to, size), &texts);
    }
    code
}

/// By the symbol of the same version.
fn cubin_size(call: &Call, link: usize) -> Option<usize> {
    let symbol = call.symbol.to_str().ok()?.replace("LinkedCubin", "LinkedCubinSize");
    let mut size = 0_usize;
    let arguments = [link, &raw mut size as usize, 0, 0, 0];
    let symbol: &CStr = &CString::new(symbol).ok()?;
    (call.other(symbol, arguments, FAILED) == 0).then_some(size)
}

/// `Destroy(&link)`
fn destroy(call: &Call) -> u32 {
    let link = crate::api::get(call.arguments[0] as *const usize);
    let code = call.real(FAILED);
    if let (Ok(link), Some(links)) = (link, LINKS.lock().as_mut()) {
        links.remove(&link);
    }
    code
}
