//! Global and constant memory: separate allocations with gaps between them, so that every access is checked against
//! one of them. The address space is the generic one; the windows of the other spaces are the constants below.

use std::collections::BTreeMap;

use super::written::Written;
use crate::backend::{FaultKind, Owner, Region};

/// First address of global memory.
pub(super) const GLOBAL_BASE: u64 = 0x7000_0000_0000;
/// First address of what inserted code uses, apart so that the program's addresses stay the same.
const RUNTIME_BASE: u64 = 0x7800_0000_0000;
/// First address of constant memory.
pub(super) const CONST_BASE: u64 = 0x5000_0000_0000;
/// Kernel parameters as generic addresses.
pub(super) const PARAM_WINDOW: u64 = 0x4000_0000_0000;
/// Local memory as generic addresses.
pub(super) const LOCAL_WINDOW: u64 = 0x2000_0000_0000;
/// Shared memory as generic addresses.
pub(super) const SHARED_WINDOW: u64 = 0x1000_0000_0000;
/// Addresses of functions.
pub(super) const CODE_WINDOW: u64 = 0x0800_0000_0000;
/// Size of a window.
pub(super) const WINDOW: u64 = 1 << 40;
/// Bytes between the addresses of two functions.
pub(super) const CODE_STRIDE: u64 = 16;

/// Room between allocations; every base is a multiple of `ALIGN`.
const GAP: u64 = 4096;
const ALIGN: u64 = 256;

/// What an allocation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Buffer,
    Variable,
    Const,
    Heap,
    /// Of inserted code: no program may see it, and no report names it.
    Runtime,
    /// Given back by `free`.
    Freed,
}

/// One allocation.
#[derive(Clone, Debug)]
pub(super) struct Allocation {
    pub(super) base: u64,
    pub(super) data: Vec<u8>,
    pub(super) name: String,
    pub(super) element: u64,
    pub(super) kind: Kind,
    /// What of it was written, if not all.
    written: Option<Box<Written>>,
}

/// All allocations, by address.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    allocations: Vec<Allocation>,
    next_global: u64,
    next_const: u64,
    next_runtime: u64,
    last: usize,
    /// Allocations that were not written as a whole.
    unwritten: usize,
    /// What the host has given back: sizes and names by base.
    gone: BTreeMap<u64, (u64, String)>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            allocations: Vec::new(),
            next_global: GLOBAL_BASE,
            next_const: CONST_BASE,
            next_runtime: RUNTIME_BASE,
            last: 0,
            unwritten: 0,
            gone: BTreeMap::new(),
        }
    }
}

/// Why an access may not be.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) kind: FaultKind,
    pub(super) detail: String,
}

impl Memory {
    /// Adds an allocation and tells its base.
    pub(super) fn allocate(
        &mut self,
        name: impl Into<String>,
        element: u64,
        data: Vec<u8>,
        kind: Kind,
        align: u64,
    ) -> u64 {
        let next = match kind {
            Kind::Const => &mut self.next_const,
            Kind::Runtime => &mut self.next_runtime,
            _ => &mut self.next_global,
        };
        let base = next.next_multiple_of(align.clamp(ALIGN, 1 << 20));
        *next = base.saturating_add(data.len() as u64).saturating_add(GAP).next_multiple_of(ALIGN);
        let allocation = Allocation { base, data, name: name.into(), element, kind, written: None };
        let at = self.allocations.partition_point(|a| a.base < base);
        self.allocations.insert(at, allocation);
        base
    }

    /// Adds an allocation at an address; tells whether there was room.
    pub(super) fn allocate_at(&mut self, base: u64, name: String, data: Vec<u8>) -> bool {
        let Some(end) = base.checked_add(data.len() as u64) else { return false };
        let at = self.allocations.partition_point(|a| a.base < base);
        let reaches = |a: &Allocation| a.base + a.data.len() as u64 > base;
        let taken = at.checked_sub(1).and_then(|at| self.allocations.get(at)).is_some_and(reaches)
            || self.allocations.get(at).is_some_and(|a| a.base < end);
        if !taken {
            self.forget(base);
            let (element, kind, written) = (1, Kind::Buffer, None);
            self.allocations.insert(at, Allocation { base, data, name, element, kind, written });
        }
        !taken
    }

    /// Nothing of the allocation that starts here counts as written.
    pub(super) fn unwrite(&mut self, base: u64) {
        if let Some(allocation) = self.at_mut(base) {
            let nothing = Written::nothing(allocation.data.len());
            if allocation.written.replace(Box::new(nothing)).is_none() {
                self.unwritten += 1;
            }
        }
    }

    /// Whether something was not written.
    #[inline]
    pub(super) fn has_unwritten(&self) -> bool {
        self.unwritten != 0
    }

    /// Whether the allocation of the last access is one of which something was not written.
    #[inline]
    pub(super) fn met_unwritten(&self) -> bool {
        self.unwritten != 0 && self.allocations.get(self.last).is_some_and(|a| a.written.is_some())
    }

    /// What of the allocation of the last access was written, with its base.
    pub(super) fn last_written(&self) -> Option<(u64, &Written)> {
        let found = self.allocations.get(self.last)?;
        Some((found.base, found.written.as_deref()?))
    }

    /// How many of these bytes were written; all, where nobody knows.
    pub(super) fn written(&self, address: u64, size: usize) -> usize {
        let at = self.allocations.partition_point(|a| a.base <= address).checked_sub(1);
        let found = at.and_then(|at| self.allocations.get(at));
        let written = found.and_then(|a| Some((a.written.as_ref()?, (address - a.base) as usize)));
        written.map_or(size, |(written, at)| written.count(at, size))
    }

    /// These bytes are written.
    #[inline]
    pub(super) fn mark(&mut self, address: u64, size: usize) {
        if self.unwritten != 0 {
            let at = self.allocations.partition_point(|a| a.base <= address).saturating_sub(1);
            self.mark_in(at, address, size);
        }
    }

    fn mark_in(&mut self, at: usize, address: u64, size: usize) {
        let Some(allocation) = self.allocations.get_mut(at) else { return };
        let Some(written) = &mut allocation.written else { return };
        written.mark(address.wrapping_sub(allocation.base) as usize, size);
        if written.is_whole() {
            allocation.written = None;
            self.unwritten -= 1;
        }
    }

    /// Ends the allocation that starts here, and tells its size.
    pub(super) fn remove(&mut self, base: u64) -> Option<u64> {
        let at = self.allocations.binary_search_by_key(&base, |a| a.base).ok()?;
        let Allocation { data, name, written, .. } = self.allocations.remove(at);
        self.unwritten -= usize::from(written.is_some());
        let bytes = data.len() as u64;
        self.gone.insert(base, (bytes, name));
        Some(bytes)
    }

    /// No longer tells of what began here.
    pub(super) fn forget(&mut self, base: u64) {
        self.gone.remove(&base);
    }

    /// Base and size of the allocation that holds an address.
    pub(super) fn region(&self, address: u64) -> Option<(u64, u64)> {
        let at = self.allocations.partition_point(|a| a.base <= address).checked_sub(1)?;
        let found = self.allocations.get(at)?;
        let bytes = found.data.len() as u64;
        (address - found.base < bytes).then_some((found.base, bytes))
    }

    /// Bytes that the host may write, of constant memory too.
    pub(super) fn host_bytes(&mut self, address: u64, size: usize) -> Result<&mut [u8], Refused> {
        let at = self.allocations.partition_point(|a| a.base <= address).saturating_sub(1);
        if !self.holds(at, address, size) || self.allocations[at].kind == Kind::Freed {
            return Err(self.refuse(address, size, true));
        }
        if self.unwritten != 0 {
            self.mark_in(at, address, size);
        }
        let found = &mut self.allocations[at];
        let offset = (address - found.base) as usize;
        Ok(&mut found.data[offset..offset + size])
    }

    /// The allocation that starts here.
    pub(super) fn at(&self, base: u64) -> Option<&Allocation> {
        let at = self.allocations.binary_search_by_key(&base, |a| a.base).ok()?;
        self.allocations.get(at)
    }

    /// The allocation that starts here.
    pub(super) fn at_mut(&mut self, base: u64) -> Option<&mut Allocation> {
        let at = self.allocations.binary_search_by_key(&base, |a| a.base).ok()?;
        self.allocations.get_mut(at)
    }

    /// Marks a heap allocation as given back; tells whether there was one.
    pub(super) fn free(&mut self, base: u64) -> bool {
        match self.at_mut(base) {
            Some(allocation) if allocation.kind == Kind::Heap => {
                allocation.kind = Kind::Freed;
                true
            }
            _ => false,
        }
    }

    /// Buffers and global variables, for names in reports.
    pub(super) fn regions(&self) -> Vec<Region> {
        let listed = |kind| self.allocations.iter().filter(move |a| a.kind == kind);
        listed(Kind::Buffer)
            .chain(listed(Kind::Variable))
            .map(|a| Region {
                name: a.name.clone(),
                base: a.base,
                bytes: a.data.len() as u64,
                element: a.element,
                owner: Owner::Device,
            })
            .collect()
    }

    /// The bytes at an address.
    #[inline]
    pub(super) fn bytes(&mut self, address: u64, size: usize, write: bool) -> Result<&mut [u8], Refused> {
        if !self.holds(self.last, address, size) {
            self.last = self.allocations.partition_point(|a| a.base <= address).saturating_sub(1);
            if !self.holds(self.last, address, size) {
                return Err(self.refuse(address, size, write));
            }
        }
        let usable = match self.allocations[self.last].kind {
            Kind::Freed => false,
            Kind::Const => !write,
            _ => true,
        };
        if !usable {
            return Err(self.refuse(address, size, write));
        }
        if write && self.unwritten != 0 {
            self.mark_in(self.last, address, size);
        }
        let allocation = &mut self.allocations[self.last];
        let offset = (address - allocation.base) as usize;
        Ok(&mut allocation.data[offset..offset + size])
    }

    /// The allocation that holds an address, for reading and, unless it is constant, writing.
    #[inline]
    pub(super) fn around(&mut self, address: u64, write: bool) -> Option<(u64, &mut [u8])> {
        if !self.holds(self.last, address, 1) {
            self.last = self.allocations.partition_point(|a| a.base <= address).checked_sub(1)?;
        }
        let allocation = self.allocations.get_mut(self.last)?;
        match allocation.kind {
            Kind::Freed => None,
            Kind::Const if write => None,
            _ => Some((allocation.base, &mut allocation.data)),
        }
    }

    #[inline]
    fn holds(&self, at: usize, address: u64, size: usize) -> bool {
        self.allocations.get(at).is_some_and(|a| {
            address >= a.base && (address - a.base).saturating_add(size as u64) <= a.data.len() as u64
        })
    }

    fn refuse(&self, address: u64, size: usize, write: bool) -> Refused {
        let what = format!("{} of {size} bytes at {address:#x}", if write { "store" } else { "load" });
        if let Some((base, (bytes, name))) = self.gone.range(..=address).next_back()
            && address - base < *bytes
        {
            let detail = format!("{what}, in `{name}` ({bytes} bytes), which was freed");
            return Refused { kind: FaultKind::Freed, detail };
        }
        let at = self.allocations.partition_point(|a| a.base <= address);
        let below = at.checked_sub(1).and_then(|at| self.allocations.get(at));
        let above = self.allocations.get(at);
        let end = |a: &Allocation| a.base + a.data.len() as u64;
        if let Some(a) = below.filter(|a| address < end(a)) {
            let (kind, detail) = match a.kind {
                Kind::Freed => (FaultKind::Freed, format!("{what}, in memory that was freed")),
                Kind::Const if write => {
                    (FaultKind::Device, format!("{what}, in constant memory `{}`", a.name))
                }
                _ => {
                    let bytes = a.data.len();
                    let over = address + size as u64 - end(a);
                    (
                        FaultKind::OutOfBounds,
                        format!(
                            "{what}, its last {over} bytes behind the end of `{}` ({bytes} bytes)",
                            a.name
                        ),
                    )
                }
            };
            return Refused { kind, detail };
        }
        let after = below.map(|a| (address - end(a), a));
        let before = above.map(|a| (a.base - address, a));
        let near = match (after, before) {
            (Some((d, a)), Some((e, _))) if d <= e => Some((d, a, "behind the end of")),
            (_, Some((e, b))) => Some((e, b, "before the start of")),
            (Some((d, a)), None) => Some((d, a, "behind the end of")),
            (None, None) => None,
        };
        let detail = match near {
            Some((0, a, side)) => format!("{what}, right {side} `{}` ({} bytes)", a.name, a.data.len()),
            Some((distance, a, side)) => {
                format!("{what}, {distance} bytes {side} `{}` ({} bytes)", a.name, a.data.len())
            }
            None => format!("{what}, where no buffer is"),
        };
        Refused { kind: FaultKind::OutOfBounds, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_outside_name_the_nearest_buffer() {
        let mut memory = Memory::default();
        let a = memory.allocate("a", 4, vec![0; 256], Kind::Buffer, 1);
        let b = memory.allocate("b", 4, vec![0; 64], Kind::Buffer, 1);
        assert!(memory.bytes(a + 252, 4, true).is_ok());
        let mut detail = |address, size| memory.bytes(address, size, true).unwrap_err().detail;
        assert!(
            detail(a + 272, 4).ends_with("16 bytes behind the end of `a` (256 bytes)"),
            "{}",
            detail(a + 272, 4)
        );
        assert!(detail(b - 8, 4).ends_with("8 bytes before the start of `b` (64 bytes)"));
        assert!(detail(b + 60, 8).ends_with("its last 4 bytes behind the end of `b` (64 bytes)"));
    }
}
