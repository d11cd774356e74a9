//! Workers outside: tasks are lent, kept by heartbeats, handed in once, and lent again when a worker is gone.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeSet;
use std::time::Duration;

use steadfast::core::definition;
use steadfast::core::failure::{Failure, FailureKind};
use steadfast::core::graph::protocol::Outcome;
use steadfast::core::json::Json;
use steadfast::graph::{Graphs, Run};
use steadfast::tasks::{Ask, DeskError, Lent};
use steadfast::{Engine, Workers};

const FLOWS: &str = r#"
kind: workflow
name: one
nodes: { a: { run: { worker: mail }, input: { to: "${input.to}" }, output: { output.sent: "${result}" } } }
---
kind: workflow
name: many
nodes: { a: {}, b: { run: { worker: mail }, output: { state.x: "${result}" } }, c: {} }
transitions:
  - { from: a, to: b, spawn: input.n, group: g }
  - { from: b, to: c, join: { group: g, merge: { from: state.x, into: state.all } } }
result: "${size(state.all)}"
---
kind: workflow
name: retried
nodes: { a: { run: { worker: mail }, retry: { max_attempts: 2, delay: 1ms } } }
---
kind: workflow
name: hurried
nodes: { a: { run: { worker: mail }, timeout: 50ms } }
"#;

const LONG: Duration = Duration::from_secs(60);

struct World {
    folder: tempfile::TempDir,
    engine: Engine,
    graphs: Graphs,
    workers: Workers,
}

impl World {
    async fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap()).await
    }

    async fn on(folder: tempfile::TempDir) -> Self {
        let store = folder.path().join("store.db");
        let engine = Engine::open(store).unwrap().effects(Default::default()).graphs().start().unwrap();
        let (graphs, workers) = (Graphs::of(&engine), Workers::of(&engine));
        graphs.apply(&definition::read("flows.yaml", FLOWS).definitions).await.unwrap();
        Self { folder, engine, graphs, workers }
    }

    /// The next process on the same store.
    async fn restart(self) -> Self {
        let Self { folder, engine, .. } = self;
        engine.stop(Duration::ZERO).await;
        Self::on(folder).await
    }

    async fn start(&self, workflow: &str, id: &str, input: &str) {
        self.graphs.start(Run::new(workflow, json(input)).with_id(id)).await.unwrap();
    }

    async fn lease(&self, lease: Duration) -> Lent {
        let mut lent = self.workers.lease(&Ask { lease, wait: LONG, ..ask(1) }).await.unwrap();
        lent.remove(0)
    }

    /// Tasks that are there now.
    async fn lease_now(&self, max: usize) -> Vec<Lent> {
        self.workers.lease(&ask(max)).await.unwrap()
    }

    async fn complete(&self, lent: &Lent, result: &str) -> Result<(), DeskError> {
        self.workers.complete(&lent.id, &lent.lease, json(result)).await
    }

    async fn failure(&self, run: &str) -> Failure {
        match self.graphs.wait(run).await.unwrap() {
            Outcome::Failed(failure) => failure,
            other @ (Outcome::Completed(_) | Outcome::Cancelled { .. }) => panic!("it ended with {other:?}"),
        }
    }

    async fn output(&self, run: &str) -> String {
        match self.graphs.wait(run).await.unwrap() {
            Outcome::Completed(output) => output.to_string(),
            other @ (Outcome::Failed(_) | Outcome::Cancelled { .. }) => panic!("it ended with {other:?}"),
        }
    }
}

fn ask(max: usize) -> Ask {
    Ask { queue: "mail".to_owned(), worker: "w1".to_owned(), max, lease: LONG, wait: Duration::ZERO }
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn is_lost(outcome: &Result<(), DeskError>) -> bool {
    matches!(outcome, Err(DeskError::LeaseLost(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_gets_a_task_and_hands_in_its_result() {
    let world = World::new().await;
    world.start("one", "r", r#"{"to":"ann"}"#).await;
    let lent = world.lease(LONG).await;
    assert_eq!((lent.id.to_string().as_str(), lent.queue.as_str(), lent.node.as_str()), ("run:r:1", "mail", "a"));
    assert_eq!((lent.attempt, lent.input.as_str()), (1, r#"{"to":"ann"}"#));
    assert_eq!(world.lease_now(10).await, []);
    world.complete(&lent, r#""sent""#).await.unwrap();
    assert_eq!(world.output("r").await, r#"{"sent":"sent"}"#);
    // A worker that heard no answer says it again.
    world.complete(&lent, r#""again""#).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_is_woken_by_a_new_task() {
    let world = World::new().await;
    let workers = world.workers.clone();
    let waiting = tokio::spawn(async move { workers.lease(&Ask { wait: LONG, ..ask(5) }).await.unwrap() });
    tokio::task::yield_now().await;
    world.start("one", "r", "{}").await;
    assert_eq!(waiting.await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_worker_is_silent_goes_to_another_and_the_late_one_changes_nothing() {
    let world = World::new().await;
    world.start("one", "r", "{}").await;
    let silent = world.lease(Duration::from_millis(20)).await;
    let other = world.lease(LONG).await;
    assert_eq!(silent.id, other.id);
    assert!(is_lost(&world.complete(&silent, "1").await));
    assert!(world.workers.heartbeat(&silent.id, &silent.lease, None).is_err());
    world.complete(&other, "2").await.unwrap();
    assert_eq!(world.output("r").await, r#"{"sent":2}"#);
    assert!(is_lost(&world.complete(&silent, "1").await));
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_keep_a_task_and_tell_how_far_it_is() {
    let world = World::new().await;
    world.start("one", "r", "{}").await;
    let lent = world.lease(Duration::from_secs(1)).await;
    for _ in 0..12 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.workers.heartbeat(&lent.id, &lent.lease, Some(json("50"))).unwrap();
    }
    let leases = world.workers.leases();
    assert_eq!((leases.len(), leases[0].worker.as_str(), leases[0].progress.clone()), (1, "w1", Some(json("50"))));
    world.complete(&lent, "1").await.unwrap();
    assert_eq!(world.workers.leases(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_tried_again_as_the_policy_says() {
    let world = World::new().await;
    world.start("retried", "r", "{}").await;
    for attempt in 1..=2 {
        let lent = world.lease(LONG).await;
        assert_eq!(lent.attempt, attempt);
        let failure = Failure::retryable(FailureKind::TaskFailed, "no route");
        world.workers.fail(&lent.id, &lent.lease, failure).await.unwrap();
    }
    assert_eq!(world.failure("r").await.message, "no route");
    world.start("retried", "final", "{}").await;
    let lent = world.lease(LONG).await;
    world.workers.fail(&lent.id, &lent.lease, Failure::last(FailureKind::TaskFailed, "never")).await.unwrap();
    assert_eq!(world.failure("final").await.message, "never");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_takes_too_long_has_failed_whatever_its_worker_says() {
    let world = World::new().await;
    world.start("hurried", "r", "{}").await;
    let lent = world.lease(LONG).await;
    assert!(lent.lent_for <= Duration::from_millis(50));
    let failure = world.failure("r").await;
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert!(is_lost(&world.complete(&lent, "1").await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_takes_its_task_from_the_worker() {
    let world = World::new().await;
    world.start("one", "r", "{}").await;
    let lent = world.lease(LONG).await;
    world.graphs.cancel("r", None).await.unwrap();
    assert!(is_lost(&world.complete(&lent, "1").await));
    assert_eq!(world.lease_now(10).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_tasks_are_lent_anew_and_old_leases_are_lost() {
    let world = World::new().await;
    world.start("one", "r", "{}").await;
    let old = world.lease(LONG).await;
    let world = world.restart().await;
    let new = world.lease(LONG).await;
    assert_eq!(old.id, new.id);
    assert!(is_lost(&world.complete(&old, "1").await));
    world.complete(&new, "2").await.unwrap();
    assert_eq!(world.output("r").await, r#"{"sent":2}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_many_tasks_is_lent_to_one_worker_at_a_time() {
    let world = World::new().await;
    world.start("many", "r", r#"{"n":3000}"#).await;
    let mut crew = Vec::new();
    for number in 0..4 {
        let workers = world.workers.clone();
        crew.push(tokio::spawn(async move {
            let mut done = Vec::new();
            loop {
                let wait = Duration::from_millis(300);
                let lent = workers.lease(&Ask { worker: format!("w{number}"), wait, ..ask(50) }).await.unwrap();
                if lent.is_empty() {
                    return done;
                }
                for task in lent {
                    workers.complete(&task.id, &task.lease, Json::null()).await.unwrap();
                    done.push(task.id.to_string());
                }
            }
        }));
    }
    assert_eq!(world.output("r").await, "3000");
    let mut done = Vec::new();
    for worker in crew {
        done.extend(worker.await.unwrap());
    }
    let different: BTreeSet<&String> = done.iter().collect();
    assert_eq!((done.len(), different.len()), (3_000, 3_000));
    world.engine.stop(Duration::ZERO).await;
    assert!(matches!(world.workers.lease(&ask(1)).await, Err(DeskError::Request(_))));
}
