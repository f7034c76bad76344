//! The driver: one device or several, all of them the emulator with one memory, and everything that a program has made on it. Calls happen at once, one after the
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
mod values;

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
    /// How many devices there are.
    devices: u32,
    /// Of which device contexts are.
    contexts: FxHashMap<u64, u32>,
    /// By device: the context that the runtime uses, and how many hold it.
    primary: FxHashMap<u32, (u64, u32)>,
    /// Contexts that may access memory of others.
    peers: FxHashSet<(u64, u64)>,
    /// The device of whoever calls.
    at_hand: u32,
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
    pub(crate) fn new(host: Box<dyn HostMemory>, watch: Watch, options: RunOptions, devices: u32) -> Self {
        Self {
            device: Device::default(),
            watch,
            host,
            options,
            handles: 0x1000,
            devices,
            contexts: FxHashMap::default(),
            primary: FxHashMap::default(),
            peers: FxHashSet::default(),
            at_hand: 0,
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

    pub(crate) fn create_stream(&mut self, flags: u32, priority: i32, thread: ThreadId) -> u64 {
        let handle = self.handle();
        let context = self.context(thread).unwrap_or(0);
        self.watch.create_stream(handle, flags, priority, context);
        handle
    }

    pub(crate) fn create_event(&mut self, flags: u32) -> u64 {
        let handle = self.handle();
        self.watch.create_event(handle, flags);
        handle
    }

    /// Whether a thread has a context that works.
    pub(crate) fn ready(&mut self, thread: ThreadId) -> Answer {
        self.at_hand = self.device_of(self.context(thread)?)?;
        self.fault.map_or(Ok(()), Err)
    }

    /// The current context of a thread.
    pub(crate) fn context(&self, thread: ThreadId) -> Answer<u64> {
        let current = self.current.get(&thread).and_then(|stack| stack.last().copied());
        current.filter(|context| *context != 0).ok_or(Code::INVALID_CONTEXT)
    }

    /// The device of a context.
    pub(crate) fn device_of(&self, context: u64) -> Answer<u32> {
        self.contexts.get(&context).copied().ok_or(Code::INVALID_CONTEXT)
    }

    /// A device by its number.
    pub(crate) fn numbered(&self, device: i32) -> Answer<u32> {
        u32::try_from(device).ok().filter(|device| *device < self.devices).ok_or(Code::INVALID_DEVICE)
    }

    pub(crate) fn devices(&self) -> u32 {
        self.devices
    }

    /// The context of a device that the runtime uses, made if need be.
    pub(crate) fn retain_primary(&mut self, device: u32) -> u64 {
        let context = match self.primary.get(&device) {
            Some((context, _)) => *context,
            None => self.handle(),
        };
        self.contexts.insert(context, device);
        self.primary.entry(device).or_insert((context, 0)).1 += 1;
        context
    }

    pub(crate) fn release_primary(&mut self, device: u32) -> Answer {
        let (_, held) = self.primary.get_mut(&device).ok_or(Code::INVALID_CONTEXT)?;
        *held = held.checked_sub(1).ok_or(Code::INVALID_CONTEXT)?;
        if *held == 0 {
            self.watch.synchronize_all();
        }
        Ok(())
    }

    pub(crate) fn primary_is_active(&self, device: u32) -> bool {
        self.primary.get(&device).is_some_and(|(_, held)| *held > 0)
    }

    pub(crate) fn create_context(&mut self, thread: ThreadId, device: u32) -> u64 {
        let context = self.handle();
        self.contexts.insert(context, device);
        self.current.entry(thread).or_default().push(context);
        context
    }

    /// The current context may access memory of another, on another device. Whoever may not can do so as well.
    pub(crate) fn enable_peer(&mut self, thread: ThreadId, peer: u64) -> Answer {
        let own = self.context(thread)?;
        if self.device_of(own)? == self.device_of(peer)? {
            return Err(Code::INVALID_DEVICE);
        }
        if self.peers.insert((own, peer)) { Ok(()) } else { Err(Code::PEER_ACCESS_ALREADY_ENABLED) }
    }

    pub(crate) fn disable_peer(&mut self, thread: ThreadId, peer: u64) -> Answer {
        let own = self.context(thread)?;
        if self.peers.remove(&(own, peer)) { Ok(()) } else { Err(Code::PEER_ACCESS_NOT_ENABLED) }
    }

    pub(crate) fn destroy_context(&mut self, context: u64) -> Answer {
        self.contexts.remove(&context).ok_or(Code::INVALID_CONTEXT)?;
        self.peers.retain(|(own, peer)| *own != context && *peer != context);
        self.watch.end_context(context);
        self.current.values_mut().for_each(|stack| stack.retain(|other| *other != context));
        Ok(())
    }

    pub(crate) fn push_context(&mut self, thread: ThreadId, context: u64) -> Answer {
        if !self.contexts.contains_key(&context) {
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
        if context != 0 && !self.contexts.contains_key(&context) {
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
