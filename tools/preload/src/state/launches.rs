//! Launches: each runs at once, and its findings are written when it has ended.

use std::sync::Arc;

use ptxrace::backend::{Arg, BackendError, FaultKind, Launch, LaunchEnd, Stop};
use ptxrace::session::exec::log::{Gap, Line};

use super::{Driver, Function, Stream, devices};
use crate::code::{Answer, Code};

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

/// Takes records to the engine, if the launch is to be checked, and keeps how it ended.
struct Tap<'t> {
    engine: Option<&'t mut ptxrace::engine::Engine>,
    end: LaunchEnd,
}

impl ptxrace::backend::Sink for Tap<'_> {
    fn begin(&mut self, info: &ptxrace::backend::LaunchInfo) {
        if let Some(engine) = &mut self.engine {
            engine.begin(info);
        }
    }

    fn records(&mut self, units: &[ptxrace::abi::Unit]) {
        if let Some(engine) = &mut self.engine {
            engine.records(units);
        }
    }

    fn end(&mut self, end: &LaunchEnd) {
        self.end = end.clone();
        if let Some(engine) = &mut self.engine {
            engine.end(end);
        }
    }
}

impl Driver {
    /// The arguments of a launch.
    fn arguments(&self, function: &Function, config: &Config) -> Answer<Vec<Arg>> {
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
            arguments.push(Arg::Value(value));
        }
        Ok(arguments)
    }

    /// Launches a kernel.
    pub(crate) fn launch(&mut self, function: u64, config: &Config) -> Answer {
        let function = self.function(function)?.clone();
        let args = self.arguments(&function, config)?;
        let launch = Launch {
            kernel: function.name.clone(),
            grid: config.grid,
            block: config.block,
            cluster: config.cluster.or(function.cluster),
            shared: config.shared,
            stream: config.stream.0,
            after: Vec::new(),
            args,
        };
        let threads = launch.threads();
        let fits = config.block.iter().all(|n| (1..=1024).contains(n)) && threads <= function.most_threads;
        let shared = i32::try_from(config.shared).unwrap_or(i32::MAX);
        if !fits || shared > function.dynamic_bytes.clamp(48 << 10, devices::SHARED_BYTES) {
            return Err(Code::INVALID_VALUE);
        }
        if config.grid.contains(&0) {
            return Err(Code::INVALID_VALUE);
        }
        let order = self.streams.enqueue(config.stream);
        let index = order.index;
        let checked = self.wanted.next(&launch.kernel);
        self.say(&Line::Launch {
            index,
            module: function.number,
            kernel: launch.kernel.clone(),
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            stream: launch.stream,
            checked,
        });
        self.flush();
        self.engine.add_launch(&launch, order);
        self.map_in();
        let mut tap = Tap { engine: checked.then_some(&mut self.engine), end: LaunchEnd::default() };
        let kernel = Arc::clone(&function.kernel);
        let ran = self.device.launch(&kernel, &launch, index, &self.options, &mut tap);
        let end = tap.end;
        self.map_out();
        let shared = self.engine.shared_variables();
        let (stop, refused) = match ran {
            Ok(stop) => (stop, None),
            Err(error) => (None, Some(error)),
        };
        self.fault = self.fault.or(stop.as_ref().map(code));
        self.say(&Line::End { index, end, stop, shared });
        self.report(false);
        match refused {
            None => Ok(()),
            Some(BackendError::Plan(_)) => Err(Code::INVALID_VALUE),
            Some(error) => {
                self.gap(Gap::Call, format!("kernel `{}` was not run: {error}", function.name));
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
