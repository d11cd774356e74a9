//! The end of a run: whether it is over, and who is told.
//!
//! A run that fails or is cancelled ends in two steps: first it is decided how, which makes everything that still comes in of no interest;
//! then, when all that was active is swept, it is told.

use super::{Coordinator, Ready};
use crate::expression::Reads;
use crate::failure::Failure;
use crate::graph::decision::Decision;
use crate::graph::planning::completion;
use crate::graph::protocol::{Letter, Outcome, Start, Waited};
use crate::graph::state::run::{OUTCOME, Waiters};
use crate::ids::RequestId;
use crate::turn::{Turn, TurnError};

/// Where callers are kept that wait for the end.
const WAITERS: &str = "waiter/";

pub(super) fn waiter_key(number: u64) -> String {
    format!("{WAITERS}{number:010}")
}

impl Coordinator<'_, '_> {
    /// The run fails.
    pub(in crate::graph) fn fail_run(&mut self, failure: Failure) -> Result<(), TurnError> {
        if self.rows.kept.progress.is_ending() {
            return Ok(());
        }
        self.trace(&Decision::FailRun { failure: failure.clone() })?;
        self.begin_ending(Outcome::Failed(failure))
    }

    /// The run fails because one of its inputs cannot be processed. That input may have been the turn that the run has asked itself for.
    pub(in crate::graph) fn fail_after_dead_letter(&mut self, failure: Failure) -> Result<(), TurnError> {
        self.rows.kept.progress.is_continued = false;
        self.fail_run(failure)
    }

    /// Decides how the run ends, and cancels what is active.
    pub(super) fn begin_ending(&mut self, outcome: Outcome) -> Result<(), TurnError> {
        self.rows.kept.progress.ending = Some(outcome);
        for ready in std::mem::take(&mut self.ready) {
            match ready {
                Ready::Enter(mut token) => self.rows.save_token(&mut token)?,
                Ready::Open(_) => {}
            }
        }
        self.cancel_active(None)
    }

    /// Ends the run if nothing is left to do in it.
    pub(super) fn end_if_over(&mut self) -> Result<(), TurnError> {
        let progress = &self.rows.kept.progress;
        if progress.ended_at.is_some() || !progress.sweeps.is_empty() {
            return Ok(());
        }
        if progress.ending.is_none() {
            if self.has_steps() || !progress.root.is_empty() {
                return Ok(());
            }
            self.complete_run()?;
        }
        match self.rows.kept.progress.ending.take() {
            Some(outcome) => self.end_run(&outcome),
            None => Ok(()),
        }
    }

    fn complete_run(&mut self) -> Result<(), TurnError> {
        let workflow = self.workflow.clone();
        let reads: Reads = completion::reads(&workflow);
        let scope = self.scope_of_lineage(&[], &reads)?;
        let decision = completion::decide(&workflow, &scope);
        self.trace(&decision)?;
        self.rows.kept.progress.ending = Some(match decision {
            Decision::CompleteRun { output } => Outcome::Completed(output.to_json()?),
            Decision::FailRun { failure } => Outcome::Failed(failure),
            Decision::CreateToken { .. }
            | Decision::BatchCreateTokens { .. }
            | Decision::CheckSynchronization { .. }
            | Decision::CreateFanInToken { .. }
            | Decision::ActivateFanInToken { .. }
            | Decision::CloseGroup { .. }
            | Decision::UpdateTokenStatus { .. }
            | Decision::MarkForDispatch { .. }
            | Decision::ApplyNodeOutput { .. }
            | Decision::SetContext { .. } => unreachable!("completion does not decide {}", decision.event_type()),
        });
        Ok(())
    }

    /// Writes how the run ended, and tells everybody who waits for it.
    fn end_run(&mut self, outcome: &Outcome) -> Result<(), TurnError> {
        let now = self.rows.turn.now();
        self.rows.turn.put(OUTCOME, outcome)?;
        self.rows.kept.progress.status = outcome.status();
        self.rows.kept.progress.ended_at = Some(now);
        if self.workflow.timeout_ms.is_some() {
            self.clear_timer(super::RUN_TIMER)?;
        }
        self.settle_artifacts(outcome)?;
        match outcome {
            Outcome::Completed(output) => {
                self.emit("workflow.completed", &Ended { output: Some(output), ..Ended::default() })?
            }
            Outcome::Failed(error) => {
                self.emit("workflow.failed", &Ended { error: Some(error), ..Ended::default() })?
            }
            Outcome::Cancelled { reason } => {
                self.emit("workflow.cancelled", &Ended { reason: reason.as_deref(), ..Ended::default() })?;
            }
        }
        self.tell(outcome)
    }

    fn settle_artifacts(&mut self, outcome: &Outcome) -> Result<(), TurnError> {
        match outcome {
            Outcome::Completed(_) => {
                for artifact in self.rows.artifact_names()? {
                    self.emit("artifact.committed", &serde_json::json!({ "artifact": artifact }))?;
                }
                Ok(())
            }
            Outcome::Failed(_) | Outcome::Cancelled { .. } => self.rows.drop_artifacts(),
        }
    }

    fn tell(&mut self, outcome: &Outcome) -> Result<(), TurnError> {
        if let Some(parent) = self.rows.kept.facts.parent.clone() {
            let ended = Letter::ChildEnded { token: parent.token, attempt: parent.attempt, outcome: outcome.clone() };
            self.rows.turn.send(&parent.actor, &ended.versioned())?;
        }
        Ok(())
    }

    /// Answers those who wait for the end of a run that has ended, as many as the turn has room for.
    pub(super) fn answer_waiters(&mut self) -> Result<(), TurnError> {
        if self.rows.kept.progress.ended_at.is_none() || !self.has_waiters() {
            return Ok(());
        }
        let outcome: Option<Outcome> = self.rows.turn.get(OUTCOME)?;
        let outcome = outcome.ok_or_else(|| TurnError::failed("the run's outcome is missing from its storage"))?;
        let answer = Waited::Ended(outcome);
        while self.has_waiters() && !self.is_full() {
            let key = waiter_key(self.rows.kept.progress.waiters.first);
            if let Some(waiter) = self.rows.turn.get::<RequestId>(&key)? {
                self.rows.turn.reply(&waiter, &answer)?;
            }
            self.rows.turn.delete(&key);
            self.rows.kept.progress.waiters.first += 1;
        }
        Ok(())
    }

    /// Whether anybody waits for the end.
    pub(super) fn has_waiters(&self) -> bool {
        let Waiters { first, next } = self.rows.kept.progress.waiters;
        first < next
    }
}

/// The facts of the last event.
#[derive(Default, serde::Serialize)]
struct Ended<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a crate::json::Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// A run that could not even begin tells the run that asked for it, which would wait for ever otherwise.
pub(in crate::graph) fn tell_parent_of_failed_start(
    turn: &mut Turn<'_>,
    start: &Start,
    failure: Failure,
) -> Result<(), TurnError> {
    let Some(parent) = &start.parent else { return Ok(()) };
    let outcome = Outcome::Failed(failure);
    let ended = Letter::ChildEnded { token: parent.token, attempt: parent.attempt, outcome };
    turn.send(&parent.actor, &ended.versioned())
}
