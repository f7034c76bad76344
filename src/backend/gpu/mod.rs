//! The GPU backend: instruments a program, lets the driver compile it, runs it and drains the rings meanwhile.
//!
//! Launches run one after another in the plan's order, whatever their streams: the engine knows from the plan which
//! of them are unordered.

mod driver;
mod reach;
mod ring;

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::driver::{Array, Context, DeviceMemory, Failure, Kernel, Memory, Module, Object, Shape, Stream};
pub use self::driver::{leave_abandoned, library};
pub use self::reach::unlogged;
pub use self::ring::{Damaged, RingSizes, Taken, take};
use self::ring::{Rings, RoundError};
use super::plan::placed;
use super::{
    Arg, Backend, BackendError, Fault, FaultKind, Images, Launch, LaunchEnd, LaunchInfo, Outcome, Owner,
    Phase, Plan, PlanStorage, Program, Region, RunOptions, Sink, Stop,
};
use crate::abi::control::CONTROL_SYMBOL;
use crate::instrument::{CallMode, InstrumentError, SiteTable, instrument};
use crate::ptx::ast::VarSpace;
use crate::tensor::{self, TensorMap};

/// Registers of a multiprocessor. A block must get by with them.
const REGISTERS: u32 = 64 * 1024;
/// The most registers that a thread can have.
const MAX_REGISTERS: u32 = 255;
/// A run of this process. The driver loads a module only when kernels have ended, and one of another run might wait for its rings to
/// be emptied by a thread that the driver makes wait as well.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// How long the host sleeps when the rings were empty: from, to.
const IDLE: (Duration, Duration) = (Duration::from_micros(10), Duration::from_micros(500));

/// The first GPU of the machine.
#[derive(Debug)]
pub struct Gpu {
    context: Context,
    rings: RingSizes,
}

impl Gpu {
    /// Opens it; an error if there is no driver or no device.
    pub fn open() -> Result<Self, BackendError> {
        Self::with_rings(RingSizes::default())
    }

    /// Opens it, to run with rings of other sizes.
    pub fn with_rings(rings: RingSizes) -> Result<Self, BackendError> {
        Ok(Self { context: Context::open()?, rings })
    }

    /// The name of the device.
    pub fn device_name(&self) -> Result<String, BackendError> {
        Ok(self.context.device_name()?)
    }

    fn load(&self, program: Program<'_>, plan: &Plan, clock: &mut Clock) -> Result<Module<'_>, BackendError> {
        // Logging costs registers: a block that just fitted must still fit.
        let threads = plan.launches.iter().map(Launch::threads).max().unwrap_or(1).max(1);
        let registers = REGISTERS / threads / 8 * 8;
        let cap = (registers < MAX_REGISTERS).then_some(registers.max(16));
        let mut mode = CallMode::Local;
        loop {
            let text = instrument(program.source.text(), program.module, program.sites, mode)?.text;
            clock.lap("instrument");
            let loaded = self.context.load(&text, cap);
            clock.lap("compile");
            match loaded {
                Ok(module) => return Ok(module),
                Err((failure, log)) => match mode.instead(&log) {
                    Some(other) => mode = other,
                    None => {
                        let detail = failure.detail();
                        let detail = if log.is_empty() { detail } else { format!("{detail}\n{log}") };
                        return Err(BackendError::Driver { call: "cuModuleLoadDataEx".into(), detail });
                    }
                },
            }
        }
    }
}

impl From<InstrumentError> for BackendError {
    fn from(error: InstrumentError) -> Self {
        Self::Unsupported { at: error.span(), what: error.to_string() }
    }
}

impl Backend for Gpu {
    fn name(&self) -> &'static str {
        "gpu"
    }

    fn run(
        &mut self,
        program: Program<'_>,
        plan: &Plan,
        options: &RunOptions,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, BackendError> {
        if self.context.is_abandoned() {
            return Err(BackendError::NoDevice("a launch that took too long still runs on it".into()));
        }
        let _one = ONE_AT_A_TIME.lock();
        let mut clock = Clock::new();
        sink.expect_rings();
        self.context.make_current()?;
        let module = self.load(program, plan, &mut clock)?;
        let buffers = buffers(&self.context, plan)?;
        let arrays = arrays(&self.context, plan, &buffers)?;
        let objects = objects(&self.context, plan, &buffers, &arrays)?;
        let handles: Vec<_> = objects.iter().map(Object::handle).collect();
        let address = |buffer: usize| buffers.get(buffer).map_or(0, DeviceMemory::address);
        let images = plan.images(&handles, address);
        let mut run = Run {
            context: &self.context,
            images,
            handles,
            buffers,
            rings: Rings::new(&self.context, self.rings, options.on_full)?,
            stream: self.context.stream()?,
            regions: Vec::new(),
            deadline: options.timeout.map(|after| (Instant::now() + after, after)),
            analysis: Duration::ZERO,
        };
        run.regions = regions(program, plan, &run.buffers, &module)?;
        let is_set = module.set_variable(CONTROL_SYMBOL, run.rings.control())?;
        if !is_set && !program.sites.sites().is_empty() {
            return Err(BackendError::Plan(format!("the loaded module has no `{CONTROL_SYMBOL}`")));
        }
        clock.lap("prepare");
        for (index, launch) in (0u32..).zip(&plan.launches) {
            check_arguments(program, launch)?;
            let kernel = kernel(&module, launch)?;
            let unlogged = unlogged(program.module, program.sites, &launch.kernel);
            if let Some(stop) = run.launch(index, launch, &kernel, unlogged, program.sites, sink)? {
                return Ok(Outcome { stop: Some(stop), ..Outcome::default() });
            }
        }
        clock.lap("kernels");
        clock.apart("kernels", "analysis", run.analysis);
        for (array, of) in arrays.iter().zip(&plan.arrays) {
            if let Some(buffer) = run.buffers.get(of.contents) {
                array.fetch(buffer)?;
            }
        }
        let mut contents: Vec<_> = plan.buffers.iter().map(|buffer| vec![0; buffer.contents.len()]).collect();
        for (memory, contents) in run.buffers.iter().zip(&mut contents) {
            memory.download(contents)?;
        }
        clock.lap("results");
        Ok(Outcome { buffers: contents, phases: clock.phases, ..Outcome::default() })
    }
}

/// Tells what takes how long.
struct Clock {
    last: Instant,
    phases: Vec<Phase>,
}

impl Clock {
    fn new() -> Self {
        Self { last: Instant::now(), phases: Vec::new() }
    }

    /// What was done since the last time.
    fn lap(&mut self, name: &'static str) {
        let now = Instant::now();
        self.phases.push(Phase { name, time: now - self.last });
        self.last = now;
    }

    /// Part of a phase counts for itself.
    fn apart(&mut self, from: &str, name: &'static str, time: Duration) {
        if let Some(phase) = self.phases.iter_mut().find(|phase| phase.name == from) {
            phase.time = phase.time.saturating_sub(time);
        }
        self.phases.push(Phase { name, time });
    }
}

/// Allocates the plan's buffers with their contents.
fn buffers<'c>(context: &'c Context, plan: &Plan) -> Result<Vec<DeviceMemory<'c>>, BackendError> {
    let allocate = |buffer: &super::Buffer| {
        let memory = context.alloc(buffer.contents.len())?;
        memory.upload(&buffer.contents)?;
        Ok(memory)
    };
    plan.buffers.iter().map(allocate).collect()
}

/// Makes the plan's arrays with the contents of their buffers.
fn arrays<'c>(
    context: &'c Context,
    plan: &Plan,
    buffers: &[DeviceMemory<'_>],
) -> Result<Vec<Array<'c>>, BackendError> {
    let make = |array: &super::PlanArray| {
        let made = context.array(array.shape)?;
        let bytes = plan.buffers.get(array.contents).map(|buffer| buffer.contents.len() as u64);
        let from = buffers.get(array.contents).filter(|_| bytes == array.shape.bytes());
        let wrong = || BackendError::Plan(format!("`{}` is not of the size of its contents", array.name));
        made.fill(from.ok_or_else(wrong)?)?;
        Ok(made)
    };
    plan.arrays.iter().map(make).collect()
}

/// Makes the plan's textures and surfaces.
fn objects<'c>(
    context: &'c Context,
    plan: &Plan,
    buffers: &[DeviceMemory<'_>],
    arrays: &[Array<'_>],
) -> Result<Vec<Object<'c>>, BackendError> {
    let make = |image: &super::PlanImage| {
        let memory = match image.storage {
            PlanStorage::Buffer(at) => buffers.get(at).map(Memory::Linear),
            PlanStorage::Rows { buffer, extent, pitch } => {
                buffers.get(buffer).map(|memory| Memory::Rows(memory, extent, pitch))
            }
            PlanStorage::Array(at) => arrays.get(at).map(Memory::Array),
        };
        let memory = memory.ok_or_else(|| BackendError::Plan("an image without memory".into()))?;
        let sampling = (!image.surface).then_some(&image.sampling);
        Ok(context.object(memory, image.texel, sampling)?)
    };
    plan.images.iter().map(make).collect()
}

/// Buffers and module variables by name.
fn regions(
    program: Program<'_>,
    plan: &Plan,
    memory: &[DeviceMemory<'_>],
    module: &Module<'_>,
) -> Result<Vec<Region>, BackendError> {
    let mut regions: Vec<_> = plan
        .buffers
        .iter()
        .zip(memory)
        .map(|(buffer, memory)| Region {
            name: buffer.name.clone(),
            base: memory.address(),
            bytes: buffer.contents.len() as u64,
            element: buffer.ty.bytes() as u64,
            owner: buffer.owner,
        })
        .collect();
    regions.extend(plan.arrays.iter().map(|array| Region {
        name: array.name.clone(),
        base: array.shape.base,
        bytes: array.shape.bytes().unwrap_or(0),
        element: array.shape.texel.bytes().into(),
        owner: Owner::Device,
    }));
    for variable in program.module.variables().filter(|variable| variable.space == VarSpace::Global) {
        // The compiler may have dropped a variable that nothing uses.
        if let Some((base, bytes)) = module.variable(variable.name.text)? {
            let name = variable.name.text.to_owned();
            regions.push(Region {
                name,
                base,
                bytes: bytes as u64,
                element: variable.element_bytes().max(1),
                owner: Owner::Device,
            });
        }
    }
    Ok(regions)
}

/// The driver reads each parameter's bytes from where it is told, so there must be as many.
fn check_arguments(program: Program<'_>, launch: &Launch) -> Result<(), BackendError> {
    let refuse = |what: String| Err(BackendError::Plan(format!("kernel `{}`: {what}", launch.kernel)));
    let Some(kernel) = program.module.entries().find(|entry| entry.name.text == launch.kernel) else {
        return refuse("the module has no such entry".into());
    };
    let (given, wanted) = (launch.args.len(), kernel.params.len());
    if given != wanted {
        return refuse(format!("{given} arguments, where {wanted} parameters are"));
    }
    for (arg, parameter) in launch.args.iter().zip(&kernel.params) {
        let bytes = match arg {
            Arg::Value(value) => value.len() as u64,
            Arg::Buffer(_) | Arg::Image(_) => size_of::<u64>() as u64,
            Arg::Tensor(..) => tensor::BYTES as u64,
        };
        if parameter.bytes() != Some(bytes) {
            let wanted = parameter.bytes().unwrap_or(0);
            return refuse(format!(
                "an argument of {bytes} bytes for `{}`, which has {wanted}",
                parameter.name.text
            ));
        }
    }
    Ok(())
}

fn kernel<'m>(module: &'m Module<'m>, launch: &Launch) -> Result<Kernel<'m>, BackendError> {
    module.kernel(&launch.kernel).map_err(|failure| {
        if failure.is_not_found() {
            BackendError::Plan(format!("the loaded module has no kernel `{}`", launch.kernel))
        } else {
            failure.into()
        }
    })
}

/// The bytes of arguments, and the tensor maps among them.
type Arguments = (Vec<Vec<u8>>, Vec<(u64, TensorMap)>);

/// What the launches of a run share.
struct Run<'c> {
    context: &'c Context,
    buffers: Vec<DeviceMemory<'c>>,
    images: Images,
    /// Of the plan's images.
    handles: Vec<u64>,
    rings: Rings<'c>,
    stream: Stream<'c>,
    regions: Vec<Region>,
    deadline: Option<(Instant, Duration)>,
    /// How long the sink has taken.
    analysis: Duration,
}

/// How a kernel came to its end.
enum Ended {
    Whole,
    Stopped(Stop),
}

impl Run<'_> {
    /// Runs one launch. The sink hears of its end in any case.
    fn launch(
        &mut self,
        index: u32,
        launch: &Launch,
        kernel: &Kernel<'_>,
        unlogged: Vec<u32>,
        sites: &SiteTable,
        sink: &mut dyn Sink,
    ) -> Result<Option<Stop>, BackendError> {
        let (arguments, tensor_maps) = self.arguments(launch)?;
        let shape =
            Shape { grid: launch.grid, block: launch.block, cluster: launch.cluster, shared: launch.shared };
        let (regions, images) = (self.regions.clone(), self.images.clone());
        sink.begin(&LaunchInfo { index, regions, tensor_maps, images, counter: 0 });
        let mut end = LaunchEnd { unlogged, ..LaunchEnd::default() };
        let result = self
            .rings
            .expect(launch.blocks())
            .and_then(|()| kernel.launch(&self.stream, shape, &arguments))
            .map_err(BackendError::from)
            .and_then(|()| self.drain(index, &mut end, sink));
        // The device does not tell when an unlogged instruction ran, so it may have been before anything.
        end.unseen_order = end.dropped > 0 || sites.may_order(&end.unlogged);
        let begin = Instant::now();
        sink.end(&end);
        self.analysis += begin.elapsed();
        match result? {
            Ended::Whole => Ok(None),
            Ended::Stopped(stop) => Ok(Some(stop)),
        }
    }

    /// The parameters' bytes, and the tensor maps among them.
    fn arguments(&self, launch: &Launch) -> Result<Arguments, BackendError> {
        let buffer = |index: usize| match self.buffers.get(index) {
            Some(memory) => Ok(memory.address()),
            None => Err(BackendError::Plan(format!("`{}` is given no buffer {index}", launch.kernel))),
        };
        let mut maps = Vec::new();
        let bytes = |arg: &Arg| match arg {
            Arg::Value(bytes) => Ok(bytes.clone()),
            Arg::Buffer(index) => Ok(buffer(*index)?.to_le_bytes().to_vec()),
            Arg::Tensor(index, map) => {
                let map = placed(map, buffer(*index)?);
                let bytes = self.context.encode(&map)?;
                maps.push((tensor::digest(&bytes), map));
                Ok(bytes.to_vec())
            }
            Arg::Image(index) => match self.handles.get(*index) {
                Some(handle) => Ok(handle.to_le_bytes().to_vec()),
                None => Err(BackendError::Plan(format!("`{}` is given no image {index}", launch.kernel))),
            },
        };
        let bytes = launch.args.iter().map(bytes).collect::<Result<_, BackendError>>()?;
        Ok((bytes, maps))
    }

    /// Hands on records until the kernel has ended and the rings are empty.
    fn drain(&mut self, index: u32, end: &mut LaunchEnd, sink: &mut dyn Sink) -> Result<Ended, BackendError> {
        let mut idle = IDLE.0;
        loop {
            // Asked first, so that the round after the end sees all that was written.
            let round = self.stream.is_done().map_err(RoundError::from).and_then(|done| {
                let round = self.rings.round(sink)?;
                Ok((done, round))
            });
            let (done, round) = match round {
                Ok(round) => round,
                Err(RoundError::Driver(failure)) if failure.is_fault() => {
                    return Ok(Ended::Stopped(fault(index, failure)));
                }
                Err(RoundError::Driver(failure)) => return Err(failure.into()),
                Err(RoundError::Damaged(damaged)) => {
                    return Err(self.lost(done_or_gone(&self.stream), damaged.to_string()));
                }
            };
            end.records += round.records;
            self.analysis += round.analysis;
            if done && !round.pending {
                end.dropped = self.rings.dropped()?;
                return Ok(Ended::Whole);
            }
            if done && round.records == 0 {
                return Err(
                    self.lost(true, "the kernel ended without writing all that it had reserved".into())
                );
            }
            // A kernel that never ends may write records for ever, so this comes whether there were any or not.
            if let Some((deadline, after)) = self.deadline
                && !done
                && Instant::now() >= deadline
                // It may have ended while the records were analysed.
                && !self.stream.is_done().unwrap_or(false)
            {
                self.context.abandon();
                return Ok(Ended::Stopped(Stop::Timeout { after, warps: Vec::new() }));
            }
            if round.records > 0 {
                idle = IDLE.0;
            } else {
                std::thread::sleep(idle);
                idle = (idle * 2).min(IDLE.1);
            }
        }
    }

    /// The log cannot be read on. A kernel that still runs is left alone.
    fn lost(&self, ended: bool, detail: String) -> BackendError {
        if !ended {
            self.context.abandon();
        }
        BackendError::Driver { call: "reading the log".into(), detail }
    }
}

fn done_or_gone(stream: &Stream<'_>) -> bool {
    stream.is_done().unwrap_or(true)
}

fn fault(launch: u32, failure: Failure) -> Stop {
    let detail = format!("the device stopped: {}", failure.detail());
    Stop::Fault(Fault { kind: FaultKind::Device, launch, thread: None, at: None, detail })
}
