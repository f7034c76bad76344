//! Why a run is not the whole truth, in words.

use std::fmt::Write;

use crate::backend::{BackendError, Fault, FaultKind, LaunchEnd, Plan, Program, Stop, WarpPosition};
use crate::diag::Diagnostic;
use crate::explain::names::demangle;
use crate::explain::{Sources, frames, user_frame};
use crate::instrument::{SiteId, Unlogged};
use crate::ptx::SourceLoc;
use crate::report::{Incomplete, Reason};
use crate::span::Span;

/// Positions shown at most.
const MAX_POSITIONS: usize = 6;

/// What to do where the memory for the analysis was used up.
pub(super) const MEMORY_HELP: &str =
    "give it more with `--memory-limit`, or check a smaller launch, or fewer kernels at once";

/// Makes the reasons of one run.
pub(super) struct Why<'w> {
    pub(super) program: Program<'w>,
    pub(super) plan: &'w Plan,
    pub(super) sources: &'w Sources,
}

fn warning(message: &str) -> Diagnostic {
    Diagnostic::warning(format!("inconclusive: {message}"))
}

fn show(index: [u32; 3]) -> String {
    format!("({},{},{})", index[0], index[1], index[2])
}

impl Why<'_> {
    /// "`a.ptx:12`", or the source line if it is known.
    fn line(&self, at: Span, loc: Option<&SourceLoc>) -> String {
        let ptx = format!(
            "{}:{}",
            self.program.source.path().display(),
            self.program.source.line_col(at.start).line
        );
        match loc {
            Some(loc) => format!("{ptx} ({}:{})", loc.file, loc.line),
            None => ptx,
        }
    }

    /// Adds a place: in the source if it is known, and in the PTX text.
    fn place(
        &self,
        mut diagnostic: Diagnostic,
        at: Span,
        loc: Option<&SourceLoc>,
        text: String,
    ) -> Diagnostic {
        let frames = loc.map(frames).unwrap_or_default();
        let Some(frame) = user_frame(&frames) else {
            return diagnostic.at(self.program.source, self.first_line(at), text);
        };
        let primary = diagnostic.labels.is_empty();
        diagnostic.labels.push(self.sources.label(frame, text, primary));
        diagnostic.at(self.program.source, self.first_line(at), "this instruction")
    }

    /// The source of an instruction, if it is logged.
    fn loc(&self, at: Span) -> Option<&SourceLoc> {
        self.program.sites.at(at)?.loc.as_deref()
    }

    /// The instruction at a place, without guard text behind it.
    fn opcode(&self, at: Span) -> String {
        let text = self.program.source.slice(at);
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or("");
        let opcode = if first.starts_with('@') { words.next().unwrap_or(first) } else { first };
        opcode.trim_end_matches(';').to_owned()
    }

    fn kernel(&self, launch: u32) -> String {
        let name = self.plan.launches.get(launch as usize).map_or("", |launch| &launch.kernel);
        format!("`{}`, launch #{launch}", demangle(name).short)
    }

    /// Reasons in what a launch left behind.
    pub(super) fn end(&self, launch: u32, end: &LaunchEnd, stop: Option<&Stop>) -> Vec<Incomplete> {
        let mut reasons = Vec::new();
        if end.dropped > 0 {
            let detail = format!("{} records of {} were dropped", end.dropped, self.kernel(launch));
            let diagnostic = warning(&detail).help("run with `--on-full wait`, or on a smaller input");
            reasons.push(Incomplete { reason: Reason::DroppedRecords, detail, diagnostic });
        }
        let unlogged = self.program.sites.unlogged();
        // What the backend stopped at was not executed; that it stopped there is a reason of its own.
        let reached = |unlogged: &&Unlogged| match stop {
            Some(Stop::Unsupported { at, .. }) => *at != unlogged.span,
            _ => true,
        };
        let executed = end.unlogged.iter().filter_map(|index| unlogged.get(*index as usize)).filter(reached);
        reasons.extend(executed.map(|unlogged| self.unlogged(unlogged)));
        reasons
    }

    fn unlogged(&self, unlogged: &Unlogged) -> Incomplete {
        let line = self.line(unlogged.span, unlogged.loc.as_deref());
        let detail = format!("`{}` at {line}: {}", unlogged.opcode, unlogged.why);
        let message = format!("`{}` was executed but not checked", unlogged.opcode);
        let loc = unlogged.loc.as_deref();
        let diagnostic = self.place(warning(&message), unlogged.span, loc, unlogged.why.clone());
        Incomplete { reason: Reason::UnknownInstruction, detail, diagnostic }
    }

    /// An instruction of which it is not known what it touches.
    pub(super) fn unresolved(&self, site: SiteId, why: &str) -> Option<Incomplete> {
        let site = self.program.sites.get(site)?;
        let loc = site.loc.as_deref();
        let detail = format!("`{}` at {}: {why}", site.opcode, self.line(site.span, loc));
        let message = format!("what `{}` touches is not known", site.opcode);
        let diagnostic = self.place(warning(&message), site.span, loc, why.to_owned());
        Some(Incomplete { reason: Reason::UnknownInstruction, detail, diagnostic })
    }

    /// The order of synchronisation could not be replayed.
    pub(super) fn degraded(&self, detail: &str) -> Incomplete {
        let message = format!("the order of synchronisation could not be replayed: {detail}");
        let diagnostic = warning(&message);
        Incomplete { reason: Reason::DegradedOrder, detail: detail.to_owned(), diagnostic }
    }

    /// There was too much to be known at once.
    pub(super) fn unchecked(&self, records: u64) -> Incomplete {
        let detail = format!("{records} records were not checked: the memory for the analysis was used up");
        let diagnostic = warning(&detail).help(MEMORY_HELP);
        Incomplete { reason: Reason::MemoryLimit, detail, diagnostic }
    }

    /// Why a run stopped early.
    pub(super) fn stop(&self, stop: &Stop) -> Incomplete {
        match stop {
            Stop::Timeout { after, warps } => {
                let detail =
                    format!("timeout: not finished after {} s{}", after.as_secs_f64(), self.waiting(warps));
                let message = format!("timeout: not finished after {} s", after.as_secs_f64());
                let diagnostic =
                    self.positions(warning(&message), warps).help("a warp that waits for what never comes runs for ever; if it only takes long, give `--timeout` more seconds");
                Incomplete { reason: Reason::Timeout, detail, diagnostic }
            }
            Stop::Deadlock { warps } => {
                let detail = format!("deadlock: no warp can go on{}", self.waiting(warps));
                let diagnostic = self.positions(warning("deadlock: no warp can go on"), warps);
                Incomplete { reason: Reason::Deadlock, detail, diagnostic }
            }
            Stop::Unsupported { at, what } => self.unsupported(Some(*at), what),
            Stop::Fault(fault) => self.fault(fault),
        }
    }

    /// "; 3 warps of block (0,0,0) at `bar.sync` (a.ptx:12), waiting for barrier 0"
    fn waiting(&self, warps: &[WarpPosition]) -> String {
        let mut text = String::new();
        for warp in warps.iter().take(MAX_POSITIONS) {
            let line = self.line(warp.at, self.loc(warp.at));
            let _ = write!(
                text,
                "; block {} warp {} at `{}`, {line}",
                show(warp.block),
                warp.warp,
                self.opcode(warp.at)
            );
            if !warp.waiting.is_empty() {
                let _ = write!(text, ", waiting for {}", warp.waiting);
            }
        }
        if warps.len() > MAX_POSITIONS {
            let _ = write!(text, "; and {} more", warps.len() - MAX_POSITIONS);
        }
        text
    }

    fn positions(&self, mut diagnostic: Diagnostic, warps: &[WarpPosition]) -> Diagnostic {
        // Warps that stand at one place for one reason share a label.
        let mut places: Vec<(Span, &str, Vec<String>)> = Vec::new();
        for warp in warps {
            let lanes =
                if warp.mask == u32::MAX { String::new() } else { format!(" lanes {:#x}", warp.mask) };
            let who = format!("block {} warp {}{lanes}", show(warp.block), warp.warp);
            match places.iter_mut().find(|(at, waiting, _)| *at == warp.at && *waiting == warp.waiting) {
                Some((_, _, all)) => all.push(who),
                None => places.push((warp.at, &warp.waiting, vec![who])),
            }
        }
        for (at, waiting, who) in places.iter().take(MAX_POSITIONS) {
            let more =
                if who.len() > 3 { format!(" and {} more warps", who.len() - 3) } else { String::new() };
            let waiting = if waiting.is_empty() { String::new() } else { format!(": waiting for {waiting}") };
            let text =
                format!("{}{more}{waiting}", who.iter().take(3).cloned().collect::<Vec<_>>().join(", "));
            diagnostic = self.place(diagnostic, *at, self.loc(*at), text);
        }
        if places.len() > MAX_POSITIONS {
            diagnostic =
                diagnostic.note(format!("warps stand at {} more places", places.len() - MAX_POSITIONS));
        }
        diagnostic
    }

    fn first_line(&self, at: Span) -> Span {
        let text = self.program.source.slice(at);
        let line = text.lines().next().unwrap_or("").trim_end();
        Span::new(at.start as usize, at.start as usize + line.len())
    }

    fn fault(&self, fault: &Fault) -> Incomplete {
        let (code, what) = match fault.kind {
            FaultKind::OutOfBounds => (Some("M001"), "out of bounds"),
            FaultKind::Misaligned => (Some("M002"), "misaligned"),
            FaultKind::Freed => (Some("M003"), "freed memory"),
            FaultKind::Trap => (None, "trap"),
            FaultKind::Device => (None, "device fault"),
        };
        let detail = &fault.detail;
        let said = if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") };
        let line = fault.at.map(|at| format!(" at {}", self.line(at, self.loc(at))));
        let thread =
            fault.thread.map(|(block, thread)| format!("block {} thread {}", show(block), show(thread)));
        let mut diagnostic = Diagnostic { code, ..Diagnostic::error(said.as_str()) };
        if let Some(at) = fault.at {
            let who = thread.clone().unwrap_or_default();
            diagnostic = self.place(diagnostic, at, self.loc(at), who);
        }
        diagnostic = diagnostic.note(format!("kernel {}", self.kernel(fault.launch)));
        diagnostic = diagnostic.note("what would have followed was not checked");
        let code = code.map(|code| format!("{code} ")).unwrap_or_default();
        let thread = thread.map(|thread| format!(", {thread}")).unwrap_or_default();
        let detail = format!("{code}{said}{}{thread}", line.unwrap_or_default());
        Incomplete { reason: Reason::Fault, detail, diagnostic }
    }

    /// The backend does not know an instruction.
    fn unsupported(&self, at: Option<Span>, what: &str) -> Incomplete {
        let Some(at) = at else {
            let (reason, detail) = (Reason::UnknownInstruction, what.to_owned());
            return Incomplete { reason, detail, diagnostic: warning(what) };
        };
        let line = self.line(at, self.loc(at));
        let detail = format!("`{}` at {line}: {what}", self.opcode(at));
        let unlogged = self.program.sites.unlogged().iter().find(|unlogged| unlogged.span == at);
        let loc = unlogged.map_or_else(|| self.loc(at), |unlogged| unlogged.loc.as_deref());
        let why = unlogged.map(|unlogged| format!(": {}", unlogged.why)).unwrap_or_default();
        let diagnostic = self
            .place(warning(what), at, loc, format!("the run stopped here{why}"))
            .note("what would have followed was not checked");
        Incomplete { reason: Reason::UnknownInstruction, detail, diagnostic }
    }

    /// A backend that could not run the program at all, if that is not the user's fault.
    pub(super) fn backend(&self, error: &BackendError) -> Option<Incomplete> {
        let detail = error.to_string();
        match error {
            BackendError::Unsupported { at, .. } => Some(self.unsupported(*at, &detail)),
            BackendError::Driver { .. } => {
                let diagnostic = warning(&detail).help("`--backend emu` runs without the driver");
                Some(Incomplete { reason: Reason::Device, detail, diagnostic })
            }
            BackendError::Plan(_) | BackendError::NoDevice(_) => None,
        }
    }
}
