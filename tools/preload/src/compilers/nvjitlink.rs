//! nvJitLink: a link is made from the PTX of its parts, where all have some, and from that which the linker itself makes of parts
//! for link-time optimisation.
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
/// `NVJITLINK_INPUT_LTOIR`
const LTO_IR: u32 = 3;

/// PTX with its names.
type Texts = Vec<(PathBuf, String)>;

/// What a link is made from.
#[derive(Clone, Default)]
struct Parts {
    options: Vec<CString>,
    texts: Texts,
    /// What the linker makes PTX of itself, with its names.
    intermediate: Vec<(Vec<u8>, CString)>,
    /// A part has no PTX.
    opaque: bool,
}

/// Links by their handles.
static LINKS: Mutex<Option<FxHashMap<usize, Parts>>> = Mutex::new(None);

macro_rules! versions {
    ($($function:ident: $plain:ident $($version:ident)*;)*) => {
        $(symbols! { Library::NvJitLink, super::$function, FAILED; $plain $($version)* })*
    };
}

versions! {
    create: nvJitLinkCreate
        __nvJitLinkCreate_12_0 __nvJitLinkCreate_12_1 __nvJitLinkCreate_12_2 __nvJitLinkCreate_12_3
        __nvJitLinkCreate_12_4 __nvJitLinkCreate_12_5 __nvJitLinkCreate_12_6 __nvJitLinkCreate_12_7
        __nvJitLinkCreate_12_8 __nvJitLinkCreate_12_9 __nvJitLinkCreate_13_0 __nvJitLinkCreate_13_1
        __nvJitLinkCreate_13_2 __nvJitLinkCreate_13_3 __nvJitLinkCreate_13_4 __nvJitLinkCreate_13_5
        __nvJitLinkCreate_13_6 __nvJitLinkCreate_13_7 __nvJitLinkCreate_13_8 __nvJitLinkCreate_13_9;
    add_data: nvJitLinkAddData
        __nvJitLinkAddData_12_0 __nvJitLinkAddData_12_1 __nvJitLinkAddData_12_2 __nvJitLinkAddData_12_3
        __nvJitLinkAddData_12_4 __nvJitLinkAddData_12_5 __nvJitLinkAddData_12_6 __nvJitLinkAddData_12_7
        __nvJitLinkAddData_12_8 __nvJitLinkAddData_12_9 __nvJitLinkAddData_13_0 __nvJitLinkAddData_13_1
        __nvJitLinkAddData_13_2 __nvJitLinkAddData_13_3 __nvJitLinkAddData_13_4 __nvJitLinkAddData_13_5
        __nvJitLinkAddData_13_6 __nvJitLinkAddData_13_7 __nvJitLinkAddData_13_8 __nvJitLinkAddData_13_9;
    add_file: nvJitLinkAddFile
        __nvJitLinkAddFile_12_0 __nvJitLinkAddFile_12_1 __nvJitLinkAddFile_12_2 __nvJitLinkAddFile_12_3
        __nvJitLinkAddFile_12_4 __nvJitLinkAddFile_12_5 __nvJitLinkAddFile_12_6 __nvJitLinkAddFile_12_7
        __nvJitLinkAddFile_12_8 __nvJitLinkAddFile_12_9 __nvJitLinkAddFile_13_0 __nvJitLinkAddFile_13_1
        __nvJitLinkAddFile_13_2 __nvJitLinkAddFile_13_3 __nvJitLinkAddFile_13_4 __nvJitLinkAddFile_13_5
        __nvJitLinkAddFile_13_6 __nvJitLinkAddFile_13_7 __nvJitLinkAddFile_13_8 __nvJitLinkAddFile_13_9;
    get_cubin: nvJitLinkGetLinkedCubin
        __nvJitLinkGetLinkedCubin_12_0 __nvJitLinkGetLinkedCubin_12_1 __nvJitLinkGetLinkedCubin_12_2
        __nvJitLinkGetLinkedCubin_12_3 __nvJitLinkGetLinkedCubin_12_4 __nvJitLinkGetLinkedCubin_12_5
        __nvJitLinkGetLinkedCubin_12_6 __nvJitLinkGetLinkedCubin_12_7 __nvJitLinkGetLinkedCubin_12_8
        __nvJitLinkGetLinkedCubin_12_9 __nvJitLinkGetLinkedCubin_13_0 __nvJitLinkGetLinkedCubin_13_1
        __nvJitLinkGetLinkedCubin_13_2 __nvJitLinkGetLinkedCubin_13_3 __nvJitLinkGetLinkedCubin_13_4
        __nvJitLinkGetLinkedCubin_13_5 __nvJitLinkGetLinkedCubin_13_6 __nvJitLinkGetLinkedCubin_13_7
        __nvJitLinkGetLinkedCubin_13_8 __nvJitLinkGetLinkedCubin_13_9;
    destroy: nvJitLinkDestroy
        __nvJitLinkDestroy_12_0 __nvJitLinkDestroy_12_1 __nvJitLinkDestroy_12_2 __nvJitLinkDestroy_12_3
        __nvJitLinkDestroy_12_4 __nvJitLinkDestroy_12_5 __nvJitLinkDestroy_12_6 __nvJitLinkDestroy_12_7
        __nvJitLinkDestroy_12_8 __nvJitLinkDestroy_12_9 __nvJitLinkDestroy_13_0 __nvJitLinkDestroy_13_1
        __nvJitLinkDestroy_13_2 __nvJitLinkDestroy_13_3 __nvJitLinkDestroy_13_4 __nvJitLinkDestroy_13_5
        __nvJitLinkDestroy_13_6 __nvJitLinkDestroy_13_7 __nvJitLinkDestroy_13_8 __nvJitLinkDestroy_13_9;
}

/// `Create(&link, count, options)`
fn create(call: &Call) -> u32 {
    let code = call.real(FAILED);
    let [link, count, options, ..] = call.arguments;
    if code == 0
        && let Ok(link) = crate::api::get(link as *const usize)
    {
        let options = (0..count as u32 as usize).map(|at| {
            let option = crate::api::get((options as *const usize).wrapping_add(at)).ok()?;
            CString::new(text(option)?.into_os_string().into_encoded_bytes()).ok()
        });
        let options = options.collect::<Option<Vec<_>>>();
        let parts =
            Parts { opaque: options.is_none(), options: options.unwrap_or_default(), ..Parts::default() };
        LINKS.lock().get_or_insert_default().insert(link, parts);
    }
    code
}

/// `AddData(link, kind, data, size, name)`
fn add_data(call: &Call) -> u32 {
    let code = call.real(FAILED);
    let [link, kind, data, size, name] = call.arguments;
    if code == 0 {
        let name = text(name).unwrap_or_else(|| "link.ptx".into());
        add(link, kind as u32, bytes(data, size), name);
    }
    code
}

/// `AddFile(link, kind, path)`
fn add_file(call: &Call) -> u32 {
    let code = call.real(FAILED);
    let [link, kind, path, ..] = call.arguments;
    if code == 0 {
        let path = text(path).unwrap_or_default();
        add(link, kind as u32, std::fs::read(&path).unwrap_or_default(), path);
    }
    code
}

fn text(from: usize) -> Option<PathBuf> {
    crate::api::text(from as *const c_char).ok().filter(|text| !text.is_empty()).map(PathBuf::from)
}

/// A part: PTX, what the linker makes some of, or what is known to have been made from some.
fn add(link: usize, kind: u32, bytes: Vec<u8>, name: PathBuf) {
    let texts = match kind {
        PTX => own_ptx(&bytes, name.clone()),
        LTO_IR => None,
        _ => crate::process::folder()
            .and_then(|folder| provenance::lookup(&provenance::folder(folder), &bytes)),
    };
    let mut links = LINKS.lock();
    let parts = links.get_or_insert_default().entry(link).or_default();
    match (texts, CString::new(name.into_os_string().into_encoded_bytes())) {
        (Some(texts), _) => parts.texts.extend(texts),
        (None, Ok(name)) if kind == LTO_IR => parts.intermediate.push((bytes, name)),
        (None, _) => parts.opaque = true,
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
    let parts = LINKS.lock().as_ref().and_then(|links| links.get(&link).cloned());
    if code == 0
        && let Some(texts) = parts.and_then(|parts| parts.into_texts(call))
        && let Some(size) = size_of(call, "CubinSize", link)
    {
        note(&bytes(to, size), &texts);
    }
    code
}

impl Parts {
    /// The PTX of all parts, if all have some.
    fn into_texts(mut self, call: &Call) -> Option<Texts> {
        if self.opaque {
            return None;
        }
        if !self.intermediate.is_empty() {
            let text = self.optimised(call)?;
            let name = provenance::by_kernel(&text).unwrap_or_else(|| "link.ptx".into());
            self.texts.push((name, text));
        }
        (!self.texts.is_empty()).then_some(self.texts)
    }

    /// The PTX that link-time optimisation makes: another link of the same, which goes no further than that.
    fn optimised(&self, call: &Call) -> Option<String> {
        let options = self.options.iter().map(CString::as_c_str).chain([c"-ptx"]).map(CStr::as_ptr);
        let options: Vec<*const c_char> = options.collect();
        let mut link = 0_usize;
        done(call, "Create", [&raw mut link as usize, options.len(), options.as_ptr() as usize, 0, 0])?;
        let text = self.linked(call, link);
        let _ = done(call, "Destroy", [&raw mut link as usize, 0, 0, 0, 0]);
        text
    }

    fn linked(&self, call: &Call, link: usize) -> Option<String> {
        for (bytes, name) in &self.intermediate {
            let data = [link, LTO_IR as usize, bytes.as_ptr() as usize, bytes.len(), name.as_ptr() as usize];
            done(call, "AddData", data)?;
        }
        done(call, "Complete", [link, 0, 0, 0, 0])?;
        let mut text = vec![0_u8; size_of(call, "PtxSize", link)?];
        done(call, "GetLinkedPtx", [link, text.as_mut_ptr() as usize, 0, 0, 0])?;
        String::from_utf8(text.split(|byte| *byte == 0).next()?.to_vec()).ok()
    }
}

/// Calls another function of the library, by the symbol of the version of this call's, which is to get a cubin.
fn done(call: &Call, function: &str, arguments: [usize; 5]) -> Option<()> {
    let symbol = CString::new(call.symbol.to_str().ok()?.replace("GetLinkedCubin", function)).ok()?;
    (call.other(&symbol, arguments, FAILED) == 0).then_some(())
}

/// Of a linked cubin or text.
fn size_of(call: &Call, what: &str, link: usize) -> Option<usize> {
    let mut size = 0_usize;
    done(call, &format!("GetLinked{what}"), [link, &raw mut size as usize, 0, 0, 0])?;
    Some(size)
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
