//! Sleeping: an absolute deadline, once it has begun.

use serde_json::json;
use steadfast_core::graph::protocol::Command;

use crate::world::{World, failure, output};

#[track_caller]
fn check(sleep: &str, expected_ms: u64) {
    let mut world = World::with(&format!("nodes: {{ a: {{ sleep: {sleep} }} }}"));
    output(world.run("w", json!({ "ms": 250, "text": "2h" })));
    assert_eq!(world.told_at("r", "workflow.completed"), expected_ms);
}

#[test]
fn a_token_sleeps_as_long_as_it_is_told() {
    check("1500ms", 1_500);
    check("7d", 7 * 24 * 3_600_000);
    check("0s", 0);
}

#[test]
fn how_long_may_be_an_expression() {
    check("\"${input.ms * 2}\"", 500);
    check("\"${input.text}\"", 2 * 3_600_000);
    check("\"${input.ms}ms\"", 250);
}

#[test]
fn the_deadline_is_absolute_whatever_happens_in_between() {
    let mut world = World::with("nodes: { a: { sleep: 10s }, b: {} }\ntransitions: [{ from: a, to: b }]");
    world.start("r", "w", json!({}));
    for _ in 0..9 {
        world.pass(1_000);
        world.control("r", &Command::Pause);
        world.control("r", &Command::Resume);
        assert_eq!(world.at("r", "a"), ["sleeping"]);
    }
    world.pass(1_000);
    assert_eq!(world.told_at("r", "workflow.completed"), 10_000);
}

#[test]
fn a_sleeper_that_wakes_while_the_run_is_paused_goes_on_when_it_is_resumed() {
    let mut world = World::with("nodes: { a: { sleep: 10s }, b: {} }\ntransitions: [{ from: a, to: b }]");
    world.start("r", "w", json!({}));
    world.control("r", &Command::Pause);
    world.pass(60_000);
    assert_eq!((world.at("r", "a"), world.at("r", "b")), (vec!["completed"], vec!["pending"]));
    world.control("r", &Command::Resume);
    world.settle();
    assert_eq!(world.told_at("r", "workflow.completed"), 60_000);
}

#[test]
fn until_when_is_told() {
    let mut world = World::with("nodes: { a: { sleep: 10s } }");
    output(world.run("w", json!({})));
    assert_eq!(
        world.told("r", "token.waiting"),
        [json!({ "token": 1, "node": "a", "status": "sleeping", "until": "1970-01-01T00:16:50.000Z" })]
    );
}

#[test]
fn many_sleepers_wake_each_in_its_time() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { sleep: "${branch.index % 7 * 1000}" }, c: {} }
transitions: [{ from: a, to: b, spawn: 2500, group: g }, { from: b, to: c, join: { group: g } }]
"#,
    );
    output(world.run("w", json!({})));
    assert_eq!(world.told_at("r", "fan_in.completed"), 6_000);
}

#[test]
fn what_is_no_duration_fails_the_run() {
    for (sleep, found) in [("-5", "-5"), ("input.x", "null"), ("'soon'", "\"soon\""), ("[1]", "[1]")] {
        let mut world = World::with(&format!("nodes: {{ a: {{ sleep: \"${{{sleep}}}\" }} }}"));
        let failure = failure(world.run("w", json!({})));
        assert_eq!(failure.kind.name(), "expression");
        assert!(failure.message.starts_with("`sleep` of node `a` gave "), "{failure} {found}");
    }
}
