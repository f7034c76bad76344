//! A program that uses the driver through cudarc, which loads it when it is first needed.

use std::ffi::{CString, c_void};
use std::path::Path;

use cudarc::driver::result::{self, event, module, stream};
use cudarc::driver::sys::{CUevent_flags_enum, CUfunction, CUmodule, CUstream};
use cudarc::driver::{CudaContext, DevicePtr};

const N: usize = 256;

struct App {
    module: CUmodule,
    memory: u64,
    streams: [CUstream; 2],
}

impl App {
    fn kernel(&self, name: &str) -> CUfunction {
        let name = CString::new(name).expect("a name");
        // SAFETY: the module is loaded.
        unsafe { module::get_function(self.module, name) }.expect("a kernel")
    }

    fn launch(&self, name: &str, blocks: u32, stream: CUstream, arguments: &mut [*mut c_void]) {
        let kernel = self.kernel(name);
        // SAFETY: the arguments are those of the kernel.
        unsafe { result::launch_kernel(kernel, (blocks, 1, 1), (64, 1, 1), 0, stream, arguments) }
            .expect("a launch");
    }

    fn fill(&self, value: u32, stream: CUstream) {
        let (mut memory, mut value) = (self.memory, value);
        let mut arguments = [(&raw mut memory).cast::<c_void>(), (&raw mut value).cast::<c_void>()];
        self.launch("fill", 4, stream, &mut arguments);
    }

    fn reverse(&self) {
        let mut memory = self.memory;
        self.launch("reverse", 1, std::ptr::null_mut(), &mut [(&raw mut memory).cast::<c_void>()]);
    }
}

/// A fatbin with one image: uncompressed PTX for sm_80.
fn fatbin(ptx: &str) -> Vec<u8> {
    let mut text = ptx.as_bytes().to_vec();
    text.resize(ptx.len().next_multiple_of(8).max(ptx.len() + 1).next_multiple_of(8), 0);
    let mut image = vec![0u8; 64];
    image[0..2].copy_from_slice(&1u16.to_le_bytes());
    image[2..4].copy_from_slice(&0x0101u16.to_le_bytes());
    image[4..8].copy_from_slice(&64u32.to_le_bytes());
    image[8..16].copy_from_slice(&(text.len() as u64).to_le_bytes());
    image[26..28].copy_from_slice(&8u16.to_le_bytes());
    image[28..32].copy_from_slice(&80u32.to_le_bytes());
    image[40..48].copy_from_slice(&0x11u64.to_le_bytes());
    image.extend(text);
    let mut container = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    container.extend((image.len() as u64).to_le_bytes());
    container.extend(image);
    container
}

/// What `__cudaRegisterFatBinary` is given.
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: *const u8,
    extra: *const c_void,
}

/// Runs a scenario.
pub(crate) fn run(what: &str, ptx: &Path) {
    // Events that cudarc inserts would order what shall be unordered.
    let context = CudaContext::new(0).expect("a device");
    // SAFETY: this program orders its streams itself, where it means to.
    unsafe { context.disable_event_tracking() };
    let text = std::fs::read_to_string(ptx).expect("the kernels");
    let image = CString::new(text.as_str()).expect("a text");
    let container = fatbin(&text);
    let wrapper =
        Wrapper { magic: 0x4662_43b1, version: 1, data: container.as_ptr(), extra: std::ptr::null() };
    let at = if what == "fatbin" { (&raw const wrapper).cast() } else { image.as_ptr().cast() };
    // SAFETY: a text that ends with a zero byte, or a wrapper of a fatbin.
    let module = unsafe { module::load_data(at) }.expect("a module");
    // SAFETY: a context is current.
    let memory = unsafe { result::malloc_sync(N * 4) }.expect("memory");
    let streams = [(); 2].map(|()| stream::create(stream::StreamKind::NonBlocking).expect("a stream"));
    let app = App { module, memory, streams };
    match what {
        "clean" => clean(&context, &app),
        "race" | "fatbin" => app.reverse(),
        "streams" => (1..).zip(&app.streams).for_each(|(value, stream)| app.fill(value, *stream)),
        "event" => {
            app.fill(1, app.streams[0]);
            let event = event::create(CUevent_flags_enum::CU_EVENT_DISABLE_TIMING).expect("an event");
            // SAFETY: event and streams are there.
            unsafe {
                event::record(event, app.streams[0]).expect("a record");
                let flags = cudarc::driver::sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                stream::wait_event(app.streams[1], event, flags).expect("a wait");
            }
            app.fill(2, app.streams[1]);
        }
        other => panic!("{other}"),
    }
    context.synchronize().expect("no fault");
}

/// Correct, with results that are checked.
fn clean(context: &std::sync::Arc<CudaContext>, app: &App) {
    let stream = context.default_stream();
    let given = stream.clone_htod(&vec![40u32; N]).expect("a copy");
    app.fill(2, stream.cu_stream());
    let (from, _guard) = given.device_ptr(&stream);
    let (mut to, mut from) = (app.memory, from);
    let mut arguments = [(&raw mut to).cast::<c_void>(), (&raw mut from).cast::<c_void>()];
    app.launch("add", 4, stream.cu_stream(), &mut arguments);
    let mut got = vec![0u32; N];
    // SAFETY: the memory has so many bytes.
    unsafe { result::memcpy_dtoh_sync(&mut got, app.memory) }.expect("a copy");
    assert_eq!(got, vec![42; N]);
    assert_eq!(stream.clone_dtoh(&given).expect("a copy"), vec![40; N]);
}
