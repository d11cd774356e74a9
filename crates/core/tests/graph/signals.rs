//! Signals: what a person or another system tells a run.

use serde_json::json;
use steadfast_core::graph::protocol::{Command, Controlled, RunStatus};
use steadfast_core::limits;

use crate::world::{World, json as stored, output};

const ONE: &str = "nodes: { a: { wait: { signal: s }, output: { output.got: '${result}' } } }";

#[test]
fn a_waiting_node_gets_the_signals_payload_as_its_result() {
    let mut world = World::with(ONE);
    world.start("r", "w", json!({}));
    assert_eq!(world.at("r", "a"), ["waiting_for_signal"]);
    assert_eq!(world.signal("r", "s", json!({ "ok": true })), Controlled::Done(RunStatus::Completed));
    assert_eq!(output(world.outcome("r")), json!({ "got": { "ok": true } }));
}

#[test]
fn a_signal_of_another_name_changes_nothing() {
    let mut world = World::with(ONE);
    world.start("r", "w", json!({}));
    world.signal("r", "other", json!(1));
    world.signal("r", "s2", json!(1));
    assert_eq!(world.at("r", "a"), ["waiting_for_signal"]);
}

const LATER: &str = r#"
nodes:
  first: { sleep: 1s }
  a: { wait: { signal: s }, output: { output.a: "${result}" } }
  b: { wait: { signal: s }, output: { output.b: "${result}" } }
transitions: [{ from: first, to: a }, { from: a, to: b }]
"#;

#[test]
fn a_signal_that_comes_before_the_token_waits_is_kept() {
    let mut world = World::with(LATER);
    world.start("r", "w", json!({}));
    world.signal("r", "s", json!(1));
    world.signal("r", "s", json!(2));
    world.finish();
    assert_eq!(output(world.outcome("r")), json!({ "a": 1, "b": 2 }));
}

#[test]
fn signals_are_taken_in_the_order_in_which_they_came() {
    let mut world = World::with(
        r#"
start: first
nodes: { first: { sleep: 1s }, a: { wait: { signal: s }, output: { output.all: "${output.all == null ? [result] : output.all + [result]}" } } }
transitions: [{ from: first, to: a }, { from: a, to: a, max_iterations: 11 }]
"#,
    );
    world.start("r", "w", json!({}));
    for number in 0..12 {
        world.signal("r", "s", json!(number));
    }
    world.finish();
    assert_eq!(output(world.outcome("r"))["all"], json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]));
}

#[test]
fn a_signal_goes_to_one_token_only_the_one_that_has_waited_longest() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { sleep: "${(3 - branch.index) * 1000}" }, c: { wait: { signal: s }, output: { state.got: "${result}" } }, d: {} }
transitions:
  - { from: a, to: b, spawn: 3, group: g }
  - { from: b, to: c }
  - { from: c, to: d, join: { group: g, merge: { from: state.got, into: state.all } } }
result: "${state.all}"
"#,
    );
    world.start("r", "w", json!({}));
    world.finish();
    for name in ["first", "second", "third"] {
        world.signal("r", "s", json!(name));
    }
    // The branch of the highest index sleeps shortest.
    assert_eq!(output(world.outcome("r")), json!(["third", "second", "first"]));
}

#[test]
fn a_token_that_waits_again_stands_at_the_end_of_the_line() {
    let mut world = World::with(
        r#"
nodes:
  a: {}
  again: { wait: { signal: s }, timeout: 1s, retry: { max_attempts: 2, delay: 1s, jitter: 0 } }
  steady: { wait: { signal: s } }
transitions: [{ from: a, to: again }, { from: a, to: steady }]
"#,
    );
    world.start("r", "w", json!({}));
    world.pass(2_000);
    assert_eq!(
        (world.at("r", "again"), world.at("r", "steady")),
        (vec!["waiting_for_signal"], vec!["waiting_for_signal"])
    );
    world.signal("r", "s", json!(1));
    assert_eq!((world.at("r", "again"), world.at("r", "steady")), (vec!["waiting_for_signal"], vec!["completed"]));
}

#[test]
fn branches_may_wait_for_signals_named_by_expressions() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { wait: { signal: "approve-${item}" }, output: { state.got: "${result}" } }, c: {} }
transitions:
  - { from: a, to: b, foreach: { in: "['x', 'y']" }, group: g }
  - { from: b, to: c, join: { group: g, merge: { from: state.got, into: state.all } } }
result: "${state.all}"
"#,
    );
    world.start("r", "w", json!({}));
    world.signal("r", "approve-y", json!("for y"));
    world.signal("r", "approve-x", json!("for x"));
    assert_eq!(output(world.outcome("r")), json!(["for x", "for y"]));
}

#[test]
fn a_signal_for_a_branch_that_lost_is_kept_for_the_next_that_waits() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { wait: { signal: s } }, quick: { sleep: 1s }, c: { sleep: 1s }, d: { wait: { signal: s }, output: { output.got: "${result}" } } }
transitions:
  - { from: a, to: b, group: g }
  - { from: a, to: quick, group: g }
  - { from: quick, to: c, join: &join { group: g, wait_for: any } }
  - { from: b, to: c, join: *join }
  - { from: c, to: d }
"#,
    );
    world.start("r", "w", json!({}));
    world.pass(1_500);
    world.signal("r", "s", json!("kept"));
    world.finish();
    assert_eq!(output(world.outcome("r")), json!({ "got": "kept" }));
}

#[test]
fn a_signal_for_a_run_that_is_over_or_unknown_is_refused() {
    let mut world = World::with(ONE);
    assert_eq!(world.signal("nobody", "s", json!(1)), Controlled::NotFound);
    world.start("r", "w", json!({}));
    world.signal("r", "s", json!(1));
    assert_eq!(world.signal("r", "s", json!(1)), Controlled::Ended(RunStatus::Completed));
}

#[test]
fn a_name_that_is_none_is_refused_and_changes_nothing() {
    let mut world = World::with(ONE);
    world.start("r", "w", json!({}));
    let signal = Command::Signal { name: String::new(), payload: stored(&json!(1)) };
    world.try_ask("r", &signal).unwrap_err();
    assert_eq!(world.told("r", "signal.received").len(), 0);
}

#[test]
fn more_signals_than_may_be_kept_are_refused() {
    let mut world = World::with(ONE);
    world.start("r", "w", json!({}));
    for _ in 0..limits::SIGNALS_KEPT_MAX {
        world.signal("r", "other", json!(1));
    }
    let signal = Command::Signal { name: "other".to_owned(), payload: stored(&json!(1)) };
    let refused = world.try_ask("r", &signal).unwrap_err();
    assert!(refused.to_string().contains("(`SIGNALS_KEPT_MAX`)"), "{refused}");
}

#[test]
fn a_signal_is_told() {
    let mut world = World::with(ONE);
    world.start("r", "w", json!({}));
    world.signal("r", "s", json!(5));
    assert_eq!(world.told("r", "signal.received"), [json!({ "signal": "s", "payload": 5 })]);
}

#[test]
fn a_signal_while_paused_is_taken_and_nothing_new_begins() {
    let mut world = World::with(
        "nodes: { a: { wait: { signal: s } }, b: { wait: { signal: s } } }\ntransitions: [{ from: a, to: b }]",
    );
    world.start("r", "w", json!({}));
    world.control("r", &Command::Pause);
    world.signal("r", "s", json!(1));
    world.signal("r", "s", json!(2));
    assert_eq!((world.at("r", "a"), world.at("r", "b")), (vec!["completed"], vec!["pending"]));
    world.control("r", &Command::Resume);
    world.settle();
    output(world.outcome("r"));
}
