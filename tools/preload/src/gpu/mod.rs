//! The real driver, watched: modules are loaded with instrumented PTX in their place, launches are waited for and their records
//! checked, and what else orders accesses or makes memory is kept in mind. All other calls go straight through.
//!
//! | module | holds |
//! | --- | --- |
//! | `driver` | the real driver, and what is called of it |
//! | `hooks` | the symbols that do more than go on to the real one |
//! | `load` | images in, instrumented modules out |
//! | `link` | what is linked, and the PTX that machine code was made from |
//! | `graphs` | graphs, whose nodes are launched one by one |
//! | `nodes` | what the driver tells of graphs, and their nodes given to streams |
//! | `launch` | launches, one after the other, with their records |
//! | `ring` | the records, in memory that the device and the host share |
//!
//! Launches are serialised: each is waited for before the call returns. The engine takes the order from streams, events
//! and waiting, so that this hides no race between launches. A kernel that waits for another one, or for the host, comes to its
//! time limit; after that the process is not watched any more.

mod driver;
mod graphs;
mod hooks;
mod launch;
mod link;
mod load;
mod nodes;
mod ring;

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use ptxrace::backend::{Owner, Region, RunOptions};
use ptxrace::engine::Moment;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::watch::{Caller, Stream, Watch};
#[cfg(test)]
pub(crate) use hooks::hooked_names;

/// Where a symbol leads: to a hook, or to the real driver's own function.
pub(crate) fn address(name: &'static CStr, path: &Path) -> Option<usize> {
    driver::open(path);
    let real = driver::function(name)?;
    Some(name.to_str().ok().and_then(hooks::find).unwrap_or(real))
}

/// What the host functions of streams have reached. They must not wait for a lock that a launch behind them holds.
static REACHED: Mutex<Vec<Moment>> = Mutex::new(Vec::new());

/// Nothing is watched any more: a kernel runs on that was given up.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

fn given_up() -> bool {
    GIVEN_UP.load(Ordering::Relaxed)
}

/// What is known of a process that uses the real driver.
pub(crate) struct Gpu {
    pub(crate) watch: Watch,
    options: RunOptions,
    /// Where the launcher keeps what processes tell each other.
    folder: Option<PathBuf>,
    modules: FxHashMap<u64, load::Module>,
    /// Modules of libraries, as the driver makes them for each context.
    of_libraries: FxHashMap<u64, u64>,
    kernels: FxHashMap<u64, load::Kernel>,
    /// What linkers were given, unless they were given machine code.
    links: FxHashMap<u64, Option<link::Texts>>,
    /// Graphs that are ready to be launched.
    graphs: FxHashMap<u64, graphs::Ready>,
    /// By context.
    rings: FxHashMap<u64, ring::Rings>,
    rings_made: u32,
    /// Memory that the program has made, by its address.
    memory: FxHashMap<u64, u64>,
    /// Kernels without PTX that were launched.
    opaque: FxHashSet<String>,
    /// Instrumented kernels may run that log nothing. They must not begin to.
    silent: bool,
}

impl Gpu {
    pub(crate) fn new(watch: Watch, options: RunOptions, folder: Option<PathBuf>) -> Self {
        Self {
            watch,
            options,
            folder,
            modules: FxHashMap::default(),
            of_libraries: FxHashMap::default(),
            kernels: FxHashMap::default(),
            links: FxHashMap::default(),
            graphs: FxHashMap::default(),
            rings: FxHashMap::default(),
            rings_made: 0,
            memory: FxHashMap::default(),
            opaque: FxHashSet::default(),
            silent: false,
        }
    }

    /// Takes in what host functions have told.
    fn catch_up(&mut self) {
        for moment in std::mem::take(&mut *REACHED.lock()) {
            self.watch.reached(&moment);
        }
    }

    /// The stream of a handle that means the same for calls of all variants. One that was made in a way that is not known
    /// is new.
    fn stream(&mut self, handle: u64) -> Stream {
        let caller = Caller { thread: crate::process::thread(), context: driver::current() };
        if let Ok(stream) = self.watch.stream(handle, false, caller) {
            return stream;
        }
        self.watch.create_stream(handle, 0, 0, caller.context);
        self.watch.stream(handle, false, caller).unwrap_or(Stream::LEGACY)
    }

    /// The program has made memory.
    fn made(&mut self, call: &'static str, base: u64, bytes: u64, owner: Owner) {
        let name = self.watch.name(call);
        self.memory.insert(base, bytes);
        self.watch.made(Region { name, base, bytes, element: 1, owner });
    }

    /// Memory is gone in the order of a stream. Gives its size.
    fn forget(&mut self, base: u64) -> Option<u64> {
        self.memory.remove(&base)
    }

    /// Memory is gone. The driver waits for the device before it takes memory back, or it could not be used again at once;
    /// its documentation does not say so. Without that, what is made at the same address would seem to race.
    fn gone(&mut self, base: u64) {
        self.forget(base);
        self.watch.synchronize_all();
    }

    /// A context is gone, or all are.
    fn left(&mut self, context: Option<u64>) {
        match context {
            Some(context) => {
                self.watch.end_context(context);
                self.rings.remove(&context);
                self.modules.values_mut().for_each(|module| module.forget(context));
            }
            None => {
                self.watch.synchronize_all();
                self.rings.clear();
                self.modules.values_mut().for_each(load::Module::forget_all);
            }
        }
    }
}
