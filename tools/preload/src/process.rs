//! What a process has: nothing until its first call, then either the emulator's driver or the one that watches the real driver,
//! locked for each call, gone in a forked child, written out at the end.

use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};

use parking_lot::lock_api::RawMutex as _;
use parking_lot::{Mutex, MutexGuard};
use ptxrace::engine::Analysis;
use ptxrace::session::exec::log::Gap;
use ptxrace::session::exec::{DEVICES, Observer, Runner, Settings, VARIABLE, Wanted, observe};

use crate::api::Own;
use crate::code::{Answer, Code};
use crate::gpu::Gpu;
use crate::state::Driver;
use crate::watch::{ThreadId, Watch};

/// What calls work on.
enum Side {
    Emulator(Box<Driver>),
    Gpu(Box<Gpu>),
}

static SIDE: Mutex<Option<Side>> = Mutex::new(None);
/// The parent had made calls, whose traces are of no use here.
static FORKED: AtomicBool = AtomicBool::new(false);
static HOOKS: Once = Once::new();

/// What the process was told, unless this library is loaded as the driver of another instance of itself.
fn settings() -> Option<&'static Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    let told = || {
        let settings = Settings::parse(&std::env::var(VARIABLE).ok()?)?;
        let own = matches!(&settings.runner, Runner::Gpu { driver } if is_own(driver));
        (!own).then_some(settings)
    };
    SETTINGS.get_or_init(told).as_ref()
}

/// The folder of the run, if there is one.
pub(crate) fn folder() -> Option<&'static Path> {
    settings().map(|settings| settings.folder.as_path())
}

/// Whether this library was loaded from a file.
fn is_own(path: &Path) -> bool {
    // SAFETY: all zeros are such a structure.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is one of this library, and the place is valid.
    let known = unsafe { libc::dladdr(is_own as *const c_void, &raw mut found) } != 0;
    if !known || found.dli_fname.is_null() {
        return false;
    }
    // SAFETY: the dynamic linker's text, which stays as long as the library.
    let own = unsafe { CStr::from_ptr(found.dli_fname) };
    let own = Path::new(OsStr::from_bytes(own.to_bytes())).canonicalize();
    own.is_ok_and(|own| path.canonicalize().is_ok_and(|path| path == own))
}

/// Where a symbol leads.
pub(crate) fn address(name: &'static CStr) -> Option<usize> {
    match settings().map(|settings| &settings.runner) {
        Some(Runner::Gpu { driver }) => crate::gpu::address(name, driver),
        _ => crate::api::address(name.to_str().ok()?),
    }
}

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

/// What writes what is seen.
fn watch() -> Watch {
    let Some(settings) = settings() else {
        return Watch::new(Observer::new(None, Analysis::default()), Wanted::default());
    };
    let command = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let mut watch = Watch::new(observe(settings, std::process::id(), command), settings.wanted.clone());
    if settings.backtraces {
        watch.keep_backtraces();
    }
    watch
}

/// How many devices the emulator's driver offers. The variable counts for it as the driver of another instance, too.
fn devices() -> u32 {
    std::env::var(DEVICES).ok().and_then(|count| count.parse().ok()).filter(|count| *count > 0).unwrap_or(1)
}

/// Makes the emulator's driver, if there is none.
pub(crate) fn init() -> Answer {
    if FORKED.load(Ordering::Relaxed) {
        return Err(Code::NOT_INITIALIZED);
    }
    HOOKS.call_once(hook);
    let mut side = SIDE.lock();
    if side.is_none() {
        let options = settings().map(Settings::options).unwrap_or_default();
        *side = Some(Side::Emulator(Box::new(Driver::new(Box::new(Own), watch(), options, devices()))));
    }
    Ok(())
}

/// Runs a call on the emulator's driver.
pub(crate) fn with<T>(call: impl FnOnce(&mut Driver) -> Answer<T>) -> Answer<T> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(Code::NOT_INITIALIZED);
    }
    match SIDE.lock().as_mut() {
        Some(Side::Emulator(driver)) => call(driver),
        _ => Err(Code::NOT_INITIALIZED),
    }
}

/// The same for what needs a context.
pub(crate) fn within<T>(call: impl FnOnce(&mut Driver) -> Answer<T>) -> Answer<T> {
    with(|driver| {
        driver.ready(thread())?;
        call(driver)
    })
}

/// Runs what a call means to the one who watches the real driver. Nothing in a forked child, which has no use of the driver.
pub(crate) fn watching<T>(call: impl FnOnce(&mut Gpu) -> T) -> Option<T> {
    if FORKED.load(Ordering::Relaxed) {
        return None;
    }
    HOOKS.call_once(hook);
    let mut side = SIDE.lock();
    let made = side.get_or_insert_with(|| {
        let settings = settings();
        let options = settings.map(Settings::options).unwrap_or_default();
        let folder = settings.map(|settings| settings.folder.clone());
        Side::Gpu(Box::new(Gpu::new(watch(), options, folder)))
    });
    match made {
        Side::Gpu(gpu) => Some(call(gpu)),
        Side::Emulator(_) => None,
    }
}

/// Says why the run is not the whole truth, if there is a run.
pub(crate) fn gap(kind: Gap, detail: String) {
    match SIDE.lock().as_mut() {
        Some(Side::Emulator(driver)) => driver.watch.gap(kind, detail),
        Some(Side::Gpu(gpu)) => gpu.watch.gap(kind, detail),
        None => {}
    }
}

/// The border to C: no panic crosses it.
pub(crate) fn guard(name: &str, call: impl FnOnce() -> u32) -> u32 {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        let said = catch_unwind(AssertUnwindSafe(|| {
            let detail = format!("the wrapper failed in `{name}`: what followed may not have been checked");
            gap(Gap::Call, detail);
        }));
        drop(said);
        Code::UNKNOWN.0
    })
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
    std::mem::forget(SIDE.lock());
}

extern "C" fn in_parent() {
    // SAFETY: `before_fork` has locked it in this thread.
    unsafe { SIDE.raw().unlock() };
}

extern "C" fn in_child() {
    // SAFETY: `before_fork` has locked it in the thread that this one is a copy of.
    unsafe { SIDE.raw().unlock() };
    if let Some(side) = SIDE.try_lock().as_mut().and_then(|side| side.take()) {
        // Nothing of it may be used or freed: other threads of the parent may have been at work in its memory.
        std::mem::forget(side);
        FORKED.store(true, Ordering::Relaxed);
    }
}

extern "C" fn at_exit() {
    let finish = || {
        // Another thread may be in a launch that never ends.
        if let Some(mut side) = SIDE.try_lock() {
            match side.as_mut() {
                Some(Side::Emulator(driver)) => driver.watch.leave(),
                Some(Side::Gpu(gpu)) => gpu.watch.leave(),
                None => {}
            }
            MutexGuard::unlock_fair(side);
        }
    };
    drop(catch_unwind(AssertUnwindSafe(finish)));
}
