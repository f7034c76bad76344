//! Writing. What cannot be written ends the trace, not the run.

use std::io::{self, Write};

use parking_lot::Mutex;
use serde::Serialize;

use super::chunk::{Kind, MOST_UNITS, pack};
use super::units::lay;
use super::wire::{Done, Finish, Head, Text};
use super::{MAGIC, VERSION};
use crate::abi::{MAX_UNITS, Unit, decode};
use crate::backend::{BackendError, LaunchEnd, LaunchInfo, Outcome};

/// Units that are gathered before they are written.
const GATHERED: usize = MOST_UNITS / size_of::<Unit>() - MAX_UNITS;

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
    /// Begins a trace.
    pub fn new(
        to: Box<dyn Write + Send>,
        head: &Head,
        module: &str,
        sources: impl IntoIterator<Item = Text>,
    ) -> io::Result<Self> {
        let mut out = Out { to, failed: None };
        out.write(MAGIC);
        out.write(&VERSION.to_le_bytes());
        let writer = Self { seed: head.seed, out: Mutex::new(out) };
        let mut packed = Vec::new();
        writer.json(Kind::Head, 0, head, &mut packed);
        writer.chunk(Kind::Module, 0, module.as_bytes(), &mut packed);
        sources.into_iter().for_each(|source| writer.json(Kind::Source, 0, &source, &mut packed));
        let failed = writer.out.lock().failed.take();
        failed.map_or(Ok(writer), Err)
    }

    /// The schedule of this seed.
    pub fn schedule(&self, seed: u64) -> Tape<'_> {
        let number = seed.wrapping_sub(self.seed);
        Tape { writer: self, number, units: Vec::new(), bytes: Vec::new(), packed: Vec::new() }
    }

    /// Ends a trace that has so many schedules.
    pub fn finish(self, schedules: u64) -> io::Result<()> {
        self.json(Kind::Finish, 0, &Finish { schedules }, &mut Vec::new());
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
    units: Vec<Unit>,
    bytes: Vec<u8>,
    packed: Vec<u8>,
}

impl Tape<'_> {
    /// A launch begins.
    pub fn begin(&mut self, info: &LaunchInfo) {
        self.writer.json(Kind::Begin, self.number, info, &mut self.packed);
    }

    /// Whole records.
    pub fn records(&mut self, mut units: &[Unit]) {
        while !units.is_empty() {
            let room = GATHERED.saturating_sub(self.units.len());
            let (now, rest) = units.split_at(whole(units, room));
            self.units.extend_from_slice(now);
            units = rest;
            if self.units.len() >= GATHERED || !rest.is_empty() {
                self.flush();
            }
        }
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
        if !self.units.is_empty() {
            lay(&self.units, &mut self.bytes);
            self.units.clear();
            self.writer.chunk(Kind::Units, self.number, &self.bytes, &mut self.packed);
        }
    }
}

/// How many units there is room for, but for whole records: the last one may reach over.
fn whole(units: &[Unit], room: usize) -> usize {
    if units.len() <= room {
        return units.len();
    }
    let mut at = 0;
    while at < room.max(1) {
        match decode(units.get(at..).unwrap_or(&[])) {
            Ok(Some(record)) => at += record.units().len(),
            // What is damaged stays so wherever it is cut.
            _ => return units.len().min(room.max(1)),
        }
    }
    at
}
