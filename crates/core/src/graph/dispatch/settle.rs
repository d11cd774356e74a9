//! A token's work has ended: well, badly, or to be tried again.

use super::arrive::decided;
use super::enter::task_name;
use super::{Coordinator, Trouble, error_of, named_after};
use crate::definition::workflow::{Outcome, Work};
use crate::expression::Value;
use crate::failure::{Failure, FailureKind};
use crate::graph::decision::Decision;
use crate::graph::planning::completion::explained;
use crate::graph::planning::routing::{self, Done};
use crate::graph::state::artifacts::Artifact;
use crate::graph::token::{Place, Status, Token, TokenId};
use crate::limits;
use crate::retry::{AfterFailure, Retry};
use crate::turn::{TaskResult, TurnError};

impl Coordinator<'_, '_> {
    /// Takes the result of a task.
    pub(in crate::graph) fn on_task_result(&mut self, result: &TaskResult) -> Result<(), TurnError> {
        let id: Option<u64> = result.task.as_str().parse().ok();
        let Some(token) = self.active(id.map(TokenId))? else { return Ok(()) };
        if token.status != Status::Dispatched && token.status != Status::Executing {
            return Ok(());
        }
        self.attempt_with(token, |this, token| match &result.outcome {
            Ok(result) => this.finish_task(token, Value::from_json(result)?),
            Err(failure) => {
                this.emit_task_failed(token, failure)?;
                this.after_failed_attempt(token, failure.clone())
            }
        })
    }

    /// A token that something can still happen to. Nothing when it is over, or inside of what is over.
    pub(super) fn active(&mut self, id: Option<TokenId>) -> Result<Option<Token>, TurnError> {
        let Some(id) = id.filter(|_| !self.rows.kept.progress.is_ending()) else { return Ok(None) };
        let Some(token) = self.rows.take_token(id)?.filter(|token| !token.status.is_terminal()) else {
            return Ok(None);
        };
        if let Some(place) = token.branch() {
            if self.rows.group(place.group)?.is_none() {
                return Ok(None);
            }
            // Read before anything changes: of a branch without a row, its first token tells whether it is over.
            self.rows.branch(Some(place))?;
        }
        let is_over = self.is_over_around(&token.lineage)?;
        Ok((!is_over).then_some(token))
    }

    /// Whether a branch is over that `lineage` is inside of. What a fired join left behind is swept in pieces; what was not swept yet is over
    /// all the same.
    pub(super) fn is_over_around(&mut self, lineage: &[Place]) -> Result<bool, TurnError> {
        if self.rows.kept.progress.sweeps.is_empty() {
            return Ok(false);
        }
        for place in lineage {
            if self.rows.group(place.group)?.is_none() || self.rows.branch(Some(*place))?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checks a task's result and completes its token.
    pub(super) fn finish_task(&mut self, token: &mut Token, value: Value) -> Result<(), Trouble> {
        let workflow = self.workflow.clone();
        if let Work::Task(reference) = &workflow.node(self.node_of(token)?).work {
            let task = self.task(reference)?;
            if let Some(schema) = &task.output
                && let Err(violations) = schema.check(&value)
            {
                let message = format!("the result of task `{}` {}", task.name, explained(&violations));
                let failure = Failure::retryable(FailureKind::InvalidOutput, &message);
                self.emit_task_failed(token, &failure)?;
                // What was computed in place gives the same again.
                let is_computed = token.status == Status::Pending;
                return if is_computed {
                    Err(Trouble::Token(failure))
                } else {
                    self.after_failed_attempt(token, failure)
                };
            }
        }
        let was_computed_in_place = token.status == Status::Pending;
        if !was_computed_in_place {
            self.emit_task_completed(token)?;
            self.stage_artifacts(token, &value)?;
        }
        self.complete(token, &value)
    }

    /// Puts the result into the context, completes the token and goes on from it.
    pub(super) fn complete(&mut self, token: &mut Token, result: &Value) -> Result<(), Trouble> {
        self.apply_output(token, result)?;
        let was_begun = token.status != Status::Pending;
        self.change_status(token, Status::Completed)?;
        self.emit_ended(token, None)?;
        let decisions = self.decide_routing(token, Outcome::Success, Some(result));
        let is_told = token.shares_row && decisions.as_ref().is_ok_and(|decisions| self.only_arrives(token, decisions));
        match is_told {
            false => self.rows.save_token(token)?,
            true if was_begun => {}
            true => self.rows.share_row(token)?,
        }
        let followed = self.follow(token, &decisions?, Some(result), None);
        // Maybe nothing has arrived that would tell that it is done.
        if is_told && followed.is_err() {
            self.rows.save_token(token)?;
        }
        followed
    }

    /// What the node's `output:` writes.
    fn apply_output(&mut self, token: &Token, result: &Value) -> Result<(), Trouble> {
        let workflow = self.workflow.clone();
        let node = workflow.node(self.node_of(token)?);
        if node.output.is_empty() {
            return Ok(());
        }
        let mut writes = Vec::with_capacity(node.output.len());
        for assignment in &node.output {
            let value = self.render(token, &assignment.value, Some(result), "output")?.value;
            writes.push((&assignment.to, value));
        }
        self.write_all(&token.lineage, &writes).map_err(|problem| problem.of_token())?;
        self.trace_with(|| Decision::ApplyNodeOutput { token: token.id, writes: decided(&writes) })?;
        Ok(self.emit_written(Some(token.id), &writes)?)
    }

    /// Tries again if the policy says so, otherwise gives up.
    pub(super) fn after_failed_attempt(&mut self, token: &mut Token, failure: Failure) -> Result<(), Trouble> {
        let failure = with_bounded_details(failure);
        let policy = self.retry_policy(token)?.filter(|_| failure.retryable);
        let key = format!("{}/{}", self.rows.turn.actor(), task_name(token));
        let now = self.rows.turn.now();
        let next = policy.map_or(AfterFailure::GiveUp, |policy| policy.after_failure(&key, token.attempt, now));
        match next {
            AfterFailure::GiveUp => Err(Trouble::Token(failure)),
            AfterFailure::RetryAt(due) => {
                let due = due.max(now.plus_ms(asked_to_wait_ms(&failure)));
                self.change_status(token, Status::Retrying)?;
                self.rows.save_token(token)?;
                self.set_timer(&super::timers::retry(token.id), due)?;
                Ok(self.emit_retry(token, due)?)
            }
        }
    }

    fn retry_policy(&self, token: &Token) -> Result<Option<Retry>, TurnError> {
        let node = self.workflow.node(self.node_of(token)?);
        match (&node.retry, &node.work) {
            (Some(retry), _) => Ok(Some(retry.clone())),
            (None, Work::Task(reference)) => Ok(self.task(reference)?.retry.clone()),
            (None, Work::Pass | Work::Run(_) | Work::Workflow(_) | Work::Wait(_) | Work::Sleep(_)) => Ok(None),
        }
    }

    /// All attempts are used up: an error transition takes over, or the branch fails, or the run.
    pub(super) fn give_up(&mut self, mut token: Token, failure: Failure) -> Result<(), Trouble> {
        self.end_token(&mut token, &failure)?;
        let error = error_of(&failure, &token);
        token.error = Some(error.clone());
        let decisions = self.decide_routing(&token, Outcome::Error, None)?;
        if decisions.is_empty() {
            self.forget(&token)?;
            return self.fail_branch(&token, named_after(failure, &token));
        }
        self.follow(&token, &decisions, None, Some(&error))
    }

    /// Marks a token as failed.
    pub(super) fn end_token(&mut self, token: &mut Token, failure: &Failure) -> Result<(), TurnError> {
        let status = if failure.kind == FailureKind::Timeout { Status::TimedOut } else { Status::Failed };
        self.change_status(token, status)?;
        self.rows.save_token(token)?;
        self.emit_ended(token, Some(failure))
    }

    pub(super) fn change_status(&mut self, token: &mut Token, status: Status) -> Result<(), TurnError> {
        token.change(status, self.rows.turn.now())?;
        self.trace(&Decision::UpdateTokenStatus { token: token.id, status })
    }

    fn decide_routing(
        &mut self,
        token: &Token,
        outcome: Outcome,
        result: Option<&Value>,
    ) -> Result<Vec<Decision>, Trouble> {
        let workflow = self.workflow.clone();
        let node = self.node_of(token)?;
        if workflow.outgoing(node).is_empty() {
            return Ok(Vec::new());
        }
        let done = Done { node, outcome, iterations: &token.iterations };
        let scope = self.scope(token, &routing::reads(&workflow, &done), result)?;
        let decisions = routing::decide(&workflow, &done, &scope).map_err(Trouble::Run)?;
        for decision in &decisions {
            self.trace(decision)?;
        }
        Ok(decisions)
    }

    /// A result's field `artifacts` hands over named blobs.
    fn stage_artifacts(&mut self, token: &Token, result: &Value) -> Result<(), Trouble> {
        let Some(Value::Object(artifacts)) = result.get("artifacts") else { return Ok(()) };
        for (name, content) in artifacts.iter() {
            if name.is_empty() || name.len() > limits::ID_BYTES_MAX {
                let message = format!(
                    "the artifact name `{name}` has {} bytes, allowed are 1 to {}",
                    name.len(),
                    limits::ID_BYTES_MAX
                );
                return Err(Trouble::Token(Failure::last(FailureKind::InvalidOutput, &message)));
            }
            let artifact = Artifact {
                node: token.node.clone(),
                token: token.id,
                at: self.rows.turn.now(),
                content: content.clone(),
            };
            if !self.rows.stage(name, &artifact)? {
                let message = format!("the run has {} artifacts already (`ARTIFACTS_MAX`)", limits::ARTIFACTS_MAX);
                return Err(Trouble::Token(Failure::last(FailureKind::InvalidOutput, &message)));
            }
            self.emit(
                "artifact.staged",
                &serde_json::json!({ "artifact": name, "node": token.node, "token": token.id }),
            )?;
        }
        Ok(())
    }
}

/// A failure without details that are too long to go with every token that comes after.
fn with_bounded_details(mut failure: Failure) -> Failure {
    if let Some(details) = failure.details.take_if(|details| details.bytes() > limits::FAILURE_DETAILS_BYTES_MAX) {
        failure.details = crate::json::Json::encode(&serde_json::json!({ "omitted_bytes": details.bytes() })).ok();
    }
    failure
}

/// How long whoever was called asks us to wait, as `Retry-After` does.
fn asked_to_wait_ms(failure: &Failure) -> u64 {
    let details = failure.details.as_ref().and_then(|details| Value::from_json(details).ok());
    let asked = details.as_ref().and_then(|details| details.get("retry_after_ms")).and_then(Value::as_i64);
    asked.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0).min(limits::RETRY_AFTER_MS_MAX)
}
