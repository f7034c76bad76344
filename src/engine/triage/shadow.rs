//! Lines by their addresses, of a block's shared memory and of global memory.

use rustc_hash::FxHashMap;

use super::Doubt;
use super::cell::{Class, Now};
use super::line::{Line, Pattern, Pool};
use crate::abi::MOST_SHARED;

/// Bytes of a line, as a power of two.
const LINE: u32 = 7;
/// Lines of a page, likewise. Each worker has pages of its own, so they are small.
const PAGE: u32 = 3;
/// Bytes of pages that are kept for the next launch.
const SPARE: usize = 64 << 20;
/// Pages whose places are remembered.
const RECENT: usize = 1024;

/// Lanes that touch a range of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Over {
    One(u8),
    /// All of them all of it.
    Several,
    /// One after the other from this lane on, each `1 << log` bytes.
    Row {
        lane: u8,
        log: u8,
    },
}

impl Over {
    /// How they lie in a line, of a range that begins at `at`.
    #[inline]
    fn in_line(self, at: u64, line: u64) -> Pattern {
        match self {
            Self::One(lane) => Pattern::One(lane),
            Self::Several => Pattern::Several,
            Self::Row { lane, log } => {
                let first = (at >> log).wrapping_sub(line << LINE >> log).wrapping_sub(lane.into());
                let log = log.cast_signed() - 2;
                let elements = if log < 0 { 127 } else { 31 };
                Pattern::Row { log, shift: first as u8 & elements }
            }
        }
    }
}

/// The words of a line between two bytes, the second one included.
#[inline]
fn words(first: u64, last: u64) -> u32 {
    let (from, to) = (first >> 2 & 31, last >> 2 & 31);
    u32::MAX << from & u32::MAX >> (31 - to)
}

/// Calls with each line of a range, its words, and how lanes lie there.
#[inline]
fn each_line(
    at: u64,
    bytes: u64,
    over: Over,
    mut access: impl FnMut(u64, u32, Pattern) -> Result<(), Doubt>,
) -> Result<(), Doubt> {
    let last = at.checked_add(bytes.max(1) - 1).ok_or(Doubt::Damage)?;
    if at >> LINE == last >> LINE {
        return access(at >> LINE, words(at, last), over.in_line(at, at >> LINE));
    }
    each_of_several(at, last, over, access)
}

#[inline(never)]
fn each_of_several(
    at: u64,
    last: u64,
    over: Over,
    mut access: impl FnMut(u64, u32, Pattern) -> Result<(), Doubt>,
) -> Result<(), Doubt> {
    let mut from = at;
    loop {
        let line = from >> LINE;
        let end = ((line + 1) << LINE) - 1;
        access(line, words(from, last.min(end)), over.in_line(at, line))?;
        if end >= last {
            return Ok(());
        }
        from = end + 1;
    }
}

/// The shared memory of a block.
#[derive(Debug, Default)]
pub(super) struct Shared(Vec<Line>);

impl Shared {
    #[inline]
    pub(super) fn access(
        &mut self,
        now: &Now,
        at: u64,
        bytes: u64,
        over: Over,
        pool: &mut Pool,
    ) -> Result<(), Doubt> {
        if at >= MOST_SHARED.into() || now.class == Class::NonCoherent {
            return Err(Doubt::Damage);
        }
        each_line(at, bytes, over, |line, words, pattern| {
            let at = line as usize;
            if at >= self.0.len() {
                self.0.resize(at + 1, Line::default());
            }
            self.0.get_mut(at).ok_or(Doubt::Damage)?.access(now, words, pattern, pool)
        })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    lines: [Line; 1 << PAGE],
    written: bool,
}

/// Pages of one piece of memory. Workers that each ask for single pages wait for each other in the allocator.
const CHUNK: usize = 1024;

/// Pages by their places. Their memory is used again.
#[derive(Debug, Default)]
struct Pages {
    chunks: Vec<Vec<Page>>,
    count: usize,
}

impl Pages {
    fn get(&self, place: u32) -> Option<&Page> {
        self.chunks.get(place as usize / CHUNK)?.get(place as usize % CHUNK)
    }

    #[inline]
    fn get_mut(&mut self, place: u32) -> Option<&mut Page> {
        self.chunks.get_mut(place as usize / CHUNK)?.get_mut(place as usize % CHUNK)
    }

    /// Has the memory for so many chunks of pages at hand.
    fn warm(&mut self, chunks: usize) {
        self.chunks.resize_with(chunks, || vec![Page::default(); CHUNK]);
    }

    /// The place of a new page.
    fn add(&mut self) -> u32 {
        let place = self.count;
        self.count += 1;
        if place / CHUNK == self.chunks.len() {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        if let Some(chunk) = self.chunks.get_mut(place / CHUNK) {
            match chunk.get_mut(place % CHUNK) {
                Some(page) => *page = Page::default(),
                None => chunk.push(Page::default()),
            }
        }
        place as u32
    }
}

/// Global memory, as one worker has seen it.
#[derive(Debug)]
pub(super) struct Global {
    index: FxHashMap<u64, u32>,
    pages: Pages,
    recent: Box<[(u64, u32); RECENT]>,
    /// Bytes of pages and cells that it takes at most. Beyond, the launch is left to the engine.
    room: usize,
}

impl Global {
    pub(super) fn new(room: usize) -> Self {
        Self {
            index: FxHashMap::default(),
            pages: Pages::default(),
            recent: Box::new([(u64::MAX, 0); RECENT]),
            room,
        }
    }
}

impl Global {
    #[inline]
    pub(super) fn access(
        &mut self,
        now: &Now,
        at: u64,
        bytes: u64,
        over: Over,
        pool: &mut Pool,
    ) -> Result<(), Doubt> {
        each_line(at, bytes, over, |line, words, pattern| {
            let place = self.place(line >> PAGE, pool)?;
            let page = self.pages.get_mut(place).ok_or(Doubt::Damage)?;
            page.written |= now.class.writes();
            page.lines[line as usize & ((1 << PAGE) - 1)].access(now, words, pattern, pool)
        })
    }

    #[inline]
    fn place(&mut self, page: u64, pool: &Pool) -> Result<u32, Doubt> {
        let recent = self.recent[page as usize % RECENT];
        if recent.0 == page { Ok(recent.1) } else { self.find(page, pool) }
    }

    #[inline(never)]
    fn find(&mut self, page: u64, pool: &Pool) -> Result<u32, Doubt> {
        let place = match self.index.get(&page) {
            Some(place) => *place,
            None => {
                let bytes = self.pages.count * size_of::<Page>() + pool.bytes();
                if bytes >= self.room {
                    return Err(Doubt::Memory);
                }
                let place = self.pages.add();
                self.index.insert(page, place);
                place
            }
        };
        self.recent[page as usize % RECENT] = (page, place);
        Ok(place)
    }

    /// Has memory at hand for so many bytes that are touched.
    pub(super) fn warm(&mut self, touched: usize) {
        self.pages.warm(touched.div_ceil(CHUNK << (PAGE + LINE)));
    }

    /// Forgets what there is, and gives its memory back if it is large.
    pub(super) fn shrink(&mut self) {
        if self.pages.chunks.len() * CHUNK * size_of::<Page>() > SPARE {
            *self = Self::new(self.room);
        }
    }

    pub(super) fn clear(&mut self) {
        self.index.clear();
        self.pages.count = 0;
        self.recent.fill((u64::MAX, 0));
    }

    fn page(&self, number: u64) -> Option<&Page> {
        self.pages.get(*self.index.get(&number)?)
    }

    /// Whether nothing that blocks of this worker wrote was touched by blocks of the others, in one of so many parts of memory.
    pub(super) fn goes_with(&self, others: &[&Self], part: u64, parts: u64) -> bool {
        let mine = self.index.iter().filter(|(number, _)| *number % parts == part);
        let mut pages = mine.filter_map(|(number, place)| Some((*number, self.pages.get(*place)?)));
        pages.all(|(number, page)| {
            others.iter().filter_map(|other| other.page(number)).all(|other| {
                !(page.written || other.written)
                    || page.lines.iter().zip(other.lines.iter()).all(|(a, b)| a.goes_with(b))
            })
        })
    }
}
