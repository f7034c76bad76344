//! Reading: one pass over the file checks every chunk and notes where it lies, so that schedules can be played side by side.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use parking_lot::Mutex;

use super::chunk::{HEADER, Header, Kind, unpack};
use super::wire::{ExecHead, Finish, Head, Text};
use super::{MAGIC, VERSION};

/// Where the chunks begin.
const START: u64 = MAGIC.len() as u64 + 4;
/// Bytes that are checked at once.
const PIECE: usize = 1 << 16;

/// A file, or bytes at hand.
pub trait ReadAt: Sync {
    /// Bytes in all.
    fn size(&self) -> io::Result<u64>;
    /// Fills a buffer from a place on.
    fn read_at(&self, at: u64, to: &mut [u8]) -> io::Result<()>;
}

impl ReadAt for File {
    fn size(&self) -> io::Result<u64> {
        let metadata = self.metadata()?;
        if metadata.is_file() { Ok(metadata.len()) } else { Err(io::Error::other("it is no regular file")) }
    }

    fn read_at(&self, at: u64, to: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(to, at)
    }
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, at: u64, to: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(at).ok();
        let bytes = start.and_then(|start| self.get(start..start.checked_add(to.len())?));
        to.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Why a file cannot be read as a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It begins with something else.
    #[error("it does not begin as a trace does")]
    Foreign,
    /// A version that is not known here.
    #[error("it has version {0} of the format, and this ptxrace knows version {VERSION} only")]
    Version(u32),
}

/// Where a trace ends before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Break {
    /// It is damaged from this byte on.
    Damaged(u64),
    /// It ends with this byte.
    CutOff(u64),
}

/// Where a chunk lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) at: u64,
    pub(super) header: Header,
}

/// What was known before.
#[derive(Debug)]
enum Start {
    /// The trace breaks before.
    Nothing,
    /// Of a run, with its module.
    Run(Head, String),
    /// Of a program under `exec`.
    Exec(ExecHead),
}

/// A trace that was looked through.
pub struct Trace {
    bytes: Box<dyn ReadAt>,
    start: Start,
    /// How the program ended.
    status: Option<u8>,
    sources: Vec<Text>,
    schedules: BTreeMap<u64, Vec<Chunk>>,
    broken: Mutex<Option<Break>>,
}

impl Trace {
    /// Looks through a trace.
    pub fn open(bytes: Box<dyn ReadAt>) -> Result<Self, TraceError> {
        let size = bytes.size()?;
        let mut start = [0; START as usize];
        if size < START {
            return Err(TraceError::Foreign);
        }
        bytes.read_at(0, &mut start)?;
        let (magic, version) = start.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(TraceError::Foreign);
        }
        let version = version.try_into().map_or(0, u32::from_le_bytes);
        if version != VERSION {
            return Err(TraceError::Version(version));
        }
        let mut trace = Self {
            bytes,
            start: Start::Nothing,
            status: None,
            sources: Vec::new(),
            schedules: BTreeMap::new(),
            broken: Mutex::new(None),
        };
        if let Err(broken) = trace.look_through(size)? {
            trace.break_at(broken);
        }
        Ok(trace)
    }

    /// What was known before the run, and the text of its module, if it is the trace of one.
    pub fn run(&self) -> Option<(&Head, &str)> {
        match &self.start {
            Start::Run(head, module) => Some((head, module)),
            _ => None,
        }
    }

    /// What was known before the program ran, if it is the trace of an `exec`.
    pub fn exec(&self) -> Option<&ExecHead> {
        match &self.start {
            Start::Exec(head) => Some(head),
            _ => None,
        }
    }

    /// The status with which the program ended, if it is told.
    pub fn status(&self) -> Option<u8> {
        self.status
    }

    /// Source files that the module's lines name, where they were found.
    pub fn sources(&self) -> &[Text] {
        &self.sources
    }

    /// Seeds of the schedules, in their order.
    pub fn seeds(&self) -> Vec<u64> {
        let first = self.first();
        self.schedules.keys().map(|number| first.wrapping_add(*number)).collect()
    }

    /// Numbers of the processes, in their order.
    pub fn processes(&self) -> impl Iterator<Item = u64> {
        self.schedules.keys().copied()
    }

    /// The seed of the first schedule.
    fn first(&self) -> u64 {
        self.run().map_or(0, |(head, _)| head.seed)
    }

    /// Where it breaks; what was played until now is looked at, too.
    pub fn broken(&self) -> Option<Break> {
        *self.broken.lock()
    }

    pub(super) fn break_at(&self, new: Break) {
        self.broken.lock().get_or_insert(new);
    }

    pub(super) fn chunks(&self, seed: u64) -> &[Chunk] {
        let number = seed.wrapping_sub(self.first());
        self.schedules.get(&number).map_or(&[], Vec::as_slice)
    }

    /// Reads what a chunk holds. The buffers are used again.
    pub(super) fn load(&self, chunk: &Chunk, stored: &mut Vec<u8>, bytes: &mut Vec<u8>) -> Result<(), Break> {
        stored.clear();
        stored.resize(chunk.header.stored as usize, 0);
        let read = self.bytes.read_at(chunk.at + HEADER as u64, stored);
        if read.is_ok() && unpack(&chunk.header, stored, bytes) {
            Ok(())
        } else {
            Err(Break::Damaged(chunk.at))
        }
    }

    fn look_through(&mut self, size: u64) -> io::Result<Result<(), Break>> {
        let mut at = START;
        let mut piece = vec![0; PIECE];
        let mut finished = false;
        while at < size {
            let rest = size - at;
            let mut raw = [0; HEADER];
            if rest < HEADER as u64 {
                return Ok(Err(if finished { Break::Damaged(at) } else { Break::CutOff(size) }));
            }
            self.bytes.read_at(at, &mut raw)?;
            let header = match Header::read(&raw) {
                Some(header) if !finished => header,
                _ => return Ok(Err(Break::Damaged(at))),
            };
            if u64::from(header.stored) > rest - HEADER as u64 {
                return Ok(Err(Break::CutOff(size)));
            }
            let chunk = Chunk { at, header };
            if self.checksum(&chunk, &raw, &mut piece)? != header.checksum {
                return Ok(Err(Break::Damaged(at)));
            }
            match self.keep(&chunk) {
                Ok(end) => finished = end,
                Err(broken) => return Ok(Err(broken)),
            }
            at += HEADER as u64 + u64::from(header.stored);
        }
        Ok(if finished { Ok(()) } else { Err(Break::CutOff(size)) })
    }

    fn checksum(&self, chunk: &Chunk, raw: &[u8; HEADER], piece: &mut [u8]) -> io::Result<u32> {
        let mut hasher = Header::hasher(raw);
        let (mut at, mut rest) = (chunk.at + HEADER as u64, chunk.header.stored as usize);
        while rest > 0 {
            let (now, _) = piece.split_at_mut(rest.min(PIECE));
            self.bytes.read_at(at, now)?;
            hasher.update(now);
            at += now.len() as u64;
            rest -= now.len();
        }
        Ok(hasher.finalize())
    }

    /// Keeps a chunk that is sound, or notes where it lies. Whether it is the last one.
    fn keep(&mut self, chunk: &Chunk) -> Result<bool, Break> {
        let damaged = Break::Damaged(chunk.at);
        let (mut stored, mut bytes) = (Vec::new(), Vec::new());
        match (chunk.header.kind, &mut self.start) {
            (Kind::Head, Start::Nothing) => {
                self.load(chunk, &mut stored, &mut bytes)?;
                let head: Head = serde_json::from_slice(&bytes).map_err(|_| damaged)?;
                if !head.is_possible() {
                    return Err(damaged);
                }
                self.start = Start::Run(head, String::new());
            }
            (Kind::Exec, Start::Nothing) => {
                self.load(chunk, &mut stored, &mut bytes)?;
                self.start = Start::Exec(serde_json::from_slice(&bytes).map_err(|_| damaged)?);
            }
            (Kind::Module, Start::Run(_, module)) if module.is_empty() => {
                self.load(chunk, &mut stored, &mut bytes)?;
                let text = String::from_utf8(bytes).map_err(|_| damaged)?;
                if let Start::Run(_, module) = &mut self.start {
                    *module = text;
                }
            }
            (Kind::Source, Start::Run(..) | Start::Exec(_)) => {
                self.load(chunk, &mut stored, &mut bytes)?;
                self.sources.push(serde_json::from_slice(&bytes).map_err(|_| damaged)?);
            }
            (Kind::Begin | Kind::Units | Kind::End | Kind::Done, Start::Run(..))
            | (Kind::Event | Kind::Units, Start::Exec(_)) => {
                self.schedules.entry(chunk.header.schedule).or_default().push(*chunk);
            }
            (Kind::Finish, Start::Run(..) | Start::Exec(_)) => {
                self.load(chunk, &mut stored, &mut bytes)?;
                let finish: Finish = serde_json::from_slice(&bytes).map_err(|_| damaged)?;
                if finish.schedules != self.schedules.len() as u64 {
                    return Err(damaged);
                }
                self.status = finish.status;
                return Ok(true);
            }
            _ => return Err(damaged),
        }
        Ok(false)
    }
}
