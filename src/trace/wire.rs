//! What stands in a trace as JSON.

use serde::{Deserialize, Serialize};

use crate::backend::{BackendError, Launch, Stop};
use crate::instrument::SiteTable;

/// More launches than a trace has. What orders them grows with the square of their number.
pub const MOST_LAUNCHES: usize = 10_000;

/// What is known before the program runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Head {
    /// The version of ptxrace.
    pub tool: String,
    /// What reports call the module's file.
    pub file: String,
    /// `sites_digest` of the module.
    pub sites: u32,
    /// `gpu` or `emu`.
    pub backend: String,
    /// The command that was given.
    pub command: String,
    /// The seed of the first schedule.
    pub seed: u64,
    /// Names of the plan's buffers.
    pub buffers: Vec<String>,
    /// The launches, without their arguments.
    pub launches: Vec<Launch>,
    /// What was assumed.
    pub notes: Vec<String>,
}

impl Head {
    /// Whether the launches are such as a command line or a launch file can describe.
    pub(super) fn is_possible(&self) -> bool {
        self.launches.len() <= MOST_LAUNCHES
            && self.launches.iter().enumerate().all(|(index, launch)| {
                is_possible(launch) && launch.after.iter().all(|earlier| *earlier < index)
            })
    }
}

/// What is known before a program runs under `exec`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecHead {
    /// The version of ptxrace.
    pub tool: String,
    /// The command that was given.
    pub command: String,
    /// The exit code where there are races.
    pub races: u8,
    /// An inconclusive run fails.
    pub strict: bool,
    /// What reports note of the environment.
    pub notes: Vec<String>,
}

/// Whether a device can have run a launch of this shape.
pub fn is_possible(launch: &Launch) -> bool {
    let size = |extent: [u32; 3], most: u64| {
        let size = extent.iter().try_fold(1u64, |size, n| size.checked_mul(u64::from(*n)));
        size.is_some_and(|size| (1..=most).contains(&size))
    };
    let divides =
        |cluster: [u32; 3]| launch.grid.iter().zip(cluster).all(|(n, of)| n.checked_rem(of) == Some(0));
    size(launch.grid, u64::from(u32::MAX))
        && size(launch.block, 1024)
        && launch.cluster.is_none_or(|cluster| size(cluster, 16) && divides(cluster))
}

/// A source file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Text {
    /// What the module calls it.
    pub name: String,
    /// Where it was found.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// How a schedule ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) stop: Option<Stop>,
    pub(super) failure: Option<BackendError>,
}

/// The end of a trace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Finish {
    pub(super) schedules: u64,
    /// Of the program, under `exec`.
    #[serde(default)]
    pub(super) status: Option<u8>,
}

/// Tells whether records mean the same: their sites are numbers, which another version of ptxrace may give otherwise.
pub fn sites_digest(sites: &SiteTable) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for site in sites.sites() {
        hasher.update(site.opcode.as_bytes());
        hasher.update(&site.span.start.to_le_bytes());
        hasher.update(&site.payload().flags().to_le_bytes());
        for member in site.bundling.members() {
            hasher.update(&member.site.0.to_le_bytes());
            hasher.update(&member.distance.to_le_bytes());
        }
    }
    hasher.finalize()
}
