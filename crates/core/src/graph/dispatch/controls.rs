//! Controls: cancel, pause, resume, and callers that wait.

use super::Coordinator;
use crate::graph::protocol::{Controlled, Outcome, RunStatus};
use crate::ids::RequestId;
use crate::limits;
use crate::turn::TurnError;

impl Coordinator<'_, '_> {
    /// Ends the run, for this reason.
    pub(in crate::graph) fn cancel(&mut self, reason: Option<String>) -> Result<(), TurnError> {
        if self.rows.kept.progress.ending.is_some() {
            return Ok(());
        }
        self.begin_ending(Outcome::Cancelled { reason })
    }

    /// Lets what runs finish and begins nothing new.
    pub(in crate::graph) fn pause(&mut self) -> Result<Controlled, TurnError> {
        if self.rows.kept.progress.status == RunStatus::Running {
            self.rows.kept.progress.status = RunStatus::Paused;
            self.emit("workflow.paused", &serde_json::json!({}))?;
        }
        Ok(Controlled::Done(self.rows.kept.progress.status))
    }

    /// Goes on with what was held back.
    pub(in crate::graph) fn resume(&mut self) -> Result<Controlled, TurnError> {
        if self.rows.kept.progress.status == RunStatus::Paused {
            self.rows.kept.progress.status = RunStatus::Running;
            self.emit("workflow.resumed", &serde_json::json!({}))?;
        }
        Ok(Controlled::Done(self.rows.kept.progress.status))
    }

    /// Remembers somebody who is to be told how the run ended.
    pub(in crate::graph) fn add_waiter(&mut self, request: &RequestId) -> Result<(), TurnError> {
        if self.rows.kept.progress.waiters >= limits::RUN_WAITERS_MAX {
            let max = limits::RUN_WAITERS_MAX;
            return Err(TurnError::failed(format!("{max} callers wait for this run already (`RUN_WAITERS_MAX`)")));
        }
        let number = self.rows.kept.progress.waiters;
        self.rows.kept.progress.waiters += 1;
        self.rows.turn.put(&super::ending::waiter_key(number), request)
    }
}
