//! Copies and memsets, carried out.

use super::memory::Kind;
use super::{Driver, Stream};
use crate::code::{Answer, Code};
use crate::graph::{Fill, Work};
use crate::watch::{Place, Rows, Timing};

/// Where memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Device,
    Host,
    /// Its address tells.
    Any,
}

impl Driver {
    pub(super) fn place(&self, address: u64, bytes: usize, side: Side) -> Answer<Place> {
        let inside = |(base, size): (u64, u64)| (address - base).saturating_add(bytes as u64) <= size;
        let found = self.allocation(address);
        let place = match (found.map(|found| found.kind), self.range(address)) {
            (Some(Kind::Managed), _) => Place::Managed,
            (Some(Kind::Pinned | Kind::Registered), _) => Place::Pinned,
            (_, Some(range)) if inside(range) => {
                Place::Device(found.map_or(self.at_hand, |found| found.device))
            }
            (_, Some(_)) => return Err(Code::INVALID_VALUE),
            (_, None) => Place::Pageable,
        };
        match (side, place) {
            (Side::Device, Place::Pageable) | (Side::Host, Place::Device(_)) => Err(Code::INVALID_VALUE),
            _ => Ok(place),
        }
    }

    /// Copies rows.
    pub(crate) fn copy(
        &mut self,
        call: &'static str,
        (to, from): (Side, Side),
        rows: Rows,
        stream: Stream,
        timing: Timing,
    ) -> Answer {
        let rows = rows.joined();
        if rows.is_empty() {
            return Ok(());
        }
        if self.is_capturing(stream) {
            return self.capture_copy((to, from), rows, stream);
        }
        let (to, from) = (self.place(rows.to, rows.width, to)?, self.place(rows.from, rows.width, from)?);
        let mut bytes = vec![0; rows.width];
        for (at, source) in rows.starts() {
            self.bytes(from, source, &mut bytes)?;
            self.put(to, at, &bytes)?;
        }
        self.watch.copied(call, (to, from), rows, stream, timing);
        Ok(())
    }

    pub(super) fn bytes(&mut self, place: Place, address: u64, to: &mut [u8]) -> Answer {
        match place {
            Place::Device(_) => {
                let from = self.device.read(address, to.len()).map_err(|_| Code::INVALID_VALUE)?;
                to.copy_from_slice(from);
            }
            _ => self.host.read(address, to),
        }
        Ok(())
    }

    pub(super) fn put(&mut self, place: Place, address: u64, from: &[u8]) -> Answer {
        match place {
            Place::Device(_) => {
                let to = self.device.write(address, from.len()).map_err(|_| Code::INVALID_VALUE)?;
                to.copy_from_slice(from);
            }
            _ => self.host.write(address, from),
        }
        Ok(())
    }

    /// Fills rows with a pattern.
    pub(crate) fn fill(
        &mut self,
        call: &'static str,
        pattern: &[u8],
        rows: Rows,
        stream: Stream,
        timing: Timing,
    ) -> Answer {
        let rows = rows.joined();
        if rows.is_empty() {
            return Ok(());
        }
        if self.is_capturing(stream) {
            return self.capture(stream, Work::Fill(Fill::of_rows(rows, pattern)));
        }
        let to = self.place(rows.to, rows.width, Side::Device)?;
        let row: Vec<u8> = pattern.iter().copied().cycle().take(rows.width).collect();
        for (at, _) in rows.starts() {
            self.put(to, at, &row)?;
        }
        self.watch.filled(call, to, rows, stream, timing);
        Ok(())
    }
}
