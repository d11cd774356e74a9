//! Sub-workflows: runs that a run starts and waits for.

use serde_json::json;
use steadfast_core::definition::DefinitionKind;
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::graph::protocol::{Command, Outcome};

use crate::world::{World, failure, json as stored, output};

/// A workflow whose node `a` runs another one, that asks a function.
fn family(node: &str) -> World {
    World::of(&format!(
        r#"
kind: workflow
name: w
nodes:
  a: {{ workflow: child, input: {{ n: "${{input.n}}" }}, output: {{ output.got: "${{result.n}}" }}{node} }}
  mend: {{ output: {{ output.error: "${{error.type}}: ${{error.message}}" }} }}
transitions: [{{ from: a, to: mend, on: error, when: "input.mend" }}]
---
kind: workflow
name: child
input: {{ type: object, properties: {{ n: {{ type: integer }} }} }}
nodes: {{ c: {{ run: {{ function: f }}, output: {{ state.n: "${{result + input.n}}" }} }} }}
result: {{ n: "${{state.n}}" }}
"#
    ))
}

#[test]
fn a_child_is_given_the_mapped_input_and_its_output_is_the_result() {
    let mut world = family("");
    world.start("r", "w", json!({ "n": 5 }));
    world.settle();
    assert_eq!(world.at("r", "a"), ["waiting_for_subworkflow"]);
    let child = world.children("r").remove(0);
    assert_eq!(world.view(&child).input.as_str(), r#"{"n":5}"#);
    world.answer(&child, "c", json!(10));
    assert_eq!(output(world.outcome("r")), json!({ "got": 15 }));
}

#[test]
fn the_childs_id_is_derived_from_the_parents_run_and_token() {
    let children = |run: &str| {
        let mut world = family("");
        world.start(run, "w", json!({ "n": 5 }));
        world.settle();
        world.children(run)
    };
    assert_eq!(children("r"), children("r"));
    assert_ne!(children("r"), children("other"));
    assert!(children("r")[0].starts_with("r."));
}

#[test]
fn starting_a_child_twice_is_starting_it_once() {
    let mut world = family("").repeating();
    world.start("r", "w", json!({ "n": 5 }));
    world.settle();
    let child = world.children("r").remove(0);
    assert_eq!((world.actors.len(), world.told(&child, "workflow.started").len()), (2, 1));
    world.answer(&child, "c", json!(10));
    assert_eq!(output(world.outcome("r")), json!({ "got": 15 }));
}

#[test]
fn the_failure_of_a_child_is_the_failure_of_the_node() {
    let mut world = family("").answer_with(|_| Err(Failure::last(FailureKind::NotFound, "gone")));
    let failure = failure(world.run("w", json!({ "n": 5 })));
    assert_eq!((failure.kind, &*failure.message), (FailureKind::NotFound, "gone"));
    let mut world = family("").answer_with(|_| Err(Failure::last(FailureKind::NotFound, "gone")));
    assert_eq!(output(world.run("w", json!({ "n": 5, "mend": true }))), json!({ "error": "not_found: gone" }));
}

#[test]
fn a_child_that_is_tried_again_is_a_new_child() {
    let mut asked = 0;
    let mut world = family(", retry: { max_attempts: 2, delay: 1s }").answer_with(move |_| {
        asked += 1;
        if asked == 1 { Err(Failure::retryable(FailureKind::TaskFailed, "boom")) } else { Ok(stored(&json!(1))) }
    });
    assert_eq!(output(world.run("w", json!({ "n": 5 }))), json!({ "got": 6 }));
    let mut ended: Vec<_> = world.children("r").iter().map(|child| world.view(child).status.name()).collect();
    ended.sort_unstable();
    assert_eq!(ended, ["completed", "failed"]);
}

#[test]
fn input_that_does_not_fit_the_childs_schema_is_a_failure_of_the_node_and_no_child_begins() {
    let mut world = family("");
    let result = output(world.run("w", json!({ "n": "text", "mend": true })));
    let message = result["error"].as_str().unwrap();
    assert!(
        message.starts_with("invalid_input: the input of workflow `child` does not fit its schema: at `/n`"),
        "{message}"
    );
    assert_eq!(world.actors.len(), 1);
}

#[test]
fn a_child_that_somebody_else_cancels_is_a_failure_of_the_node() {
    let mut world = family("");
    world.start("r", "w", json!({ "n": 5, "mend": true }));
    world.settle();
    let child = world.children("r").remove(0);
    world.cancel(&child, "not needed");
    world.settle();
    assert_eq!(
        output(world.outcome("r")),
        json!({ "error": "cancelled: the run of workflow `child` was cancelled: not needed" })
    );
}

/// A workflow that runs itself as deep as `input.n` says, and then asks a function.
const DEEP: &str = r#"
kind: workflow
name: w
nodes:
  a: {}
  down: { workflow: w, input: { n: "${input.n - 1}" }, output: { state.depth: "${result.depth + 1}" } }
  leaf: { run: { function: f }, output: { state.depth: 0 } }
transitions: [{ from: a, to: down, when: "input.n > 0" }, { from: a, to: leaf, priority: 1 }]
result: { depth: "${state.depth}" }
"#;

#[test]
fn depth_is_unlimited() {
    let mut world = World::of(DEEP).answer_with(|_| Ok(stored(&json!(null))));
    assert_eq!(output(world.run("w", json!({ "n": 1_000 }))), json!({ "depth": 1_000 }));
    assert_eq!(world.actors.len(), 1_001);
    assert!(world.actors.keys().all(|actor| actor.name().len() < 40));
}

#[test]
fn cancelling_a_run_cancels_its_children_at_every_level() {
    let mut world = World::of(DEEP);
    world.start("r", "w", json!({ "n": 5 }));
    world.settle();
    world.cancel("r", "enough");
    world.settle();
    let views: Vec<_> = world.actors.keys().map(|actor| world.view(actor.name()).status.name()).collect();
    assert_eq!(views, ["cancelled"; 6]);
    assert_eq!(world.outcome("r"), Outcome::Cancelled { reason: Some("enough".to_owned()) });
}

#[test]
fn a_failure_at_the_bottom_goes_up_through_every_level() {
    let mut world = World::of(DEEP).answer_with(|_| Err(Failure::last(FailureKind::TaskFailed, "boom")));
    assert_eq!(failure(world.run("w", json!({ "n": 5 }))).message, "boom");
    assert!(world.actors.keys().all(|actor| world.view(actor.name()).status.name() == "failed"));
}

#[test]
fn a_whole_tree_shares_a_root() {
    let mut world = World::of(DEEP).answer_with(|_| Ok(stored(&json!(null))));
    output(world.run("w", json!({ "n": 3 })));
    assert!(world.actors.keys().all(|actor| &*world.view(actor.name()).root == "r"));
    assert_eq!(world.view("r").parent, None);
}

#[test]
fn failing_a_parent_cancels_its_children() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes: { a: {}, bad: { run: { mock: { delay: 1s, fail: {} } } }, down: { workflow: child } }
transitions: [{ from: a, to: bad }, { from: a, to: down }]
---
kind: workflow
name: child
nodes: { a: { workflow: grandchild } }
---
kind: workflow
name: grandchild
nodes: { a: { wait: { signal: s } } }
"#,
    );
    failure(world.run("w", json!({})));
    let child = world.children("r").remove(0);
    let grandchild = world.children(&child).remove(0);
    let status = |run: &str| world.view(run).status.name();
    assert_eq!([status("r"), status(&child), status(&grandchild)], ["failed", "cancelled", "cancelled"]);
}

#[test]
fn each_branch_has_a_child_of_its_own_and_those_that_lose_are_cancelled() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes: { a: {}, b: { workflow: child, input: { n: "${item}" }, output: { state.x: "${result}" } }, c: {} }
transitions:
  - { from: a, to: b, foreach: { in: "[3000, 1000, 2000]" }, group: g }
  - { from: b, to: c, join: { group: g, wait_for: 2, merge: { from: state.x, into: state.all } } }
result: "${state.all}"
---
kind: workflow
name: child
nodes: { a: { sleep: "${input.n}" } }
result: "${input.n}"
"#,
    );
    assert_eq!(output(world.run("w", json!({}))), json!([1000, 2000]));
    let mut ended: Vec<_> = world.children("r").iter().map(|child| world.view(child).status.name()).collect();
    ended.sort_unstable();
    assert_eq!(ended, ["cancelled", "completed", "completed"]);
    assert_eq!(world.told("r", "subworkflow.cancelled").len(), 1);
}

fn versions() -> World {
    let text = |version: u32, reference: &str| {
        format!(
            "kind: workflow\nname: w\nnodes: {{ a: {{ workflow: {reference}, output: {{ output.v: '${{result}}' }} }} }}\n---\nkind: workflow\nname: middle\nnodes: {{ a: {{ workflow: leaf, output: {{ output.v: '${{result}}' }} }} }}\n---\nkind: workflow\nname: leaf\nnodes: {{ a: {{ task: t, output: {{ output.v: '${{result}}' }} }} }}\n---\nkind: task\nname: t\nrun: {{ value: {version} }}\n"
        )
    };
    World::of_versions(&[&text(1, "middle"), &text(2, "leaf@1")])
}

#[test]
fn a_run_keeps_the_versions_it_started_with_for_its_whole_tree() {
    let mut world = versions();
    for (kind, name) in
        [(DefinitionKind::Workflow, "w"), (DefinitionKind::Workflow, "leaf"), (DefinitionKind::Task, "t")]
    {
        world.pin(kind, name, 1);
    }
    assert_eq!(output(world.run("w", json!({}))), json!({ "v": { "v": { "v": 1 } } }));
    assert_eq!(world.view("r").version, 1);
}

#[test]
fn a_name_with_a_version_means_that_one() {
    let mut world = versions();
    assert_eq!(output(world.run("w", json!({}))), json!({ "v": { "v": 2 } }));
    let child = world.children("r").remove(0);
    assert_eq!((world.view("r").version, world.view(&child).version), (2, 1));
}

#[test]
fn what_a_child_tells_after_nobody_waits_for_it_is_dropped() {
    let mut world = family("").answer_with(|_| Ok(stored(&json!(1))));
    world.start("r", "w", json!({ "n": 5 }));
    world.cancel("r", "enough");
    // The child ends well before it hears of it.
    world.finish();
    assert_eq!(world.view("r").status.name(), "cancelled");
    assert_eq!(world.at("r", "a"), ["cancelled"]);
}

#[test]
fn a_paused_parent_takes_the_result_of_its_child_and_begins_nothing_new() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes: { a: { workflow: child }, b: { run: { function: f } } }
transitions: [{ from: a, to: b }]
---
kind: workflow
name: child
nodes: { a: { run: { mock: { delay: 1s } } } }
"#,
    );
    world.start("r", "w", json!({}));
    world.control("r", &Command::Pause);
    world.finish();
    assert_eq!((world.at("r", "a"), world.at("r", "b")), (vec!["completed"], vec!["pending"]));
    world.control("r", &Command::Resume);
    world.settle();
    world.answer("r", "b", json!(null));
    output(world.outcome("r"));
}

#[test]
fn a_child_that_fails_in_its_first_turn_is_a_failure_of_the_node() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes: { a: { workflow: child, input: { text: "${input.text}" } }, mend: { output: { output.error: "${error.type}" } } }
transitions: [{ from: a, to: mend, on: error }]
---
kind: workflow
name: child
nodes: { a: { output: { state.x: "${input.text}${input.text}" } } }
"#,
    );
    // Twice five megabytes are more than one value may have.
    let text = "x".repeat(5 * 1024 * 1024);
    assert_eq!(output(world.run("w", json!({ "text": text }))), json!({ "error": "expression" }));
}

#[test]
fn a_child_in_the_middle_of_a_large_fan_out_is_cancelled_with_its_parent() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes: { a: { workflow: child } }
---
kind: workflow
name: child
nodes: { a: {}, b: { workflow: grandchild } }
transitions: [{ from: a, to: b, spawn: 12000, when: "true" }]
---
kind: workflow
name: grandchild
nodes: { a: { wait: { signal: s } } }
"#,
    );
    world.start("r", "w", json!({}));
    assert!(world.step());
    world.cancel("r", "enough");
    world.settle();
    assert!(world.actors.len() > 2);
    assert!(world.actors.keys().all(|actor| world.view(actor.name()).status.name() == "cancelled"));
}
