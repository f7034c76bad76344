//! The emulator as a device that is used step by step: memory is allocated, modules are loaded and kernels launched as a
//! program asks for it.

use std::sync::Arc;
use std::time::Instant;

use super::decode::{self, Layout};
use super::image::Image;
use super::inserted::Inserted;
use super::machine::{Machine, Setup};
use super::memory::{Kind, Memory};
use super::record::Recorder;
use super::weak::Weak;
use super::{begins, parameters};
use crate::backend::{
    BackendError, Images, Launch, LaunchInfo, MemoryOrder, Owner, Region, RunOptions, Sink, Stop,
};
use crate::instrument::SiteTable;
use crate::ptx::ast::Module;
use crate::span::SourceFile;

/// An emulated device.
#[derive(Debug, Default)]
pub struct Device {
    memory: Memory,
}

/// A module that lies in the device's memory.
#[derive(Debug)]
pub struct Loaded {
    sites: Arc<SiteTable>,
    layout: Layout,
    variables: Vec<Region>,
}

impl Loaded {
    /// Its global and constant variables.
    pub fn variables(&self) -> &[Region] {
        &self.variables
    }

    /// Its sites.
    pub fn sites(&self) -> &Arc<SiteTable> {
        &self.sites
    }
}

/// A kernel that is ready to be launched.
pub struct Kernel {
    image: Image,
    weak: Weak,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("params", &self.image.params).finish_non_exhaustive()
    }
}

impl Kernel {
    /// Offset and size of each parameter.
    pub fn params(&self) -> &[(u64, u64)] {
        &self.image.params
    }

    /// Bytes of static shared memory.
    pub fn shared_bytes(&self) -> u64 {
        self.image.shared_bytes
    }

    /// Bytes of local memory of a thread.
    pub fn local_bytes(&self) -> u64 {
        self.image.functions.get(self.image.kernel as usize).map_or(0, |function| function.local_bytes)
    }
}

impl Device {
    /// Allocates memory that counts as not written; it is filled with zeros.
    pub fn allocate(&mut self, name: impl Into<String>, bytes: usize) -> u64 {
        let base = self.memory.allocate(name, 1, vec![0; bytes], Kind::Buffer, 512);
        self.memory.unwrite(base);
        base
    }

    /// Makes memory of the host, which lies at `base`, known to kernels; tells whether there was room. What kernels see is a
    /// copy, which the caller keeps up to date by `read` and `write`.
    pub fn map(&mut self, name: impl Into<String>, base: u64, bytes: usize) -> bool {
        self.memory.allocate_at(base, name.into(), vec![0; bytes])
    }

    /// Ends an allocation or a mapping that begins here, and tells its size. Kernels that access it later fault.
    pub fn free(&mut self, base: u64) -> Option<u64> {
        self.memory.remove(base)
    }

    /// Forgets that there was an allocation here, so that the host may map its memory there again.
    pub fn unmap(&mut self, base: u64) -> Option<u64> {
        let bytes = self.memory.remove(base);
        self.memory.forget(base);
        bytes
    }

    /// Base and size of the allocation that holds an address.
    pub fn around(&self, address: u64) -> Option<(u64, u64)> {
        self.memory.region(address)
    }

    /// Bytes of memory, or why they cannot be read.
    pub fn read(&mut self, address: u64, bytes: usize) -> Result<&[u8], String> {
        self.memory.bytes(address, bytes, false).map(|bytes| &*bytes).map_err(|refused| refused.detail)
    }

    /// Bytes of memory for the host to write, constant memory included, or why there are none.
    pub fn write(&mut self, address: u64, bytes: usize) -> Result<&mut [u8], String> {
        self.memory.host_bytes(address, bytes).map_err(|refused| refused.detail)
    }

    /// Loads a module.
    pub fn load(&mut self, module: &Module<'_>, sites: Arc<SiteTable>) -> Loaded {
        let layout = decode::lay_out(module, &Inserted::default(), &mut self.memory);
        let variables = layout.bases().into_iter().filter_map(|base| {
            let allocation = self.memory.at(base)?;
            let (name, bytes) = (allocation.name.clone(), allocation.data.len() as u64);
            Some(Region { name, base, bytes, element: allocation.element, owner: Owner::Device })
        });
        Loaded { sites, variables: variables.collect(), layout }
    }

    /// Unloads a module.
    pub fn unload(&mut self, loaded: &Loaded) {
        for variable in &loaded.variables {
            self.memory.remove(variable.base);
        }
    }

    /// Decodes a kernel of a loaded module, whose text is parsed anew.
    pub fn kernel(&self, source: &SourceFile, loaded: &Loaded, name: &str) -> Result<Kernel, BackendError> {
        let parsed = crate::ptx::parse(source.text());
        let input = decode::Input {
            module: &parsed.module,
            layout: &loaded.layout,
            sites: Some(&loaded.sites),
            unlogged: begins(&loaded.sites, |_| false),
            inserted: &Inserted::default(),
        };
        let image = decode::image(&input, name)?;
        Ok(Kernel { image, weak: Weak::new(&loaded.sites) })
    }

    /// Runs a launch to its end. Its number is `index`; the sink gets its records.
    pub fn launch(
        &mut self,
        kernel: &Kernel,
        launch: &Launch,
        index: u32,
        options: &RunOptions,
        images: &Images,
        sink: &mut dyn Sink,
    ) -> Result<Option<Stop>, BackendError> {
        let weak = options.memory == MemoryOrder::Weak && launch.clusters().size() == 1;
        let setup = Setup {
            image: &kernel.image,
            launch,
            index,
            params: parameters(&kernel.image, launch, &[], &[])?,
            seed: options.seed,
            deadline: options.timeout.map(|timeout| Instant::now() + timeout),
            timeout: options.timeout,
            ring: None,
            weak: weak.then(|| kernel.weak.clone()),
            schedule: None,
            images: images.clone(),
        };
        let mut recorder = Recorder::new(sink);
        // Whoever launches step by step knows what there is.
        recorder.begin(&LaunchInfo { index, images: images.clone(), ..LaunchInfo::default() });
        let mut machine = Machine::new(setup, &mut self.memory, recorder);
        let stop = machine.run();
        machine.finish();
        Ok(stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Unit;
    use crate::backend::{Arg, Fault, FaultKind, LaunchEnd};

    struct Count(u64);

    impl Sink for Count {
        fn begin(&mut self, _: &LaunchInfo) {}
        fn records(&mut self, _: &[Unit]) {}
        fn end(&mut self, end: &LaunchEnd) {
            self.0 += end.records;
        }
    }

    const PTX: &str = "\
.version 8.0
.target sm_80
.address_size 64
.global .u32 counter = 5;
.visible .entry add(.param .u64 p)
{
    .reg .u64 %rd<2>;
    .reg .u32 %r<3>;
    ld.param.u64 %rd1, [p];
    ld.global.u32 %r1, [counter];
    ld.global.u32 %r2, [%rd1];
    add.u32 %r2, %r2, %r1;
    st.global.u32 [%rd1], %r2;
    ret;
}
";

    fn launch(pointer: u64) -> Launch {
        Launch {
            kernel: "add".into(),
            grid: [1; 3],
            block: [1; 3],
            cluster: None,
            shared: 0,
            stream: 0,
            device: 0,
            after: Vec::new(),
            args: vec![Arg::Value(pointer.to_le_bytes().to_vec())],
        }
    }

    #[test]
    fn kernels_and_the_host_share_memory_across_launches() {
        let source = SourceFile::new("a.ptx", PTX).unwrap();
        let module = crate::ptx::parse(source.text()).module;
        let mut device = Device::default();
        let loaded = device.load(&module, Arc::new(SiteTable::numbered(&module, 7)));
        let [counter] = loaded.variables() else { panic!("{:?}", loaded.variables()) };
        let kernel = device.kernel(&source, &loaded, "add").unwrap();
        let buffer = device.allocate("b", 4);
        assert!(device.map("host", 0x7f00_0000_0000, 64));
        assert!(!device.map("again", 0x7f00_0000_0020, 4));
        device.write(buffer, 4).unwrap().copy_from_slice(&[1, 0, 0, 0]);
        let mut sink = Count(0);
        let options = RunOptions::default();
        let mut run = |device: &mut Device, at| {
            device.launch(&kernel, &launch(at), 0, &options, &Images::default(), &mut sink).unwrap()
        };
        assert!(run(&mut device, buffer).is_none());
        device.write(counter.base, 4).unwrap()[0] = 10;
        assert!(run(&mut device, buffer).is_none());
        assert_eq!(device.read(buffer, 4).unwrap(), [16, 0, 0, 0]);
        assert!(run(&mut device, 0x7f00_0000_0000).is_none());
        assert_eq!(device.read(0x7f00_0000_0000, 4).unwrap(), [10, 0, 0, 0]);
        assert_eq!(device.free(buffer), Some(4));
        let stop = run(&mut device, buffer);
        assert!(matches!(stop, Some(Stop::Fault(Fault { kind: FaultKind::Freed, .. }))), "{stop:?}");
        assert_eq!(device.unmap(0x7f00_0000_0000), Some(64));
        assert!(device.map("again", 0x7f00_0000_0020, 4));
        assert!(sink.0 >= 9);
    }
}
