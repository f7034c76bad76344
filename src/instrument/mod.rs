//! From a module to its instrumented text: the sites, the edits and the device runtime.
//!
//! Every site of the table gets a call of a function that writes its record (see `abi`): before a weak access, a
//! barrier, a warp instruction or the end of a thread, and behind a strong access or a fence, which stand between two
//! tickets. Lanes whose guard is false, or whose generic address is private to the thread or read-only, branch around.
//!
//! Nothing is put in that could order memory or make threads meet: no fence, no barrier, only `.sync` warp
//! instructions over the lanes that are together anyway. The original instructions stay as they are, but for `red`,
//! which becomes `atom` to learn the old value, and `_` destinations whose value is logged.
//!
//! New names begin with `__ptxrace_`, and each site's temporaries and labels live in a scope of their own.

mod access;
mod address;
mod atomic;
mod code;
pub mod edit;
mod error;
mod order;
mod pass;
mod rewrite;
mod runtime;
mod shared;
mod site;
mod symbols;
mod value;

pub use error::InstrumentError;
pub use site::{SharedVariable, Site, SiteId, SiteKind, SiteTable, Unlogged};

use crate::ptx::ast::Module;
use crate::span::Span;

/// How the logging functions are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallMode {
    /// As functions local to the module, whose registers ptxas chooses. Costs least.
    #[default]
    Local,
    /// By the calling convention, for modules where ptxas runs out of registers otherwise (its error C7600).
    Abi,
}

/// An instrumented module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrumented {
    /// The new text.
    pub text: String,
    /// What was put in: spans of the new text, sorted, one for each edit. The runtime and its variable are among them.
    /// Code that belongs behind an instruction begins where that instruction ends.
    pub inserted: Vec<Span>,
}

impl Instrumented {
    /// Whether all of this span of the new text was put in. An original instruction is never so, even where a word of
    /// it was replaced.
    pub fn is_inserted(&self, span: Span) -> bool {
        let at = self.inserted.partition_point(|inserted| inserted.end < span.end);
        self.inserted.get(at).is_some_and(|inserted| inserted.start <= span.start && span.end <= inserted.end)
    }
}

/// What the module is compiled for.
#[derive(Clone, Copy, Debug)]
struct Target {
    sm: u32,
    version: (u32, u32),
}

impl Target {
    fn has(self, sm: u32, version: (u32, u32)) -> bool {
        self.sm >= sm && self.version >= version
    }
}

/// Instruments a module, given with its text and its sites.
pub fn instrument(
    text: &str,
    module: &Module<'_>,
    sites: &SiteTable,
    mode: CallMode,
) -> Result<Instrumented, InstrumentError> {
    let version = module.version().ok_or(InstrumentError::Header(".version"))?;
    let sm = module.target_sm().ok_or(InstrumentError::Header(".target"))?;
    if version < (6, 2) {
        let at = module.directive(".version").map_or(Span::default(), |directive| directive.span);
        return Err(InstrumentError::Version { version, at });
    }
    let size = module.directive(".address_size");
    if size.is_none_or(|directive| directive.args.text != "64") {
        return Err(InstrumentError::AddressSize { at: size.map(|directive| directive.span) });
    }
    if let Some(at) = text.find("__ptxrace_") {
        return Err(InstrumentError::Instrumented { at: Span::new(at, at + "__ptxrace_".len()) });
    }
    let edited = rewrite::rewrite(text, module, sites, Target { sm, version }, mode)?;
    Ok(Instrumented { text: edited.text, inserted: edited.inserted })
}
