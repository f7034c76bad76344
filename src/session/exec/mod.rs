//! `ptxrace exec`: a program is run under the wrapper, whose processes write logs, and these become one report. With a tape
//! of each process besides, it can be made again.

mod current;
mod environment;
mod event;
mod launcher;
pub mod log;
mod merge;
mod observer;
mod order;
pub mod provenance;
pub mod ptxas;
mod record;
mod replay;
mod wanted;

pub use current::current_test;
pub use environment::{Environment, environment, prepare};
pub use launcher::{Child, Ended, find_wrapper, launch};
pub use merge::{Logs, merge};
pub use observer::Observer;
pub use record::Recording;
pub(super) use replay::{Foreign, replay};
pub use wanted::{Counted, Wanted};

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

use crate::backend::{MemoryOrder, RunOptions};
use crate::engine::{Analysis, Budget};
use log::{Line, Writer};

/// The environment variable that holds `Settings` as JSON.
pub const VARIABLE: &str = "PTXRACE_EXEC";

/// The environment variable that says how many devices the emulator offers to a program; without it, one.
pub const DEVICES: &str = "PTXRACE_EMU_DEVICES";

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
    /// What the analysis of a process may take.
    pub memory: Budget,
    /// Whether it is kept which calls have led to memory.
    pub backtraces: bool,
    /// Where tapes go, if there shall be any.
    pub tapes: Option<PathBuf>,
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
            memory: Budget::UNLIMITED,
            backtraces: false,
            tapes: None,
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

/// Begins to observe the process of this number, as it was told.
pub fn observe(settings: &Settings, pid: u32, command: Vec<String>) -> Observer<Option<Writer>> {
    let Ok(log) = Writer::create(&settings.folder, pid) else {
        return Observer::new(None, Analysis::default());
    };
    let tape = settings.tapes.as_ref().map(|folder| log.tape(folder));
    let analysis = Analysis { memory: settings.memory, ..Analysis::default() };
    let mut observer = Observer::new(Some(log), analysis);
    if let Some(tape) = tape {
        observer = observer.with(tape);
    }
    let (version, backend) = (env!("CARGO_PKG_VERSION").into(), settings.runner.name().into());
    observer.say(&Line::Process { pid, version, backend, command });
    observer.flush();
    observer
}

/// What decides with which status `exec` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The status where there are races.
    pub races: u8,
    /// An inconclusive run fails.
    pub strict: bool,
    /// The program's own. That of a trace which is cut off is not known.
    pub status: Option<u8>,
}
