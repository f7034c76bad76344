//! Architectures of images, and which device runs them.

use std::fmt;
use std::str::FromStr;

/// On which devices besides its own an image runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suffix {
    /// Compatible: PTX on every later device, machine code on those of the same major version.
    None,
    /// `f`: on later devices of its family.
    Family,
    /// `a`: on no other device.
    Exact,
}

/// An architecture, such as `sm_90a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arch {
    /// Its number, such as 90.
    pub sm: u32,
    /// How far it reaches.
    pub suffix: Suffix,
}

/// A device by its compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// The number of its architecture, such as 90 for compute capability 9.0.
    sm: u32,
}

/// A text that names no architecture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no architecture; they look like `sm_90` or `sm_90a`")]
pub struct BadArch(String);

impl Device {
    /// The device of a compute capability.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { sm: major.saturating_mul(10).saturating_add(minor) }
    }
}

impl From<Arch> for Device {
    /// The device that an architecture is named after.
    fn from(arch: Arch) -> Self {
        Self { sm: arch.sm }
    }
}

impl Arch {
    /// Whether a device compiles PTX of this architecture.
    pub fn ptx_runs_on(self, device: Device) -> bool {
        let (own, device) = (current(self.sm), current(device.sm));
        match self.suffix {
            Suffix::None => own <= device,
            Suffix::Family => own <= device && own / 10 == device / 10,
            Suffix::Exact => own == device,
        }
    }

    /// Whether a device runs machine code of this architecture.
    pub fn code_runs_on(self, device: Device) -> bool {
        let same_major = current(self.sm) / 10 == current(device.sm) / 10;
        same_major && self.ptx_runs_on(device)
    }
}

/// 10.1 became 11.0 with PTX 9.0: one device under two names.
fn current(sm: u32) -> u32 {
    if sm == 101 { 110 } else { sm }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.suffix {
            Suffix::None => "",
            Suffix::Family => "f",
            Suffix::Exact => "a",
        };
        f.pad(&format!("sm_{}{suffix}", self.sm))
    }
}

impl FromStr for Arch {
    type Err = BadArch;

    fn from_str(text: &str) -> Result<Self, BadArch> {
        let bad = || BadArch(text.to_owned());
        let name = text.strip_prefix("sm_").ok_or_else(bad)?;
        let (number, suffix) = match (name.strip_suffix('a'), name.strip_suffix('f')) {
            (Some(number), _) => (number, Suffix::Exact),
            (_, Some(number)) => (number, Suffix::Family),
            _ => (name, Suffix::None),
        };
        let digits = (2..=3).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
        let sm = number.parse().ok().filter(|_| digits).ok_or_else(bad)?;
        Ok(Self { sm, suffix })
    }
}
