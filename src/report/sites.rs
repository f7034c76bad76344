//! The site table as JSON, schema `ptxrace-sites/1`.

use std::io::{self, Write};

use serde::Serialize;

use crate::backend::Program;
use crate::instrument::{Site, SiteKind};
use crate::span::Span;

#[derive(Serialize)]
struct Root {
    schema: &'static str,
    sites: Vec<Row>,
    unlogged: Vec<UnloggedRow>,
}

#[derive(Serialize)]
struct Row {
    id: u32,
    kind: &'static str,
    function: String,
    op: String,
    line: u32,
    column: u32,
    order: Option<&'static str>,
    scope: Option<&'static str>,
    width: Option<u32>,
    source: Option<Source>,
}

#[derive(Serialize)]
struct UnloggedRow {
    function: String,
    op: String,
    line: u32,
    column: u32,
    why: String,
}

#[derive(Serialize)]
struct Source {
    file: String,
    line: u32,
    column: u32,
}

/// Writes the sites of a program.
pub fn write_sites(program: Program<'_>, to: &mut dyn Write) -> io::Result<()> {
    let position = |span: Span| program.source.line_col(span.start);
    let row = |site: &Site| Row {
        id: site.id.0,
        kind: kind(&site.kind),
        function: site.function.to_string(),
        op: site.opcode.to_string(),
        line: position(site.span).line,
        column: position(site.span).column,
        order: site.access().map(|access| access.order.name()),
        scope: match &site.kind {
            SiteKind::Access(access) => access.scope.map(|scope| scope.name()),
            SiteKind::Fence(fence) => Some(fence.scope.name()),
            _ => None,
        },
        width: site.access().map(|access| access.bytes()),
        source: site.loc.as_ref().map(|loc| Source {
            file: loc.file.to_string(),
            line: loc.line,
            column: loc.column,
        }),
    };
    let unlogged = program.sites.unlogged().iter().map(|unlogged| UnloggedRow {
        function: unlogged.function.to_string(),
        op: unlogged.opcode.to_string(),
        line: position(unlogged.span).line,
        column: position(unlogged.span).column,
        why: unlogged.why.clone(),
    });
    let root = Root {
        schema: "ptxrace-sites/1",
        sites: program.sites.sites().iter().map(row).collect(),
        unlogged: unlogged.collect(),
    };
    serde_json::to_writer_pretty(&mut *to, &root)?;
    writeln!(to)
}

fn kind(kind: &SiteKind) -> &'static str {
    match kind {
        SiteKind::Access(_) => "access",
        SiteKind::Fence(_) => "fence",
        SiteKind::Barrier(_) => "barrier",
        SiteKind::WarpBarrier => "warp-barrier",
        SiteKind::Converge(_) => "converge",
        SiteKind::AsyncCopy(_) => "async-copy",
        SiteKind::Coordinates => "coordinates",
        SiteKind::Group(_) => "copy-group",
        SiteKind::Mbarrier(_) => "mbarrier",
        SiteKind::ClusterBarrier(_) => "cluster-barrier",
        SiteKind::ProxyFence(_) => "proxy-fence",
        SiteKind::Fill(_) => "fill",
        SiteKind::Tile(_) => "tile",
        SiteKind::Product(_) => "warpgroup-product",
        SiteKind::Image(_) => "image",
        SiteKind::Exit => "exit",
        SiteKind::SharedVariable(_) => "shared-variable",
    }
}
