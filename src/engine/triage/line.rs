//! What is known of the 32 words of a line, while they are of at most two kinds.
//!
//! A line has two parts, of different words: those that it says one thing of. Mostly there is one; the other is for rows that
//! do not begin at a line, so that two warps or blocks share it. A part says no more than its words would by themselves
//! (`cell`): where two parts are too few, each word gets a cell of its own. What a part says of all its words in a few bits may be
//! too little, so that it doubts where cells would not. The other way round it is only where the same lanes touch the same parts
//! of words again, of which cells know nothing.

use std::cmp::Ordering;

use super::Doubt;
use super::cell::{Cell, Class, Kind, Lanes, Now};

/// Words of a line.
pub(super) const WORDS: usize = 32;

/// How lanes lie over the words of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    One(u8),
    /// All read the same words.
    Several,
    /// One after the other, each `4 << log` bytes. The element of number `shift` in the line is lane 0's.
    Row {
        log: i8,
        shift: u8,
    },
}

impl Pattern {
    pub(super) fn lanes(self, word: usize) -> Lanes {
        match self {
            Self::One(lane) => Lanes::One(lane),
            Self::Several => Lanes::Several,
            Self::Row { log, shift } if log >= 0 => {
                Lanes::One(((word >> log) as u8).wrapping_sub(shift) & 31)
            }
            Self::Row { .. } => Lanes::Crowd,
        }
    }
}

/// Who has touched a line in the interval: a kind, and for the first three warp, lanes, and warp barriers passed.
type Who = u64;

const KIND: Who = 0xff;
const EMPTY: Who = 0;
/// Each word by the lane that the pattern says, since the warp's last barrier.
const ROW: Who = 1;
/// By one lane.
const ONE: Who = 2;
/// By lanes of one warp, which only read.
const WARP: Who = 3;
/// By warps of the block, which only read.
const BLOCK: Who = 4;
const ATOMIC4: Who = 5;
const ATOMIC8: Who = 6;
/// Several blocks have read, and nobody wrote.
const GRID: Who = 7;
/// Several blocks have done atomics, and nothing else.
const GRID_ATOMIC4: Who = 8;
const GRID_ATOMIC8: Who = 9;

fn who(now: &Now, pattern: Pattern) -> Who {
    let of = |kind: Who, lanes: u8, log: i8| {
        let (log, sub) = (Who::from(log.cast_unsigned()), Who::from(now.sub));
        kind | Who::from(now.warp) << 8 | Who::from(lanes) << 16 | log << 24 | sub << 32
    };
    match (now.class, pattern) {
        (Class::Atomic4, _) => ATOMIC4,
        (Class::Atomic8, _) => ATOMIC8,
        (_, Pattern::One(lane)) => of(ONE, lane, 0),
        (_, Pattern::Several) => of(WARP, 0, 0),
        (_, Pattern::Row { log, shift }) => of(ROW, shift, log),
    }
}

fn is_atomic(kind: Who) -> bool {
    matches!(kind, ATOMIC4 | ATOMIC8)
}

fn warp_of(who: Who) -> u8 {
    (who >> 8) as u8
}

fn sub_of(who: Who) -> u16 {
    (who >> 32) as u16
}

/// The cells of lines that have some.
#[derive(Debug, Default)]
pub(super) struct Pool {
    cells: Vec<[Cell; WORDS]>,
    free: Vec<u32>,
}

impl Pool {
    fn add(&mut self, cells: [Cell; WORDS]) -> u32 {
        if let Some(at) = self.free.pop()
            && let Some(place) = self.cells.get_mut(at as usize - 1)
        {
            *place = cells;
            return at;
        }
        self.cells.push(cells);
        self.cells.len() as u32
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.cells.len() * size_of::<[Cell; WORDS]>()
    }

    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.free.clear();
    }
}

/// Words of a line that it says one thing of.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    block: u32,
    interval: u32,
    who: Who,
    /// Words touched and written in the interval.
    touched: u32,
    dirty: u32,
    /// Words read and written in the launch; atomics write.
    read: u32,
    written: u32,
    /// Something that is no atomic has touched it, or atomics of two sizes.
    plain: bool,
}

impl Part {
    fn kind(&self) -> Who {
        self.who & KIND
    }

    fn known(&self) -> u32 {
        self.read | self.written
    }

    /// Whether all that it knows was before this, which is of its block.
    fn is_before(&self, now: &Now) -> bool {
        self.block == now.block && self.kind() < GRID && now.interval > self.interval
    }

    /// The words whose accesses so far have a say in whether this one is ordered. Those of earlier intervals of the block have none
    /// (but for the read-only path), and may go to another part.
    fn holds(&self, now: &Now) -> u32 {
        let same = self.block == now.block && self.kind() < GRID && now.class != Class::NonCoherent;
        match now.interval.cmp(&self.interval) {
            Ordering::Greater if same => 0,
            Ordering::Equal if same => self.touched,
            _ => self.known(),
        }
    }

    /// Takes an access to some words; tells whether it could, and else is as it was.
    #[inline]
    fn access(&mut self, now: &Now, words: u32, pattern: Pattern) -> Result<bool, Doubt> {
        let kind = self.kind();
        if kind == GRID && !now.class.writes() {
            self.read |= words;
            return Ok(true);
        }
        if self.block == now.block && kind < GRID && kind != EMPTY && now.class != Class::NonCoherent {
            let want = who(now, pattern);
            if now.interval > self.interval {
                self.begin_interval(now, want);
            } else if now.interval < self.interval {
                return Err(Doubt::Late);
            }
            if self.who == want {
                self.note(now, words);
                return Ok(true);
            }
            return Ok(self.other_lanes(now, words, want));
        }
        self.rarely(now, words, pattern)
    }

    #[inline]
    fn begin_interval(&mut self, now: &Now, want: Who) {
        let kind = self.kind();
        self.interval = now.interval;
        (self.touched, self.dirty) = (0, 0);
        // Other blocks' atomics of either size are unordered with those of the other size.
        self.plain |= is_atomic(kind) && is_atomic(want & KIND) && kind != want & KIND;
        self.who = want;
    }

    #[inline]
    fn note(&mut self, now: &Now, words: u32) {
        self.touched |= words;
        if now.class.writes() {
            self.dirty |= words;
            self.written |= words;
            self.plain |= !now.class.is_atomic();
        } else {
            self.read |= words;
            self.plain = true;
        }
    }

    /// Other lanes of the block than before, in the same interval.
    fn other_lanes(&mut self, now: &Now, words: u32, want: Who) -> bool {
        let kind = self.kind();
        let is_atomic = now.class.is_atomic() || is_atomic(kind);
        let same_warp = kind != BLOCK && warp_of(self.who) == now.warp;
        if !is_atomic && same_warp && now.sub > sub_of(self.who) {
            self.who = want;
            self.note(now, words);
            return true;
        }
        let only_read = !is_atomic && !now.class.writes() && self.dirty == 0;
        let absorbs = kind == BLOCK || (kind == WARP && same_warp);
        // Where words are not the same, they may go on apart.
        if only_read && (absorbs || self.touched & words != 0) {
            let same_warp = same_warp && now.sub == sub_of(self.who);
            self.who = if same_warp { who(now, Pattern::Several) } else { BLOCK };
            self.note(now, words);
            return true;
        }
        false
    }

    /// The first access, and what goes beyond a block.
    #[inline(never)]
    fn rarely(&mut self, now: &Now, words: u32, pattern: Pattern) -> Result<bool, Doubt> {
        let kind = self.kind();
        if kind == EMPTY {
            *self = Self { block: now.block, interval: now.interval, ..Self::default() };
            self.who = if now.class == Class::NonCoherent { GRID } else { who(now, pattern) };
            self.note(now, words);
            return Ok(true);
        }
        let atomic = if now.class == Class::Atomic8 { ATOMIC8 } else { ATOMIC4 };
        let of_grid = atomic + (GRID_ATOMIC4 - ATOMIC4);
        if now.class.is_atomic() && (kind == of_grid || (kind == atomic && !self.plain)) {
            self.who = of_grid;
            self.note(now, words);
            return Ok(true);
        }
        let met = if now.class.writes() { self.known() } else { self.written };
        if met & words != 0 {
            let read_only = now.class == Class::NonCoherent;
            return Err(if read_only { Doubt::ReadOnly } else { Doubt::Blocks });
        }
        let reads = !now.class.writes() && self.written == 0;
        if reads && (self.read & words != 0 || now.class == Class::NonCoherent) {
            self.who = GRID;
            self.note(now, words);
            return Ok(true);
        }
        Ok(false)
    }

    /// The cells of its words, and empty ones.
    fn cells(&self) -> [Cell; WORDS] {
        let kind = self.kind();
        let pattern = Pattern::Row { log: (self.who >> 24) as i8, shift: (self.who >> 16) as u8 };
        std::array::from_fn(|word| {
            let has = |words: u32| words >> word & 1 != 0;
            if !has(self.read | self.written) {
                return Cell::default();
            }
            let wrote = has(self.written);
            let cell = Cell {
                block: self.block,
                interval: self.interval,
                sub: sub_of(self.who),
                warp: warp_of(self.who),
                lane: 0,
                kind: Kind::Block,
                wrote,
                plain: self.plain,
                dirty: has(self.dirty),
                fresh: has(self.dirty),
            };
            let kind = match kind {
                GRID => Kind::Grid,
                GRID_ATOMIC4 => Kind::GridAtomic4,
                GRID_ATOMIC8 => Kind::GridAtomic8,
                // Touched in an earlier interval only; by what is not known.
                _ if !has(self.touched) => {
                    let interval = self.interval.wrapping_sub(1);
                    return Cell { interval, plain: true, dirty: false, fresh: false, ..cell };
                }
                ROW => match pattern.lanes(word) {
                    Lanes::One(lane) => return Cell { kind: Kind::Lane, lane, ..cell },
                    _ if has(self.dirty) => Kind::Crowd,
                    _ => Kind::Warp,
                },
                ONE => {
                    let lane = (self.who >> 16) as u8;
                    return Cell { kind: Kind::Lane, lane, ..cell };
                }
                WARP => Kind::Warp,
                ATOMIC4 => Kind::Atomic4,
                ATOMIC8 => Kind::Atomic8,
                _ => Kind::Block,
            };
            Cell { kind, ..cell }
        })
    }
}

/// A line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    /// The second one is empty while one is enough. With cells, the first tells of them all.
    parts: [Part; 2],
    /// The number of its cells in the pool; 0 for none.
    cells: u32,
    /// Cells may be of several blocks.
    several: bool,
}

impl Line {
    /// Takes an access to some words.
    #[inline]
    pub(super) fn access(
        &mut self,
        now: &Now,
        words: u32,
        pattern: Pattern,
        pool: &mut Pool,
    ) -> Result<(), Doubt> {
        // Shared memory of a block that has ended.
        if !now.global && self.parts[0].block != now.block {
            self.give_back(pool);
            *self = Self::default();
        }
        if self.cells == 0 {
            let [first, second] = &mut self.parts;
            if second.kind() == EMPTY && first.access(now, words, pattern)? {
                return Ok(());
            }
        }
        self.rarely(now, words, pattern, pool)
    }

    #[inline(never)]
    fn rarely(&mut self, now: &Now, words: u32, pattern: Pattern, pool: &mut Pool) -> Result<(), Doubt> {
        if self.cells != 0 {
            return self.by_cells(now, words, pattern, pool);
        }
        let before = self.parts;
        if self.in_parts(now, words, pattern)? {
            return Ok(());
        }
        self.parts = before;
        if self.only_read(now, words)? {
            return Ok(());
        }
        self.expand(pool);
        self.by_cells(now, words, pattern, pool)
    }

    /// Has each part take its words of the access; tells whether they could. If not, they may have changed.
    fn in_parts(&mut self, now: &Now, words: u32, pattern: Pattern) -> Result<bool, Doubt> {
        if now.class != Class::NonCoherent && self.parts.iter().all(|part| part.is_before(now)) {
            self.join();
            return self.parts[0].access(now, words, pattern);
        }
        let owns = self.parts.map(|part| words & part.holds(now));
        let mut rest = words & !(owns[0] | owns[1]);
        for (part, own) in self.parts.iter_mut().zip(owns) {
            if own == 0 {
                continue;
            }
            // Words that nobody has touched go with those beside them.
            let home = part.block == now.block && part.kind() < GRID;
            let with = if home { std::mem::take(&mut rest) } else { 0 };
            if !part.access(now, own | with, pattern)? {
                return Ok(false);
            }
        }
        if rest != 0 {
            let want = who(now, pattern);
            let like =
                |part: &Part| part.block == now.block && part.interval == now.interval && part.who == want;
            let at = self.parts.iter().position(like);
            let is_free = |part: &Part| part.kind() == EMPTY || part.is_before(now);
            let at = at.or_else(|| self.parts.iter().position(is_free));
            let taken = match at.and_then(|at| self.parts.get_mut(at)) {
                Some(part) => part.access(now, rest, pattern)?,
                None => {
                    let [first, second] = &mut self.parts;
                    first.access(now, rest, pattern)? || second.access(now, rest, pattern)?
                }
            };
            if !taken {
                return Ok(false);
            }
        }
        if self.parts.iter().all(|part| part.kind() == GRID) {
            self.join();
        }
        Ok(true)
    }

    /// One part of two, as far as the second one does not matter any more.
    fn join(&mut self) {
        let [first, second] = &mut self.parts;
        // Words may have seen atomics of different sizes.
        first.plain |= second.plain || first.kind() != second.kind();
        first.read |= second.read;
        first.written |= second.written;
        *second = Part::default();
    }

    /// Where lanes of several warps, or three blocks, read different words, and nobody has written any: from then on the words are
    /// alike. (Of one warp it may be a lane for each element, which it writes next.)
    fn only_read(&mut self, now: &Now, words: u32) -> Result<bool, Doubt> {
        let [first, second] = &mut self.parts;
        if now.class.writes() || second.kind() == EMPTY {
            return Ok(false);
        }
        let late = |part: &Part| part.block == now.block && part.interval > now.interval;
        if late(first) || late(second) {
            return Err(Doubt::Late);
        }
        let of_block = |part: &Part| {
            let fits = part.block == now.block && part.kind() < BLOCK;
            fits && (part.interval < now.interval || part.dirty == 0)
        };
        let three = |a: u32, b: u32, c: u32| a != b && b != c && a != c;
        if now.class == Class::Read
            && of_block(first)
            && of_block(second)
            && (warp_of(first.who) != now.warp || warp_of(second.who) != now.warp)
        {
            for part in [&mut *first, &mut *second] {
                if part.interval < now.interval {
                    part.begin_interval(now, BLOCK);
                }
            }
            first.who = BLOCK;
            first.touched |= second.touched;
        } else if three(first.block, second.block, now.block) && first.written | second.written == 0 {
            first.who = GRID;
        } else {
            return Ok(false);
        }
        self.join();
        self.parts[0].note(now, words);
        Ok(true)
    }

    /// Gives each word a cell.
    fn expand(&mut self, pool: &mut Pool) {
        let [first, second] = &mut self.parts;
        let mut cells = first.cells();
        for (word, (cell, other)) in cells.iter_mut().zip(second.cells()).enumerate() {
            let (mine, others) = (*cell, second.known() >> word & 1 != 0);
            // Of a word that both know, one has touched it since.
            if others && (first.touched >> word & 1 == 0 || first.interval < second.interval) {
                *cell = other;
            }
            cell.wrote |= mine.wrote || other.wrote;
            cell.plain |= mine.plain || other.plain;
        }
        self.cells = pool.add(cells);
        self.several = first.kind() >= GRID;
        if second.kind() != EMPTY {
            self.several |= second.kind() >= GRID || second.block != first.block;
            first.interval = first.interval.max(second.interval);
            first.touched |= second.touched;
            first.dirty |= second.dirty;
            self.join();
        }
    }

    /// Its words have no cells any more.
    #[inline]
    fn give_back(&mut self, pool: &mut Pool) {
        if self.cells != 0 {
            pool.free.push(self.cells);
            self.cells = 0;
        }
    }

    /// An access word by word. Cells go again once a barrier lies between them and what comes.
    fn by_cells(&mut self, now: &Now, words: u32, pattern: Pattern, pool: &mut Pool) -> Result<(), Doubt> {
        let whole = &mut self.parts[0];
        let other = whole.block != now.block;
        let later = !other && now.interval > whole.interval;
        if now.class != Class::NonCoherent && !self.several && later {
            // Words may have seen atomics of different sizes.
            whole.plain = true;
            self.give_back(pool);
            return self.access(now, words, pattern, pool);
        }
        let Some(cells) = pool.cells.get_mut(self.cells as usize - 1) else { return Err(Doubt::Damage) };
        let mut left = words;
        while left != 0 {
            let word = left.trailing_zeros() as usize & 31;
            left &= left - 1;
            cells[word] = cells[word].step(now, pattern.lanes(word))?;
        }
        whole.note(now, words);
        // What the read-only path has read stays so.
        self.several |= other || now.class == Class::NonCoherent;
        if !other {
            whole.interval = whole.interval.max(now.interval);
        }
        Ok(())
    }

    /// Whether blocks that others know of may have touched it as this one says.
    pub(super) fn goes_with(&self, other: &Self) -> bool {
        let known = |line: &Self| line.parts[0].known() | line.parts[1].known();
        let written = |line: &Self| line.parts[0].written | line.parts[1].written;
        if written(self) & known(other) == 0 && written(other) & known(self) == 0 {
            return true;
        }
        let of_part = |part: &Part| match part.kind() {
            _ if part.plain => 0,
            ATOMIC4 | GRID_ATOMIC4 => 4,
            ATOMIC8 | GRID_ATOMIC8 => 8,
            _ => 0,
        };
        let atomic = |line: &Self| {
            let [first, second] = &line.parts;
            let alike = second.kind() == EMPTY || of_part(first) == of_part(second);
            if line.cells == 0 && alike { of_part(first) } else { 0 }
        };
        atomic(self) != 0 && atomic(self) == atomic(other)
    }
}
