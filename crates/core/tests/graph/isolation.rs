//! Branch isolation: who sees what is written in a branch.

use serde_json::json;
use steadfast_core::definition;

use crate::world::{World, output};

#[test]
fn siblings_see_nothing_of_each_others_writes() {
    let mut world = World::with(
        r#"
nodes:
  a: { output: { state.x: "of the parent" } }
  write: { run: { mock: { delay: "${branch.index * 1000}" } }, output: { state.before: "${state.x}", state.x: "${branch.index}" } }
  read: { run: { mock: { delay: 5s } }, output: { state.seen: "${state.before} then ${state.x}" } }
  z: {}
transitions:
  - { from: a, to: write, spawn: 3, group: g }
  - { from: write, to: read }
  - { from: read, to: z, join: { group: g, merge: { from: state.seen, into: state.seen } } }
result: "${state.seen}"
"#,
    );
    let seen = json!(["of the parent then 0", "of the parent then 1", "of the parent then 2"]);
    assert_eq!(output(world.run("w", json!({}))), seen);
}

#[test]
fn without_merge_nothing_leaves_a_branch() {
    let mut world = World::with(
        r#"
nodes: { a: { output: { state.x: 1 } }, b: { output: { state.x: 2, state.y: 3, output.z: 4 } }, c: {} }
transitions: [{ from: a, to: b, spawn: 2, group: g }, { from: b, to: c, join: { group: g } }]
result: { x: "${state.x}", y: "${state.y}", z: "${output.z}" }
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({ "x": 1, "y": null, "z": null }));
}

#[test]
fn what_a_fan_out_without_a_group_writes_stays_in_its_branches() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { output: { state.x: "${branch.index}" } }, c: { output: { output.x: "${state.x}" } } }
transitions: [{ from: a, to: b, spawn: 2 }, { from: b, to: c }]
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({}));
}

#[test]
fn output_is_isolated_as_state_is() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { output: { output.x: "${branch.index}" } }, c: { output: { output.y: "${output.x}" } }, d: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c }
  - { from: c, to: d, join: { group: g, merge: { from: output.y, into: output.all } } }
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({ "all": [0, 1] }));
}

#[test]
fn a_branch_sees_what_the_parent_writes_later_unless_it_wrote_itself() {
    let mut world = World::with(
        r#"
nodes:
  a: {}
  later: { run: { mock: { delay: 1s } }, output: { state.p: "late", state.own: "late" } }
  b: { output: { state.own: "own" } }
  c: { run: { mock: { delay: 2s } }, output: { state.seen: "${state.p} ${state.own}" } }
  d: {}
transitions:
  - { from: a, to: later }
  - { from: a, to: b, group: g }
  - { from: b, to: c }
  - { from: c, to: d, join: { group: g, merge: { from: state.seen, into: state.seen } } }
result: "${state.seen}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!(["late own"]));
}

#[test]
fn a_write_below_a_field_keeps_the_rest_of_what_the_branch_sees() {
    let mut world = World::with(
        r#"
nodes: { a: { output: { state.x: { p: 1, q: 2 } } }, b: { output: { state.x.q: "${branch.index}" } }, c: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c, join: { group: g, merge: { from: state.x, into: state.all } } }
result: { all: "${state.all}", x: "${state.x}" }
"#,
    );
    let expected = json!({ "all": [{ "p": 1, "q": 0 }, { "p": 1, "q": 1 }], "x": { "p": 1, "q": 2 } });
    assert_eq!(output(world.run("w", json!({}))), expected);
}

const NESTED: &str = r#"
nodes:
  a: { output: { state.x: "root" } }
  b: { output: { state.x: "outer ${branch.index}" } }
  c: { output: { state.y: "${state.x}, inner ${branch.index}", state.x: "lost" } }
  d: { output: { state.seen: { x: "${state.x}", y: "${state.y}" } } }
  e: {}
transitions:
  - { from: a, to: b, spawn: 2, group: outer }
  - { from: b, to: c, spawn: 2, group: inner }
  - { from: c, to: d, join: { group: inner, merge: { from: state.y, into: state.y } } }
  - { from: d, to: e, join: { group: outer, merge: { from: state.seen, into: state.seen } } }
result: { seen: "${state.seen}", x: "${state.x}", y: "${state.y}" }
"#;

#[test]
fn a_nested_branch_reads_through_and_its_join_merges_into_the_branch_around_it() {
    let seen = |n: u32| json!({ "x": format!("outer {n}"), "y": [format!("outer {n}, inner 0"), format!("outer {n}, inner 1")] });
    let mut world = World::with(NESTED);
    let expected = json!({ "seen": [seen(0), seen(1)], "x": "root", "y": null });
    assert_eq!(output(world.run("w", json!({}))), expected);
}

#[test]
fn a_branch_keeps_its_own_writes_while_it_loops() {
    let mut world = World::with(
        r#"
nodes:
  a: { output: { state.n: 100 } }
  b: { run: { mock: { delay: "${(3 - branch.index) * 100}" } }, output: { state.n: "${state.n + branch.index + 1}" } }
  c: {}
transitions:
  - { from: a, to: b, spawn: 3, group: g }
  - { from: b, to: b, max_iterations: 2 }
  - { from: b, to: c, priority: 1, join: { group: g, merge: { from: state.n, into: state.all } } }
result: { all: "${state.all}", n: "${state.n}" }
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({ "all": [103, 106, 109], "n": 100 }));
}

#[test]
fn the_branches_of_the_next_round_see_nothing_of_those_before() {
    let mut world = World::with(
        r#"
start: a
nodes:
  a: {}
  b: { output: { state.seen: "${state.x}", state.x: "written" } }
  c: { output: { state.rounds: "${state.rounds == null ? [state.all] : state.rounds + [state.all]}" } }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c, join: { group: g, merge: { from: state.seen, into: state.all } } }
  - { from: c, to: a, max_iterations: 1 }
result: "${state.rounds}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!([[null, null], [null, null]]));
}

#[test]
fn tokens_of_one_branch_share_what_it_writes() {
    let mut world = World::with(
        r#"
nodes:
  a: {}
  b: {}
  x: { output: { state.x: "${branch.index}" } }
  y: { run: { mock: { delay: 1s } }, output: { state.y: "saw ${state.x}" } }
  c: {}
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: x }
  - { from: b, to: y }
  - { from: y, to: c, join: { group: g, merge: { from: state.y, into: state.all } } }
result: "${state.all}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!(["saw 0", "saw 1"]));
}

#[test]
fn a_failed_branch_leaves_nothing_behind() {
    let mut world = World::with(
        r#"
nodes:
  a: {}
  b: { output: { state.x: "${branch.index}" } }
  bad: { run: { mock: { fail: {} } } }
  c: {}
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: bad, when: "branch.index == 0" }
  - { from: b, to: c, when: "branch.index == 1", join: { group: g, on_failure: continue, merge: { from: state.x, into: state.all } } }
result: { all: "${state.all}", x: "${state.x}" }
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!({ "all": [1], "x": null }));
}

#[test]
fn a_branch_that_writes_what_is_never_merged_is_warned_about() {
    let text = r#"
kind: workflow
name: w
nodes: { a: {}, b: { output: { state.lost: 1, state.kept: 2 } }, c: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c, join: { group: g, merge: { from: state.kept, into: state.all } } }
"#;
    let problems = definition::read("test.yaml", text).problems;
    let warnings: Vec<String> =
        problems.iter().map(|problem| format!("{:?} {}", problem.severity, problem.message)).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("Warning") && warnings[0].contains("state.lost"), "{warnings:?}");
}
