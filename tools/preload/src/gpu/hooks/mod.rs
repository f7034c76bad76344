//! The symbols that do more than go on to the real driver. Each first calls it, and then says what that meant.

#![allow(non_snake_case, reason = "the names are the driver's")]

mod contexts;
mod copies;
mod graphs;
mod launches;
mod link;
mod memory;
mod modules;
mod others;
mod streams;
mod symbols;
mod tensors;
mod textures;
mod values;

pub(super) use streams::call_later;
pub(super) use symbols::find;
#[cfg(test)]
pub(crate) use symbols::hooked_names;

use ptxrace::session::exec::log::Gap;

use super::Gpu;
use crate::call::Cx;
use crate::process::{guard, watching};
use crate::watch::Stream;

impl Cx {
    /// A handle that means the same for calls of all variants.
    fn handle(self, stream: u64) -> u64 {
        match (stream, self.per_thread) {
            (0, true) => 2,
            (0, false) => 1,
            _ => stream,
        }
    }

    /// The stream of a handle.
    fn watched(self, gpu: &mut Gpu, handle: u64) -> Stream {
        gpu.stream(self.handle(handle))
    }
}

/// Symbols: `fn CALL(cx, real; arguments) as [NAMES] per_thread [NAMES of the per-thread variants]`. `real` calls the driver.
/// `runtime [CALL = NAME]` makes one more for the runtime, which calls the driver's NAME when a program calls CALL.
macro_rules! hooks {
    ($(
        fn $call:ident($cx:ident, $real:ident; $($arg:ident: $ty:ty),* $(,)?) as [$($name:ident)*] per_thread [$($thread:ident)*] $(runtime [$($runtime:ident = $of:ident)*])? $body:block
    )*) => {
        mod inner {
            #[allow(unused_imports, reason = "not every file needs all")]
            use super::*;
            $(
                #[allow(clippy::too_many_arguments, reason = "as many as the driver's has")]
                pub(super) fn $call($cx: super::super::Cx, $real: extern "C" fn($($ty),*) -> u32, $($arg: $ty),*) -> u32 {
                    let _ = $cx;
                    $body
                }
            )*
        }
        $(
            hooks!(@each $call, false, [$($name)*], ($($arg: $ty),*));
            hooks!(@each $call, true, [$($thread)*], ($($arg: $ty),*));
            hooks!(@runtime $call, [$($($runtime = $of)*)?], ($($arg: $ty),*));
        )*
        /// Names and addresses.
        pub(super) fn table() -> Vec<(&'static str, usize)> {
            vec![$(
                $((stringify!($name), $name as *const () as usize),)*
                $((stringify!($thread), $thread as *const () as usize),)*
                $($((stringify!($runtime), $runtime as *const () as usize),)*)?
            )*]
        }
    };
    (@each $call:ident, $per_thread:literal, [], $typed:tt) => {};
    (@each $call:ident, $per_thread:literal, [$name:ident $($rest:ident)*], $typed:tt) => {
        hooks!(@symbol $call, $call, $name, $name, $per_thread, $typed);
        hooks!(@each $call, $per_thread, [$($rest)*], $typed);
    };
    (@runtime $call:ident, [], $typed:tt) => {};
    (@runtime $call:ident, [$name:ident = $of:ident $($rest:tt)*], $typed:tt) => {
        hooks!(@symbol $call, $name, $name, $of, false, $typed);
        hooks!(@runtime $call, [$($rest)*], $typed);
    };
    (@symbol $call:ident, $shown:ident, $name:ident, $of:ident, $per_thread:literal, ($($arg:ident: $ty:ty),*)) => {
        #[allow(clippy::too_many_arguments, reason = "as many as the driver's has")]
        extern "C" fn $name($($arg: $ty),*) -> u32 {
            static AT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
            let name = std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($of), "\0").as_bytes());
            let at = name.ok().and_then(|name| crate::gpu::driver::cached(&AT, name));
            let Some(at) = at else { return crate::code::Code::NOT_FOUND.0 };
            // SAFETY: this is the driver's function of that name, which has these types.
            let real: extern "C" fn($($ty),*) -> u32 = unsafe { std::mem::transmute(at) };
            let cx = super::Cx { call: stringify!($shown), per_thread: $per_thread };
            super::guard(stringify!($name), || inner::$call(cx, real, $($arg),*))
        }
    };
}
use hooks;

/// Says what a call meant, if the driver did it.
fn done(code: u32, what: impl FnOnce(&mut Gpu)) -> u32 {
    if code == 0 && !super::given_up() {
        watching(|gpu| {
            gpu.catch_up();
            what(gpu);
        });
    }
    code
}

/// What a call meant to a stream, unless it made a node of a graph.
fn in_order(code: u32, cx: Cx, stream: u64, what: impl FnOnce(&mut Gpu, Stream)) -> u32 {
    let handle = cx.handle(stream);
    done(code, |gpu| {
        if !super::driver::is_capturing(handle) {
            let stream = gpu.stream(handle);
            what(gpu, stream);
        }
    })
}

/// Says that a call is not followed.
fn skipped(code: u32, cx: Cx) -> u32 {
    done(code, |gpu| gpu.watch.gap(Gap::Call, format!("`{}` is not followed", cx.call)))
}
