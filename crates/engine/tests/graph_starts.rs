//! What is said about a run that cannot be started.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

use std::sync::Arc;

use steadfast::Engine;
use steadfast::core::definition;
use steadfast::core::json::Json;
use steadfast::core::limits::VALUE_DEPTH_MAX;
use steadfast::graph::{Graphs, Run, RunError};
use steadfast::store::memory::MemoryStore;

const WORKFLOW: &str = "
kind: workflow
name: names-others
nodes:
  first: { task: nobody-has-this }
";

async fn graphs() -> Graphs {
    let graphs = Graphs::of(&Engine::on(Arc::new(MemoryStore::default())).graphs().start().unwrap());
    let read = definition::read("", WORKFLOW);
    assert_eq!(read.definitions.len(), 1, "{:?}", read.problems);
    graphs.apply(&read.definitions).await.unwrap();
    graphs
}

#[tokio::test]
async fn something_named_that_is_not_in_the_store_is_said_to_be_missing() {
    let error = graphs().await.start(Run::new("names-others", Json::null())).await.unwrap_err();
    assert!(matches!(error, RunError::UnknownReference { .. }), "{error:?}");
    assert_eq!(error.to_string(), "task `nobody-has-this`, named by `names-others`, is not in the store");
}

#[tokio::test]
async fn an_input_that_cannot_be_a_value_does_not_fit() {
    let depth = VALUE_DEPTH_MAX + 1;
    let deep = Json::parse(&format!("{}{}", "[".repeat(depth), "]".repeat(depth))).unwrap();
    for input in [deep, Json::from_stored("{broken")] {
        let error = graphs().await.start(Run::new("names-others", input)).await.unwrap_err();
        assert!(matches!(error, RunError::InvalidInput { .. }), "{error:?}");
    }
}
