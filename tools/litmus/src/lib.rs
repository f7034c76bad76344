//! Litmus programs for ptxrace.
//!
//! ```text
//! text --parse--> Program --compile--> PTX + plan --run (explore)--> races and final states of all schedules
//!                 Program --Display--> text --oracle--> races and final states of all executions
//! ```
//!
//! The emulator's memory is sequentially consistent, so what is reached here is a part of what the memory model allows.
#![forbid(unsafe_code)]

pub mod compile;
pub mod explore;
pub mod generate;
pub mod oracle;
pub mod parse;
pub mod program;
pub mod random;
pub mod run;
pub mod shrink;
pub mod verdicts;
