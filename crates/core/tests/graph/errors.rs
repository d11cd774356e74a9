//! Errors: what happens when a node fails for good.

use serde_json::{Value as JsonValue, json};
use steadfast_core::failure::{Failure, FailureKind};

use crate::world::{World, failure, json as stored, output};

/// A node `a` that fails as `fail` says, and a world of ways out of that.
#[track_caller]
fn check(fail: &str, transitions: &str, expected: JsonValue) {
    let mut world = World::with(&format!(
        r#"
start: a
nodes:
  a: {{ run: {{ mock: {{ fail: {{ {fail} }} }} }} }}
  b: {{ output: {{ state.way: "b" }} }}
  c: {{ output: {{ state.way: "c", state.error: "${{error.type}} at ${{error.node}}: ${{error.message}}" }} }}
  d: {{ output: {{ state.later: "${{error.message}}" }} }}
transitions:
{transitions}
  - {{ from: c, to: d }}
result: {{ way: "${{state.way}}", error: "${{state.error}}", later: "${{state.later}}" }}
"#
    ));
    assert_eq!(output(world.run("w", json!({}))), expected);
    assert_eq!(world.at("r", "a"), ["failed"]);
}

#[test]
fn a_failed_node_takes_its_error_transitions_with_the_error_in_scope_down_the_path() {
    check(
        "message: boom",
        "  - { from: a, to: b }\n  - { from: a, to: c, on: error }",
        json!({ "way": "c", "error": "task_failed at a: boom", "later": "boom" }),
    );
}

#[test]
fn error_transitions_have_conditions_that_see_the_error() {
    let ways = r#"
  - { from: a, to: b, on: error, when: "error.type == 'timeout'" }
  - { from: a, to: c, on: error, when: "error.type == 'not_found' && error.node == 'a' && !error.retryable" }
"#;
    let expected = json!({ "way": "c", "error": "not_found at a: gone", "later": "gone" });
    check("type: not_found, message: gone, retryable: false", ways, expected);
}

#[test]
fn error_transitions_have_tiers() {
    let ways = r#"
  - { from: a, to: b, on: error, priority: 2 }
  - { from: a, to: c, on: error, priority: 1, when: "error.message == 'boom'" }
"#;
    check("message: boom", ways, json!({ "way": "c", "error": "task_failed at a: boom", "later": "boom" }));
    let ways = ways.replace("'boom'", "'else'");
    check("message: boom", &ways, json!({ "way": "b", "error": null, "later": null }));
}

#[test]
fn a_completed_node_never_takes_error_transitions() {
    let mut world = World::with("nodes: { a: {}, b: {} }\ntransitions: [{ from: a, to: b, on: error }]");
    output(world.run("w", json!({})));
    assert_eq!(world.nodes("r"), ["a"]);
}

#[test]
fn when_no_error_transition_matches_the_run_fails_with_that_error() {
    let mut world = World::with(
        r#"
nodes: { a: { run: { mock: { fail: { type: not_found, message: gone } } } }, b: {} }
transitions: [{ from: a, to: b, on: error, when: "error.type == 'timeout'" }]
"#,
    );
    let failure = failure(world.run("w", json!({})));
    assert_eq!((failure.kind, &*failure.message), (FailureKind::NotFound, "gone"));
    assert_eq!(failure.details.unwrap().as_str(), r#"{"attempt":1,"node":"a"}"#);
}

#[test]
fn what_the_failure_says_itself_is_kept_beside_where_it_happened() {
    let mut world = World::with("nodes: { a: { run: { function: f } } }").answer_with(|_| {
        let details = Some(stored(&json!({ "status": 404 })));
        Err(Failure { details, ..Failure::last(FailureKind::NotFound, "gone") })
    });
    let details = failure(world.run("w", json!({}))).details.unwrap();
    assert_eq!(details.as_str(), r#"{"attempt":1,"node":"a","status":404}"#);
}

#[test]
fn a_failing_run_cancels_everything_that_is_active() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes:
  a: {}
  bad: { run: { mock: { delay: 1s, fail: { message: boom } } } }
  task: { run: { function: f } }
  sleep: { sleep: 1h }
  wait: { wait: { signal: s } }
  child: { workflow: child }
  inner: { run: { function: f } }
transitions:
  - { from: a, to: bad }
  - { from: a, to: task }
  - { from: a, to: sleep }
  - { from: a, to: wait }
  - { from: a, to: child }
  - { from: a, to: inner, spawn: 3 }
---
kind: workflow
name: child
nodes: { a: { run: { function: f } } }
"#,
    );
    assert_eq!(failure(world.run("w", json!({}))).message, "boom");
    for node in ["task", "sleep", "wait", "child", "inner"] {
        assert!(world.at("r", node).iter().all(|status| *status == "cancelled"), "{node}");
    }
    assert_eq!(world.view(&world.children("r")[0]).status.name(), "cancelled");
    assert_eq!(world.told_at("r", "workflow.failed"), 1_000);
}

#[test]
fn an_error_on_the_error_path_takes_the_place_of_the_first() {
    let mut world = World::with(
        r#"
nodes:
  a: { run: { mock: { fail: { message: first } } } }
  b: { run: { mock: { fail: { message: "second after ${error.message}" } } } }
  c: { output: { output.error: "${error.node}: ${error.message}" } }
transitions: [{ from: a, to: b, on: error }, { from: b, to: c, on: error }]
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({ "error": "b: second after first" }));
}

#[test]
fn a_branch_may_arrive_at_its_join_by_an_error_path() {
    let mut world = World::with(
        r#"
nodes:
  a: {}
  b: { run: { mock: { fail: { times: "${branch.index}", message: boom } } }, output: { state.x: "fine" } }
  mend: { output: { state.x: "mended ${error.message}" } }
  c: { output: { state.after: "${error == null}" } }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: mend, on: error }
  - { from: b, to: c, join: &join { group: g, merge: { from: state.x, into: state.all } } }
  - { from: mend, to: c, join: *join }
result: { all: "${state.all}", after: "${state.after}" }
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({ "all": ["fine", "mended boom"], "after": true }));
}

#[test]
fn an_error_transition_may_itself_be_a_join() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { run: { mock: { fail: { times: "${branch.index}" } } } }, c: {} }
transitions:
  - { from: a, to: b, spawn: 3, group: g }
  - { from: b, to: c, join: &join { group: g, merge: { from: branch.index, into: state.all } } }
  - { from: b, to: c, on: error, join: *join }
result: "${state.all}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!([0, 1, 2]));
}

#[test]
fn an_error_transition_may_fan_out() {
    let mut world = World::with(
        r#"
nodes:
  a: { run: { mock: { fail: { message: boom } } } }
  b: { output: { state.x: "${item} ${error.message}" } }
  c: { output: { output.error: "${error.message}", output.all: "${state.all}" } }
transitions:
  - { from: a, to: b, on: error, foreach: { in: "['x', 'y']" }, group: g }
  - { from: b, to: c, join: { group: g, merge: { from: state.x, into: state.all } } }
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({ "error": "boom", "all": ["x boom", "y boom"] }));
}

#[test]
fn a_join_after_an_error_path_does_not_remember_the_errors_of_branches() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { run: { mock: { fail: {} } } }, mend: {}, c: {}, d: {}, e: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: mend, on: error }
  - { from: mend, to: c, join: { group: g } }
  - { from: c, to: d, when: "error.message == null" }
  - { from: c, to: e, when: "error.message != null" }
"#,
    );
    output(world.run("w", json!({})));
    assert_eq!((world.at("r", "d").len(), world.at("r", "e").len()), (1, 0));
}

const SCHEMAS: &str = r#"
kind: workflow
name: w
nodes:
  a: { task: t, input: { n: "${input.n}" } }
  mend: { output: { output.error: "${error.type}: ${error.message}" } }
transitions: [{ from: a, to: mend, on: error }]
---
kind: task
name: t
input: { type: object, properties: { n: { type: integer, minimum: 1 } } }
output: { type: object, required: [ok] }
run: { function: f }
"#;

#[test]
fn a_tasks_input_that_does_not_fit_is_a_failure_of_the_node_and_the_task_never_runs() {
    let mut world = World::of(SCHEMAS);
    let result = output(world.run("w", json!({ "n": 0 })));
    let message = result["error"].as_str().unwrap();
    assert!(
        message.starts_with("invalid_input: the input of task `t` does not fit its schema: at `/n`: "),
        "{message}"
    );
    assert_eq!(world.told("r", "task.dispatched").len(), 0);
}

#[test]
fn a_tasks_output_that_does_not_fit_is_a_failure_of_the_task() {
    let mut world = World::of(SCHEMAS).answer_with(|_| Ok(stored(&json!({ "no": 1 }))));
    let result = output(world.run("w", json!({ "n": 1 })));
    let message = result["error"].as_str().unwrap();
    assert!(message.starts_with("invalid_output: the result of task `t` does not fit its schema: "), "{message}");
    assert_eq!(world.told("r", "task.failed").len(), 1);
}

#[test]
fn a_task_with_a_name_sees_nothing_but_its_input() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes: { a: { task: t, input: { twice: "${input.n * 2}" }, output: { output.all: "${result}" } } }
---
kind: task
name: t
run: { value: { saw: "${input}" } }
"#,
    );
    assert_eq!(output(world.run("w", json!({ "n": 4 }))), json!({ "all": { "saw": { "twice": 8 } } }));
}

#[test]
fn a_task_written_in_place_sees_the_workflow_and_is_handed_the_nodes_input() {
    let mut world = World::with(
        r#"
nodes: { a: { run: { function: f }, input: { x: "${input.n}" }, output: { output.got: "${result}" } } }
"#,
    )
    .answer_with(|task| Ok(task.input.input.clone()));
    assert_eq!(output(world.run("w", json!({ "n": 4 }))), json!({ "got": { "x": 4 } }));
}

#[test]
fn what_does_not_fit_the_state_schema_is_a_failure_of_the_node_that_writes_it() {
    let mut world = World::with(
        r#"
state: { properties: { n: { type: integer } } }
nodes: { a: { output: { state.n: "text", state.m: 1 } }, mend: { output: { output.error: "${error.type}", output.m: "${state.m}" } } }
transitions: [{ from: a, to: mend, on: error }]
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({ "error": "invalid_output", "m": null }));
}

#[test]
fn what_a_merge_writes_must_fit_the_state_schema_too() {
    let mut world = World::with(
        r#"
state: { properties: { all: { type: array, maxItems: 1 } } }
nodes: { a: {}, b: {}, c: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c, join: { group: g, merge: { from: branch.index, into: state.all } } }
"#,
    );
    let failure = failure(world.run("w", json!({})));
    assert_eq!(failure.kind, FailureKind::InvalidOutput);
    assert!(failure.message.starts_with("`state.all` does not fit its schema"), "{failure}");
}

#[test]
fn a_write_into_something_that_is_no_object_is_a_failure_of_the_node() {
    let mut world = World::with(
        r#"
nodes: { a: { output: { state.x: 5 } }, b: { output: { state.x.y: 1 } }, mend: { output: { output.error: "${error.node} ${error.type}" } } }
transitions: [{ from: a, to: b }, { from: b, to: mend, on: error }]
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({ "error": "b invalid_output" }));
}

#[test]
fn an_input_that_cannot_be_processed_fails_the_run_visibly() {
    let mut world = World::with("nodes: { a: { run: { function: f }, output: { state.x: '${result}' } } }");
    world.start("r", "w", json!({}));
    // Deeper than a value may be nested; the engine refuses such a result before it comes here.
    let deep = (0..110).fold(json!(1), |inside, _| json!([inside]));
    world.answer("r", "a", deep);
    let failure = failure(world.outcome("r"));
    assert_eq!(failure.kind, FailureKind::Internal);
    assert!(failure.message.starts_with("an input of the run could not be processed: "), "{failure}");
}
