//! Routing: which transitions a token takes that has completed or failed.
//!
//! Transitions of one priority are a tier; the first tier in which any is taken wins, and all that are taken in it fire.

use std::borrow::Cow;

use crate::definition::workflow::{NodeIndex, Outcome, TransitionIndex, Workflow};
use crate::expression::{Expression, Reads, Scope};
use crate::failure::Failure;
use crate::graph::decision::Decision;
use crate::graph::planning::{conditions, fan_out};
use crate::graph::token::Iterations;

/// A token that is done at its node.
pub struct Done<'a> {
    /// Where it is.
    pub node: NodeIndex,
    /// How it ended.
    pub outcome: Outcome,
    /// How often it and those before it took the transitions that have a bound.
    pub iterations: &'a Iterations,
}

/// What follows. Nothing when no transition is taken: the token ends.
pub fn decide(workflow: &Workflow, done: &Done<'_>, scope: &Scope<'_>) -> Result<Vec<Decision>, Failure> {
    let mut candidates = candidates(workflow, done);
    candidates.sort_by_key(|index| workflow.transition(*index).priority);
    for tier in candidates.chunk_by(|a, b| workflow.transition(*a).priority == workflow.transition(*b).priority) {
        let mut taken = Vec::new();
        for &index in tier {
            let transition = workflow.transition(index);
            if may_be_taken_again(transition.iterations_max, index, done.iterations)
                && conditions::holds(workflow, transition, scope)?
            {
                taken.push(index);
            }
        }
        if !taken.is_empty() {
            return fan_out::decide(workflow, &taken, scope);
        }
    }
    Ok(Vec::new())
}

/// Everything that [`decide`] may look at in the scope.
#[must_use]
pub fn reads<'w>(workflow: &'w Workflow, done: &Done<'_>) -> Cow<'w, Reads> {
    let expressions = candidates(workflow, done).into_iter().flat_map(|index| {
        let transition = workflow.transition(index);
        transition.when.iter().chain(transition.count.expression())
    });
    Reads::of_all(expressions.map(Expression::reads))
}

fn candidates(workflow: &Workflow, done: &Done<'_>) -> Vec<TransitionIndex> {
    let is_for = |index: &TransitionIndex| workflow.transition(*index).on == done.outcome;
    workflow.outgoing(done.node).iter().copied().filter(is_for).collect()
}

fn may_be_taken_again(bound: Option<u32>, index: TransitionIndex, iterations: &Iterations) -> bool {
    bound.is_none_or(|bound| iterations.get(&index.0).copied().unwrap_or(0) < bound)
}
