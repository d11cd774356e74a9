//! Merges: what a join carries out of its branches.
//!
//! The later a branch's index, the sooner it arrives: what comes out is in the order of the branches all the same.

use serde_json::{Value as JsonValue, json};

use crate::world::{World, failure, output};

fn world(merge: &str) -> World {
    World::with(&format!(
        r#"
nodes:
  plan: {{ output: {{ state.all: "untouched" }} }}
  work:
    run: {{ mock: {{ value: "${{item}}", delay: "${{(branch.total - branch.index) * 1000}}" }} }}
    output: {{ state.x: "${{result}}", state.key: "k${{9 - branch.index}}" }}
  end: {{}}
transitions:
  - {{ from: plan, to: work, foreach: {{ in: input.items }}, group: g }}
  - {{ from: work, to: end, when: "result != 'nowhere'", join: {{ group: g, merge: {merge} }} }}
result: "${{state.all}}"
"#
    ))
}

#[track_caller]
fn check(strategy: &str, items: JsonValue, expected: JsonValue) {
    let mut world = world(&format!("{{ from: state.x, into: state.all, {strategy} }}"));
    assert_eq!(output(world.run("w", json!({ "items": items }))), expected);
}

#[test]
fn append_makes_an_array() {
    check("strategy: append", json!([1, "b", null, { "d": 4 }]), json!([1, "b", null, { "d": 4 }]));
}

#[test]
fn append_flattens_one_level_where_every_value_is_an_array() {
    check("strategy: append", json!([[1, [2]], [], [3]]), json!([1, [2], 3]));
    check("strategy: append", json!([[1, 2], 3]), json!([[1, 2], 3]));
}

#[test]
fn append_is_what_a_merge_does_when_nothing_is_said() {
    let mut world = world("{ from: state.x, into: state.all }");
    assert_eq!(output(world.run("w", json!({ "items": [3, 2, 1] }))), json!([3, 2, 1]));
}

#[test]
fn collect_makes_an_array_and_never_flattens() {
    check("strategy: collect", json!([[1], [2, 3], []]), json!([[1], [2, 3], []]));
}

#[test]
fn merge_makes_one_object_shallowly_and_later_branches_win() {
    let items = json!([{ "a": 1, "b": { "x": 1 } }, { "b": { "y": 2 } }, { "a": 3 }]);
    check("strategy: merge", items, json!({ "a": 3, "b": { "y": 2 } }));
}

#[test]
fn merge_passes_over_a_branch_that_wrote_nothing() {
    check("strategy: merge", json!([{ "a": 1 }, null]), json!({ "a": 1 }));
}

#[test]
fn merge_of_something_that_is_not_an_object_fails_the_run() {
    let mut world = world("{ from: state.x, into: state.all, strategy: merge }");
    let failure = failure(world.run("w", json!({ "items": [{}, 5] })));
    assert_eq!(
        failure.message,
        "merging into `state.all`: branch 1 gave a whole number for `state.x`, the strategy `merge` needs objects"
    );
}

#[test]
fn keyed_makes_an_object_by_branch_index() {
    check("strategy: keyed", json!(["a", "nowhere", "c"]), json!({ "0": "a", "2": "c" }));
}

#[test]
fn keyed_may_take_its_keys_from_the_branches_view() {
    check("strategy: keyed, key: state.key", json!(["a", "b"]), json!({ "k9": "a", "k8": "b" }));
    check(
        "strategy: keyed, key: 'item.id'",
        json!([{ "id": 7 }, { "id": "x" }]),
        json!({ "7": { "id": 7 }, "x": { "id": "x" } }),
    );
}

#[test]
fn of_equal_keys_the_later_branch_wins() {
    check("strategy: keyed, key: \"'same'\"", json!([1, 2, 3]), json!({ "same": 3 }));
}

#[test]
fn a_key_that_is_no_text_fails_the_run() {
    let mut world = world("{ from: state.x, into: state.all, strategy: keyed, key: item.id }");
    let failure = failure(world.run("w", json!({ "items": [{ "id": null }] })));
    assert_eq!(failure.message, "`key` of the merge into `state.all` gave null, expected text or a number");
}

#[test]
fn last_is_the_value_of_the_highest_index_that_arrived() {
    check("strategy: last", json!(["a", "b", "c"]), json!("c"));
    check("strategy: last", json!(["a", "b", "nowhere"]), json!("b"));
}

#[test]
fn with_nothing_arrived_each_strategy_gives_what_is_empty() {
    let empty = [
        ("append", json!([])),
        ("collect", json!([])),
        ("merge", json!({})),
        ("keyed", json!({})),
        ("last", json!(null)),
    ];
    for (strategy, expected) in empty {
        check(&format!("strategy: {strategy}"), json!([]), expected.clone());
        check(&format!("strategy: {strategy}"), json!(["nowhere"]), expected);
    }
}

#[test]
fn several_merges_are_done_together() {
    let mut world = world(
        "[{ from: state.x, into: state.all.values }, { from: state.key, into: state.all.keys, strategy: last }, { from: item, into: output.items }]",
    );
    let failed = failure(world.run("w", json!({ "items": [1, 2] })));
    assert!(failed.message.starts_with("`state.all.values` cannot be written"), "{failed}");
    let mut world = World::with(
        r#"
nodes: { plan: {}, work: { output: { state.x: "${item}", state.y: "${item * 2}" } }, end: {} }
transitions:
  - { from: plan, to: work, foreach: { in: "[1, 2]" }, group: g }
  - { from: work, to: end, join: { group: g, merge: [{ from: state.x, into: state.all.x }, { from: state.y, into: state.all.y, strategy: last }, { from: item, into: output.items }] } }
result: { all: "${state.all}", items: "${output.items}" }
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({ "all": { "x": [1, 2], "y": 4 }, "items": [1, 2] }));
}

#[test]
fn a_branch_brings_what_it_sees_also_where_it_wrote_nothing() {
    let mut world = World::with(
        r#"
nodes: { plan: { output: { state.x: "of the parent" } }, work: {}, own: { output: { state.x: "own" } }, end: {} }
transitions:
  - { from: plan, to: work, group: g }
  - { from: plan, to: own, group: g }
  - { from: work, to: end, join: &join { group: g, merge: { from: state.x, into: state.all } } }
  - { from: own, to: end, join: *join }
result: "${state.all}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!(["of the parent", "own"]));
}

#[test]
fn a_branch_brings_what_it_saw_when_it_arrived() {
    let mut world = World::with(
        r#"
nodes:
  plan: {}
  work: {}
  early: { output: { state.x: "early" } }
  late: { run: { mock: { delay: 1s } }, output: { state.x: "late" } }
  slow: { run: { mock: { delay: 9s } }, output: { state.x: "slow" } }
  end: {}
transitions:
  - { from: plan, to: work, group: g }
  - { from: plan, to: slow, group: g }
  - { from: work, to: early }
  - { from: work, to: late }
  - { from: early, to: end, join: &join { group: g, merge: { from: state.x, into: state.all } } }
  - { from: late, to: end, join: *join }
  - { from: slow, to: end, join: *join }
result: "${state.all}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!(["early", "slow"]));
}

#[test]
fn merging_is_told() {
    let mut world = world("{ from: state.x, into: state.all }");
    output(world.run("w", json!({ "items": [1] })));
    assert_eq!(world.told("r", "branches.merged"), [json!({ "paths": ["state.all"] })]);
}
