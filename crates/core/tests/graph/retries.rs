//! Retries: how often a node's work is tried, and when.

use serde_json::{Value as JsonValue, json};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::limits;

use crate::world::{World, failure, json as stored, output};

fn node(fail: &str, retry: &str) -> World {
    World::with(&format!(
        "nodes: {{ a: {{ run: {{ mock: {{ value: 7, fail: {{ {fail} }} }} }}, retry: {{ {retry} }}, output: {{ output.n: '${{result}}' }} }} }}"
    ))
}

/// When each attempt began, in milliseconds from the start.
fn attempts(world: &World) -> Vec<u64> {
    let dispatched = world.events("r").iter().filter(|event| &*event.event_type == "task.dispatched");
    dispatched.map(|event| event.at.0 - 1_000_000).collect()
}

#[test]
fn a_failed_task_is_tried_again_until_it_succeeds() {
    let mut world = node("times: 2", "max_attempts: 3, delay: 1s, backoff: constant, jitter: 0");
    assert_eq!(output(world.run("w", json!({}))), json!({ "n": 7 }));
    assert_eq!(attempts(&world), [0, 1_000, 2_000]);
}

#[test]
fn max_attempts_counts_all_attempts() {
    let mut world = node("message: boom", "max_attempts: 3, delay: 1s, jitter: 0");
    let failure = failure(world.run("w", json!({})));
    assert_eq!((&*failure.message, attempts(&world).len()), ("boom", 3));
    assert_eq!(failure.details.unwrap().as_str(), r#"{"attempt":3,"node":"a"}"#);
}

#[test]
fn delays_grow_as_the_policy_says() {
    let mut world =
        node("times: 4", "max_attempts: 9, delay: 1s, backoff: exponential, factor: 3, max_delay: 10s, jitter: 0");
    output(world.run("w", json!({})));
    assert_eq!(attempts(&world), [0, 1_000, 4_000, 13_000, 23_000]);
    let mut world = node("times: 3", "max_attempts: 9, delay: 1s, backoff: linear, jitter: 0");
    output(world.run("w", json!({})));
    assert_eq!(attempts(&world), [0, 1_000, 3_000, 6_000]);
}

#[test]
fn jitter_spreads_the_delays_of_branches() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { run: { mock: { fail: { times: 1 } } }, retry: { delay: 10s, jitter: 0.5 } } }
transitions: [{ from: a, to: b, spawn: 5 }]
"#,
    );
    output(world.run("w", json!({})));
    let mut due: Vec<u64> = attempts(&world).split_off(5);
    assert!(due.iter().all(|at| (5_000..15_000).contains(at)), "{due:?}");
    due.dedup();
    assert!(due.len() > 1, "{due:?}");
}

#[test]
fn without_a_policy_there_is_one_attempt() {
    let mut world = World::with("nodes: { a: { run: { mock: { fail: { times: 1, message: boom } } } } }");
    assert_eq!(failure(world.run("w", json!({}))).message, "boom");
    assert_eq!(attempts(&world), [0]);
}

#[test]
fn what_a_retry_cannot_mend_is_not_tried_again() {
    let mut world = node("retryable: false", "max_attempts: 5");
    failure(world.run("w", json!({})));
    assert_eq!(attempts(&world), [0]);
}

#[test]
fn the_policy_of_the_task_holds_where_the_node_has_none() {
    let world = |node: &str| {
        World::of(&format!(
            r#"
kind: workflow
name: w
nodes: {{ a: {{ task: t{node} }} }}
---
kind: task
name: t
retry: {{ max_attempts: 4, delay: 1s, backoff: constant, jitter: 0 }}
run: {{ mock: {{ fail: {{}} }} }}
"#
        ))
    };
    let mut of_task = world("");
    failure(of_task.run("w", json!({})));
    assert_eq!(attempts(&of_task).len(), 4);
    let mut of_node = world(", retry: { max_attempts: 2 }");
    failure(of_node.run("w", json!({})));
    assert_eq!(attempts(&of_node).len(), 2);
}

#[test]
fn the_attempt_count_and_the_due_time_are_on_disk() {
    let mut world = node("times: 2", "max_attempts: 3, delay: 1h, backoff: constant, max_delay: 1h, jitter: 0");
    world.start("r", "w", json!({}));
    world.settle();
    // Whatever else happens in between, made anew from its rows each time.
    for minute in 1..60 {
        world.pass(60_000);
        world.signal("r", "other", json!(minute));
        assert_eq!(world.at("r", "a"), ["retrying"]);
    }
    world.pass(60_000);
    assert_eq!(world.tokens("r")[0].attempt, 2);
    world.finish();
    assert_eq!(attempts(&world), [0, 3_600_000, 7_200_000]);
}

#[test]
fn each_attempt_is_told_its_number_and_has_the_same_name() {
    let mut world = World::with("nodes: { a: { run: { function: f }, retry: { max_attempts: 3, delay: 1s } } }")
        .answer_with(|task| match task.input.attempt {
            3 => Ok(stored(&json!(task.task))),
            attempt => Err(Failure::retryable(FailureKind::TaskFailed, &format!("{} {attempt}", task.task))),
        });
    output(world.run("w", json!({})));
    let failed: Vec<JsonValue> =
        world.told("r", "task.failed").iter().map(|told| told["error"]["message"].clone()).collect();
    assert_eq!(failed, ["1 1", "1 2"]);
}

/// When the second attempt begins after a failure that asks for this pause.
#[track_caller]
fn check_retry_after(asked: JsonValue, expected: u64) {
    let mut world = World::with("nodes: { a: { run: { function: f }, retry: { delay: 10s, jitter: 0 } } }")
        .answer_with(move |task| {
            let details = Some(stored(&json!({ "retry_after_ms": asked })));
            match task.input.attempt {
                1 => Err(Failure { details, ..Failure::retryable(FailureKind::TaskFailed, "busy") }),
                _ => Ok(stored(&json!(null))),
            }
        });
    output(world.run("w", json!({})));
    assert_eq!(attempts(&world)[1], expected);
}

#[test]
fn a_pause_that_whoever_was_called_asks_for_is_honoured() {
    check_retry_after(json!(90_000), 90_000);
}

#[test]
fn a_pause_that_is_asked_for_never_shortens_the_delay() {
    check_retry_after(json!(5), 10_000);
    check_retry_after(json!(-5), 10_000);
    check_retry_after(json!("soon"), 10_000);
}

#[test]
fn a_pause_that_is_asked_for_is_bounded() {
    check_retry_after(json!(limits::RETRY_AFTER_MS_MAX * 3), limits::RETRY_AFTER_MS_MAX);
}

#[test]
fn a_retry_is_told_with_its_due_time() {
    let mut world = node("times: 1", "max_attempts: 2, delay: 1s, jitter: 0");
    output(world.run("w", json!({})));
    assert_eq!(
        world.told("r", "task.retry_scheduled"),
        [json!({ "token": 1, "node": "a", "attempt": 1, "due": "1970-01-01T00:16:41.000Z" })]
    );
}

#[test]
fn a_result_that_comes_while_the_next_attempt_is_awaited_is_dropped() {
    let mut world = World::with("nodes: { a: { run: { function: f }, retry: { delay: 1h, max_delay: 1h } } }");
    world.start("r", "w", json!({}));
    let task = world.pending("r").remove(0);
    world.fail("r", "a", Failure::retryable(FailureKind::TaskFailed, "boom"));
    world.settle_task(&task, Ok(stored(&json!("late"))));
    assert_eq!(world.at("r", "a"), ["retrying"]);
}

#[test]
fn an_output_that_does_not_fit_its_schema_is_tried_again() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes: { a: { task: t, output: { output.n: "${result}" } } }
---
kind: task
name: t
output: { type: integer }
retry: { max_attempts: 2, delay: 1s }
run: { function: f }
"#,
    )
    .answer_with(|task| Ok(stored(&if task.input.attempt == 1 { json!("no") } else { json!(5) })));
    assert_eq!(output(world.run("w", json!({}))), json!({ "n": 5 }));
}

#[test]
fn what_was_computed_in_place_is_not_computed_again() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes: { a: { task: t } }
---
kind: task
name: t
output: { type: integer }
retry: { max_attempts: 5 }
run: { value: text }
"#,
    );
    assert_eq!(failure(world.run("w", json!({}))).kind, FailureKind::InvalidOutput);
    assert_eq!(world.told("r", "task.retry_scheduled").len(), 0);
}

#[test]
fn only_when_all_attempts_are_used_up_is_the_error_path_taken() {
    let mut world = World::with(
        r#"
nodes: { a: { run: { mock: { fail: {} } }, retry: { max_attempts: 2, delay: 1s, jitter: 0 } }, b: {} }
transitions: [{ from: a, to: b, on: error }]
"#,
    );
    output(world.run("w", json!({})));
    assert_eq!((attempts(&world).len(), world.told("r", "token.failed").len()), (2, 1));
    assert_eq!(world.told_at("r", "workflow.completed"), 1_000);
}
