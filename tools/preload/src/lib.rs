//! The CUDA driver's symbols, for programs that run under `ptxrace exec`. They come from the emulator, which checks every
//! kernel.
//!
//! | module | holds |
//! | --- | --- |
//! | `code` | result codes |
//! | `state` | the driver proper, safe: memory, modules, streams, events, launches |
//! | `process` | the one driver of a process; threads, forks, the end |
//! | `api` | the symbols: C types to state and back, `unsafe` |
//! | `trampoline` | `dlopen`, for programs that load the driver by its path |
//!
//! The library lies in every process that is started: until the first call of a symbol it does nothing.
//!
//! What is not provided answers `CUDA_ERROR_NOT_SUPPORTED`, and the report says so where it may matter: graphs and stream
//! capture, arrays and textures, virtual memory management, IPC, cooperative launches over several devices, linking (`cuLink`).
//! All host threads count as ordered by their calls; what host code itself reads and writes is not seen.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr))]

mod api;
mod code;
mod gpu;
mod process;
mod state;
mod stubs;
mod trampoline;
mod watch;
