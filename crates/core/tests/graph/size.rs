//! Size: large runs go on over several turns, and each turn does no more than it may.

use serde_json::{Value as JsonValue, json};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::graph::protocol::{Command, Outcome};
use steadfast_core::limits;

use crate::world::{World, failure, json as stored, output};

const LARGE: u64 = 25_000;

/// A fan-out whose branches do `work` at `b`, and a join as `join` says.
fn fan(work: &str, join: &str) -> World {
    World::with(&format!(
        r#"
nodes: {{ a: {{}}, b: {{ {work} }}, c: {{ wait: {{ signal: held }} }}, d: {{}} }}
transitions:
  - {{ from: a, to: b, spawn: input.n, group: g }}
  - {{ from: b, to: d, join: {{ group: g, {join} }} }}
  - {{ from: d, to: c, when: "input.hold" }}
result: "${{state.all}}"
"#
    ))
}

#[test]
fn a_large_fan_out_goes_over_several_turns_and_joins_once() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { output: { state.x: "${item * 2}" } }, c: {} }
transitions:
  - { from: a, to: b, foreach: { in: input.items }, group: g }
  - { from: b, to: c, join: { group: g, merge: { from: state.x, into: state.all } } }
result: "${state.all}"
"#,
    );
    let items: Vec<u64> = (0..LARGE).collect();
    let all = output(world.run("w", json!({ "items": items })));
    assert_eq!(all, JsonValue::from((0..LARGE).map(|item| item * 2).collect::<Vec<_>>()));
    assert_eq!(world.told("r", "fan_in.completed").len(), 1);
    assert_eq!(world.view("r").token_count, 1 + 2 * LARGE + 1);
    assert!((2..20).contains(&world.turns), "{} turns", world.turns);
}

#[test]
fn a_fan_out_of_ten_thousand_that_hands_out_no_tasks_is_one_batch() {
    let mut world = World::with(
        "nodes: { a: { run: { function: f } }, b: { wait: { signal: go } } }\ntransitions: [{ from: a, to: b, spawn: 10000 }]",
    );
    world.start("r", "w", json!({}));
    let opener = world.pending("r").remove(0);
    world.settle_task(&opener, Ok(stored(&json!(1))));
    assert_eq!(world.at("r", "b").len(), 10_000);
    world.cancel("r", "seen enough");
    world.settle();
}

#[test]
fn the_first_tasks_of_a_large_fan_out_are_handed_out_before_the_others_are_begun() {
    let mut world = World::with(
        "nodes: { a: { run: { function: f } }, b: { run: { function: f } } }\ntransitions: [{ from: a, to: b, spawn: 1000 }]",
    );
    world.start("r", "w", json!({}));
    let opener = world.pending("r").remove(0);
    world.settle_task(&opener, Ok(stored(&json!(1))));
    assert_eq!(world.pending("r").len(), limits::TURN_TASKS_MAX);
    let first = world.pending("r").remove(0);
    world.settle_task(&first, Ok(stored(&json!(1))));
    world.settle();
    assert_eq!(world.pending("r").len(), 999);
    world.cancel("r", "seen enough");
    world.settle();
}

#[test]
fn a_run_goes_ahead_while_what_a_join_left_behind_is_swept() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { run: { function: f } }, c: { run: { function: f } } }
transitions:
  - { from: a, to: b, spawn: 15000, group: g }
  - { from: b, to: c, join: { group: g, wait_for: any } }
"#,
    );
    world.start("r", "w", json!({}));
    world.settle();
    let first = world.pending("r").remove(0);
    world.settle_task(&first, Ok(stored(&json!(1))));
    assert_eq!(world.at("r", "c"), ["completed", "dispatched"]);
    let waiting = |world: &World| world.at("r", "b").iter().filter(|status| **status == "dispatched").count();
    assert!(waiting(&world) > 1_000, "{}", waiting(&world));
    world.settle();
    assert_eq!(waiting(&world), 0);
    world.answer("r", "c", json!(1));
}

#[test]
fn steps_that_were_put_off_are_not_written_again_and_again() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { run: { function: f } }, c: { run: { function: f } } }
transitions: [{ from: a, to: b, spawn: 2000 }, { from: b, to: c }]
"#,
    );
    world.start("r", "w", json!({}));
    world.settle();
    world.control("r", &Command::Pause);
    for task in world.pending("r") {
        world.settle_task(&task, Ok(stored(&json!(1))));
    }
    world.rows_written_in_all = 0;
    world.control("r", &Command::Resume);
    world.settle();
    assert_eq!(world.pending("r").len(), 2_000);
    // A token, its step and, once a turn, how far the run is.
    assert!(world.rows_written_in_all < 3 * 2_000, "{} rows", world.rows_written_in_all);
    world.cancel("r", "seen enough");
    world.settle();
}

#[test]
fn a_turn_writes_what_it_changed_and_never_the_whole_run() {
    let rows = |branches: u64| {
        let mut world = fan("run: { function: f }", "wait_for: all");
        world.start("r", "w", json!({ "n": branches }));
        world.settle();
        world.answer("r", "b", json!(1));
        let rows = world.rows_written;
        world.cancel("r", "seen enough");
        world.settle();
        rows
    };
    let (few, many) = (rows(10), rows(5_000));
    assert_eq!(few, many);
    assert!(many < 10, "{many} rows");
}

#[test]
fn a_loop_that_passes_straight_through_takes_a_bounded_number_of_turns() {
    let mut world = World::with("start: a\nnodes: { a: {} }\ntransitions: [{ from: a, to: a, max_iterations: 30000 }]");
    output(world.run("w", json!({})));
    assert_eq!(world.view("r").token_count, 30_001);
    assert!((2..10).contains(&world.turns), "{} turns", world.turns);
}

#[test]
fn an_any_join_sweeps_all_of_many_branches() {
    let mut world = fan(
        "sleep: \"${branch.index == 24999 ? 1 : 3600000}\"",
        "wait_for: any, merge: { from: branch.index, into: state.all }",
    );
    assert_eq!(output(world.run("w", json!({ "n": LARGE }))), json!([24_999]));
    assert_eq!(world.told("r", "token.cancelled").len() as u64, LARGE - 1);
    assert_eq!(world.told_at("r", "workflow.completed"), 1);
}

#[test]
fn a_join_that_fires_while_branches_are_still_to_come_makes_no_more_of_them() {
    let mut world = fan("output: { state.x: 1 }", "wait_for: any, merge: { from: branch.index, into: state.all }");
    assert_eq!(output(world.run("w", json!({ "n": LARGE }))), json!([0]));
    assert_eq!(world.view("r").token_count, 4);
}

#[test]
fn what_comes_late_for_branches_not_swept_yet_is_dropped() {
    let mut world = fan("run: { function: f }", "wait_for: any, merge: { from: branch.index, into: state.all }");
    world.start("r", "w", json!({ "n": LARGE, "hold": true }));
    world.settle();
    let tasks = world.pending("r");
    world.settle_task(&tasks[0], Ok(stored(&json!(1))));
    assert!(!world.messages.is_empty(), "all was swept in one turn");
    world.settle_task(&tasks[24_000], Ok(stored(&json!(1))));
    world.settle_task(&tasks[24_001], Err(Failure::last(FailureKind::TaskFailed, "late")));
    world.settle();
    assert_eq!(world.at("r", "b").iter().filter(|status| **status == "cancelled").count() as u64, LARGE - 1);
    world.signal("r", "held", json!(1));
    assert_eq!(output(world.outcome("r")), json!([0]));
}

#[test]
fn a_run_may_be_paused_in_the_middle_of_a_large_fan_out_and_resumed() {
    let mut world = fan("output: { state.x: 1 }", "wait_for: all, merge: { from: branch.index, into: state.all }");
    world.start("r", "w", json!({ "n": LARGE }));
    world.control("r", &Command::Pause);
    world.settle();
    let made = world.view("r").token_count;
    assert!(made < 2 * LARGE, "{made} tokens");
    world.finish();
    assert_eq!(world.view("r").token_count, made);
    world.control("r", &Command::Resume);
    world.settle();
    let all = output(world.outcome("r"));
    assert_eq!(all, JsonValue::from((0..LARGE).collect::<Vec<_>>()));
}

#[test]
fn pausing_and_resuming_between_two_turns_of_a_fan_out_changes_nothing() {
    let mut world = fan("output: { state.x: 1 }", "wait_for: all");
    world.start("r", "w", json!({ "n": LARGE }));
    loop {
        world.control("r", &Command::Pause);
        world.control("r", &Command::Resume);
        if !world.step() {
            break;
        }
    }
    assert_eq!(world.outcome("r").status().name(), "completed");
    assert_eq!(world.view("r").token_count, 1 + 2 * LARGE + 1);
}

#[test]
fn a_run_may_be_cancelled_in_the_middle_of_a_large_fan_out() {
    for turns in 0..2 {
        let mut world = fan("run: { function: f }", "wait_for: all");
        world.start("r", "w", json!({ "n": LARGE }));
        (0..turns).for_each(|_| assert!(world.step()));
        world.cancel("r", "enough");
        world.settle();
        assert_eq!(world.outcome("r"), Outcome::Cancelled { reason: Some("enough".to_owned()) });
        assert!(world.view("r").token_count < LARGE);
    }
}

#[test]
fn a_run_may_be_cancelled_in_the_middle_of_a_sweep() {
    for turns in 0..3 {
        let mut world = fan("run: { function: f }", "wait_for: any");
        world.start("r", "w", json!({ "n": LARGE, "hold": true }));
        world.settle();
        let winner = world.pending("r").remove(7);
        world.settle_task(&winner, Ok(stored(&json!(1))));
        (0..turns).for_each(|_| _ = world.step());
        world.cancel("r", "enough");
        world.settle();
        assert_eq!(world.view("r").status.name(), "cancelled");
        assert_eq!(world.at("r", "b").iter().filter(|status| **status == "cancelled").count() as u64, LARGE - 1);
    }
}

#[test]
fn the_first_reason_stays_when_a_run_is_cancelled_again_while_it_is_swept() {
    let mut world = fan("run: { function: f }", "wait_for: all");
    world.start("r", "w", json!({ "n": LARGE }));
    world.settle();
    world.cancel("r", "first");
    assert!(!world.view("r").status.is_over(), "all was swept in one turn");
    world.cancel("r", "second");
    world.settle();
    assert_eq!(world.outcome("r"), Outcome::Cancelled { reason: Some("first".to_owned()) });
}

#[test]
fn a_failure_in_the_middle_of_a_large_fan_out_ends_it() {
    let mut world = fan("sleep: \"${branch.index == 15000 ? branch.index / 0 : 1000}\"", "wait_for: all");
    let failure = failure(world.run("w", json!({ "n": LARGE })));
    assert_eq!(failure.kind, FailureKind::Expression);
    assert!(world.view("r").token_count < LARGE);
}

#[test]
fn a_join_that_times_out_in_the_middle_of_a_fan_out_that_is_paused_proceeds() {
    let mut world = fan("output: { state.x: 1 }", "wait_for: all, timeout: 1s, on_timeout: proceed");
    world.start("r", "w", json!({ "n": LARGE }));
    world.control("r", &Command::Pause);
    world.pass(1_000);
    assert_eq!(world.told("r", "fan_in.completed").len(), 1);
    world.control("r", &Command::Resume);
    world.settle();
    assert_eq!(world.outcome("r").status().name(), "completed");
}

#[test]
fn large_fan_outs_inside_each_other_join_in_order() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: { output: { state.x: "${row * 1000 + branch.index}" } }, d: {}, e: {} }
transitions:
  - { from: a, to: b, foreach: { in: input.rows, as: row }, group: rows }
  - { from: b, to: c, spawn: 200, group: columns }
  - { from: c, to: d, join: { group: columns, merge: { from: state.x, into: state.x } } }
  - { from: d, to: e, join: { group: rows, merge: { from: state.x, into: state.x } } }
result: "${state.x}"
"#,
    );
    let rows: Vec<u64> = (0..100).collect();
    let all = output(world.run("w", json!({ "rows": rows })));
    let expected: Vec<u64> = (0..100).flat_map(|row| (0..200).map(move |column| row * 1_000 + column)).collect();
    assert_eq!(all, JsonValue::from(expected));
    assert!(world.turns >= 100 * 200 / limits::TURN_TOKENS_MAX, "{} turns", world.turns);
}

#[test]
fn many_retries_at_once_are_all_tried_again() {
    let mut world = fan(
        "run: { mock: { fail: { times: 1 } } }, retry: { delay: 1s, jitter: 0 }",
        "wait_for: all, merge: { from: branch.index, into: state.all }",
    );
    let all = output(world.run("w", json!({ "n": 2_500 })));
    assert_eq!(all.as_array().unwrap().len(), 2_500);
    assert_eq!(world.told("r", "task.dispatched").len(), 5_000);
}

#[test]
fn a_turn_that_has_written_much_leaves_the_rest_to_the_next() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { output: { state.x: "${input.text}" } }, c: { run: { function: f } } }
transitions: [{ from: a, to: b, spawn: 200 }, { from: b, to: c }]
"#,
    );
    world.start("r", "w", json!({ "text": "x".repeat(400_000) }));
    let first = world.pending("r").len();
    world.settle();
    assert!(first < 200 && world.pending("r").len() == 200, "{first} in the first turn");
    world.cancel("r", "seen enough");
    world.settle();
}
