//! Lists, counts, the histories of trees, and being told that there is more to read.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::time::Duration;

use steadfast::core::definition::{self, DefinitionKind};
use steadfast::core::json::Json;
use steadfast::graph::{Graphs, Run};
use steadfast::store::rows::{HistoryPlace, RunFilter};
use steadfast::{Engine, Watched};

const NESTED: &str = r#"
kind: workflow
name: outer
nodes: { a: {}, b: { workflow: inner } }
transitions: [{ from: a, to: b, spawn: 2 }]
---
kind: workflow
name: inner
nodes: { a: { run: { value: 1 } } }
---
kind: workflow
name: waits
nodes: { a: { wait: { signal: go } } }
"#;

async fn graphs(folder: &tempfile::TempDir) -> (Engine, Graphs) {
    let engine =
        Engine::open(folder.path().join("store.db")).unwrap().effects(Default::default()).graphs().start().unwrap();
    let graphs = Graphs::of(&engine);
    graphs.apply(&definition::read("test.yaml", NESTED).definitions).await.unwrap();
    (engine, graphs)
}

async fn run(graphs: &Graphs, workflow: &str, id: &str) {
    graphs.start(Run::new(workflow, Json::parse("{}").unwrap()).with_id(id)).await.unwrap();
}

fn ids(graphs: &Graphs, filter: RunFilter<'_>) -> Vec<String> {
    graphs.list(filter, None, 100).unwrap().runs.into_iter().map(|run| run.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_in_the_list_as_soon_as_its_start_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, graphs) = graphs(&folder).await;
    run(&graphs, "waits", "first").await;
    run(&graphs, "waits", "second").await;
    assert_eq!(ids(&graphs, RunFilter::default()), ["second", "first"]);
    graphs.cancel("first", None).await.unwrap();
    assert_eq!(ids(&graphs, RunFilter { status: Some("running"), ..RunFilter::default() }), ["second"]);
    assert_eq!(ids(&graphs, RunFilter { status: Some("cancelled"), ..RunFilter::default() }), ["first"]);
    let counts: Vec<_> = graphs.counts().unwrap().into_iter().map(|found| (found.status, found.count)).collect();
    assert_eq!(counts, [("cancelled".into(), 1), ("running".into(), 1)]);
    engine.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_paged_without_gaps_while_runs_are_added() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, graphs) = graphs(&folder).await;
    for number in 0..10 {
        run(&graphs, "waits", &format!("r{number}")).await;
    }
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = graphs.list(RunFilter::default(), before, 3).unwrap();
        seen.extend(page.runs.into_iter().map(|run| run.id));
        run(&graphs, "waits", &format!("late{}", seen.len())).await;
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    let expected: Vec<String> = (0..10).rev().map(|number| format!("r{number}")).collect();
    assert_eq!(seen, expected);
    engine.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_has_one_history_with_each_event_of_its_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, graphs) = graphs(&folder).await;
    run(&graphs, "outer", "top").await;
    graphs.wait("top").await.unwrap();
    run(&graphs, "inner", "other").await;
    let children = graphs.list(RunFilter { parent: Some("top"), ..RunFilter::default() }, None, 10).unwrap().runs;
    assert_eq!(children.len(), 2);
    let (mut told, mut after) = (Vec::new(), HistoryPlace::default());
    loop {
        let (events, last) = graphs.history(Some("top"), after, 3).unwrap();
        if last == after {
            break;
        }
        after = last;
        told.extend(events.into_iter().map(|(_, event)| (event.run_id, event.sequence)));
    }
    let mut expected = Vec::new();
    for id in ["top", &children[0].id, &children[1].id] {
        expected.extend((1..=graphs.last_event(id).unwrap()).map(|sequence| (id.to_owned(), sequence)));
    }
    let of_top: Vec<u64> = told.iter().filter(|(id, _)| id == "top").map(|(_, sequence)| *sequence).collect();
    assert!(of_top.is_sorted());
    told.sort();
    expected.sort();
    assert_eq!(told, expected);
    engine.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_is_told_of_what_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, graphs) = graphs(&folder).await;
    run(&graphs, "waits", "watched").await;
    let mut tree = engine.watch(Watched::Tree("watched".into()));
    let mut all = engine.watch(Watched::Everything);
    let before = graphs.last_event("watched").unwrap();
    graphs.cancel("watched", None).await.unwrap();
    assert!(tree.has_grown().await);
    assert!(all.has_grown().await);
    assert!(graphs.last_event("watched").unwrap() > before);
    engine.stop(Duration::ZERO).await;
    assert!(!tree.has_grown().await, "it has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_listed_by_name_and_read_in_any_version() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, graphs) = graphs(&folder).await;
    graphs
        .apply(&definition::read("b.yaml", "kind: workflow\nname: waits\nnodes: { b: {} }").definitions)
        .await
        .unwrap();
    let all = graphs.definitions(Some(DefinitionKind::Workflow), None, 10).unwrap();
    let named: Vec<(&str, u32)> = all.iter().map(|found| (&*found.name, found.version)).collect();
    assert_eq!(named, [("inner", 1), ("outer", 1), ("waits", 2)]);
    let rest = graphs.definitions(None, Some((DefinitionKind::Workflow, "inner")), 1).unwrap();
    assert_eq!(rest[0].name, "outer");
    assert_eq!(graphs.definitions(Some(DefinitionKind::Task), None, 10).unwrap(), []);
    let first = graphs.definition(DefinitionKind::Workflow, "waits", Some(1)).unwrap().unwrap();
    assert!(first.document.unwrap().as_str().contains("signal"));
    assert_eq!(graphs.definition(DefinitionKind::Workflow, "waits", None).unwrap().unwrap().version, 2);
    assert_eq!(graphs.definition(DefinitionKind::Workflow, "waits", Some(9)).unwrap(), None);
    assert_eq!(graphs.definition(DefinitionKind::Workflow, "nobody", None).unwrap(), None);
    engine.stop(Duration::ZERO).await;
}
