//! One file through parser and instrumentation, with the CPU time of this thread, which other threads do not disturb.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use ptxrace::instrument::edit::Edits;
use ptxrace::instrument::{CallMode, SiteTable, instrument};
use ptxrace::ptx;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// What was found out about a file.
#[derive(Default, Serialize)]
pub(super) struct Examined {
    /// No syntax error.
    pub(super) parsed: bool,
    /// Printed from the tree it is the same, byte for byte.
    pub(super) round_tripped: bool,
    /// Instrumented, and that has no syntax error.
    pub(super) instrumented: bool,
    /// Instructions that are logged.
    pub(super) sites: usize,
    /// Instructions that may touch memory and are not logged.
    pub(super) unlogged: usize,
    /// Size of the instrumented text.
    pub(super) instrumented_bytes: u64,
    /// Seconds to parse.
    pub(super) parse_seconds: f64,
    /// Seconds to parse, find the sites, instrument and print.
    pub(super) instrument_seconds: f64,
    /// The first failure of each stage.
    pub(super) failures: Vec<Failure>,
}

/// Why a stage did not do it.
#[derive(Clone, Serialize)]
pub(super) struct Failure {
    /// `read`, `parse`, `print`, `instrument`.
    pub(super) stage: &'static str,
    /// From 1; 0 if it is about the whole file.
    pub(super) line: usize,
    /// What went wrong.
    pub(super) message: String,
}

/// Reads a file and examines it. A panic is a failure like others, so that one file does not hide the rest.
pub(super) fn examine(path: &Path) -> Examined {
    let text = match read(path) {
        Ok(text) => text,
        Err(message) => {
            return Examined {
                failures: vec![Failure { stage: "read", line: 0, message }],
                ..Examined::default()
            };
        }
    };
    let mut examined = Examined::default();
    // The stage that panics has changed nothing that is looked at later.
    let done = catch_unwind(AssertUnwindSafe(|| stages(&text, &mut examined)));
    if let Err(panic) = done {
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        let stage = if examined.parsed { "instrument" } else { "parse" };
        let message = format!("panicked: {}", message.unwrap_or_default());
        examined.failures.push(Failure { stage, line: 0, message });
    }
    examined
}

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| format!("byte {} is no text", error.utf8_error().valid_up_to()))
}

fn stages(text: &str, examined: &mut Examined) {
    let mut fail = |stage, at: Option<usize>, message: String| {
        let line = at.map_or(0, |at| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count());
        examined.failures.push(Failure { stage, line, message });
    };
    let start = thread_time();
    let parsed = ptx::parse(text);
    examined.parse_seconds = (thread_time() - start).as_secs_f64();
    examined.parsed = parsed.errors.is_empty();
    if let Some(error) = parsed.errors.first() {
        fail("parse", Some(error.span.range().start), error.to_string());
    } else {
        match super::cover::print(text, &parsed.module) {
            Err(at) => fail("print", Some(at), "the tree has lost this".to_owned()),
            Ok(printed) => {
                let edited = Edits::default().apply(text);
                examined.round_tripped = printed == text && edited.is_ok_and(|edited| edited.text == text);
                if !examined.round_tripped {
                    fail("print", None, "the printed text differs".to_owned());
                }
            }
        }
    }

    let start = thread_time();
    let sites = SiteTable::new(&parsed.module);
    let instrumented = instrument(text, &parsed.module, &sites, CallMode::Local);
    examined.instrument_seconds = examined.parse_seconds + (thread_time() - start).as_secs_f64();
    examined.sites = sites.sites().len();
    examined.unlogged = sites.unlogged().len();
    if !examined.parsed {
        return;
    }
    match instrumented {
        Err(error) => fail("instrument", error.span().map(|span| span.range().start), error.to_string()),
        Ok(instrumented) => {
            examined.instrumented_bytes = instrumented.text.len() as u64;
            let again = ptx::parse(&instrumented.text);
            examined.instrumented = again.errors.is_empty();
            if let Some(error) = again.errors.first() {
                let line = instrumented.text.get(error.span.range()).unwrap_or_default();
                fail("instrument", None, format!("the new text has a syntax error: {error}: `{line}`"));
            }
        }
    }
}

/// CPU time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
