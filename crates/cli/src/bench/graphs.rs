//! Graph workflows for benchmarks: an engine that runs them, and the workflows that are run.
//!
//! Owns what the benchmarks of graphs have in common. Never measures.

use std::path::Path;

use anyhow::bail;
use steadfast::Engine;
use steadfast::graph::{Graphs, Run};
use steadfast_core::definition;
use steadfast_core::graph::protocol::Outcome;
use steadfast_core::json::Json;

use super::unless_unwell;

/// N mock branches, joined with `append`.
pub(super) const FAN_OUT: &str = r#"
kind: workflow
name: fanout
nodes:
  begin: {}
  branch:
    run: { mock: { value: "${branch.index}" } }
    output: { state.value: "${result}" }
  end: {}
transitions:
  - { from: begin, to: branch, spawn: input.width, group: branches }
  - { from: branch, to: end, join: { group: branches, merge: { from: state.value, into: state.values, strategy: append } } }
result: { count: "${size(state.values)}" }
"#;

/// Five mocks, one after the other.
pub(super) const LINE: &str = r#"
kind: workflow
name: line
nodes:
  one: { run: { mock: { value: 1 } }, output: { state.n: "${result}" } }
  two: { run: { mock: { value: "${state.n + 1}" } }, output: { state.n: "${result}" } }
  three: { run: { mock: { value: "${state.n + 1}" } }, output: { state.n: "${result}" } }
  four: { run: { mock: { value: "${state.n + 1}" } }, output: { state.n: "${result}" } }
  five: { run: { mock: { value: "${state.n + 1}" } }, output: { state.n: "${result}" } }
transitions:
  - { from: one, to: two }
  - { from: two, to: three }
  - { from: three, to: four }
  - { from: four, to: five }
result: "${state.n}"
"#;

/// One node that gives a value: a start and its end are one turn.
pub(super) const ONE: &str = r#"
kind: workflow
name: one
nodes:
  one: { run: { value: 1 }, output: { state.n: "${result}" } }
result: "${state.n}"
"#;

/// A workflow that calls itself until it is deep enough.
pub(super) const NEST: &str = r#"
kind: workflow
name: nest
nodes:
  begin: {}
  deeper:
    workflow: nest
    input: { depth: "${input.depth - 1}" }
    output: { state.levels: "${result.levels}" }
transitions:
  - { from: begin, to: deeper, when: input.depth > 0 }
result: { levels: "${state.levels == null ? 0 : state.levels + 1}" }
"#;

/// Opens an engine with one workflow on it.
pub(super) async fn open(store: &Path, workflow: &str) -> anyhow::Result<Engine> {
    let engine = Engine::open(store)?.graphs().start()?;
    apply(&engine, workflow).await?;
    Ok(engine)
}

/// Applies a workflow that is written in code.
pub(super) async fn apply(engine: &Engine, workflow: &str) -> anyhow::Result<()> {
    let read = definition::read("benchmark", workflow);
    if let Some(problem) = read.problems.first() {
        bail!("{problem}");
    }
    Graphs::of(engine).apply(&read.definitions).await?;
    Ok(())
}

/// Runs a workflow to its end. Its output.
pub(super) async fn run(engine: &Engine, run: Run) -> anyhow::Result<Json> {
    let graphs = Graphs::of(engine);
    let work = async {
        let (id, _) = graphs.start(run).await?;
        graphs.wait(&id).await
    };
    match unless_unwell(engine, work).await?? {
        Outcome::Completed(output) => Ok(output),
        Outcome::Failed(failure) => bail!("the run failed: {failure}"),
        Outcome::Cancelled { .. } => bail!("the run was cancelled"),
    }
}
