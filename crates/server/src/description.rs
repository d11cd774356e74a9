//! `/openapi.json`: what the routes say of themselves, and what all of them have in common.
//!
//! Owns what would be repeated at every route: that errors are problem documents, and what names, pages and places look like. Start reading at
//! [`complete`].

use serde_json::{Map, Value, json};
use steadfast_api::problem;

use crate::limits;

/// The forms of parameters, by where they stand and their names. One that stands under another path has its own.
const FORMS: &[(&str, &str, &str, &str)] = &[
    ("/v1/runs/{id}", "path", "id", "^[A-Za-z0-9._:-]{1,200}(\\.[0-9a-f]{32})?$"),
    ("/v1/runs/{id}", "path", "name", "^[A-Za-z0-9._:-]{1,200}$"),
    ("/v1/runs/{id}/tokens", "query", "cursor", "^[0-9]{1,18}$"),
    ("/v1/runs", "query", "cursor", "^[0-9a-f]{1,15}$"),
    ("/v1/runs", "query", "root", "^[A-Za-z0-9._:-]{1,200}(\\.[0-9a-f]{32})?$"),
    ("/v1/runs", "query", "status", "^(running|paused|completed|failed|cancelled)$"),
    ("/v1/runs/{id}", "query", "after", "^[0-9]{1,18}(\\.[0-9]{1,18})?$"),
    ("/v1/events", "query", "after", "^[0-9]{1,18}\\.[0-9]{1,18}$"),
    ("/v1/workflows", "path", "name", "^[A-Za-z0-9._-]{1,100}(@[0-9]{1,9})?$"),
    ("/v1/definitions", "path", "kind", "^(workflow|task)$"),
    ("/v1/definitions", "query", "kind", "^(workflow|task)$"),
    ("/v1/definitions", "query", "cursor", "^(workflow|task)\\.[A-Za-z0-9._-]{1,100}$"),
    ("/v1/dead-letters", "path", "id", "^[0-9]{1,2}-[0-9]{1,9}-[0-9]{1,9}$"),
    ("/v1/dead-letters", "query", "cursor", "^[0-9]{1,2}-[0-9]{1,9}-[0-9]{1,9}$"),
    ("/v1", "header", "Idempotency-Key", "^[A-Za-z0-9._:-]{1,200}$"),
    ("/v1/runs/{id}", "header", "Last-Event-ID", "^([0-9]{1,18}(\\.[0-9]{1,18})?)?$"),
    ("/v1/events", "header", "Last-Event-ID", "^([0-9]{1,18}\\.[0-9]{1,18})?$"),
];

const LIMIT: &str = "limit";

/// Adds what all routes have in common to what they say of themselves.
pub(crate) fn complete(document: &mut Value) {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, operations) in paths.into_iter().flatten() {
        for operation in operations.as_object_mut().into_iter().flat_map(Map::values_mut) {
            for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
                describe_form(path, parameter);
            }
            if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
                describe_problems(responses);
            }
        }
    }
}

fn describe_form(path: &str, parameter: &mut Value) {
    let (place, name) = (parameter["in"].clone(), parameter["name"].clone());
    let Some(schema) = parameter.get_mut("schema").and_then(Value::as_object_mut) else { return };
    if name == LIMIT {
        schema.insert("minimum".to_owned(), json!(1));
        schema.insert("maximum".to_owned(), json!(limits::PAGE_ROWS_MAX));
    }
    let is_meant = |form: &&(&str, &str, &str, &str)| path.starts_with(form.0) && place == form.1 && name == form.2;
    if let Some((_, _, _, pattern)) = FORMS.iter().find(is_meant) {
        schema.insert("pattern".to_owned(), json!(pattern));
    }
}

/// Errors are of their own type, and whatever is not listed is an error too.
fn describe_problems(responses: &mut Map<String, Value>) {
    let problem = json!({ "schema": { "$ref": "#/components/schemas/Problem" } });
    for content in responses.values_mut().filter_map(|response| response.get_mut("content")?.as_object_mut()) {
        if content.values().any(|described| *described == problem) {
            *content = Map::from_iter([(problem::MEDIA_TYPE.to_owned(), problem.clone())]);
        }
    }
    let otherwise = json!({
        "description": "anything else that is wrong",
        "content": { problem::MEDIA_TYPE: problem },
    });
    responses.insert("default".to_owned(), otherwise);
}
