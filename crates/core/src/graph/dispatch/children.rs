//! Sub-workflows: runs that a run starts and waits for.

use sha2::{Digest, Sha256};

use super::events::ChildEvent;
use super::{Coordinator, Trouble};
use crate::definition::DefinitionKind;
use crate::definition::workflow::{NodeIndex, Reference, Work};
use crate::expression::Value;
use crate::failure::{Failure, FailureKind};
use crate::graph::actor::KIND;
use crate::graph::planning::completion::explained;
use crate::graph::protocol::{Letter, Outcome, Parent, Start};
use crate::graph::source::{SharedWorkflow, pinned};
use crate::graph::token::{Status, Token, TokenId};
use crate::ids::ActorId;
use crate::json::Json;
use crate::turn::TurnError;

impl Coordinator<'_, '_> {
    /// Starts a run for a token, and waits for it.
    pub(super) fn start_child(
        &mut self,
        token: &mut Token,
        index: NodeIndex,
        reference: &Reference,
    ) -> Result<(), Trouble> {
        let input = self.node_input(token, index)?;
        let facts = &self.rows.kept.facts;
        let (pins, tracing) = (facts.pins.clone(), facts.tracing);
        let version = pinned(&pins, DefinitionKind::Workflow, reference)?;
        let workflow = SharedWorkflow::find(self.definitions, &reference.name, version)?;
        if let Some(schema) = &workflow.input
            && let Err(violations) = schema.check(&input)
        {
            let message = format!("the input of workflow `{}` {}", reference.name, explained(&violations));
            return Err(Trouble::Token(Failure::last(FailureKind::InvalidInput, &message)));
        }
        let child = self.child_of(token)?;
        let parent = Parent {
            actor: self.rows.turn.actor().clone(),
            token: token.id,
            attempt: token.attempt,
            root: self.root(),
        };
        let start = Start {
            workflow: reference.name.clone(),
            version,
            pins,
            input: input.to_json()?,
            parent: Some(parent),
            tracing,
        };
        self.rows.turn.send(&child, &Letter::Start(start).versioned())?;
        let now = self.rows.turn.now();
        token.change(Status::WaitingForSubworkflow, now)?;
        self.rows.save_token(token)?;
        if let Some(timeout_ms) = self.workflow.node(index).timeout_ms {
            self.set_timer(&super::timers::timeout(token.id), now.plus_ms(timeout_ms))?;
        }
        Ok(self.emit_child(ChildEvent::Started, token, child.name(), &reference.name, None)?)
    }

    /// A child has told how it ended.
    pub(in crate::graph) fn on_child_ended(
        &mut self,
        token: TokenId,
        attempt: u32,
        outcome: &Outcome,
    ) -> Result<(), TurnError> {
        let is_waited_for = |token: &Token| token.status == Status::WaitingForSubworkflow && token.attempt == attempt;
        let Some(token) = self.active(Some(token))?.filter(is_waited_for) else { return Ok(()) };
        self.attempt_with(token, |this, token| {
            this.stop_timeout(token)?;
            let child = this.child_of(token)?;
            let workflow = this.named_by(token)?;
            match outcome {
                Outcome::Completed(output) => {
                    this.emit_child(ChildEvent::Completed, token, child.name(), &workflow, None)?;
                    this.complete(token, &Value::from_json(output)?)
                }
                Outcome::Failed(failure) => {
                    this.emit_child(ChildEvent::Failed, token, child.name(), &workflow, Some(failure))?;
                    this.after_failed_attempt(token, of_child(failure, child.name(), &workflow))
                }
                Outcome::Cancelled { reason } => {
                    this.emit_child(ChildEvent::Cancelled, token, child.name(), &workflow, None)?;
                    let reason = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
                    let message = format!("the run of workflow `{workflow}` was cancelled{reason}");
                    Err(Trouble::Token(Failure::last(FailureKind::Cancelled, &message)))
                }
            }
        })
    }

    /// Calls off the run that a token waits for.
    pub(super) fn cancel_child(&mut self, token: &Token) -> Result<(), TurnError> {
        let child = self.child_of(token)?;
        let workflow = self.named_by(token)?;
        self.emit_child(ChildEvent::Cancelled, token, child.name(), &workflow, None)?;
        self.rows.turn.send(&child, &Letter::Cancel { reason: None }.versioned())
    }

    /// The run that belongs to a token's attempt.
    pub(super) fn child_of(&self, token: &Token) -> Result<ActorId, TurnError> {
        child_of(self.rows.turn.actor().name(), &self.root(), token)
    }

    fn root(&self) -> std::sync::Arc<str> {
        self.rows.kept.facts.root(self.rows.turn.actor().name())
    }

    pub(super) fn stop_timeout(&mut self, token: &Token) -> Result<(), TurnError> {
        if self.workflow.node(self.node_of(token)?).timeout_ms.is_some() {
            self.clear_timer(&super::timers::timeout(token.id))?;
        }
        Ok(())
    }

    fn named_by(&self, token: &Token) -> Result<std::sync::Arc<str>, TurnError> {
        Ok(match &self.workflow.node(self.node_of(token)?).work {
            Work::Workflow(reference) => reference.name.clone(),
            Work::Pass | Work::Task(_) | Work::Run(_) | Work::Wait(_) | Work::Sleep(_) => token.node.clone(),
        })
    }
}

/// The run that belongs to a token's attempt, in the tree below `root`. Its id follows from the parent's and the token's, so that starting it twice
/// is starting it once; it is as long however deep the run is nested.
pub(in crate::graph) fn child_of(parent: &str, root: &str, token: &Token) -> Result<ActorId, TurnError> {
    let digest = Sha256::digest(format!("{parent}/{}/{}", token.id, token.attempt));
    let digest: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Ok(ActorId::new(KIND, &format!("{root}.{digest}"))?)
}

/// A child's failure as its parent tells it: the details say which run it was, and hold what the child said as the cause.
fn of_child(failure: &Failure, run: &str, workflow: &str) -> Failure {
    let mut details = serde_json::json!({ "run": run, "workflow": workflow });
    let cause = failure.details.as_ref().and_then(|details| details.decode::<serde_json::Value>().ok());
    // Of a long chain of causes only the last is kept: depth has no limit, details have.
    if let Some(mut cause) = cause {
        if let Some(fields) = cause.as_object_mut() {
            fields.remove("cause");
        }
        details["cause"] = cause;
    }
    Failure { details: Json::encode(&details).ok(), ..failure.clone() }
}
