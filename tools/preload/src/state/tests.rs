//! The driver on memory of a host that is made up.

use std::sync::Arc;

use parking_lot::Mutex;
use ptxrace::engine::{Analysis, StreamId};
use ptxrace::session::exec::log::Writer;
use ptxrace::session::exec::{Observer, Wanted};

use super::*;
use crate::code::Code;
use crate::watch::{Caller, Rows, Timing};

/// Where the host's memory begins.
const BASE: u64 = 0x7f00_0000_0000;

#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Vec<u8>>>);

impl Fake {
    fn add(&self, bytes: &[u8]) -> u64 {
        let mut memory = self.0.lock();
        // Apart, as allocations of a host are.
        let at = memory.len().next_multiple_of(4096);
        memory.resize(at, 0);
        memory.extend(bytes);
        BASE + at as u64
    }

    fn words(&self, address: u64, count: usize) -> Vec<u32> {
        let mut bytes = vec![0; count * 4];
        self.read(address, &mut bytes);
        bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }
}

impl HostMemory for Fake {
    fn read(&self, address: u64, to: &mut [u8]) {
        let at = (address - BASE) as usize;
        to.copy_from_slice(&self.0.lock()[at..at + to.len()]);
    }

    fn write(&mut self, address: u64, from: &[u8]) {
        let at = (address - BASE) as usize;
        self.0.lock()[at..at + from.len()].copy_from_slice(from);
    }

    fn text(&self, address: u64) -> Vec<u8> {
        let memory = self.0.lock();
        memory[(address - BASE) as usize..].iter().copied().take_while(|byte| *byte != 0).collect()
    }

    fn allocate(&mut self, bytes: usize) -> Option<u64> {
        Some(self.add(&vec![0; bytes]))
    }

    fn release(&mut self, _: u64, _: usize) {}
}

const PTX: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry put(.param .u64 p, .param .u32 v)
.maxntid 64
{
    .reg .u64 %rd<2>;
    .reg .u32 %r<2>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [v];
    st.global.u32 [%rd1], %r1;
    ret;
}
\0";

struct Setup {
    host: Fake,
    driver: Driver,
    put: u64,
    folder: tempfile::TempDir,
}

fn setup() -> Setup {
    let host = Fake::default();
    let folder = tempfile::tempdir().unwrap();
    let log = Writer::create(folder.path(), 1).unwrap();
    let watch = Watch::new(Observer::new(Some(log), Analysis::default()), Wanted::default());
    let mut driver = Driver::new(Box::new(host.clone()), watch, RunOptions::default(), 1);
    driver.create_context(1, 0);
    let image = host.add(PTX.as_bytes());
    let module = driver.load_data("cuModuleLoadData", image).unwrap();
    let put = driver.find(module, "put").unwrap();
    Setup { host, driver, put, folder }
}

impl Setup {
    fn stream(&mut self, handle: u64, per_thread: bool) -> Answer<Stream> {
        let context = self.driver.context(1)?;
        self.driver.watch.stream(handle, per_thread, Caller { thread: 1, context })
    }

    fn launch(&mut self, to: u64, value: u32, stream: Stream, threads: u32) -> Answer {
        let (to, value) = (self.host.add(&to.to_le_bytes()), self.host.add(&value.to_le_bytes()));
        let both: Vec<u8> = [to, value].iter().flat_map(|at| at.to_le_bytes()).collect();
        let config = Config {
            grid: [1; 3],
            block: [threads, 1, 1],
            cluster: None,
            shared: 0,
            stream,
            arguments: self.host.add(&both),
            packed: None,
        };
        self.driver.launch(self.put, &config)
    }

    fn read(&mut self, from: u64, stream: Stream, timing: Timing) -> u32 {
        let to = self.host.add(&[0; 4]);
        let rows = Rows::one(to, from, 4);
        self.driver.copy("cuMemcpyDtoH", (Side::Host, Side::Device), rows, stream, timing).unwrap();
        self.host.words(to, 1)[0]
    }

    /// Findings in the log.
    fn findings(&self) -> usize {
        let mut count = 0;
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "log") {
                let text = std::fs::read_to_string(path).unwrap();
                count += text.lines().filter(|line| line.starts_with("{\"Finding\"")).count();
            }
        }
        count
    }
}

#[test]
fn kernels_copies_and_memsets_share_memory() {
    let mut setup = setup();
    let a = setup.driver.allocate("cuMemAlloc", 64).unwrap();
    setup.launch(a + 4, 9, StreamId::LEGACY, 1).unwrap();
    assert_eq!(setup.read(a + 4, StreamId::LEGACY, Timing::Waits), 9);
    let rows = Rows { to: a, from: 0, width: 2, height: 2, to_pitch: 4, from_pitch: 2 };
    setup.driver.fill("cuMemsetD2D8", &[7], rows, StreamId::LEGACY, Timing::Waits).unwrap();
    assert_eq!(setup.read(a, StreamId::LEGACY, Timing::Waits), 0x0707);
    assert_eq!(setup.read(a + 4, StreamId::LEGACY, Timing::Waits), 0x0707);
    assert_eq!(setup.findings(), 0);
}

#[test]
fn managed_memory_is_the_hosts_and_the_devices() {
    let mut setup = setup();
    let both = setup.driver.allocate_host("cuMemAllocManaged", 16, Kind::Managed).unwrap();
    setup.host.write(both, &[5, 0, 0, 0]);
    setup.launch(both + 4, 6, StreamId::LEGACY, 1).unwrap();
    assert_eq!(setup.host.words(both, 4), [5, 6, 0, 0]);
    setup.driver.free(both).unwrap();
    assert_eq!(setup.driver.free(both), Err(Code::INVALID_VALUE));
    setup.launch(both, 1, StreamId::LEGACY, 1).unwrap();
    assert_eq!(setup.driver.ready(1), Err(Code::ILLEGAL_ADDRESS));
}

#[test]
fn a_copy_that_waits_orders_and_one_that_does_not_races() {
    let mut setup = setup();
    let a = setup.driver.allocate("cuMemAlloc", 64).unwrap();
    let streams = [(); 2].map(|()| {
        let handle = setup.driver.create_stream(1, 0, 1);
        setup.stream(handle, false).unwrap()
    });
    setup.launch(a, 1, streams[0], 1).unwrap();
    let moment = setup.driver.create_event(0);
    setup.driver.watch.record(moment, streams[0]).unwrap();
    setup.driver.watch.wait(streams[1], moment).unwrap();
    setup.read(a, streams[1], Timing::Async);
    assert_eq!(setup.findings(), 0);
    // The first stream does not wait for that copy.
    setup.launch(a, 2, streams[0], 1).unwrap();
    assert_eq!(setup.findings(), 1);
    setup.driver.watch.synchronize(streams[0]);
    setup.read(a, streams[1], Timing::Waits);
    setup.launch(a, 3, streams[0], 1).unwrap();
    assert_eq!(setup.findings(), 1);
    assert_eq!(setup.driver.watch.elapsed(moment, 1), Err(Code::INVALID_HANDLE));
}

#[test]
fn an_asynchronous_free_has_to_be_ordered() {
    let mut setup = setup();
    let (one, other) = (setup.driver.create_stream(1, 0, 1), setup.driver.create_stream(1, 0, 1));
    let one = setup.stream(one, false).unwrap();
    let other = setup.stream(other, false).unwrap();
    let a = setup.driver.allocate_async("cuMemAllocAsync", 64, one).unwrap();
    setup.launch(a, 1, one, 1).unwrap();
    assert_eq!(setup.findings(), 0);
    setup.driver.free_async("cuMemFreeAsync", a, other).unwrap();
    // Against the allocation and the launch.
    assert_eq!(setup.findings(), 2);
}

#[test]
fn default_streams_are_told_apart() {
    let mut setup = setup();
    let legacy = setup.stream(0, false).unwrap();
    let own = setup.stream(0, true).unwrap();
    assert_eq!(legacy, StreamId::LEGACY);
    assert_ne!(own, legacy);
    assert_eq!(setup.stream(2, false), Ok(own));
    assert_eq!(setup.stream(1, true), Ok(legacy));
    let context = setup.driver.context(1).unwrap();
    let other = |context| Caller { thread: 2, context };
    assert_ne!(setup.driver.watch.stream(0, true, other(context)), Ok(own));
    // Each context has default streams of its own.
    let second = setup.driver.create_context(2, 0);
    assert_ne!(setup.driver.watch.stream(0, false, other(second)), Ok(legacy));
    assert_eq!(setup.driver.watch.stream(0, false, other(context)), Ok(legacy));
    assert_eq!(setup.stream(0x77, false), Err(Code::INVALID_HANDLE));
}

#[test]
fn what_may_not_be_is_refused() {
    let mut setup = setup();
    let a = setup.driver.allocate("cuMemAlloc", 64).unwrap();
    assert_eq!(setup.launch(a, 1, StreamId::LEGACY, 65), Err(Code::INVALID_VALUE));
    assert_eq!(setup.driver.allocate("cuMemAlloc", 0), Err(Code::INVALID_VALUE));
    assert_eq!(setup.driver.allocate("cuMemAlloc", 1 << 45), Err(Code::OUT_OF_MEMORY));
    let rows = Rows::one(a + 60, BASE, 8);
    let copied = setup.driver.copy("c", (Side::Device, Side::Host), rows, StreamId::LEGACY, Timing::Waits);
    assert_eq!(copied, Err(Code::INVALID_VALUE));
    assert_eq!(setup.driver.find(1, "put"), Err(Code::INVALID_HANDLE));
    let text = setup.host.add(b"no PTX at all\0");
    assert_eq!(setup.driver.load_data("cuModuleLoadData", text), Err(Code::INVALID_PTX));
    // As long as a header, which is read whole.
    let elf = setup.host.add(format!("{:64}", "\x7fELF and more").as_bytes());
    assert_eq!(setup.driver.load_data("cuModuleLoadData", elf), Err(Code::NO_BINARY_FOR_GPU));
    assert_eq!(setup.driver.ready(2), Err(Code::INVALID_CONTEXT));
}
