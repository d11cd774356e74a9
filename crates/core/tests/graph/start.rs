//! Start and completion.

use serde_json::{Value as JsonValue, json};
use steadfast_core::failure::FailureKind;
use steadfast_core::graph::protocol::{Command, Pins, Start, Started, Tracing};
use steadfast_core::time::Timestamp;

use crate::world::{World, failure, json as stored, output, run_id};

const TWO: &str = r#"
kind: workflow
name: w
nodes: { a: { run: { function: f } } }
---
kind: workflow
name: other
nodes: { a: {} }
"#;

#[test]
fn starting_an_id_that_exists_returns_the_existing_run() {
    let mut world = World::of(TWO);
    assert_eq!(
        world.start("r", "w", json!({ "x": 1, "y": [2] })),
        Started::Created { started_at: Timestamp(1_000_000) }
    );
    let events = world.event_types("r");
    world.pass(1_000);
    assert_eq!(world.start("r", "w", json!({ "y": [2], "x": 1 })), Started::Existing);
    assert_eq!((world.event_types("r"), world.nodes("r")), (events, vec!["a".to_owned()]));
}

#[test]
fn starting_an_id_that_exists_with_something_else_is_a_conflict() {
    let mut world = World::of(TWO);
    world.start("r", "w", json!({ "x": 1 }));
    assert_eq!(world.start("r", "w", json!({ "x": 2 })), Started::Conflict { workflow: "w".into() });
    assert_eq!(world.start("r", "other", json!({ "x": 1 })), Started::Conflict { workflow: "w".into() });
    assert_eq!((&*world.view("r").workflow, world.view("r").input.as_str()), ("w", r#"{"x":1}"#));
}

#[test]
fn an_id_stays_taken_when_its_run_is_over() {
    let mut world = World::of(TWO);
    world.start("r", "other", json!({}));
    assert!(world.view("r").status.is_over());
    assert_eq!(world.start("r", "other", json!({})), Started::Existing);
    assert_eq!(world.start("r", "w", json!({})), Started::Conflict { workflow: "other".into() });
}

#[test]
fn completion_evaluates_the_result() {
    let mut world = World::with(
        r#"
nodes: { a: { output: { state.n: "${input.n + 1}", output.ignored: true } } }
result: { n: "${state.n}", missing: "${state.missing}", text: "n=${state.n}" }
"#,
    );
    assert_eq!(output(world.run("w", json!({ "n": 1 }))), json!({ "n": 2, "missing": null, "text": "n=2" }));
}

#[test]
fn without_a_result_the_output_is_what_was_written_to_it() {
    let mut world = World::with("nodes: { a: { output: { output.x: 1, output.y.z: 2, state.w: 3 } } }");
    assert_eq!(output(world.run("w", json!({}))), json!({ "x": 1, "y": { "z": 2 } }));
}

#[test]
fn completion_checks_the_output() {
    let mut world = World::with(
        r#"
output: { type: object, properties: { n: { type: integer } } }
nodes: { a: {} }
result: { n: "${input.n}" }
"#,
    );
    let failure = failure(world.run("w", json!({ "n": "text" })));
    assert_eq!(failure.kind, FailureKind::InvalidOutput);
    assert!(failure.message.starts_with("the run's output does not fit its schema: at `/n`: "), "{failure}");
}

#[test]
fn an_output_that_fits_is_the_runs_output() {
    let mut world = World::with("output: { type: object, required: [n] }\nnodes: { a: { output: { output.n: 1 } } }");
    assert_eq!(output(world.run("w", json!({}))), json!({ "n": 1 }));
    let view = world.view("r");
    assert_eq!((view.status.name(), view.output.unwrap().as_str()), ("completed", r#"{"n":1}"#));
}

#[test]
fn a_childs_output_that_does_not_fit_is_its_failure() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes: { a: { workflow: child } }
---
kind: workflow
name: child
output: { type: object, required: [n] }
nodes: { a: {} }
"#,
    );
    assert_eq!(failure(world.run("w", json!({}))).kind, FailureKind::InvalidOutput);
}

#[test]
fn a_node_without_work_passes_straight_through() {
    let mut world =
        World::with("nodes: { a: { output: { output.r: '${result}' } }, b: {} }\ntransitions: [{ from: a, to: b }]");
    assert_eq!(output(world.run("w", json!({}))), json!({ "r": null }));
    assert_eq!((world.turns, world.token_lines("r")), (0, vec!["a completed".to_owned(), "b completed".to_owned()]));
}

#[test]
fn a_value_is_computed_in_place() {
    let mut world = World::with(
        r#"
nodes: { a: { run: { value: { n: "${input.n}", text: "is ${input.n}", literal: "plain" } }, output: { output.all: "${result}" } } }
"#,
    );
    let all = json!({ "n": [1, { "x": null }], "text": "is [1,{\"x\":null}]", "literal": "plain" });
    assert_eq!(output(world.run("w", json!({ "n": [1, { "x": null }] }))), json!({ "all": all }));
    assert_eq!(world.told("r", "task.dispatched").len(), 0);
}

#[test]
fn a_run_of_nothing_but_a_node_completes() {
    let mut world = World::with("nodes: { a: {} }");
    assert_eq!(output(world.run("w", json!(null))), json!({}));
}

#[test]
fn a_start_that_cannot_be_leaves_nothing_behind() {
    let mut world = World::with("nodes: { a: {} }");
    // Deeper than a value may be nested.
    let deep = (0..110).fold(json!(1), |inside, _| json!([inside]));
    let start = Start {
        workflow: "w".into(),
        version: 1,
        pins: Pins::default(),
        input: stored(&deep),
        parent: None,
        tracing: Tracing::Off,
    };
    world.try_ask("r", &Command::Start(start)).unwrap_err();
    assert_eq!(world.actors[&run_id("r")].values.len(), 0);
}

#[test]
fn a_secret_is_never_part_of_what_is_stored() {
    let mut world = World::with(
        r#"
nodes: { a: { run: { http: { method: GET, url: "https://example.org/${input.n}", headers: { authorization: "Bearer ${secret.TOKEN}" } } } } }
"#,
    );
    world.start("r", "w", json!({ "n": 5 }));
    let task = world.pending("r").remove(0);
    let specification: JsonValue = task.input.specification.decode().unwrap();
    assert_eq!(
        (&specification["url"], &specification["headers"]["authorization"]),
        (&json!("https://example.org/5"), &json!(null))
    );
    assert_eq!(task.input.secrets[0].pointer, "/headers/authorization");
    world.cancel("r", "seen enough");
}
