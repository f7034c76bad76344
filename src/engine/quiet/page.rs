//! What the words of a page refer to. Mostly, the words of a line of memory are accessed together, by one warp: then one
//! entry is for the whole line.

use super::kept::Id;

/// Words of a page.
pub(in crate::engine) const WORDS: usize = 256;
/// Words of a line.
pub(super) const LINE: usize = 32;

/// `Word::writer` of a word that has a cell.
pub(super) const LOUD: Id = Id::MAX;
/// Bytes written, in `Word::state`; those read are beside them.
pub(super) const WRITTEN: u16 = 0xf;
pub(super) const READ_SHIFT: u32 = 4;

/// What a word refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Word {
    /// The record that wrote it last.
    pub(super) writer: Id,
    /// The chain of those that have read it since.
    pub(super) reader: Id,
    pub(super) state: u16,
}

/// Words of a page that are alike: some of those that stand one by one, or a line that stands as one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    from: u16,
    to: u16,
    is_line: bool,
}

impl Run {
    /// The first word.
    pub(super) fn start(self) -> u64 {
        self.from.into()
    }

    /// Behind the last word.
    pub(super) fn end(self) -> usize {
        self.to.into()
    }

    pub(super) fn count(self) -> u32 {
        u32::from(self.to - self.from)
    }

    /// Each word by itself, of a run that has been expanded.
    pub(super) fn each(self) -> impl Iterator<Item = Self> {
        (self.from..self.to).map(|from| Self { from, to: from + 1, is_line: false })
    }

    /// The numbers of its words, in a page that begins with the word `base`.
    pub(super) fn words(self, base: u64) -> impl Iterator<Item = u64> {
        (self.from..self.to).map(move |word| base + u64::from(word))
    }
}

/// Words, by what they refer to.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Page {
    /// Of lines whose words are alike and all quiet; `None` where words stand one by one.
    lines: [Option<Word>; WORDS / LINE],
    writers: [Id; WORDS],
    readers: [Id; WORDS],
    state: [u16; WORDS],
}

impl Page {
    pub(in crate::engine) fn new() -> Self {
        Self {
            lines: [Some(Word::default()); WORDS / LINE],
            writers: [0; WORDS],
            readers: [0; WORDS],
            state: [0; WORDS],
        }
    }

    pub(in crate::engine) fn is_loud(&self, word: usize) -> bool {
        let word = word % WORDS;
        self.lines[word / LINE].is_none() && self.writers[word] == LOUD
    }

    /// The line that begins at a word, if all of it is before `to` and it stands as one.
    #[inline]
    pub(in crate::engine) fn line(&mut self, from: usize, to: usize) -> Option<&mut Word> {
        let whole = from.is_multiple_of(LINE) && from + LINE <= to;
        self.lines.get_mut(from / LINE).filter(|_| whole)?.as_mut()
    }

    /// The words from `from` on that are alike, up to `to`. A line stays one only if all its words are touched, as a whole.
    #[inline]
    pub(super) fn run(&mut self, from: usize, to: usize, whole: bool) -> Run {
        let first = from / LINE;
        let is_covered = |line: usize| whole && line * LINE >= from && (line + 1) * LINE <= to;
        let mut end = to;
        for line in first..to.div_ceil(LINE) {
            if self.lines[line % (WORDS / LINE)].is_none() {
                continue;
            }
            if !is_covered(line) {
                self.expand_line(line);
            } else if line == first {
                return Run { from: from as u16, to: (from + LINE) as u16, is_line: true };
            } else {
                end = line * LINE;
                break;
            }
        }
        let to = end;
        let (Some(writers), Some(readers), Some(state)) =
            (self.writers.get(from..to), self.readers.get(from..to), self.state.get(from..to))
        else {
            return Run { from: from as u16, to: to as u16, is_line: false };
        };
        let alike = alike(writers, readers, state);
        Run { from: from as u16, to: (from + alike) as u16, is_line: false }
    }

    /// What the words of a run refer to.
    #[inline]
    pub(super) fn look(&self, run: Run) -> Word {
        let from = usize::from(run.from) % WORDS;
        match self.lines[from / LINE] {
            Some(word) if run.is_line => word,
            _ => Word { writer: self.writers[from], reader: self.readers[from], state: self.state[from] },
        }
    }

    /// What a quiet word refers to.
    pub(in crate::engine) fn word(&self, word: usize) -> Word {
        let from = (word % WORDS) as u16;
        let line = self.lines[word % WORDS / LINE];
        line.unwrap_or_else(|| self.look(Run { from, to: from + 1, is_line: false }))
    }

    /// Lets all words of a run refer to something else.
    #[inline]
    pub(super) fn set(&mut self, run: Run, word: Word) {
        let words = usize::from(run.from)..usize::from(run.to);
        if run.is_line {
            self.lines[words.start / LINE % (WORDS / LINE)] = Some(word);
            return;
        }
        if let (Some(writers), Some(readers), Some(state)) = (
            self.writers.get_mut(words.clone()),
            self.readers.get_mut(words.clone()),
            self.state.get_mut(words),
        ) {
            writers.fill(word.writer);
            readers.fill(word.reader);
            state.fill(word.state);
        }
    }

    /// Lets the words of a run stand one by one.
    pub(super) fn expand(&mut self, run: Run) {
        if run.is_line {
            self.expand_line(usize::from(run.from) / LINE);
        }
    }

    fn expand_line(&mut self, line: usize) {
        if let Some(word) = self.lines[line % (WORDS / LINE)].take() {
            let (from, to) = ((line * LINE) as u16, (line * LINE + LINE) as u16);
            self.set(Run { from, to, is_line: false }, word);
        }
    }

    /// A word has a cell from now on; what it referred to.
    pub(super) fn speak(&mut self, word: usize) -> Word {
        self.expand_line(word / LINE);
        let from = (word % WORDS) as u16;
        let run = Run { from, to: from + 1, is_line: false };
        let was = self.look(run);
        self.set(run, Word { writer: LOUD, reader: 0, state: 0 });
        was
    }
}

/// How many of the words are as the first.
fn alike(writers: &[Id], readers: &[Id], state: &[u16]) -> usize {
    let (Some(writer), Some(reader), Some(first)) = (writers.first(), readers.first(), state.first()) else {
        return writers.len();
    };
    // Mostly all are: one look without branches.
    let off = writers.iter().zip(readers).fold(0, |off, (w, r)| off | (w ^ writer) | (r ^ reader));
    if off == 0 && state.iter().fold(0, |off, s| off | (s ^ first)) == 0 {
        return writers.len();
    }
    let like = |i: &usize| writers[*i] == *writer && readers[*i] == *reader && state[*i] == *first;
    (1..writers.len()).find(|i| !like(i)).unwrap_or(writers.len())
}
