//! Why a module cannot be instrumented.

use super::edit::EditError;
use crate::span::Span;

/// Why a module cannot be instrumented.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstrumentError {
    /// `.version`, `.target` or `.address_size` are not there or cannot be read.
    #[error("the module has no readable `{0}`")]
    Header(&'static str),
    /// The module's PTX version does not have what the logging code needs.
    #[error("PTX {}.{} is too old to be instrumented: logging needs 6.2", version.0, version.1)]
    Version {
        /// The version it asks for.
        version: (u32, u32),
        /// Where.
        at: Span,
    },
    /// The module is for 32-bit addresses.
    #[error("modules with 32-bit addresses cannot be instrumented")]
    AddressSize {
        /// Where it says so.
        at: Option<Span>,
    },
    /// The module already uses the names that are put in.
    #[error("the module already has names that begin with `__ptxrace_`: is it instrumented already?")]
    Instrumented {
        /// The first of them.
        at: Span,
    },
    /// An operand whose value cannot be logged.
    #[error("cannot log this instruction: {what}")]
    Operand {
        /// What about it.
        what: String,
        /// The operand or instruction.
        at: Span,
    },
    /// Edits that contradict each other: a defect of the instrumentation.
    #[error("the instrumentation contradicts itself: {0}")]
    Edit(#[from] EditError),
}

impl InstrumentError {
    /// The place it is about.
    pub fn span(&self) -> Option<Span> {
        match self {
            Self::Version { at, .. } | Self::Instrumented { at } | Self::Operand { at, .. } => Some(*at),
            Self::AddressSize { at } => *at,
            Self::Header(_) | Self::Edit(_) => None,
        }
    }
}

/// Results of the instrumentation.
pub(super) type Result<T> = std::result::Result<T, InstrumentError>;
