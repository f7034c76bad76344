//! The driver: one device, the emulator, and everything that a program has made on it. Calls happen at once, one after the
//! other; what order they have for the program is told to the engine by the clocks of streams, events and the host.
//!
//! Handles are numbers that point nowhere. Memory of the host is reached by its address, through `HostMemory`.

mod capture;
mod copies;
mod devices;
mod graphs;
mod launches;
mod memory;
mod modules;
#[cfg(test)]
mod tests;
mod textures;

pub(crate) use capture::Captured;
pub(crate) use copies::Side;
pub(crate) use devices::{MULTIPROCESSORS, NAME, THREADS_PER_MULTIPROCESSOR, TOTAL_BYTES, attribute};
pub(crate) use launches::Config;
pub(crate) use memory::Kind;
pub(crate) use modules::Function;

use ptxrace::backend::RunOptions;
use ptxrace::backend::emu::Device;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::code::{Answer, Code};
use crate::watch::{HostMemory, Stream, ThreadId, Watch};

/// Everything there is.
pub(crate) struct Driver {
    device: Device,
    pub(crate) watch: Watch,
    host: Box<dyn HostMemory>,
    options: RunOptions,
    /// The last handle.
    handles: u64,
    contexts: FxHashSet<u64>,
    primary: (u64, u32),
    current: FxHashMap<ThreadId, Vec<u64>>,
    modules: FxHashMap<u64, modules::Module>,
    functions: FxHashMap<u64, Function>,
    memory: memory::Allocations,
    textures: textures::Made,
    graphs: graphs::Graphs,
    captures: capture::Captures,
    /// A kernel faulted: nothing works any more.
    fault: Option<Code>,
}

impl Driver {
    pub(crate) fn new(host: Box<dyn HostMemory>, watch: Watch, options: RunOptions) -> Self {
        Self {
            device: Device::default(),
            watch,
            host,
            options,
            handles: 0x1000,
            contexts: FxHashSet::default(),
            primary: (0, 0),
            current: FxHashMap::default(),
            modules: FxHashMap::default(),
            functions: FxHashMap::default(),
            memory: memory::Allocations::default(),
            textures: textures::Made::default(),
            graphs: graphs::Graphs::default(),
            captures: capture::Captures::default(),
            fault: None,
        }
    }

    fn handle(&mut self) -> u64 {
        self.handles += 0x10;
        self.handles
    }

    pub(crate) fn create_stream(&mut self, flags: u32, priority: i32) -> u64 {
        let handle = self.handle();
        self.watch.create_stream(handle, flags, priority);
        handle
    }

    pub(crate) fn create_event(&mut self, flags: u32) -> u64 {
        let handle = self.handle();
        self.watch.create_event(handle, flags);
        handle
    }

    /// Whether a thread has a context that works.
    pub(crate) fn ready(&self, thread: ThreadId) -> Answer {
        self.context(thread)?;
        self.fault.map_or(Ok(()), Err)
    }

    /// The current context of a thread.
    pub(crate) fn context(&self, thread: ThreadId) -> Answer<u64> {
        let current = self.current.get(&thread).and_then(|stack| stack.last().copied());
        current.filter(|context| *context != 0).ok_or(Code::INVALID_CONTEXT)
    }

    /// The context of the device that the runtime uses, made if need be.
    pub(crate) fn retain_primary(&mut self) -> u64 {
        if self.primary.0 == 0 {
            self.primary.0 = self.handle();
        }
        self.contexts.insert(self.primary.0);
        self.primary.1 += 1;
        self.primary.0
    }

    pub(crate) fn release_primary(&mut self) -> Answer {
        if self.primary.1 == 0 {
            return Err(Code::INVALID_CONTEXT);
        }
        self.primary.1 -= 1;
        if self.primary.1 == 0 {
            self.watch.synchronize_all();
        }
        Ok(())
    }

    pub(crate) fn primary_is_active(&self) -> bool {
        self.primary.1 > 0
    }

    pub(crate) fn create_context(&mut self, thread: ThreadId) -> u64 {
        let context = self.handle();
        self.contexts.insert(context);
        self.current.entry(thread).or_default().push(context);
        context
    }

    pub(crate) fn destroy_context(&mut self, context: u64) -> Answer {
        if !self.contexts.remove(&context) {
            return Err(Code::INVALID_CONTEXT);
        }
        self.watch.synchronize_all();
        self.current.values_mut().for_each(|stack| stack.retain(|other| *other != context));
        Ok(())
    }

    pub(crate) fn push_context(&mut self, thread: ThreadId, context: u64) -> Answer {
        if !self.contexts.contains(&context) {
            return Err(Code::INVALID_CONTEXT);
        }
        self.current.entry(thread).or_default().push(context);
        Ok(())
    }

    pub(crate) fn pop_context(&mut self, thread: ThreadId) -> Answer<u64> {
        self.current.get_mut(&thread).and_then(Vec::pop).ok_or(Code::INVALID_CONTEXT)
    }

    /// Makes a context current, or none with 0.
    pub(crate) fn set_context(&mut self, thread: ThreadId, context: u64) -> Answer {
        if context != 0 && !self.contexts.contains(&context) {
            return Err(Code::INVALID_CONTEXT);
        }
        let stack = self.current.entry(thread).or_default();
        stack.pop();
        if context != 0 {
            stack.push(context);
        }
        Ok(())
    }
}
