//! The emulator: a PTX interpreter that runs where no GPU is.
//!
//! A kernel and everything it can call is decoded once into a flat list of operations (`decode`, `ops`), and a
//! machine of blocks, warps and lanes runs them (`machine`). A register is a row of 32 lanes, so that an operation is
//! a loop over contiguous values.
//!
//! *Modelled*: all integer, logic, conversion and IEEE float operations; generic addressing, bounds and alignment of
//! every access; divergence with independent threads; barriers, warp exchanges, calls; atomics. *Approximated*:
//! memory is sequentially consistent; approximate float functions are exact to the last bit or so; clocks count steps.
//! *Absent*: asynchronous copies, mbarriers, clusters, textures and matrix operations: a launch that reaches one
//! stops there (`Stop::Unsupported`), and what was recorded until then stands.
//!
//! The schedule follows from `RunOptions::seed` alone. Schedule points are the program's own instructions.

mod decode;
mod image;
mod inserted;
mod machine;
mod memory;
mod ops;
mod record;
mod regs;
mod rng;
mod special;
mod types;

#[cfg(test)]
mod tests;

use std::time::Instant;

pub use inserted::Inserted;

use super::{Arg, Backend, BackendError, LaunchInfo, Outcome, Plan, Program, RunOptions, Sink};
use image::Image;
use machine::{Machine, Setup};
use memory::{Kind, Memory};
use record::Recorder;

/// Threads that a block can have.
const MOST_THREADS: u64 = 1024;

/// Runs the original text and writes the records itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Emulator;

impl Emulator {
    /// The emulator.
    pub fn new() -> Self {
        Self
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
        let mut memory = Memory::default();
        let buffers = place_buffers(plan, &mut memory);
        let layout = decode::lay_out(program.module, &mut memory);
        let inserted = Inserted::default();
        let input = decode::Input {
            module: program.module,
            layout: &layout,
            sites: Some(program.sites),
            inserted: &inserted,
        };
        let mut images: Vec<(&str, Image)> = Vec::new();
        for launch in &plan.launches {
            if !images.iter().any(|(kernel, _)| *kernel == launch.kernel) {
                images.push((&launch.kernel, decode::image(&input, &launch.kernel)?));
            }
        }
        let deadline = options.timeout.map(|timeout| Instant::now() + timeout);
        let mut stop = None;
        for (index, launch) in (0..).zip(&plan.launches) {
            let Some((_, image)) = images.iter().find(|(kernel, _)| *kernel == launch.kernel) else {
                continue;
            };
            let params = parameters(image, launch, &buffers)?;
            let setup = Setup {
                image,
                launch,
                index,
                params,
                seed: options.seed,
                deadline,
                timeout: options.timeout,
                hook: None,
            };
            let mut recorder = Recorder::new(sink);
            recorder.begin(&LaunchInfo { index, regions: memory.regions() });
            let mut machine = Machine::new(setup, &mut memory, recorder);
            stop = machine.run();
            machine.finish();
            if stop.is_some() {
                break;
            }
        }
        Ok(Outcome { buffers: contents(&buffers, &memory), stop })
    }
}

/// Allocates the plan's buffers and tells their bases.
fn place_buffers(plan: &Plan, memory: &mut Memory) -> Vec<u64> {
    plan.buffers
        .iter()
        .map(|buffer| {
            let element = buffer.ty.bytes() as u64;
            memory.allocate(buffer.name.clone(), element, buffer.contents.clone(), Kind::Buffer, 256)
        })
        .collect()
}

fn contents(buffers: &[u64], memory: &Memory) -> Vec<Vec<u8>> {
    buffers.iter().map(|base| memory.at(*base).map(|a| a.data.clone()).unwrap_or_default()).collect()
}

/// The bytes of a launch's parameters, checked against the kernel.
fn parameters(image: &Image, launch: &super::Launch, buffers: &[u64]) -> Result<Vec<u8>, BackendError> {
    let refuse = |what: String| Err(BackendError::Plan(format!("kernel `{}`: {what}", launch.kernel)));
    let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
    if threads == 0 || threads > MOST_THREADS {
        return refuse(format!("a block of {threads} threads, where 1 to {MOST_THREADS} are possible"));
    }
    if launch.blocks() == 0 || launch.blocks() > u64::from(u32::MAX) {
        return refuse(format!("a grid of {} blocks", launch.blocks()));
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
