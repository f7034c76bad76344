//! Images in, instrumented modules out. What cannot be instrumented is loaded as it is, and the run says so once a kernel of it
//! is launched.

use std::path::PathBuf;
use std::sync::Arc;

use ptxrace::abi::control::CONTROL_SYMBOL;
use ptxrace::backend::{Owner, Region, gpu};
use ptxrace::instrument::{CallMode, SiteTable, instrument};
use ptxrace::ptx::ast::{Module as Tree, VarSpace};
use ptxrace::session::exec::log::{Gap, Line};
use ptxrace::span::SourceFile;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Gpu;
use super::driver::{self, Handle, Refused};
use crate::api::Own;
use crate::code::{Answer, Code};
use crate::watch::{self, Found};

/// What threads of a block of 1,024 may have each. Logging costs registers: a block that just fitted must still fit.
const REGISTERS: u32 = 64;

/// A module or library that was instrumented.
pub(super) struct Module {
    handle: Handle,
    /// The texts that it was made of.
    parts: Vec<Part>,
    /// What the driver was given, which a library may be compiled from much later.
    _image: Arc<Vec<u8>>,
    /// Contexts in which its control variable is set, and to what.
    control: FxHashMap<u64, (u64, u64)>,
    /// Contexts in which its variables are known.
    known: FxHashSet<u64>,
    /// What it is without instrumentation, by context, where that was needed.
    plain: FxHashMap<u64, u64>,
}

impl Module {
    pub(super) fn forget(&mut self, context: u64) {
        self.control.remove(&context);
        self.known.remove(&context);
        self.plain.remove(&context);
    }

    pub(super) fn forget_all(&mut self) {
        self.control.clear();
        self.known.clear();
        self.plain.clear();
    }
}

/// A text of a module.
struct Part {
    /// Its number in the log.
    number: usize,
    sites: Arc<SiteTable>,
    source: SourceFile,
    entries: Vec<Entry>,
    /// Global variables, and the size of their elements.
    variables: Vec<(String, u64)>,
    /// Blocks of some kernel may be as large as the device allows.
    open_bounds: bool,
}

/// A kernel of a text.
struct Entry {
    name: String,
    unlogged: Vec<u32>,
    cluster: Option<[u32; 3]>,
}

/// A kernel by its handle.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) name: String,
    /// The handle of its module or library.
    pub(super) module: u64,
}

/// What a launch has to know of its kernel.
pub(super) struct Facts {
    pub(super) number: usize,
    pub(super) unlogged: Vec<u32>,
    pub(super) unseen_order: bool,
    pub(super) cluster: Option<[u32; 3]>,
}

impl Part {
    fn new(source: SourceFile, gpu: &mut Gpu) -> Option<(Self, String)> {
        let module = gpu.watch.parse(&source)?;
        let first = gpu.watch.next_site();
        let sites = Arc::new(SiteTable::numbered(&module, first));
        let text = match instrument(source.text(), &module, &sites, CallMode::default()) {
            Ok(instrumented) => instrumented.text,
            Err(error) => {
                let detail = format!("module `{}` was not instrumented: {error}", source.path().display());
                gpu.watch.gap(Gap::Opaque, detail);
                return None;
            }
        };
        let entries = module
            .entries()
            .map(|entry| Entry {
                name: entry.name.text.into(),
                unlogged: gpu::unlogged(&module, &sites, entry.name.text),
                cluster: entry.extent(".reqnctapercluster"),
            })
            .collect();
        let of_global = module.variables().filter(|variable| variable.space == VarSpace::Global);
        let variables = of_global.map(|v| (v.name.text.to_owned(), v.element_bytes().max(1))).collect();
        let open_bounds = has_open_bounds(&module);
        drop(module);
        let number = gpu.watch.module(&source, Arc::clone(&sites));
        Some((Self { number, sites, source, entries, variables, open_bounds }, text))
    }

    /// The instrumented text with calls of another mode.
    fn again(&self, mode: CallMode) -> Option<String> {
        let module = ptxrace::session::parse(&self.source).ok()?;
        Some(instrument(self.source.text(), &module, &self.sites, mode).ok()?.text)
    }
}

/// Whether blocks of some kernel may be as large as the device allows.
fn has_open_bounds(module: &Tree<'_>) -> bool {
    module.entries().any(|entry| entry.extent(".maxntid").or(entry.extent(".reqntid")).is_none())
}

fn zero_ended(text: String) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    bytes.push(0);
    bytes
}

/// How a program loads an image.
pub(super) enum Kind {
    Module,
    /// With the options of the library itself.
    Library((*const u32, *const *mut std::ffi::c_void, u32)),
}

impl Gpu {
    /// Loads the image at an address instrumented; `None` if that cannot be done and it has to be loaded as it is.
    pub(super) fn load_data(&mut self, call: &'static str, address: u64, kind: &Kind) -> Option<u64> {
        let name = PathBuf::from(self.watch.name(call));
        let found = watch::find(&Own, address, name, driver::device()?);
        self.load(found, kind)
    }

    /// The same of a file.
    pub(super) fn load_file(&mut self, path: &str, kind: &Kind) -> Option<u64> {
        let device = driver::device()?;
        let bytes = std::fs::read(path).ok()?;
        self.load(watch::file(&bytes, path.into(), device), kind)
    }

    fn load(&mut self, found: Answer<Found>, kind: &Kind) -> Option<u64> {
        let texts = match found.ok()? {
            Found::Ptx(texts) => texts,
            Found::Opaque(_, cubin) => self.provenance(&cubin?)?,
        };
        let (mut parts, mut images) = (Vec::new(), Vec::new());
        for (path, text) in texts {
            let source = SourceFile::new(path, text).ok()?;
            let (part, text) = Part::new(source, self)?;
            parts.push(part);
            images.push(text);
        }
        let registers = parts.iter().any(|part| part.open_bounds).then_some(REGISTERS);
        let loaded = compile(images, registers, kind).or_else(|refused| {
            let Some(mode) = CallMode::default().instead(&refused.log) else { return Err(refused) };
            let texts: Option<Vec<_>> = parts.iter().map(|part| part.again(mode)).collect();
            compile(texts.ok_or(refused)?, registers, kind)
        });
        let (handle, image) = match loaded {
            Ok(loaded) => loaded,
            Err(refused) => {
                let names: Vec<_> =
                    parts.iter().map(|part| part.source.path().display().to_string()).collect();
                let (names, why) = (names.join("`, `"), refused.why());
                let detail = format!("the driver did not take `{names}` instrumented: {why}");
                self.watch.gap(Gap::Opaque, detail);
                return None;
            }
        };
        self.watch.flush();
        if let Handle::Library(library) = handle
            && let Ok(module) = driver::library_module(library)
        {
            self.of_libraries.insert(module, library);
        }
        let (control, known, plain) = (FxHashMap::default(), FxHashSet::default(), FxHashMap::default());
        self.modules.insert(handle.raw(), Module { handle, parts, _image: image, control, known, plain });
        Some(handle.raw())
    }

    /// A module or library is gone.
    pub(super) fn unloaded(&mut self, handle: u64) {
        self.watch.synchronize_all();
        self.modules.remove(&handle);
        self.of_libraries.retain(|_, library| *library != handle);
        self.kernels.retain(|_, kernel| kernel.module != handle);
    }

    /// The module of a library in a context.
    pub(super) fn library_module(&mut self, module: u64, library: u64) {
        if self.modules.contains_key(&library) {
            self.of_libraries.insert(module, library);
        }
    }

    /// The program has asked for a kernel by its name.
    pub(super) fn named(&mut self, handle: u64, module: u64, name: &str) {
        let module = self.of_libraries.get(&module).copied().unwrap_or(module);
        if self.modules.contains_key(&module) {
            self.kernels.insert(handle, Kernel { name: name.into(), module });
        }
    }

    /// A kernel has another handle.
    pub(super) fn also_named(&mut self, handle: u64, other: u64) {
        if let Some(kernel) = self.kernel(other) {
            self.kernels.insert(handle, kernel);
        }
    }

    /// The kernel of a handle, if it is instrumented.
    pub(super) fn kernel(&mut self, handle: u64) -> Option<Kernel> {
        if let Some(kernel) = self.kernels.get(&handle) {
            return Some(kernel.clone());
        }
        let module = driver::module_of(handle)?;
        let module = self.of_libraries.get(&module).copied().unwrap_or(module);
        if !self.modules.contains_key(&module) {
            return None;
        }
        let kernel = Kernel { name: driver::name_of(handle)?, module };
        self.kernels.insert(handle, kernel.clone());
        Some(kernel)
    }

    /// What there is to know of a kernel.
    pub(super) fn facts(&self, kernel: &Kernel) -> Option<Facts> {
        let module = self.modules.get(&kernel.module)?;
        let of = |part: &Part| {
            let entry = part.entries.iter().find(|entry| entry.name == kernel.name)?;
            Some(Facts {
                number: part.number,
                unlogged: entry.unlogged.clone(),
                unseen_order: part.sites.may_order(&entry.unlogged),
                cluster: entry.cluster,
            })
        };
        module.parts.iter().find_map(of)
    }

    /// Sets what a module logs to in the current context, 0 for nothing, and learns where its variables are.
    pub(super) fn ready(&mut self, handle: u64, context: u64, control: u64) -> Answer {
        let stream = self.rings.get(&context).map_or(0, |rings| rings.stream);
        let module = self.modules.get_mut(&handle).ok_or(Code::INVALID_HANDLE)?;
        let (at, now) = match module.control.get(&context) {
            Some(known) => *known,
            None => match module.handle.variable(CONTROL_SYMBOL) {
                Ok((at, _)) => (at, 0),
                // A module that has nothing to log has no such variable.
                Err(_) if module.parts.iter().all(|part| part.sites.sites().is_empty()) => (0, control),
                Err(code) => return Err(code),
            },
        };
        if now != control {
            if std::mem::take(&mut self.silent) {
                driver::synchronize()?;
            }
            driver::write(stream, at, &control.to_le_bytes())?;
        }
        module.control.insert(context, (at, control));
        if module.known.insert(context) {
            for (name, element) in module.parts.iter().flat_map(|part| &part.variables) {
                // The compiler may have dropped a variable that nothing uses.
                if let Ok((base, bytes)) = module.handle.variable(name) {
                    let region =
                        Region { name: name.clone(), base, bytes, element: *element, owner: Owner::Device };
                    self.watch.say(&Line::Region(region));
                }
            }
        }
        Ok(())
    }

    /// Nothing logs in the current context until the next launch that is checked.
    pub(super) fn silence(&mut self) {
        let context = driver::current();
        let logging = |module: &Module| module.control.get(&context).is_some_and(|(_, now)| *now != 0);
        let handles: Vec<_> =
            self.modules.iter().filter(|(_, module)| logging(module)).map(|(handle, _)| *handle).collect();
        for handle in handles {
            if let Err(code) = self.ready(handle, context, 0) {
                self.watch.gap(Gap::Call, format!("a module could not be silenced (error {})", code.0));
            }
        }
        self.silent = true;
    }

    /// Compiles a module as it was given, and finds a kernel of it there. Not if it has variables: there would be two of each.
    pub(super) fn plain(&mut self, kernel: &Kernel) -> Option<u64> {
        let module = self.modules.get_mut(&kernel.module)?;
        if module.parts.iter().any(|part| !part.variables.is_empty()) {
            return None;
        }
        let context = driver::current();
        let plain = match module.plain.get(&context) {
            Some(plain) => *plain,
            None => {
                let texts = module.parts.iter().map(|part| part.source.text().to_owned()).collect();
                let (handle, _) = compile(texts, None, &Kind::Module).ok()?;
                module.plain.insert(context, handle.raw());
                handle.raw()
            }
        };
        driver::function_of(plain, &kernel.name).ok()
    }
}

/// Has the driver compile texts, several of which are linked.
fn compile(
    texts: Vec<String>,
    registers: Option<u32>,
    kind: &Kind,
) -> Result<(Handle, Arc<Vec<u8>>), Refused> {
    let mut texts: Vec<_> = texts.into_iter().map(zero_ended).collect();
    let image = match texts.len() {
        1 => texts.remove(0),
        _ => driver::link(&texts, registers)?,
    };
    match kind {
        Kind::Module => Ok((Handle::Module(driver::load(&image, registers)?), Arc::new(image))),
        Kind::Library(options) => {
            let library = driver::load_library(&image, registers, *options).map_err(Refused::silent)?;
            // Libraries are compiled when they are first used. What is wrong with this one has to be known now.
            if driver::current() != 0 && driver::library_module(library).is_err() {
                driver::unload_library(library);
                // As a module it says why.
                let said = driver::load(&image, registers);
                return Err(said.err().unwrap_or_else(|| Refused::silent(Code::UNKNOWN)));
            }
            Ok((Handle::Library(library), Arc::new(image)))
        }
    }
}
