//! What a run waits for, in words.

use serde_json::json;
use steadfast_core::graph::protocol::Command;
use steadfast_core::graph::why::{Bounds, Wait, Why, explain};

use crate::world::{World, run_id};

fn why(world: &World, run: &str, width_max: usize) -> Why {
    let mut bounds = Bounds { width_max, waits_left: 100 };
    explain(&world.actors[&run_id(run)], run, world.workflow("w").as_deref(), &mut bounds).unwrap().unwrap()
}

/// What is said, a line for each, further in for what is below.
fn lines(why: &Why) -> Vec<String> {
    let mut lines = vec![why.to_string()];
    add(&why.waits, why.left_out, 1, &mut lines);
    lines
}

fn add(waits: &[Wait], left_out: u64, depth: usize, lines: &mut Vec<String>) {
    for wait in waits {
        lines.push(format!("{}{wait}", "  ".repeat(depth)));
        if let Wait::Group(group) = wait {
            add(&group.waits, group.left_out, depth + 1, lines);
        }
    }
    if left_out > 0 {
        lines.push(format!("{}and {left_out} more", "  ".repeat(depth)));
    }
}

const ANSWERS: &str = "
nodes:
  begin:
  ask: { run: { function: f } }
  approve: { wait: { signal: approve }, timeout: 1h }
  end:
transitions:
  - { from: begin, to: ask, spawn: 5, group: answers }
  - { from: ask, to: approve, when: result == 1 }
  - { from: ask, to: end, when: result == 2, join: { group: answers, timeout: 2h } }
  - { from: approve, to: end, join: { group: answers, timeout: 2h } }
";

#[test]
fn a_join_says_who_has_arrived_and_what_the_others_wait_for() {
    let mut world = World::with(ANSWERS);
    world.start("r", "w", json!({}));
    world.settle();
    for result in [2, 1, 2] {
        world.answer("r", "ask", json!(result));
    }
    assert_eq!(
        lines(&why(&world, "r", 5)),
        [
            "run `r` of `w` is running",
            "  group `answers`: 2 of 5 branches have arrived, join `all`, until 1970-01-01T02:16:40.000Z",
            "    branch 1: node `approve`: waits for signal `approve`, which nobody has sent, until 1970-01-01T01:16:40.000Z",
            "    branch 3: node `ask`: task handed over, attempt 1",
            "    branch 4: node `ask`: task handed over, attempt 1",
        ]
    );
}

#[test]
fn of_many_branches_the_first_are_named_and_the_others_counted() {
    let mut world = World::with(ANSWERS);
    world.start("r", "w", json!({}));
    world.settle();
    let said = lines(&why(&world, "r", 2));
    assert_eq!((said.len(), &*said[4]), (5, "    and 3 more"), "{said:#?}");
}

#[test]
fn sleeps_retries_and_runs_below_are_told() {
    let mut world = World::of(
        "
kind: workflow
name: w
nodes:
  begin:
  sleep: { sleep: 1h }
  fails: { run: { mock: { fail: { times: 9 } } }, retry: { max_attempts: 9, delay: 1h } }
  below: { workflow: w2 }
transitions: [{ from: begin, to: sleep }, { from: begin, to: fails }, { from: begin, to: below }]
---
kind: workflow
name: w2
nodes: { wait: { wait: { signal: go } } }
",
    );
    world.start("r", "w", json!({}));
    world.settle();
    let (child, due) = (world.children("r").remove(0), world.told("r", "task.retry_scheduled").remove(0));
    let due = due["due"].as_str().unwrap();
    assert_eq!(
        lines(&why(&world, "r", 5)),
        [
            "run `r` of `w` is running",
            "  node `sleep`: sleeps, until 1970-01-01T01:16:40.000Z",
            &*format!("  node `fails`: attempt 1 has failed, attempt 2 is due at {due}"),
            &*format!("  node `below`: waits for run `{child}`"),
        ]
    );
}

#[test]
fn a_paused_run_says_so_and_one_that_is_over_says_how_it_ended() {
    let mut world = World::with("nodes: { a: { wait: { signal: go } } }");
    world.start("r", "w", json!({}));
    world.control("r", &Command::Pause);
    assert_eq!(lines(&why(&world, "r", 5))[0], "run `r` of `w` is paused: nothing new is begun until it is resumed");
    world.cancel("r", "enough");
    world.finish();
    assert_eq!(lines(&why(&world, "r", 5)), ["run `r` of `w` is cancelled since 1970-01-01T00:16:40.000Z: enough"]);
}
