//! The driver: one device, the emulator, and everything that a program has made on it. Calls happen at once, one after the
//! other; what order they have for the program is told to the engine by the clocks of streams, events and the host.
//!
//! Handles are numbers that point nowhere. Memory of the host is reached by its address, through `HostMemory`.

mod copies;
mod devices;
mod launches;
mod memory;
mod modules;
mod order;
#[cfg(test)]
mod tests;

pub(crate) use copies::{Rows, Side, Timing};
pub(crate) use devices::{MULTIPROCESSORS, NAME, THREADS_PER_MULTIPROCESSOR, TOTAL_BYTES, attribute};
pub(crate) use launches::Config;
pub(crate) use memory::Kind;
pub(crate) use modules::Function;
pub(crate) use order::{Stream, ThreadId};

use ptxrace::backend::RunOptions;
use ptxrace::backend::emu::Device;
use ptxrace::engine::{Engine, Streams};
use ptxrace::session::exec::log::{Gap, Line, Writer};
use ptxrace::session::exec::{Counted, Wanted};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::code::{Answer, Code};

/// Memory of the process itself.
pub(crate) trait HostMemory: Send {
    /// Reads bytes that the program says are there.
    fn read(&self, address: u64, to: &mut [u8]);
    /// Writes bytes where the program says that it may be done.
    fn write(&mut self, address: u64, from: &[u8]);
    /// The text that begins here, without the zero byte that ends it.
    fn text(&self, address: u64) -> Vec<u8>;
    /// New memory, filled with zeros.
    fn allocate(&mut self, bytes: usize) -> Option<u64>;
    /// Gives it back.
    fn release(&mut self, address: u64, bytes: usize);
}

/// Everything there is.
pub(crate) struct Driver {
    device: Device,
    engine: Engine,
    streams: Streams,
    host: Box<dyn HostMemory>,
    log: Option<Writer>,
    options: RunOptions,
    wanted: Counted,
    /// The last handle.
    handles: u64,
    contexts: FxHashSet<u64>,
    primary: (u64, u32),
    current: FxHashMap<ThreadId, Vec<u64>>,
    modules: FxHashMap<u64, modules::Module>,
    functions: FxHashMap<u64, Function>,
    created: FxHashMap<u64, order::Created>,
    per_thread: FxHashMap<ThreadId, Stream>,
    events: FxHashMap<u64, order::Event>,
    memory: memory::Allocations,
    /// Names of calls that stand for operations, in the order of their sites.
    calls: Vec<&'static str>,
    /// Calls that were said to be wanting.
    wanting: FxHashSet<String>,
    /// A kernel faulted: nothing works any more.
    fault: Option<Code>,
    shortcomings: (u64, u64),
}

impl Driver {
    pub(crate) fn new(
        host: Box<dyn HostMemory>,
        log: Option<Writer>,
        options: RunOptions,
        wanted: Wanted,
    ) -> Self {
        Self {
            device: Device::default(),
            engine: Engine::open(),
            streams: Streams::default(),
            host,
            log,
            options,
            wanted: Counted::new(wanted),
            handles: 0x1000,
            contexts: FxHashSet::default(),
            primary: (0, 0),
            current: FxHashMap::default(),
            modules: FxHashMap::default(),
            functions: FxHashMap::default(),
            created: FxHashMap::default(),
            per_thread: FxHashMap::default(),
            events: FxHashMap::default(),
            memory: memory::Allocations::default(),
            calls: Vec::new(),
            wanting: FxHashSet::default(),
            fault: None,
            shortcomings: (0, 0),
        }
    }

    fn handle(&mut self) -> u64 {
        self.handles += 0x10;
        self.handles
    }

    fn say(&mut self, line: &Line) {
        if let Some(log) = &mut self.log {
            log.push(line);
        }
    }

    fn flush(&mut self) {
        // Where logs cannot be written, the program goes on; the report will lack what they would have said.
        if let Some(log) = &mut self.log {
            let _ = log.flush();
        }
    }

    /// Says why the run is not the whole truth, each reason once.
    pub(crate) fn gap(&mut self, kind: Gap, detail: String) {
        if self.wanting.insert(detail.clone()) {
            self.say(&Line::Incomplete { kind, detail });
            self.flush();
        }
    }

    /// Writes what was found since the last time; with `changes`, the final counts.
    fn report(&mut self, changes: bool) {
        for (number, finding) in self.engine.news(changes) {
            self.say(&Line::Finding { number, finding });
        }
        let (degraded, lost, damaged) = self.engine.shortcomings();
        if degraded > 0 && self.shortcomings.0 == 0 {
            self.gap(Gap::Degraded, "strong operations have no order that explains their values".into());
        }
        if lost > 0 && self.shortcomings.1 == 0 {
            self.gap(Gap::Degraded, "writes of words with very many writers were forgotten".into());
        }
        if let Some(damage) = damaged {
            self.gap(Gap::Degraded, format!("records are damaged: {damage}"));
        }
        self.shortcomings = (degraded, lost);
        self.flush();
    }

    /// The process ends.
    pub(crate) fn finish(&mut self) {
        self.report(true);
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
            self.streams.synchronize_all();
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
        self.streams.synchronize_all();
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
