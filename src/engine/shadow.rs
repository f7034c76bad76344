//! Shadow memory: for each 4-byte word, the accesses that later ones may conflict with, byte for byte.
//!
//! Accesses of one word are kept in groups of equal class, strength, scope and extent; a group holds one entry per warp
//! and time. An entry goes when an ordered access that conflicts with at least as much takes its place, so a strong
//! access never replaces a weak one, nor a wide scope a narrow one. Who observes a strong write is ordered after that
//! write, but not after what its thread did before it: so a strong write replaces no read, and of two strong stores of one
//! warp the earlier one is kept as well.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::clock::Time;
use super::quiet::{Now, Page, Pass, Pattern, Quiet, Spans, WORDS};
use super::stands::Stands;
use crate::abi::LANES;
use crate::finding::AccessClass;
use crate::instrument::SiteId;
use crate::isa::Scope;

/// Bytes of one cell.
pub(super) const WORD: u64 = 4;
const PAGE_BYTES: u64 = WORD * WORDS as u64;
/// About what finding a page takes.
const INDEX_BYTES: usize = 32;

/// How an access gets to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Path {
    /// As most do.
    Plain,
    /// The read-only path.
    ReadOnly,
    /// By a surface.
    Surface,
    /// A write of a range whose elements mean nothing.
    Range,
    /// A matrix: which lane touches which element is not known.
    Tile,
    /// An mbarrier object.
    Mbarrier,
    /// The same, when a copy completes.
    Completion,
    /// Asynchronous, in the generic proxy.
    Copy,
    /// Asynchronous, in the async proxy.
    Bulk,
}

impl Path {
    /// Whether program order and clocks say all about the order of such accesses.
    pub(super) fn is_direct(self) -> bool {
        self < Self::Mbarrier
    }

    /// Whether it is an operation on an mbarrier.
    pub(super) fn is_of_mbarrier(self) -> bool {
        matches!(self, Self::Mbarrier | Self::Completion)
    }

    pub(super) fn is_asynchronous(self) -> bool {
        self >= Self::Copy
    }

    /// Whether a read on this path conflicts with all that one on the other does: on the read-only path, also with writes that
    /// are ordered.
    pub(super) fn stands_for(self, other: Self) -> bool {
        self == Self::ReadOnly || other != Self::ReadOnly
    }

    /// Whether its elements say nothing of what was accessed at once.
    pub(super) fn is_range(self) -> bool {
        matches!(self, Self::Range | Self::Tile | Self::Copy | Self::Bulk)
    }
}

/// What entries of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) class: AccessClass,
    /// `None` is weak.
    pub(super) scope: Option<Scope>,
    pub(super) path: Path,
    /// First byte of the element relative to the word; negative when it starts in an earlier word.
    pub(super) start: i8,
    pub(super) bytes: u8,
}

impl Key {
    pub(super) fn is_strong(&self) -> bool {
        self.scope.is_some()
    }

    pub(super) fn writes(&self) -> bool {
        self.class != AccessClass::Read
    }

    fn end(&self) -> i16 {
        i16::from(self.start) + i16::from(self.bytes)
    }

    /// Whether it is a read by a surface, which need not see a write of the other kind although that comes before.
    pub(super) fn may_be_stale(&self, earlier: &Self) -> bool {
        self.path == Path::Surface && !self.writes() && earlier.path == Path::Surface && earlier.writes()
    }

    /// Whether any byte is common.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        i16::from(self.start) < other.end() && i16::from(other.start) < self.end()
    }

    /// Whether the bytes are the same.
    pub(super) fn same_bytes(&self, other: &Self) -> bool {
        self.start == other.start && self.bytes == other.bytes
    }

    /// Whether an ordered access of this kind may take the place of one of the other kind: whatever conflicts with the
    /// other conflicts with this.
    fn replaces(&self, other: &Self) -> bool {
        let bytes = self.start <= other.start && self.end() >= other.end();
        let writes = self.writes() || !other.writes();
        let strength = match (self.scope, other.scope) {
            (None, _) => true,
            (Some(_), None) => false,
            // With other bytes it would no longer be morally strong with the same accesses.
            (Some(own), Some(theirs)) => own <= theirs && self.same_bytes(other),
        };
        // What completes an asynchronous read says nothing of the reads that its thread knew of.
        let reads = self.writes() || !self.path.is_asynchronous() || other.path.is_asynchronous();
        // An atomic conflicts with no morally strong access, as any strong one; its class only names it.
        bytes && writes && strength && self.path.stands_for(other.path) && reads
    }
}

/// Lanes of a warp that accessed the word at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) launch: u32,
    pub(super) block: u32,
    pub(super) warp: u8,
    pub(super) mask: u32,
    pub(super) time: Time,
    pub(super) site: SiteId,
    /// Order among the writes of its strong location; the latest, when lanes of one time are one entry. Of an asynchronous
    /// access, its number among `Copies`.
    pub(super) order: u32,
    /// Number of the record, to tell lanes of one execution.
    pub(super) record: u64,
    pub(super) value: Option<u64>,
    pub(super) interval: u32,
    /// All lanes of the record were at one address, as with a flag.
    pub(super) single: bool,
    /// Of a store: what else it stands for.
    pub(super) stands: Stands,
    pub(super) path: Path,
}

impl Entry {
    /// Launch, block and warp.
    pub(super) fn of_warp(&self) -> WarpKey {
        (self.launch, self.block, self.warp)
    }

    pub(super) fn same_warp(&self, other: &Self) -> bool {
        self.of_warp() == other.of_warp()
    }
}

/// Launch, block and warp.
pub(super) type WarpKey = (u32, u32, u8);

/// Beyond this many entries a group finds a warp by hashing.
const SCAN: usize = 16;
/// Unordered weak writers kept for one word. More than one is a finding, but perhaps only a warning, so that losing one is
/// said (`Cell::add`).
const WEAK_WRITERS: usize = 1024;

/// Warp to a place in the group.
type WarpIndex = FxHashMap<WarpKey, u32>;

/// Entries that are alike.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) key: Key,
    /// Strong stores that each were the last of their warp but one.
    pub(super) last_but_one: bool,
    pub(super) entries: SmallVec<[Entry; 1]>,
    /// Warp to its latest entry, once there are many.
    index: Option<Box<WarpIndex>>,
}

impl Group {
    fn new(key: Key, last_but_one: bool) -> Self {
        Self { key, last_but_one, entries: SmallVec::new(), index: None }
    }

    fn find(&self, entry: &Entry) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(&entry.of_warp()).map(|at| *at as usize),
            None => self.entries.iter().rposition(|earlier| earlier.same_warp(entry)),
        }
    }

    /// Whether one of the latest entries stands for a read as well: those lanes have read by then, or others did by the same
    /// instruction, and they are added.
    fn has_read(&mut self, entry: &Entry) -> bool {
        // Copies of one warp are told apart by the group or phase they complete with.
        let of_warp = |e: &&mut Entry| {
            e.same_warp(entry)
                && e.time == entry.time
                && (!entry.path.is_asynchronous() || e.order == entry.order)
        };
        for same in self.entries.iter_mut().rev().take(LANES).filter(of_warp) {
            if same.site == entry.site || entry.mask & !same.mask == 0 {
                same.mask |= entry.mask;
                return true;
            }
        }
        false
    }

    /// Adds an entry; tells whether another had to go for it.
    fn push(&mut self, entry: Entry) -> bool {
        let full = self.key.writes() && !self.key.is_strong() && self.entries.len() >= WEAK_WRITERS;
        if full {
            self.entries.remove(0);
            self.index = None;
        }
        self.entries.push(entry);
        let at = self.entries.len() - 1;
        if let Some(index) = &mut self.index {
            index.insert(entry.of_warp(), at as u32);
        } else if self.entries.len() > SCAN {
            self.reindex();
        }
        full
    }

    fn reindex(&mut self) {
        self.index = (self.entries.len() > SCAN).then(|| {
            let entries = self.entries.iter().enumerate();
            Box::new(entries.map(|(at, e)| (e.of_warp(), at as u32)).collect())
        });
    }

    /// Drops lanes; `ordered` gives those of an entry that come before the access that replaces them.
    fn retire(&mut self, mut ordered: impl FnMut(&Entry) -> u32) {
        let before = self.entries.len();
        self.entries.retain(|entry| {
            entry.mask &= !ordered(entry);
            entry.mask != 0
        });
        if self.entries.len() != before {
            self.reindex();
        }
    }
}

/// The accesses of one word.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub(super) groups: SmallVec<[Group; 2]>,
}

impl Cell {
    /// Bytes of what does not lie in the cell itself.
    pub(super) fn apart(&self) -> usize {
        let of = |group: &Group| {
            let entries =
                if group.entries.spilled() { group.entries.capacity() * size_of::<Entry>() } else { 0 };
            entries + group.index.as_ref().map_or(0, |index| index.capacity() * size_of::<(WarpKey, u32)>())
        };
        let groups = if self.groups.spilled() { self.groups.capacity() * size_of::<Group>() } else { 0 };
        groups + self.groups.iter().map(of).sum::<usize>()
    }

    /// Adds an access. `ordered` gives the lanes of an entry that precede it in base causality; `open` has the groups, a bit
    /// each, of which it was found that none do. Tells whether an entry was lost that still mattered.
    pub(super) fn add(
        &mut self,
        key: Key,
        mut entry: Entry,
        open: u32,
        mut ordered: impl FnMut(&Entry) -> u32,
    ) -> bool {
        let mut own = None;
        // The own warp's last entry in that group, once it was looked for.
        let mut last_own = None;
        let mut store_before = None;
        let writes_strongly = key.writes() && key.is_strong();
        for (at, group) in self.groups.iter_mut().enumerate() {
            if group.key == key && !group.last_but_one {
                own = Some(at);
            }
            let stays = writes_strongly && group.key.is_strong() && own != Some(at);
            if stays || !key.replaces(&group.key) {
                continue;
            }
            // Reads, and strong operations on one word, may come from every warp of the grid; among them only the own
            // warp's last entry is worth looking for.
            let many = (!group.key.writes() && !key.writes()) || (group.key.is_strong() && key.is_strong());
            if !many {
                if at < u32::BITS as usize && open >> at & 1 != 0 {
                    continue;
                }
                let stores = key.class == AccessClass::Write;
                let replaced = group.key;
                group.retire(|earlier| {
                    let lanes = ordered(earlier) & earlier.mask;
                    if stores && lanes != 0 && earlier.launch == entry.launch {
                        let own = earlier.same_warp(&entry);
                        entry.stands.replace(entry.value, &replaced, earlier, own);
                    }
                    lanes
                });
            } else {
                let found = group.find(&entry);
                if group.key == key {
                    last_own = Some(found);
                }
                let Some(last) = found.and_then(|at| group.entries.get_mut(at)) else { continue };
                if last.time == entry.time {
                    continue;
                }
                let before = *last;
                last.mask &= !ordered(last);
                if key.class == AccessClass::Write && before.mask & !last.mask != 0 {
                    entry.stands.replace(entry.value, &group.key, &before, true);
                    store_before = Some(before);
                }
                if last.mask == 0 {
                    *last = Entry { mask: 0, ..entry };
                }
            }
        }
        if let Some(before) = store_before {
            self.keep_before(key, before);
        }
        let at = match own {
            Some(at) => at,
            None => {
                self.groups.retain(|group| !group.entries.is_empty());
                self.groups.push(Group::new(key, false));
                self.groups.len() - 1
            }
        };
        let Some(group) = self.groups.get_mut(at) else { return false };
        let last = last_own.unwrap_or_else(|| group.find(&entry)).and_then(|at| group.entries.get_mut(at));
        if let Some(same) = last
            && same.time == entry.time
            && (same.mask == 0 || same.site == entry.site)
            && (!key.path.is_asynchronous() || same.order == entry.order)
        {
            // Lanes of one time are one entry; a second value makes the value unknown.
            if same.mask != 0 && same.value != entry.value {
                same.value = None;
            }
            if same.mask == 0 {
                *same = entry;
            } else {
                same.mask |= entry.mask;
                same.stands = same.stands.and(entry.stands);
                same.order = same.order.max(entry.order);
                same.record = entry.record;
            }
            return false;
        }
        if !key.writes() && group.has_read(&entry) {
            return false;
        }
        group.push(entry)
    }

    /// Keeps the last store of a warp but one.
    fn keep_before(&mut self, key: Key, before: Entry) {
        let at = self.groups.iter().position(|group| group.last_but_one && group.key == key);
        let at = at.unwrap_or_else(|| {
            self.groups.push(Group::new(key, true));
            self.groups.len() - 1
        });
        let Some(group) = self.groups.get_mut(at) else { return };
        match group.find(&before).and_then(|at| group.entries.get_mut(at)) {
            Some(same) => *same = before,
            None => {
                let _ = group.push(before);
            }
        }
    }
}

/// A page of memory.
#[derive(Debug)]
struct Leaf {
    /// The first word.
    base: u64,
    quiet: Page,
    /// Those of words that have spoken up.
    cells: Option<Box<[Cell]>>,
}

/// What is known of memory, by address: pages are made when first touched.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    index: FxHashMap<u64, u32>,
    leaves: Vec<Leaf>,
    /// The last page found: its number and place.
    last: Option<(u64, u32)>,
    quiet: Quiet,
    /// Pages with cells.
    loud: usize,
    /// Bytes of entries that do not lie in their cells.
    apart: usize,
}

/// Bytes of the cells of a page.
const CELLS_BYTES: usize = WORDS * size_of::<Cell>();

impl Shadow {
    /// About how much memory it takes.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.leaves.len() * (size_of::<Leaf>() + INDEX_BYTES)
            + self.loud * CELLS_BYTES
            + self.apart
            + self.quiet.bytes()
    }

    /// Entries of a cell have come to lie apart, or no longer do.
    pub(super) fn grew(&mut self, before: usize, after: usize) {
        self.apart = (self.apart + after).saturating_sub(before);
    }

    /// The place of the page that holds this byte.
    #[inline]
    fn find(&mut self, address: u64) -> usize {
        let page = address / PAGE_BYTES;
        match self.last {
            Some((last, at)) if last == page => at as usize,
            _ => self.find_page(page),
        }
    }

    #[inline(never)]
    fn find_page(&mut self, page: u64) -> usize {
        let at = *self.index.entry(page).or_insert_with(|| {
            self.leaves.push(Leaf { base: page * WORDS as u64, quiet: Page::new(), cells: None });
            (self.leaves.len() - 1) as u32
        });
        self.last = Some((page, at));
        at as usize
    }

    /// The cell that holds this byte. Its word speaks up.
    pub(super) fn cell(&mut self, address: u64) -> &mut Cell {
        let at = self.find(address);
        let Self { leaves, quiet, loud, .. } = self;
        let leaf = &mut leaves[at];
        let index = (address / WORD) as usize % WORDS;
        let cells = leaf.cells.get_or_insert_with(|| {
            *loud += 1;
            (0..WORDS).map(|_| Cell::default()).collect()
        });
        if !leaf.quiet.is_loud(index) {
            cells[index] = quiet.speak(&mut leaf.quiet, address / WORD);
        }
        &mut cells[index]
    }

    /// The cell that holds this byte, if its word has spoken up.
    pub(super) fn loud_cell(&mut self, address: u64) -> Option<&mut Cell> {
        let at = self.find(address);
        let leaf = &mut self.leaves[at];
        let index = (address / WORD) as usize % WORDS;
        let loud = leaf.quiet.is_loud(index);
        leaf.cells.as_mut().filter(|_| loud).map(|cells| &mut cells[index])
    }

    /// Takes a weak access to all quiet words that it touches. Tells whether others are left, which have cells; `None` when
    /// all are left, and have to speak up.
    #[inline]
    pub(super) fn access_quiet(&mut self, now: &Now<'_>) -> Option<bool> {
        let pattern = Pattern::of(now.record, now.bytes);
        if let Some(line) = pattern.line().filter(|_| now.entry.mask == u32::MAX) {
            let at = self.find(line);
            let Leaf { quiet, base, .. } = &mut self.leaves[at];
            let word = (line / WORD - *base) as usize;
            if quiet.line(word, WORDS).is_some_and(|line| self.quiet.again(now, pattern, line)) {
                return Some(false);
            }
        }
        let (mut pass, spans) = self.quiet.begin(now, pattern)?;
        match spans {
            Spans::One(start, end) => self.span(&mut pass, start, end),
            Spans::Apart(first, step, lanes) => {
                for start in (0..lanes).map(|lane| first + lane * step) {
                    self.span(&mut pass, start, start + u64::from(now.bytes));
                }
            }
            Spans::Listed => {
                let mut at = 0;
                while let Some((start, end)) = self.quiet.listed(at) {
                    self.span(&mut pass, start, end);
                    at += 1;
                }
            }
        }
        let (loud, was_loud) = self.quiet.end(&pass);
        for word in &loud {
            let _ = self.cell(word * WORD);
        }
        Some(was_loud || !loud.is_empty())
    }

    #[inline]
    fn span(&mut self, pass: &mut Pass<'_>, start: u64, end: u64) {
        let mut from = start;
        while from < end {
            // The last page of all ends where addresses do.
            let to = end.min((from / PAGE_BYTES + 1).saturating_mul(PAGE_BYTES));
            let at = self.find(from);
            let Self { leaves, quiet, .. } = self;
            let leaf = &mut leaves[at];
            quiet.span(pass, &mut leaf.quiet, leaf.base, from, to);
            from = to;
        }
    }

    /// All cells, with their addresses, in no particular order. Quiet words have none.
    pub(super) fn cells(&self) -> impl Iterator<Item = (u64, &Cell)> {
        self.leaves.iter().flat_map(|leaf| {
            let cells = leaf.cells.iter().flat_map(|cells| cells.iter().enumerate());
            cells.map(move |(index, cell)| ((leaf.base + index as u64) * WORD, cell))
        })
    }

    /// What is known of the words from `start` to `end`, with their addresses; but for quiet ones that no launch has accessed
    /// which is asked for.
    pub(super) fn look(
        &self,
        start: u64,
        end: u64,
        asked: impl Fn(u32) -> bool,
        mut see: impl FnMut(u64, &Cell),
    ) {
        // Words side by side mostly refer to the same.
        let mut left_out = None;
        let pages = start / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
        let known: Vec<u64> = if pages.end - pages.start <= self.index.len() as u64 {
            pages.collect()
        } else {
            // Of a large range few pages may be known.
            let mut known: Vec<_> = self.index.keys().copied().filter(|page| pages.contains(page)).collect();
            known.sort_unstable();
            known
        };
        for page in known {
            let Some(leaf) = self.index.get(&page).and_then(|at| self.leaves.get(*at as usize)) else {
                continue;
            };
            let first = (start / WORD).max(leaf.base) - leaf.base;
            let last = (end.div_ceil(WORD) - leaf.base).min(WORDS as u64);
            for index in first as usize..last as usize {
                let address = (leaf.base + index as u64) * WORD;
                if leaf.quiet.is_loud(index) {
                    if let Some(cells) = &leaf.cells {
                        see(address, &cells[index]);
                    }
                    continue;
                }
                let word = leaf.quiet.word(index);
                if left_out == Some(word) {
                    continue;
                }
                if self.quiet.is_of(word, &asked) {
                    see(address, &self.quiet.look(&leaf.quiet, address / WORD));
                } else {
                    left_out = Some(word);
                }
            }
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
