//! The real driver: opened by its path, apart from everything else in the process, and what is called of it here.

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use ptxrace::fatbin::Device;

use crate::code::{Answer, Code};
use crate::trampoline;
use crate::watch::Place;

static LIBRARY: OnceLock<usize> = OnceLock::new();

/// Opens the driver. Its own references to its symbols stay with it (`RTLD_DEEPBIND`).
pub(super) fn open(path: &Path) {
    LIBRARY.get_or_init(|| {
        let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return 0 };
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;
        trampoline::load(&path, flags) as usize
    });
}

/// The driver's function of this name.
pub(super) fn function(name: &CStr) -> Option<usize> {
    let library = *LIBRARY.get().filter(|library| **library != 0)?;
    // SAFETY: the library is open and stays so; the name ends in zero.
    let found = unsafe { libc::dlsym(library as *mut c_void, name.as_ptr()) } as usize;
    (found != 0).then_some(found)
}

/// The same, looked up once.
pub(super) fn cached(at: &AtomicUsize, name: &CStr) -> Option<usize> {
    match at.load(Ordering::Relaxed) {
        0 => {
            let found = function(name)?;
            at.store(found, Ordering::Relaxed);
            Some(found)
        }
        found => Some(found),
    }
}

/// Functions of the driver by their C types.
macro_rules! imports {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {
        $(
            #[allow(non_snake_case, reason = "the names are the driver's")]
            #[allow(clippy::too_many_arguments, reason = "as many as the driver's has")]
            unsafe fn $name($($arg: $ty),*) -> Answer {
                static AT: AtomicUsize = AtomicUsize::new(0);
                let name = CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes());
                let at = cached(&AT, name.map_err(|_| Code::NOT_FOUND)?).ok_or(Code::NOT_FOUND)?;
                // SAFETY: this is the driver's function of that name, which has these types.
                let call: extern "C" fn($($ty),*) -> u32 = unsafe { std::mem::transmute(at) };
                match call($($arg),*) {
                    0 => Ok(()),
                    code => Err(Code(code)),
                }
            }
        )*
    };
}

pub(super) use imports;

imports! {
    cuCtxGetCurrent(context: *mut u64);
    cuCtxGetDevice(device: *mut i32);
    cuCtxSynchronize();
    cuDeviceGetAttribute(value: *mut i32, which: u32, device: i32);
    cuFuncGetAttribute(value: *mut i32, which: u32, function: u64);
    cuFuncGetModule(module: *mut u64, function: u64);
    cuFuncGetName(name: *mut *const c_char, function: u64);
    cuFuncSetAttribute(function: u64, which: u32, value: i32);
    cuKernelGetName(name: *mut *const c_char, kernel: u64);
    cuLibraryGetGlobal(pointer: *mut u64, bytes: *mut usize, library: u64, name: *const c_char);
    cuLibraryGetModule(module: *mut u64, library: u64);
    cuLibraryLoadData(
        library: *mut u64,
        image: *const c_void,
        jit: *const u32,
        jit_values: *const *mut c_void,
        jit_count: u32,
        options: *const u32,
        values: *const *mut c_void,
        count: u32
    );
    cuLibraryUnload(library: u64);
    cuLinkAddData_v2(
        state: u64,
        kind: u32,
        data: *const c_void,
        bytes: usize,
        name: *const c_char,
        count: u32,
        options: *const u32,
        values: *const *mut c_void
    );
    cuLinkComplete(state: u64, image: *mut *const c_void, bytes: *mut usize);
    cuLinkCreate_v2(count: u32, options: *const u32, values: *const *mut c_void, state: *mut u64);
    cuLinkDestroy(state: u64);
    cuMemAlloc_v2(pointer: *mut u64, bytes: usize);
    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: u32);
    cuMemHostGetDevicePointer_v2(to: *mut u64, pointer: *mut c_void, flags: u32);
    cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: u64);
    cuModuleGetFunction(function: *mut u64, module: u64, name: *const c_char);
    cuModuleGetGlobal_v2(pointer: *mut u64, bytes: *mut usize, module: u64, name: *const c_char);
    cuModuleLoadDataEx(
        module: *mut u64,
        image: *const c_void,
        count: u32,
        options: *const u32,
        values: *const *mut c_void
    );
    cuPointerGetAttribute(to: *mut c_void, which: u32, pointer: u64);
    cuStreamCreate(stream: *mut u64, flags: u32);
    cuStreamIsCapturing(stream: u64, status: *mut u32);
    cuStreamQuery(stream: u64);
    cuStreamSynchronize(stream: u64);
    cuThreadExchangeStreamCaptureMode(mode: *mut u32);
}

/// The current context of the calling thread, or 0.
pub(super) fn current() -> u64 {
    let mut context = 0;
    // SAFETY: writes one handle to a valid place.
    let _ = unsafe { cuCtxGetCurrent(&raw mut context) };
    context
}

/// The number of the current device.
pub(super) fn ordinal() -> u32 {
    let mut device = 0;
    // SAFETY: writes one number to a valid place.
    let _ = unsafe { cuCtxGetDevice(&raw mut device) };
    device.cast_unsigned()
}

/// The current device, or the first.
pub(super) fn device() -> Option<Device> {
    let (mut device, mut major, mut minor) = (0, 0, 0);
    // SAFETY: each call writes one number to a valid place.
    unsafe {
        let _ = cuCtxGetDevice(&raw mut device);
        cuDeviceGetAttribute(&raw mut major, 75, device).ok()?;
        cuDeviceGetAttribute(&raw mut minor, 76, device).ok()?;
    }
    Some(Device::new(major.try_into().ok()?, minor.try_into().ok()?))
}

/// Whose memory lies at an address.
pub(super) fn place(address: u64) -> Place {
    if address >= ptxrace::backend::image::ARRAYS {
        // An array, whose address is none of the driver's. Which device has it is not known.
        return Place::Device(ordinal());
    }
    let ask = |which| {
        let mut value = 0u32;
        // SAFETY: these attributes are of 32 bits.
        unsafe { cuPointerGetAttribute((&raw mut value).cast(), which, address) }.map(|()| value)
    };
    match (ask(2), ask(8)) {
        (Ok(_), Ok(managed)) if managed & 0xff != 0 => Place::Managed,
        (Ok(1), _) => Place::Pinned,
        // The number of the device.
        (Ok(_), _) => Place::Device(ask(9).unwrap_or(0)),
        (Err(_), _) => Place::Pageable,
    }
}

/// Where the allocation that holds an address begins, and its size.
pub(super) fn range(address: u64) -> Option<(u64, u64)> {
    let ask = |which| {
        let mut value = 0u64;
        // SAFETY: both attributes are of 64 bits.
        unsafe { cuPointerGetAttribute((&raw mut value).cast(), which, address) }.map(|()| value)
    };
    Some((ask(11).ok()?, ask(12).ok()?))
}

/// Memory of the device.
pub(super) fn allocate(bytes: usize) -> Answer<u64> {
    let mut address = 0;
    // SAFETY: writes one address to a valid place.
    unsafe { cuMemAlloc_v2(&raw mut address, bytes) }?;
    Ok(address)
}

/// Memory of the host that all devices reach: its address here and there.
pub(super) fn mapped(bytes: usize) -> Answer<(usize, u64)> {
    const PORTABLE_AND_MAPPED: u32 = 3;
    let (mut here, mut there) = (ptr::null_mut(), 0);
    // SAFETY: both calls write one address to a valid place.
    unsafe {
        cuMemHostAlloc(&raw mut here, bytes, PORTABLE_AND_MAPPED)?;
        cuMemHostGetDevicePointer_v2(&raw mut there, here, 0)?;
    }
    Ok((here as usize, there))
}

/// A stream that does not wait for others.
pub(super) fn stream() -> Answer<u64> {
    let mut stream = 0;
    // SAFETY: writes one handle to a valid place.
    unsafe { cuStreamCreate(&raw mut stream, 1) }?;
    Ok(stream)
}

/// Writes memory of the device by a stream of our own, whatever streams are being captured.
pub(super) fn write(stream: u64, to: u64, bytes: &[u8]) -> Answer {
    const RELAXED: u32 = 2;
    let mut mode = RELAXED;
    // SAFETY: the modes are exchanged and then put back; the range is the caller's, a wrong one an error of the driver; the
    // copy is waited for while the bytes are borrowed.
    unsafe {
        let exchanged = cuThreadExchangeStreamCaptureMode(&raw mut mode);
        let written = cuMemcpyHtoDAsync_v2(to, bytes.as_ptr().cast(), bytes.len(), stream)
            .and_then(|()| cuStreamSynchronize(stream));
        if exchanged.is_ok() {
            let _ = cuThreadExchangeStreamCaptureMode(&raw mut mode);
        }
        written
    }
}

/// Whether a stream is idle.
pub(super) fn is_idle(stream: u64) -> Answer<bool> {
    const NOT_READY: Code = Code(600);
    // SAFETY: the handle is the program's, which has just used it.
    match unsafe { cuStreamQuery(stream) } {
        Ok(()) => Ok(true),
        Err(NOT_READY) => Ok(false),
        Err(code) => Err(code),
    }
}

/// Whether what a stream is given goes into a graph.
pub(super) fn is_capturing(stream: u64) -> bool {
    let mut status = 0;
    // SAFETY: writes one number to a valid place.
    unsafe { cuStreamIsCapturing(stream, &raw mut status) }.is_ok() && status != 0
}

/// The name of a kernel, by either kind of handle.
pub(super) fn name_of(function: u64) -> Option<String> {
    let mut name = ptr::null();
    // SAFETY: writes one pointer to a valid place.
    let found = unsafe {
        cuFuncGetName(&raw mut name, function).or_else(|_| cuKernelGetName(&raw mut name, function))
    };
    if found.is_err() || name.is_null() {
        return None;
    }
    // SAFETY: not null, so a text of the driver, which stays as long as the kernel.
    Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

/// The module of a kernel.
pub(super) fn module_of(function: u64) -> Option<u64> {
    let mut module = 0;
    // SAFETY: writes one handle to a valid place.
    unsafe { cuFuncGetModule(&raw mut module, function) }.ok()?;
    Some(module)
}

/// The kernel of a module.
pub(super) fn function_of(module: u64, name: &str) -> Answer<u64> {
    let name = CString::new(name).map_err(|_| Code::NOT_FOUND)?;
    let mut function = 0;
    // SAFETY: the name ends in zero; writes one handle to a valid place.
    unsafe { cuModuleGetFunction(&raw mut function, module, name.as_ptr()) }?;
    Ok(function)
}

/// Gives a kernel the attributes of another that programs set: dynamic shared memory, and large clusters.
pub(super) fn alike(function: u64, other: u64) {
    const SET_BY_PROGRAMS: [u32; 3] = [8, 9, 14];
    for which in SET_BY_PROGRAMS {
        let mut value = 0;
        // SAFETY: writes one number to a valid place; the handles are those of kernels that are loaded.
        unsafe {
            if cuFuncGetAttribute(&raw mut value, which, other).is_ok() {
                let _ = cuFuncSetAttribute(function, which, value);
            }
        }
    }
}

/// Waits for everything in the current context.
pub(super) fn synchronize() -> Answer {
    // SAFETY: takes nothing.
    unsafe { cuCtxSynchronize() }
}

/// What was loaded: a module or a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Handle {
    Module(u64),
    Library(u64),
}

impl Handle {
    /// The number that the program has.
    pub(super) fn raw(self) -> u64 {
        let (Self::Module(raw) | Self::Library(raw)) = self;
        raw
    }

    /// Address and size of a variable in the current context.
    pub(super) fn variable(self, name: &str) -> Answer<(u64, u64)> {
        let name = CString::new(name).map_err(|_| Code::NOT_FOUND)?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the name ends in zero, and both places are valid.
        unsafe {
            match self {
                Self::Module(raw) => {
                    cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, raw, name.as_ptr())
                }
                Self::Library(raw) => {
                    cuLibraryGetGlobal(&raw mut address, &raw mut bytes, raw, name.as_ptr())
                }
            }
        }?;
        Ok((address, bytes as u64))
    }
}

/// The module of a library in the current context, which is compiled for it if need be.
pub(super) fn library_module(library: u64) -> Answer<u64> {
    let mut module = 0;
    // SAFETY: writes one handle to a valid place.
    unsafe { cuLibraryGetModule(&raw mut module, library) }?;
    Ok(module)
}

pub(super) fn unload_library(library: u64) {
    // SAFETY: loaded before and not given to the program.
    let _ = unsafe { cuLibraryUnload(library) };
}

/// Why the driver did not compile or link something, with its messages.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) code: Code,
    pub(super) log: String,
}

impl Refused {
    /// Without messages.
    pub(super) fn silent(code: Code) -> Self {
        Self { code, log: String::new() }
    }

    /// One line.
    pub(super) fn why(&self) -> String {
        self.log.lines().next().map_or_else(|| format!("error {}", self.code.0), str::to_owned)
    }
}

/// Options of the compiler. Values go by pointer-sized words, numbers as themselves.
const MAX_REGISTERS: u32 = 0;
const ERROR_LOG: u32 = 5;
const ERROR_LOG_BYTES: u32 = 6;

fn number(value: usize) -> *mut c_void {
    ptr::without_provenance_mut(value)
}

/// Options of the compiler, and its messages.
struct Jit {
    log: Vec<u8>,
    options: Vec<u32>,
    values: Vec<*mut c_void>,
}

impl Jit {
    fn new(registers: Option<u32>) -> Self {
        const LOG_BYTES: usize = 16 * 1024;
        let mut log = vec![0u8; LOG_BYTES];
        let mut options = vec![ERROR_LOG, ERROR_LOG_BYTES];
        let mut values = vec![log.as_mut_ptr().cast::<c_void>(), number(LOG_BYTES - 1)];
        if let Some(registers) = registers {
            options.push(MAX_REGISTERS);
            values.push(number(registers as usize));
        }
        Self { log, options, values }
    }

    fn count(&self) -> u32 {
        self.options.len() as u32
    }

    fn refused(&self, code: Code) -> Refused {
        let log = CStr::from_bytes_until_nul(&self.log).map(CStr::to_string_lossy);
        Refused { code, log: log.unwrap_or_default().trim().to_owned() }
    }
}

/// Loads an image, which is PTX or machine code, as a module; the compiler's messages come with the failure.
pub(super) fn load(image: &[u8], registers: Option<u32>) -> Result<u64, Refused> {
    let jit = Jit::new(registers);
    let mut module = 0;
    // SAFETY: the image ends as its kind has it, options and values have the same length, and the log has the size it says.
    let loaded = unsafe {
        cuModuleLoadDataEx(
            &raw mut module,
            image.as_ptr().cast(),
            jit.count(),
            jit.options.as_ptr(),
            jit.values.as_ptr(),
        )
    };
    loaded.map(|()| module).map_err(|code| jit.refused(code))
}

/// Loads an image as a library. It has to stay where it is until the library is unloaded.
pub(super) fn load_library(
    image: &[u8],
    registers: Option<u32>,
    (options, values, count): (*const u32, *const *mut c_void, u32),
) -> Answer<u64> {
    let jit: Vec<_> = registers.map(|_| MAX_REGISTERS).into_iter().collect();
    let jit_values: Vec<_> = registers.map(|registers| number(registers as usize)).into_iter().collect();
    let mut library = 0;
    // SAFETY: the image ends as its kind has it; our options and values have the same length, and the program vouches for
    // the library options, which are its own.
    unsafe {
        cuLibraryLoadData(
            &raw mut library,
            image.as_ptr().cast(),
            jit.as_ptr(),
            jit_values.as_ptr(),
            jit.len() as u32,
            options,
            values,
            count,
        )
    }?;
    Ok(library)
}

/// Links modules of PTX, each of which ends in zero, to machine code.
pub(super) fn link(texts: &[Vec<u8>], registers: Option<u32>) -> Result<Vec<u8>, Refused> {
    const PTX: u32 = 1;
    let jit = Jit::new(registers);
    let (mut state, mut image, mut bytes) = (0, ptr::null(), 0);
    // SAFETY: options and values have the same length, and the log lives until the linker is destroyed; texts end in zero
    // and stay during the call; the image belongs to the linker and is copied before that is destroyed.
    let linked = unsafe {
        cuLinkCreate_v2(jit.count(), jit.options.as_ptr(), jit.values.as_ptr(), &raw mut state)
            .and_then(|()| {
                texts.iter().try_for_each(|text| {
                    let (data, bytes) = (text.as_ptr().cast(), text.len());
                    cuLinkAddData_v2(state, PTX, data, bytes, c"module".as_ptr(), 0, ptr::null(), ptr::null())
                })
            })
            .and_then(|()| cuLinkComplete(state, &raw mut image, &raw mut bytes))
            .map(|()| std::slice::from_raw_parts(image.cast::<u8>(), bytes).to_vec())
    };
    if state != 0 {
        // SAFETY: created above, and not used any more.
        let _ = unsafe { cuLinkDestroy(state) };
    }
    linked.map_err(|code| jit.refused(code))
}
