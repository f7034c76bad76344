//! Records of native runs: tickets, encoding and delivery in batches.

use super::image::LoggedSite;
use crate::abi::{Encoder, LANES, Lanes, Unit};
use crate::backend::{LaunchEnd, LaunchInfo, Notice, Sink};

/// Units that are delivered together.
const BATCH: usize = 4096;

/// Writes the records of one launch.
pub(super) struct Recorder<'s> {
    sink: &'s mut dyn Sink,
    units: Vec<Unit>,
    records: u64,
    ticket: u64,
    /// Addresses, barrier words or masks of the record to come.
    pub(super) a: Lanes,
    /// Values read.
    pub(super) read: Lanes,
    /// Values written.
    pub(super) written: Lanes,
}

/// Who executes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who {
    pub(super) block: u32,
    pub(super) warp: u32,
}

impl<'s> Recorder<'s> {
    pub(super) fn new(sink: &'s mut dyn Sink) -> Self {
        Self {
            sink,
            units: Vec::with_capacity(BATCH + 128),
            records: 0,
            ticket: 1,
            a: [0; LANES],
            read: [0; LANES],
            written: [0; LANES],
        }
    }

    pub(super) fn begin(&mut self, info: &LaunchInfo) {
        self.sink.begin(info);
    }

    /// The next ticket, if the site takes any.
    pub(super) fn draw(&mut self, site: LoggedSite) -> u64 {
        if !site.payload.tickets {
            return 0;
        }
        let ticket = self.ticket;
        self.ticket += 1;
        ticket
    }

    /// The last ticket drawn so far, if the site takes any.
    pub(super) fn last_ticket(&self, site: LoggedSite) -> u64 {
        if site.payload.tickets { self.ticket - 1 } else { 0 }
    }

    /// Writes the record of `site` with the values in `a`, `read` and `written`.
    pub(super) fn write(&mut self, site: LoggedSite, mask: u32, who: Who, tickets: (u64, u64)) {
        if mask == 0 {
            return;
        }
        Encoder {
            site: site.id.0,
            mask,
            block: who.block,
            warp: who.warp as u8,
            payload: site.payload,
            tickets,
            a: &self.a,
            read: &self.read,
            written: &self.written,
        }
        .encode(&mut self.units);
        self.records += 1;
        if self.units.len() >= BATCH {
            self.flush();
        }
    }

    /// Takes records that device code wrote.
    pub(super) fn pass(&mut self, units: &[Unit], records: u64) {
        self.units.extend_from_slice(units);
        self.records += records;
        if self.units.len() >= BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.units.is_empty() {
            self.sink.records(&self.units);
            self.units.clear();
        }
    }

    /// Delivers what is left and ends the launch.
    pub(super) fn end(&mut self, unlogged: Vec<u32>, notices: Vec<Notice>) {
        self.flush();
        let records = self.records;
        self.sink.end(&LaunchEnd { records, unlogged, notices, ..LaunchEnd::default() });
    }
}
