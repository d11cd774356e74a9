//! Steps: what is ready is done, until nothing is or the turn is full. The rest waits on disk for the next turn.

use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::{Coordinator, Ready};
use crate::graph::protocol::RunStatus;
use crate::graph::token::{GroupId, TokenId};
use crate::limits;
use crate::turn::{TurnError, prefix_end};

/// Where steps wait that were put off.
const STEPS: &str = "step/";

/// A step that was put off.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// A token's work begins.
    Enter(TokenId),
    /// A group instance has branches without a token.
    Open(GroupId),
}

impl Coordinator<'_, '_> {
    /// Does what is ready while the turn has room. Nothing while the run is paused or ending.
    pub(super) fn take_steps(&mut self) -> Result<(), TurnError> {
        while !self.is_full() && self.may_begin_work() {
            let Some(ready) = self.ready.pop() else { return Ok(()) };
            match ready {
                Ready::Enter(mut token) => {
                    self.entered += 1;
                    if self.is_over_around(&token.lineage)? {
                        // It is in its branch's list, and is cancelled with the rest of it.
                        self.rows.save_token(&mut token)?;
                    } else {
                        self.attempt_with(*token, |this, token| this.enter(token))?;
                    }
                }
                Ready::Open(group) => self.attempt(|this| this.open_branch(group))?,
            }
        }
        Ok(())
    }

    /// Whether this turn has done as much as one may.
    pub(super) fn is_full(&self) -> bool {
        self.entered >= limits::TURN_TOKENS_MAX
            || self.handed_over >= limits::TURN_TASKS_MAX
            || self.rows.bytes() >= limits::TURN_BYTES_MAX / 4
    }

    fn may_begin_work(&self) -> bool {
        let progress = &self.rows.kept.progress;
        !progress.is_ending() && progress.status == RunStatus::Running
    }

    /// Writes down what is ready and was not done, what would have been next first.
    pub(super) fn put_off(&mut self) -> Result<(), TurnError> {
        for ready in std::mem::take(&mut self.ready).into_iter().rev() {
            let step = match ready {
                Ready::Enter(mut token) => {
                    self.rows.save_token(&mut token)?;
                    Step::Enter(token.id)
                }
                Ready::Open(group) => Step::Open(group),
            };
            let number = self.rows.kept.progress.steps.1;
            self.rows.kept.progress.steps.1 += 1;
            self.rows.turn.put(&format!("{STEPS}{number:010}"), &step)?;
        }
        Ok(())
    }

    /// Takes up what was put off, in the order in which it was, as much as a turn can hand out: what does not fit would be put off again. Nothing while the run is paused; when it ends, what was put off is
    /// forgotten: its tokens are cancelled with all others.
    pub(in crate::graph) fn take_up(&mut self) -> Result<(), TurnError> {
        self.rows.kept.progress.is_continued = false;
        let is_ending = self.rows.kept.progress.is_ending();
        if !is_ending && !self.may_begin_work() {
            return Ok(());
        }
        let end = prefix_end(STEPS);
        let rows = self.rows.turn.scan(Bound::Included(STEPS), Bound::Excluded(&end), limits::TURN_TASKS_MAX)?;
        for (key, stored) in rows.iter().rev() {
            let step = stored.decode().map_err(|source| TurnError::Stored { key: key.to_string(), source })?;
            self.rows.turn.delete(key);
            match step {
                Step::Enter(token) => {
                    if let Some(token) = self.active(Some(token))? {
                        self.ready.push(Ready::Enter(Box::new(token)));
                    }
                }
                Step::Open(group) if !is_ending => self.ready.push(Ready::Open(group)),
                Step::Open(_) => {}
            }
        }
        self.rows.kept.progress.steps.0 += rows.len() as u64;
        Ok(())
    }

    /// Whether something is left that nothing else will set going.
    pub(super) fn wants_another_turn(&self) -> bool {
        let progress = &self.rows.kept.progress;
        let has_unanswered = progress.ended_at.is_some() && self.has_waiters();
        has_unanswered
            || !progress.sweeps.is_empty()
            || (self.has_steps() && (self.may_begin_work() || progress.is_ending()))
    }

    /// Whether steps were put off.
    pub(super) fn has_steps(&self) -> bool {
        let (done, put_off) = self.rows.kept.progress.steps;
        done < put_off
    }
}
