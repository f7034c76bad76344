//! The symbols. Each takes C types, looks for nothing but null pointers, and hands on to `state`. What pointers point to,
//! the program vouches for, as it does towards the driver itself.

#![allow(non_snake_case, reason = "the names are the driver's")]

mod contexts;
mod copies;
mod functions;
mod graphs;
mod memory;
mod missing;
mod modules;
mod ready;
mod streams;
mod symbols;
mod tensors;
mod textures;
mod values;

use std::ffi::{CStr, c_char};

pub(crate) use copies::{Bytes, Copy2D, Copy3D, rows_2d, rows_3d};
pub(crate) use functions::{LaunchAttribute, LaunchConfig, cluster, packed};
pub(crate) use symbols::address;
#[cfg(test)]
pub(crate) use symbols::all_names;
pub(crate) use tensors::Tiled;
pub(crate) use textures::{Array3DDescriptor, ArrayDescriptor, Described, ResourceDesc, TextureDesc};

use crate::call::Cx;
use crate::code::{Answer, Code};
use crate::watch::{Caller, HostMemory, Stream};

impl Cx {
    /// The stream of a handle.
    fn stream(self, driver: &mut crate::state::Driver, handle: u64) -> Answer<Stream> {
        let thread = crate::process::thread();
        let context = driver.context(thread).unwrap_or(0);
        driver.watch.stream(handle, self.per_thread, Caller { thread, context })
    }
}

/// Symbols, their other names, and those of their per-thread variants: `fn NAME(cx; arguments) as [NAMES] per_thread [NAMES]`.
macro_rules! calls {
    ($(
        $(#[doc = $doc:literal])*
        fn $call:ident($cx:ident; $($arg:ident: $ty:ty),* $(,)?) as [$($name:ident)*] per_thread [$($thread:ident)*] $body:block
    )*) => {
        mod inner {
            #[allow(unused_imports, reason = "not every file needs all")]
            use super::*;
            $(
                $(#[doc = $doc])*
                #[allow(clippy::too_many_arguments, reason = "as many as the driver's has")]
                pub(super) fn $call($cx: super::super::Cx, $($arg: $ty),*) -> crate::code::Answer {
                    let _ = $cx;
                    $body
                }
            )*
        }
        $(
            calls!(@symbol $call, $call, false, ($($arg: $ty),*), ($($arg),*));
            calls!(@each $call, false, [$($name)*], ($($arg: $ty),*), ($($arg),*));
            calls!(@each $call, true, [$($thread)*], ($($arg: $ty),*), ($($arg),*));
        )*
        /// Names and addresses.
        pub(super) fn table() -> Vec<(&'static str, usize)> {
            vec![$(
                (stringify!($call), $call as *const () as usize),
                $((stringify!($name), $name as *const () as usize),)*
                $((stringify!($thread), $thread as *const () as usize),)*
            )*]
        }
    };
    (@each $call:ident, $per_thread:literal, [], $typed:tt, $plain:tt) => {};
    (@each $call:ident, $per_thread:literal, [$name:ident $($rest:ident)*], $typed:tt, $plain:tt) => {
        calls!(@symbol $call, $name, $per_thread, $typed, $plain);
        calls!(@each $call, $per_thread, [$($rest)*], $typed, $plain);
    };
    (@symbol $call:ident, $name:ident, $per_thread:literal, ($($arg:ident: $ty:ty),*), ($($plain:ident),*)) => {
        #[allow(clippy::too_many_arguments, reason = "as many as the driver's has")]
        pub(crate) extern "C" fn $name($($arg: $ty),*) -> u32 {
            let cx = super::Cx { call: stringify!($call), per_thread: $per_thread };
            crate::process::guard(stringify!($name), || crate::code::given_back(inner::$call(cx, $($plain),*)))
        }
    };
}
use calls;

/// Writes a result to where the program wants it.
pub(crate) fn put<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the program gives a pointer that it may be written through.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// The same where the program may leave it out.
fn put_if<T>(to: *mut T, value: T) {
    if !to.is_null() {
        let _ = put(to, value);
    }
}

/// Reads a value of the program's.
pub(crate) fn get<T: Copy>(from: *const T) -> Answer<T> {
    if from.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the program gives a pointer to such a value, which any bytes are.
    Ok(unsafe { from.read_unaligned() })
}

/// A text of the program's.
pub(crate) fn text<'t>(from: *const c_char) -> Answer<&'t str> {
    if from.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the program gives a pointer to a text that ends with a zero byte and stays during the call.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map_err(|_| Code::INVALID_VALUE)
}

/// Copies a text to a buffer of the program's, cut off if need be, with a zero byte behind it.
fn put_text(to: *mut c_char, bytes: usize, text: &str) -> Answer {
    if to.is_null() || bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    for (at, byte) in text.bytes().take(bytes - 1).chain([0]).enumerate() {
        // SAFETY: the buffer has `bytes` bytes, of which no more are written.
        unsafe { to.add(at).write(byte.cast_signed()) };
    }
    Ok(())
}

/// Memory of this process.
pub(crate) struct Own;

/// Of memory that is allocated here.
const ALIGN: usize = 4096;

fn layout(bytes: usize) -> Option<std::alloc::Layout> {
    std::alloc::Layout::from_size_align(bytes.checked_next_multiple_of(ALIGN)?, ALIGN).ok()
}

impl HostMemory for Own {
    fn read(&self, address: u64, to: &mut [u8]) {
        // SAFETY: the program has said that so many bytes may be read there. `copy` allows for a program that copies what
        // `to` was made from.
        unsafe { std::ptr::copy(address as *const u8, to.as_mut_ptr(), to.len()) };
    }

    fn write(&mut self, address: u64, from: &[u8]) {
        // SAFETY: the program has said that so many bytes may be written there.
        unsafe { std::ptr::copy(from.as_ptr(), address as *mut u8, from.len()) };
    }

    fn text(&self, address: u64) -> Vec<u8> {
        // SAFETY: the program has said that there is a text which ends with a zero byte.
        unsafe { CStr::from_ptr(address as *const c_char) }.to_bytes().to_vec()
    }

    fn allocate(&mut self, bytes: usize) -> Option<u64> {
        let layout = layout(bytes).filter(|layout| layout.size() > 0)?;
        // SAFETY: the size is not zero.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        (!memory.is_null()).then_some(memory as u64)
    }

    fn release(&mut self, address: u64, bytes: usize) {
        if let Some(layout) = layout(bytes) {
            // SAFETY: `state` gives back once what `allocate` gave, with the same size.
            unsafe { std::alloc::dealloc(address as *mut u8, layout) };
        }
    }
}
