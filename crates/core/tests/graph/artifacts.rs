//! Artifacts: named blobs that tasks hand over with their results.

use serde_json::{Value as JsonValue, json};
use steadfast_core::graph::view::{self, ArtifactStatus};
use steadfast_core::limits;

use crate::world::{World, failure, json as stored, output, run_id};

const TWO: &str = r#"
nodes: { a: { run: { function: f }, output: { state.x: "${result.x}" } }, b: { run: { function: f } } }
transitions: [{ from: a, to: b }]
"#;

/// Name, status, node and content of every artifact.
fn artifacts(world: &World) -> Vec<(String, &'static str, String, String)> {
    let status = |status| match status {
        ArtifactStatus::Staged => "staged",
        ArtifactStatus::Committed => "committed",
    };
    let all = view::artifacts(&world.actors[&run_id("r")]).unwrap().into_iter();
    all.map(|one| (one.name, status(one.status), one.node.to_string(), one.content.as_str().to_owned())).collect()
}

fn of(name: &str, status: &'static str, node: &str, content: &str) -> (String, &'static str, String, String) {
    (name.to_owned(), status, node.to_owned(), content.to_owned())
}

fn begun(answer: JsonValue) -> World {
    let mut world = World::with(TWO);
    world.start("r", "w", json!({}));
    world.answer("r", "a", answer);
    world
}

#[test]
fn an_artifact_is_staged_while_the_run_goes_on_and_committed_when_it_completes() {
    let mut world = begun(json!({ "x": 1, "artifacts": { "report.md": "# hello", "data": { "n": 5 } } }));
    assert_eq!(
        artifacts(&world),
        [of("data", "staged", "a", r#"{"n":5}"#), of("report.md", "staged", "a", "\"# hello\"")]
    );
    world.answer("r", "b", json!(null));
    output(world.outcome("r"));
    assert_eq!(
        artifacts(&world),
        [of("data", "committed", "a", r#"{"n":5}"#), of("report.md", "committed", "a", "\"# hello\"")]
    );
}

#[test]
fn artifacts_are_dropped_when_the_run_is_cancelled() {
    let mut world = begun(json!({ "artifacts": { "x": 1 } }));
    world.cancel("r", "enough");
    assert_eq!(artifacts(&world), []);
}

#[test]
fn artifacts_are_dropped_when_the_run_fails() {
    let mut world = begun(json!({ "artifacts": { "x": 1 } }));
    world.fail(
        "r",
        "b",
        steadfast_core::failure::Failure::last(steadfast_core::failure::FailureKind::TaskFailed, "boom"),
    );
    failure(world.outcome("r"));
    assert_eq!(artifacts(&world), []);
}

#[test]
fn artifacts_are_dropped_when_the_output_does_not_fit() {
    let mut world = World::with("output: { type: object, required: [x] }\nnodes: { a: { run: { function: f } } }");
    world.start("r", "w", json!({}));
    world.answer("r", "a", json!({ "artifacts": { "x": 1 } }));
    failure(world.outcome("r"));
    assert_eq!(artifacts(&world), []);
}

#[test]
fn an_artifact_takes_the_place_of_an_earlier_one_of_its_name() {
    let mut world = begun(json!({ "artifacts": { "x": 1 } }));
    world.answer("r", "b", json!({ "artifacts": { "x": 2 } }));
    output(world.outcome("r"));
    assert_eq!(artifacts(&world), [of("x", "committed", "b", "2")]);
}

#[test]
fn an_attempt_that_fails_hands_nothing_over() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes: { a: { task: t }, mend: {} }
transitions: [{ from: a, to: mend, on: error }]
---
kind: task
name: t
output: { type: object, required: [x] }
run: { function: f }
"#,
    );
    world.start("r", "w", json!({}));
    world.answer("r", "a", json!({ "artifacts": { "half": "done" } }));
    output(world.outcome("r"));
    assert_eq!(artifacts(&world), []);
}

#[test]
fn a_late_result_hands_nothing_over() {
    let mut world = World::with(TWO);
    world.start("r", "w", json!({}));
    let task = world.pending("r").remove(0);
    world.cancel("r", "enough");
    world.settle_task(&task, Ok(stored(&json!({ "artifacts": { "x": 1 } }))));
    assert_eq!(artifacts(&world), []);
}

#[test]
fn staging_and_committing_are_told() {
    let mut world = begun(json!({ "artifacts": { "x": 1 } }));
    world.answer("r", "b", json!(null));
    output(world.outcome("r"));
    assert_eq!(world.told("r", "artifact.staged"), [json!({ "artifact": "x", "node": "a", "token": 1 })]);
    assert_eq!(world.told("r", "artifact.committed"), [json!({ "artifact": "x" })]);
}

#[test]
fn a_name_that_cannot_be_is_a_failure_of_the_node() {
    let mut world = begun(json!({ "artifacts": { "": 1 } }));
    assert_eq!(failure(world.outcome("r")).message, "the artifact name `` has 0 bytes, allowed are 1 to 200");
}

#[test]
fn more_artifacts_than_may_be_are_a_failure_of_the_node() {
    let many: serde_json::Map<String, JsonValue> =
        (0..=limits::ARTIFACTS_MAX).map(|n| (n.to_string(), json!(n))).collect();
    let mut world = begun(json!({ "artifacts": many }));
    assert_eq!(failure(world.outcome("r")).message, "the run has 1000 artifacts already (`ARTIFACTS_MAX`)");
    assert_eq!(artifacts(&world), []);
}
