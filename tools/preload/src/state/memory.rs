//! Memory: of the device, and of the host where kernels may access it.

use std::collections::BTreeMap;

use ptxrace::backend::{Owner, Region};
use ptxrace::session::exec::log::Gap;

use super::devices::TOTAL_BYTES;
use super::{Driver, Stream};
use crate::code::{Answer, Code};
use crate::watch::write;

/// Whose memory an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The device's.
    Device,
    /// The host's, allocated here.
    Pinned,
    /// The host's, allocated by the program.
    Registered,
    /// Of both.
    Managed,
}

/// An allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) kind: Kind,
    /// The device for which it was made.
    pub(crate) device: u32,
}

/// All that the program has made.
#[derive(Debug, Default)]
pub(super) struct Allocations {
    by_base: BTreeMap<u64, Allocation>,
    used: u64,
    /// Mapped memory of the host as it was when the launch at hand began.
    before: Vec<(u64, Vec<u8>)>,
}

impl Allocations {
    pub(super) fn find(&self, address: u64) -> Option<Allocation> {
        let (_, found) = self.by_base.range(..=address).next_back()?;
        (address - found.base < found.bytes).then_some(*found)
    }
}

impl Driver {
    /// The allocation that holds an address.
    pub(crate) fn allocation(&self, address: u64) -> Option<Allocation> {
        self.memory.find(address)
    }

    /// Base and size of whatever holds an address, variables of modules included.
    pub(crate) fn range(&self, address: u64) -> Option<(u64, u64)> {
        self.device.around(address)
    }

    /// Bytes that are left.
    pub(crate) fn free_bytes(&self) -> u64 {
        TOTAL_BYTES.saturating_sub(self.memory.used)
    }

    fn note(&mut self, name: String, base: u64, bytes: u64, kind: Kind) {
        self.memory.by_base.insert(base, Allocation { base, bytes, kind, device: self.at_hand });
        let owner = match kind {
            Kind::Device => Owner::Device,
            Kind::Pinned | Kind::Registered => Owner::Host,
            Kind::Managed => Owner::Managed,
        };
        self.watch.made(Region { name, base, bytes, element: 1, owner });
    }

    /// Memory of the device.
    pub(crate) fn allocate(&mut self, call: &'static str, bytes: usize) -> Answer<u64> {
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if bytes as u64 > self.free_bytes() {
            return Err(Code::OUT_OF_MEMORY);
        }
        let name = self.watch.name(call);
        let base = self.device.allocate(name.clone(), bytes);
        self.memory.used += bytes as u64;
        self.note(name, base, bytes as u64, Kind::Device);
        Ok(base)
    }

    /// The same, in the order of a stream.
    pub(crate) fn allocate_async(&mut self, call: &'static str, bytes: usize, stream: Stream) -> Answer<u64> {
        self.no_memory_of_graphs(call, stream)?;
        let base = self.allocate(call, bytes)?;
        self.watch.operate(call, &[write(base, bytes as u64)], stream);
        Ok(base)
    }

    /// Memory of the host that kernels access at the same address.
    pub(crate) fn allocate_host(&mut self, call: &'static str, bytes: usize, kind: Kind) -> Answer<u64> {
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let base = self.host.allocate(bytes).ok_or(Code::OUT_OF_MEMORY)?;
        let name = self.watch.name(call);
        if !self.device.map(name.clone(), base, bytes) {
            self.host.release(base, bytes);
            return Err(Code::OUT_OF_MEMORY);
        }
        self.note(name, base, bytes as u64, kind);
        Ok(base)
    }

    /// Memory of the program, which kernels may access from now on.
    pub(crate) fn register(&mut self, call: &'static str, base: u64, bytes: usize) -> Answer {
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let name = self.watch.name(call);
        if !self.device.map(name.clone(), base, bytes) {
            return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        self.note(name, base, bytes as u64, Kind::Registered);
        Ok(())
    }

    pub(crate) fn unregister(&mut self, base: u64) -> Answer {
        match self.memory.by_base.get(&base) {
            Some(found) if found.kind == Kind::Registered => {}
            _ => return Err(Code::HOST_MEMORY_NOT_REGISTERED),
        }
        self.memory.by_base.remove(&base);
        self.device.unmap(base);
        Ok(())
    }

    /// Gives back memory of the device, or managed memory.
    pub(crate) fn free(&mut self, base: u64) -> Answer {
        if base == 0 {
            return Ok(());
        }
        let found = self.memory.by_base.get(&base).copied().ok_or(Code::INVALID_VALUE)?;
        match found.kind {
            Kind::Device => {
                self.device.free(base);
                self.memory.used -= found.bytes;
            }
            Kind::Managed => self.unmap(found),
            Kind::Pinned | Kind::Registered => return Err(Code::INVALID_VALUE),
        }
        self.memory.by_base.remove(&base);
        Ok(())
    }

    fn unmap(&mut self, found: Allocation) {
        self.device.unmap(found.base);
        self.host.release(found.base, found.bytes as usize);
    }

    /// The same, in the order of a stream.
    pub(crate) fn free_async(&mut self, call: &'static str, base: u64, stream: Stream) -> Answer {
        self.no_memory_of_graphs(call, stream)?;
        if base == 0 {
            return Ok(());
        }
        let found = self.memory.by_base.get(&base).copied().ok_or(Code::INVALID_VALUE)?;
        self.watch.operate(call, &[write(base, found.bytes)], stream);
        self.free(base)
    }

    /// Graphs with memory of their own are not provided.
    fn no_memory_of_graphs(&mut self, call: &str, stream: Stream) -> Answer {
        if self.is_capturing(stream) {
            self.watch.gap(Gap::Call, format!("the program captured `{call}`, which is not provided"));
            return Err(Code::NOT_SUPPORTED);
        }
        Ok(())
    }

    /// Gives back pinned memory.
    pub(crate) fn free_host(&mut self, base: u64) -> Answer {
        let found = self.memory.by_base.get(&base).copied().ok_or(Code::INVALID_VALUE)?;
        if found.kind != Kind::Pinned {
            return Err(Code::INVALID_VALUE);
        }
        self.unmap(found);
        self.memory.by_base.remove(&base);
        Ok(())
    }

    /// Shows kernels what the host has written to memory that both access.
    pub(super) fn map_in(&mut self) {
        let mut before = std::mem::take(&mut self.memory.before);
        before.clear();
        for found in self.memory.by_base.values().filter(|found| found.kind != Kind::Device) {
            let mut bytes = vec![0; found.bytes as usize];
            self.host.read(found.base, &mut bytes);
            if let Ok(seen) = self.device.write(found.base, bytes.len()) {
                seen.copy_from_slice(&bytes);
            }
            before.push((found.base, bytes));
        }
        self.memory.before = before;
    }

    /// Shows the host what kernels have written, and only that: other threads may write meanwhile.
    pub(super) fn map_out(&mut self) {
        for (base, before) in &self.memory.before {
            let Ok(after) = self.device.read(*base, before.len()) else { continue };
            let mut at = 0;
            while let Some(from) = (at..after.len()).find(|i| after[*i] != before[*i]) {
                let to = (from..after.len()).find(|i| after[*i] == before[*i]).unwrap_or(after.len());
                self.host.write(base + from as u64, &after[from..to]);
                at = to;
            }
        }
    }
}
