//! From what schedules gave to a report.

use super::incomplete::Why;
use super::schedules::{All, Found, Job};
use crate::backend::{BackendError, Plan};
use crate::diag::Diagnostic;
use crate::explain::{self, Context, Explained};
use crate::report::{LaunchFacts, Report};

/// What was run, or that the backend could not run the program, if that is not the user's fault.
pub(super) fn settled(ran: Result<All, BackendError>, job: &Job<'_>) -> Result<All, Vec<Diagnostic>> {
    let error = match ran {
        Ok(all) => return Ok(all),
        Err(error) => error,
    };
    let why = Why { program: job.program, plan: job.plan, sources: job.sources };
    match why.backend(&error) {
        Some(incomplete) => Ok(All { incomplete: vec![incomplete], schedules: 1, ..All::default() }),
        None => Err(vec![refused(&error)]),
    }
}

pub(super) fn refused(error: &BackendError) -> Diagnostic {
    let diagnostic = Diagnostic::error(error.to_string());
    match error {
        BackendError::NoDevice(_) => {
            diagnostic.help("`--backend emu` runs without a GPU; `ptxrace doctor` tells what works")
        }
        _ => diagnostic,
    }
}

/// The report, before anybody says what counts. `replay` gives the command that shows a finding again, by its seed.
pub(super) fn report(
    all: &All,
    job: &Job<'_>,
    backend: &'static str,
    replay: &dyn Fn(u64) -> String,
) -> Report {
    let explained = |found: &Found| explained(found, job, &replay(found.seed), all.schedules);
    Report {
        launches: launches(job.plan, all, backend),
        findings: all.found.iter().map(explained).collect(),
        incomplete: all.incomplete.clone(),
        ..Report::default()
    }
}

fn explained(found: &Found, job: &Job<'_>, replay: &str, schedules: u64) -> Explained {
    let context = Context {
        programs: &[job.program],
        plan: job.plan,
        graphs: &[],
        memory: &found.memory,
        regions: &[],
        sources: job.sources,
        replay,
        schedules: (schedules > 1).then_some((found.schedules, schedules)),
    };
    explain::explain(&found.finding, &context)
}

fn launches(plan: &Plan, all: &All, backend: &'static str) -> Vec<LaunchFacts> {
    let facts = |(index, launch): (usize, &crate::backend::Launch)| {
        let (records, dropped) = all.counts.get(index).copied().unwrap_or_default();
        LaunchFacts {
            id: u32::try_from(index).unwrap_or(u32::MAX),
            kernel: launch.kernel.clone(),
            grid: launch.grid,
            block: launch.block,
            device: launch.device,
            stream: launch.stream,
            backend,
            records,
            dropped,
            test: None,
        }
    };
    plan.launches.iter().enumerate().map(facts).collect()
}
