//! Why a run is not over: what it waits for, as its rows tell it.
//!
//! Owns what is said about each thing that a run can wait for (`words.rs`), and how much is said: of many branches only the first ones. What is not in the
//! run's rows is filled in by the engine: how a task is, what a run below waits for. Never changes anything. Start reading at [`explain`].

mod words;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::dispatch::{child_of, timers, wait_of};
use super::protocol::{Outcome, RunStatus};
use super::state::groups::Group;
use super::state::run::{self, Progress};
use super::state::walk::{Go, Met, Walk};
use super::token::{GroupId, Place, Status, Token, TokenId};
use crate::definition::workflow::{TransitionIndex, WaitFor, Workflow};
use crate::failure::Failure;
use crate::ids::ActorId;
use crate::time::Timestamp;
use crate::turn::{Storage, TurnError};

/// A run, and what it waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct Why {
    /// Its id.
    pub run: String,
    /// Its workflow.
    pub workflow: Arc<str>,
    /// The version of that.
    pub version: u32,
    /// How it is.
    pub standing: Standing,
    /// What it waits for.
    pub waits: Vec<Wait>,
    /// How much more there is, at least.
    pub left_out: u64,
}

/// How a run is.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Under way.
    Running,
    /// Under way, but nothing new is begun until somebody resumes it.
    Paused,
    /// It is decided how it ends; what was active is called off.
    Ending(RunStatus),
    /// Over.
    Ended {
        /// How.
        status: RunStatus,
        /// When.
        at: Timestamp,
        /// What went wrong.
        error: Option<Failure>,
        /// Why it was cancelled, if whoever did so said.
        reason: Option<String>,
    },
}

/// Something that a run waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum Wait {
    /// What a token waits for.
    Token(TokenWait),
    /// Branches that have not all come to their join.
    Group(GroupWait),
}

/// What a token waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenWait {
    /// Which.
    pub token: TokenId,
    /// The node where it is.
    pub node: Arc<str>,
    /// Which attempt of the node this is, from 1.
    pub attempt: u32,
    /// The branch that it is in.
    pub branch: Option<Place>,
    /// Since when it has been so.
    pub since: Timestamp,
    /// What for.
    pub cause: Cause,
}

/// What a token can wait for.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// Its work has not begun.
    Turn,
    /// A task.
    Task(TaskStanding),
    /// Somebody's signal.
    Signal {
        /// Which.
        name: String,
        /// Until when.
        until: Option<Timestamp>,
    },
    /// A point in time.
    Sleep {
        /// Which.
        until: Option<Timestamp>,
    },
    /// The next attempt.
    Retry {
        /// When it is due.
        due: Option<Timestamp>,
    },
    /// The end of a run below.
    Run {
        /// Which.
        run: ActorId,
        /// Until when.
        until: Option<Timestamp>,
        /// What that one waits for, as far as it was asked.
        why: Option<Box<Why>>,
    },
}

/// How a task is. A run does not know: it has handed it over.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskStanding {
    /// Handed over.
    Dispatched,
    /// It runs in this process.
    Running,
    /// It waits for a place among those that run.
    Queued,
    /// A worker outside has it.
    Leased {
        /// The queue.
        queue: String,
        /// Who.
        worker: String,
        /// Until when, unless the worker says that it goes on.
        until: Timestamp,
    },
    /// It waits for a worker outside.
    Unleased {
        /// The queue.
        queue: String,
        /// When somebody asked for tasks of the queue last.
        asked: LastAsked,
    },
    /// This process cannot do it.
    Parked {
        /// What it lacks, and what to do about it.
        lacking: String,
    },
    /// It is done, or called off; the run takes notice just now.
    Settled,
}

/// When somebody asked for tasks of a queue last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastAsked {
    /// Somebody does now.
    Now,
    /// Then.
    At(Timestamp),
    /// Not as far back as is known: since this point.
    NotSince(Timestamp),
}

/// Branches that have not all come to their join.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupWait {
    /// Which group instance.
    pub instance: GroupId,
    /// What the group is called.
    pub name: Option<Arc<str>>,
    /// The branch around it.
    pub branch: Option<Place>,
    /// How many branches it has.
    pub total: u64,
    /// How many have arrived.
    pub arrived: u64,
    /// How many ended without arriving.
    pub ended: u64,
    /// When the join fires; nothing where nobody joins.
    pub wait_for: Option<WaitFor>,
    /// When it fires, or fails, anyway.
    pub until: Option<Timestamp>,
    /// What its branches wait for.
    pub waits: Vec<Wait>,
    /// How many more branches are not over.
    pub left_out: u64,
}

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Of each group instance, and outside of all of them.
    pub width_max: usize,
    /// Altogether. What is said is taken off.
    pub waits_left: usize,
}

/// First tokens of branches that are looked at to find those that are not over.
const LOOKED_AT_MAX: u64 = 20_000;

/// What a run waits for, if there is one of this id. With its workflow, also when its joins fire.
pub fn explain(
    storage: &dyn Storage,
    id: &str,
    workflow: Option<&Workflow>,
    bounds: &mut Bounds,
) -> Result<Option<Why>, TurnError> {
    let Some(facts) = run::facts(storage)? else { return Ok(None) };
    let progress = run::progress(storage)?;
    let standing = standing(storage, &progress)?;
    let root = facts.root(id);
    let mut said = Said { storage, run: id, root: &root, workflow, bounds, lists: vec![List::default()] };
    if !matches!(standing, Standing::Ended { .. }) {
        Walk::new(storage, LOOKED_AT_MAX, |met| said.take(met)).branch(&progress.root)?;
    }
    let List { waits, .. } = said.lists.pop().unwrap_or_default();
    let all = if progress.ended_at.is_some() { 0 } else { progress.root.tokens.len() + progress.root.groups.len() };
    let left_out = all.saturating_sub(waits.len()) as u64;
    Ok(Some(Why { run: id.to_owned(), workflow: facts.workflow, version: facts.version, standing, waits, left_out }))
}

fn standing(storage: &dyn Storage, progress: &Progress) -> Result<Standing, TurnError> {
    if let Some(at) = progress.ended_at {
        let (error, reason) = match run::decoded::<Outcome>(storage, run::OUTCOME)? {
            Some(Outcome::Failed(error)) => (Some(error), None),
            Some(Outcome::Cancelled { reason }) => (None, reason),
            Some(Outcome::Completed(_)) | None => (None, None),
        };
        return Ok(Standing::Ended { status: progress.status, at, error, reason });
    }
    Ok(match (&progress.ending, progress.status) {
        (Some(outcome), _) => Standing::Ending(outcome.status()),
        (None, RunStatus::Paused) => Standing::Paused,
        (None, RunStatus::Running | RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled) => {
            Standing::Running
        }
    })
}

/// What was said so far.
struct Said<'a> {
    storage: &'a dyn Storage,
    run: &'a str,
    root: &'a str,
    workflow: Option<&'a Workflow>,
    bounds: &'a mut Bounds,
    /// That of the group instances around, the innermost last.
    lists: Vec<List>,
}

#[derive(Default)]
struct List {
    waits: Vec<Wait>,
    /// Which branches it is about.
    branches: BTreeSet<u64>,
}

impl Said<'_> {
    fn take(&mut self, met: Met<'_>) -> Result<Go, TurnError> {
        let has_room = self.bounds.waits_left > 0
            && self.lists.last().is_some_and(|list| list.waits.len() < self.bounds.width_max);
        match met {
            Met::Token(_) | Met::Group if !has_room => return Ok(Go::Out),
            Met::Token(token) => {
                let wait = self.of_token(token)?;
                self.say(token.branch(), Wait::Token(wait));
            }
            Met::Group => self.lists.push(List::default()),
            Met::EndOfGroup(id, group, _) => {
                let List { waits, branches } = self.lists.pop().unwrap_or_default();
                let wait = GroupWait { waits, ..self.of_group(id, group, branches.len() as u64)? };
                self.say(group.lineage.last().copied(), Wait::Group(wait));
            }
            // It has ended since its place was read, or is lost: to find that is somebody else's business.
            Met::NoToken(_) | Met::NoGroup(_) => {}
        }
        Ok(Go::On)
    }

    fn say(&mut self, branch: Option<Place>, wait: Wait) {
        self.bounds.waits_left = self.bounds.waits_left.saturating_sub(1);
        let Some(list) = self.lists.last_mut() else { return };
        list.branches.extend(branch.map(|place| place.index));
        list.waits.push(wait);
        list.waits.sort_by_key(|wait| wait.branch().map(|place| place.index));
    }

    fn of_group(&self, id: GroupId, group: &Group, shown: u64) -> Result<GroupWait, TurnError> {
        let join = group.join.zip(self.workflow);
        let join = join.and_then(|(join, workflow)| workflow.transition(TransitionIndex(join)).join.as_ref());
        Ok(GroupWait {
            instance: id,
            name: group.name.clone(),
            branch: group.lineage.last().copied(),
            total: group.total,
            arrived: group.arrived,
            ended: group.ended,
            wait_for: join.map(|join| join.wait_for),
            until: crate::timers::due(self.storage, &timers::join(id))?,
            waits: Vec::new(),
            left_out: group.total.saturating_sub(group.arrived + group.ended + shown),
        })
    }

    fn of_token(&self, token: &Token) -> Result<TokenWait, TurnError> {
        let due = |name: String| crate::timers::due(self.storage, &name);
        let cause = match token.status {
            Status::Dispatched | Status::Executing => Cause::Task(TaskStanding::Dispatched),
            Status::WaitingForSignal => {
                let name = wait_of(self.storage, token.id)?.map(|(name, _)| name).unwrap_or_default();
                Cause::Signal { name, until: due(timers::timeout(token.id))? }
            }
            Status::Sleeping => Cause::Sleep { until: due(timers::sleep(token.id))? },
            Status::Retrying => Cause::Retry { due: due(timers::retry(token.id))? },
            Status::WaitingForSubworkflow => {
                let run = child_of(self.run, self.root, token)?;
                Cause::Run { run, until: due(timers::timeout(token.id))?, why: None }
            }
            Status::Pending
            | Status::WaitingForSiblings
            | Status::WaitingForAgent
            | Status::Completed
            | Status::Failed
            | Status::TimedOut
            | Status::Cancelled => Cause::Turn,
        };
        let (branch, Token { id, node, attempt, updated_at, .. }) = (token.branch(), token);
        Ok(TokenWait { token: *id, node: node.clone(), attempt: *attempt, branch, since: *updated_at, cause })
    }
}

impl Wait {
    /// The branch that it is in, the innermost one.
    #[must_use]
    pub fn branch(&self) -> Option<Place> {
        match self {
            Self::Token(wait) => wait.branch,
            Self::Group(wait) => wait.branch,
        }
    }
}
