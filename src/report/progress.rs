//! Progress on a terminal's stderr, through indicatif.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Told how a run comes along, from any thread.
pub trait Progress: Sync {
    /// So many schedules will be run.
    fn begin(&self, schedules: u64);
    /// More records have been checked.
    fn records(&self, more: u64);
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
    fn records(&self, _: u64) {}
    fn schedule(&self) {}
    fn end(&self) {}
}

/// A bar for many schedules, a spinner for one. It is drawn on stderr at most twice a second.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    records: AtomicU64,
}

impl Bar {
    /// A bar that is not drawn yet.
    pub fn new() -> Self {
        Self { bar: ProgressBar::hidden(), records: AtomicU64::new(0) }
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
            "{bar:30} {pos}/{len} schedules, {msg} records, {elapsed}"
        } else {
            "{spinner} {msg} records, {elapsed}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_message("0");
        self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(2));
        self.bar.enable_steady_tick(Duration::from_millis(500));
    }

    fn records(&self, more: u64) {
        let records = self.records.fetch_add(more, Ordering::Relaxed) + more;
        // Messages are allocated, so not every call makes one.
        if records / 65_536 != (records - more) / 65_536 {
            self.bar.set_message(records.to_string());
        }
    }

    fn schedule(&self) {
        self.bar.inc(1);
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
