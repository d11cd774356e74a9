//! Branches: when one is over, and what that means for its group.

use super::{Coordinator, Trouble};
use crate::definition::workflow::OnFailure;
use crate::failure::Failure;
use crate::graph::state::run::AfterJoin;
use crate::graph::token::{Place, Token};
use crate::turn::TurnError;

impl Coordinator<'_, '_> {
    /// Takes a token that is over out of its branch, which may be over then too.
    pub(super) fn leave(&mut self, token: &Token) -> Result<(), Trouble> {
        self.forget(token)?;
        let Some(place) = token.branch() else { return Ok(()) };
        let is_over = self.rows.branch(Some(place))?.is_some_and(|branch| branch.is_empty());
        if is_over { self.branch_is_over(place) } else { Ok(()) }
    }

    /// Nothing is active in a branch any more. If it has not arrived, it is settled now.
    pub(super) fn branch_is_over(&mut self, place: Place) -> Result<(), Trouble> {
        let has_arrived = self.rows.branch(Some(place))?.is_some_and(|branch| branch.has_arrived);
        self.rows.remove_branch(place)?;
        if has_arrived || self.rows.group(place.group)?.is_none() {
            return Ok(());
        }
        self.rows.change_group(place.group)?.ended += 1;
        self.synchronize(place.group)
    }

    /// A token failed that no error transition takes up. The innermost join around it says what that means.
    pub(super) fn fail_branch(&mut self, token: &Token, failure: Failure) -> Result<(), Trouble> {
        for place in token.lineage.iter().rev() {
            let group = self.rows.open_group(place.group)?.clone();
            match self.join_of(&group).map(|join| join.on_failure) {
                // A group that nobody joins says nothing.
                None => {}
                Some(OnFailure::Fail) => return Err(Trouble::Run(failure)),
                Some(OnFailure::Continue) => return self.abandon_branch(*place),
            }
        }
        Err(Trouble::Run(failure))
    }

    /// Cancels what is still active in a branch, and settles it without output.
    fn abandon_branch(&mut self, place: Place) -> Result<(), Trouble> {
        self.cancel_active(Some(place))?;
        self.branch_is_over(place)
    }

    /// Cancels what is active in a branch; outside of all groups when there is no `place`.
    pub(super) fn cancel_active(&mut self, place: Option<Place>) -> Result<(), TurnError> {
        let branch = self.rows.change_branch(place)?;
        let tokens = std::mem::take(&mut branch.tokens);
        let groups = std::mem::take(&mut branch.groups);
        self.cancel_tokens(&tokens)?;
        for group in groups {
            self.close_instance(group, AfterJoin::Cancel)?;
        }
        Ok(())
    }
}
