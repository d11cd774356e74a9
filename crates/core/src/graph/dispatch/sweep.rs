//! Tidying up after a group instance, in pieces.
//!
//! A join that fires with a hundred thousand branches still going cannot cancel them all in one turn. So the instance is closed first, which makes
//! all that is inside of no interest; then it is swept, as much as a turn may, until nothing is left.

use std::ops::Bound;

use super::enter::task_name;
use super::{Coordinator, Ready};
use crate::graph::state::groups::{Arrival, Branch, arrivals_of, branches_of, items_of};
use crate::graph::state::run::{Arrivals, Sweep};
use crate::graph::token::{Place, Status, Token, TokenId};
use crate::json::Json;
use crate::turn::{Entries, TurnError, prefix_end};

/// Rows swept before looking whether the turn is full.
const ROWS_AT_ONCE: usize = 1_000;

impl Coordinator<'_, '_> {
    /// Sweeps a piece. `false` when there was nothing to sweep.
    pub(super) fn sweep_some(&mut self) -> Result<bool, TurnError> {
        let Some(sweep) = self.rows.kept.progress.sweeps.last().copied() else { return Ok(false) };
        // Branches that this turn has changed must be seen by the scan.
        self.rows.flush()?;
        let branches = self.first_of(&branches_of(sweep.group))?;
        if !branches.is_empty() {
            self.sweep_branches(sweep, &branches)?;
            return Ok(true);
        }
        let arrivals = self.first_of(&arrivals_of(sweep.group))?;
        if !arrivals.is_empty() {
            self.sweep_arrivals(sweep, &arrivals)?;
            return Ok(true);
        }
        let items = self.first_of(&items_of(sweep.group))?;
        for (key, _) in &items {
            self.rows.turn.delete(key);
        }
        if items.len() < ROWS_AT_ONCE {
            // Almost always the last one: sweeping may have added others meanwhile.
            let sweeps = &mut self.rows.kept.progress.sweeps;
            if let Some(position) = sweeps.iter().rposition(|other| *other == sweep) {
                sweeps.remove(position);
            }
        }
        Ok(true)
    }

    fn first_of(&mut self, prefix: &str) -> Result<Entries, TurnError> {
        let end = prefix_end(prefix);
        self.rows.turn.scan(Bound::Included(prefix), Bound::Excluded(&end), ROWS_AT_ONCE)
    }

    fn sweep_branches(&mut self, sweep: Sweep, rows: &Entries) -> Result<(), TurnError> {
        let prefix = branches_of(sweep.group);
        for (key, stored) in rows {
            if self.is_full() {
                break;
            }
            let branch: Branch = decoded(key, stored)?;
            let index = key[prefix.len()..].parse().unwrap_or(u64::MAX);
            for group in branch.groups {
                self.close_instance(group, Arrivals::Cancel)?;
            }
            self.rows.remove_branch(Place { group: sweep.group, index, total: 0 })?;
            self.entered += 1;
            self.cancel_tokens(&branch.tokens)?;
        }
        // So that the next scan does not find them again.
        self.rows.flush()
    }

    fn sweep_arrivals(&mut self, sweep: Sweep, rows: &Entries) -> Result<(), TurnError> {
        let status = match sweep.arrivals {
            Arrivals::Complete => Status::Completed,
            Arrivals::Cancel => Status::Cancelled,
        };
        for (key, stored) in rows {
            if self.is_full() {
                break;
            }
            let Arrival { mut token, .. } = decoded(key, stored)?;
            self.change_status(&mut token, status)?;
            self.rows.save_token(&token)?;
            self.emit_ended(&token, None)?;
            self.rows.turn.delete(key);
            self.entered += 1;
        }
        Ok(())
    }

    /// Cancels tokens, together with what is under way for them.
    pub(super) fn cancel_tokens(&mut self, ids: &[TokenId]) -> Result<(), TurnError> {
        for id in ids {
            let Some(mut token) = self.unsaved(*id).map_or_else(|| self.rows.token(*id), |token| Ok(Some(token)))?
            else {
                return Err(TurnError::failed(format!("token {id} is missing from the run's storage")));
            };
            if !token.status.is_terminal() {
                self.call_off(&token)?;
                self.change_status(&mut token, Status::Cancelled)?;
                self.rows.save_token(&token)?;
                self.emit_ended(&token, None)?;
            }
        }
        Ok(())
    }

    /// A token of this turn that is not on disk yet; its work does not begin any more.
    fn unsaved(&mut self, id: TokenId) -> Option<Token> {
        let is_it = |ready: &Ready| matches!(ready, Ready::Enter(token) if token.id == id);
        let position = self.ready.iter().rposition(is_it)?;
        match self.ready.remove(position) {
            Ready::Enter(token) => Some(*token),
            Ready::Open(_) => None,
        }
    }

    /// Ends what is under way for a token.
    fn call_off(&mut self, token: &Token) -> Result<(), TurnError> {
        match token.status {
            Status::Dispatched | Status::Executing => self.rows.turn.cancel(&task_name(token)),
            Status::WaitingForSubworkflow => {
                self.clear_timer(&super::timers::timeout(token.id))?;
                self.cancel_child(token)
            }
            Status::WaitingForSignal => {
                self.clear_timer(&super::timers::timeout(token.id))?;
                self.stop_waiting(token)
            }
            Status::Sleeping => self.clear_timer(&super::timers::sleep(token.id)),
            Status::Retrying => self.clear_timer(&super::timers::retry(token.id)),
            Status::Pending
            | Status::WaitingForSiblings
            | Status::WaitingForAgent
            | Status::Completed
            | Status::Failed
            | Status::TimedOut
            | Status::Cancelled => Ok(()),
        }
    }
}

fn decoded<T: serde::de::DeserializeOwned>(key: &str, stored: &Json) -> Result<T, TurnError> {
    stored.decode().map_err(|source| TurnError::Stored { key: key.to_owned(), source })
}
