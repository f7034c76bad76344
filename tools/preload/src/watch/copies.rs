//! Copies and memsets, and what they mean for order: which are awaited by the host follows the synchronisation behaviour that
//! the driver's documentation tells. Where it leaves that open, the host does not wait.

use ptxrace::engine::HostAccess;
use ptxrace::finding::AccessClass;

use super::{Stream, Watch};

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
    pub(crate) fn joined(self) -> Self {
        let width = self.width as u64;
        if self.height > 1 && self.to_pitch == width && self.from_pitch == width {
            return Self::one(self.to, self.from, self.width.saturating_mul(self.height));
        }
        self
    }

    pub(crate) fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// Where rows begin: to and from.
    pub(crate) fn starts(self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.height as u64).map(move |row| {
            let at = |base: u64, pitch: u64| base.wrapping_add(row.wrapping_mul(pitch));
            (at(self.to, self.to_pitch), at(self.from, self.from_pitch))
        })
    }
}

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Of this device.
    Device(u32),
    Managed,
    Pinned,
    Pageable,
}

impl Place {
    pub(crate) fn is_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Pageable)
    }
}

pub(crate) fn write(address: u64, bytes: u64) -> HostAccess {
    HostAccess { class: AccessClass::Write, address, bytes }
}

impl Watch {
    /// An operation of the host in a stream.
    pub(crate) fn operate(&mut self, call: &'static str, accesses: &[HostAccess], stream: Stream) {
        let order = self.streams.enqueue(stream);
        let index = order.index;
        self.observer.host(call, accesses, order, stream.0);
        self.begun(index);
    }

    /// Rows, which are joined and not empty, are copied.
    pub(crate) fn copied(
        &mut self,
        call: &'static str,
        (to, from): (Place, Place),
        rows: Rows,
        stream: Stream,
        timing: Timing,
    ) {
        if timing == Timing::Waits && from == Place::Pageable {
            // The stream is waited for before the data is staged; that it has arrived is not said.
            self.synchronize(stream);
        }
        // A copy from device to device in a default stream starts when all that both were given has ended, in whatever streams, and what
        // both are given later waits for it. That the same goes for third devices here may miss races.
        let two_devices = matches!((to, from), (Place::Device(to), Place::Device(from)) if to != from)
            && self.streams.is_legacy(stream);
        if two_devices {
            let all = self.streams.all();
            self.streams.wait(stream, &all);
        }
        let bytes = rows.width as u64;
        let mut accesses = Vec::new();
        for (at, source) in rows.starts() {
            if from != Place::Pageable {
                accesses.push(HostAccess { class: AccessClass::Read, address: source, bytes });
            }
            if to != Place::Pageable {
                accesses.push(write(at, bytes));
            }
        }
        self.operate(call, &accesses, stream);
        if two_devices {
            let done = self.streams.record(stream);
            self.streams.all_wait(&done);
        }
        let both = to.is_host() && from.is_host();
        if both || (timing == Timing::Waits && (to.is_host() || from == Place::Pinned)) {
            self.synchronize(stream);
        }
    }

    /// Rows, which are joined and not empty, are filled.
    pub(crate) fn filled(
        &mut self,
        call: &'static str,
        to: Place,
        rows: Rows,
        stream: Stream,
        timing: Timing,
    ) {
        let accesses: Vec<_> = rows.starts().map(|(at, _)| write(at, rows.width as u64)).collect();
        self.operate(call, &accesses, stream);
        if timing == Timing::Waits && to.is_host() {
            self.synchronize(stream);
        }
    }
}
