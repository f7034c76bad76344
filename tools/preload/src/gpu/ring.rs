//! The rings of a context: records in memory of the host that the device writes to, so that they are read without any call of
//! the driver, whose locks the program may hold while a kernel waits for room.

use std::sync::atomic::{AtomicU64, Ordering};

use ptxrace::abi::control::{COUNTER_STRIDE, Control, FIRST_TICKET, Line, is_written};
use ptxrace::abi::{MAX_RESERVED, Unit};
use ptxrace::backend::Sink;
use ptxrace::backend::gpu::{Damaged, take};

use super::driver;
use crate::code::Answer;

/// As many as keep warps from waiting for each other.
const RINGS: usize = 64;
/// Units of each, 16 bytes a unit.
const UNITS: usize = 16 * 1024;
/// Words from one counter to the next.
const STRIDE: usize = COUNTER_STRIDE as usize / 8;

const _: () = assert!(UNITS.is_power_of_two() && RINGS.is_power_of_two() && UNITS > MAX_RESERVED);

/// The rings of a context.
#[derive(Debug)]
pub(super) struct Rings {
    /// Its own among all of the process, as each has a counter of tickets.
    pub(super) number: u32,
    /// Address of the control block on the device.
    pub(super) control: u64,
    /// A stream for the control block and its like.
    pub(super) stream: u64,
    /// Addresses here.
    data: usize,
    tails: usize,
    /// How far each ring has been read.
    positions: Vec<u64>,
    taken: Vec<Unit>,
}

impl Rings {
    /// For the current context. They stay until it is destroyed.
    pub(super) fn new(number: u32) -> Answer<Self> {
        let (data, device_data) = driver::mapped(RINGS * UNITS * size_of::<Unit>())?;
        let (tails, device_tails) = driver::mapped(RINGS * COUNTER_STRIDE as usize)?;
        for at in 0..RINGS * UNITS * 2 {
            word(data, at).store(0, Ordering::Relaxed);
        }
        (0..RINGS * STRIDE).for_each(|at| word(tails, at).store(0, Ordering::Relaxed));
        // Heads are counted by the device, whose atomics reach its own memory best.
        let heads = driver::allocate(RINGS * COUNTER_STRIDE as usize)?;
        let control = driver::allocate(size_of::<Control>())?;
        let stream = driver::stream()?;
        let block = Control {
            data: device_data,
            heads,
            tails: device_tails,
            capacity: UNITS as u64,
            ring_mask: RINGS as u32 - 1,
            tickets: Line { next: FIRST_TICKET },
            ..Control::default()
        };
        driver::write(stream, heads, &[0; RINGS * COUNTER_STRIDE as usize])?;
        driver::write(stream, control, &block.bytes())?;
        Ok(Self { number, control, stream, data, tails, positions: vec![0; RINGS], taken: Vec::new() })
    }

    /// Hands on the whole records that have arrived, ring by ring until it is told to stop, and tells how many.
    pub(super) fn round(&mut self, sink: &mut dyn Sink, stop: impl Fn() -> bool) -> Result<u64, Damaged> {
        let mut records = 0;
        for ring in 0..RINGS {
            // What one ring holds may take long to analyse.
            if stop() {
                break;
            }
            let position = self.positions[ring];
            self.taken.clear();
            for at in position..position + UNITS as u64 {
                let slot = 2 * (ring * UNITS + (at as usize & (UNITS - 1)));
                // A unit is one store of the device. Its second word says whether it is there.
                let hi = word(self.data, slot + 1).load(Ordering::Acquire);
                let unit = Unit { lo: word(self.data, slot).load(Ordering::Relaxed), hi };
                if !is_written(unit, at, UNITS as u64) {
                    break;
                }
                self.taken.push(unit);
            }
            if self.taken.is_empty() {
                continue;
            }
            let whole = take(&mut self.taken, position, UNITS as u64)?;
            if whole.units > 0 {
                sink.records(&self.taken[..whole.units]);
                self.positions[ring] += whole.units as u64;
                word(self.tails, ring * STRIDE).store(self.positions[ring], Ordering::Release);
                records += whole.records;
            }
        }
        Ok(records)
    }
}

/// A word of mapped memory.
fn word(base: usize, at: usize) -> &'static AtomicU64 {
    // SAFETY: `Rings` has allocated so many words there, a page apart from others, and never frees them; the device writes
    // them too, which is why they are atomic.
    unsafe { &*(base as *const AtomicU64).add(at) }
}
