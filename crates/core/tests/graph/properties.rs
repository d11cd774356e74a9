//! What holds whatever the order of things, and however often they come.

use proptest::prelude::*;
use serde_json::{Value as JsonValue, json};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::graph::protocol::{Command, Outcome};

use crate::world::{World, json as stored, output};

/// Fan-outs inside each other, retries, failures that are passed over, error paths, children, a loop.
const GRAPH: &str = r#"
kind: workflow
name: w
nodes:
  plan: {}
  row: { run: { function: plain }, input: { n: "${row}" }, output: { state.row: "${result}" } }
  cell: { run: { function: flaky }, input: { n: "${row * 10 + cell}" }, retry: { max_attempts: 2, delay: 1s, jitter: 0 }, output: { state.cell: "${result}" } }
  mend: { output: { state.cell: "mended ${error.message}" } }
  sum: { workflow: child, input: { cells: "${state.cells}" }, output: { state.sum: "${result}" } }
  end: { output: { state.round: "${state.round == null ? 1 : state.round + 1}" } }
start: plan
transitions:
  - { from: plan, to: row, foreach: { in: "[1, 2, 3]", as: row }, group: rows }
  - { from: row, to: cell, foreach: { in: "[0, 1, 2, 3]", as: cell }, group: cells }
  - { from: cell, to: mend, on: error, when: "error.type == 'not_found'" }
  - { from: cell, to: sum, join: &cells { group: cells, on_failure: continue, merge: [{ from: state.cell, into: state.cells }, { from: state.cell, into: state.keyed, strategy: keyed }] } }
  - { from: mend, to: sum, join: *cells }
  - { from: sum, to: end, join: { group: rows, merge: [{ from: state.cells, into: state.all, strategy: collect }, { from: state.sum, into: state.sums, strategy: last }, { from: state.keyed, into: state.merged, strategy: merge }] } }
  - { from: end, to: plan, max_iterations: 1 }
result: { all: "${state.all}", sums: "${state.sums}", merged: "${state.merged}", round: "${state.round}" }
---
kind: workflow
name: child
nodes: { a: { run: { function: plain }, input: { n: "${size(input.cells)}" }, output: { output.n: "${result}" } } }
"#;

/// The world of [`GRAPH`]; its functions give the same for the same input, whenever they are asked.
fn world() -> World {
    World::of(GRAPH).answer_with(|task| {
        let input: JsonValue = task.input.input.decode().unwrap();
        let function: JsonValue = task.input.specification.decode().unwrap();
        let n = input["n"].as_u64().unwrap();
        match (function["function"].as_str().unwrap(), n % 10, task.input.attempt) {
            ("flaky", 1, 1) => Err(Failure::retryable(FailureKind::TaskFailed, "once")),
            ("flaky", 2, _) => Err(Failure::last(FailureKind::NotFound, &format!("no {n}"))),
            ("flaky", 3, _) => Err(Failure::retryable(FailureKind::TaskFailed, "always")),
            _ => Ok(stored(&json!(n))),
        }
    })
}

fn expected() -> JsonValue {
    json!({
        "all": [[10, 11, "mended no 12"], [20, 21, "mended no 22"], [30, 31, "mended no 32"]],
        "sums": { "n": 3 },
        "merged": { "0": 30, "1": 31, "2": "mended no 32" },
        "round": 2,
    })
}

/// Chooses as the numbers say, one after the other, round and round.
fn choosing(world: World, choices: Vec<usize>) -> World {
    let mut choices = choices.into_iter().cycle();
    world.choosing(move |_| choices.next().unwrap_or(0))
}

/// Everything that can be seen of a world in the end.
fn history(mut world: World) -> impl PartialEq + std::fmt::Debug {
    let outcome = output(world.run("w", json!({})));
    let runs: Vec<_> = world.actors.keys().map(|actor| actor.name().to_owned()).collect();
    let told: Vec<_> = runs.iter().map(|run| (world.token_lines(run), world.event_types(run))).collect();
    (outcome, runs, told)
}

#[test]
fn every_input_delivered_twice_changes_nothing() {
    assert_eq!(history(world().repeating()), history(world()));
}

#[test]
fn what_is_kept_in_memory_between_turns_changes_nothing() {
    assert_eq!(history(world().remembering()), history(world()));
    assert_eq!(history(world().remembering().repeating()), history(world()));
}

#[test]
fn every_input_delivered_twice_changes_nothing_in_a_large_run_either() {
    let text = r#"
nodes: { a: {}, b: { sleep: "${branch.index == 12000 ? 1 : 2}" }, c: {} }
transitions:
  - { from: a, to: b, spawn: 15000, group: g }
  - { from: b, to: c, join: { group: g, wait_for: any, merge: { from: branch.index, into: state.all } } }
result: "${state.all}"
"#;
    let mut world = World::with(text).repeating();
    assert_eq!(output(world.run("w", json!({}))), json!([12_000]));
    assert_eq!(world.told("r", "token.cancelled").len(), 14_999);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_order_in_which_tasks_end_makes_no_difference(choices in prop::collection::vec(any::<usize>(), 1..50)) {
        let mut world = choosing(world(), choices);
        prop_assert_eq!(output(world.run("w", json!({}))), expected());
    }

    #[test]
    fn neither_does_it_when_every_input_comes_twice(choices in prop::collection::vec(any::<usize>(), 1..50)) {
        let mut world = choosing(world(), choices).repeating();
        prop_assert_eq!(output(world.run("w", json!({}))), expected());
    }

    #[test]
    fn a_run_that_is_cancelled_at_any_moment_leaves_nothing_behind(
        choices in prop::collection::vec(any::<usize>(), 1..50), steps in 0_usize..120,
    ) {
        let mut world = choosing(world(), choices);
        world.start("r", "w", json!({}));
        for _ in 0..steps {
            if !world.step() {
                world.pass(1_000);
            }
        }
        world.cancel("r", "enough");
        world.finish();
        let outcome = world.outcome("r");
        prop_assert!(matches!(outcome, Outcome::Cancelled { .. } | Outcome::Completed(_)), "{:?}", outcome);
        // What is left is checked when the world is dropped.
    }

    #[test]
    fn a_run_that_is_paused_and_resumed_at_any_moment_ends_the_same(
        choices in prop::collection::vec(any::<usize>(), 1..50), held in prop::collection::vec(0_usize..12, 1..20),
    ) {
        let mut world = choosing(world(), choices);
        world.start("r", "w", json!({}));
        for steps in held {
            world.control("r", &Command::Pause);
            (0..steps).for_each(|_| _ = world.step());
            world.control("r", &Command::Resume);
            (0..steps).for_each(|_| _ = world.step());
        }
        world.finish();
        prop_assert_eq!(output(world.outcome("r")), expected());
    }

    #[test]
    fn joins_that_do_not_wait_for_all_fire_once_with_as_many_as_they_wait_for(
        choices in prop::collection::vec(any::<usize>(), 1..50),
    ) {
        let mut world = choosing(race(), choices);
        let outcome = output(world.run("w", json!({})));
        for row in outcome.as_array().unwrap() {
            prop_assert_eq!(row.as_array().unwrap().len(), 3);
        }
        let fired = world.told("r", "fan_in.completed");
        let rows = fired.iter().filter(|fired| fired["group"] == "rows");
        prop_assert_eq!(rows.map(|fired| fired["arrived"].clone()).collect::<Vec<_>>(), vec![json!(2)]);
    }
}

/// Two of four rows win, each with three of five cells. Every cell is a child, and has another token beside it.
fn race() -> World {
    World::of(
        r#"
kind: workflow
name: w
nodes:
  plan: {}
  row: {}
  cell: { workflow: child, output: { state.cell: "${result.n}" } }
  beside: { run: { function: f } }
  joined: { run: { function: f } }
  end: {}
transitions:
  - { from: plan, to: row, spawn: 4, group: rows }
  - { from: row, to: cell, spawn: 5, group: cells }
  - { from: row, to: beside }
  - { from: cell, to: joined, join: { group: cells, wait_for: 3, on_failure: continue, merge: { from: state.cell, into: state.row } } }
  - { from: joined, to: end, join: { group: rows, wait_for: 2, merge: { from: state.row, into: state.rows, strategy: collect } } }
result: "${state.rows}"
---
kind: workflow
name: child
nodes: { a: { run: { function: f }, output: { output.n: "${result}" } } }
"#,
    )
    .answer_with(|_| Ok(stored(&json!(1))))
}
