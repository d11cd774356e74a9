//! Fan-in: when a join fires, and what becomes of the branches.

use serde_json::{Value as JsonValue, json};
use steadfast_core::failure::{Failure, FailureKind};

use crate::world::{World, failure, json as stored, output, run_id};

/// Three branches that each ask a function, at `b`; a join as `join` says leads to `c`.
fn three(join: &str) -> World {
    fan("spawn: 3", "run: { function: f }", join)
}

fn fan(opening: &str, work: &str, join: &str) -> World {
    World::with(&format!(
        r#"
nodes:
  a: {{}}
  b: {{ {work}, output: {{ state.x: "${{result}}" }} }}
  c: {{}}
transitions:
  - {{ from: a, to: b, {opening}, group: g }}
  - {{ from: b, to: c, when: "result != 'nowhere'", join: {{ group: g, {join}, merge: {{ from: state.x, into: state.all, strategy: keyed }} }} }}
result: "${{state.all}}"
"#
    ))
}

fn boom() -> Failure {
    Failure::retryable(FailureKind::TaskFailed, "boom")
}

/// Starts a run, and ends its tasks in this order: a text is a result, `null` a failure.
fn answered(mut world: World, answers: &[(usize, JsonValue)]) -> World {
    world.start("r", "w", json!({}));
    world.settle();
    let tasks = world.pending("r");
    for (branch, answer) in answers {
        let outcome = if answer.is_null() { Err(boom()) } else { Ok(stored(answer)) };
        world.settle_task(&tasks[*branch], outcome);
        world.settle();
    }
    world
}

/// The run has ended by now, with this output.
#[track_caller]
fn check(world: World, answers: &[(usize, JsonValue)], expected: JsonValue) {
    let mut world = answered(world, answers);
    assert_eq!(output(world.outcome("r")), expected);
    assert_eq!(world.told("r", "fan_in.completed").len(), 1);
}

/// The run goes on, because its join has not fired.
#[track_caller]
fn check_waits(world: World, answers: &[(usize, JsonValue)]) {
    let world = answered(world, answers);
    assert_eq!(world.told("r", "fan_in.completed").len(), 0);
    assert!(!world.view("r").status.is_over());
}

/// The run has failed by now.
#[track_caller]
fn check_failure(world: World, answers: &[(usize, JsonValue)], expected: &str) {
    let mut world = answered(world, answers);
    let failure = failure(world.outcome("r"));
    assert_eq!(format!("{}: {}", failure.kind.name(), failure.message), expected);
}

#[test]
fn a_three_way_fan_out_with_a_join_creates_eight_tokens() {
    let mut world = fan("foreach: { in: input.items }", "run: { mock: { value: '${item}' } }", "wait_for: all");
    assert_eq!(output(world.run("w", json!({ "items": ["x", "y", "z"] }))), json!({ "0": "x", "1": "y", "2": "z" }));
    assert_eq!(world.nodes("r"), ["a", "b", "b", "b", "c", "c", "c", "c"]);
    assert!(world.tokens("r").iter().all(|token| token.status.name() == "completed"));
}

#[test]
fn one_token_goes_on_from_the_join_with_the_lineage_popped() {
    let world = answered(three("wait_for: all"), &[(0, json!(1)), (1, json!(2)), (2, json!(3))]);
    let tokens = world.tokens("r");
    let (arrivals, last) = (&tokens[4..7], &tokens[7]);
    assert_eq!(arrivals.iter().map(|token| &*token.path).collect::<Vec<_>>(), ["root/g:0", "root/g:1", "root/g:2"]);
    assert_eq!((&*last.path, last.branch, last.parent), ("root", None, Some(tokens[0].id)));
}

#[test]
fn all_fires_when_every_branch_has_arrived() {
    check_waits(three("wait_for: all"), &[(0, json!("x")), (2, json!("z"))]);
    check(
        three("wait_for: all"),
        &[(2, json!("z")), (0, json!("x")), (1, json!("y"))],
        json!({ "0": "x", "1": "y", "2": "z" }),
    );
}

#[test]
fn any_fires_when_the_first_branch_arrives() {
    check_waits(three("wait_for: any"), &[]);
    check(three("wait_for: any"), &[(1, json!("y"))], json!({ "1": "y" }));
}

#[test]
fn a_number_fires_when_so_many_branches_have_arrived() {
    check_waits(three("wait_for: 2"), &[(1, json!("y"))]);
    check(three("wait_for: 2"), &[(2, json!("z")), (1, json!("y"))], json!({ "1": "y", "2": "z" }));
}

#[test]
fn a_branch_that_is_routed_nowhere_is_settled() {
    let answers = [(0, json!("x")), (1, json!("nowhere")), (2, json!("z"))];
    check(three("wait_for: all"), &answers, json!({ "0": "x", "2": "z" }));
}

#[test]
fn all_fires_with_nothing_when_no_branch_arrives_at_all() {
    let answers = [(0, json!("nowhere")), (1, json!("nowhere")), (2, json!("nowhere"))];
    check(three("wait_for: all"), &answers, json!({}));
}

#[test]
fn a_failed_branch_fails_the_run_at_once() {
    let mut world = answered(three("wait_for: all"), &[(1, json!(null))]);
    let failure = failure(world.outcome("r"));
    assert_eq!((failure.kind, &*failure.message), (FailureKind::TaskFailed, "boom"));
    assert_eq!(world.at("r", "b"), ["cancelled", "failed", "cancelled"]);
}

#[test]
fn with_continue_a_failed_branch_is_settled_without_output() {
    let join = "wait_for: all, on_failure: continue";
    check_waits(three(join), &[(0, json!("x")), (1, json!(null))]);
    check(three(join), &[(0, json!("x")), (1, json!(null)), (2, json!("z"))], json!({ "0": "x", "2": "z" }));
    check(three(join), &[(0, json!(null)), (1, json!(null)), (2, json!(null))], json!({}));
}

#[test]
fn with_continue_what_else_goes_on_in_a_failed_branch_is_cancelled() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, bad: { run: { function: f } }, slow: { run: { function: f } }, c: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: bad, when: "branch.index == 0" }
  - { from: b, to: slow }
  - { from: slow, to: c, join: &join { group: g, on_failure: continue } }
  - { from: bad, to: c, join: *join }
"#,
    );
    world.start("r", "w", json!({}));
    world.fail("r", "bad", boom());
    assert_eq!(world.at("r", "slow"), ["cancelled", "dispatched"]);
    world.answer("r", "slow", json!(1));
    output(world.outcome("r"));
    assert_eq!(world.told("r", "fan_in.completed")[0]["arrived"], 1);
}

#[test]
fn a_join_that_can_no_longer_be_met_fails_the_run_at_once() {
    check_failure(
        three("wait_for: any"),
        &[(0, json!("nowhere")), (1, json!("nowhere")), (2, json!("nowhere"))],
        "join_impossible: the join of group `g` waits for 1 of 3 branches, but 0 have arrived and 3 ended without arriving",
    );
    let mut world = answered(three("wait_for: 2, on_failure: continue"), &[(0, json!(null)), (2, json!(null))]);
    assert_eq!(failure(world.outcome("r")).kind, FailureKind::JoinImpossible);
    assert_eq!(world.at("r", "b"), ["failed", "cancelled", "failed"]);
}

#[test]
fn a_join_that_waits_for_more_branches_than_there_are_fails_when_its_group_opens() {
    check_failure(
        three("wait_for: 4"),
        &[],
        "join_impossible: the join of group `g` waits for 4 of 3 branches, but 0 have arrived and 0 ended without arriving",
    );
}

#[test]
fn a_join_that_times_out_fails_the_run() {
    let mut world = three("wait_for: all, timeout: 10s");
    world.start("r", "w", json!({}));
    world.pass(9_999);
    world.answer("r", "b", json!("x"));
    assert!(!world.view("r").status.is_over());
    world.pass(1);
    let failure = failure(world.outcome("r"));
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert_eq!(failure.message, "the join of group `g` timed out: 1 of 3 branches had arrived");
}

#[test]
fn with_proceed_a_join_that_times_out_fires_with_what_has_arrived() {
    let mut world = three("wait_for: all, timeout: 10s, on_timeout: proceed");
    world.start("r", "w", json!({}));
    world.answer("r", "b", json!("x"));
    world.finish();
    assert_eq!(output(world.outcome("r")), json!({ "0": "x" }));
    assert_eq!(world.at("r", "b"), ["completed", "cancelled", "cancelled"]);
    assert_eq!(world.told_at("r", "fan_in.completed"), 10_000);
}

#[test]
fn with_proceed_a_join_fires_also_when_nothing_has_arrived() {
    let mut world = three("wait_for: 2, timeout: 10s, on_timeout: proceed");
    world.start("r", "w", json!({}));
    world.finish();
    assert_eq!(output(world.outcome("r")), json!({}));
    assert_eq!(world.told("r", "fan_in.completed")[0]["arrived"], 0);
}

#[test]
fn the_timeout_counts_from_the_fan_out_not_from_the_first_arrival() {
    let mut world = three("timeout: 10s, on_timeout: proceed");
    world.start("r", "w", json!({}));
    world.pass(6_000);
    world.answer("r", "b", json!("x"));
    world.finish();
    assert_eq!(world.told_at("r", "fan_in.completed"), 10_000);
}

#[test]
fn a_join_that_fires_in_time_leaves_no_timer() {
    let world = answered(three("wait_for: any, timeout: 10s"), &[(0, json!("x"))]);
    assert_eq!(world.keys("r", "timer"), [] as [&str; 0]);
}

#[test]
fn branches_of_several_nodes_do_not_join_before_they_arrive() {
    let mut world = World::with(
        r#"
nodes:
  a: {}
  first: { run: { mock: { delay: 1s } } }
  second: { run: { mock: { value: "${item}", delay: "${item * 1000}" } }, output: { state.x: "${result}" } }
  c: {}
transitions:
  - { from: a, to: first, foreach: { in: "[5, 1, 3]" }, group: g }
  - { from: first, to: second }
  - { from: second, to: c, join: { group: g, merge: { from: state.x, into: state.all } } }
result: "${state.all}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!([5, 1, 3]));
    assert_eq!(world.told_at("r", "fan_in.completed"), 6_000);
}

#[test]
fn branches_may_take_different_ways_to_the_same_join() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, detour: { run: { mock: { delay: 1s } } }, c: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: detour, when: "branch.index == 0" }
  - { from: b, to: c, when: "branch.index == 1", join: &join { group: g } }
  - { from: detour, to: c, join: *join }
"#,
    );
    output(world.run("w", json!({})));
    assert_eq!(
        world.told("r", "fan_in.completed"),
        [json!({ "group": "g", "instance": 1, "branches": 2, "arrived": 2, "node": "c" })]
    );
}

/// A branch that forks into `x` and `y`, which both lead to the join.
const FORK: &str = r#"
nodes: { a: {}, b: {}, x: { run: { function: f } }, y: { run: { function: f } }, c: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: x }
  - { from: b, to: y }
  - { from: x, to: c, join: &join { group: g, wait_for: 2 } }
  - { from: y, to: c, join: *join }
"#;

#[test]
fn a_branch_counts_once_even_when_two_of_its_tokens_arrive() {
    let mut world = World::with(FORK);
    world.start("r", "w", json!({}));
    let tasks = world.pending("r");
    let of_first: Vec<_> = tasks
        .iter()
        .filter(|task| world.tokens("r")[task.task.parse::<usize>().unwrap() - 1].path.ends_with(":0"))
        .collect();
    for task in &of_first {
        world.settle_task(task, Ok(stored(&json!(1))));
    }
    assert_eq!((of_first.len(), world.told("r", "fan_in.completed").len()), (2, 0));
    world.answer("r", "x", json!(1));
    output(world.outcome("r"));
    assert_eq!(world.told("r", "fan_in.completed")[0]["arrived"], 2);
}

#[test]
fn a_branch_counts_once_even_when_two_transitions_of_one_token_lead_to_the_join() {
    for wait_for in ["all", "any", "2"] {
        let mut world = World::with(&format!(
            r#"
nodes: {{ a: {{}}, b: {{}}, c: {{}} }}
transitions:
  - {{ from: a, to: b, spawn: 2, group: g }}
  - {{ from: b, to: c, when: "branch.index >= 0", join: &join {{ group: g, wait_for: {wait_for} }} }}
  - {{ from: b, to: c, when: "branch.total == 2", join: *join }}
"#
        ));
        output(world.run("w", json!({})));
        assert_eq!(world.told("r", "fan_in.completed").len(), 1);
    }
}

#[test]
fn a_late_result_is_dropped_after_the_join_has_fired() {
    let mut world = World::with(&late_world());
    world.start("r", "w", json!({}));
    let tasks = world.pending("r");
    world.settle_task(&tasks[1], Ok(stored(&json!("y"))));
    world.settle();
    let before = (world.token_lines("r"), world.event_types("r"));
    world.settle_task(&tasks[0], Ok(stored(&json!("x"))));
    world.settle();
    assert_eq!((world.token_lines("r"), world.event_types("r")), before);
    world.answer("r", "c", json!(null));
    assert_eq!(output(world.outcome("r")), json!(["y"]));
}

#[test]
fn a_late_error_is_dropped_after_the_join_has_fired() {
    let mut world = World::with(&late_world());
    world.start("r", "w", json!({}));
    let tasks = world.pending("r");
    world.settle_task(&tasks[2], Ok(stored(&json!("z"))));
    world.settle_task(&tasks[0], Err(boom()));
    world.answer("r", "c", json!(null));
    assert_eq!(output(world.outcome("r")), json!(["z"]));
}

fn late_world() -> String {
    r#"
nodes:
  a: {}
  b: { run: { function: f }, output: { state.x: "${result}" } }
  c: { run: { function: f } }
transitions:
  - { from: a, to: b, spawn: 3, group: g }
  - { from: b, to: c, join: { group: g, wait_for: any, merge: { from: state.x, into: state.all } } }
result: "${state.all}"
"#
    .to_owned()
}

#[test]
fn branches_still_going_are_cancelled_whatever_they_do() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes:
  a: {}
  quick: { run: { mock: { delay: 5s } } }
  task: { run: { function: f } }
  wait: { wait: { signal: s }, timeout: 1h }
  sleep: { sleep: 1h }
  retry: { run: { mock: { fail: {} } }, retry: { max_attempts: 9, delay: 1h, max_delay: 1h } }
  child: { workflow: child, timeout: 1h }
  inner: { wait: { signal: s } }
  c: {}
transitions:
  - { from: a, to: quick, group: g }
  - { from: a, to: task, group: g }
  - { from: a, to: wait, group: g }
  - { from: a, to: sleep, group: g }
  - { from: a, to: retry, group: g }
  - { from: a, to: child, group: g }
  - { from: task, to: inner, spawn: 3, group: h }
  - { from: quick, to: c, join: { group: g, wait_for: any } }
---
kind: workflow
name: child
nodes: { a: { wait: { signal: s } } }
"#,
    );
    world.start("r", "w", json!({}));
    world.answer("r", "task", json!(1));
    world.finish();
    output(world.outcome("r"));
    for node in ["wait", "sleep", "retry", "child", "inner"] {
        assert!(world.at("r", node).iter().all(|status| *status == "cancelled"), "{node}");
    }
    assert_eq!(world.view(&world.children("r")[0]).status.name(), "cancelled");
    assert_eq!(world.told_at("r", "workflow.completed"), 5_000);
}

#[test]
fn the_storage_of_branches_is_dropped_when_the_join_fires() {
    let mut world = World::with(&late_world());
    world.start("r", "w", json!({}));
    world.answer("r", "b", json!("x"));
    for prefix in ["group/", "branch/", "overlay/", "items/"] {
        assert_eq!(world.keys("r", prefix), [] as [&str; 0]);
    }
    world.answer("r", "c", json!(null));
}

#[test]
fn much_that_branches_have_brought_is_dropped_when_the_join_fires() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { run: { function: f }, output: { state.x: "${result}" } }, c: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c, join: { group: g, merge: { from: state.x, into: state.all } } }
result: "${state.all}"
"#,
    );
    world.start("r", "w", json!({}));
    let much = "x".repeat(10_000);
    world.answer("r", "b", json!(much));
    world.answer("r", "b", json!("little"));
    assert_eq!(output(world.outcome("r")), json!([much, "little"]));
    let stored = &world.actors[&run_id("r")].values;
    let arrived: usize = stored.iter().filter(|(key, _)| key.starts_with("arrived/")).map(|(_, row)| row.bytes()).sum();
    assert!(arrived < 1_000, "{arrived} bytes");
}

#[test]
fn the_same_group_name_nested_never_mixes() {
    let mut world = World::with(
        r#"
nodes:
  a: {}
  b: {}
  c: { run: { mock: { delay: "${(9 - row * 3 - item) * 1000}" } }, output: { state.x: "${row * 10 + item}" } }
  d: {}
  e: {}
transitions:
  - { from: a, to: b, foreach: { in: "[0, 1, 2]", as: row }, group: g }
  - { from: b, to: c, foreach: { in: "[0, 1]" }, group: g }
  - { from: c, to: d, join: { group: g, merge: { from: state.x, into: state.row } } }
  - { from: d, to: e, join: { group: g, merge: { from: state.row, into: state.rows, strategy: collect } } }
result: "${state.rows}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!([[0, 1], [10, 11], [20, 21]]));
    assert_eq!(world.told("r", "fan_in.completed").len(), 4);
    assert_eq!(world.at("r", "e").len(), 3 + 1);
}

#[test]
fn the_same_group_in_a_loop_never_mixes_with_the_round_before() {
    let mut world = World::with(
        r#"
start: a
nodes:
  a: { output: { state.round: "${state.round == null ? 1 : state.round + 1}" } }
  b: { run: { function: f }, output: { state.x: "${result}" } }
  c: {}
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c, join: { group: g, wait_for: any, merge: { from: state.x, into: state.all } } }
  - { from: c, to: a, max_iterations: 1 }
result: { all: "${state.all}", round: "${state.round}" }
"#,
    );
    world.start("r", "w", json!({}));
    let first_round = world.pending("r");
    world.answer("r", "b", json!("first"));
    // The branch that lost the first round must not win the second.
    world.settle_task(&first_round[1], Ok(stored(&json!("late"))));
    assert_eq!(world.pending("r").len(), 2);
    world.answer("r", "b", json!("second"));
    assert_eq!(output(world.outcome("r")), json!({ "all": ["second"], "round": 2 }));
}

#[test]
fn a_foreach_over_nothing_fires_its_join_at_once_with_nothing() {
    for wait_for in ["all", "any", "3"] {
        let mut world = fan("foreach: { in: input.items }", "run: { function: f }", &format!("wait_for: {wait_for}"));
        assert_eq!(output(world.run("w", json!({ "items": [] }))), json!({}));
        assert_eq!(world.nodes("r"), ["a", "c"]);
    }
}

#[test]
fn a_foreach_over_nothing_inside_a_branch_fires_only_the_inner_join() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: { output: { state.x: "${item}" } }, d: {}, e: {} }
transitions:
  - { from: a, to: b, foreach: { in: input.rows, as: row }, group: rows }
  - { from: b, to: c, foreach: { in: row }, group: columns }
  - { from: c, to: d, join: { group: columns, wait_for: all, merge: { from: state.x, into: state.x } } }
  - { from: d, to: e, join: { group: rows, merge: { from: state.x, into: state.x, strategy: collect } } }
result: "${state.x}"
"#,
    );
    assert_eq!(output(world.run("w", json!({ "rows": [[1, 2], [], [3]] }))), json!([[1, 2], [], [3]]));
}

#[test]
fn a_foreach_over_nothing_that_nobody_joins_ends_the_branch() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: {} }
transitions: [{ from: a, to: b, foreach: { in: "[]" } }, { from: b, to: c }]
"#,
    );
    output(world.run("w", json!({})));
    assert_eq!(world.nodes("r"), ["a"]);
}

#[test]
fn an_empty_part_of_an_explicit_fan_out_adds_no_branches() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { output: { state.x: "${branch.index}" } }, c: { output: { state.x: "${item}" } }, d: {} }
transitions:
  - { from: a, to: c, foreach: { in: input.items }, group: g }
  - { from: a, to: b, group: g }
  - { from: b, to: d, join: &join { group: g, merge: { from: state.x, into: state.all } } }
  - { from: c, to: d, join: *join }
result: "${state.all}"
"#,
    );
    assert_eq!(output(world.run("w", json!({ "items": [] }))), json!([0]));
}

#[test]
fn a_token_that_reaches_a_join_from_outside_of_its_group_fails_the_run() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g, when: "input.fan" }
  - { from: a, to: b, when: "!input.fan" }
  - { from: b, to: c, join: { group: g } }
"#,
    );
    let failure = failure(world.run("w", json!({ "fan": false })));
    assert_eq!(failure.kind, FailureKind::JoinImpossible);
    assert_eq!(failure.message, "a token at node `b` reached the join of group `g`, but is in no branch of that group");
}

#[test]
fn a_join_of_the_outer_group_ends_the_inner_one() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: { run: { mock: { delay: "${branch.index * 1000 + 1}" } } }, d: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: outer }
  - { from: b, to: c, spawn: 3, group: inner }
  - { from: c, to: d, join: { group: outer } }
"#,
    );
    output(world.run("w", json!({})));
    assert_eq!(
        world.told("r", "fan_in.completed"),
        [json!({ "group": "outer", "instance": 1, "branches": 2, "arrived": 2, "node": "d" })]
    );
    assert_eq!(world.told_at("r", "workflow.completed"), 1);
}

#[test]
fn one_token_may_reach_the_joins_of_an_inner_and_an_outer_group_at_once() {
    let outer = "  - { from: c, to: d, join: { group: outer } }\n";
    let inner = "  - { from: c, to: e, join: { group: inner } }\n";
    for joins in [[outer, inner].concat(), [inner, outer].concat()] {
        let mut world = World::with(&format!(
            r#"
nodes: {{ a: {{}}, b: {{}}, c: {{}}, d: {{}}, e: {{}} }}
transitions:
  - {{ from: a, to: b, group: outer }}
  - {{ from: b, to: c, group: inner }}
{joins}
"#
        ));
        world.start("r", "w", json!({}));
        world.settle();
        output(world.outcome("r"));
        let fired = world.told("r", "fan_in.completed");
        assert_eq!(fired.iter().filter(|fired| fired["group"] == "outer").count(), 1);
        assert_eq!(world.at("r", "d"), ["completed", "completed"]);
    }
}

#[test]
fn two_transitions_to_an_inner_join_never_count_for_the_outer_group_of_the_same_name() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: {}, d: { run: { function: f } }, e: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c, spawn: 2, group: g }
  - { from: c, to: d, when: "true", join: &join { group: g } }
  - { from: c, to: d, when: "branch.index >= 0", join: *join }
  - { from: d, to: e, join: { group: g } }
"#,
    );
    world.start("r", "w", json!({}));
    world.settle();
    assert_eq!(world.told("r", "fan_in.completed").len(), 2);
    world.answer("r", "d", json!(1));
    world.answer("r", "d", json!(2));
    output(world.outcome("r"));
    assert_eq!(world.told("r", "fan_in.completed").len(), 3);
}

#[test]
fn a_branch_whose_inner_fan_out_is_over_without_a_join_is_settled() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: { run: { mock: { delay: 1s } } }, d: {}, e: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c, when: "branch.index == 0", spawn: 3 }
  - { from: b, to: e, when: "branch.index == 1", join: { group: g } }
  - { from: c, to: d }
"#,
    );
    output(world.run("w", json!({})));
    assert_eq!(world.told("r", "fan_in.completed")[0]["arrived"], 1);
    assert_eq!(world.told_at("r", "fan_in.completed"), 1_000);
}

#[test]
fn a_failure_deep_inside_counts_for_the_innermost_join() {
    for (inner, outer, expected) in [("continue", "fail", "completed"), ("fail", "continue", "failed")] {
        let mut world = World::with(&format!(
            r#"
nodes: {{ a: {{}}, b: {{}}, c: {{ run: {{ mock: {{ fail: {{}} }} }} }}, d: {{}}, e: {{}} }}
transitions:
  - {{ from: a, to: b, spawn: 2, group: outer }}
  - {{ from: b, to: c, spawn: 2, group: inner }}
  - {{ from: c, to: d, join: {{ group: inner, on_failure: {inner} }} }}
  - {{ from: d, to: e, join: {{ group: outer, on_failure: {outer} }} }}
"#
        ));
        assert_eq!(world.run("w", json!({})).status().name(), expected);
    }
}
