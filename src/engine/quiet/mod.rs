//! Words whose accesses so far are all ordered: most words, for good.
//!
//! Such a word needs no list of accesses by byte. It refers to the record that wrote it last, and to a chain of those that
//! have read it since; both are shared by all the words that a record touches. As soon as an access comes that is not ordered
//! after what conflicts with it, or that is no weak access of an own thread, the word *speaks up*: its accesses become a
//! `Cell`, and the access is judged there. Whether a word is quiet decides nothing but speed.

mod before;
mod kept;
mod page;
mod spans;

use std::ops::Range;

use self::before::{Reads, Store, stands};
use self::kept::{Id, Kept, Links, Records};
use self::page::{LINE, LOUD, READ_SHIFT, WRITTEN, Word};
pub(super) use self::page::{Page, WORDS};
use self::spans::spans;
pub(super) use self::spans::{Pattern, Spans};
use super::Launch;
use super::clock::{Know, Time};
use super::shadow::{Cell, Entry, Key, Path, WORD};
use super::thread::LaneKnow;
use crate::abi::{Record, lanes};
use crate::finding::AccessClass;

/// What quiet words refer to.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    records: Records,
    links: Links,
    /// Of the record at hand, its ranges of bytes and the words that have to speak up.
    spans: Vec<(u64, u64)>,
    loud: Vec<u64>,
}

/// A weak access of one record.
#[derive(Clone, Copy)]
pub(super) struct Now<'n> {
    pub(super) record: &'n Record<'n>,
    /// With the record's mask.
    pub(super) entry: &'n Entry,
    pub(super) class: AccessClass,
    pub(super) element: u8,
    /// Bytes of one lane.
    pub(super) bytes: u8,
    pub(super) know: &'n LaneKnow,
    pub(super) launch: Option<&'n Launch>,
}

/// What is known of the order of an earlier record and the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    /// Those that touch the same bytes are ordered.
    All,
    /// Program order may order those that touch the same word.
    ByWord,
    /// They may not be.
    Open,
}

/// What comes of words that are alike.
enum Outcome {
    /// They refer to this now.
    Now(Word),
    /// They have to speak up.
    Loud,
    /// That has to be asked for each. With it, what a store stands for, where that is the same for all.
    ByWord(Option<u16>),
}

/// One record on its way through the words it touches.
pub(super) struct Pass<'n> {
    now: &'n Now<'n>,
    id: Id,
    pattern: Pattern,
    /// The last writer and the last chain met, and what is known of them; of the chain also who reads.
    writer: (Id, Order),
    chain: (Id, Order, Reads),
    /// The last chain that the record was added to, and what came of it.
    added: (Id, Id),
    /// Words had spoken up before.
    was_loud: bool,
    /// `Kept::own_time` of the record.
    own_time: Time,
    /// The time up to which its lanes know all threads of their block.
    base: Time,
}

impl Pass<'_> {
    fn writes(&self) -> bool {
        self.now.class != AccessClass::Read
    }
}

impl Quiet {
    /// About how much memory it takes.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.records.bytes() + self.links.bytes()
    }

    /// Whether a record does what its warp did last on this line: then it takes the place of that record at once. That is so in
    /// loops.
    #[inline]
    pub(super) fn again(&mut self, now: &Now<'_>, pattern: Pattern, line: &Word) -> bool {
        let is_read = now.class == AccessClass::Read;
        let earlier = if is_read {
            let all = line.state >> READ_SHIFT & WRITTEN == WRITTEN;
            self.links.only(line.reader, LINE as u32).filter(|_| all).map(|link| (link.record, 1))
        } else {
            // What it stands for does not change, but for the time.
            let stands = before::has_own(line.state) && line.state & WRITTEN == WRITTEN;
            (line.reader == 0 && stands).then_some((line.writer, LINE as u32))
        };
        let Some(kept) = earlier.and_then(|(record, references)| self.records.only(record, references))
        else {
            return false;
        };
        let entry = &kept.entry;
        let is_like = entry.path == now.entry.path
            && entry.of_warp() == now.entry.of_warp()
            && entry.mask == now.entry.mask
            && kept.pattern == pattern;
        if is_like {
            kept.own_time = if is_read { 0 } else { kept.entry.time };
            kept.set(now, pattern);
        }
        is_like
    }

    /// Begins with a record; `None` when it is none for quiet words. With it, the bytes it touches.
    #[inline]
    pub(super) fn begin<'n>(&mut self, now: &'n Now<'n>, pattern: Pattern) -> Option<(Pass<'n>, Spans)> {
        let spans = spans(now.record, &pattern, now.class != AccessClass::Read, &mut self.spans)?;
        let id = self.records.keep(now, pattern);
        // The pass itself holds the record while it lasts.
        self.records.hold(id, 1);
        let base = match now.know {
            LaneKnow::All(know) => know.clock.base(now.entry.block),
            LaneKnow::Each(_) => 0,
        };
        let pass = Pass {
            now,
            id,
            pattern,
            writer: (0, Order::All),
            chain: (0, Order::All, Reads::default()),
            added: (0, 0),
            was_loud: false,
            own_time: 0,
            base,
        };
        Some((pass, spans))
    }

    /// A range of bytes that was listed.
    pub(super) fn listed(&self, at: usize) -> Option<(u64, u64)> {
        self.spans.get(at).copied()
    }

    /// Ends it; gives the words that have to speak up, and whether others had before.
    #[inline]
    pub(super) fn end(&mut self, pass: &Pass<'_>) -> (Vec<u64>, bool) {
        if pass.own_time != 0 {
            self.records.set_own_time(pass.id, pass.own_time);
        }
        self.records.release(pass.id, 1);
        (std::mem::take(&mut self.loud), pass.was_loud)
    }

    /// Takes the record to the bytes of a range that lie in one page, which begins with the word `base`.
    #[inline]
    pub(super) fn span(&mut self, pass: &mut Pass<'_>, page: &mut Page, base: u64, start: u64, end: u64) {
        let at = |byte: u64| (byte / WORD - base) as usize;
        let (from, to) = (at(start), at(end - 1) + 1);
        let before = (start % WORD) as u16;
        let behind = (to as u64 + base).wrapping_mul(WORD).wrapping_sub(end) as u16;
        if before == 0 && behind == 0 {
            self.whole(pass, page, base, from..to);
        } else {
            self.parts(pass, page, base, from..to, [WRITTEN << before & WRITTEN, WRITTEN >> behind]);
        }
    }

    /// The same where only some bytes of the first word or of the last one are touched.
    #[inline(never)]
    fn parts(
        &mut self,
        pass: &mut Pass<'_>,
        page: &mut Page,
        base: u64,
        words: Range<usize>,
        [first, last]: [u16; 2],
    ) {
        let Range { mut start, mut end } = words;
        if end - start == 1 {
            self.words(pass, page, base, start..end, first & last);
            return;
        }
        if first != WRITTEN {
            self.words(pass, page, base, start..start + 1, first);
            start += 1;
        }
        if last != WRITTEN {
            end -= 1;
        }
        self.words(pass, page, base, start..end, WRITTEN);
        if last != WRITTEN {
            self.words(pass, page, base, end..end + 1, last);
        }
    }

    /// The same for words of which all bytes are touched. Mostly, they are lines, which stand as one.
    #[inline]
    fn whole(&mut self, pass: &mut Pass<'_>, page: &mut Page, base: u64, words: Range<usize>) {
        let mut from = words.start;
        while let Some(line) = page.line(from, words.end)
            && let Outcome::Now(word) = self.take(pass, *line, LINE as u32, WRITTEN)
        {
            *line = word;
            from += LINE;
        }
        if from < words.end {
            self.words(pass, page, base, from..words.end, WRITTEN);
        }
    }

    /// The same for words of which all touched bytes are at the same places.
    #[inline(never)]
    fn words(&mut self, pass: &mut Pass<'_>, page: &mut Page, base: u64, words: Range<usize>, bytes: u16) {
        let mut from = words.start;
        while from < words.end {
            let run = page.run(from, words.end, bytes == WRITTEN);
            from = run.end();
            let was = page.look(run);
            if was.writer == LOUD {
                pass.was_loud = true;
                continue;
            }
            match self.take(pass, was, run.count(), bytes) {
                Outcome::Now(word) => page.set(run, word),
                Outcome::Loud => self.loud.extend(run.words(base)),
                Outcome::ByWord(before) => {
                    page.expand(run);
                    for one in run.each() {
                        match self.take_one(pass, was, base + one.start(), bytes, before) {
                            Some(word) => page.set(one, word),
                            None => self.loud.extend(one.words(base)),
                        }
                    }
                }
            }
        }
    }

    /// What so many words that are alike refer to with the record.
    #[inline]
    fn take(&mut self, pass: &mut Pass<'_>, was: Word, count: u32, bytes: u16) -> Outcome {
        if pass.writes() { self.write(pass, was, count, bytes) } else { self.read(pass, was, count, bytes) }
    }

    /// The same of one word, where that has to be asked for each; `None` if it has to speak up.
    fn take_one(
        &mut self,
        pass: &mut Pass<'_>,
        was: Word,
        word: u64,
        bytes: u16,
        before: Option<u16>,
    ) -> Option<Word> {
        if !pass.writes() {
            let ordered = self.writer_is_before(pass, was.writer, word);
            return ordered.then(|| self.add_reader(pass, was, 1, bytes));
        }
        let Word { writer, reader: chain, state } = was;
        let (writer_order, chain_order, reads) = self.orders(pass, was);
        if (writer_order == Order::ByWord && !self.writer_is_before(pass, writer, word))
            || (chain_order == Order::ByWord && !self.chain_is_before(pass, chain, word))
        {
            return None;
        }
        let before = before.unwrap_or_else(|| self.before_at(pass, Store { writer, state, reads }, word));
        Some(self.set_writer(pass, was, 1, bytes | before))
    }

    #[inline]
    fn read(&mut self, pass: &mut Pass<'_>, was: Word, count: u32, bytes: u16) -> Outcome {
        if was.state & WRITTEN & bytes != 0 {
            match self.writer_order(pass, was.writer) {
                Order::All => {}
                Order::ByWord => return Outcome::ByWord(None),
                Order::Open => return Outcome::Loud,
            }
        }
        Outcome::Now(self.add_reader(pass, was, count, bytes))
    }

    #[inline]
    fn add_reader(&mut self, pass: &mut Pass<'_>, was: Word, count: u32, bytes: u16) -> Word {
        let state = was.state | bytes << READ_SHIFT;
        let chain = was.reader;
        let last = self.links.get(chain);
        if last.is_some_and(|last| last.record == pass.id) {
            return Word { state, ..was };
        }
        if chain != pass.added.0 || pass.added.1 == 0 {
            let again = last.is_some_and(|last| self.reads_again(pass, last.record, bytes));
            let before = last.filter(|_| again).map_or(chain, |last| last.before);
            pass.added = (chain, self.links.append(pass.id, before, &mut self.records));
        }
        let added = pass.added.1;
        self.links.hold(added, count);
        if self.links.release(chain, count, &mut self.records) {
            // Its number may come back as another chain's.
            pass.added.0 = Id::MAX;
        }
        Word { state, reader: added, ..was }
    }

    /// Whether the present read may take the place of an earlier one.
    fn reads_again(&self, pass: &Pass<'_>, earlier: Id, bytes: u16) -> bool {
        let (Some(kept), entry) = (self.records.get(earlier), pass.now.entry) else { return false };
        if !kept.entry.same_warp(entry) || !entry.path.stands_for(kept.entry.path) {
            return false;
        }
        kept.is_like(entry.mask, &pass.pattern, pass.now.record)
            || (bytes == WRITTEN && self.is_known(pass, kept))
    }

    #[inline]
    fn write(&mut self, pass: &mut Pass<'_>, was: Word, count: u32, bytes: u16) -> Outcome {
        let Word { writer, state, .. } = was;
        if writer == pass.id {
            // Another lane has written other bytes of the word.
            return Outcome::Now(Word { state: state | bytes, ..was });
        }
        // What an earlier write left beside these bytes cannot be told with one writer.
        let left = state & WRITTEN & !bytes != 0;
        let (writer_order, chain_order, reads) = self.orders(pass, was);
        let order = writer_order.max(chain_order);
        if left || order == Order::Open {
            return Outcome::Loud;
        }
        match self.before(pass, Store { writer, state, reads }) {
            Some(before) if order == Order::All => {
                Outcome::Now(self.set_writer(pass, was, count, bytes | before))
            }
            before => Outcome::ByWord(before),
        }
    }

    /// What is known of the order of the last writer, and of those that have read since, and whose reads these are.
    #[inline]
    fn orders(&mut self, pass: &mut Pass<'_>, was: Word) -> (Order, Order, Reads) {
        let writer = if was.writer == 0 { Order::All } else { self.writer_order(pass, was.writer) };
        if was.reader == 0 {
            return (writer, Order::All, Reads::default());
        }
        let (chain, reads) = self.chain_order(pass, was.reader);
        (writer, chain, reads)
    }

    /// What words refer to of which the record is the writer now.
    #[inline]
    fn set_writer(&mut self, pass: &Pass<'_>, was: Word, count: u32, state: u16) -> Word {
        self.records.hold(pass.id, count);
        // Readers of other bytes stay.
        let read = was.state & WRITTEN << READ_SHIFT;
        let stays = read & !(state << READ_SHIFT) & WRITTEN << READ_SHIFT != 0;
        let (reader, read) = if stays { (was.reader, read) } else { (0, 0) };
        self.records.release(was.writer, count);
        if !stays {
            self.links.release(was.reader, count, &mut self.records);
        }
        Word { writer: pass.id, reader, state: state | read }
    }

    #[inline]
    fn writer_order(&self, pass: &mut Pass<'_>, writer: Id) -> Order {
        if pass.writer.0 != writer {
            let order = self.records.get(writer).map_or(Order::Open, |kept| self.order(pass, kept));
            pass.writer = (writer, order);
        }
        pass.writer.1
    }

    #[inline]
    fn chain_order(&self, pass: &mut Pass<'_>, chain: Id) -> (Order, Reads) {
        if pass.chain.0 != chain {
            let (mut order, mut reads) = (Order::All, Reads::default());
            for link in self.links.chain(chain) {
                let Some(kept) = self.records.get(link.record) else { continue };
                order = order.max(self.order(pass, kept));
                reads.add(pass, kept);
                if order == Order::Open {
                    break;
                }
            }
            pass.chain = (chain, order, reads);
        }
        (pass.chain.1, pass.chain.2)
    }

    /// Whether base causality orders all lanes of an earlier record before all of this one.
    fn is_known(&self, pass: &Pass<'_>, kept: &Kept) -> bool {
        let Entry { block, warp, mask, time, .. } = kept.entry;
        let known = |know: &Know| know.clock.known(block, warp, mask, time) == mask;
        match pass.now.know {
            LaneKnow::All(know) => known(know),
            lanes => lanes.distinct(pass.now.entry.mask).into_iter().all(|know| known(know)),
        }
    }

    fn order(&self, pass: &Pass<'_>, kept: &Kept) -> Order {
        let (earlier, entry) = (&kept.entry, pass.now.entry);
        if earlier.launch != entry.launch {
            let after = pass.now.launch.is_some_and(|launch| launch.follows(earlier.launch));
            return if after { Order::All } else { Order::Open };
        }
        if earlier.path == Path::ReadOnly || entry.path == Path::ReadOnly {
            return Order::Open;
        }
        if (earlier.block == entry.block && earlier.time <= pass.base) || self.is_known(pass, kept) {
            return Order::All;
        }
        if !earlier.same_warp(entry) {
            return Order::Open;
        }
        let same = kept.is_like(entry.mask, &pass.pattern, pass.now.record) && !pass.pattern.is_one_place();
        if same { Order::All } else { Order::ByWord }
    }

    fn writer_is_before(&self, pass: &Pass<'_>, writer: Id, word: u64) -> bool {
        self.records.get(writer).is_some_and(|kept| is_before(pass, kept, word))
    }

    fn chain_is_before(&self, pass: &Pass<'_>, chain: Id, word: u64) -> bool {
        self.links.chain(chain).all(|link| {
            let kept = self.records.get(link.record);
            kept.is_some_and(|kept| self.order(pass, kept) == Order::All || is_before(pass, kept, word))
        })
    }

    /// The accesses of a word that speaks up.
    pub(super) fn speak(&mut self, page: &mut Page, word: u64) -> Cell {
        let cell = self.look(page, word);
        let Word { writer, reader, .. } = page.speak(word as usize % WORDS);
        self.records.release(writer, 1);
        self.links.release(reader, 1, &mut self.records);
        cell
    }

    /// The accesses of a quiet word.
    pub(super) fn look(&self, page: &Page, word: u64) -> Cell {
        let Word { writer, reader, state } = page.word(word as usize);
        let mut cell = Cell::default();
        if let Some(kept) = self.records.get(writer) {
            put(&mut cell, kept, word, state);
        }
        for reader in self.links.readers(reader, &self.records) {
            if let Some(kept) = self.records.get(reader) {
                put(&mut cell, kept, word, 0);
            }
        }
        cell
    }

    /// Whether a launch that is asked for has accessed a quiet word.
    pub(super) fn is_of(&self, word: Word, asked: impl Fn(u32) -> bool) -> bool {
        let of = |id: Id| self.records.get(id).is_some_and(|kept| asked(kept.entry.launch));
        of(word.writer) || self.links.readers(word.reader, &self.records).into_iter().any(of)
    }
}

/// Whether program order puts those lanes of an earlier record of the warp that touch a word before those that touch it now.
fn is_before(pass: &Pass<'_>, kept: &Kept, word: u64) -> bool {
    let Some(record) = kept.record() else { return false };
    let touching = |record: &Record<'_>, pattern: &Pattern| {
        let by_rank = record.lanes_by_rank();
        lanes(pattern.ranks_at(record, word)).fold(0u32, |all, rank| all | 1 << by_rank[rank])
    };
    let earlier = touching(&record, &kept.pattern);
    let now = touching(pass.now.record, &pass.pattern);
    kept.entry.same_warp(pass.now.entry) && (earlier == 0 || (now.is_power_of_two() && earlier == now))
}

/// Puts an access into a cell that holds nothing ordered before it.
fn put(cell: &mut Cell, kept: &Kept, word: u64, state: u16) {
    let Some(record) = kept.record() else { return };
    let by_rank = record.lanes_by_rank();
    let element = u64::from(kept.element.max(1));
    let writes = kept.class != AccessClass::Read;
    let stands = stands(state, kept);
    for rank in lanes(kept.pattern.ranks_at(&record, word)) {
        let first = record.a(rank);
        for start in (0..u64::from(kept.pattern.bytes) / element).map(|at| first + at * element) {
            let relative = start.wrapping_sub(word * WORD).cast_signed();
            let touches = relative < WORD.cast_signed() && relative + element.cast_signed() > 0;
            if !touches {
                continue;
            }
            let key = Key {
                class: kept.class,
                scope: None,
                path: kept.entry.path,
                start: relative as i8,
                bytes: kept.element,
            };
            let value = if writes { record.written(rank) } else { None };
            let _ = cell.add(key, Entry { mask: 1 << by_rank[rank], value, stands, ..kept.entry }, 0, |_| 0);
        }
    }
}
