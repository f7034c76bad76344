//! The JSON report: written, and read again.

use std::io::{self, Write};

use super::wire::{
    Access, By, Finding, Incomplete, Launch, Object, Position, Root, SCHEMA, Source, Suppressed, Suppressor,
    Tool,
};
use super::{LaunchFacts, Reason, Report, Verdict, drawn};
use crate::diag::{Diagnostic, Severity};
use crate::explain::{self, AccessFacts, Explained, Frame, Means, Search, Sources, rules};
use crate::finding::{Kind, Relation};
use crate::span::SourceFile;

pub(super) fn write(report: &Report, to: &mut dyn Write) -> io::Result<()> {
    let root = Root {
        schema: SCHEMA.into(),
        tool: Tool { name: "ptxrace".into(), version: env!("CARGO_PKG_VERSION").into() },
        verdict: report.verdict.name().into(),
        launches: report.launches.iter().map(launch).collect(),
        findings: report.findings.iter().map(finding).collect(),
        suppressed: report
            .suppressed
            .iter()
            .map(|suppressed| Suppressed { by: by(&suppressed.by), finding: finding(&suppressed.finding) })
            .collect(),
        suppressions: report.suppressors.iter().map(|s| Suppressor { by: by(&s.by), hits: s.hits }).collect(),
        incomplete: report
            .incomplete
            .iter()
            .map(|i| Incomplete { reason: i.reason.name().into(), detail: i.detail.clone() })
            .collect(),
    };
    serde_json::to_writer_pretty(&mut *to, &root)?;
    writeln!(to)
}

fn launch(launch: &LaunchFacts) -> Launch {
    Launch {
        id: launch.id,
        kernel: launch.kernel.clone(),
        grid: launch.grid,
        block: launch.block,
        device: launch.device,
        stream: launch.stream,
        backend: launch.backend.into(),
        records: launch.records,
        dropped: launch.dropped,
        test: launch.test.clone(),
    }
}

fn finding(finding: &Explained) -> Finding {
    let object = finding.object.as_ref().map(|object| Object {
        name: object.name.clone(),
        full: object.full.clone(),
        offset: object.offset,
        element: object.element,
        bytes: object.bytes,
        size: object.size,
        allocated: object.allocated.clone(),
    });
    Finding {
        rule: finding.rule.id().into(),
        severity: finding.severity.name().into(),
        kind: finding.kind.map(|kind| kind.name().into()),
        relation: finding.relation.name().into(),
        space: finding.space.as_deref().map(Into::into),
        object,
        address: finding.address.map(|address| format!("{address:#x}")),
        launch: finding.launch,
        count: finding.count,
        fingerprint: finding.fingerprint.clone(),
        accesses: finding.accesses.iter().map(access).collect(),
        message: finding.diagnostic.message.clone(),
        missing: finding.missing.clone(),
        help: finding.help.clone(),
        notes: finding.diagnostic.notes.clone(),
        replay: finding.replay.clone(),
        timeline: drawn::timeline(&finding.timeline),
        spread: finding.spread.as_ref().map(drawn::spread),
    }
}

fn access(access: &AccessFacts) -> Access {
    Access {
        op: access.op.clone(),
        access: access.access.as_ref().into(),
        order: access.order.as_deref().map(Into::into),
        scope: access.scope.as_deref().map(Into::into),
        width: access.width,
        kernel: access.kernel.clone(),
        block: access.block,
        thread: access.thread,
        warp: access.warp,
        lane: access.lane,
        text: access.text.clone(),
        place: position(&access.place),
        ptx: position(&access.ptx),
        source: access.source.split_first().map(|(own, calls)| Source {
            file: own.file.clone(),
            line: own.line,
            column: own.column,
            inlined_at: calls.iter().map(position).collect(),
        }),
    }
}

fn position(frame: &Frame) -> Position {
    Position { file: frame.file.clone(), line: frame.line, column: frame.column }
}

fn by(by: &explain::By) -> By {
    By {
        means: by.means.name().into(),
        text: by.text.clone(),
        file: by.file.clone(),
        line: by.line,
        reason: by.reason.clone(),
    }
}

/// Reads a JSON report. Sources are shown if they are where the report found them.
pub fn read(file: &SourceFile) -> Result<Report, Diagnostic> {
    read_with(file, &Search::default())
}

/// The same, with other places where sources may be.
pub fn read_with(file: &SourceFile, search: &Search) -> Result<Report, Diagnostic> {
    let path = file.path().display();
    let refuse = |why: String| {
        let help = "give a report that `--format json` has written, by this version of ptxrace";
        Diagnostic::error(format!("`{path}` is no JSON report of ptxrace: {why}")).help(help)
    };
    // The schema first: a report of another one lacks other fields.
    let value: serde_json::Value =
        serde_json::from_str(file.text()).map_err(|error| refuse(error.to_string()))?;
    match value.get("schema").and_then(|schema| schema.as_str()) {
        Some(SCHEMA) => {}
        Some(other) => return Err(refuse(format!("its schema is `{other}`, not `{SCHEMA}`"))),
        None => return Err(refuse("it has no `schema`".into())),
    }
    let root: Root = serde_json::from_value(value).map_err(|error| refuse(error.to_string()))?;
    let stated = named(&Verdict::ALL, Verdict::name, "verdict", &root.verdict).map_err(refuse)?;
    let mut report = report(root, search).map_err(refuse)?;
    report.judge(&explain::Policy::default());
    if report.verdict != stated {
        let (is, says) = (report.verdict.name(), stated.name());
        return Err(refuse(format!("its verdict is `{says}`, but what it holds makes it `{is}`")));
    }
    Ok(report)
}

fn report(root: Root, search: &Search) -> Result<Report, String> {
    let sources = Sources::default().with(search);
    let suppressed = |s: Suppressed| {
        Ok::<_, String>(explain::Suppressed {
            by: read_by(s.by)?,
            finding: read_finding(s.finding, &sources)?,
        })
    };
    let suppressor =
        |s: Suppressor| Ok::<_, String>(explain::Suppressor { by: read_by(s.by)?, hits: s.hits });
    let incomplete = |i: Incomplete| {
        Ok::<_, String>(super::Incomplete {
            reason: named(&Reason::ALL, Reason::name, "reason", &i.reason)?,
            diagnostic: Diagnostic::warning(format!("inconclusive: {}", i.detail)),
            detail: i.detail,
        })
    };
    Ok(Report {
        launches: root.launches.into_iter().map(read_launch).collect::<Result<_, _>>()?,
        findings: root.findings.into_iter().map(|f| read_finding(f, &sources)).collect::<Result<_, _>>()?,
        suppressed: root.suppressed.into_iter().map(suppressed).collect::<Result<_, _>>()?,
        suppressors: root.suppressions.into_iter().map(suppressor).collect::<Result<_, _>>()?,
        incomplete: root.incomplete.into_iter().map(incomplete).collect::<Result<_, _>>()?,
        ..Report::default()
    })
}

/// The value of this name.
pub(super) fn named<T: Copy>(
    all: &[T],
    name: impl Fn(T) -> &'static str,
    what: &str,
    text: &str,
) -> Result<T, String> {
    all.iter()
        .copied()
        .find(|value| name(*value) == text)
        .ok_or_else(|| format!("there is no {what} `{text}`"))
}

fn read_launch(launch: Launch) -> Result<LaunchFacts, String> {
    Ok(LaunchFacts {
        id: launch.id,
        kernel: launch.kernel,
        grid: launch.grid,
        block: launch.block,
        device: launch.device,
        stream: launch.stream,
        backend: named(&["emu", "gpu"], |name| name, "backend", &launch.backend)?,
        records: launch.records,
        dropped: launch.dropped,
        test: launch.test,
    })
}

fn read_by(by: By) -> Result<explain::By, String> {
    let means = named(&Means::ALL, Means::name, "suppression by", &by.means)?;
    Ok(explain::By { means, text: by.text, file: by.file, line: by.line, reason: by.reason })
}

fn read_finding(finding: Finding, sources: &Sources) -> Result<Explained, String> {
    let rule = rules::by_id(&finding.rule).ok_or_else(|| format!("there is no rule `{}`", finding.rule))?;
    let severity = named(&Severity::ALL, Severity::name, "severity", &finding.severity)?;
    let kind = |kind: String| named(&Kind::ALL, Kind::name, "kind", &kind);
    let address = |text: String| {
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16).map_err(|_| format!("`{text}` is no address"))
    };
    let mut explained = Explained {
        rule,
        severity,
        kind: finding.kind.map(kind).transpose()?,
        relation: named(&Relation::ALL, Relation::name, "relation", &finding.relation)?,
        space: finding.space.map(Into::into),
        object: finding.object.map(|object| explain::Object {
            name: object.name,
            full: object.full,
            offset: object.offset,
            element: object.element,
            bytes: object.bytes,
            size: object.size,
            allocated: object.allocated,
        }),
        address: finding.address.map(address).transpose()?,
        launch: finding.launch,
        count: finding.count,
        fingerprint: finding.fingerprint,
        accesses: finding.accesses.into_iter().map(read_access).collect(),
        missing: finding.missing,
        replay: finding.replay,
        timeline: finding.timeline.map(drawn::read_timeline).transpose()?.unwrap_or_default(),
        spread: finding.spread.map(drawn::read_spread).transpose()?,
        inline: None,
        diagnostic: Diagnostic {
            severity,
            code: Some(rule.id()),
            message: finding.message,
            labels: Vec::new(),
            notes: finding.notes,
            help: vec![finding.help.clone()],
        },
        help: finding.help,
    };
    explain::again(&mut explained, sources);
    Ok(explained)
}

fn read_access(access: Access) -> AccessFacts {
    let frame = |at: Position| Frame { file: at.file, line: at.line, column: at.column };
    AccessFacts {
        op: access.op,
        access: access.access.into(),
        order: access.order.map(Into::into),
        scope: access.scope.map(Into::into),
        width: access.width,
        kernel: access.kernel,
        block: access.block,
        thread: access.thread,
        warp: access.warp,
        lane: access.lane,
        text: access.text,
        place: frame(access.place),
        ptx: frame(access.ptx),
        source: access.source.map_or_else(Vec::new, |source| {
            let own = Frame { file: source.file, line: source.line, column: source.column };
            std::iter::once(own).chain(source.inlined_at.into_iter().map(frame)).collect()
        }),
    }
}
