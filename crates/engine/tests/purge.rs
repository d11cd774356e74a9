//! Runs that are removed: in parts, over crashes, and while the engine runs.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use steadfast::core::definition;
use steadfast::core::graph::protocol::Started;
use steadfast::core::ids::{ActorId, RequestId, Sequence};
use steadfast::core::json::Json;
use steadfast::core::time::Timestamp;
use steadfast::graph::{Graphs, Purged, Run, RunError};
use steadfast::store::batch::Batch;
use steadfast::store::memory::MemoryStore;
use steadfast::store::rows::{DeadLetterRow, HistoryPlace, RunFilter};
use steadfast::store::sqlite::SqliteStore;
use steadfast::store::{Reader, Store, StoreError};
use steadfast::{Engine, Settings};

const WORKFLOWS: &str = r#"
kind: workflow
name: outer
nodes: { a: {}, b: { workflow: inner } }
transitions: [{ from: a, to: b, spawn: 300 }]
---
kind: workflow
name: inner
nodes: { a: { run: { value: 1 }, output: { state.x: "${result}" } } }
---
kind: workflow
name: wide
nodes: { a: {}, b: { run: { value: 1 } } }
transitions: [{ from: a, to: b, spawn: 2000 }]
---
kind: workflow
name: waits
nodes: { a: { wait: { signal: go } } }
"#;

async fn start(store: Arc<dyn Store>) -> (Engine, Graphs) {
    let settings = Settings { runners: 3, ..Settings::default() };
    let engine = Engine::on(store).graphs().settings(settings).start().unwrap();
    let graphs = Graphs::of(&engine);
    graphs.apply(&definition::read("test.yaml", WORKFLOWS).definitions).await.unwrap();
    (engine, graphs)
}

async fn begin(graphs: &Graphs, workflow: &str, id: &str) -> Started {
    graphs.start(Run::new(workflow, Json::parse("{}").unwrap()).with_id(id)).await.unwrap().1
}

async fn run(graphs: &Graphs, workflow: &str, id: &str) {
    assert!(matches!(begin(graphs, workflow, id).await, Started::Created { .. }));
    graphs.wait(id).await.unwrap();
}

async fn purge(graphs: &Graphs, id: &str) {
    loop {
        match graphs.purge(id).await {
            // A run tells its end before the last messages to it are consumed.
            Err(RunError::NotOver { .. }) => tokio::task::yield_now().await,
            purged => return assert_eq!(purged.unwrap(), Purged::Now),
        }
    }
}

/// Waits until nothing of any run is left: no row in a list, a count, a history, or of an actor.
async fn nothing_is_left(graphs: &Graphs, store: &dyn Store, actors: &[ActorId]) {
    let reader = store.reader().unwrap();
    let is_left = || {
        !graphs.list(RunFilter::default(), None, 10).unwrap().runs.is_empty()
            || actors.iter().any(|actor| reader.rows_of(actor, 1).unwrap() > 0)
    };
    while is_left() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(graphs.counts().unwrap(), []);
    let history = reader.history(None, HistoryPlace::default(), 100_000).unwrap();
    assert!(history.iter().all(|(_, event)| event.actor.kind() != "run"));
}

fn actors_of(graphs: &Graphs, root: &str) -> Vec<ActorId> {
    let filter = RunFilter { root: Some(root), ..RunFilter::default() };
    let runs = graphs.list(filter, None, 1000).unwrap().runs;
    let names = runs.into_iter().map(|run| run.id).chain([root.to_owned()]);
    names.map(|name| ActorId::new("run", &name).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purged_tree_leaves_nothing_and_its_id_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("store.db")).unwrap());
    let (engine, graphs) = start(store.clone()).await;
    run(&graphs, "outer", "a").await;
    let actors = actors_of(&graphs, "a");
    assert_eq!(actors.len(), 301);
    purge(&graphs, "a").await;
    assert_eq!(graphs.run("a").unwrap(), None);
    nothing_is_left(&graphs, &*store, &actors).await;

    // The same once more, under the same ids of children too.
    run(&graphs, "outer", "a").await;
    assert_eq!(actors_of(&graphs, "a").len(), 301);
    drop(store);
    engine.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_of_a_run_that_goes_comes_to_its_successor() {
    let store = Arc::new(MemoryStore::new());
    let (engine, graphs) = start(store.clone()).await;
    run(&graphs, "wide", "a").await;
    let tokens = graphs.tokens("a").unwrap().len();
    for _ in 0..10 {
        let purging = tokio::spawn({
            let graphs = graphs.clone();
            async move { purge(&graphs, "a").await }
        });
        // Until it is gone the old one answers, afterwards there is a new one; never half of one.
        while matches!(begin(&graphs, "wide", "a").await, Started::Existing) {}
        purging.await.unwrap();
        graphs.wait("a").await.unwrap();
        assert_eq!(graphs.tokens("a").unwrap().len(), tokens);
    }
    engine.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signals_key_is_forgotten_with_its_run() {
    let store = Arc::new(MemoryStore::new());
    let (engine, graphs) = start(store).await;
    let key = RequestId::given("once").unwrap();
    for _ in 0..2 {
        begin(&graphs, "waits", "a").await;
        graphs.signal("a", "go", Json::null(), Some(&key)).await.unwrap();
        graphs.wait("a").await.unwrap();
        purge(&graphs, "a").await;
    }
    engine.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_go_with_their_tree_also_of_runs_that_never_began() {
    let store = Arc::new(MemoryStore::new());
    let (engine, graphs) = start(store.clone()).await;
    run(&graphs, "inner", "a").await;
    run(&graphs, "inner", "a.b").await;
    for (number, name) in (1..).zip(["run:a", "run:a.never", "run:a.b", "run:ab"]) {
        let actor = ActorId::parse(name).unwrap();
        let mut batch = Batch::default();
        batch.of(&actor).insert_dead_letter(DeadLetterRow {
            id: Sequence(number),
            actor: actor.clone(),
            input: Json::null(),
            error: "no".to_owned(),
            attempts: 3,
            at: Timestamp(1),
        });
        store.commit(&batch).unwrap();
    }
    purge(&graphs, "a").await;
    let reader = store.reader().unwrap();
    while !reader.actors_with_dead_letters("run:a.n", 1).unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let left = engine.dead_letters(None, 10).unwrap();
    let mut left: Vec<String> = left.into_iter().map(|letter| letter.actor.to_string()).collect();
    left.sort();
    assert_eq!(left, ["run:a.b", "run:ab"]);
    assert!(graphs.run("a.b").unwrap().is_some());
    engine.stop(Duration::ZERO).await;
}

/// A store that takes so many commits and then no more, as after a crash.
#[derive(Clone)]
struct Mortal {
    rows: MemoryStore,
    commits_left: Arc<AtomicUsize>,
}

impl Store for Mortal {
    fn begin_boot(&self) -> Result<u32, StoreError> {
        self.rows.begin_boot()
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let left = self.commits_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map_err(|_| StoreError::Failed("the test says so".to_owned()))?;
        self.rows.commit(batch)
    }

    fn probe(&self) -> Result<(), StoreError> {
        Err(StoreError::Failed("the test says so".to_owned()))
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        self.rows.reader()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_cut_off_at_any_commit_goes_on_after_the_restart() {
    for (workflow, cuts) in [("wide", 1..9), ("outer", 1..5)] {
        for commits in cuts {
            let rows = MemoryStore::new();
            let (engine, graphs) = start(Arc::new(rows.clone())).await;
            run(&graphs, workflow, "a").await;
            let actors = actors_of(&graphs, "a");
            engine.stop(Duration::ZERO).await;

            let mortal = Mortal { rows: rows.clone(), commits_left: Arc::new(AtomicUsize::new(commits)) };
            let engine = Engine::on(Arc::new(mortal)).graphs().start().unwrap();
            let purged = Graphs::of(&engine).purge("a").await;
            drop(purged);
            engine.stop(Duration::ZERO).await;

            // Nobody asks again: the order is on disk.
            let (engine, graphs) = start(Arc::new(rows.clone())).await;
            nothing_is_left(&graphs, &rows, &actors).await;
            engine.stop(Duration::ZERO).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_whose_time_is_over_are_removed_and_others_stay() {
    let store = Arc::new(MemoryStore::new());
    let (engine, graphs) = start(store.clone()).await;
    run(&graphs, "outer", "old").await;
    begin(&graphs, "waits", "active").await;
    let retaining = tokio::spawn({
        let graphs = graphs.clone();
        async move { graphs.retain(Duration::ZERO).await }
    });
    while graphs.list(RunFilter::default(), None, 10).unwrap().runs.len() > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(graphs.list(RunFilter::default(), None, 10).unwrap().runs[0].id, "active");
    retaining.abort();

    let retaining = tokio::spawn({
        let graphs = graphs.clone();
        async move { graphs.retain(Duration::from_secs(3600)).await }
    });
    run(&graphs, "inner", "young").await;
    graphs.cancel("active", None).await.unwrap();
    assert_eq!(graphs.list(RunFilter::default(), None, 10).unwrap().runs.len(), 2);
    retaining.abort();
    engine.stop(Duration::ZERO).await;
}
