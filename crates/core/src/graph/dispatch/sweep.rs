//! Tidying up after a group instance, in pieces.
//!
//! A join that fires with a hundred thousand branches still going cannot cancel them all in one turn. So the instance is closed first, which makes
//! all that is inside of no interest; then it is swept, as much as a turn may, until nothing is left.

use std::ops::Bound;

use super::enter::task_name;
use super::{Coordinator, Ready};
use crate::graph::decision::Decision;
use crate::graph::state::groups::{Arrivals, Branch, branches_of, items_of};
use crate::graph::state::run::{AfterJoin, Sweep};
use crate::graph::token::{GroupId, Place, Status, Token, TokenId};
use crate::json::Json;
use crate::turn::{Entries, TurnError, prefix_end};

/// How much is swept in one piece. Between two pieces the run goes ahead.
const ROWS_AT_ONCE: usize = 1_000;

impl Coordinator<'_, '_> {
    /// Sweeps a piece. `false` when there was nothing to sweep.
    pub(super) fn sweep_some(&mut self) -> Result<bool, TurnError> {
        let Some(sweep) = self.rows.kept.progress.sweeps.last().copied() else { return Ok(false) };
        // Branches that this turn has changed must be seen by the scan.
        self.rows.flush()?;
        let branches = branches_of(sweep.group);
        let branches = self.rows_between(&branches, &prefix_end(&branches))?;
        if !branches.is_empty() {
            self.sweep_branches(sweep, &branches)?;
            return Ok(true);
        }
        let (next, end) = sweep.first_tokens;
        if sweep.unsettled > 0 && next < end {
            self.sweep_first_tokens(sweep)?;
            return Ok(true);
        }
        let (arrivals, _) = self.rows.arrivals(sweep.group, sweep.arrived, sweep.next_arrival, ROWS_AT_ONCE)?;
        if !arrivals.is_empty() {
            self.tell_of_arrivals(sweep, &arrivals)?;
            return Ok(true);
        }
        let items = items_of(sweep.group);
        let items = self.rows_between(&items, &prefix_end(&items))?;
        for (key, _) in &items {
            self.rows.turn.delete(key);
        }
        if items.len() < ROWS_AT_ONCE {
            self.rows.forget_arrivals(sweep.group);
            self.rows.kept.progress.sweeps.retain(|other| other.group != sweep.group);
        }
        Ok(true)
    }

    fn rows_between(&mut self, from: &str, end: &str) -> Result<Entries, TurnError> {
        self.rows.turn.scan(Bound::Included(from), Bound::Excluded(end), ROWS_AT_ONCE)
    }

    /// The sweep of a group instance. Others may have been added behind it meanwhile.
    fn sweep_of(&mut self, group: GroupId) -> Result<&mut Sweep, TurnError> {
        let found = self.rows.kept.progress.sweeps.iter_mut().rfind(|sweep| sweep.group == group);
        found.ok_or_else(|| TurnError::failed(format!("the sweep of group instance {group} is missing")))
    }

    fn sweep_branches(&mut self, sweep: Sweep, rows: &Entries) -> Result<(), TurnError> {
        let prefix = branches_of(sweep.group);
        for (key, stored) in rows {
            if self.is_full() {
                break;
            }
            let branch: Branch = decoded(key, stored)?;
            let index = key[prefix.len()..].parse().unwrap_or(u64::MAX);
            if !branch.has_arrived {
                let swept = self.sweep_of(sweep.group)?;
                swept.unsettled = swept.unsettled.saturating_sub(1);
            }
            for group in branch.groups {
                self.close_instance(group, AfterJoin::Cancel)?;
            }
            self.rows.remove_branch(Place { group: sweep.group, index, total: 0 })?;
            self.entered += 1;
            self.cancel_tokens(&branch.tokens)?;
        }
        // So that the next scan does not find them again.
        self.rows.flush()
    }

    /// Cancels the tokens of branches that are as they began: the others are settled by now, so those are all that is left. Tokens that are over
    /// already are passed by.
    fn sweep_first_tokens(&mut self, sweep: Sweep) -> Result<(), TurnError> {
        let Sweep { group, mut unsettled, first_tokens: (mut next, end), .. } = sweep;
        for _ in 0..ROWS_AT_ONCE {
            if unsettled == 0 || next == end || self.is_full() {
                break;
            }
            unsettled = unsettled.saturating_sub(self.cancel_tokens(&[next])?);
            next.0 += 1;
            self.entered += 1;
        }
        let swept = self.sweep_of(group)?;
        (swept.unsettled, swept.first_tokens.0) = (unsettled, next);
        Ok(())
    }

    /// Tells how the tokens have ended that waited at the join, and drops what they brought if it is much. Their rows need no other change: see [`crate::graph::state::groups::Closed`].
    fn tell_of_arrivals(&mut self, sweep: Sweep, arrivals: &Arrivals) -> Result<(), TurnError> {
        let status = sweep.arrivals.status();
        let mut next = sweep.next_arrival;
        for (index, arrival) in arrivals {
            if self.is_full() {
                break;
            }
            let Token { id, node, .. } = &arrival.token;
            self.trace(&Decision::UpdateTokenStatus { token: *id, status })?;
            self.emit_end_of(*id, node, status, None)?;
            if arrival.is_large {
                self.rows.drop_brings(sweep.group, *index, arrival)?;
            }
            next = index.saturating_add(1);
            self.entered += 1;
        }
        self.sweep_of(sweep.group)?.next_arrival = next;
        Ok(())
    }

    /// Cancels tokens, together with what is under way for them. How many there were that were not over.
    pub(super) fn cancel_tokens(&mut self, ids: &[TokenId]) -> Result<u64, TurnError> {
        let mut cancelled = 0;
        for id in ids {
            let Some(mut token) = self.unsaved(*id).map_or_else(|| self.rows.token(*id), |token| Ok(Some(token)))?
            else {
                return Err(TurnError::failed(format!("token {id} is missing from the run's storage")));
            };
            if !token.status.is_terminal() {
                cancelled += 1;
                self.call_off(&token)?;
                self.change_status(&mut token, Status::Cancelled)?;
                self.rows.save_token(&mut token)?;
                self.emit_ended(&token, None)?;
            }
        }
        Ok(cancelled)
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
