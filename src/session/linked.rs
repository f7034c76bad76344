//! The parts of this build.

use super::{Detector, Parts};
use crate::backend::{Backend, BackendError, Plan, Program};
use crate::diag::Diagnostic;

/// The backends, the engine and the instrumenter of this build.
#[derive(Clone, Copy, Debug)]
pub struct Linked;

impl Parts for Linked {
    fn gpu(&self) -> Result<Box<dyn Backend>, BackendError> {
        Err(BackendError::NoDevice("this build has no GPU backend".into()))
    }

    fn emulator(&self) -> Result<Box<dyn Backend>, BackendError> {
        Err(BackendError::NoDevice("this build has no emulator".into()))
    }

    fn detector<'p>(&self, _: Program<'p>, _: &'p Plan) -> Box<dyn Detector + 'p> {
        Box::new(Unlinked)
    }

    fn instrument(&self, _: Program<'_>) -> Result<String, Box<Diagnostic>> {
        Err(Box::new(Diagnostic::error("this build cannot instrument")))
    }
}

struct Unlinked;

impl crate::backend::Sink for Unlinked {
    fn begin(&mut self, _: &crate::backend::LaunchInfo) {}
    fn records(&mut self, _: &[crate::abi::Unit]) {}
    fn end(&mut self, _: &crate::backend::LaunchEnd) {}
}

impl Detector for Unlinked {
    fn finish(self: Box<Self>) -> super::Observed {
        super::Observed::default()
    }
}
