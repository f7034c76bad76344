//! What stands on the tape of a process: all that its engine and its log are told.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::log::Line;
use super::order::Step;
use crate::backend::{Launch, LaunchEnd, LaunchInfo, Stop};
use crate::engine::HostAccess;

/// One event. Records of a launch are between those of its beginning and its end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Event<'e> {
    /// A line of the log that tells of nothing else.
    Line(Cow<'e, Line>),
    /// A module was loaded.
    Module { path: String, text: Cow<'e, str>, first_site: u32, sites: u32 },
    /// A launch is given to a stream.
    Launch { launch: Cow<'e, Launch>, step: Step, module: usize, checked: bool, test: Option<String> },
    /// It begins.
    Begin(Cow<'e, LaunchInfo>),
    /// All of its records have come.
    Ended(Cow<'e, LaunchEnd>),
    /// It is over.
    Over { index: u32, end: Cow<'e, LaunchEnd>, stop: Cow<'e, Option<Stop>> },
    /// An operation of the host.
    Host { call: Cow<'e, str>, stream: u32, accesses: Cow<'e, [HostAccess]>, step: Step },
    /// The process ends in an orderly way.
    Left,
}
