//! The driver API behind types that free what they hold.
//!
//! Symbols are looked up when they are first called, so a driver needs only the functions used here, all of which
//! exist since CUDA 12.0. The bindings are those of a newer version because their error codes are more complete.

mod image;

use std::cell::Cell;
use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::sys as cu;

pub(super) use self::image::{Array, Memory, Object};
use crate::abi::Unit;
use crate::backend::BackendError;
use crate::tensor::{self, DataType, Swizzle, TensorMap};

/// The oldest driver with all functions that are used, as it tells its version.
const OLDEST_DRIVER: i32 = 12000;

/// A call that the driver refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    call: &'static str,
    result: cu::CUresult,
}

pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// Whether the device has stopped at an instruction, which also ends its context.
    pub(super) fn is_fault(self) -> bool {
        use cu::CUresult::{
            CUDA_ERROR_ASSERT, CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_ADDRESS,
            CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC,
            CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_MISALIGNED_ADDRESS,
        };
        matches!(
            self.result,
            CUDA_ERROR_ASSERT
                | CUDA_ERROR_HARDWARE_STACK_ERROR
                | CUDA_ERROR_ILLEGAL_ADDRESS
                | CUDA_ERROR_ILLEGAL_INSTRUCTION
                | CUDA_ERROR_INVALID_ADDRESS_SPACE
                | CUDA_ERROR_INVALID_PC
                | CUDA_ERROR_LAUNCH_FAILED
                | CUDA_ERROR_LAUNCH_TIMEOUT
                | CUDA_ERROR_MISALIGNED_ADDRESS
        )
    }

    /// Whether a symbol or function does not exist.
    pub(super) fn is_not_found(self) -> bool {
        self.result == cu::CUresult::CUDA_ERROR_NOT_FOUND
    }

    /// Whether the device has too little memory.
    pub(super) fn is_out_of_memory(self) -> bool {
        self.result == cu::CUresult::CUDA_ERROR_OUT_OF_MEMORY
    }

    /// What the driver says about it, with the name of the error.
    pub(super) fn detail(self) -> String {
        let mut texts = [ptr::null(); 2];
        // SAFETY: the driver writes a pointer to a constant string, or leaves null for a code it does not know.
        unsafe {
            let _ = cu::cuGetErrorString(self.result, &raw mut texts[0]);
            let _ = cu::cuGetErrorName(self.result, &raw mut texts[1]);
        }
        let [text, name] = texts.map(|text| {
            // SAFETY: not null, so a constant string of the driver.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        });
        match (text, name) {
            (Some(text), Some(name)) => format!("{text} ({name})"),
            _ => format!("error {}", self.result as u32),
        }
    }
}

impl From<Failure> for BackendError {
    fn from(failure: Failure) -> Self {
        Self::Driver { call: failure.call.into(), detail: failure.detail() }
    }
}

fn check(call: &'static str, result: cu::CUresult) -> Result<()> {
    if result == cu::CUresult::CUDA_SUCCESS { Ok(()) } else { Err(Failure { call, result }) }
}

/// The primary context of the first device, current in the thread that opened it.
#[derive(Debug)]
pub(super) struct Context {
    device: cu::CUdevice,
    raw: cu::CUcontext,
    /// A kernel may run on for ever: nothing is freed any more, since that would wait for it.
    abandoned: Cell<bool>,
}

impl Context {
    /// Opens the first device.
    pub(super) fn open() -> Result<Self, BackendError> {
        // SAFETY: loads the library, whose initialisers are those of the driver.
        if !unsafe { cu::is_culib_present() } {
            return Err(BackendError::NoDevice("there is no CUDA driver (libcuda) on this machine".into()));
        }
        let mut version = 0;
        // SAFETY: the library is there; writes one number to a valid place.
        let _ = unsafe { cu::cuDriverGetVersion(&raw mut version) };
        if version < OLDEST_DRIVER {
            let (major, minor) = (version / 1000, version % 1000 / 10);
            let what = format!("the driver is too old: it supports CUDA {major}.{minor}, 12.0 is needed");
            return Err(BackendError::NoDevice(what));
        }
        Self::open_device().map_err(|failure| BackendError::NoDevice(failure.detail()))
    }

    /// The bytes of a tensor map.
    pub(super) fn encode(&self, map: &TensorMap) -> Result<[u8; tensor::BYTES]> {
        let mut bytes = cu::CUtensorMap { opaque: [0; tensor::BYTES / 8] };
        let ty = DataType::ALL.iter().position(|(_, ty)| *ty == map.ty).unwrap_or(0) as u32;
        let swizzle = Swizzle::ALL.iter().position(|swizzle| *swizzle == map.swizzle).unwrap_or(0) as u32;
        let strides = &map.strides[1..];
        // SAFETY: the numbers are those of the driver's enumerations, whose members `DataType` and `Swizzle` have all up to
        // their last; the arrays have five or four members each, of which the driver reads as many as the rank says, which
        // `TensorMap::check` bounds; it writes the map.
        check("cuTensorMapEncodeTiled", unsafe {
            cu::cuTensorMapEncodeTiled(
                &raw mut bytes,
                std::mem::transmute::<u32, cu::CUtensorMapDataType>(ty),
                map.rank.into(),
                map.address as *mut c_void,
                map.sizes.as_ptr(),
                strides.as_ptr(),
                map.extent.as_ptr(),
                map.steps.as_ptr(),
                cu::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                std::mem::transmute::<u32, cu::CUtensorMapSwizzle>(swizzle),
                cu::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
                if map.nan {
                    cu::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                } else {
                    cu::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
                },
            )
        })?;
        let mut out = [0; tensor::BYTES];
        for (to, word) in out.chunks_exact_mut(8).zip(bytes.opaque) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        Ok(out)
    }

    fn open_device() -> Result<Self> {
        let (mut device, mut raw) = (0, ptr::null_mut());
        // SAFETY: the library is there; both calls write one value to a valid place.
        unsafe {
            check("cuInit", cu::cuInit(0))?;
            check("cuDeviceGet", cu::cuDeviceGet(&raw mut device, 0))?;
            check("cuDevicePrimaryCtxRetain", cu::cuDevicePrimaryCtxRetain(&raw mut raw, device))?;
        }
        let context = Self { device, raw, abandoned: Cell::new(false) };
        context.make_current()?;
        Ok(context)
    }

    /// Makes it the calling thread's context.
    pub(super) fn make_current(&self) -> Result<()> {
        // SAFETY: the context is retained as long as `self` lives.
        check("cuCtxSetCurrent", unsafe { cu::cuCtxSetCurrent(self.raw) })
    }

    /// The name of the device.
    pub(super) fn device_name(&self) -> Result<String> {
        let mut name = [0u8; 256];
        // SAFETY: the driver writes at most the given length, with a final zero.
        check("cuDeviceGetName", unsafe {
            cu::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as i32, self.device)
        })?;
        let text = CStr::from_bytes_until_nul(&name).map(CStr::to_string_lossy);
        Ok(text.unwrap_or_default().into_owned())
    }

    /// From now on nothing is freed: the device does not come back.
    pub(super) fn abandon(&self) {
        self.abandoned.set(true);
        ABANDONED.store(true, Ordering::Release);
    }

    /// Whether it was abandoned.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.get()
    }

    /// Device memory, not initialised.
    pub(super) fn alloc(&self, bytes: usize) -> Result<DeviceMemory<'_>> {
        let mut address = 0;
        // SAFETY: writes one address to a valid place. The driver refuses sizes of zero, so there are none.
        check("cuMemAlloc", unsafe { cu::cuMemAlloc_v2(&raw mut address, bytes.max(1)) })?;
        Ok(DeviceMemory { context: self, address, bytes })
    }

    /// Page-locked host memory, zeroed, which copies reach while a kernel runs.
    pub(super) fn pinned(&self, words: usize) -> Result<Pinned<'_>> {
        let mut address = ptr::null_mut();
        let bytes = words.max(1) * size_of::<u64>();
        // SAFETY: writes one address to a valid place.
        check("cuMemHostAlloc", unsafe { cu::cuMemHostAlloc(&raw mut address, bytes, 0) })?;
        // SAFETY: the memory just allocated has this many bytes.
        unsafe { ptr::write_bytes(address.cast::<u8>(), 0, bytes) };
        Ok(Pinned { context: self, address: address.cast(), words })
    }

    /// A stream that does not wait for others.
    pub(super) fn stream(&self) -> Result<Stream<'_>> {
        let mut raw = ptr::null_mut();
        let flags = cu::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: writes one handle to a valid place.
        check("cuStreamCreate", unsafe { cu::cuStreamCreate(&raw mut raw, flags) })?;
        Ok(Stream { context: self, raw })
    }

    /// Compiles and loads PTX; the compiler's messages come with the failure.
    pub(super) fn load(
        &self,
        text: &str,
        max_registers: Option<u32>,
    ) -> Result<Module<'_>, (Failure, String)> {
        const LOG_BYTES: usize = 16 * 1024;
        let no_zero = |_| {
            let result = cu::CUresult::CUDA_ERROR_INVALID_PTX;
            (Failure { call: "cuModuleLoadDataEx", result }, "the text holds a zero byte".to_owned())
        };
        let text = CString::new(text).map_err(no_zero)?;
        let mut log = vec![0u8; LOG_BYTES];
        // Values go by pointer-sized words, numbers as themselves.
        let mut options = vec![
            cu::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            cu::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = vec![log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(LOG_BYTES - 1)];
        if let Some(registers) = max_registers {
            options.push(cu::CUjit_option::CU_JIT_MAX_REGISTERS);
            values.push(ptr::without_provenance_mut(registers as usize));
        }
        let mut raw = ptr::null_mut();
        // SAFETY: the text ends in zero, options and values have the same length, and the log has the size it says.
        let result = unsafe {
            cu::cuModuleLoadDataEx(
                &raw mut raw,
                text.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        match check("cuModuleLoadDataEx", result) {
            Ok(()) => Ok(Module { context: self, raw }),
            Err(failure) => {
                let log = CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy);
                Err((failure, log.unwrap_or_default().trim().to_owned()))
            }
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.abandoned.get() {
            // SAFETY: retained once, and all that belongs to it borrows `self` and is gone.
            let _ = unsafe { cu::cuDevicePrimaryCtxRelease_v2(self.device) };
        }
    }
}

/// Memory of the device.
#[derive(Debug)]
pub(super) struct DeviceMemory<'c> {
    context: &'c Context,
    address: u64,
    bytes: usize,
}

impl DeviceMemory<'_> {
    /// Its address.
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Sets all of it to zero.
    pub(super) fn clear(&self) -> Result<()> {
        // SAFETY: the range is the allocation.
        check("cuMemsetD8", unsafe { cu::cuMemsetD8_v2(self.address, 0, self.bytes) })
    }

    /// Writes a part of it that lies in it. Not while a kernel runs: this waits for it.
    pub(super) fn upload_at(&self, offset: usize, data: &[u8]) -> Result<()> {
        let data = &data[..data.len().min(self.bytes.saturating_sub(offset))];
        upload(self.address + offset as u64, data)
    }

    /// Writes its beginning. Not while a kernel runs: this waits for it.
    pub(super) fn upload(&self, data: &[u8]) -> Result<()> {
        upload(self.address, &data[..data.len().min(self.bytes)])
    }

    /// Reads its beginning. Not while a kernel runs: this waits for it.
    pub(super) fn download(&self, data: &mut [u8]) -> Result<()> {
        let bytes = data.len().min(self.bytes);
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: both ranges have at least so many bytes.
        check("cuMemcpyDtoH", unsafe { cu::cuMemcpyDtoH_v2(data.as_mut_ptr().cast(), self.address, bytes) })
    }
}

/// Writes device memory at an address that is an allocation or a module's variable of at least this size.
fn upload(address: u64, data: &[u8]) -> Result<()> {
    if data.is_empty() {
        return Ok(());
    }
    // SAFETY: the caller's range; a wrong one is an error of the driver, since it checks device addresses.
    check("cuMemcpyHtoD", unsafe { cu::cuMemcpyHtoD_v2(address, data.as_ptr().cast(), data.len()) })
}

impl Drop for DeviceMemory<'_> {
    fn drop(&mut self) {
        if !self.context.abandoned.get() {
            // SAFETY: allocated by `alloc` and freed once.
            let _ = unsafe { cu::cuMemFree_v2(self.address) };
        }
    }
}

/// Page-locked host memory as 64-bit words.
#[derive(Debug)]
pub(super) struct Pinned<'c> {
    context: &'c Context,
    address: *mut u64,
    words: usize,
}

impl Pinned<'_> {
    /// Its words. No copy may be under way: every one is waited for with `Stream::wait` first.
    pub(super) fn words(&mut self) -> &mut [u64] {
        // SAFETY: allocated with so many words, aligned to a page, initialised with zero, and borrowed like `self`.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.words) }
    }

    /// Its words as units of a ring, likewise.
    pub(super) fn units(&mut self) -> &mut [Unit] {
        // SAFETY: as above; a unit is two words, any bits are one, and a page is aligned enough.
        unsafe { std::slice::from_raw_parts_mut(self.address.cast(), self.words / 2) }
    }

    /// Number of words.
    pub(super) fn len(&self) -> usize {
        self.words
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        if !self.context.abandoned.get() {
            // SAFETY: allocated by `pinned` and freed once.
            let _ = unsafe { cu::cuMemFreeHost(self.address.cast()) };
        }
    }
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream<'c> {
    context: &'c Context,
    raw: cu::CUstream,
}

impl Stream<'_> {
    /// Begins to copy `words` words from the device to `to`, from word `at` on.
    pub(super) fn fetch(&self, to: &mut Pinned<'_>, at: usize, from: u64, words: usize) -> Result<()> {
        let words = words.min(to.len().saturating_sub(at));
        // SAFETY: the target range is inside of `to`, which lives until the copy was waited for: its owner waits after
        // each batch of copies, or abandons the context, and then nothing is freed.
        check("cuMemcpyDtoHAsync", unsafe {
            cu::cuMemcpyDtoHAsync_v2(to.address.add(at).cast(), from, words * size_of::<u64>(), self.raw)
        })
    }

    /// Begins to copy all of `from` to the device.
    pub(super) fn send(&self, to: u64, from: &Pinned<'_>) -> Result<()> {
        // SAFETY: as in `fetch`, the other way round.
        check("cuMemcpyHtoDAsync", unsafe {
            cu::cuMemcpyHtoDAsync_v2(to, from.address.cast(), from.words * size_of::<u64>(), self.raw)
        })
    }

    /// Waits for all that was begun.
    pub(super) fn wait(&self) -> Result<()> {
        // SAFETY: the stream lives as long as `self`.
        check("cuStreamSynchronize", unsafe { cu::cuStreamSynchronize(self.raw) })
    }

    /// Whether all that was begun is done.
    pub(super) fn is_done(&self) -> Result<bool> {
        // SAFETY: the stream lives as long as `self`.
        let result = unsafe { cu::cuStreamQuery(self.raw) };
        if result == cu::CUresult::CUDA_ERROR_NOT_READY {
            return Ok(false);
        }
        check("cuStreamQuery", result).map(|()| true)
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        if !self.context.abandoned.get() {
            // SAFETY: created by `stream` and destroyed once.
            let _ = unsafe { cu::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// A loaded module.
#[derive(Debug)]
pub(super) struct Module<'c> {
    context: &'c Context,
    raw: cu::CUmodule,
}

/// Shape of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) cluster: Option<[u32; 3]>,
    pub(super) shared: u32,
}

impl Module<'_> {
    /// Address and size of a variable; `None` if the module keeps none of this name.
    pub(super) fn variable(&self, name: &str) -> Result<Option<(u64, usize)>> {
        let Ok(name) = CString::new(name) else { return Ok(None) };
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the name ends in zero, and both places are valid.
        let result =
            unsafe { cu::cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, self.raw, name.as_ptr()) };
        match check("cuModuleGetGlobal", result) {
            Ok(()) => Ok(Some((address, bytes))),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Sets a variable of 64 bits. Not while a kernel runs.
    pub(super) fn set_variable(&self, name: &str, value: u64) -> Result<bool> {
        match self.variable(name)? {
            Some((address, bytes)) if bytes >= 8 => upload(address, &value.to_le_bytes()).map(|()| true),
            _ => Ok(false),
        }
    }

    /// A kernel.
    pub(super) fn kernel(&self, name: &str) -> Result<Kernel<'_>> {
        let call = "cuModuleGetFunction";
        let Ok(name) = CString::new(name) else {
            return Err(Failure { call, result: cu::CUresult::CUDA_ERROR_NOT_FOUND });
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the name ends in zero; writes one handle to a valid place.
        check(call, unsafe { cu::cuModuleGetFunction(&raw mut raw, self.raw, name.as_ptr()) })?;
        Ok(Kernel { _module: self, raw })
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        if !self.context.abandoned.get() {
            // SAFETY: loaded by `load` and unloaded once; kernels borrow it.
            let _ = unsafe { cu::cuModuleUnload(self.raw) };
        }
    }
}

/// A kernel of a module.
#[derive(Debug)]
pub(super) struct Kernel<'m> {
    _module: &'m Module<'m>,
    raw: cu::CUfunction,
}

impl Kernel<'_> {
    /// Starts it. The arguments are the parameters' bytes in order, checked against the kernel before: there must be as
    /// many as it takes, each as large.
    pub(super) fn launch(&self, stream: &Stream<'_>, shape: Shape, arguments: &[Vec<u8>]) -> Result<()> {
        let set = |attribute, value| {
            // SAFETY: the function's module is loaded.
            check("cuFuncSetAttribute", unsafe { cu::cuFuncSetAttribute(self.raw, attribute, value) })
        };
        use cu::CUfunction_attribute as Attribute;
        if shape.shared > 0 {
            let bytes = i32::try_from(shape.shared).unwrap_or(i32::MAX);
            set(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes)?;
        }
        let mut attributes = Vec::new();
        if let Some([x, y, z]) = shape.cluster {
            // Clusters of more than 8 blocks must be asked for.
            if x.saturating_mul(y).saturating_mul(z) > 8 {
                set(Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)?;
            }
            let mut value = cu::CUlaunchAttributeValue { pad: [0; 64] };
            value.clusterDim = cu::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            let id = cu::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            attributes.push(cu::CUlaunchAttribute { id, pad: [0; 4], value });
        }
        let config = cu::CUlaunchConfig {
            gridDimX: shape.grid[0],
            gridDimY: shape.grid[1],
            gridDimZ: shape.grid[2],
            blockDimX: shape.block[0],
            blockDimY: shape.block[1],
            blockDimZ: shape.block[2],
            sharedMemBytes: shape.shared,
            hStream: stream.raw,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        let mut pointers: Vec<*mut c_void> = arguments.iter().map(|a| a.as_ptr().cast_mut().cast()).collect();
        // SAFETY: the driver copies each parameter before it returns; the plan was checked against the kernel's
        // parameters, so each pointer has the bytes that it reads.
        check("cuLaunchKernelEx", unsafe {
            cu::cuLaunchKernelEx(&raw const config, self.raw, pointers.as_mut_ptr(), ptr::null_mut())
        })
    }
}

/// The path of the driver's library, if there is one: where the dynamic linker has it from.
pub fn library() -> Option<PathBuf> {
    // SAFETY: loads the library, whose initialisers are those of the driver.
    if !unsafe { cu::is_culib_present() } {
        return None;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let paths = maps.lines().filter_map(|line| line.find('/').and_then(|at| line.get(at..)));
    let is_driver = |path: &&str| {
        Path::new(path).file_name().is_some_and(|n| n.to_string_lossy().starts_with("libcuda.so"))
    };
    paths.into_iter().find(is_driver).map(PathBuf::from)
}

/// A kernel of this process was abandoned while it ran.
static ABANDONED: AtomicBool = AtomicBool::new(false);

/// Ends the process with this exit code if a kernel was abandoned while it ran, and returns otherwise. A normal exit would
/// run the driver's handlers, which wait for that kernel, perhaps for ever. For programs, after they have written all.
pub fn leave_abandoned(code: u8) {
    if ABANDONED.load(Ordering::Acquire) {
        // SAFETY: `_exit` may be called at any time; it runs no handlers and does not return.
        unsafe { libc::_exit(i32::from(code)) }
    }
}
