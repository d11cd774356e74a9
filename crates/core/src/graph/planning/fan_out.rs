//! Fan-out: how many tokens the transitions taken make, and which of them are branches of one group.

use std::sync::Arc;

use crate::definition::workflow::{Count, Transition, TransitionIndex, Workflow};
use crate::expression::{Expression, Scope, Value};
use crate::failure::{Failure, FailureKind};
use crate::graph::decision::{Decision, Part};
use crate::graph::planning::conditions;
use crate::limits;

/// What the transitions taken in one tier do. Those that name the same group open one instance of it.
pub fn decide(workflow: &Workflow, taken: &[TransitionIndex], scope: &Scope<'_>) -> Result<Vec<Decision>, Failure> {
    let mut decisions: Vec<Decision> = Vec::with_capacity(taken.len());
    for &index in taken {
        let transition = workflow.transition(index);
        let node = workflow.node(transition.to).name.clone();
        if transition.join.is_some() {
            decisions.push(Decision::CheckSynchronization { transition: index.0, node });
        } else if transition.opens_a_group() {
            let part = part(workflow, index, transition, scope)?;
            match instance_of(&mut decisions, transition.group.as_ref()) {
                Some(parts) => parts.push(part),
                None => decisions.push(Decision::BatchCreateTokens {
                    group: transition.group.clone(),
                    parts: vec![part],
                    join: transition.closed_by.map(|join| join.0),
                }),
            }
        } else {
            decisions.push(Decision::CreateToken { transition: index.0, node });
        }
    }
    Ok(decisions)
}

/// The instance of `group` that these decisions open already. A group without a name is never shared.
fn instance_of<'a>(decisions: &'a mut [Decision], group: Option<&Arc<str>>) -> Option<&'a mut Vec<Part>> {
    let group = group?;
    decisions.iter_mut().find_map(|decision| {
        let Decision::BatchCreateTokens { group: Some(known), parts, .. } = decision else { return None };
        (known == group).then_some(parts)
    })
}

fn part(
    workflow: &Workflow,
    index: TransitionIndex,
    transition: &Transition,
    scope: &Scope<'_>,
) -> Result<Part, Failure> {
    let (count, items) = match &transition.count {
        Count::One => (1, None),
        Count::Spawn(count) => {
            let place = conditions::place(workflow, transition, "spawn");
            (spawn_count(count, &place, scope)?, None)
        }
        Count::Foreach { items, .. } => {
            let place = conditions::place(workflow, transition, "foreach");
            let items = items.evaluate(scope).map_err(|error| conditions::failure(&place, &error))?;
            (length(&items, &place, transition)?, Some(items))
        }
    };
    within_bounds(count, workflow, transition)?;
    Ok(Part { transition: index.0, count, items })
}

fn spawn_count(count: &Expression, place: &str, scope: &Scope<'_>) -> Result<u64, Failure> {
    let value = count.evaluate(scope).map_err(|error| conditions::failure(place, &error))?;
    let whole = match value {
        Value::Int(count) => u64::try_from(count).ok(),
        Value::UInt(count) => Some(count),
        Value::Float(count) if count.fract() == 0.0 && count >= 0.0 => Some(count as u64),
        Value::Null | Value::Bool(_) | Value::Float(_) | Value::String(_) | Value::List(_) | Value::Object(_) => None,
    };
    whole.ok_or_else(|| {
        let message = format!("{place}: `{}` gave {value}, expected a whole number that is not negative", count.text());
        Failure::last(FailureKind::Expression, &message)
    })
}

fn length(items: &Value, place: &str, transition: &Transition) -> Result<u64, Failure> {
    match items {
        Value::List(items) => Ok(items.len() as u64),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::String(_)
        | Value::Object(_) => {
            let text = transition.count.expression().map_or("", Expression::text);
            let message = format!("{place}: `{text}` gave {}, expected a list", items.type_name());
            Err(Failure::last(FailureKind::Expression, &message))
        }
    }
}

fn within_bounds(count: u64, workflow: &Workflow, transition: &Transition) -> Result<(), Failure> {
    if count <= limits::BRANCHES_MAX {
        return Ok(());
    }
    let (from, to) = (&workflow.node(transition.from).name, &workflow.node(transition.to).name);
    let message = format!(
        "the fan-out from `{from}` to `{to}` has {count} branches, the limit is {} (`BRANCHES_MAX`)",
        limits::BRANCHES_MAX
    );
    Err(Failure::last(FailureKind::InvalidInput, &message))
}
