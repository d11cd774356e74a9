//! Events: what a run tells its history.

use std::collections::BTreeSet;

use serde_json::json;
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::graph::Decision;
use steadfast_core::graph::protocol::{Command, Tracing};
use steadfast_core::graph::view::{EventView, RunOrigin};
use steadfast_core::json::Json;

use crate::world::{World, json as stored, output};

#[test]
fn the_history_of_a_task() {
    let mut world = World::with(
        "nodes: { a: { run: { mock: { value: 5, fail: { times: 1 } } }, retry: { delay: 1s }, output: { output.n: '${result}' } } }",
    );
    output(world.run("w", json!({})));
    assert_eq!(
        world.event_types("r"),
        [
            "workflow.started",
            "token.created",
            "task.dispatched",
            "task.failed",
            "task.retry_scheduled",
            "task.dispatched",
            "task.completed",
            "context.updated",
            "token.completed",
            "workflow.completed",
        ]
    );
    assert_eq!(world.told("r", "context.updated"), [json!({ "token": 1, "paths": ["output.n"] })]);
    assert_eq!(world.told("r", "workflow.completed"), [json!({ "output": { "n": 5 } })]);
}

#[test]
fn the_history_of_a_fan_out() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: {}, c: {} }
transitions: [{ from: a, to: b, group: g }, { from: b, to: c, join: { group: g, merge: { from: branch.index, into: state.x } } }]
"#,
    );
    output(world.run("w", json!({ "x": 1 })));
    assert_eq!(
        world.event_types("r"),
        [
            "workflow.started",
            "token.created",
            "token.completed",
            "fan_out.started",
            "token.created",
            "token.completed",
            "token.created",
            "token.waiting",
            "branches.merged",
            "fan_in.completed",
            "token.created",
            "token.completed",
            "token.completed",
            "workflow.completed",
        ]
    );
    let made = json!({ "token": 2, "node": "b", "parent": 1, "path": "root/g:0", "branch": [1, 0, 1] });
    assert_eq!(world.told("r", "token.created")[1], made);
    assert_eq!(world.told("r", "workflow.started"), [json!({ "input": { "x": 1 } })]);
}

#[test]
fn the_history_of_a_child() {
    let text = r#"
kind: workflow
name: w
nodes: { a: { workflow: child } }
---
kind: workflow
name: child
nodes: { a: { run: { function: f } } }
"#;
    let mut world = World::of(text).answer_with(|_| Ok(stored(&json!(1))));
    output(world.run("w", json!({})));
    let child = world.children("r").remove(0);
    assert_eq!(
        world.told("r", "subworkflow.started"),
        [json!({ "token": 1, "node": "a", "run": child, "workflow": "child" })]
    );
    assert_eq!(world.told("r", "subworkflow.completed").len(), 1);
    let mut world = World::of(text).answer_with(|_| Err(Failure::last(FailureKind::TaskFailed, "boom")));
    world.run("w", json!({}));
    assert_eq!(world.told("r", "subworkflow.failed")[0]["error"]["message"], "boom");
    assert_eq!(world.told("r", "workflow.failed")[0]["error"]["message"], "boom");
    let mut world = World::of(text);
    world.start("r", "w", json!({}));
    world.settle();
    world.cancel("r", "enough");
    world.settle();
    assert_eq!(world.told("r", "subworkflow.cancelled").len(), 1);
    assert_eq!(world.told("r", "token.cancelled"), [json!({ "token": 1, "node": "a" })]);
}

#[test]
fn every_event_has_a_sequence_number_a_time_and_what_belongs_to_its_run() {
    let mut world = World::of(
        r#"
kind: workflow
name: w
nodes: { a: { workflow: child } }
---
kind: workflow
name: child
nodes: { a: { sleep: 1s } }
"#,
    );
    output(world.run("w", json!({})));
    let child = world.children("r").remove(0);
    let run = world.view(&child);
    let events: Vec<EventView> =
        world.events(&child).iter().map(|event| EventView::new(&RunOrigin::from(&run), event.clone())).collect();
    assert_eq!(
        events.iter().map(|event| event.sequence).collect::<Vec<_>>(),
        (1..=events.len() as u64).collect::<Vec<_>>()
    );
    let last = events.last().unwrap();
    assert_eq!((&*last.event_type, &*last.run_id, &*last.root_id), ("workflow.completed", &*child, "r"));
    assert_eq!((&*last.workflow, last.version, &*last.at), ("child", 1, "1970-01-01T00:16:41.000Z"));
}

#[test]
fn pausing_and_resuming_are_told() {
    let mut world = World::with("nodes: { a: { wait: { signal: s } } }");
    world.start("r", "w", json!({}));
    world.control("r", &Command::Pause);
    world.control("r", &Command::Resume);
    assert_eq!(world.event_types("r")[3..], ["workflow.paused", "workflow.resumed"]);
}

const TRACED: &str = r#"
kind: workflow
name: w
nodes: { a: { output: { state.x: 1 } }, b: {}, c: {}, d: { workflow: child }, e: { run: { mock: { fail: {} } } } }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: c, join: { group: g, merge: { from: branch.index, into: state.all } } }
  - { from: c, to: d }
  - { from: d, to: e, when: "input.fail" }
---
kind: workflow
name: child
nodes: { a: {}, b: {} }
transitions: [{ from: a, to: b, spawn: 2 }]
"#;

#[test]
fn with_tracing_on_every_decision_is_an_event() {
    let mut world = World::of(TRACED);
    world.start_with("r", "w", json!({ "fail": true }), Tracing::On);
    world.finish();
    let types = world.event_types("r");
    let told: BTreeSet<&str> = types.iter().filter_map(|name| name.strip_prefix("decision.")).collect();
    let expected = [
        "completion.fail_run",
        "context.apply_node_output",
        "context.set_context",
        "routing.batch_create_tokens",
        "routing.check_synchronization",
        "routing.create_token",
        "sync.activate_fan_in_token",
        "sync.create_fan_in_token",
        "tokens.mark_for_dispatch",
        "tokens.update_token_status",
    ];
    assert_eq!(told.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_child_is_traced_as_its_parent_is() {
    let mut world = World::of(TRACED);
    world.start_with("r", "w", json!({}), Tracing::On);
    world.finish();
    let child = world.children("r").remove(0);
    assert!(world.event_types(&child).contains(&"decision.sync.close_group".to_owned()));
    assert!(world.event_types(&child).contains(&"decision.completion.complete_run".to_owned()));
}

#[test]
fn decisions_are_data_with_the_names_they_always_had() {
    let mut world = World::of(TRACED);
    world.start_with("r", "w", json!({}), Tracing::On);
    world.finish();
    let decided = |name: &str| world.told("r", name).remove(0);
    assert_eq!(
        decided("decision.routing.check_synchronization"),
        json!({ "type": "CHECK_SYNCHRONIZATION", "transition": 1, "node": "c" })
    );
    assert_eq!(
        decided("decision.sync.activate_fan_in_token"),
        json!({ "type": "ACTIVATE_FAN_IN_TOKEN", "group": 1, "arrived": 2 })
    );
    assert_eq!(
        decided("decision.context.set_context"),
        json!({ "type": "SET_CONTEXT", "writes": [{ "path": "state.all", "value": [0, 1] }] })
    );
    let opened =
        json!({ "type": "BATCH_CREATE_TOKENS", "group": "g", "parts": [{ "transition": 0, "count": 2 }], "join": 1 });
    assert_eq!(decided("decision.routing.batch_create_tokens"), opened);
}

#[test]
fn a_decision_can_be_read_back_from_its_event() {
    let mut world = World::of(TRACED);
    world.start_with("r", "w", json!({ "fail": true }), Tracing::On);
    world.finish();
    let decisions = world.events("r").iter().filter(|event| event.event_type.starts_with("decision."));
    for event in decisions {
        let decision: Decision = event.data.decode().unwrap();
        assert_eq!(decision.event_type(), &*event.event_type);
        assert_eq!(Json::encode(&decision).unwrap(), event.data);
    }
}

#[test]
fn tracing_changes_nothing_else() {
    let run = |tracing| {
        let mut world = World::of(TRACED);
        world.start_with("r", "w", json!({}), tracing);
        world.finish();
        let mut types = world.event_types("r");
        types.retain(|name| !name.starts_with("decision."));
        (types, world.token_lines("r"))
    };
    assert_eq!(run(Tracing::On), run(Tracing::Off));
}
