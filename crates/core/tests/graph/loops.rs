//! Loops: how often a way is taken, and what ends one that nobody bounded.

use serde_json::json;
use steadfast_core::json::Json;
use steadfast_core::limits;

use crate::world::{World, failure, output, run_id};

#[test]
fn a_transition_at_its_max_iterations_is_left_out_and_the_next_tier_is_looked_at() {
    let mut world = World::with(
        r#"
start: a
nodes: { a: { output: { state.n: "${state.n == null ? 1 : state.n + 1}" } }, b: {} }
transitions:
  - { from: a, to: a, max_iterations: 3 }
  - { from: a, to: b, priority: 1 }
result: "${state.n}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!(4));
    assert_eq!(world.nodes("r"), ["a", "a", "a", "a", "b"]);
}

#[test]
fn a_token_whose_only_way_is_at_its_max_iterations_ends() {
    let mut world = World::with("start: a\nnodes: { a: {} }\ntransitions: [{ from: a, to: a, max_iterations: 2 }]");
    output(world.run("w", json!({})));
    assert_eq!(world.nodes("r"), ["a", "a", "a"]);
}

#[test]
fn a_loop_ends_when_its_condition_no_longer_holds() {
    let mut world = World::with(
        r#"
start: a
nodes: { a: { output: { state.n: "${state.n == null ? 1 : state.n + 1}" } }, b: {} }
transitions:
  - { from: a, to: a, when: "state.n < input.times" }
  - { from: a, to: b, when: "state.n >= input.times" }
result: "${state.n}"
"#,
    );
    assert_eq!(output(world.run("w", json!({ "times": 10 }))), json!(10));
}

#[test]
fn each_way_through_the_graph_counts_its_own_iterations() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: {} }
transitions:
  - { from: a, to: b }
  - { from: a, to: b }
  - { from: b, to: b, max_iterations: 2 }
  - { from: b, to: c, priority: 1 }
"#,
    );
    output(world.run("w", json!({})));
    assert_eq!((world.at("r", "b").len(), world.at("r", "c").len()), (6, 2));
}

#[test]
fn loops_inside_loops_count_each_transition_for_itself() {
    let mut world = World::with(
        r#"
start: a
nodes: { a: {}, b: {}, c: {} }
transitions:
  - { from: a, to: b }
  - { from: b, to: b, max_iterations: 3 }
  - { from: b, to: c, priority: 1 }
  - { from: c, to: a, max_iterations: 1 }
"#,
    );
    output(world.run("w", json!({})));
    // The inner loop has used up its iterations in the first round.
    assert_eq!(world.nodes("r"), ["a", "b", "b", "b", "b", "c", "a", "b", "c"]);
}

#[test]
fn a_loop_around_a_fan_out_goes_round_as_often_as_it_may() {
    let mut world = World::with(
        r#"
start: a
nodes: { a: { output: { state.n: "${state.n == null ? 1 : state.n + 1}" } }, b: {}, c: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c, join: { group: g } }
  - { from: c, to: a, max_iterations: 3 }
result: "${state.n}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!(4));
    let instances: Vec<_> = world.told("r", "fan_in.completed").iter().map(|fired| fired["instance"].clone()).collect();
    assert_eq!(instances, [1, 2, 3, 4]);
}

#[test]
fn a_fan_out_may_have_max_iterations_too() {
    let mut world = World::with(
        r#"
start: a
nodes: { a: {}, b: {}, c: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g, max_iterations: 2 }
  - { from: b, to: c, join: { group: g } }
  - { from: c, to: a }
"#,
    );
    output(world.run("w", json!({})));
    assert_eq!((world.at("r", "a").len(), world.at("r", "b").len()), (3, 4));
}

#[test]
fn a_join_at_its_max_iterations_is_left_out() {
    let mut world = World::with(
        r#"
start: a
nodes: { a: { output: { state.n: "${state.n == null ? 1 : state.n + 1}" } }, b: {}, c: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g, when: "state.n < 4" }
  - { from: b, to: a, max_iterations: 2, join: { group: g } }
  - { from: b, to: c, priority: 1 }
"#,
    );
    output(world.run("w", json!({})));
    // In the third round both branches go to `c` and end there, which settles them: the join fires with nothing.
    let arrived: Vec<_> = world.told("r", "fan_in.completed").iter().map(|fired| fired["arrived"].clone()).collect();
    assert_eq!((arrived, world.at("r", "c").len()), (vec![json!(2), json!(2), json!(0)], 2));
}

#[test]
fn a_loop_over_an_error_path_is_bounded_as_well() {
    let mut world = World::with(
        r#"
start: a
nodes: { a: { run: { mock: { fail: { message: boom } } } }, mend: {} }
transitions: [{ from: a, to: mend, on: error, max_iterations: 2 }, { from: mend, to: a }]
"#,
    );
    assert_eq!(failure(world.run("w", json!({}))).message, "boom");
    assert_eq!(world.nodes("r"), ["a", "mend", "a", "mend", "a"]);
}

#[test]
fn a_loop_without_a_bound_ends_at_the_limit_of_tokens() {
    let mut world = World::with(
        r#"
nodes: { wait: { wait: { signal: go } }, a: {} }
transitions: [{ from: wait, to: a }, { from: a, to: a }]
"#,
    );
    world.start("r", "w", json!({}));
    // As if it had gone round nearly as often as it may.
    let stored = world.actors.get_mut(&run_id("r")).unwrap();
    let mut progress: serde_json::Value = stored.values["progress"].decode().unwrap();
    progress["tokens"] = json!(limits::RUN_TOKENS_MAX - 5);
    stored.values.insert("progress".into(), Json::encode(&progress).unwrap());
    world.signal("r", "go", json!(null));
    let failure = failure(world.outcome("r"));
    assert_eq!(failure.kind.name(), "loop_limit");
    assert_eq!(
        failure.message,
        "the run makes more than 1000000 tokens (`RUN_TOKENS_MAX`); a loop without `max_iterations`?"
    );
}
