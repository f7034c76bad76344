//! Progress on a terminal's stderr, through indicatif.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Told how a run comes along, from any thread.
pub trait Progress: Sync {
    /// So many schedules will be run.
    fn begin(&self, schedules: u64);
    /// So many more bytes of records have been checked.
    fn checked(&self, bytes: u64);
    /// A schedule has been run.
    fn schedule(&self);
    /// All have.
    fn end(&self);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: u64) {}
    fn checked(&self, _: u64) {}
    fn schedule(&self) {}
    fn end(&self) {}
}

/// A bar for many schedules, a spinner for one. It is drawn on stderr at most twice a second.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    bytes: AtomicU64,
}

impl Bar {
    /// A bar that is not drawn yet.
    pub fn new() -> Self {
        Self { bar: ProgressBar::hidden(), bytes: AtomicU64::new(0) }
    }
}

impl Default for Bar {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for Bar {
    fn begin(&self, schedules: u64) {
        let template = if schedules > 1 {
            self.bar.set_length(schedules);
            "{bar:30} {pos}/{len} schedules, {msg} MiB of records, {elapsed}"
        } else {
            "{spinner} {msg} MiB of records, {elapsed}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_message("0");
        self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(2));
        self.bar.enable_steady_tick(Duration::from_millis(500));
    }

    fn checked(&self, bytes: u64) {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let mebibytes = |bytes: u64| bytes >> 20;
        // Messages are allocated, so only one that changes is made.
        if mebibytes(before) != mebibytes(before + bytes) {
            self.bar.set_message(mebibytes(before + bytes).to_string());
        }
    }

    fn schedule(&self) {
        self.bar.inc(1);
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
