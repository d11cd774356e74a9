//! Tokens: what is kept of each, and that terminal is final.

use serde_json::{Value, json};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::graph::token::Token;

use crate::world::{World, json as stored, output, run_id};

const BRANCHES: &str = r#"
nodes: { a: {}, b: { run: { function: f } }, c: { run: { function: f } }, d: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c, max_iterations: 5 }
  - { from: c, to: d, join: { group: g } }
"#;

/// The rows of tokens, as they are stored.
fn rows(world: &World) -> Vec<Token> {
    let stored = &world.actors[&run_id("r")].values;
    stored.iter().filter(|(key, _)| key.starts_with("token/")).map(|(_, row)| row.decode().unwrap()).collect()
}

#[test]
fn a_token_has_an_id_a_node_a_parent_a_path_a_lineage_counts_and_times() {
    let mut world = World::with(BRANCHES);
    world.start("r", "w", json!({}));
    world.pass(1_000);
    world.answer("r", "b", json!(1));
    let last = rows(&world).pop().unwrap();
    assert_eq!((last.id.0, &*last.node, last.parent.unwrap().0, &*last.path), (4, "c", 2, "root/g:0"));
    let place = last.lineage[0];
    assert_eq!((last.lineage.len(), place.group.0, place.index, place.total), (1, 1, 0, 2));
    assert_eq!((last.iterations.get(&1), last.attempt, last.status.name()), (Some(&1), 1, "dispatched"));
    assert_eq!((last.created_at.0, last.updated_at.0, last.arrived_at), (1_001_000, 1_001_000, None));
}

#[test]
fn a_token_that_has_arrived_knows_when() {
    let mut world = World::with(BRANCHES);
    world.start("r", "w", json!({}));
    world.answer("r", "b", json!(1));
    world.pass(1_000);
    world.answer("r", "c", json!(1));
    assert_eq!(world.at("r", "d"), ["waiting_for_siblings"]);
    world.pass(1_000);
    world.answer("r", "b", json!(1));
    world.answer("r", "c", json!(1));
    output(world.outcome("r"));
    let stored = &world.actors[&run_id("r")].values;
    let arrivals = stored.iter().filter(|(key, _)| key.starts_with("arrived/"));
    let arrived: Vec<Value> =
        arrivals.map(|(_, row)| row.decode::<Value>().unwrap()["token"]["arrived_at"].clone()).collect();
    assert_eq!(arrived, [1_001_000, 1_002_000]);
}

#[test]
fn whatever_comes_for_a_token_that_is_over_is_dropped() {
    let mut world = World::with(BRANCHES);
    world.start("r", "w", json!({}));
    let tasks = world.pending("r");
    world.answer("r", "b", json!(1));
    let before = world.actors[&run_id("r")].values.clone();
    world.settle_task(&tasks[0], Ok(stored(&json!("again"))));
    world.settle_task(&tasks[0], Err(Failure::last(FailureKind::TaskFailed, "again")));
    assert_eq!(world.actors[&run_id("r")].values, before);
}

#[test]
fn whatever_comes_for_a_run_that_is_over_is_dropped() {
    let mut world = World::with(BRANCHES);
    world.start("r", "w", json!({}));
    let tasks = world.pending("r");
    world.cancel("r", "enough");
    let before = world.actors[&run_id("r")].values.clone();
    for task in &tasks {
        world.settle_task(task, Ok(stored(&json!("late"))));
        world.settle_task(task, Err(Failure::last(FailureKind::TaskFailed, "late")));
    }
    assert_eq!(world.actors[&run_id("r")].values, before);
}

#[test]
fn a_result_for_a_token_that_never_was_is_dropped() {
    let mut world = World::with(BRANCHES);
    world.start("r", "w", json!({}));
    let mut task = world.pending("r").remove(0);
    let before = world.token_lines("r");
    for name in ["77", "1", "nonsense"] {
        name.clone_into(&mut task.task);
        world.settle_task(&task, Ok(stored(&json!(1))));
    }
    assert_eq!(world.token_lines("r"), before);
}

#[test]
fn each_kind_of_work_has_its_status() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes:
  a: {}
  task: { run: { function: f } }
  wait: { wait: { signal: s } }
  sleep: { sleep: 1h }
  child: { workflow: child }
  retry: { run: { mock: { fail: {} } }, retry: { delay: 1h, max_delay: 1h } }
transitions: [{ from: a, to: task }, { from: a, to: wait }, { from: a, to: sleep }, { from: a, to: child }, { from: a, to: retry }]
---
kind: workflow
name: child
nodes: { a: { wait: { signal: s } } }
"#,
    );
    world.start("r", "w", json!({}));
    world.settle();
    let expected = ["completed", "dispatched", "waiting_for_signal", "sleeping", "waiting_for_subworkflow", "retrying"];
    assert_eq!(world.tokens("r").iter().map(|token| token.status.name()).collect::<Vec<_>>(), expected);
}

#[test]
fn first_tokens_share_a_row_while_nothing_happens_to_them_but_that_their_branches_arrive() {
    let workflow = r#"
nodes: { a: {}, b: { run: { function: f }, retry: { delay: 1h, max_delay: 1h } }, c: {} }
transitions: [{ from: a, to: b, spawn: 4, group: g }, { from: b, to: c, join: { group: g } }]
"#;
    let mut world = World::with(workflow);
    world.start("r", "w", json!({}));
    world.pass(1_000);
    world.answer("r", "b", json!(1));
    world.fail("r", "b", Failure::retryable(FailureKind::TaskFailed, "no"));
    assert_eq!(world.keys("r", "alike/").len(), 1);
    let own_rows: Vec<u64> = rows(&world).iter().map(|token| token.id.0).collect();
    assert_eq!(own_rows, [1, 3], "the one outside, and the one to be tried again");
    assert_eq!(world.at("r", "b"), ["completed", "retrying", "dispatched", "dispatched"]);
    let first_tokens = world.tokens("r").into_iter().filter(|token| &*token.node == "b");
    let shown: Vec<(u64, String, String)> =
        first_tokens.map(|token| (token.id.0, token.path.to_string(), token.updated_at)).collect();
    let (begun, later) = ("1970-01-01T00:16:40.000Z".to_owned(), "1970-01-01T00:16:41.000Z".to_owned());
    assert_eq!(shown[0], (2, "root/g:0".to_owned(), later));
    assert_eq!(shown[3], (5, "root/g:3".to_owned(), begun));
    world.cancel("r", "enough");
    assert_eq!(world.at("r", "b"), ["completed", "cancelled", "cancelled", "cancelled"]);
}
