//! `ptxrace exec`: a program is run under the wrapper, whose processes write logs, and these become one report.

mod current;
mod environment;
mod launcher;
pub mod log;
mod merge;
pub mod provenance;
pub mod ptxas;
mod wanted;

pub use current::current_test;
pub use environment::{Environment, environment, prepare};
pub use launcher::{Child, Ended, find_wrapper, launch};
pub use merge::merge;
pub use wanted::{Counted, Wanted};

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

use crate::backend::{MemoryOrder, RunOptions};

/// The environment variable that holds `Settings` as JSON.
pub const VARIABLE: &str = "PTXRACE_EXEC";

/// What runs the program's kernels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Runner {
    /// The emulator.
    Emulator,
    /// The GPU, through the real driver at this path.
    Gpu {
        /// The library.
        driver: PathBuf,
    },
}

impl Runner {
    /// `emu` or `gpu`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Emulator => "emu",
            Self::Gpu { .. } => "gpu",
        }
    }
}

/// What the wrapper is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Where logs go.
    pub folder: PathBuf,
    /// The version of whoever reads them.
    pub version: String,
    /// What runs kernels.
    pub runner: Runner,
    /// Seed of the emulator's schedules.
    pub seed: u64,
    /// Whether the emulator's memory is weak.
    pub weak: bool,
    /// Seconds that a launch may take.
    pub timeout: Option<f64>,
    /// Which launches are checked.
    pub wanted: Wanted,
}

impl Settings {
    /// For logs in a folder.
    pub fn new(folder: PathBuf, runner: Runner, options: &RunOptions, wanted: Wanted) -> Self {
        Self {
            folder,
            version: env!("CARGO_PKG_VERSION").into(),
            runner,
            seed: options.seed,
            weak: options.memory == MemoryOrder::Weak,
            timeout: options.timeout.map(|timeout| timeout.as_secs_f64()),
            wanted,
        }
    }

    /// What `VARIABLE` says.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// How to run launches.
    pub fn options(&self) -> RunOptions {
        RunOptions {
            seed: self.seed,
            memory: if self.weak { MemoryOrder::Weak } else { MemoryOrder::Sequential },
            timeout: self.timeout.and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds).ok()),
            ..RunOptions::default()
        }
    }
}
