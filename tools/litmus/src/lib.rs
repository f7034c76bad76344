//! Litmus programs for ptxrace.
//!
//! ```text
//! text --parse--> Program --compile--> PTX + plan --run (explore)--> races and final states of all schedules
//!                 Program --Display--> text --oracle--> races and final states of all executions
//! ```
//!
//! What is reached here is a part of what the memory model allows: the sequentially consistent part exactly, or with weak memory
//! (`Options::memory`) all but load buffering and what else `backend::emu` leaves out.
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
