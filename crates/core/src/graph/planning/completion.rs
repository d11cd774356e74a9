//! Completion: whether a run is over, and with which output.

use crate::definition::workflow::Workflow;
use crate::expression::{Reads, Scope, Value};
use crate::failure::{Failure, FailureKind};
use crate::graph::decision::Decision;
use crate::graph::planning::conditions;
use crate::schema::Violation;

/// What a run that has nothing left to do ends with.
#[must_use]
pub fn decide(workflow: &Workflow, scope: &Scope<'_>) -> Decision {
    match output(workflow, scope) {
        Ok(output) => Decision::CompleteRun { output },
        Err(failure) => Decision::FailRun { failure },
    }
}

/// Everything that [`decide`] may look at in the scope.
#[must_use]
pub fn reads(workflow: &Workflow) -> Reads {
    match &workflow.result {
        Some(result) => result.reads().into_owned(),
        None => {
            let mut reads = Reads::default();
            reads.add_all("output");
            reads
        }
    }
}

fn output(workflow: &Workflow, scope: &Scope<'_>) -> Result<Value, Failure> {
    let output = match &workflow.result {
        Some(result) => result.render(scope).map_err(|error| conditions::failure("`result`", &error))?.value,
        None => scope.get("output").cloned().unwrap_or_default(),
    };
    if let Some(schema) = &workflow.output {
        schema.check(&output).map_err(|violations| {
            Failure::last(FailureKind::InvalidOutput, &format!("the run's output {}", explained(&violations)))
        })?;
    }
    Ok(output)
}

/// What a value violates, in a sentence that begins after the value's name.
#[must_use]
pub fn explained(violations: &[Violation]) -> String {
    let each: Vec<String> = violations
        .iter()
        .map(
            |Violation { pointer, message }| {
                if pointer.is_empty() { message.clone() } else { format!("at `{pointer}`: {message}") }
            },
        )
        .collect();
    format!("does not fit its schema: {}", each.join("; "))
}
