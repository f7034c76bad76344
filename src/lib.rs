//! ptxrace: a PTX-level instrumenting dynamic race detector for CUDA.
//!
//! ```text
//! PTX text --ptx--> (Module, errors) --isa + instrument--> (PTX', SiteTable)
//!    --backend: gpu | emu--> [Record] --event--> Event --engine--> Finding
//!    --explain (+ SourceMap, SiteTable)--> Diagnostic --report--> text | json | sarif | junit | github | html
//! ```
//!
//! The modules below are rooms in that order. A room imports only from rooms above it; `session`, `cli` and `main`
//! import anything. `tests/tidy.rs` reads the `use` lines and holds this. The library never prints, exits or panics on
//! input: errors are values with spans, and only `report` renders them.

#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::exit, clippy::unwrap_used, clippy::panic)
)]

pub mod span;

pub mod diag;

pub mod fatbin;

pub mod ptx;

pub mod isa;

pub mod abi;

pub mod tensor;

pub mod instrument;

pub mod backend;

pub mod trace;

pub mod engine;
pub mod event;

pub mod finding;

pub mod explain;

pub mod report;

pub mod session;

pub mod cli;
