//! A span, and its form in OTLP's JSON.
//!
//! Owns the ids, which follow from those of runs, tokens and attempts: whatever is sent twice is the same span. Never holds what a run was given or gives.

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use steadfast_core::limits;
use steadfast_core::time::Timestamp;

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u32 = 1;

/// `STATUS_CODE_ERROR`.
const ERROR: u32 = 2;

/// Something that took time, and is over.
pub(super) struct Span {
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) name: String,
    pub(super) started: Timestamp,
    pub(super) ended: Timestamp,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) error: Option<Trouble>,
}

/// What is told of a failure: without its details, which may hold what somebody outside has answered.
#[derive(Deserialize)]
pub(super) struct Trouble {
    #[serde(rename = "type")]
    pub(super) kind: String,
    message: String,
}

/// The trace of the tree whose top is this run.
pub(super) fn trace_id(root: &str) -> String {
    hex(root, 16)
}

/// The span of a run.
pub(super) fn run_id(run: &str) -> String {
    hex(&format!("{run}/run"), 8)
}

/// The span of a call, by the run that was called.
pub(super) fn call_id(run: &str) -> String {
    hex(&format!("{run}/call"), 8)
}

/// The span of an attempt of a task.
pub(super) fn attempt_id(run: &str, token: u64, attempt: u32) -> String {
    hex(&format!("{run}/{token}/{attempt}"), 8)
}

fn hex(text: &str, bytes: usize) -> String {
    Sha256::digest(text).iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}

/// The body of a request.
pub(super) fn document(spans: &[Span]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [("service.name", json!("steadfast")), ("service.version", json!(version))];
    json!({
        "resourceSpans": [{
            "resource": { "attributes": attributes(&resource) },
            "scopeSpans": [{
                "scope": { "name": "steadfast", "version": version },
                "spans": spans.iter().map(Span::document).collect::<Vec<_>>(),
            }],
        }],
    })
    .to_string()
}

impl Span {
    fn document(&self) -> Value {
        let mut document = json!({
            "traceId": self.trace,
            "spanId": self.id,
            "name": self.name,
            "kind": INTERNAL,
            "startTimeUnixNano": nanoseconds(self.started),
            "endTimeUnixNano": nanoseconds(self.ended),
            "attributes": attributes(&self.attributes),
        });
        if let Some(parent) = &self.parent {
            document["parentSpanId"] = json!(parent);
        }
        if let Some(Trouble { message, .. }) = &self.error {
            let shown = &message[..message.floor_char_boundary(limits::EXCERPT_BYTES_MAX)];
            document["status"] = json!({ "code": ERROR, "message": shown });
        }
        document
    }
}

fn nanoseconds(at: Timestamp) -> String {
    (u128::from(at.0) * 1_000_000).to_string()
}

/// Whole numbers are texts there, as JSON's have fewer digits.
fn attributes(all: &[(&str, Value)]) -> Vec<Value> {
    let attribute = |(key, value): &(&str, Value)| match value {
        Value::Number(number) => json!({ "key": key, "value": { "intValue": number.to_string() } }),
        Value::Bool(_) => json!({ "key": key, "value": { "boolValue": value } }),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            json!({ "key": key, "value": { "stringValue": value } })
        }
    };
    all.iter().map(attribute).collect()
}
