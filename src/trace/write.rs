//! Writing. What cannot be written ends the trace, not the run.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use parking_lot::Mutex;
use serde::Serialize;

use super::chunk::{Kind, pack};
use super::units::Gathered;
use super::wire::{Done, ExecHead, Finish, Head, Text};
use super::{MAGIC, VERSION};
use crate::abi::Unit;
use crate::backend::{BackendError, LaunchEnd, LaunchInfo, Outcome};

/// Bytes of a tape that are copied at once.
const COPIED: usize = 1 << 20;

/// Writes a trace, whose schedules may run side by side.
pub struct Writer {
    seed: u64,
    out: Mutex<Out>,
}

struct Out {
    to: Box<dyn Write + Send>,
    failed: Option<io::Error>,
}

impl Out {
    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.to.write_all(bytes).err();
        }
    }
}

impl Writer {
    /// Begins the trace of a run.
    pub fn new(
        to: Box<dyn Write + Send>,
        head: &Head,
        module: &str,
        sources: impl IntoIterator<Item = Text>,
    ) -> io::Result<Self> {
        let writer = Self::start(to, head.seed);
        let mut packed = Vec::new();
        writer.json(Kind::Head, 0, head, &mut packed);
        writer.chunk(Kind::Module, 0, module.as_bytes(), &mut packed);
        sources.into_iter().for_each(|source| writer.source(&source));
        writer.so_far().map(|()| writer)
    }

    /// Begins the trace of a program that runs under `exec`, whose processes have tapes of their own.
    pub fn exec(to: Box<dyn Write + Send>, head: &ExecHead) -> io::Result<Self> {
        let writer = Self::start(to, 0);
        writer.json(Kind::Exec, 0, head, &mut Vec::new());
        writer.so_far().map(|()| writer)
    }

    fn start(to: Box<dyn Write + Send>, seed: u64) -> Self {
        let mut out = Out { to, failed: None };
        out.write(MAGIC);
        out.write(&VERSION.to_le_bytes());
        Self { seed, out: Mutex::new(out) }
    }

    /// Whether all could be written.
    fn so_far(&self) -> io::Result<()> {
        self.out.lock().failed.take().map_or(Ok(()), Err)
    }

    /// A source file.
    pub fn source(&self, source: &Text) {
        self.json(Kind::Source, 0, source, &mut Vec::new());
    }

    /// Adds the tape of a process, but for a chunk at its end that was cut off. Whether there is any.
    pub fn append(&self, tape: &File) -> io::Result<bool> {
        let whole = super::process::whole_chunks(tape)?;
        let mut out = self.out.lock();
        if out.failed.is_none() {
            let mut from = BufReader::with_capacity(COPIED, tape.take(whole));
            out.failed = io::copy(&mut from, &mut out.to).err();
        }
        Ok(whole > 0)
    }

    /// The schedule of this seed.
    pub fn schedule(&self, seed: u64) -> Tape<'_> {
        let number = seed.wrapping_sub(self.seed);
        Tape { writer: self, number, gathered: Gathered::default(), packed: Vec::new() }
    }

    /// Ends a trace that has so many schedules, or processes; of a program, with the status that it has ended with.
    pub fn finish(self, schedules: u64, status: Option<u8>) -> io::Result<()> {
        self.json(Kind::Finish, 0, &Finish { schedules, status }, &mut Vec::new());
        let mut out = self.out.into_inner();
        out.failed.take().map_or(Ok(()), Err)?;
        out.to.flush()
    }

    fn chunk(&self, kind: Kind, schedule: u64, bytes: &[u8], packed: &mut Vec<u8>) {
        let done = pack(kind, schedule, bytes, packed);
        let mut out = self.out.lock();
        match done {
            Ok(()) => out.write(packed),
            Err(error) => out.failed = out.failed.take().or(Some(error)),
        }
    }

    fn json(&self, kind: Kind, schedule: u64, value: &impl Serialize, packed: &mut Vec<u8>) {
        match serde_json::to_vec(value) {
            Ok(bytes) => self.chunk(kind, schedule, &bytes, packed),
            Err(error) => {
                let mut out = self.out.lock();
                out.failed = out.failed.take().or(Some(error.into()));
            }
        }
    }
}

/// Writes one schedule.
pub struct Tape<'w> {
    writer: &'w Writer,
    number: u64,
    gathered: Gathered,
    packed: Vec<u8>,
}

impl Tape<'_> {
    /// A launch begins.
    pub fn begin(&mut self, info: &LaunchInfo) {
        self.writer.json(Kind::Begin, self.number, info, &mut self.packed);
    }

    /// Whole records.
    pub fn records(&mut self, units: &[Unit]) {
        let Self { writer, number, gathered, packed } = self;
        gathered.add(units, |bytes| writer.chunk(Kind::Units, *number, bytes, packed));
    }

    /// The launch has ended.
    pub fn end(&mut self, end: &LaunchEnd) {
        self.flush();
        self.writer.json(Kind::End, self.number, end, &mut self.packed);
    }

    /// The schedule has ended.
    pub fn done(mut self, ran: &Result<Outcome, BackendError>) {
        self.flush();
        let done = match ran {
            Ok(outcome) => Done { stop: outcome.stop.clone(), failure: None },
            Err(error) => Done { stop: None, failure: Some(error.clone()) },
        };
        self.writer.json(Kind::Done, self.number, &done, &mut self.packed);
    }

    fn flush(&mut self) {
        let Self { writer, number, gathered, packed } = self;
        gathered.flush(|bytes| writer.chunk(Kind::Units, *number, bytes, packed));
    }
}
