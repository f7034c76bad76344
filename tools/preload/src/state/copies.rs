//! Copies and memsets, and what they mean for order: which are awaited by the host follows the synchronisation behaviour that
//! the driver's documentation tells. Where it leaves that open, the host does not wait.

use ptxrace::engine::HostAccess;
use ptxrace::finding::{AccessClass, HOST_SITES};
use ptxrace::instrument::SiteId;
use ptxrace::session::exec::log::Line;

use super::memory::Kind;
use super::{Driver, Stream};
use crate::code::{Answer, Code};

/// Whether the call has `Async` in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// No.
    Waits,
    /// Yes.
    Async,
}

/// Rows of bytes, as many on both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) to: u64,
    pub(crate) from: u64,
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Bytes between the starts of two rows.
    pub(crate) to_pitch: u64,
    pub(crate) from_pitch: u64,
}

impl Rows {
    /// Bytes without a gap.
    pub(crate) fn one(to: u64, from: u64, bytes: usize) -> Self {
        Self { to, from, width: bytes, height: 1, to_pitch: 0, from_pitch: 0 }
    }

    /// Rows that follow each other without a gap are one.
    fn joined(self) -> Self {
        let width = self.width as u64;
        if self.height > 1 && self.to_pitch == width && self.from_pitch == width {
            return Self::one(self.to, self.from, self.width.saturating_mul(self.height));
        }
        self
    }

    fn starts(self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.height as u64).map(move |row| {
            let at = |base: u64, pitch: u64| base.wrapping_add(row.wrapping_mul(pitch));
            (at(self.to, self.to_pitch), at(self.from, self.from_pitch))
        })
    }
}

/// Where memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Device,
    Host,
    /// Its address tells.
    Any,
}

/// The same, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Device,
    Managed,
    Pinned,
    Pageable,
}

impl Place {
    fn is_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Pageable)
    }
}

pub(super) fn write(address: u64, bytes: u64) -> HostAccess {
    HostAccess { class: AccessClass::Write, address, bytes }
}

impl Driver {
    /// An operation of the host in a stream.
    pub(super) fn operate(&mut self, call: &'static str, accesses: &[HostAccess], stream: Stream) {
        let order = self.streams.enqueue(stream);
        let kind = self.calls.iter().position(|other| *other == call).unwrap_or_else(|| {
            self.calls.push(call);
            self.calls.len() - 1
        });
        let site = SiteId(HOST_SITES.0 + kind as u32);
        self.say(&Line::Host { index: order.index, call: call.into(), stream: stream.0 });
        self.engine.host_operation(site, accesses, order);
        self.report(false);
    }

    fn place(&self, address: u64, bytes: usize, side: Side) -> Answer<Place> {
        let inside = |(base, size): (u64, u64)| (address - base).saturating_add(bytes as u64) <= size;
        let place = match (self.allocation(address).map(|found| found.kind), self.range(address)) {
            (Some(Kind::Managed), _) => Place::Managed,
            (Some(Kind::Pinned | Kind::Registered), _) => Place::Pinned,
            (_, Some(range)) if inside(range) => Place::Device,
            (_, Some(_)) => return Err(Code::INVALID_VALUE),
            (_, None) => Place::Pageable,
        };
        match (side, place) {
            (Side::Device, Place::Pageable) | (Side::Host, Place::Device) => Err(Code::INVALID_VALUE),
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
        if rows.width == 0 || rows.height == 0 {
            return Ok(());
        }
        let (to, from) = (self.place(rows.to, rows.width, to)?, self.place(rows.from, rows.width, from)?);
        if timing == Timing::Waits && from == Place::Pageable {
            // The stream is waited for before the data is staged; that it has arrived is not said.
            self.streams.synchronize(stream);
        }
        let mut accesses = Vec::new();
        let mut bytes = vec![0; rows.width];
        for (at, source) in rows.starts() {
            self.bytes(from, source, &mut bytes)?;
            self.put(to, at, &bytes)?;
            let width = rows.width as u64;
            if from != Place::Pageable {
                accesses.push(HostAccess { class: AccessClass::Read, address: source, bytes: width });
            }
            if to != Place::Pageable {
                accesses.push(write(at, width));
            }
        }
        self.operate(call, &accesses, stream);
        let both = to.is_host() && from.is_host();
        if both || (timing == Timing::Waits && (to.is_host() || from == Place::Pinned)) {
            self.streams.synchronize(stream);
        }
        Ok(())
    }

    fn bytes(&mut self, place: Place, address: u64, to: &mut [u8]) -> Answer {
        match place {
            Place::Device => {
                let from = self.device.read(address, to.len()).map_err(|_| Code::INVALID_VALUE)?;
                to.copy_from_slice(from);
            }
            _ => self.host.read(address, to),
        }
        Ok(())
    }

    fn put(&mut self, place: Place, address: u64, from: &[u8]) -> Answer {
        match place {
            Place::Device => {
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
        if rows.width == 0 || rows.height == 0 {
            return Ok(());
        }
        let to = self.place(rows.to, rows.width, Side::Device)?;
        let row: Vec<u8> = pattern.iter().copied().cycle().take(rows.width).collect();
        let mut accesses = Vec::new();
        for (at, _) in rows.starts() {
            self.put(to, at, &row)?;
            accesses.push(write(at, rows.width as u64));
        }
        self.operate(call, &accesses, stream);
        if timing == Timing::Waits && to.is_host() {
            self.streams.synchronize(stream);
        }
        Ok(())
    }
}
