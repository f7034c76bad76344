//! The JSON report, schema `ptxrace-report/1`. A change of meaning changes the number.

use std::io::{self, Write};

use serde::Serialize;

use super::Report;
use crate::explain::{AccessFacts, Explained};

const SCHEMA: &str = "ptxrace-report/1";

#[derive(Serialize)]
struct Root<'r> {
    schema: &'static str,
    tool: Tool,
    verdict: &'static str,
    launches: Vec<Launch<'r>>,
    findings: Vec<Finding<'r>>,
    incomplete: Vec<Incomplete<'r>>,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Launch<'r> {
    id: u32,
    kernel: &'r str,
    grid: [u32; 3],
    block: [u32; 3],
    stream: u32,
    backend: &'static str,
    records: u64,
    dropped: u64,
}

#[derive(Serialize)]
struct Finding<'r> {
    rule: &'static str,
    severity: &'static str,
    kind: Option<&'static str>,
    relation: &'static str,
    space: Option<&'static str>,
    object: Option<Object<'r>>,
    address: Option<String>,
    launch: u32,
    count: u64,
    fingerprint: &'r str,
    accesses: Vec<Access<'r>>,
    missing: &'r str,
    help: &'r str,
    replay: &'r str,
}

#[derive(Serialize)]
struct Object<'r> {
    name: &'r str,
    offset: u64,
    element: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Access<'r> {
    op: &'r str,
    access: &'static str,
    order: Option<&'static str>,
    scope: Option<&'static str>,
    width: u32,
    kernel: &'r str,
    block: [u32; 3],
    thread: [u32; 3],
    warp: u32,
    lane: u32,
    ptx: Position,
    source: Option<Source<'r>>,
}

#[derive(Serialize)]
struct Position {
    line: u32,
    column: u32,
}

#[derive(Serialize)]
struct Source<'r> {
    file: &'r str,
    line: u32,
    inlined_at: Vec<InlinedAt<'r>>,
}

#[derive(Serialize)]
struct InlinedAt<'r> {
    file: &'r str,
    line: u32,
}

#[derive(Serialize)]
struct Incomplete<'r> {
    reason: &'static str,
    detail: &'r str,
}

pub(super) fn write(report: &Report, to: &mut dyn Write) -> io::Result<()> {
    let root = Root {
        schema: SCHEMA,
        tool: Tool { name: "ptxrace", version: env!("CARGO_PKG_VERSION") },
        verdict: report.verdict.name(),
        launches: report.launches.iter().map(launch).collect(),
        findings: report.findings.iter().map(finding).collect(),
        incomplete: report
            .incomplete
            .iter()
            .map(|i| Incomplete { reason: i.reason.name(), detail: &i.detail })
            .collect(),
    };
    serde_json::to_writer_pretty(&mut *to, &root)?;
    writeln!(to)
}

fn launch(launch: &super::LaunchFacts) -> Launch<'_> {
    Launch {
        id: launch.id,
        kernel: &launch.kernel,
        grid: launch.grid,
        block: launch.block,
        stream: launch.stream,
        backend: launch.backend,
        records: launch.records,
        dropped: launch.dropped,
    }
}

fn finding(finding: &Explained) -> Finding<'_> {
    let object = finding.object.as_ref().map(|object| Object {
        name: &object.name,
        offset: object.offset,
        element: object.element,
        bytes: object.bytes,
    });
    Finding {
        rule: finding.rule.id(),
        severity: finding.severity.name(),
        kind: finding.kind.map(crate::finding::Kind::name),
        relation: finding.relation.name(),
        space: finding.space,
        object,
        address: finding.address.map(|address| format!("{address:#x}")),
        launch: finding.launch,
        count: finding.count,
        fingerprint: &finding.fingerprint,
        accesses: finding.accesses.iter().map(access).collect(),
        missing: &finding.missing,
        help: &finding.help,
        replay: &finding.replay,
    }
}

fn access(access: &AccessFacts) -> Access<'_> {
    Access {
        op: &access.op,
        access: access.access,
        order: access.order,
        scope: access.scope,
        width: access.width,
        kernel: &access.kernel,
        block: access.block,
        thread: access.thread,
        warp: access.warp,
        lane: access.lane,
        ptx: Position { line: access.ptx.line, column: access.ptx.column },
        source: access.source.split_first().map(|(own, calls)| Source {
            file: &own.file,
            line: own.line,
            inlined_at: calls.iter().map(|call| InlinedAt { file: &call.file, line: call.line }).collect(),
        }),
    }
}
