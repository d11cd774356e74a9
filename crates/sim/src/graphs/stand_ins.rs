//! What tasks give in a simulation: mocks what they say, and others what a mock of their output would.
//!
//! Owns what stands in for the outside. Nothing here depends on when a task runs or which number its token has: the same work gives the same,
//! so that a difference between two outcomes comes from the workflow.

use steadfast::commit::TaskStart;
use steadfast_core::definition::workflow::Work;
use steadfast_core::definition::{Definition, DefinitionKind};
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::graph::mock::{Mocked, Specification, outcome};
use steadfast_core::graph::task_input::TaskInput;
use steadfast_core::graph::view;
use steadfast_core::ids::stable_hash;
use steadfast_core::json::Json;
use steadfast_store::Reader;

use super::book::Book;
use crate::disk::{OnDisk, text};

/// Of so many stand-ins one fails its first attempt.
const FAILING_ONE_IN: u64 = 6;

/// What a task of a run gives.
pub(super) fn outcome_of(
    book: &Book,
    seed: u64,
    task: &TaskStart,
    reader: &dyn Reader,
) -> Result<Result<Json, Failure>, String> {
    let input: TaskInput = task.input.decode().map_err(text)?;
    let key = format!("{}/{}/{}", input.node, input.specification, input.input);
    if &*task.executor == "mock" {
        return Ok(match input.specification.decode::<Specification>() {
            Ok(specification) => in_time(&input, outcome(&specification, &key, input.attempt)),
            Err(error) => Err(Failure::last(FailureKind::InvalidInput, &error.to_string())),
        });
    }
    let chance = stable_hash(format!("{seed}/{key}").as_bytes());
    if input.attempt == 1 && chance.is_multiple_of(FAILING_ONE_IN) {
        let message = format!("the simulated `{}` fails its first attempt", task.executor);
        return Ok(Err(Failure::retryable(FailureKind::TaskFailed, &message)));
    }
    let specification = match schema_of(book, task, &input.node, reader)? {
        Some(schema) => Specification { schema: Some(schema), ..Specification::default() },
        None => Specification { value: Some(plain(&task.executor)), ..Specification::default() },
    };
    // As if it were the first attempt: a retry must not change what comes out.
    Ok(outcome(&specification, &key, 1).outcome)
}

/// What comes later than it may is a failure, as the engine has it.
fn in_time(input: &TaskInput, mocked: Mocked) -> Result<Json, Failure> {
    match input.timeout_ms {
        Some(ms) if mocked.delay_ms > ms => {
            Err(Failure::retryable(FailureKind::Timeout, &format!("the task took longer than {ms}ms")))
        }
        Some(_) | None => mocked.outcome,
    }
}

/// What a task gives that says nothing about it.
fn plain(executor: &str) -> serde_json::Value {
    match executor {
        "http" => serde_json::json!({ "status": 200, "headers": {}, "body": null }),
        _ => serde_json::Value::Null,
    }
}

/// The schema of what the task at a node gives.
fn schema_of(
    book: &Book,
    task: &TaskStart,
    node: &str,
    reader: &dyn Reader,
) -> Result<Option<serde_json::Value>, String> {
    let storage = OnDisk { actor: &task.actor, reader };
    let Some(run) = view::run(&storage, task.actor.name()).map_err(text)? else { return Ok(None) };
    let Some(definition) = book.find(DefinitionKind::Workflow, &run.workflow) else { return Ok(None) };
    let Definition::Workflow(workflow) = &**definition else { return Ok(None) };
    let work = workflow.find(node).map(|node| &workflow.node(node).work);
    Ok(match work {
        Some(Work::Task(reference)) => book.output_of(&reference.name).cloned(),
        Some(Work::Pass | Work::Run(_) | Work::Workflow(_) | Work::Wait(_) | Work::Sleep(_)) | None => None,
    })
}
