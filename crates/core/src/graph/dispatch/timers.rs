//! Deadlines of a run: retries, sleeps, timeouts of waits, of joins and of the run itself.

use super::{Coordinator, Ready};
use crate::definition::workflow::TransitionIndex;
use crate::failure::{Failure, FailureKind};
use crate::graph::planning::synchronization;
use crate::graph::token::{GroupId, Status, TokenId};
use crate::time::Timestamp;
use crate::turn::TurnError;

/// The timer of the whole run.
pub(in crate::graph) const RUN_TIMER: &str = "run";

/// Timers taken in one turn.
const TIMERS_AT_ONCE: usize = 1_000;

pub(in crate::graph) fn retry(token: TokenId) -> String {
    format!("retry/{token}")
}

pub(in crate::graph) fn sleep(token: TokenId) -> String {
    format!("sleep/{token}")
}

pub(in crate::graph) fn timeout(token: TokenId) -> String {
    format!("timeout/{token}")
}

pub(in crate::graph) fn join(group: GroupId) -> String {
    format!("join/{group}")
}

impl Coordinator<'_, '_> {
    pub(super) fn set_timer(&mut self, name: &str, due: Timestamp) -> Result<(), TurnError> {
        self.has_moved_timers = true;
        crate::timers::note(self.rows.turn, name, due)
    }

    pub(super) fn clear_timer(&mut self, name: &str) -> Result<(), TurnError> {
        self.has_moved_timers = true;
        crate::timers::forget(self.rows.turn, name)
    }

    /// Takes the timers that are due.
    pub(in crate::graph) fn on_alarm(&mut self) -> Result<(), TurnError> {
        for name in crate::timers::take_due(self.rows.turn, TIMERS_AT_ONCE)? {
            if name == RUN_TIMER {
                self.on_run_timeout()?;
                continue;
            }
            let Some((what, number)) = name.split_once('/') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "join" => self.on_join_timeout(GroupId(number))?,
                "retry" => self.on_retry(TokenId(number))?,
                "sleep" => self.on_wake(TokenId(number))?,
                "timeout" => self.on_timeout(TokenId(number))?,
                unknown => return Err(TurnError::failed(format!("a timer named `{unknown}` is not known"))),
            }
        }
        Ok(())
    }

    fn on_run_timeout(&mut self) -> Result<(), TurnError> {
        if self.rows.kept.progress.is_ending() {
            return Ok(());
        }
        let limit = self.workflow.timeout_ms.unwrap_or(0);
        let message = format!("the run took longer than {}", crate::duration::format_ms(limit));
        self.fail_run(Failure::last(FailureKind::Timeout, &message))
    }

    fn on_join_timeout(&mut self, id: GroupId) -> Result<(), TurnError> {
        if self.rows.kept.progress.is_ending() {
            return Ok(());
        }
        let workflow = self.workflow.clone();
        let Some(group) = self.rows.group(id)?.cloned() else { return Ok(()) };
        if self.is_over_around(&group.lineage)? {
            return Ok(());
        }
        let join = group.join.and_then(|join| workflow.transition(TransitionIndex(join)).join.as_ref());
        let Some(join) = join else { return Ok(()) };
        let decision = synchronization::on_timeout(join, &group.standing(id));
        self.attempt(|this| this.follow_synchronization(decision))
    }

    pub(super) fn on_retry(&mut self, id: TokenId) -> Result<(), TurnError> {
        let Some(mut token) = self.active(Some(id))?.filter(|token| token.status == Status::Retrying) else {
            return Ok(());
        };
        token.attempt += 1;
        self.change_status(&mut token, Status::Pending)?;
        self.ready.push(Ready::Enter(Box::new(token)));
        Ok(())
    }

    fn on_wake(&mut self, id: TokenId) -> Result<(), TurnError> {
        let Some(token) = self.active(Some(id))?.filter(|token| token.status == Status::Sleeping) else {
            return Ok(());
        };
        self.attempt_with(token, |this, token| this.complete(token, &crate::expression::Value::Null))
    }

    /// A wait or a run of another workflow took too long.
    fn on_timeout(&mut self, id: TokenId) -> Result<(), TurnError> {
        let Some(token) = self.active(Some(id))? else { return Ok(()) };
        self.attempt_with(token, |this, token| {
            let node = this.workflow.node(this.node_of(token)?);
            let limit = crate::duration::format_ms(node.timeout_ms.unwrap_or(0));
            match token.status {
                Status::WaitingForSignal => this.stop_waiting(token)?,
                Status::WaitingForSubworkflow => this.cancel_child(token)?,
                Status::Pending
                | Status::Dispatched
                | Status::Executing
                | Status::WaitingForSiblings
                | Status::WaitingForAgent
                | Status::Sleeping
                | Status::Retrying
                | Status::Completed
                | Status::Failed
                | Status::TimedOut
                | Status::Cancelled => return Ok(()),
            }
            let message = format!("node `{}` took longer than {limit}", token.node);
            let failure = Failure::retryable(FailureKind::Timeout, &message);
            this.after_failed_attempt(token, failure)
        })
    }
}
