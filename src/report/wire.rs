//! The JSON report as it stands in files, schema `ptxrace-report/1`; `docs/report.md` says what its fields mean. A change
//! of meaning changes the number; fields may be added. `docs/report.schema.json` is made of these types (`schema`).

#[cfg(test)]
mod schema;

use serde::{Deserialize, Serialize};

use crate::backend::plan::is_zero;

pub(super) const SCHEMA: &str = "ptxrace-report/1";

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Root {
    #[cfg_attr(test, schemars(schema_with = "schema::number"))]
    pub(super) schema: String,
    pub(super) tool: Tool,
    #[cfg_attr(test, schemars(schema_with = "schema::verdict"))]
    pub(super) verdict: String,
    pub(super) launches: Vec<Launch>,
    pub(super) findings: Vec<Finding>,
    pub(super) suppressed: Vec<Suppressed>,
    pub(super) suppressions: Vec<Suppressor>,
    pub(super) incomplete: Vec<Incomplete>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) version: String,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Launch {
    pub(super) id: u32,
    pub(super) kernel: String,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// Left out for the first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) device: u32,
    pub(super) stream: u32,
    #[cfg_attr(test, schemars(schema_with = "schema::backend"))]
    pub(super) backend: String,
    pub(super) records: u64,
    pub(super) dropped: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) test: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Finding {
    #[cfg_attr(test, schemars(schema_with = "schema::rule"))]
    pub(super) rule: String,
    #[cfg_attr(test, schemars(schema_with = "schema::severity"))]
    pub(super) severity: String,
    #[cfg_attr(test, schemars(schema_with = "schema::kind"))]
    pub(super) kind: Option<String>,
    #[cfg_attr(test, schemars(schema_with = "schema::relation"))]
    pub(super) relation: String,
    #[cfg_attr(test, schemars(schema_with = "schema::space"))]
    pub(super) space: Option<String>,
    pub(super) object: Option<Object>,
    #[cfg_attr(test, schemars(schema_with = "schema::address"))]
    pub(super) address: Option<String>,
    pub(super) launch: u32,
    pub(super) count: u64,
    #[cfg_attr(test, schemars(schema_with = "schema::fingerprint"))]
    pub(super) fingerprint: String,
    pub(super) accesses: Vec<Access>,
    pub(super) message: String,
    pub(super) missing: String,
    pub(super) help: String,
    pub(super) notes: Vec<String>,
    pub(super) replay: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) timeline: Option<Timeline>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) spread: Option<Spread>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Timeline {
    pub(super) lanes: Vec<Lane>,
    pub(super) events: Vec<Event>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) edges: Vec<Edge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mask: Option<Mask>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Lane {
    pub(super) title: String,
    pub(super) detail: String,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Event {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lane: Option<u32>,
    pub(super) row: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) access: Option<u32>,
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) op: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) at: String,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    #[cfg_attr(test, schemars(schema_with = "schema::link"))]
    pub(super) link: String,
    pub(super) text: String,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Mask {
    pub(super) given: u32,
    pub(super) executing: u32,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Spread {
    pub(super) addresses: u64,
    pub(super) first_element: u64,
    pub(super) last_element: u64,
    pub(super) sample: Vec<[u64; 5]>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Object {
    pub(super) name: String,
    pub(super) full: Option<String>,
    pub(super) offset: u64,
    pub(super) element: u64,
    pub(super) bytes: u64,
    pub(super) size: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) allocated: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Access {
    pub(super) op: String,
    pub(super) access: String,
    pub(super) order: Option<String>,
    pub(super) scope: Option<String>,
    pub(super) width: u32,
    pub(super) kernel: String,
    pub(super) block: [u32; 3],
    pub(super) thread: [u32; 3],
    pub(super) warp: u32,
    pub(super) lane: u32,
    pub(super) text: String,
    pub(super) place: Position,
    pub(super) ptx: Position,
    pub(super) source: Option<Source>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Position {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u32,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Source {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) inlined_at: Vec<Position>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Suppressed {
    pub(super) by: By,
    pub(super) finding: Finding,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct By {
    #[cfg_attr(test, schemars(schema_with = "schema::means"))]
    pub(super) means: String,
    pub(super) text: String,
    pub(super) file: Option<String>,
    pub(super) line: u32,
    pub(super) reason: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Suppressor {
    #[serde(flatten)]
    pub(super) by: By,
    pub(super) hits: u64,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Incomplete {
    #[cfg_attr(test, schemars(schema_with = "schema::reason"))]
    pub(super) reason: String,
    pub(super) detail: String,
}
