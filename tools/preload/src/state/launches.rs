//! Launches: each runs at once, and its findings are written when it has ended.

use std::sync::Arc;

use ptxrace::backend::{Arg, BackendError, FaultKind, Launch, Stop};
use ptxrace::session::exec::log::Gap;

use super::{Driver, Function, Stream, devices};
use crate::code::{Answer, Code};
use crate::graph::{self, Work};

/// A launch, as the program wants it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) shared: u32,
    pub(crate) stream: Stream,
    /// Address of an array of addresses of arguments, or 0.
    pub(crate) arguments: u64,
    /// Address and size of a buffer with all arguments, instead.
    pub(crate) packed: Option<(u64, u64)>,
}

impl Driver {
    /// The arguments of a launch.
    fn arguments(&self, function: &Function, config: &Config) -> Answer<Vec<Vec<u8>>> {
        let mut arguments = Vec::new();
        for (index, (offset, size)) in (0u64..).zip(function.kernel.params()) {
            let mut value = vec![0; *size as usize];
            if let Some((buffer, bytes)) = config.packed {
                if offset + size > bytes {
                    return Err(Code::INVALID_VALUE);
                }
                self.host.read(buffer + offset, &mut value);
            } else {
                if config.arguments == 0 {
                    return Err(Code::INVALID_VALUE);
                }
                let mut at = [0; 8];
                self.host.read(config.arguments + 8 * index, &mut at);
                self.host.read(u64::from_le_bytes(at), &mut value);
            }
            arguments.push(value);
        }
        Ok(arguments)
    }

    /// A launch with its arguments, which a stream may be given now or later.
    pub(crate) fn prepare(&self, function: u64, config: &Config) -> Answer<graph::Kernel> {
        let of = self.function(function)?;
        let arguments = self.arguments(of, config)?;
        let Config { grid, block, shared, .. } = *config;
        let threads: u32 = block.iter().copied().fold(1, u32::saturating_mul);
        let fits = block.iter().all(|n| (1..=1024).contains(n)) && threads <= of.most_threads;
        let bytes = i32::try_from(shared).unwrap_or(i32::MAX);
        if !fits || bytes > of.dynamic_bytes.clamp(48 << 10, devices::SHARED_BYTES) || grid.contains(&0) {
            return Err(Code::INVALID_VALUE);
        }
        let cluster = config.cluster.or(of.cluster);
        Ok(graph::Kernel { function, grid, block, cluster, shared, cooperative: false, arguments })
    }

    /// Launches a kernel.
    pub(crate) fn launch(&mut self, function: u64, config: &Config) -> Answer {
        let kernel = self.prepare(function, config)?;
        if self.is_capturing(config.stream) {
            return self.capture(config.stream, Work::Kernel(kernel));
        }
        self.run(&kernel, config.stream)
    }

    /// Runs a kernel in the order of a stream.
    pub(super) fn run(&mut self, kernel: &graph::Kernel, stream: Stream) -> Answer {
        let function = self.function(kernel.function)?.clone();
        let launch = Launch {
            kernel: function.name.clone(),
            grid: kernel.grid,
            block: kernel.block,
            cluster: kernel.cluster,
            shared: kernel.shared,
            device: self.at_hand,
            stream: stream.0,
            after: Vec::new(),
            args: kernel.arguments.iter().cloned().map(Arg::Value).collect(),
        };
        let checked = self.watch.wants(&launch.kernel);
        let index = self.watch.begin_launch(&launch, function.number, stream, checked);
        self.map_in();
        let images = self.watch.textures.images();
        let mut tap = self.watch.tap(checked);
        let kernel = Arc::clone(&function.kernel);
        let ran = self.device.launch(&kernel, &launch, index, &self.options, &images, &mut tap);
        let end = tap.into_end();
        self.map_out();
        let (stop, refused) = match ran {
            Ok(stop) => (stop, None),
            Err(error) => (None, Some(error)),
        };
        self.fault = self.fault.or(stop.as_ref().map(code));
        self.watch.end_launch(index, end, stop);
        match refused {
            None => Ok(()),
            Some(BackendError::Plan(_)) => Err(Code::INVALID_VALUE),
            Some(error) => {
                self.watch.gap(Gap::Call, format!("kernel `{}` was not run: {error}", function.name));
                Err(Code::NOT_SUPPORTED)
            }
        }
    }
}

/// What the driver says of a launch that did not end well.
fn code(stop: &Stop) -> Code {
    match stop {
        Stop::Timeout { .. } | Stop::Deadlock { .. } => Code::LAUNCH_TIMEOUT,
        Stop::Unsupported { .. } => Code::NOT_SUPPORTED,
        Stop::Fault(fault) => match fault.kind {
            FaultKind::OutOfBounds | FaultKind::Freed => Code::ILLEGAL_ADDRESS,
            FaultKind::Misaligned => Code::MISALIGNED_ADDRESS,
            FaultKind::Trap | FaultKind::Device => Code::LAUNCH_FAILED,
        },
    }
}
