//! Fan-in: a branch arrives, a join fires.

use std::borrow::Cow;
use std::sync::Arc;

use super::fan_out::NewToken;
use super::{Coordinator, Ready, Trouble};
use crate::definition::workflow::{ContextPath, Join, Merge, Strategy, TransitionIndex};
use crate::expression::{Expression, Reads, Value};
use crate::failure::{Failure, FailureKind};
use crate::graph::decision::{Decision, Write};
use crate::graph::planning::merge::{self, Brought};
use crate::graph::planning::{completion, conditions, synchronization};
use crate::graph::state::groups::{Bring, Closed, Group, closed_key};
use crate::graph::state::run::{AfterJoin, Sweep};
use crate::graph::token::{GroupId, Place, Status, Token};
use crate::limits;
use crate::turn::TurnError;

/// Why something could not be written.
pub(super) enum NotWritten {
    /// The turn cannot be.
    Turn(TurnError),
    /// The value does not fit there.
    Misfit(Failure),
}

impl NotWritten {
    /// What the token wrote is the token's failure.
    pub(super) fn of_token(self) -> Trouble {
        match self {
            Self::Turn(error) => Trouble::Turn(error),
            Self::Misfit(failure) => Trouble::Token(failure),
        }
    }

    /// What a join wrote is the run's failure.
    fn of_run(self) -> Trouble {
        match self {
            Self::Turn(error) => Trouble::Turn(error),
            Self::Misfit(failure) => Trouble::Run(failure),
        }
    }
}

impl From<TurnError> for NotWritten {
    fn from(error: TurnError) -> Self {
        Self::Turn(error)
    }
}

impl Coordinator<'_, '_> {
    /// A token takes a transition with a join: the branch at `depth` of its lineage has arrived, if it has not before. One whose group is closed
    /// by now comes too late.
    pub(super) fn arrive(
        &mut self,
        token: &Token,
        depth: usize,
        transition: usize,
        result: Option<&Value>,
    ) -> Result<(), Trouble> {
        let place = token.lineage[depth];
        if self.rows.group(place.group)?.is_none() {
            return Ok(());
        }
        let branch = self.rows.change_branch(Some(place))?;
        if branch.has_arrived {
            return Ok(());
        }
        branch.has_arrived = true;
        let brings = self.brings(token, transition, result)?;
        let now = self.rows.turn.now();
        let mut arrival = self.create(NewToken {
            node: self.workflow.node(self.transition(transition).to).name.clone(),
            parent: Some(token.id),
            path: token.path.clone(),
            lineage: token.lineage[..=depth].to_vec(),
            iterations: token.iterations.clone(),
            error: None,
            status: Status::WaitingForSiblings,
        })?;
        arrival.arrived_at = Some(now);
        self.emit_waiting(&arrival, None, None)?;
        self.trace(&Decision::CreateFanInToken { group: place.group })?;
        self.rows.insert_arrival(place, arrival, brings)?;
        let group = self.rows.change_group(place.group)?;
        group.arrived += 1;
        group.join.get_or_insert(transition);
        self.synchronize(place.group)
    }

    /// For each arrival among `decisions`, how deep in the token's lineage the group is that it is for.
    pub(super) fn depths_of_groups(&mut self, token: &Token, decisions: &[Decision]) -> Result<Vec<usize>, Trouble> {
        let joins = decisions.iter().filter_map(|decision| {
            if let Decision::CheckSynchronization { transition, .. } = decision { Some(*transition) } else { None }
        });
        joins.map(|transition| self.depth_of_group(token, transition)).collect()
    }

    /// Whether all that follows from a token is that its own branch arrives: then its arrival tells that it is done.
    pub(super) fn only_arrives(&mut self, token: &Token, decisions: &[Decision]) -> bool {
        let [Decision::CheckSynchronization { transition, .. }] = decisions else { return false };
        self.depth_of_group(token, *transition).is_ok_and(|depth| depth + 1 == token.lineage.len())
    }

    /// How deep in the token's lineage the innermost instance of the join's group is.
    fn depth_of_group(&mut self, token: &Token, transition: usize) -> Result<usize, Trouble> {
        let wanted = self.transition(transition).join.as_ref().map(|join| join.group.clone());
        for (depth, place) in token.lineage.iter().enumerate().rev() {
            if self.rows.open_group(place.group)?.name == wanted {
                return Ok(depth);
            }
        }
        let name = wanted.as_deref().unwrap_or_default();
        let message = format!(
            "a token at node `{}` reached the join of group `{name}`, but is in no branch of that group",
            token.node
        );
        Err(Trouble::Run(Failure::last(FailureKind::JoinImpossible, &message)))
    }

    /// What a branch brings to each merge of a join, as it sees it now.
    fn brings(&mut self, token: &Token, transition: usize, result: Option<&Value>) -> Result<Vec<Bring>, Trouble> {
        let workflow = self.workflow.clone();
        let transition = workflow.transition(TransitionIndex(transition));
        let Some(join) = &transition.join else { return Ok(Vec::new()) };
        if join.merges.is_empty() {
            return Ok(Vec::new());
        }
        let scope = self.scope(token, &reads_of(join), result)?;
        let failed =
            |error| Trouble::Run(conditions::failure(&conditions::place(&workflow, transition, "merge"), &error));
        let mut brings = Vec::with_capacity(join.merges.len());
        for merge in &join.merges {
            let value = merge.from.evaluate(&scope).map_err(failed)?;
            let key = match &merge.strategy {
                Strategy::Keyed(Some(key)) => Some(key_text(merge, &key.evaluate(&scope).map_err(failed)?)?),
                Strategy::Keyed(None) | Strategy::Append | Strategy::Collect | Strategy::Merge | Strategy::Last => None,
            };
            brings.push(Bring { value, key });
        }
        Ok(brings)
    }

    /// Looks whether a group instance's join fires, or whether the instance is over.
    pub(super) fn synchronize(&mut self, id: GroupId) -> Result<(), Trouble> {
        let Some(group) = self.rows.group(id)? else { return Ok(()) };
        let (standing, join, lineage) = (group.standing(id), group.join, group.lineage.clone());
        // Inside of what is over already nothing fires, and nothing fails, any more.
        if self.is_over_around(&lineage)? {
            return Ok(());
        }
        let join = join.and_then(|join| self.workflow.transition(TransitionIndex(join)).join.as_ref());
        match synchronization::decide(join, &standing) {
            None => Ok(()),
            Some(decision) => self.follow_synchronization(decision),
        }
    }

    pub(super) fn follow_synchronization(&mut self, decision: Decision) -> Result<(), Trouble> {
        self.trace(&decision)?;
        match decision {
            Decision::ActivateFanInToken { group, .. } => self.fire(group),
            Decision::CloseGroup { group } => self.close(group),
            Decision::FailRun { failure } => Err(Trouble::Run(failure)),
            Decision::CreateToken { .. }
            | Decision::BatchCreateTokens { .. }
            | Decision::CheckSynchronization { .. }
            | Decision::CreateFanInToken { .. }
            | Decision::UpdateTokenStatus { .. }
            | Decision::MarkForDispatch { .. }
            | Decision::ApplyNodeOutput { .. }
            | Decision::SetContext { .. }
            | Decision::CompleteRun { .. } => unreachable!("synchronization does not decide {}", decision.event_type()),
        }
    }

    /// A join fires: merges what has arrived, leaves the rest to be swept, and goes on with one token.
    fn fire(&mut self, id: GroupId) -> Result<(), Trouble> {
        let Some(group) = self.close_instance(id, AfterJoin::Complete)? else { return Ok(()) };
        let Some(join_index) = group.join else { return Ok(()) };
        let workflow = self.workflow.clone();
        let transition = workflow.transition(TransitionIndex(join_index));
        let node = workflow.node(transition.to).name.clone();
        if let Some(join) = &transition.join {
            self.merge(id, &group, join)?;
        }
        self.emit_fired(group.shown_as(), id, group.total, group.arrived, &node)?;
        let Group { opener, path, lineage, iterations, error, .. } = group;
        let iterations = self.counted(&iterations, join_index);
        let new = NewToken { node, parent: Some(opener), path, lineage, iterations, error, status: Status::Pending };
        let place = new.lineage.last().copied();
        self.rows.change_branch(place)?.groups.retain(|open| *open != id);
        self.make_room(place)?;
        let continuation = self.create(new)?;
        self.rows.change_branch(place)?.tokens.push(continuation.id);
        self.ready.push(Ready::Enter(Box::new(continuation)));
        Ok(())
    }

    /// A group instance that nobody joins is over.
    fn close(&mut self, id: GroupId) -> Result<(), Trouble> {
        let Some(group) = self.close_instance(id, AfterJoin::Cancel)? else { return Ok(()) };
        let place = group.lineage.last().copied();
        let branch = self.rows.change_branch(place)?;
        branch.groups.retain(|open| *open != id);
        let is_over = branch.is_empty();
        match place {
            Some(place) if is_over => self.branch_is_over(place),
            Some(_) | None => Ok(()),
        }
    }

    /// Takes a group instance out of the run; what is left inside is swept.
    pub(super) fn close_instance(&mut self, id: GroupId, arrivals: AfterJoin) -> Result<Option<Group>, TurnError> {
        let Some(group) = self.rows.remove_group(id)? else { return Ok(None) };
        if self.join_of(&group).is_some_and(|join| join.timeout_ms.is_some()) {
            self.clear_timer(&super::timers::join(id))?;
        }
        if group.arrived > 0 {
            self.rows.turn.put(&closed_key(id), &Closed { arrivals, at: self.rows.turn.now() })?;
        }
        self.rows.kept.progress.sweeps.push(Sweep {
            group: id,
            arrivals,
            arrived: group.arrived,
            unsettled: group.created.saturating_sub(group.arrived + group.ended),
            first_tokens: (group.first_token, group.first_token_of(group.created)),
            next_arrival: 0,
        });
        Ok(Some(group))
    }

    fn merge(&mut self, id: GroupId, group: &Group, join: &Join) -> Result<(), Trouble> {
        if join.merges.is_empty() {
            return Ok(());
        }
        let mut brought: Vec<Vec<Brought>> = join.merges.iter().map(|_| Vec::new()).collect();
        let (mut next, mut is_last, mut bytes) = (0, false, 0);
        while !is_last {
            let (arrivals, read) = self.rows.arrivals(id, group.arrived, next, limits::SCAN_ROWS_MAX)?;
            is_last = arrivals.len() < limits::SCAN_ROWS_MAX;
            bytes += read;
            if bytes > limits::JOIN_BYTES_MAX {
                let (what, limit) = ("number of bytes that branches bring to a join", "JOIN_BYTES_MAX");
                return Err(TurnError::Limit { what, found: bytes, max: limits::JOIN_BYTES_MAX, limit }.into());
            }
            for (index, arrival) in arrivals {
                for (all, Bring { value, key }) in brought.iter_mut().zip(&arrival.brings) {
                    all.push(Brought { index, value: value.clone(), key: key.clone() });
                }
                next = index.saturating_add(1);
            }
        }
        let mut writes = Vec::with_capacity(join.merges.len());
        for (merge, brought) in join.merges.iter().zip(brought) {
            writes.push((&merge.into, merge::merge(merge, brought).map_err(Trouble::Run)?));
        }
        self.write_all(&group.lineage, &writes).map_err(NotWritten::of_run)?;
        self.trace_with(|| Decision::SetContext { writes: decided(&writes) })?;
        Ok(self.emit_written(None, &writes)?)
    }

    /// Writes several values, all or none of them.
    pub(super) fn write_all(&mut self, lineage: &[Place], writes: &[(&ContextPath, Value)]) -> Result<(), NotWritten> {
        let workflow = self.workflow.clone();
        let mut fields: Vec<(String, Value)> = Vec::with_capacity(writes.len());
        for (path, value) in writes {
            let name = path.stored_as();
            let known = fields.iter().position(|(known, _)| *known == name);
            let whole = match known {
                Some(at) if !path.below.is_empty() => {
                    fields[at].1.with(&path.below, value.clone()).map_err(|error| error.to_string())
                }
                Some(_) | None => self.rows.with_value(lineage, path, value.clone())?,
            };
            let whole = whole.map_err(|problem| misfit(&format!("`{path}` cannot be written: {problem}")))?;
            if let Some(schema) = &workflow.state
                && path.root == crate::definition::workflow::ContextRoot::State
                && let Err(violations) = schema.check_property(&path.field, &whole)
            {
                return Err(misfit(&format!("`{name}` {}", completion::explained(&violations))));
            }
            match known {
                Some(at) => fields[at].1 = whole,
                None => fields.push((name, whole)),
            }
        }
        let mut encoded = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            let json = value.to_json();
            let json = json.map_err(|problem| misfit(&format!("`{name}` cannot be written: {problem}")))?;
            encoded.push((name, value, json));
        }
        for (name, value, json) in encoded {
            self.rows.write(lineage, &name, value, json)?;
        }
        Ok(())
    }
}

/// Writes, as a decision tells them.
pub(super) fn decided(writes: &[(&ContextPath, Value)]) -> Vec<Write> {
    writes.iter().map(|(path, value)| Write { path: path.to_string(), value: value.clone() }).collect()
}

fn misfit(message: &str) -> NotWritten {
    NotWritten::Misfit(Failure::last(FailureKind::InvalidOutput, message))
}

fn reads_of(join: &Join) -> Cow<'_, Reads> {
    let expressions = join.merges.iter().flat_map(|merge| {
        let key = match &merge.strategy {
            Strategy::Keyed(key) => key.as_ref(),
            Strategy::Append | Strategy::Collect | Strategy::Merge | Strategy::Last => None,
        };
        std::iter::once(&merge.from).chain(key)
    });
    Reads::of_all(expressions.map(Expression::reads))
}

fn key_text(merge: &Merge, key: &Value) -> Result<Arc<str>, Trouble> {
    match key {
        Value::String(text) => Ok(text.clone()),
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Bool(_) => Ok(key.to_string().into()),
        Value::Null | Value::List(_) | Value::Object(_) => {
            let message =
                format!("`key` of the merge into `{}` gave {}, expected text or a number", merge.into, key.type_name());
            Err(Trouble::Run(Failure::last(FailureKind::Expression, &message)))
        }
    }
}
