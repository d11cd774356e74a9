//! What is promised of a task for which this process lacks something, with real threads, a real SQLite file and real programs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use steadfast::core::definition;
use steadfast::core::graph::protocol::{Outcome, RunStatus};
use steadfast::core::ids::ActorId;
use steadfast::core::json::Json;
use steadfast::core::limits;
use steadfast::core::turn::{Actor, Input, Kind, Storage, Turn, TurnError};
use steadfast::effects::{self, Commands};
use steadfast::graph::{Graphs, Run};
use steadfast::{Builder, Engine, Function, ParkedTask, Settings, Task};
use steadfast_sim::actors::errand::{self, With};
use support::*;

/// `pays` needs a secret, and notes in a file that it was run; `plain` needs none.
const WORKFLOWS: &str = r#"
kind: workflow
name: pays
timeout: TIMEOUT
nodes:
  pay:
    timeout: 1m
    run: { command: { program: /bin/sh, args: ["-c", "echo paid >> \"$LOG\"; echo 7"], env: { KEY: "${secret.TOKEN}", LOG: "${input.log}" } } }
    output: { output.paid: "${result}" }
---
kind: workflow
name: plain
nodes:
  only: { run: { command: { program: echo, args: [1] } }, output: { output.one: "${result}" } }
"#;

const LACKING: &str = "secret `TOKEN` is not set: give the engine a secret `TOKEN`";

/// One at a time, so that a place that is not freed would hold back everything.
fn one_at_a_time() -> Settings {
    Settings { tasks_running_max: 1, tasks_queued_max: 2, ..small_settings() }
}

fn graphs_with(place: &Place, secrets: &[&str]) -> (Engine, Graphs) {
    let secrets: BTreeMap<String, String> =
        secrets.iter().map(|name| ((*name).to_owned(), "s3cr3t".to_owned())).collect();
    let settings =
        effects::Settings { secrets: Arc::new(secrets), commands: Commands::Allowed, ..effects::Settings::default() };
    let engine = place.builder().effects(settings).graphs().settings(one_at_a_time()).start().unwrap();
    let graphs = Graphs::of(&engine);
    (engine, graphs)
}

async fn apply(graphs: &Graphs, timeout: &str) {
    let read = definition::read("", &WORKFLOWS.replace("TIMEOUT", timeout));
    assert_eq!(read.definitions.len(), 2, "{:?}", read.problems);
    graphs.apply(&read.definitions).await.unwrap();
}

fn log_of(place: &Place) -> std::path::PathBuf {
    place.path().with_file_name("log")
}

async fn start_paying(graphs: &Graphs, place: &Place, id: &str) {
    let input = Json::encode(&serde_json::json!({ "log": log_of(place) })).unwrap();
    graphs.start(Run::new("pays", input).with_id(id)).await.unwrap();
}

/// Runs what needs no secret.
async fn plain(graphs: &Graphs) -> Outcome {
    let (id, _) = graphs.start(Run::new("plain", Json::parse("{}").unwrap())).await.unwrap();
    graphs.wait(&id).await.unwrap()
}

async fn parked(engine: &Engine, count: usize) -> Vec<ParkedTask> {
    eventually(async || engine.parked_tasks(), |tasks| tasks.len() == count).await
}

fn completed(output: &str) -> Outcome {
    Outcome::Completed(Json::parse(output).unwrap())
}

#[tokio::test]
async fn a_task_whose_secret_is_missing_waits_for_a_process_that_has_it_and_others_go_on() {
    let place = Place::new();
    let (engine, graphs) = graphs_with(&place, &[]);
    apply(&graphs, "1h").await;
    for id in ["a", "b", "c", "d"] {
        start_paying(&graphs, &place, id).await;
    }
    let tasks = parked(&engine, 4).await;
    assert_eq!((&tasks[0].actor, &*tasks[0].lacking), (&actor("run", "a"), LACKING));
    assert_eq!(plain(&graphs).await, completed(r#"{"one":1}"#));
    assert_eq!((engine.metrics().tasks_parked, engine.metrics().tasks_settled), (4, 1));
    assert_eq!(graphs.run("a").unwrap().unwrap().status, RunStatus::Running);
    stop(engine).await;

    // Once more without it: nothing has changed.
    let (engine, graphs) = graphs_with(&place, &["ANOTHER"]);
    assert_eq!(parked(&engine, 4).await, tasks);
    assert_eq!(plain(&graphs).await, completed(r#"{"one":1}"#));
    stop(engine).await;
    assert!(!log_of(&place).exists(), "nothing was run without the secret");

    let (engine, graphs) = graphs_with(&place, &["TOKEN"]);
    for id in ["a", "b", "c", "d"] {
        assert_eq!(graphs.wait(id).await.unwrap(), completed(r#"{"paid":7}"#));
    }
    assert_eq!((engine.parked_tasks(), engine.metrics().tasks_parked), (Vec::new(), 0));
    assert_eq!(fs::read_to_string(log_of(&place)).unwrap(), "paid\n".repeat(4));
}

#[tokio::test]
async fn a_run_whose_task_waits_can_be_cancelled_and_stays_so() {
    let place = Place::new();
    let (engine, graphs) = graphs_with(&place, &[]);
    apply(&graphs, "1h").await;
    start_paying(&graphs, &place, "a").await;
    start_paying(&graphs, &place, "b").await;
    parked(&engine, 2).await;
    graphs.cancel("a", Some("no longer")).await.unwrap();
    assert_eq!(graphs.wait("a").await.unwrap(), Outcome::Cancelled { reason: Some("no longer".to_owned()) });
    assert_eq!(parked(&engine, 1).await[0].actor, actor("run", "b"));
    stop(engine).await;

    let (_engine, graphs) = graphs_with(&place, &["TOKEN"]);
    assert_eq!(graphs.wait("b").await.unwrap(), completed(r#"{"paid":7}"#));
    assert_eq!(fs::read_to_string(log_of(&place)).unwrap(), "paid\n", "only that of the run that was not cancelled");
}

#[tokio::test]
async fn the_time_of_a_run_is_over_also_while_its_task_waits() {
    let place = Place::new();
    let (engine, graphs) = graphs_with(&place, &[]);
    apply(&graphs, "2s").await;
    start_paying(&graphs, &place, "a").await;
    let Outcome::Failed(failure) = graphs.wait("a").await.unwrap() else { panic!("its time is over") };
    assert_eq!(failure.kind.name(), "timeout");
    // It had come so far before its time was over, and is struck out with the run.
    eventually(async || engine.metrics(), |metrics| metrics.tasks_parked == 1).await;
    parked(&engine, 0).await;
}

/// Starts a task of an errand and does not wait for its end.
fn ask(engine: &Engine, task: &str, executor: &str) -> tokio::task::JoinHandle<steadfast::Answer> {
    let run = errand::Run { task: task.to_owned(), executor: executor.to_owned(), input: Json::null() };
    let (engine, id) = (engine.clone(), given(task));
    tokio::spawn(async move { engine.request_as(&id, &actor(errand::KIND, "a"), &run).await })
}

fn with_echo(builder: Builder) -> Builder {
    builder.executor("echo", Function(async |task: Task| Ok(task.input)))
}

#[tokio::test]
async fn a_task_whose_executor_is_missing_waits_for_a_process_that_has_it() {
    let place = Place::new();
    let engine = with_echo(place.builder()).settings(one_at_a_time()).start().unwrap();
    let first = ask(&engine, "t", "work");
    let tasks = parked(&engine, 1).await;
    assert_eq!(tasks[0].lacking, "this process has no executor `work`: add it with `Builder::executor`");
    ask(&engine, "other", "echo").await.unwrap().unwrap();
    stop(engine).await;
    drop(first.await);

    let engine = place.builder().executor("work", Function(async |task: Task| Ok(task.input))).start().unwrap();
    let settled: errand::Settled = ask(&engine, "t", "work").await.unwrap().unwrap().decode().unwrap();
    assert!(settled.is_ok);
}

#[tokio::test]
async fn a_waiting_task_that_is_cancelled_or_replaced_is_no_longer_listed() {
    let place = Place::new();
    let engine = with_echo(place.builder()).start().unwrap();
    let (cancelled, replaced) = (ask(&engine, "cancelled", "work"), ask(&engine, "replaced", "work"));
    parked(&engine, 2).await;
    for (task, with) in [("cancelled", With::Nothing), ("replaced", With::DispatchAfter)] {
        let cancel = errand::Cancel { cancel: task.to_owned(), with };
        engine.request(&actor(errand::KIND, "a"), &cancel).await.unwrap();
    }
    assert_eq!(cancelled.await.unwrap().unwrap().decode::<String>().unwrap(), errand::CANCELLED);
    assert!(replaced.await.unwrap().unwrap().decode::<errand::Settled>().unwrap().is_ok);
    parked(&engine, 0).await;
    engine.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_cancelled_while_it_is_parked_is_not_listed() {
    let place = Place::new();
    let engine = with_echo(place.builder()).start().unwrap();
    for number in 0..200 {
        let task = format!("t{number}");
        let asked = ask(&engine, &task, "work");
        // Now before it is started, now when it was found to lack something, now when it is listed, as it comes.
        for _ in 0..number {
            tokio::task::yield_now().await;
        }
        let cancel = errand::Cancel { cancel: task, with: With::Nothing };
        // The errand may not have heard of the task yet: then it is asked again.
        while !asked.is_finished() {
            engine.request(&actor(errand::KIND, "a"), &cancel).await.unwrap();
        }
        assert_eq!(asked.await.unwrap().unwrap().decode::<String>().unwrap(), errand::CANCELLED);
    }
    // Nothing is left in line before it.
    ask(&engine, "last", "echo").await.unwrap().unwrap();
    parked(&engine, 0).await;
    stop(engine).await;
    let engine = with_echo(place.builder()).start().unwrap();
    ask(&engine, "after", "echo").await.unwrap().unwrap();
    assert_eq!(engine.metrics().tasks_parked, 0);
}

/// Dispatches thousands of tasks in one turn.
struct Crowd;

const CROWD: usize = 5_000;

impl Kind for Crowd {
    fn load(&self, _id: &ActorId, _storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        Ok(Box::new(Self))
    }
}

impl Actor for Crowd {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        let Input::Request(request) = input else { return Ok(()) };
        for number in 0..CROWD {
            turn.dispatch(&format!("t{number}"), "work", &number)?;
        }
        turn.reply(&request.id, &())
    }
}

#[tokio::test]
async fn thousands_of_waiting_tasks_hold_back_nobody_and_are_looked_at_once() {
    let place = Place::new();
    let start = || with_echo(place.builder()).kind("crowd", Crowd).settings(one_at_a_time()).start().unwrap();
    let mut engine = start();
    engine.request(&actor("crowd", "a"), &()).await.unwrap();
    for task in ["first", "second"] {
        ask(&engine, task, "echo").await.unwrap().unwrap();
        eventually(async || engine.metrics(), |metrics| metrics.tasks_parked == CROWD as u64).await;
        assert_eq!(engine.parked_tasks().len(), limits::PAGE_ROWS_MAX);
        // All have been looked at: whatever would be read again would be started before this one.
        ask(&engine, &format!("{task}-again"), "echo").await.unwrap().unwrap();
        let metrics = engine.metrics();
        assert_eq!((metrics.tasks_parked, metrics.tasks_started), (CROWD as u64, CROWD as u64 + 2));
        stop(engine).await;
        engine = start();
    }
}
