//! The parts of this build.

use std::sync::Arc;

use super::{Detector, Observed, Parts};
use crate::backend::emu::Emulator;
use crate::backend::gpu::Gpu;
use crate::backend::{Backend, BackendError, Plan, Program};
use crate::diag::Diagnostic;
use crate::engine::{Analysis, Engine, Report, Triage};
use crate::instrument::{CallMode, SiteTable, instrument};

/// The backends, the engine and the instrumenter of this build.
#[derive(Clone, Copy, Debug)]
pub struct Linked;

impl Parts for Linked {
    fn gpu(&self) -> Result<Box<dyn Backend>, BackendError> {
        Ok(Box::new(Gpu::open()?))
    }

    fn emulator(&self) -> Result<Box<dyn Backend>, BackendError> {
        Ok(Box::new(Emulator::new()))
    }

    fn detector(&self, sites: &Arc<SiteTable>, plan: &Plan, analysis: Analysis) -> Box<dyn Detector> {
        let (sites, memory) = (Arc::clone(sites), analysis.memory);
        if analysis.triage {
            Box::new(Triage::new(sites, plan).within(memory))
        } else {
            Box::new(Engine::new(sites, plan).within(memory))
        }
    }

    fn gpu_name(&self) -> Result<String, BackendError> {
        Gpu::open()?.device_name()
    }

    fn instrument(&self, program: Program<'_>) -> Result<String, Box<Diagnostic>> {
        let instrumented =
            instrument(program.source.text(), program.module, program.sites, CallMode::default());
        instrumented.map(|instrumented| instrumented.text).map_err(|error| {
            let diagnostic = Diagnostic::error(error.to_string());
            Box::new(match error.span() {
                Some(at) => diagnostic.at(program.source, at, "here"),
                None => diagnostic,
            })
        })
    }
}

impl Detector for Engine {
    fn finish(self: Box<Self>) -> Observed {
        observed(Self::finish(*self))
    }
}

impl Detector for Triage {
    fn finish(self: Box<Self>) -> Observed {
        observed(Self::finish(*self))
    }
}

fn observed(report: Report) -> Observed {
    let mut shared = Vec::new();
    for launch in report.launches {
        let index = launch.index as usize;
        if shared.len() <= index {
            shared.resize(index + 1, Vec::new());
        }
        shared[index] = launch.shared;
    }
    let mut degraded = Vec::new();
    if report.degraded > 0 {
        degraded
            .push(format!("{} strong operations have no order that explains their values", report.degraded));
    }
    if report.lost > 0 {
        degraded.push(format!("{} writes of words with very many writers were forgotten", report.lost));
    }
    degraded.extend(report.damaged.map(|damage| format!("records are damaged: {damage}")));
    let Report { findings, unresolved, unchecked, .. } = report;
    Observed { findings, shared, degraded, unchecked, unresolved }
}
