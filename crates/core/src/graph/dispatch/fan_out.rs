//! Following decisions: new tokens, new group instances, new branches.

use std::sync::Arc;

use super::{Coordinator, Ready, Trouble};
use crate::definition::workflow::{Join, Transition, TransitionIndex};
use crate::expression::Value;
use crate::failure::{Failure, FailureKind};
use crate::graph::decision::{Decision, Part};
use crate::graph::state::TOKEN_NUMBER_MAX;
use crate::graph::state::groups::{Group, GroupPart};
use crate::graph::token::{GroupId, Iterations, NodeError, Place, Status, Token, TokenId};
use crate::limits;
use crate::turn::TurnError;

/// What a new token is made of.
pub(super) struct NewToken {
    pub(super) node: Arc<str>,
    pub(super) parent: Option<TokenId>,
    pub(super) path: Arc<str>,
    pub(super) lineage: Vec<Place>,
    pub(super) iterations: Iterations,
    pub(super) error: Option<NodeError>,
    pub(super) status: Status,
}

impl Coordinator<'_, '_> {
    /// Does what routing decided for a token that is over, and takes the token out of its branch.
    pub(super) fn follow(
        &mut self,
        token: &Token,
        decisions: &[Decision],
        result: Option<&Value>,
        error: Option<&NodeError>,
    ) -> Result<(), Trouble> {
        let error = error.or(token.error.as_ref());
        // Found before anything is done: the first of several arrivals may close the group that the next is looking for.
        let mut depths = self.depths_of_groups(token, decisions)?.into_iter();
        for decision in decisions {
            match decision {
                Decision::CreateToken { transition, node } => self.create_next(token, *transition, node, error)?,
                Decision::BatchCreateTokens { group, parts, join } => {
                    self.open_group(token, group.as_ref(), parts, *join, error)?;
                }
                Decision::CheckSynchronization { transition, .. } => {
                    let depth = depths.next().expect("one was found for each arrival");
                    self.arrive(token, depth, *transition, result)?;
                }
                Decision::CreateFanInToken { .. }
                | Decision::ActivateFanInToken { .. }
                | Decision::CloseGroup { .. }
                | Decision::UpdateTokenStatus { .. }
                | Decision::MarkForDispatch { .. }
                | Decision::ApplyNodeOutput { .. }
                | Decision::SetContext { .. }
                | Decision::CompleteRun { .. }
                | Decision::FailRun { .. } => unreachable!("routing does not decide {}", decision.event_type()),
            }
        }
        self.leave(token)
    }

    fn create_next(
        &mut self,
        token: &Token,
        transition: usize,
        node: &Arc<str>,
        error: Option<&NodeError>,
    ) -> Result<(), Trouble> {
        self.make_room(token.branch())?;
        let next = self.create(NewToken {
            node: node.clone(),
            parent: Some(token.id),
            path: token.path.clone(),
            lineage: token.lineage.clone(),
            iterations: self.counted(&token.iterations, transition),
            error: error.cloned(),
            status: Status::Pending,
        })?;
        self.rows.change_branch(next.branch())?.tokens.push(next.id);
        self.ready.push(Ready::Enter(Box::new(next)));
        Ok(())
    }

    /// Makes a token. It is not on disk until its work has begun, or was put off.
    pub(super) fn create(&mut self, new: NewToken) -> Result<Token, Trouble> {
        let id = self.reserve_tokens(1)?;
        self.create_as(id, new)
    }

    /// Sets numbers aside for tokens; the first of them. Only tokens that are made count: a join may leave most of the others unused.
    fn reserve_tokens(&mut self, count: u64) -> Result<TokenId, Trouble> {
        let first = self.rows.next_tokens(count);
        let progress = &self.rows.kept.progress;
        if progress.tokens + count > limits::RUN_TOKENS_MAX || progress.last_token.0 > TOKEN_NUMBER_MAX {
            let message = format!(
                "the run makes more than {} tokens (`RUN_TOKENS_MAX`); a loop without `max_iterations`?",
                limits::RUN_TOKENS_MAX
            );
            return Err(Trouble::Run(Failure::last(FailureKind::LoopLimit, &message)));
        }
        Ok(first)
    }

    fn create_as(&mut self, id: TokenId, new: NewToken) -> Result<Token, Trouble> {
        let NewToken { node, parent, path, lineage, iterations, error, status } = new;
        self.rows.kept.progress.tokens += 1;
        let now = self.rows.turn.now();
        let token = Token {
            id,
            node,
            status,
            parent,
            path,
            lineage,
            iterations,
            attempt: 1,
            error,
            created_at: now,
            updated_at: now,
            arrived_at: None,
            shares_row: false,
        };
        self.emit_created(&token)?;
        Ok(token)
    }

    /// Counts a transition that has a bound.
    pub(super) fn counted(&self, iterations: &Iterations, transition: usize) -> Iterations {
        let mut iterations = iterations.clone();
        if self.transition(transition).iterations_max.is_some() {
            *iterations.entry(transition).or_insert(0) += 1;
        }
        iterations
    }

    pub(super) fn transition(&self, index: usize) -> &Transition {
        self.workflow.transition(TransitionIndex(index))
    }

    /// The join of a group instance, if it has one.
    pub(super) fn join_of(&self, group: &Group) -> Option<&Join> {
        group.join.and_then(|join| self.transition(join).join.as_ref())
    }

    fn open_group(
        &mut self,
        token: &Token,
        name: Option<&Arc<str>>,
        parts: &[Part],
        join: Option<usize>,
        error: Option<&NodeError>,
    ) -> Result<(), Trouble> {
        if token.lineage.len() >= limits::LINEAGE_MAX {
            let message = format!(
                "fan-outs are nested {} deep in one run (`LINEAGE_MAX`); a loop that never joins its group?",
                limits::LINEAGE_MAX
            );
            return Err(Trouble::Run(Failure::last(FailureKind::LoopLimit, &message)));
        }
        self.make_room(token.branch())?;
        let first_token = self.reserve_tokens(parts.iter().map(|part| part.count).sum())?;
        let id = self.rows.next_group();
        let mut total = 0;
        let mut iterations = token.iterations.clone();
        let mut group_parts = Vec::with_capacity(parts.len());
        for part in parts {
            iterations = self.counted(&iterations, part.transition);
            group_parts.push(GroupPart { transition: part.transition, first: total });
            if let Some(Value::List(items)) = &part.items {
                self.rows.save_items(id, total, items)?;
            }
            total += part.count;
        }
        let group = Group {
            name: name.cloned(),
            opener: token.id,
            first_token,
            path: token.path.clone(),
            lineage: token.lineage.clone(),
            iterations,
            error: error.cloned(),
            parts: group_parts,
            join,
            total,
            created: 0,
            arrived: 0,
            ended: 0,
        };
        self.emit_opened(group.shown_as(), id, total)?;
        if let Some(timeout_ms) = self.join_of(&group).and_then(|join| join.timeout_ms) {
            let due = self.rows.turn.now().plus_ms(timeout_ms);
            self.set_timer(&super::timers::join(id), due)?;
        }
        self.rows.insert_group(id, group);
        self.rows.change_branch(token.branch())?.groups.push(id);
        if total > 0 {
            self.ready.push(Ready::Open(id));
        }
        // It may fire at once, with nothing, or be impossible from the beginning.
        self.synchronize(id)
    }

    /// Begins the next branch of a group instance.
    pub(super) fn open_branch(&mut self, id: GroupId) -> Result<(), Trouble> {
        let Some(group) = self.rows.group(id)?.filter(|group| group.created < group.total) else { return Ok(()) };
        let mut lineage = group.lineage.clone();
        if self.is_over_around(&lineage)? {
            return Ok(());
        }
        let group = self.rows.change_group(id)?;
        let place = Place { group: id, index: group.created, total: group.total };
        group.created += 1;
        let is_last = group.created == group.total;
        lineage.push(place);
        let first = group.first_token_of(place.index);
        let opened_by = TransitionIndex(group.opened_by(place.index));
        let new = NewToken {
            node: self.workflow.node(self.workflow.transition(opened_by).to).name.clone(),
            parent: Some(group.opener),
            path: format!("{}/{}:{}", group.path, group.shown_as(), place.index).into(),
            lineage,
            iterations: group.iterations.clone(),
            error: group.error.clone(),
            status: Status::Pending,
        };
        if !is_last {
            self.ready.push(Ready::Open(id));
        }
        let mut token = self.create_as(first, new)?;
        token.shares_row = true;
        self.rows.begin_branch(place, first);
        self.ready.push(Ready::Enter(Box::new(token)));
        Ok(())
    }

    /// What is active in a branch is kept in one row, so it is bounded.
    pub(super) fn make_room(&mut self, place: Option<Place>) -> Result<(), Trouble> {
        let branch = self.rows.change_branch(place)?;
        if branch.tokens.len() + branch.groups.len() < limits::BRANCH_ACTIVE_MAX {
            return Ok(());
        }
        let message = format!(
            "more than {} tokens or groups are active in one branch (`BRANCH_ACTIVE_MAX`); a `foreach` or `spawn` gives each a branch of its own",
            limits::BRANCH_ACTIVE_MAX
        );
        Err(Trouble::Run(Failure::last(FailureKind::LoopLimit, &message)))
    }

    /// Takes a token out of its branch, without looking whether the branch is over.
    pub(super) fn forget(&mut self, token: &Token) -> Result<(), TurnError> {
        let branch = self.rows.change_branch(token.branch())?;
        branch.tokens.retain(|id| *id != token.id);
        Ok(())
    }
}
