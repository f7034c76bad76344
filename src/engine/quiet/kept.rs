//! Records that words refer to, and chains of those that read a word since it was written. Both are counted, and their
//! places are used again, so that what is kept is what can still conflict.

use rustc_hash::FxHashMap;

use super::Now;
use super::spans::Pattern;
use crate::abi::{Record, Unit, decode};
use crate::engine::clock::Time;
use crate::engine::shadow::{Entry, WarpKey};
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
    /// Of a store: when its lanes last accessed words of it before, as far as it stands for that.
    pub(super) own_time: Time,
    units: Vec<Unit>,
}

impl Kept {
    pub(super) fn record(&self) -> Option<Record<'_>> {
        decode(&self.units).ok().flatten()
    }

    /// The place of a record becomes that of another.
    #[inline]
    pub(super) fn set(&mut self, now: &Now<'_>, pattern: Pattern) {
        self.units.clear();
        self.units.extend_from_slice(now.record.units());
        (self.entry, self.class, self.element, self.pattern) = (*now.entry, now.class, now.element, pattern);
    }

    /// Whether the lanes are the same at each byte.
    pub(super) fn is_like(&self, mask: u32, pattern: &Pattern, record: &Record<'_>) -> bool {
        self.entry.mask == mask
            && self.pattern == *pattern
            && (pattern.stride.is_some() || self.record().is_some_and(|own| own.all_a() == record.all_a()))
    }
}

/// Things that are counted: the place of one that nothing refers to is used again.
#[derive(Debug)]
pub(super) struct Counted<T> {
    /// Each with how many refer to it.
    all: Vec<(u32, T)>,
    free: Vec<Id>,
}

impl<T> Default for Counted<T> {
    fn default() -> Self {
        Self { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Counted<T> {
    fn place(&mut self, id: Id) -> Option<&mut (u32, T)> {
        self.all.get_mut((id as usize).wrapping_sub(1))
    }

    /// Bytes of all, but for what they refer to.
    #[inline]
    fn own_bytes(&self) -> usize {
        self.all.len() * (size_of::<(u32, T)>() + size_of::<Id>())
    }

    pub(super) fn get(&self, id: Id) -> Option<&T> {
        self.all.get((id as usize).wrapping_sub(1)).map(|(_, thing)| thing)
    }

    /// The thing, if just so many refer to it.
    pub(super) fn only(&mut self, id: Id, count: u32) -> Option<&mut T> {
        self.place(id).filter(|(references, _)| *references == count).map(|(_, thing)| thing)
    }

    /// A place to use again, with what was there.
    fn again(&mut self) -> Option<(Id, &mut T)> {
        let id = self.free.pop()?;
        self.place(id).map(|(_, thing)| (id, thing))
    }

    /// Takes in a thing that nothing refers to yet.
    fn add(&mut self, thing: T) -> Id {
        if let Some((id, place)) = self.again() {
            *place = thing;
            return id;
        }
        self.all.push((0, thing));
        self.all.len() as Id
    }

    pub(super) fn hold(&mut self, id: Id, count: u32) {
        if let Some((references, _)) = self.place(id) {
            *references += count;
        }
    }

    /// Takes references away; tells whether none is left, and the thing is to be forgotten.
    pub(super) fn release(&mut self, id: Id, count: u32) -> bool {
        let Some((references, _)) = self.place(id) else { return false };
        *references = references.saturating_sub(count);
        let gone = *references == 0;
        if gone {
            self.free.push(id);
        }
        gone
    }
}

/// Counted records.
pub(super) type Records = Counted<Kept>;

/// About what the units of a record take.
const UNITS_BYTES: usize = 64;

impl Records {
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.own_bytes() + self.all.len() * UNITS_BYTES
    }

    /// Keeps a record that nothing refers to yet.
    pub(super) fn keep(&mut self, now: &Now<'_>, pattern: Pattern) -> Id {
        if let Some((id, kept)) = self.again() {
            // In place: this is done for each record.
            kept.set(now, pattern);
            kept.own_time = 0;
            return id;
        }
        let Now { entry, class, element, record, .. } = *now;
        self.add(Kept { entry: *entry, class, element, pattern, own_time: 0, units: record.units().to_vec() })
    }
}

impl Records {
    pub(super) fn set_own_time(&mut self, id: Id, time: Time) {
        if let Some((_, kept)) = self.place(id) {
            kept.own_time = time;
        }
    }
}

/// A reader, and those before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) record: Id,
    pub(super) before: Id,
    length: u32,
    /// Length at which readers that read again are looked for.
    limit: u32,
}

/// Chains up to this length are not searched for readers that read again.
const SHORT: u32 = 16;

/// Counted links.
#[derive(Debug, Default)]
pub(super) struct Links(Counted<Link>);

impl Links {
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.0.own_bytes()
    }

    /// The link, if just so many refer to it.
    pub(super) fn only(&mut self, id: Id, count: u32) -> Option<Link> {
        self.0.only(id, count).copied()
    }

    pub(super) fn get(&self, id: Id) -> Option<Link> {
        self.0.get(id).copied()
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
        self.0.hold(id, count);
    }

    /// Takes references away, and with the last one those to its record and to the reader before; tells whether it was the
    /// last.
    pub(super) fn release(&mut self, id: Id, count: u32, records: &mut Records) -> bool {
        let gone = self.0.release(id, count);
        let mut at = if gone { id } else { 0 };
        while let Some(Link { record, before, .. }) = self.get(at) {
            records.release(record, 1);
            at = if self.0.release(before, 1) { before } else { 0 };
        }
        gone
    }

    fn push(&mut self, record: Id, before: Id, limit: u32, records: &mut Records) -> Id {
        records.hold(record, 1);
        self.hold(before, 1);
        let length = self.get(before).map_or(0, |link| link.length) + 1;
        self.0.add(Link { record, before, length, limit })
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
        let mut latest: FxHashMap<WarpKey, &Kept> = FxHashMap::default();
        let mut readers = Vec::new();
        for link in self.chain(id) {
            let Some(kept) = records.get(link.record) else { continue };
            let again = latest.get(&kept.entry.of_warp()).is_some_and(|later| {
                later.entry.path.stands_for(kept.entry.path)
                    && later.record().is_some_and(|r| kept.is_like(later.entry.mask, &later.pattern, &r))
            });
            if !again {
                latest.entry(kept.entry.of_warp()).or_insert(kept);
                readers.push(link.record);
            }
        }
        readers.reverse();
        readers
    }
}
