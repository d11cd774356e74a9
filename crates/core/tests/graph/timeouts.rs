//! Timeouts of nodes and of runs. Those of joins are in `fan_in`.

use serde_json::json;
use steadfast_core::failure::FailureKind;

use crate::world::{World, failure, output};

#[test]
fn the_executor_is_told_how_long_an_attempt_may_take() {
    let world = |node: &str, task: &str| {
        let mut world = World::of(&format!(
            "kind: workflow\nname: w\nnodes: {{ a: {{ task: t{node} }} }}\n---\nkind: task\nname: t\n{task}run: {{ function: f }}\n"
        ));
        world.start("r", "w", json!({}));
        world.pending("r")[0].input.timeout_ms
    };
    assert_eq!(world("", ""), None);
    assert_eq!(world("", "timeout: 5s\n"), Some(5_000));
    assert_eq!(world(", timeout: 2s", "timeout: 5s\n"), Some(2_000));
}

#[test]
fn an_attempt_that_takes_too_long_is_a_timeout_of_its_token() {
    let mut world = World::with(
        r#"
nodes: { a: { run: { mock: { delay: 1h } }, timeout: 5s }, b: { output: { output.error: "${error.type}" } } }
transitions: [{ from: a, to: b, on: error }]
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({ "error": "timeout" }));
    assert_eq!((world.at("r", "a"), world.told("r", "token.timed_out").len()), (vec!["timed_out"], 1));
}

#[test]
fn a_timeout_is_that_of_one_attempt() {
    let mut world = World::with(
        "nodes: { a: { run: { mock: { delay: 1h } }, timeout: 5s, retry: { max_attempts: 3, delay: 1s, backoff: constant, jitter: 0 } } }",
    );
    assert_eq!(failure(world.run("w", json!({}))).kind, FailureKind::Timeout);
    assert_eq!(world.told_at("r", "workflow.failed"), 3 * 5_000 + 2 * 1_000);
}

#[test]
fn a_wait_that_takes_too_long_is_a_timeout() {
    let mut world = World::with(
        r#"
nodes: { a: { wait: { signal: s }, timeout: 24h }, b: { output: { output.error: "${error.type}: ${error.message}" } } }
transitions: [{ from: a, to: b, on: error }]
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({ "error": "timeout: node `a` took longer than 1d" }));
    assert_eq!(world.at("r", "a"), ["timed_out"]);
}

#[test]
fn a_wait_that_timed_out_may_be_tried_again() {
    let mut world = World::with(
        "nodes: { a: { wait: { signal: s }, timeout: 5s, retry: { max_attempts: 2, delay: 1s, jitter: 0 }, output: { output.s: '${result}' } } }",
    );
    world.start("r", "w", json!({}));
    world.pass(5_000);
    assert_eq!(world.at("r", "a"), ["retrying"]);
    world.pass(1_000);
    world.signal("r", "s", json!("second"));
    assert_eq!(output(world.outcome("r")), json!({ "s": "second" }));
}

#[test]
fn a_signal_that_comes_after_the_timeout_does_not_undo_it() {
    let mut world = World::with(
        r#"
nodes: { a: { wait: { signal: s }, timeout: 5s }, b: { wait: { signal: other } } }
transitions: [{ from: a, to: b, on: error }]
"#,
    );
    world.start("r", "w", json!({}));
    world.pass(5_000);
    world.signal("r", "s", json!(null));
    assert_eq!((world.at("r", "a"), world.at("r", "b")), (vec!["timed_out"], vec!["waiting_for_signal"]));
}

#[test]
fn a_signal_in_time_takes_the_timeout_away() {
    let mut world = World::with(
        "nodes: { a: { wait: { signal: s }, timeout: 5s }, b: { sleep: 1h } }\ntransitions: [{ from: a, to: b }]",
    );
    world.start("r", "w", json!({}));
    world.pass(4_999);
    world.signal("r", "s", json!(null));
    world.finish();
    output(world.outcome("r"));
    assert_eq!(world.told_at("r", "workflow.completed"), 4_999 + 3_600_000);
}

const CHILD: &str = r#"
kind: workflow
name: w
nodes: { a: { workflow: child, timeout: 5s, retry: { max_attempts: 2, delay: 1s, jitter: 0 } } }
---
kind: workflow
name: child
nodes: { a: { wait: { signal: s } } }
"#;

#[test]
fn a_sub_workflow_that_takes_too_long_is_cancelled_and_may_be_tried_again() {
    let mut world = World::of(CHILD);
    world.start("r", "w", json!({}));
    world.pass(5_000);
    assert_eq!(world.at("r", "a"), ["retrying"]);
    assert_eq!(world.view(&world.children("r")[0]).status.name(), "cancelled");
    world.finish();
    assert_eq!(failure(world.outcome("r")).message, "node `a` took longer than 5s");
    assert_eq!(world.children("r").len(), 2);
    assert_eq!(world.told_at("r", "workflow.failed"), 11_000);
}

#[test]
fn a_run_that_takes_too_long_fails_and_cancels_what_it_does() {
    let mut world = World::of(&CHILD.replace(
        "nodes: { a: { workflow: child, timeout: 5s",
        "timeout: 4s\nnodes: { a: { workflow: child, timeout: 5s",
    ));
    let failure = failure(world.run("w", json!({})));
    assert_eq!((failure.kind, &*failure.message), (FailureKind::Timeout, "the run took longer than 4s"));
    assert_eq!(world.told_at("r", "workflow.failed"), 4_000);
    assert_eq!(world.view(&world.children("r")[0]).status.name(), "cancelled");
}

#[test]
fn a_run_that_ends_in_time_has_no_deadline_left() {
    let mut world = World::with("timeout: 1h\nnodes: { a: { sleep: 1s } }");
    output(world.run("w", json!({})));
    assert_eq!(world.told_at("r", "workflow.completed"), 1_000);
}

#[test]
fn the_timeout_of_a_run_counts_on_while_it_is_paused() {
    let mut world = World::with("timeout: 1h\nnodes: { a: { wait: { signal: s } } }");
    world.start("r", "w", json!({}));
    world.control("r", &steadfast_core::graph::protocol::Command::Pause);
    world.finish();
    assert_eq!(failure(world.outcome("r")).kind, FailureKind::Timeout);
}
