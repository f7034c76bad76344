//! The tape of one process under `exec`: chunks in a file of its own, of which `Writer::append` makes a trace. The process writes
//! it as things happen, so that it outlives a crash.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use super::chunk::{HEADER, Header, Kind, pack};
use super::read::ReadAt;
use super::units::Gathered;
use crate::abi::Unit;

/// Bytes of events that are gathered before they are written.
const MOST_EVENTS: usize = 1 << 20;

/// Writes the tape of a process: what happens in it, as JSON of the writer's own, and records between.
#[derive(Debug)]
pub struct ProcessTape {
    path: PathBuf,
    number: u64,
    events: Vec<u8>,
    gathered: Gathered,
    packed: Vec<u8>,
}

impl ProcessTape {
    /// Begins the tape of the process of this number, in a file that is not there yet.
    pub fn create(path: PathBuf, number: u64) -> io::Result<Self> {
        OpenOptions::new().write(true).create_new(true).open(&path)?;
        let (events, packed) = (Vec::new(), Vec::new());
        Ok(Self { path, number, events, gathered: Gathered::default(), packed })
    }

    /// Something happens.
    pub fn event(&mut self, event: &impl Serialize) -> io::Result<()> {
        self.flush_records()?;
        serde_json::to_writer(&mut self.events, event)?;
        self.events.push(b'\n');
        if self.events.len() >= MOST_EVENTS { self.flush_events() } else { Ok(()) }
    }

    /// Whole records come.
    pub fn records(&mut self, units: &[Unit]) -> io::Result<()> {
        self.flush_events()?;
        let Self { path, number, gathered, packed, .. } = self;
        let mut done = Ok(());
        gathered.add(units, |bytes| {
            if done.is_ok() {
                done = append(path, Kind::Units, *number, bytes, packed);
            }
        });
        done
    }

    /// Writes what has come so far.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flush_records()?;
        self.flush_events()
    }

    fn flush_events(&mut self) -> io::Result<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        let done = append(&self.path, Kind::Event, self.number, &self.events, &mut self.packed);
        self.events.clear();
        done
    }

    fn flush_records(&mut self) -> io::Result<()> {
        let Self { path, number, gathered, packed, .. } = self;
        let mut done = Ok(());
        gathered.flush(|bytes| done = append(path, Kind::Units, *number, bytes, packed));
        done
    }
}

/// Adds a chunk. The file is opened each time: the program may close descriptors it did not open.
fn append(path: &PathBuf, kind: Kind, number: u64, bytes: &[u8], packed: &mut Vec<u8>) -> io::Result<()> {
    pack(kind, number, bytes, packed)?;
    OpenOptions::new().append(true).open(path)?.write_all(packed)
}

/// How many bytes of a tape are whole chunks.
pub(super) fn whole_chunks(tape: &File) -> io::Result<u64> {
    let size = tape.size()?;
    let mut at = 0;
    while size - at >= HEADER as u64 {
        let mut raw = [0; HEADER];
        tape.read_at(at, &mut raw)?;
        let header = Header::read(&raw).ok_or(io::ErrorKind::InvalidData)?;
        match at + HEADER as u64 + u64::from(header.stored) {
            end if end <= size => at = end,
            _ => break,
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_that_was_cut_off_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tape");
        let mut tape = ProcessTape::create(path.clone(), 7).unwrap();
        tape.event(&"one").unwrap();
        tape.flush().unwrap();
        let first = std::fs::metadata(&path).unwrap().len();
        tape.event(&"two").unwrap();
        tape.flush().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..=bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let whole = whole_chunks(&File::open(&path).unwrap()).unwrap();
            let chunks = [0, first, bytes.len() as u64].into_iter().filter(|end| *end <= length as u64);
            assert_eq!(Some(whole), chunks.max());
        }
    }

    #[test]
    fn what_cannot_be_written_is_an_error_once_it_is_flushed() {
        let full = PathBuf::from("/dev/full");
        if !full.exists() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tape");
        let mut tape = ProcessTape::create(path.clone(), 7).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(full, &path).unwrap();
        tape.event(&"one").unwrap();
        assert_eq!(tape.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(ProcessTape::create(path, 7).is_err());
    }
}
