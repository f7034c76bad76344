//! Files of known findings, schema `ptxrace-baseline/1`.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::diag::Diagnostic;
use crate::explain::{Baseline, Known};
use crate::span::SourceFile;

const SCHEMA: &str = "ptxrace-baseline/1";

#[derive(Serialize, Deserialize)]
struct Root {
    schema: String,
    findings: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
struct Row {
    fingerprint: String,
    rule: String,
    kernel: String,
    object: Option<String>,
}

/// Reads a baseline.
pub fn read_baseline(file: &SourceFile) -> Result<Baseline, Diagnostic> {
    let path = file.path().display();
    let refuse = |why: String| {
        let error = Diagnostic::error(format!("`{path}` is no baseline of ptxrace: {why}"));
        error.help("`ptxrace baseline update FILE REPORT.json` writes one")
    };
    let root: Root = serde_json::from_str(file.text()).map_err(|error| refuse(error.to_string()))?;
    if root.schema != SCHEMA {
        return Err(refuse(format!("its schema is `{}`, not `{SCHEMA}`", root.schema)));
    }
    let known = |row: Row| Known {
        fingerprint: row.fingerprint,
        rule: row.rule,
        kernel: row.kernel,
        object: row.object,
    };
    Ok(Baseline { file: path.to_string(), known: root.findings.into_iter().map(known).collect() })
}

/// Writes a baseline: each fingerprint once, sorted by rule, kernel and variable, so that differences are easy to read.
pub fn write_baseline(mut known: Vec<Known>, to: &mut dyn Write) -> io::Result<()> {
    let key = |k: &Known| (k.rule.clone(), k.kernel.clone(), k.object.clone(), k.fingerprint.clone());
    known.sort_by_cached_key(key);
    known.dedup_by(|a, b| a.fingerprint == b.fingerprint);
    let row = |known: Known| Row {
        fingerprint: known.fingerprint,
        rule: known.rule,
        kernel: known.kernel,
        object: known.object,
    };
    let root = Root { schema: SCHEMA.into(), findings: known.into_iter().map(row).collect() };
    serde_json::to_writer_pretty(&mut *to, &root)?;
    writeln!(to)
}
