//! Fan-out: how many branches there are, and what each is given.

use serde_json::{Value as JsonValue, json};
use steadfast_core::limits;

use crate::world::{World, failure, output};

/// A world in which `a` opens the group `g` as `opening` says, and every branch brings `brings`.
fn fan(opening: &str, brings: &str) -> World {
    World::with(&format!(
        r#"
nodes:
  a: {{}}
  b: {{ output: {{ state.x: "{brings}" }} }}
  c: {{}}
transitions:
  - {{ from: a, to: b, {opening}, group: g }}
  - {{ from: b, to: c, join: {{ group: g, merge: {{ from: state.x, into: state.all, strategy: collect }} }} }}
result: "${{state.all}}"
"#
    ))
}

#[track_caller]
fn check(opening: &str, brings: &str, input: JsonValue, expected: JsonValue) {
    assert_eq!(output(fan(opening, brings).run("w", input)), expected);
}

#[track_caller]
fn check_failure(opening: &str, input: JsonValue, expected: &str) {
    assert_eq!(failure(fan(opening, "${1}").run("w", input)).message, expected);
}

#[test]
fn each_branch_of_a_foreach_is_given_its_item() {
    check(
        "foreach: { in: input.items }",
        "${item}",
        json!({ "items": ["a", { "b": 1 }, null] }),
        json!(["a", { "b": 1 }, null]),
    );
}

#[test]
fn the_item_can_have_a_name_of_its_own() {
    let opening = "foreach: { in: input.items, as: topic }";
    check(opening, "${topic}=${item}", json!({ "items": [1, 2] }), json!(["1=1", "2=2"]));
}

#[test]
fn each_branch_knows_its_index_and_how_many_there_are() {
    check("spawn: 3", "${branch.index}/${branch.total}", json!({}), json!(["0/3", "1/3", "2/3"]));
}

#[test]
fn spawn_may_be_an_expression() {
    check("spawn: input.n * 2", "${branch.index}", json!({ "n": 2 }), json!([0, 1, 2, 3]));
}

#[test]
fn a_spawn_of_none_is_like_a_foreach_over_nothing() {
    check("spawn: input.n", "${1}", json!({ "n": 0 }), json!([]));
}

#[test]
fn a_group_alone_is_a_fan_out_of_one() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: {} }
transitions: [{ from: a, to: b, group: g }, { from: b, to: c, join: { group: g } }]
"#,
    );
    output(world.run("w", json!({})));
    assert_eq!(world.nodes("r"), ["a", "b", "c", "c"]);
}

#[test]
fn a_foreach_over_something_that_is_not_an_array_fails_the_run() {
    let message = "`foreach` of the transition from `a` to `b`: `input.x` gave";
    for (found, named) in
        [(json!(5), "a whole number"), (json!({}), "an object"), (json!("abc"), "a string"), (json!(null), "null")]
    {
        check_failure(
            "foreach: { in: input.x }",
            json!({ "x": found }),
            &format!("{message} {named}, expected a list"),
        );
    }
}

#[test]
fn a_spawn_that_gives_no_number_fails_the_run() {
    let message = "`spawn` of the transition from `a` to `b`: `input.x` gave";
    for found in [json!(-1), json!(1.5), json!(null), json!([])] {
        let expected = format!("{message} {found}, expected a whole number that is not negative");
        check_failure("spawn: input.x", json!({ "x": found }), &expected);
    }
}

#[test]
fn a_fan_out_larger_than_may_be_fails_the_run() {
    let expected = "the fan-out from `a` to `b` has 400001 branches, the limit is 400000 (`BRANCHES_MAX`)";
    check_failure("spawn: input.n", json!({ "n": limits::BRANCHES_MAX + 1 }), expected);
}

#[test]
fn transitions_of_one_tier_that_name_a_group_open_one_instance_with_running_indices() {
    let mut world = World::with(
        r#"
nodes:
  a: {}
  b: { output: { state.x: "b${branch.index}/${branch.total}" } }
  c: { output: { state.x: "c${branch.index} ${item}" } }
  d: { output: { state.x: "d${branch.index}" } }
  e: {}
transitions:
  - { from: a, to: d, group: g }
  - { from: a, to: c, foreach: { in: input.items }, group: g }
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: e, join: &join { group: g, merge: { from: state.x, into: state.all, strategy: keyed } } }
  - { from: c, to: e, join: *join }
  - { from: d, to: e, join: *join }
result: "${state.all}"
"#,
    );
    let all = output(world.run("w", json!({ "items": ["x", "y"] })));
    assert_eq!(all, json!({ "0": "d0", "1": "c1 x", "2": "c2 y", "3": "b3/5", "4": "b4/5" }));
    assert_eq!(world.told("r", "fan_out.started"), [json!({ "group": "g", "instance": 1, "branches": 5 })]);
}

#[test]
fn different_groups_of_one_tier_are_different_instances() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: {}, d: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: a, to: c, spawn: 3, group: h }
  - { from: b, to: d, join: { group: g } }
  - { from: c, to: d, join: { group: h } }
"#,
    );
    output(world.run("w", json!({})));
    let sizes: Vec<JsonValue> =
        world.told("r", "fan_in.completed").iter().map(|fired| fired["branches"].clone()).collect();
    assert_eq!(sizes, [json!(3), json!(2)]);
    assert_eq!(world.at("r", "d").len(), 3 + 2 + 2);
}

#[test]
fn what_is_downstream_in_a_branch_inherits_its_lineage() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: {}, d: { output: { state.x: "${topic}${branch.index}" } }, e: {} }
transitions:
  - { from: a, to: b, foreach: { in: "['x', 'y']", as: topic }, group: g }
  - { from: b, to: c }
  - { from: c, to: d }
  - { from: d, to: e, join: { group: g, merge: { from: state.x, into: state.all } } }
result: "${state.all}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!(["x0", "y1"]));
    let paths = world.tokens("r").into_iter().filter(|token| &*token.node == "d").map(|token| token.path.to_string());
    assert_eq!(paths.collect::<Vec<_>>(), ["root/g:0", "root/g:1"]);
}

#[test]
fn inside_of_both_the_innermost_item_is_the_item_and_names_reach_further_out() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: { output: { state.x: "${row}${item}${branch.index}" } }, d: {}, e: {} }
transitions:
  - { from: a, to: b, foreach: { in: "['x', 'y']", as: row }, group: rows }
  - { from: b, to: c, foreach: { in: "[7, 8]", as: column }, group: columns }
  - { from: c, to: d, join: { group: columns, merge: { from: state.x, into: state.x } } }
  - { from: d, to: e, join: { group: rows, merge: { from: state.x, into: state.x } } }
result: "${state.x}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!(["x70", "x81", "y70", "y81"]));
}

#[test]
fn a_fan_out_without_a_group_is_never_joined_and_the_run_waits_for_all_of_it() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { run: { mock: { delay: "${branch.index * 1000}" } } }, c: {} }
transitions: [{ from: a, to: b, spawn: 3 }, { from: b, to: c }]
"#,
    );
    output(world.run("w", json!({})));
    assert_eq!(world.at("r", "c").len(), 3);
    assert_eq!(world.told_at("r", "workflow.completed"), 2_000);
}

#[test]
fn more_tokens_active_in_one_branch_than_may_be_fail_the_run() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { wait: { signal: never } } }
transitions: [{ from: a, to: a }, { from: a, to: b }]
start: a
"#,
    );
    let failure = failure(world.run("w", json!({})));
    assert_eq!(failure.kind.name(), "loop_limit");
    assert!(failure.message.contains("(`BRANCH_ACTIVE_MAX`)"), "{failure}");
}

#[test]
fn a_loop_that_opens_groups_inside_each_other_for_ever_fails_the_run() {
    let mut world = World::with("start: a\nnodes: { a: {} }\ntransitions: [{ from: a, to: a, group: g }]");
    let failure = failure(world.run("w", json!({})));
    assert_eq!(failure.kind.name(), "loop_limit");
    assert!(failure.message.contains("(`LINEAGE_MAX`)"), "{failure}");
}
