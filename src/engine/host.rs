//! Operations that the host gives to a device besides launches: copies, memsets, asynchronous frees. Each accesses ranges of
//! memory as a whole. They are kept as ranges, apart from the shadow: there are few, and large ones.

use serde::{Deserialize, Serialize};

use super::collect::Conflict;
use super::conflict::entry_witness;
use super::shadow::{Entry, Key, WORD};
use super::{Core, Launch};
use crate::abi::{Record, Tagged};
use crate::diag::Severity;
use crate::finding::{AccessClass, Kind, Missing, Relation, Rule, ThreadId, Witness};
use crate::instrument::SiteId;
use crate::isa::Access;

/// An access of an operation of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAccess {
    /// Read or write.
    pub class: AccessClass,
    /// The first byte.
    pub address: u64,
    /// How many.
    pub bytes: u64,
}

impl HostAccess {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes)
    }
}

/// Such an access, and whose it is.
#[derive(Clone, Copy, Debug)]
struct Kept {
    access: HostAccess,
    index: u32,
    site: SiteId,
}

/// What the host has done.
#[derive(Debug, Default)]
pub(super) struct Host {
    kept: Vec<Kept>,
    /// Of those, what may not have ended when the current launch starts.
    open: Vec<Kept>,
}

impl Host {
    pub(super) fn begin(&mut self, launch: Option<&Launch>) {
        self.open.clear();
        let Some(launch) = launch.filter(|_| !self.kept.is_empty()) else { return };
        self.kept.retain(|kept| kept.index >= launch.oldest);
        self.open.extend(self.kept.iter().filter(|kept| !launch.follows(kept.index)));
    }

    /// Whether a record may touch what an operation does that is unordered with it.
    #[inline]
    pub(super) fn meets(&self, record: &Record<'_>, access: &Access) -> bool {
        !self.open.is_empty() && self.touches(record, access)
    }

    #[cold]
    fn touches(&self, record: &Record<'_>, access: &Access) -> bool {
        let (all, lanes) = record.all_a();
        let addresses = || all.iter().take(lanes).copied().filter(|at| !Tagged(*at).is_shared());
        let (Some(low), Some(high)) = (addresses().min(), addresses().max()) else { return false };
        let end = high.saturating_add(access.bytes().into());
        self.open.iter().any(|kept| kept.access.address < end && low < kept.access.end())
    }
}

/// The classes of a conflict, if it is one.
fn kind(a: AccessClass, b: AccessClass) -> Option<Kind> {
    let conflict = a != AccessClass::Read || b != AccessClass::Read;
    conflict.then(|| Kind::of(a, b))
}

/// The bytes that an operation and another access share stand for the operation.
fn witness(kept: &Kept, from: u64, to: u64) -> Witness {
    Witness {
        site: kept.site,
        thread: ThreadId { launch: kept.index, block: 0, warp: 0, lane: 0 },
        class: kept.access.class,
        address: from,
        bytes: u8::try_from(to.saturating_sub(from)).unwrap_or(u8::MAX),
        value: None,
        interval: 0,
    }
}

fn conflict(kind: Kind, relation: Relation, witnesses: [Witness; 2]) -> Conflict {
    Conflict {
        rule: Rule::R006,
        severity: Severity::Error,
        kind: Some(kind),
        relation,
        witnesses,
        missing: Missing::StreamOrder,
        same_value: false,
        same_instruction: false,
    }
}

impl Core {
    /// An access of the current launch against what the host does meanwhile.
    #[inline]
    pub(super) fn against_host(&mut self, word: u64, key: Key, now: &Entry) {
        if !self.host.open.is_empty() && !Tagged(word).is_shared() {
            self.against_open(word, key, now);
        }
    }

    #[cold]
    fn against_open(&mut self, word: u64, key: Key, now: &Entry) {
        let start = word.wrapping_add_signed(key.start.into());
        let end = start.saturating_add(key.bytes.into());
        for kept in &self.host.open {
            let (from, to) = (start.max(kept.access.address), end.min(kept.access.end()));
            // The word with the first common byte reports.
            if from >= to || from / WORD != word / WORD {
                continue;
            }
            let Some(kind) = kind(kept.access.class, key.class) else { continue };
            let witnesses = [witness(kept, from, to), entry_witness(now, key, word)];
            self.collector.add((word, 0), conflict(kind, Relation::Host, witnesses));
        }
    }

    /// What an operation does, against launches and other operations; later ones will meet it.
    pub(super) fn host_operation(&mut self, site: SiteId, accesses: &[HostAccess]) {
        let index = self.current;
        for access in accesses.iter().filter(|access| access.bytes > 0) {
            let now = Kept { access: *access, index, site };
            for kept in &self.host.open {
                let (from, to) =
                    (access.address.max(kept.access.address), access.end().min(kept.access.end()));
                let Some(kind) = kind(kept.access.class, access.class).filter(|_| from < to) else {
                    continue;
                };
                let witnesses = [witness(kept, from, to), witness(&now, from, to)];
                self.collector.add((from, 0), conflict(kind, Relation::Host, witnesses));
            }
            self.against_launches(&now);
        }
        let kept = accesses.iter().filter(|access| access.bytes > 0);
        self.host.kept.extend(kept.map(|access| Kept { access: *access, index, site }));
    }

    fn against_launches(&mut self, now: &Kept) {
        let Some(launch) = self.launches.get(self.current as usize) else { return };
        let open = |index: &u32| !self.host.open.iter().any(|kept| kept.index == *index);
        if !launch.open.iter().any(open) {
            return;
        }
        let collector = &mut self.collector;
        let (start, end) = (now.access.address, now.access.end());
        let is_open = |earlier: u32| !launch.follows(earlier);
        self.global.look(start, end, is_open, |word, cell| {
            for group in &cell.groups {
                let Some(kind) = kind(group.key.class, now.access.class) else { continue };
                let begin = word.wrapping_add_signed(group.key.start.into());
                let (from, to) = (begin.max(start), begin.saturating_add(group.key.bytes.into()).min(end));
                if from >= to || from / WORD != word / WORD {
                    continue;
                }
                for entry in group.entries.iter().filter(|e| e.mask != 0 && is_open(e.launch)) {
                    let witnesses = [entry_witness(entry, group.key, word), witness(now, from, to)];
                    collector.add((word, 0), conflict(kind, Relation::Host, witnesses));
                }
            }
        });
    }
}
