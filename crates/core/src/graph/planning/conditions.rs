//! Conditions: whether a transition is taken, and how an expression's error becomes a run's failure.

use crate::definition::workflow::{Transition, Workflow};
use crate::expression::{EvaluationError, Scope};
use crate::failure::{Failure, FailureKind};

/// Whether the transition's `when` holds; without one it does.
pub fn holds(workflow: &Workflow, transition: &Transition, scope: &Scope<'_>) -> Result<bool, Failure> {
    match &transition.when {
        None => Ok(true),
        Some(when) => when.decide(scope).map_err(|error| failure(&place(workflow, transition, "when"), &error)),
    }
}

/// A field of a transition, as a person would name it.
#[must_use]
pub fn place(workflow: &Workflow, transition: &Transition, field: &str) -> String {
    let (from, to) = (&workflow.node(transition.from).name, &workflow.node(transition.to).name);
    format!("`{field}` of the transition from `{from}` to `{to}`")
}

/// An expression that cannot be evaluated fails the run.
#[must_use]
pub fn failure(place: &str, error: &EvaluationError) -> Failure {
    Failure::last(FailureKind::Expression, &format!("{place}: {error}"))
}
