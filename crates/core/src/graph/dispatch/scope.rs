//! What a token's expressions see.

use std::borrow::Cow;

use super::Coordinator;
use crate::definition::workflow::{ContextRoot, Count, TransitionIndex};
use crate::expression::{Fields, Reads, Scope, Value};
use crate::graph::token::{NodeError, Place, Token};
use crate::turn::TurnError;

impl Coordinator<'_, '_> {
    /// The variables that `reads` names, as `token` sees them; `result` is that of its node, once there is one.
    pub(super) fn scope(
        &mut self,
        token: &Token,
        reads: &Reads,
        result: Option<&Value>,
    ) -> Result<Scope<'static>, TurnError> {
        let mut scope = self.scope_of_lineage(&token.lineage, reads)?;
        if reads.0.contains_key("error")
            && let Some(error) = &token.error
        {
            scope.set("error", error_value(error));
        }
        if let Some(result) = result
            && reads.0.contains_key("result")
        {
            scope.set("result", result.clone());
        }
        Ok(scope)
    }

    /// The variables that `reads` names, as a branch sees them; as the run sees them outside of all branches.
    pub(super) fn scope_of_lineage(&mut self, lineage: &[Place], reads: &Reads) -> Result<Scope<'static>, TurnError> {
        let mut scope = Scope::default();
        for (name, fields) in &reads.0 {
            let value = match name.as_str() {
                "input" => Some(self.rows.kept.input.clone()),
                "state" => Some(self.rows.fields(lineage, ContextRoot::State, fields)?),
                "output" => Some(self.rows.fields(lineage, ContextRoot::Output, fields)?),
                "branch" => lineage.last().map(branch_value),
                "run" => Some(self.run_value(fields)),
                // These belong to a token, see `scope`.
                "error" | "result" => None,
                "item" => self.item(lineage, None)?,
                name => self.item(lineage, Some(name))?,
            };
            if let Some(value) = value {
                scope.set(Cow::Owned(name.clone()), value);
            }
        }
        Ok(scope)
    }

    /// What the innermost `foreach` gave this branch; of those that call it `name`, if a name is given.
    fn item(&mut self, lineage: &[Place], name: Option<&str>) -> Result<Option<Value>, TurnError> {
        for place in lineage.iter().rev() {
            let Some(group) = self.rows.group(place.group)? else { continue };
            let opened_by = TransitionIndex(group.opened_by(place.index));
            let is_wanted = match &self.workflow.transition(opened_by).count {
                Count::Foreach { name: called, .. } => name.is_none_or(|name| called.as_deref() == Some(name)),
                Count::One | Count::Spawn(_) => false,
            };
            if is_wanted {
                return self.rows.item(place.group, place.index).map(Some);
            }
        }
        Ok(None)
    }

    fn run_value(&self, wanted: &Fields) -> Value {
        let facts = &self.rows.kept.facts;
        let is_wanted = |name: &str| match wanted {
            Fields::All => true,
            Fields::Only(names) => names.contains(name),
        };
        let mut fields: Vec<(&str, Value)> = Vec::with_capacity(3);
        if is_wanted("id") {
            fields.push(("id", self.rows.turn.actor().name().into()));
        }
        if is_wanted("workflow") {
            fields.push(("workflow", Value::String(facts.workflow.clone())));
        }
        if is_wanted("started_at") {
            fields.push(("started_at", facts.started_at.rfc3339().into()));
        }
        Value::object(fields)
    }
}

fn branch_value(place: &Place) -> Value {
    Value::object([("index", place.index.into()), ("total", Value::from(place.total))])
}

fn error_value(NodeError { failure, node }: &NodeError) -> Value {
    let details = failure.details.as_ref().and_then(|details| Value::from_json(details).ok()).unwrap_or_default();
    Value::object([
        ("type", Value::from(failure.kind.name())),
        ("message", failure.message.as_str().into()),
        ("retryable", failure.retryable.into()),
        ("node", Value::String(node.clone())),
        ("details", details),
    ])
}
