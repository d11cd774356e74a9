//! Controls: cancel, pause, resume, and callers that wait.

use super::{Coordinator, Ready};
use crate::graph::protocol::{Controlled, Outcome, RunStatus, Waited};
use crate::graph::state::run::Waiters;
use crate::graph::token::{Status, Token, TokenId};
use crate::ids::RequestId;
use crate::limits;
use crate::turn::TurnError;

/// How the timers of retries begin.
const RETRIES: &str = "retry/";

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

    /// Takes up again what is stuck: begins retries that wait for their time, and dispatches tasks that are `lost`. Sets the alarm, and asks for the next turn if
    /// there is more to do, as if neither were there: twice does no harm. How many retries and tasks those were.
    pub(in crate::graph) fn recover(&mut self, lost: &[(TokenId, u32)]) -> Result<(u64, u64), TurnError> {
        self.rows.kept.progress.is_continued = false;
        self.has_moved_timers = true;
        let (mut retried, mut dispatched) = (0, 0);
        for name in crate::timers::named(self.rows.turn, RETRIES, limits::RECOVERED_MAX)? {
            let Ok(token) = name[RETRIES.len()..].parse().map(TokenId) else { continue };
            self.clear_timer(&name)?;
            self.on_retry(token)?;
            retried += 1;
        }
        for (id, attempt) in lost {
            // What was settled since has another status or attempt.
            let is_lost = |token: &Token| token.status == Status::Dispatched && token.attempt == *attempt;
            let Some(mut token) = self.active(Some(*id))?.filter(is_lost) else { continue };
            self.change_status(&mut token, Status::Retrying)?;
            self.change_status(&mut token, Status::Pending)?;
            // From here on it has a row of its own.
            self.rows.save_token(&mut token)?;
            self.ready.push(Ready::Enter(Box::new(token)));
            dispatched += 1;
        }
        Ok((retried, dispatched))
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
