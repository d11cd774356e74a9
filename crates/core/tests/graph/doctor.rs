//! What will wake a run next; and what nothing will.

use serde_json::json;
use steadfast_core::graph::doctor::{Below, Problem, Report, Surroundings, Waker, check, lost_tasks};
use steadfast_core::graph::protocol::{Command, Recovered};
use steadfast_core::graph::view;
use steadfast_core::ids::ActorId;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::TurnError;

use crate::world::{World, run_id};

/// A run and the world around it.
struct Around<'w> {
    world: &'w World,
    run: &'w ActorId,
}

impl Surroundings for Around<'_> {
    fn alarm(&self) -> Option<Timestamp> {
        self.world.actors[self.run].alarm
    }

    fn has_task(&self, name: &str) -> Result<bool, TurnError> {
        Ok(self.world.pending(self.run.name()).iter().any(|task| task.task == name))
    }

    fn has_message(&self, to: &ActorId) -> Result<bool, TurnError> {
        Ok(self.world.messages.iter().any(|(actor, ..)| actor == to))
    }

    fn below(&self, run: &ActorId) -> Result<Below, TurnError> {
        let Some(stored) = self.world.actors.get(run) else { return Ok(Below::Missing) };
        Ok(match view::run(stored, run.name())? {
            None => Below::Missing,
            Some(view) if view.status.is_over() => Below::Ended,
            Some(_) => Below::Unfinished,
        })
    }
}

/// What is found in a run of a world.
pub(crate) fn checked(world: &World, run: &ActorId) -> Report {
    check(&world.actors[run], run, &Around { world, run }).unwrap()
}

const EVERYTHING: &str = "
nodes:
  begin:
  task: { run: { function: f } }
  signal: { wait: { signal: go } }
  sleep: { sleep: 1h }
  fails: { run: { mock: { fail: { times: 9 } } }, retry: { max_attempts: 9, delay: 1h } }
  below: { workflow: w2 }
transitions:
  - { from: begin, to: task, spawn: 3 }
  - { from: begin, to: signal }
  - { from: begin, to: sleep }
  - { from: begin, to: fails }
  - { from: begin, to: below }
---
kind: workflow
name: w2
nodes: { wait: { wait: { signal: go } } }
";

fn world() -> World {
    let mut world = World::with(EVERYTHING);
    world.start("r", "w", json!({}));
    world.pass(1_000);
    world
}

/// The only problem of the run `r`.
#[track_caller]
fn problem(world: &World) -> (Option<String>, String) {
    let Report { mut problems, .. } = checked(world, &run_id("r"));
    assert_eq!(problems.len(), 1, "{problems:#?}");
    let Problem { node, missing, .. } = problems.remove(0);
    (node.map(|node| node.to_string()), missing)
}

#[test]
fn everything_that_is_not_over_has_something_that_wakes_it() {
    let mut world = world();
    let report = checked(&world, &run_id("r"));
    assert_eq!(report.problems, []);
    let expected = [(Waker::Alarm, 2), (Waker::Task, 3), (Waker::Run, 1), (Waker::Signal, 1)];
    assert_eq!(report.wakers.into_iter().collect::<Vec<_>>(), expected);
    world.control("r", &Command::Pause);
    assert_eq!(checked(&world, &run_id("r")).wakers[&Waker::Resume], 1);
    world.cancel("r", "enough");
    world.finish();
    assert_eq!(checked(&world, &run_id("r")), Report::default());
}

#[test]
fn a_lost_alarm_is_found() {
    let mut world = world();
    let alarm = world.actors[&run_id("r")].alarm.unwrap();
    for (found, expected) in [(None, "is missing".to_owned()), (Some(alarm.plus_ms(9)), "stands at ".to_owned())] {
        world.actors.get_mut(&run_id("r")).unwrap().alarm = found;
        let expected = format!("something is due at {}, but the alarm {expected}", alarm.rfc3339());
        let (node, missing) = problem(&world);
        assert!(node.is_none() && missing.starts_with(&expected), "{missing}");
    }
    world.actors.get_mut(&run_id("r")).unwrap().alarm = Some(alarm);
}

#[test]
fn a_lost_task_is_found() {
    let mut world = world();
    let task = world.pending("r").remove(1);
    world.lose_task(&task);
    assert_eq!(problem(&world), (Some("task".to_owned()), "it waits for a task that is not there".to_owned()));
    let has_task = |name: &str| Ok(world.pending("r").iter().any(|task| task.task == name));
    let lost = lost_tasks(&world.actors[&run_id("r")], 10, &has_task).unwrap();
    assert_eq!(lost.len(), 1);
    let recovered = |world: &mut World| {
        let answer: Recovered = world.ask("r", &Command::Recover { lost: lost.clone() }).decode().unwrap();
        (answer.retried, answer.dispatched)
    };
    assert_eq!(recovered(&mut world), (1, 1));
    assert_eq!(checked(&world, &run_id("r")).problems, []);
    assert_eq!((world.pending("r").len(), world.at("r", "task")), (4, vec!["dispatched"; 3]));
}

#[test]
fn a_lost_timer_and_a_lost_wait_are_found() {
    for (prefix, node) in
        [("timer/sleep", "sleep"), ("timer/retry", "fails"), ("waits/", "signal"), ("wait/", "signal")]
    {
        let mut world = world();
        let key = world.keys("r", prefix).remove(0);
        let kept = world.actors.get_mut(&run_id("r")).unwrap().values.remove_entry(&*key).unwrap();
        assert_eq!(problem(&world).0.as_deref(), Some(node), "{key}");
        world.actors.get_mut(&run_id("r")).unwrap().values.extend([kept]);
    }
}

#[test]
fn a_run_below_that_is_gone_is_found() {
    let mut world = world();
    let child = run_id(&world.children("r")[0]);
    let stored = world.actors.remove(&child).unwrap();
    let (node, missing) = problem(&world);
    assert_eq!(node.as_deref(), Some("below"));
    assert!(missing.contains("which does not exist"), "{missing}");
    world.actors.insert(child, stored);
}

#[test]
fn the_lost_message_of_a_run_with_more_to_do_is_found() {
    let mut world =
        World::with("nodes: { a: {}, b: { run: { value: 1 } } }\ntransitions: [{ from: a, to: b, spawn: 15000 }]");
    world.start("r", "w", json!({}));
    assert_eq!(checked(&world, &run_id("r")).problems, []);
    let message = world.messages.pop_front();
    let found = checked(&world, &run_id("r")).problems;
    assert_eq!(found[0].missing, "work was put off to another turn, but no message asks for one");
    world.messages.extend(message);
    world.finish();
}

#[test]
fn a_lost_branch_is_found() {
    let mut world = world();
    let key = world.keys("r", "alike/").remove(0);
    let kept = world.actors.get_mut(&run_id("r")).unwrap().values.remove_entry(&*key).unwrap();
    let (node, missing) = problem(&world);
    assert_eq!(node, None);
    assert!(missing.starts_with("3 of 3 branches of `branches`"), "{missing}");
    world.actors.get_mut(&run_id("r")).unwrap().values.extend([kept]);
}
