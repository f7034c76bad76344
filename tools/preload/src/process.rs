//! The one driver of a process: made by `cuInit`, locked for each call, gone in a forked child, written out at the end.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::lock_api::RawMutex as _;
use parking_lot::{Mutex, MutexGuard};
use ptxrace::session::exec::log::{Gap, Writer};
use ptxrace::session::exec::{Settings, VARIABLE};

use crate::api::Own;
use crate::code::{Answer, Code};
use crate::state::{Driver, ThreadId};

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);
/// The parent had a driver, which is of no use here.
static FORKED: AtomicBool = AtomicBool::new(false);
static HOOKS: Once = Once::new();

/// The calling thread, by a number that is never used again.
pub(crate) fn thread() -> ThreadId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static OWN: Cell<u64> = const { Cell::new(0) };
    }
    // A thread that is about to end may have no such storage left.
    OWN.try_with(|own| {
        if own.get() == 0 {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        own.get()
    })
    .unwrap_or(0)
}

/// Makes the driver, if there is none.
pub(crate) fn init() -> Answer {
    if FORKED.load(Ordering::Relaxed) {
        return Err(Code::NOT_INITIALIZED);
    }
    HOOKS.call_once(hook);
    let mut driver = DRIVER.lock();
    if driver.is_some() {
        return Ok(());
    }
    let settings = std::env::var(VARIABLE).ok().and_then(|text| Settings::parse(&text));
    let log = settings.as_ref().and_then(|settings| {
        let command = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
        Writer::create(&settings.folder, std::process::id(), command).ok()
    });
    let options = settings.as_ref().map(Settings::options).unwrap_or_default();
    let wanted = settings.map(|settings| settings.wanted).unwrap_or_default();
    *driver = Some(Driver::new(Box::new(Own), log, options, wanted));
    Ok(())
}

/// Runs a call on the driver.
pub(crate) fn with<T>(call: impl FnOnce(&mut Driver) -> Answer<T>) -> Answer<T> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(Code::NOT_INITIALIZED);
    }
    let mut driver = DRIVER.lock();
    call(driver.as_mut().ok_or(Code::NOT_INITIALIZED)?)
}

/// The same for what needs a context.
pub(crate) fn within<T>(call: impl FnOnce(&mut Driver) -> Answer<T>) -> Answer<T> {
    with(|driver| {
        driver.ready(thread())?;
        call(driver)
    })
}

/// Says why the run is not the whole truth, if there is a run.
pub(crate) fn gap(kind: Gap, detail: String) {
    let _ = with(|driver| {
        driver.gap(kind, detail);
        Ok(())
    });
}

/// The border to C: no panic crosses it.
pub(crate) fn guard(name: &str, call: impl FnOnce() -> Answer) -> u32 {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code.0,
        Err(_) => {
            let said = catch_unwind(AssertUnwindSafe(|| {
                gap(
                    Gap::Call,
                    format!("the wrapper failed in `{name}`: what followed may not have been checked"),
                );
            }));
            drop(said);
            Code::UNKNOWN.0
        }
    }
}

/// What has to be known of forks and of the end.
fn hook() {
    // A panic is told of in the report.
    std::panic::set_hook(Box::new(|_| {}));
    // SAFETY: the functions are fit to be called at these times: they take, free or try a lock, and the last writes files.
    unsafe {
        libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
        libc::atexit(at_exit);
    }
}

extern "C" fn before_fork() {
    std::mem::forget(DRIVER.lock());
}

extern "C" fn in_parent() {
    // SAFETY: `before_fork` has locked it in this thread.
    unsafe { DRIVER.raw().unlock() };
}

extern "C" fn in_child() {
    // SAFETY: `before_fork` has locked it in the thread that this one is a copy of.
    unsafe { DRIVER.raw().unlock() };
    if let Some(driver) = DRIVER.try_lock().as_mut().and_then(|driver| driver.take()) {
        // Nothing of it may be used or freed: other threads of the parent may have been at work in its memory.
        std::mem::forget(driver);
        FORKED.store(true, Ordering::Relaxed);
    }
}

extern "C" fn at_exit() {
    let finish = || {
        // Another thread may be in a launch that never ends.
        if let Some(mut driver) = DRIVER.try_lock() {
            if let Some(driver) = driver.as_mut() {
                driver.finish();
            }
            MutexGuard::unlock_fair(driver);
        }
    };
    drop(catch_unwind(AssertUnwindSafe(finish)));
}
