//! The JSON schema of reports, which is committed as `docs/report.schema.json`. `PTXRACE_BLESS=1 cargo test --release --lib schema`
//! writes it; `tests/samples.rs` holds the reports of all samples against it.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};

use super::{Root, SCHEMA};
use crate::diag::Severity;
use crate::explain::{Link, Means};
use crate::finding::{Kind, Relation, Rule};
use crate::report::{Reason, Verdict};

fn one_of<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) -> Schema {
    let names: Vec<_> = all.iter().map(|value| name(*value)).collect();
    json_schema!({ "type": "string", "enum": names })
}

/// The same, or nothing.
fn or_null(mut schema: Schema) -> Schema {
    schema.insert("type".into(), ["string", "null"].as_slice().into());
    if let Some(names) = schema.get_mut("enum").and_then(|names| names.as_array_mut()) {
        names.push(serde_json::Value::Null);
    }
    schema
}

pub(super) fn number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "const": SCHEMA })
}

pub(super) fn verdict(_: &mut SchemaGenerator) -> Schema {
    one_of(&Verdict::ALL, Verdict::name)
}

pub(super) fn backend(_: &mut SchemaGenerator) -> Schema {
    one_of(&["emu", "gpu"], |name| name)
}

pub(super) fn rule(_: &mut SchemaGenerator) -> Schema {
    one_of(&Rule::ALL, Rule::id)
}

pub(super) fn severity(_: &mut SchemaGenerator) -> Schema {
    one_of(&Severity::ALL, Severity::name)
}

pub(super) fn kind(_: &mut SchemaGenerator) -> Schema {
    or_null(one_of(&Kind::ALL, Kind::name))
}

pub(super) fn relation(_: &mut SchemaGenerator) -> Schema {
    one_of(&Relation::ALL, Relation::name)
}

pub(super) fn space(_: &mut SchemaGenerator) -> Schema {
    or_null(one_of(&["shared", "global"], |name| name))
}

pub(super) fn address(_: &mut SchemaGenerator) -> Schema {
    or_null(json_schema!({ "pattern": "^0x[0-9a-f]+$" }))
}

pub(super) fn fingerprint(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9a-f]{16}$" })
}

pub(super) fn means(_: &mut SchemaGenerator) -> Schema {
    one_of(&Means::ALL, Means::name)
}

pub(super) fn link(_: &mut SchemaGenerator) -> Schema {
    one_of(&Link::ALL, Link::name)
}

pub(super) fn reason(_: &mut SchemaGenerator) -> Schema {
    one_of(&Reason::ALL, Reason::name)
}

#[test]
fn the_committed_schema_is_that_of_the_types() {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<Root>();
    schema.insert("title".into(), "A report of ptxrace".into());
    schema.insert(
        "description".into(),
        "docs/report.md says what the fields mean. Fields may be added.".into(),
    );
    let text = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/report.schema.json");
    if std::env::var_os("PTXRACE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&file, &text).expect("a file of the repository");
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == text, "PTXRACE_BLESS=1 rewrites docs/report.schema.json, then review the change");
}
