//! The emulator: a PTX interpreter that runs where no GPU is.
//!
//! A kernel and everything it can call is decoded once into a flat list of operations (`decode`, `ops`), and a
//! machine of blocks, warps and lanes runs them (`machine`). A register is a row of 32 lanes, so that an operation is
//! a loop over contiguous values.
//!
//! *Modelled*: all integer, logic, conversion and IEEE float operations; generic addressing, bounds and alignment of
//! every access; divergence with independent threads; barriers, warp exchanges, calls; atomics; clusters, mbarriers and
//! asynchronous copies, of boxes of tensors too, whose bytes move at some time before they are waited for; matrix operations
//! of a warp and of a warpgroup; textures and surfaces by handle.
//! *Approximated*: memory is sequentially consistent, unless it shall be weak (`weak`); approximate float functions are exact to
//! the last bit or so; clocks count steps; textures see memory as it is, and filters are as the programming guide has them. *Absent*:
//! cube maps, mipmaps, copies by `im2col` tensor maps, multimem and sparse products of a warpgroup: a launch that reaches one of these
//! stops there (`Stop::Unsupported`), and what was recorded until then stands.
//!
//! The schedule follows from `RunOptions::seed` alone, or is chosen step by step by a `Schedule`. Schedule points are the
//! program's own instructions.

mod decode;
mod device;
mod image;
mod inserted;
mod instrumented;
mod machine;
mod mbarrier;
mod memory;
mod ops;
mod record;
mod regs;
mod rng;
mod sample;
mod schedule;
mod special;
mod types;
mod weak;
mod written;

#[cfg(test)]
mod tests;

use std::time::Instant;

use rustc_hash::FxHashMap;

use super::plan::placed;
use super::{
    Arg, Backend, BackendError, LaunchInfo, MemoryOrder, Outcome, Owner, Plan, Program, Region, RunOptions,
    Sink,
};
use crate::abi::control::CONTROL_SYMBOL;
use crate::instrument::{self, CallMode, SiteTable};
use crate::ptx::ast::Module;
use crate::span::Span;
use crate::tensor::{TensorMap, digest};
pub use device::{Device, Kernel, Loaded};
use image::Image;
use inserted::Inserted;
use instrumented::Room;
use machine::{Machine, Setup};
use memory::{Kind, Memory};
use record::Recorder;
pub use schedule::{Arrival, Schedule, Touch, Turn};
use weak::Weak;

/// Threads that a block can have.
const MOST_THREADS: u64 = 1024;
/// Blocks that a cluster can have, by the most generous device.
const MOST_BLOCKS: u32 = 16;
/// Bytes of shared memory that a block can have, by the most generous device.
const MOST_SHARED: u64 = 227 << 10;
/// Bytes of local memory that a thread can have.
const MOST_LOCAL: u64 = 512 << 10;
/// Registers of a kernel.
const MOST_REGISTERS: u32 = 1 << 18;

/// Runs programs without a GPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Emulator {
    instrumented: bool,
}

impl Emulator {
    /// Runs the original text and writes the records itself.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs the instrumented text, device runtime included, and takes the records out of the ring it fills. Records
    /// and results are those of a native run with the same seed; this is slower, and tests the instrumentation. Spans
    /// of a `Stop` are of the instrumented text.
    pub fn instrumented() -> Self {
        Self { instrumented: true }
    }
}

impl Backend for Emulator {
    fn name(&self) -> &'static str {
        "emu"
    }

    fn run(
        &mut self,
        program: Program<'_>,
        plan: &Plan,
        options: &RunOptions,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, BackendError> {
        if !self.instrumented {
            let text = Text {
                module: program.module,
                sites: Some(program.sites),
                unlogged: begins(program.sites, |_| false),
                inserted: &Inserted::default(),
            };
            let mut loaded = load(text, plan)?;
            return launch_all(&loaded.code, &mut loaded.memory, plan, options, sink, None);
        }
        let Program { source, module, sites } = program;
        let instrumented = instrument::instrument(source.text(), module, sites, CallMode::Local)
            .map_err(|error| BackendError::Unsupported { what: error.to_string(), at: error.span() })?;
        let parsed = crate::ptx::parse(&instrumented.text);
        let inserted = Inserted::new(&instrumented.text, &instrumented.inserted);
        let unlogged = begins(&SiteTable::new(&parsed.module), |span| inserted.holds(span));
        let text = Text { module: &parsed.module, sites: None, unlogged, inserted: &inserted };
        let mut loaded = load(text, plan)?;
        launch_all(&loaded.code, &mut loaded.memory, plan, options, sink, None)
    }
}

/// Where unlogged instructions begin, with their numbers; those of inserted code do not count.
fn begins(sites: &SiteTable, inserted: impl Fn(Span) -> bool) -> FxHashMap<u32, u32> {
    (0..).zip(sites.unlogged().iter().filter(|u| !inserted(u.span))).map(|(i, u)| (u.span.start, i)).collect()
}

/// What is run.
struct Text<'r, 'a> {
    module: &'r Module<'a>,
    sites: Option<&'r SiteTable>,
    unlogged: FxHashMap<u32, u32>,
    inserted: &'r Inserted,
}

/// A program made ready to run many times, each time under a schedule that the caller chooses.
pub struct Scripted<'p> {
    loaded: Ready,
    plan: &'p Plan,
}

impl<'p> Scripted<'p> {
    /// Decodes what the plan launches.
    pub fn new(program: Program<'_>, plan: &'p Plan) -> Result<Self, BackendError> {
        let text = Text {
            module: program.module,
            sites: Some(program.sites),
            unlogged: begins(program.sites, |_| false),
            inserted: &Inserted::default(),
        };
        Ok(Self { loaded: load(text, plan)?, plan })
    }

    /// Runs all launches from the plan's initial buffers, each to its end or to where the schedule ends it. The seed of the
    /// options decides nothing.
    pub fn run(
        &self,
        options: &RunOptions,
        schedule: &mut dyn Schedule,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, BackendError> {
        let mut memory = self.loaded.memory.clone();
        launch_all(&self.loaded.code, &mut memory, self.plan, options, sink, Some(schedule))
    }
}

impl std::fmt::Debug for Scripted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scripted").field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// A program, decoded, and memory as it is before the first launch.
struct Ready {
    code: LoadedCode,
    memory: Memory,
}

struct LoadedCode {
    images: Vec<(String, Image)>,
    /// Weak memory as it is when a launch begins; none where the text logs by itself.
    weak: Option<Weak>,
    /// Bases of the plan's buffers.
    buffers: Vec<u64>,
    /// Handles of the plan's images.
    handles: Vec<u64>,
    /// Where inserted code writes, with the symbol that tells it.
    room: Option<(Room, u64)>,
}

fn load(text: Text<'_, '_>, plan: &Plan) -> Result<Ready, BackendError> {
    let mut memory = Memory::default();
    let buffers = place_buffers(plan, &mut memory);
    place_arrays(plan, &mut memory)?;
    let handles = (1..).take(plan.images.len()).collect();
    let Text { module, sites, unlogged, inserted } = text;
    let layout = decode::lay_out(module, inserted, &mut memory);
    let control = layout.named(CONTROL_SYMBOL).filter(|_| sites.is_none());
    let room = control.map(|control| (Room::new(&mut memory), control));
    let input = decode::Input { module, layout: &layout, sites, unlogged, inserted };
    let mut images: Vec<(String, Image)> = Vec::new();
    for launch in &plan.launches {
        if !images.iter().any(|(kernel, _)| *kernel == launch.kernel) {
            images.push((launch.kernel.clone(), decode::image(&input, &launch.kernel)?));
        }
    }
    let weak = sites.map(Weak::new);
    Ok(Ready { code: LoadedCode { images, weak, buffers, handles, room }, memory })
}

fn launch_all(
    code: &LoadedCode,
    memory: &mut Memory,
    plan: &Plan,
    options: &RunOptions,
    sink: &mut dyn Sink,
    mut schedule: Option<&mut dyn Schedule>,
) -> Result<Outcome, BackendError> {
    let LoadedCode { images, weak, buffers, handles, room } = code;
    let objects = plan.images(handles, |buffer| buffers.get(buffer).copied().unwrap_or(0));
    let deadline = options.timeout.map(|timeout| Instant::now() + timeout);
    let mut stop = None;
    let mut executed = 0;
    for (index, launch) in (0..).zip(&plan.launches) {
        let Some((_, image)) = images.iter().find(|(kernel, _)| *kernel == launch.kernel) else { continue };
        let setup = Setup {
            image,
            launch,
            index,
            params: parameters(image, launch, buffers, handles)?,
            seed: options.seed,
            deadline,
            timeout: options.timeout,
            ring: room.as_ref().map(|(room, control)| room.ring(memory, *control)),
            weak: weak
                .clone()
                .filter(|_| options.memory == MemoryOrder::Weak && launch.clusters().size() == 1),
            schedule: schedule.as_mut().map(|schedule| &mut **schedule as &mut dyn Schedule),
            images: objects.clone(),
        };
        let mut recorder = Recorder::new(sink);
        let (regions, tensor_maps) = (regions(plan, buffers, memory), tensor_maps(launch, buffers));
        recorder.begin(&LaunchInfo { index, regions, tensor_maps, images: objects.clone(), counter: 0 });
        let mut machine = Machine::new(setup, memory, recorder);
        stop = if machine.is_chosen() { machine.run_chosen() } else { machine.run() };
        executed += machine.finish();
        if stop.is_some() {
            break;
        }
    }
    fetch_arrays(plan, buffers, memory);
    Ok(Outcome { buffers: contents(buffers, memory), stop, executed, ..Outcome::default() })
}

/// What lies in memory, and whose the plan's buffers are.
fn regions(plan: &Plan, buffers: &[u64], memory: &Memory) -> Vec<Region> {
    let mut regions = memory.regions();
    for (buffer, base) in plan.buffers.iter().zip(buffers).filter(|(buffer, _)| buffer.owner != Owner::Device)
    {
        regions
            .iter_mut()
            .filter(|region| region.base == *base)
            .for_each(|region| region.owner = buffer.owner);
    }
    regions
}

/// The tensor maps that a launch is given.
fn tensor_maps(launch: &super::Launch, buffers: &[u64]) -> Vec<(u64, TensorMap)> {
    let map = |arg: &Arg| match arg {
        Arg::Tensor(index, map) => {
            let map = placed(map, *buffers.get(*index)?);
            Some((digest(&map.encode()), map))
        }
        _ => None,
    };
    launch.args.iter().filter_map(map).collect()
}

/// Allocates the plan's buffers and tells their bases.
fn place_buffers(plan: &Plan, memory: &mut Memory) -> Vec<u64> {
    plan.buffers
        .iter()
        .map(|buffer| {
            let element = buffer.ty.bytes() as u64;
            let contents = buffer.contents.clone();
            let base = memory.allocate(buffer.name.clone(), element, contents, Kind::Buffer, 256);
            if buffer.unwritten {
                memory.unwrite(base);
            }
            base
        })
        .collect()
}

/// Makes the plan's arrays with the contents of their buffers.
fn place_arrays(plan: &Plan, memory: &mut Memory) -> Result<(), BackendError> {
    for array in &plan.arrays {
        let contents = plan.buffers.get(array.contents).map(|buffer| buffer.contents.clone());
        let contents = contents.filter(|bytes| Some(bytes.len() as u64) == array.shape.bytes());
        let placed = contents.map(|bytes| memory.allocate_at(array.shape.base, array.name.clone(), bytes));
        if placed != Some(true) {
            let what = format!("the array `{}` is not of the size of its contents", array.name);
            return Err(BackendError::Plan(what));
        }
        if let Some(made) = memory.at_mut(array.shape.base) {
            made.element = array.shape.texel.bytes().into();
        }
    }
    Ok(())
}

/// Copies arrays to the buffers that they came from.
fn fetch_arrays(plan: &Plan, buffers: &[u64], memory: &mut Memory) {
    for array in &plan.arrays {
        let Some(bytes) = memory.at(array.shape.base).map(|array| array.data.clone()) else { continue };
        let Some(base) = buffers.get(array.contents) else { continue };
        if let Ok(to) = memory.host_bytes(*base, bytes.len()) {
            to.copy_from_slice(&bytes);
        }
    }
}

fn contents(buffers: &[u64], memory: &Memory) -> Vec<Vec<u8>> {
    buffers.iter().map(|base| memory.at(*base).map(|a| a.data.clone()).unwrap_or_default()).collect()
}

/// The bytes of a launch's parameters, checked against the kernel.
fn parameters(
    image: &Image,
    launch: &super::Launch,
    buffers: &[u64],
    handles: &[u64],
) -> Result<Vec<u8>, BackendError> {
    let refuse = |what: String| Err(BackendError::Plan(format!("kernel `{}`: {what}", launch.kernel)));
    let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
    if threads == 0 || threads > MOST_THREADS {
        return refuse(format!("a block of {threads} threads, where 1 to {MOST_THREADS} are possible"));
    }
    if launch.blocks() == 0 || launch.blocks() > u64::from(u32::MAX) {
        return refuse(format!("a grid of {} blocks", launch.blocks()));
    }
    let clusters = launch.clusters();
    let divides = launch.grid.iter().zip(clusters.extent()).all(|(blocks, size)| blocks.is_multiple_of(size));
    if clusters.size() > MOST_BLOCKS || !divides {
        return refuse(format!("clusters of {:?} in a grid of {:?}", clusters.extent(), launch.grid));
    }
    let shared = image.shared_bytes.max(image.dynamic_base + u64::from(launch.shared));
    if shared > MOST_SHARED {
        return refuse(format!("{shared} bytes of shared memory, where {MOST_SHARED} are possible"));
    }
    let kernel = image.functions.get(image.kernel as usize);
    let (local, registers) = kernel.map_or((0, 0), |k| (k.local_bytes, k.registers));
    if local > MOST_LOCAL || registers > MOST_REGISTERS {
        return refuse(format!(
            "{local} bytes of local memory and {registers} registers are too many to emulate"
        ));
    }
    if launch.args.len() != image.params.len() {
        let (given, wanted) = (launch.args.len(), image.params.len());
        return refuse(format!("{given} arguments, where {wanted} parameters are"));
    }
    let mut bytes = vec![0; usize::try_from(image.param_bytes).unwrap_or(0)];
    for (arg, (offset, size)) in launch.args.iter().zip(&image.params) {
        let value = match arg {
            Arg::Value(value) => value.clone(),
            Arg::Buffer(index) => match buffers.get(*index) {
                Some(base) => base.to_le_bytes().to_vec(),
                None => return refuse(format!("there is no buffer {index}")),
            },
            Arg::Tensor(index, map) => match buffers.get(*index) {
                Some(base) => placed(map, *base).encode().to_vec(),
                None => return refuse(format!("there is no buffer {index}")),
            },
            Arg::Image(index) => match handles.get(*index) {
                Some(handle) => handle.to_le_bytes().to_vec(),
                None => return refuse(format!("there is no image {index}")),
            },
        };
        if value.len() as u64 != *size {
            return refuse(format!("an argument of {} bytes for a parameter of {size}", value.len()));
        }
        let room = bytes.iter_mut().skip(usize::try_from(*offset).unwrap_or(0));
        for (to, from) in room.zip(value) {
            *to = from;
        }
    }
    Ok(bytes)
}
