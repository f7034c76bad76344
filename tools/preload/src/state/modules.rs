//! Modules and libraries: PTX as text or in fatbins, its variables and kernels.

use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::sync::Arc;

use ptxrace::backend::emu::{Kernel, Loaded};
use ptxrace::fatbin::Device;
use ptxrace::instrument::SiteTable;
use ptxrace::ptx::ast::{Function as Entry, Module as Tree};
use ptxrace::session::exec::log::{Gap, Line};
use ptxrace::session::exec::provenance;
use ptxrace::span::SourceFile;
use rustc_hash::FxHashMap;

use super::{Driver, devices};
use crate::code::{Answer, Code};
use crate::watch::{self, Found};

/// What PTX is chosen for.
const DEVICE: Device = Device::new(devices::CAPABILITY.0, devices::CAPABILITY.1);

/// A module or library.
pub(super) struct Module {
    source: SourceFile,
    loaded: Loaded,
    /// Its number in the log.
    number: usize,
    entries: Vec<Facts>,
    /// Handles of kernels that were asked for, by name.
    functions: FxHashMap<String, u64>,
}

/// What directives say of a kernel.
#[derive(Clone, Debug)]
struct Facts {
    name: String,
    most_threads: Option<u32>,
    cluster: Option<[u32; 3]>,
}

/// A kernel of a module.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The same with a zero byte behind it, for the program.
    c_name: Arc<CStr>,
    pub(crate) module: u64,
    /// The module's number in the log.
    pub(crate) number: usize,
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) most_threads: u32,
    pub(crate) cluster: Option<[u32; 3]>,
    /// What the program allows for dynamic shared memory.
    pub(crate) dynamic_bytes: i32,
}

fn facts(module: &Tree<'_>) -> Vec<Facts> {
    let of = |entry: &Entry<'_>| Facts {
        name: entry.name.text.into(),
        most_threads: entry.extent(".maxntid").or(entry.extent(".reqntid")).map(|e| e.iter().product()),
        cluster: entry.extent(".reqnctapercluster"),
    };
    module.entries().map(of).collect()
}

impl Driver {
    /// Loads a module from a file.
    pub(crate) fn load_file(&mut self, path: &str) -> Answer<u64> {
        let bytes = std::fs::read(path).map_err(|_| Code::FILE_NOT_FOUND)?;
        self.load(watch::file(&bytes, path.into(), DEVICE)?)
    }

    /// Loads a module that lies in memory.
    pub(crate) fn load_data(&mut self, call: &'static str, address: u64) -> Answer<u64> {
        let name = PathBuf::from(self.watch.name(call));
        self.load(watch::find(&*self.host, address, name, DEVICE)?)
    }

    fn load(&mut self, found: Found) -> Answer<u64> {
        let found = match found {
            Found::Opaque(name, Some(cubin)) => {
                let folder = crate::process::folder().map(provenance::folder);
                let texts = folder.and_then(|folder| provenance::lookup(&folder, &cubin));
                texts.map_or(Found::Opaque(name, None), Found::Ptx)
            }
            found => found,
        };
        let (path, text) = match found {
            Found::Ptx(mut texts) if texts.len() == 1 => texts.remove(0),
            Found::Ptx(texts) => {
                let names: Vec<_> = texts.iter().map(|(path, _)| path.display().to_string()).collect();
                let detail = format!("modules that have to be linked: {}", names.join(", "));
                self.watch.gap(Gap::Call, detail);
                return Err(Code::NOT_SUPPORTED);
            }
            Found::Opaque(name, _) => {
                let detail = format!("`{name}` has machine code only, which the emulator cannot run");
                self.watch.gap(Gap::Opaque, detail);
                return Err(Code::NO_BINARY_FOR_GPU);
            }
        };
        let source = SourceFile::new(path, text).map_err(|_| Code::INVALID_PTX)?;
        let module = self.watch.parse(&source).ok_or(Code::INVALID_PTX)?;
        let first = self.watch.next_site();
        let sites = Arc::new(SiteTable::numbered(&module, first));
        let loaded = self.device.load(&module, Arc::clone(&sites));
        let entries = facts(&module);
        drop(module);
        let number = self.watch.module(&source, sites);
        for variable in loaded.variables() {
            self.watch.say(&Line::Region(variable.clone()));
        }
        self.watch.flush();
        let handle = self.handle();
        let functions = FxHashMap::default();
        self.modules.insert(handle, Module { source, loaded, number, entries, functions });
        Ok(handle)
    }

    pub(crate) fn unload(&mut self, module: u64) -> Answer {
        let gone = self.modules.remove(&module).ok_or(Code::INVALID_HANDLE)?;
        self.device.unload(&gone.loaded);
        self.functions.retain(|_, function| function.module != module);
        Ok(())
    }

    pub(crate) fn is_module(&self, module: u64) -> bool {
        self.modules.contains_key(&module)
    }

    /// Names of a module's kernels.
    pub(crate) fn kernels(&self, module: u64) -> Answer<Vec<String>> {
        let module = self.modules.get(&module).ok_or(Code::INVALID_HANDLE)?;
        Ok(module.entries.iter().map(|entry| entry.name.clone()).collect())
    }

    /// The kernel of this name.
    pub(crate) fn find(&mut self, handle: u64, name: &str) -> Answer<u64> {
        let module = self.modules.get(&handle).ok_or(Code::INVALID_HANDLE)?;
        if let Some(known) = module.functions.get(name) {
            return Ok(*known);
        }
        let Facts { most_threads, cluster, .. } =
            module.entries.iter().find(|entry| entry.name == name).ok_or(Code::NOT_FOUND)?.clone();
        let decoded = self.device.kernel(&module.source, &module.loaded, name);
        let number = module.number;
        let kernel = match decoded {
            Ok(kernel) => Arc::new(kernel),
            Err(error) => {
                self.watch.gap(Gap::Call, format!("kernel `{name}` cannot be emulated: {error}"));
                return Err(Code::NOT_SUPPORTED);
            }
        };
        let function = Function {
            name: name.into(),
            c_name: CString::new(name).unwrap_or_default().into(),
            module: handle,
            number,
            kernel,
            most_threads: most_threads.unwrap_or(1024),
            cluster,
            dynamic_bytes: 48 << 10,
        };
        let known = self.handle();
        self.functions.insert(known, function);
        if let Some(module) = self.modules.get_mut(&handle) {
            module.functions.insert(name.into(), known);
        }
        Ok(known)
    }

    /// Address and size of the variable of this name.
    pub(crate) fn variable(&self, module: u64, name: &str) -> Answer<(u64, u64)> {
        let module = self.modules.get(&module).ok_or(Code::INVALID_HANDLE)?;
        let found = module.loaded.variables().iter().find(|variable| variable.name == name);
        found.map(|variable| (variable.base, variable.bytes)).ok_or(Code::NOT_FOUND)
    }

    pub(crate) fn function(&self, function: u64) -> Answer<&Function> {
        self.functions.get(&function).ok_or(Code::INVALID_HANDLE)
    }

    /// The address of a kernel's name, which stays until its module is unloaded.
    pub(crate) fn c_name(&self, function: u64) -> Answer<usize> {
        Ok(self.function(function)?.c_name.as_ptr() as usize)
    }

    /// An attribute of a kernel.
    pub(crate) fn function_attribute(&self, function: u64, attribute: u32) -> Answer<i32> {
        let function = self.function(function)?;
        let bytes = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
        let cluster = |axis: usize| function.cluster.map_or(0, |cluster| cluster[axis].cast_signed());
        Ok(match attribute {
            0 => function.most_threads.cast_signed(),
            1 => bytes(function.kernel.shared_bytes()),
            3 => bytes(function.kernel.local_bytes()),
            4 => 32,
            5 | 6 => 90,
            8 => function.dynamic_bytes,
            9 => -1,
            10 => function.cluster.is_some().into(),
            11..=13 => cluster(attribute as usize - 11),
            2 | 7 | 14 | 15 => 0,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    pub(crate) fn set_function_attribute(&mut self, function: u64, attribute: u32, value: i32) -> Answer {
        let function = self.functions.get_mut(&function).ok_or(Code::INVALID_HANDLE)?;
        let limit = devices::SHARED_BYTES - i32::try_from(function.kernel.shared_bytes()).unwrap_or(0);
        match attribute {
            8 if value > limit || value < 0 => return Err(Code::INVALID_VALUE),
            8 => function.dynamic_bytes = value,
            // Hints.
            9 | 14 | 15 => {}
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }
}
