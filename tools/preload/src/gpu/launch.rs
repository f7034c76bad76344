//! Launches: one after the other, each waited for while its records are read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ptxrace::backend::gpu::Damaged;
use ptxrace::backend::{Fault, FaultKind, Launch, LaunchEnd, LaunchInfo, Sink, Stop};
use ptxrace::session::exec::log::Gap;

use super::ring::Rings;
use super::{GIVEN_UP, Gpu, driver, given_up};
use crate::code::{Code, name};
use crate::watch::Stream;

/// How long to sleep while nothing happens: from, to.
const IDLE: (Duration, Duration) = (Duration::from_micros(5), Duration::from_micros(200));

/// A launch, as the program wants it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    pub(super) function: u64,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) cluster: Option<[u32; 3]>,
    pub(super) shared: u32,
    /// The handle, as the call means it: `CU_STREAM_LEGACY` or `CU_STREAM_PER_THREAD` where it is none.
    pub(super) stream: u64,
    /// What it is ordered by, if not by that stream.
    pub(super) branch: Option<Stream>,
}

/// Takes no records.
struct Nowhere;

impl Sink for Nowhere {
    fn begin(&mut self, _: &LaunchInfo) {}
    fn records(&mut self, _: &[ptxrace::abi::Unit]) {}
    fn end(&mut self, _: &LaunchEnd) {}
}

impl Gpu {
    /// Launches a kernel by calling the driver with the program's own arguments.
    pub(super) fn launch(&mut self, config: &Config, launch: impl Fn(u64) -> u32) -> u32 {
        let go = || launch(config.function);
        let Some(kernel) = self.kernel(config.function) else {
            self.unseen(config.function);
            return go();
        };
        let Some(facts) = self.facts(&kernel) else {
            self.unseen(config.function);
            return go();
        };
        if given_up() {
            return go();
        }
        if driver::is_capturing(config.stream) {
            // It becomes a node of a graph, which is checked when that is launched.
            return go();
        }
        let context = driver::current();
        let checked = self.watch.wants(&kernel.name);
        let control = match self.control(context) {
            Ok(control) => control,
            Err(code) => {
                self.watch.gap(Gap::Call, format!("there is no memory for records ({})", said(code)));
                return go();
            }
        };
        if let Err(code) = self.ready(kernel.module, context, if checked { control } else { 0 }) {
            let detail = format!(
                "kernel `{}` was not checked: its module cannot be prepared ({})",
                kernel.name,
                said(code)
            );
            self.watch.gap(Gap::Call, detail);
            return go();
        }
        let stream = config.branch.unwrap_or_else(|| self.stream(config.stream));
        let begun = Launch {
            kernel: kernel.name.clone(),
            grid: config.grid,
            block: config.block,
            cluster: config.cluster.or(facts.cluster),
            shared: config.shared,
            device: driver::ordinal(),
            stream: stream.0,
            after: Vec::new(),
            args: Vec::new(),
        };
        let index = self.watch.begin_launch(&begun, facts.number, stream, checked);
        let mut end =
            LaunchEnd { unlogged: facts.unlogged, unseen_order: facts.unseen_order, ..LaunchEnd::default() };
        let mut stop = None;
        let mut code = go();
        if matches!(Code(code), Code::LAUNCH_OUT_OF_RESOURCES | Code::COOPERATIVE_LAUNCH_TOO_LARGE)
            && let Some(plain) = self.plain(&kernel)
        {
            // What logging costs does not fit beside what the kernel needs.
            driver::alike(plain, config.function);
            let why = format!("kernel `{}` needs all of the device: it was launched as it is", kernel.name);
            self.watch.gap(Gap::Opaque, why);
            code = launch(plain);
            self.watch.end_launch(index, end, None);
            return code;
        }
        if !checked {
            self.silent = true;
        }
        match self.rings.get_mut(&context) {
            Some(rings) if code == 0 && checked => {
                let images = self.watch.textures.images();
                let mut tap = self.watch.tap(true);
                let counter = rings.number;
                tap.begin(&LaunchInfo { index, images, counter, ..LaunchInfo::default() });
                let watched = watch(rings, config.stream, self.options.timeout, &mut tap);
                end.records = watched.records;
                tap.end(&end);
                stop = watched.stop(index, self.options.timeout);
                if let Some(damaged) = watched.damaged {
                    self.watch.gap(Gap::Degraded, format!("records are damaged: {damaged}"));
                }
            }
            _ => {}
        }
        if code != 0 {
            let detail = format!("the driver refused a launch of `{}` ({})", kernel.name, said(Code(code)));
            self.watch.gap(Gap::Call, detail);
        }
        self.watch.end_launch(index, end, stop);
        if given_up() {
            self.give_up(context);
        }
        code
    }

    /// The control block of a context, made with its rings if need be.
    fn control(&mut self, context: u64) -> Result<u64, Code> {
        if let Some(rings) = self.rings.get(&context) {
            return Ok(rings.control);
        }
        let rings = Rings::new(self.rings_made)?;
        self.rings_made += 1;
        let control = rings.control;
        self.rings.insert(context, rings);
        Ok(control)
    }

    /// A kernel without PTX is launched.
    fn unseen(&mut self, function: u64) {
        let name = driver::name_of(function).unwrap_or_else(|| "of unknown name".into());
        if self.opaque.insert(name.clone()) {
            self.watch.not_instrumented(name);
        }
    }

    /// A kernel runs on that nobody waits for: its records are thrown away, or it would wait for room for ever.
    fn give_up(&mut self, context: u64) {
        self.watch.gap(Gap::Call, "after a launch that took too long, nothing more was checked".into());
        let Some(mut rings) = self.rings.remove(&context) else { return };
        let drain = move || {
            while rings.round(&mut Nowhere, || false).is_ok() {
                std::thread::sleep(IDLE.1);
            }
        };
        // Without a thread the kernel waits for ever, which the program's own limits have to end.
        let _ = quiet(|| std::thread::Builder::new().spawn(drain));
    }
}

fn said(code: Code) -> String {
    name(code.0).map_or_else(|| format!("error {}", code.0), |name| name.to_string_lossy().into_owned())
}

/// What came of watching.
#[derive(Default)]
struct Watched {
    records: u64,
    late: bool,
    failed: Option<Code>,
    damaged: Option<Damaged>,
}

impl Watched {
    fn stop(&self, launch: u32, timeout: Option<Duration>) -> Option<Stop> {
        if let Some(code) = self.failed {
            let detail = format!("the device stopped: {}", said(code));
            return Some(Stop::Fault(Fault {
                kind: FaultKind::Device,
                launch,
                thread: None,
                at: None,
                detail,
            }));
        }
        self.late.then(|| Stop::Timeout { after: timeout.unwrap_or_default(), warps: Vec::new() })
    }
}

/// Starts something with all signals blocked, so that threads which it makes never run the program's handlers.
fn quiet<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are valid places; the thread's own mask is put back.
    unsafe {
        let (mut all, mut own) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        let changed = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut own) == 0;
        let started = start();
        if changed {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const own, std::ptr::null_mut());
        }
        started
    }
}

/// Waits until a stream is idle, and hands on the records meanwhile. The driver is asked by this thread and the rings are
/// read by another, which calls nothing of the driver: a call may have to wait for locks that the program holds.
fn watch(rings: &mut Rings, stream: u64, timeout: Option<Duration>, sink: &mut dyn Sink) -> Watched {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let (ended, mut watched) = (AtomicBool::new(false), Watched::default());
    std::thread::scope(|scope| {
        let drain = quiet(|| {
            std::thread::Builder::new().spawn_scoped(scope, || {
                let (mut records, mut idle) = (0, IDLE.0);
                loop {
                    // Asked first, so that the round after the end sees all that was written.
                    let last = ended.load(Ordering::Acquire);
                    match rings.round(sink, given_up) {
                        Ok(0) if last => return (records, None),
                        Ok(0) => {
                            std::thread::sleep(idle);
                            idle = (idle * 2).min(IDLE.1);
                        }
                        Ok(more) => {
                            records += more;
                            idle = IDLE.0;
                        }
                        Err(damaged) => return (records, Some(damaged)),
                    }
                    if given_up() {
                        return (records, None);
                    }
                }
            })
        });
        let mut idle = IDLE.0;
        loop {
            match driver::is_idle(stream) {
                Ok(true) => break,
                Ok(false) => {}
                Err(code) => {
                    watched.failed = Some(code);
                    break;
                }
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                watched.late = true;
                GIVEN_UP.store(true, Ordering::Relaxed);
                break;
            }
            std::thread::sleep(idle);
            idle = (idle * 2).min(IDLE.1);
        }
        ended.store(true, Ordering::Release);
        match drain.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok((records, damaged))) => (watched.records, watched.damaged) = (records, damaged),
            _ => watched.failed = watched.failed.or(Some(Code::UNKNOWN)),
        }
    });
    watched
}
