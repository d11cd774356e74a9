//! Controls: cancel, pause, resume, and callers that wait.

use super::Coordinator;
use crate::graph::protocol::{Controlled, Outcome, RunStatus, Waited};
use crate::graph::state::run::Waiters;
use crate::ids::RequestId;
use crate::limits;
use crate::turn::TurnError;

impl Coordinator<'_, '_> {
    /// Ends the run, for this reason.
    pub(in crate::graph) fn cancel(&mut self, reason: Option<String>) -> Result<(), TurnError> {
        if self.rows.kept.progress.is_ending() {
            return Ok(());
        }
        let reason = reason.map(|reason| crate::failure::bounded(&reason));
        self.begin_ending(Outcome::Cancelled { reason })
    }

    /// Lets what runs finish and begins nothing new.
    pub(in crate::graph) fn pause(&mut self) -> Result<Controlled, TurnError> {
        if self.rows.kept.progress.status == RunStatus::Running && !self.rows.kept.progress.is_ending() {
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
        let Waiters { first, next } = self.rows.kept.progress.waiters;
        // Whoever has waited longest may be gone for long; if not, it asks again.
        if next - first >= limits::RUN_WAITERS_MAX {
            let key = super::ending::waiter_key(first);
            if let Some(oldest) = self.rows.turn.get::<RequestId>(&key)? {
                self.rows.turn.reply(&oldest, &Waited::AskAgain)?;
            }
            self.rows.turn.delete(&key);
            self.rows.kept.progress.waiters.first += 1;
        }
        self.rows.kept.progress.waiters.next += 1;
        self.rows.turn.put(&super::ending::waiter_key(next), request)
    }
}
