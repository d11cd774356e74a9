//! Controls: cancel, pause, resume, and callers that wait.

use serde_json::json;
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::graph::protocol::{Command, Controlled, Outcome, RunStatus, Waited};

use crate::world::{World, failure, output};

const TASKS: &str = r#"
nodes: { a: {}, b: { run: { function: f } }, c: { run: { function: f } }, d: { wait: { signal: s } } }
transitions: [{ from: a, to: b }, { from: b, to: c }, { from: a, to: d, when: "input.wait" }]
"#;

fn cancelled(reason: &str) -> Outcome {
    Outcome::Cancelled { reason: Some(reason.to_owned()) }
}

#[test]
fn cancel_ends_the_run_and_keeps_the_callers_reason() {
    let mut world = World::with(TASKS);
    world.start("r", "w", json!({ "wait": true }));
    assert_eq!(world.cancel("r", "too late"), Controlled::Done(RunStatus::Cancelled));
    assert_eq!(world.outcome("r"), cancelled("too late"));
    let view = world.view("r");
    assert_eq!((view.status.name(), view.reason.as_deref()), ("cancelled", Some("too late")));
    assert_eq!(world.told("r", "workflow.cancelled"), [json!({ "reason": "too late" })]);
}

#[test]
fn no_token_is_active_after_cancel_and_no_task_is_left() {
    let mut world = World::with(TASKS);
    world.start("r", "w", json!({ "wait": true }));
    world.cancel("r", "too late");
    assert_eq!(world.token_lines("r"), ["a completed", "b cancelled", "d cancelled"]);
    assert_eq!(world.pending("r").len(), 0);
}

#[test]
fn cancel_is_idempotent_and_the_first_reason_stays() {
    let mut world = World::with(TASKS);
    world.start("r", "w", json!({}));
    world.cancel("r", "first");
    let events = world.event_types("r");
    assert_eq!(world.cancel("r", "second"), Controlled::Ended(RunStatus::Cancelled));
    assert_eq!((world.outcome("r"), world.event_types("r")), (cancelled("first"), events));
}

#[test]
fn cancel_needs_no_reason() {
    let mut world = World::with(TASKS);
    world.start("r", "w", json!({}));
    world.control("r", &Command::Cancel { reason: None });
    assert_eq!(world.outcome("r"), Outcome::Cancelled { reason: None });
}

#[test]
fn a_run_that_is_over_cannot_be_cancelled_paused_or_resumed() {
    let mut world = World::with("nodes: { a: {} }");
    output(world.run("w", json!({})));
    assert_eq!(world.cancel("r", "late"), Controlled::Ended(RunStatus::Completed));
    assert_eq!(world.control("r", &Command::Pause), Controlled::Ended(RunStatus::Completed));
    assert_eq!(world.control("r", &Command::Resume), Controlled::Ended(RunStatus::Completed));
    assert_eq!(world.view("r").status.name(), "completed");
}

#[test]
fn a_run_that_nobody_started_is_not_found() {
    let mut world = World::with("nodes: { a: {} }");
    assert_eq!(world.cancel("r", "why"), Controlled::NotFound);
    assert_eq!(world.control("r", &Command::Pause), Controlled::NotFound);
    assert_eq!(world.ask("r", &Command::Wait).decode::<Waited>().unwrap(), Waited::NotFound);
}

#[test]
fn cancel_in_a_backoff_or_in_the_middle_of_branches_leaves_nothing_behind() {
    let mut world = World::with(
        r#"
timeout: 1d
nodes:
  a: { output: { state.x: 1 } }
  b: { output: { state.x: 2 } }
  c: { run: { mock: { fail: { times: "${branch.index}" } } }, retry: { delay: 1h, max_delay: 1h }, output: { state.x: 3 } }
  d: { run: { function: f } }
  e: {}
transitions:
  - { from: a, to: b, foreach: { in: "[1, 2]" }, group: outer }
  - { from: b, to: c, foreach: { in: "[1, 2]" }, group: inner }
  - { from: c, to: d, join: { group: inner, timeout: 2h } }
  - { from: d, to: e, join: { group: outer, timeout: 3h } }
"#,
    );
    world.start("r", "w", json!({}));
    world.settle();
    assert_eq!(world.at("r", "c"), ["completed", "retrying", "completed", "retrying"]);
    world.cancel("r", "enough");
    assert_eq!(world.outcome("r"), cancelled("enough"));
    assert_eq!(world.at("r", "d"), ["cancelled", "cancelled"]);
}

#[test]
fn pause_lets_running_tasks_finish_and_begins_nothing_new() {
    let mut world = World::with(TASKS);
    world.start("r", "w", json!({}));
    assert_eq!(world.control("r", &Command::Pause), Controlled::Done(RunStatus::Paused));
    assert_eq!(world.at("r", "b"), ["dispatched"]);
    world.answer("r", "b", json!(1));
    assert_eq!((world.at("r", "b"), world.at("r", "c")), (vec!["completed"], vec!["pending"]));
    assert_eq!(world.pending("r").len(), 0);
}

#[test]
fn resume_goes_on_where_pause_held_it() {
    let mut world = World::with(TASKS);
    world.start("r", "w", json!({}));
    world.control("r", &Command::Pause);
    world.answer("r", "b", json!(1));
    assert_eq!(world.control("r", &Command::Resume), Controlled::Done(RunStatus::Running));
    world.settle();
    world.answer("r", "c", json!(1));
    output(world.outcome("r"));
}

#[test]
fn pause_and_resume_are_idempotent_and_told_once() {
    let mut world = World::with(TASKS);
    world.start("r", "w", json!({}));
    for _ in 0..2 {
        assert_eq!(world.control("r", &Command::Pause), Controlled::Done(RunStatus::Paused));
    }
    for _ in 0..2 {
        assert_eq!(world.control("r", &Command::Resume), Controlled::Done(RunStatus::Running));
    }
    assert_eq!((world.told("r", "workflow.paused").len(), world.told("r", "workflow.resumed").len()), (1, 1));
}

#[test]
fn a_retry_that_is_due_while_paused_waits_for_resume() {
    let mut world =
        World::with("nodes: { a: { run: { mock: { fail: { times: 1 } } }, retry: { delay: 1s, jitter: 0 } } }");
    world.start("r", "w", json!({}));
    world.settle();
    world.control("r", &Command::Pause);
    world.pass(10_000);
    assert_eq!(world.at("r", "a"), ["pending"]);
    world.control("r", &Command::Resume);
    world.settle();
    output(world.outcome("r"));
    assert_eq!(world.tokens("r")[0].attempt, 2);
}

#[test]
fn a_join_may_fire_while_paused_and_its_node_begins_after_resume() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { run: { function: f }, output: { state.x: "${result}" } }, c: { run: { function: f } } }
transitions:
  - { from: a, to: b, spawn: 3, group: g }
  - { from: b, to: c, join: { group: g, wait_for: 2, merge: { from: state.x, into: state.all } } }
result: "${state.all}"
"#,
    );
    world.start("r", "w", json!({}));
    world.control("r", &Command::Pause);
    world.answer("r", "b", json!(1));
    world.answer("r", "b", json!(2));
    assert_eq!(world.at("r", "c"), ["completed", "completed", "pending"]);
    assert_eq!(world.at("r", "b"), ["completed", "completed", "cancelled"]);
    world.control("r", &Command::Resume);
    world.settle();
    world.answer("r", "c", json!(null));
    assert_eq!(output(world.outcome("r")), json!([1, 2]));
}

#[test]
fn the_last_result_ends_a_paused_run() {
    let mut world = World::with("nodes: { a: { run: { function: f } } }");
    world.start("r", "w", json!({}));
    world.control("r", &Command::Pause);
    world.answer("r", "a", json!(1));
    output(world.outcome("r"));
}

#[test]
fn a_paused_run_can_be_cancelled_with_what_it_held_back() {
    let mut world = World::with(TASKS);
    world.start("r", "w", json!({}));
    world.control("r", &Command::Pause);
    world.answer("r", "b", json!(1));
    world.cancel("r", "enough");
    world.settle();
    assert_eq!(world.outcome("r"), cancelled("enough"));
    assert_eq!(world.at("r", "c"), ["cancelled"]);
}

#[test]
fn a_branch_held_back_by_pause_is_cancelled_when_its_group_is_over() {
    let mut world = World::with(
        r#"
nodes: { a: {}, b: { run: { function: f } }, slow: { run: { function: f } }, c: {} }
transitions:
  - { from: a, to: b, spawn: 2, group: g }
  - { from: b, to: slow, when: "result == 'slow'" }
  - { from: b, to: c, when: "result == 'quick'", join: &join { group: g, wait_for: any } }
  - { from: slow, to: c, join: *join }
"#,
    );
    world.start("r", "w", json!({}));
    world.control("r", &Command::Pause);
    world.answer("r", "b", json!("slow"));
    assert_eq!(world.at("r", "slow"), ["pending"]);
    world.answer("r", "b", json!("quick"));
    world.control("r", &Command::Resume);
    world.settle();
    output(world.outcome("r"));
    assert_eq!(world.at("r", "slow"), ["cancelled"]);
}

#[test]
fn everybody_who_waits_is_told_how_the_run_ended() {
    let mut world = World::with(TASKS);
    world.start("r", "w", json!({}));
    let waiting: Vec<_> = (0..3).map(|_| world.send_request("r", &Command::Wait).unwrap()).collect();
    assert!(waiting.iter().all(|request| world.reply(request).is_none()));
    world.cancel("r", "enough");
    for request in waiting {
        assert_eq!(world.reply(&request).unwrap().decode::<Waited>().unwrap(), Waited::Ended(cancelled("enough")));
    }
}

#[test]
fn of_more_callers_than_may_wait_the_first_is_told_to_ask_again() {
    let mut world = World::with(TASKS);
    world.start("r", "w", json!({}));
    let told = |world: &World| world.replies.values().filter(|reply| reply.as_str() == r#""ask_again""#).count();
    for _ in 0..steadfast_core::limits::RUN_WAITERS_MAX {
        world.send_request("r", &Command::Wait).unwrap();
    }
    assert_eq!(told(&world), 0);
    world.send_request("r", &Command::Wait).unwrap();
    assert_eq!(told(&world), 1);
}

#[test]
fn a_fan_out_that_opens_while_paused_begins_after_resume() {
    let mut world = World::with(
        r#"
nodes: { a: { run: { function: f } }, b: { output: { state.x: "${item}" } }, c: {} }
transitions:
  - { from: a, to: b, foreach: { in: result }, group: g }
  - { from: b, to: c, join: { group: g, merge: { from: state.x, into: state.all } } }
result: "${state.all}"
"#,
    );
    world.start("r", "w", json!({}));
    world.control("r", &Command::Pause);
    world.answer("r", "a", json!([1, 2]));
    assert_eq!(world.nodes("r"), ["a"]);
    world.control("r", &Command::Resume);
    world.settle();
    assert_eq!(output(world.outcome("r")), json!([1, 2]));
}

#[test]
fn a_failure_while_paused_fails_the_run() {
    let mut world = World::with(TASKS);
    world.start("r", "w", json!({ "wait": true }));
    world.control("r", &Command::Pause);
    world.fail("r", "b", Failure::last(FailureKind::TaskFailed, "boom"));
    assert_eq!(failure(world.outcome("r")).message, "boom");
}

#[test]
fn an_error_path_taken_while_paused_begins_after_resume() {
    let mut world =
        World::with("nodes: { a: { run: { function: f } }, b: {} }\ntransitions: [{ from: a, to: b, on: error }]");
    world.start("r", "w", json!({}));
    world.control("r", &Command::Pause);
    world.fail("r", "a", Failure::last(FailureKind::TaskFailed, "boom"));
    assert_eq!(world.at("r", "b"), ["pending"]);
    world.control("r", &Command::Resume);
    world.settle();
    output(world.outcome("r"));
}
