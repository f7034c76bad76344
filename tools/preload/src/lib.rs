//! The CUDA driver's symbols, for programs that run under `ptxrace exec`. What is behind them is the emulator, or the real
//! driver with hooks before it; either checks every kernel.
//!
//! | module | holds |
//! | --- | --- |
//! | `stubs` | the symbols, which are jumps |
//! | `frames` | the calls that led to a call of the driver |
//! | `call`, `code` | how a symbol was called, and result codes |
//! | `process` | what a process has: one of the two below; threads, forks, the end |
//! | `graph` | graphs: what their nodes do, and in which order |
//! | `watch` | what the engine and the log are told, whoever runs kernels |
//! | `state` | the driver on the emulator, safe: memory, modules, launches |
//! | `api` | its functions: C types to `state` and back, `unsafe` |
//! | `gpu` | hooks before the real driver, `unsafe` |
//! | `trampoline` | `dlopen`, for programs that load the driver or a compiler by its path |
//! | `compilers` | NVRTC and nvJitLink, which are asked for the PTX of what they make |
//!
//! The library lies in every process that is started: until the first call of a symbol it does nothing.
//!
//! All host threads count as ordered by their calls; what host code itself reads and writes is not seen. What is not followed
//! is told of in the report: on the emulator, what it does not provide and answers with `CUDA_ERROR_NOT_SUPPORTED` (arrays and
//! textures, graphs with conditions or memory of their own, virtual memory management, IPC, cooperative launches over several
//! devices, `cuLink`); before the real driver, launches of such graphs.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr))]

mod api;
mod call;
mod code;
mod compilers;
mod frames;
mod gpu;
mod graph;
mod process;
mod state;
mod stubs;
mod trampoline;
mod watch;
