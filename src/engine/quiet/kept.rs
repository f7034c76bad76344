//! Records that words refer to, and chains of those that read a word since it was written. Both are counted, and their
//! places are used again, so that what is kept is what can still conflict.

use rustc_hash::FxHashMap;

use super::spans::Pattern;
use crate::abi::{Record, Unit, decode};
use crate::engine::shadow::{Entry, Path};
use crate::finding::AccessClass;

/// The number of a record or a link; 0 is none.
pub(super) type Id = u32;

/// The access of one record.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// Its mask is that of the whole record, and it has no value: that is in the record.
    pub(super) entry: Entry,
    pub(super) class: AccessClass,
    pub(super) element: u8,
    pub(super) pattern: Pattern,
    units: Vec<Unit>,
    references: u32,
}

impl Kept {
    pub(super) fn record(&self) -> Option<Record<'_>> {
        decode(&self.units).ok().flatten()
    }

    pub(super) fn of_warp(&self, entry: &Entry) -> bool {
        let own = &self.entry;
        (own.launch, own.block, own.warp) == (entry.launch, entry.block, entry.warp)
    }

    /// Whether the lanes are the same at each byte.
    pub(super) fn is_like(&self, mask: u32, pattern: &Pattern, record: &Record<'_>) -> bool {
        self.entry.mask == mask
            && self.pattern == *pattern
            && (pattern.stride.is_some() || self.record().is_some_and(|own| own.all_a() == record.all_a()))
    }
}

/// Counted records.
#[derive(Debug, Default)]
pub(super) struct Records {
    all: Vec<Kept>,
    free: Vec<Id>,
}

impl Records {
    pub(super) fn get(&self, id: Id) -> Option<&Kept> {
        self.all.get((id as usize).wrapping_sub(1))
    }

    fn get_mut(&mut self, id: Id) -> Option<&mut Kept> {
        self.all.get_mut((id as usize).wrapping_sub(1))
    }

    /// Keeps a record that nothing refers to yet.
    pub(super) fn add(
        &mut self,
        entry: Entry,
        class: AccessClass,
        element: u8,
        pattern: Pattern,
        record: &Record<'_>,
    ) -> Id {
        if let Some(id) = self.free.pop()
            && let Some(kept) = self.get_mut(id)
        {
            kept.units.clear();
            kept.units.extend_from_slice(record.units());
            (kept.entry, kept.class, kept.element, kept.pattern) = (entry, class, element, pattern);
            kept.references = 0;
            return id;
        }
        let units = record.units().to_vec();
        self.all.push(Kept { entry, class, element, pattern, units, references: 0 });
        self.all.len() as Id
    }

    pub(super) fn hold(&mut self, id: Id, count: u32) {
        if let Some(kept) = self.get_mut(id) {
            kept.references += count;
        }
    }

    /// Takes references away; what nothing refers to is forgotten.
    pub(super) fn release(&mut self, id: Id, count: u32) {
        if let Some(kept) = self.get_mut(id) {
            kept.references = kept.references.saturating_sub(count);
            if kept.references == 0 {
                self.free.push(id);
            }
        }
    }
}

/// A reader, and those before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) record: Id,
    pub(super) before: Id,
    references: u32,
    length: u32,
    /// Length at which readers that read again are looked for.
    limit: u32,
}

/// Chains up to this length are not searched for readers that read again.
const SHORT: u32 = 16;

/// Counted links.
#[derive(Debug, Default)]
pub(super) struct Links {
    all: Vec<Link>,
    free: Vec<Id>,
}

impl Links {
    pub(super) fn get(&self, id: Id) -> Option<Link> {
        self.all.get((id as usize).wrapping_sub(1)).copied()
    }

    /// A chain from its last reader on back.
    pub(super) fn chain(&self, id: Id) -> impl Iterator<Item = Link> {
        let mut at = id;
        std::iter::from_fn(move || {
            let link = self.get(at)?;
            at = link.before;
            Some(link)
        })
    }

    pub(super) fn hold(&mut self, id: Id, count: u32) {
        if let Some(link) = self.all.get_mut((id as usize).wrapping_sub(1)) {
            link.references += count;
        }
    }

    pub(super) fn is_held(&self, id: Id) -> bool {
        self.all.get((id as usize).wrapping_sub(1)).is_some_and(|link| link.references != 0)
    }

    pub(super) fn release(&mut self, id: Id, count: u32, records: &mut Records) {
        let (mut id, mut count) = (id, count);
        while let Some(link) = self.all.get_mut((id as usize).wrapping_sub(1)) {
            link.references = link.references.saturating_sub(count);
            if link.references != 0 {
                return;
            }
            let Link { record, before, .. } = *link;
            self.free.push(id);
            records.release(record, 1);
            (id, count) = (before, 1);
        }
    }

    fn push(&mut self, record: Id, before: Id, limit: u32, records: &mut Records) -> Id {
        records.hold(record, 1);
        self.hold(before, 1);
        let length = self.get(before).map_or(0, |link| link.length) + 1;
        let link = Link { record, before, references: 0, length, limit };
        match self.free.pop() {
            Some(id) => {
                if let Some(place) = self.all.get_mut((id as usize).wrapping_sub(1)) {
                    *place = link;
                }
                id
            }
            None => {
                self.all.push(link);
                self.all.len() as Id
            }
        }
    }

    /// A chain with one more reader; the old one is left to those who refer to it.
    pub(super) fn append(&mut self, record: Id, before: Id, records: &mut Records) -> Id {
        let last = self.get(before);
        let limit = last.map_or(SHORT, |link| link.limit);
        if last.is_none_or(|link| link.length < limit) {
            return self.push(record, before, limit, records);
        }
        let readers = self.readers(before, records);
        let limit = SHORT.max(2 * readers.len() as u32);
        let mut chain = 0;
        for reader in readers {
            chain = self.push(reader, chain, limit, records);
        }
        self.push(record, chain, limit, records)
    }

    /// The records of a chain, oldest first, without those that the same lanes have read again since.
    pub(super) fn readers(&self, id: Id, records: &Records) -> Vec<Id> {
        let mut latest: FxHashMap<(u32, u32, u8), Id> = FxHashMap::default();
        let mut readers = Vec::new();
        for link in self.chain(id) {
            let Some(kept) = records.get(link.record) else { continue };
            let warp = (kept.entry.launch, kept.entry.block, kept.entry.warp);
            let again = latest.get(&warp).and_then(|later| records.get(*later)).is_some_and(|later| {
                later.record().is_some_and(|record| {
                    let path = later.entry.path == Path::ReadOnly || kept.entry.path != Path::ReadOnly;
                    path && kept.is_like(later.entry.mask, &later.pattern, &record)
                })
            });
            if !again {
                latest.entry(warp).or_insert(link.record);
                readers.push(link.record);
            }
        }
        readers.reverse();
        readers
    }
}
