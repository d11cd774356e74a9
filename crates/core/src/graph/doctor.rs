//! What will wake a run next, proved for everything that is not over in it.
//!
//! Owns what must be there: for a task its row, for a time its timer and the alarm, for work that was put off a message, for a run below that run or its word. Where
//! nothing of the kind is there, the run would wait for ever. Never mends anything. Start reading at [`check`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::dispatch::{child_of, timers, wait_of};
use super::protocol::RunStatus;
use super::state::groups::Group;
use super::state::run::{self, Progress};
use super::state::walk::{Go, Met, Walk};
use super::token::{GroupId, Status, Token, TokenId};
use crate::ids::ActorId;
use crate::json::Json;
use crate::time::Timestamp;
use crate::turn::{Storage, TurnError};

/// What is around a run, of which its own rows do not tell.
pub trait Surroundings {
    /// When its alarm is due.
    fn alarm(&self) -> Option<Timestamp>;

    /// Whether it has a task of this name that is not settled.
    fn has_task(&self, name: &str) -> Result<bool, TurnError>;

    /// Whether a message waits for an actor.
    fn has_message(&self, to: &ActorId) -> Result<bool, TurnError>;

    /// How a run below is.
    fn below(&self, run: &ActorId) -> Result<Below, TurnError>;
}

/// How a run below is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// There is none.
    Missing,
    /// It is not over, so that it is looked at for itself.
    Unfinished,
    /// It is over.
    Ended,
}

/// What wakes a part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waker {
    /// The alarm.
    Alarm,
    /// The result of a task.
    Task,
    /// A message.
    Message,
    /// The end of a run below.
    Run,
    /// A signal from outside.
    Signal,
    /// Somebody who resumes the run.
    Resume,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// How much of the run each wakes.
    pub wakers: BTreeMap<Waker, u64>,
    /// What nothing will wake, at most [`PROBLEMS_MAX`].
    pub problems: Vec<Problem>,
    /// How much more of that there is.
    pub left_out: u64,
}

/// Something that nothing will wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The token that it is about.
    pub token: Option<TokenId>,
    /// The node where that is.
    pub node: Option<Arc<str>>,
    /// What is missing.
    pub missing: String,
}

/// Problems of one run that are told.
pub const PROBLEMS_MAX: usize = 20;

/// What wakes each part of the run `id` that is not over. Nothing is found where there is no run, or it is over.
pub fn check(storage: &dyn Storage, id: &ActorId, around: &dyn Surroundings) -> Result<Report, TurnError> {
    let Some(facts) = run::facts(storage)? else { return Ok(Report::default()) };
    let progress = run::progress(storage)?;
    if progress.ended_at.is_some() {
        return Ok(Report::default());
    }
    let root = facts.root(id.name());
    let mut check = Check { storage, id, root: &root, around, steps: StepsWaker::None, report: Report::default() };
    check.alarm()?;
    check.turns(&progress)?;
    Walk::new(storage, u64::MAX, |met| check.take(met).map(|()| Go::On)).branch(&progress.root)?;
    let report = check.report;
    if report.wakers.is_empty() && report.problems.is_empty() {
        let missing = "nothing is active in the run, and it has not ended".to_owned();
        return Ok(Report { problems: vec![Problem { token: None, node: None, missing }], ..report });
    }
    Ok(report)
}

/// How far a run is, to be compared: while it goes on, rows that were read one by one may not fit together.
pub fn moment(storage: &dyn Storage) -> Result<Option<Json>, TurnError> {
    storage.get(run::PROGRESS)
}

/// How the run is whose storage this is.
pub fn below(storage: &dyn Storage) -> Result<Below, TurnError> {
    if run::facts(storage)?.is_none() {
        return Ok(Below::Missing);
    }
    let is_over = run::progress(storage)?.ended_at.is_some();
    Ok(if is_over { Below::Ended } else { Below::Unfinished })
}

/// Tokens, each with its attempt, that wait for a task which is not there; at most `limit`.
pub fn lost_tasks(
    storage: &dyn Storage,
    limit: usize,
    has_task: &dyn Fn(&str) -> Result<bool, TurnError>,
) -> Result<Vec<(TokenId, u32)>, TurnError> {
    let mut lost = Vec::new();
    if below(storage)? != Below::Unfinished {
        return Ok(lost);
    }
    let root = run::progress(storage)?.root;
    let visit = |met: Met<'_>| {
        if let Met::Token(token) = met
            && token.status == Status::Dispatched
            && lost.len() < limit
            && !has_task(&token.id.to_string())?
        {
            lost.push((token.id, token.attempt));
        }
        Ok(Go::On)
    };
    Walk::new(storage, u64::MAX, visit).branch(&root)?;
    Ok(lost)
}

struct Check<'a> {
    storage: &'a dyn Storage,
    id: &'a ActorId,
    root: &'a str,
    around: &'a dyn Surroundings,
    /// What takes up the steps that were put off.
    steps: StepsWaker,
    report: Report,
}

/// What takes up steps that were put off.
#[derive(Clone, Copy)]
enum StepsWaker {
    /// There are none.
    None,
    /// This does; or it was told that nothing does.
    Known(Option<Waker>),
}

impl Check<'_> {
    /// The alarm stands where the earliest timer does.
    fn alarm(&mut self) -> Result<(), TurnError> {
        let Some(earliest) = crate::timers::earliest(self.storage)? else { return Ok(()) };
        let found = match self.around.alarm() {
            Some(alarm) if alarm <= earliest => return Ok(()),
            Some(alarm) => format!("stands at {}", alarm.rfc3339()),
            None => "is missing".to_owned(),
        };
        self.tell(None, format!("something is due at {}, but the alarm {found}", earliest.rfc3339()));
        Ok(())
    }

    /// What does not fit into a turn is left to the next, which the run has asked itself for.
    fn turns(&mut self, progress: &Progress) -> Result<(), TurnError> {
        let has_steps = progress.steps.0 < progress.steps.1;
        let is_held = progress.status == RunStatus::Paused && progress.ending.is_none();
        if is_held {
            self.count(Waker::Resume);
        }
        if has_steps && is_held {
            self.steps = StepsWaker::Known(Some(Waker::Resume));
        }
        let wants_turn = !progress.sweeps.is_empty() || progress.ending.is_some() || has_steps && !is_held;
        if wants_turn {
            let is_asked_for = self.around.has_message(self.id)?;
            match is_asked_for {
                true => self.count(Waker::Message),
                false => self.tell(None, "work was put off to another turn, but no message asks for one".to_owned()),
            }
            if has_steps && !is_held {
                self.steps = StepsWaker::Known(is_asked_for.then_some(Waker::Message));
            }
        }
        Ok(())
    }

    fn take(&mut self, met: Met<'_>) -> Result<(), TurnError> {
        match met {
            Met::Token(token) => self.token(token)?,
            Met::NoToken(id) => self.tell(None, format!("token {id} is missing from the run's storage")),
            Met::Group => {}
            Met::NoGroup(id) => self.tell(None, format!("group instance {id} is missing from the run's storage")),
            Met::EndOfGroup(id, group, found) => self.group(id, group, found.unwrap_or(u64::MAX)),
        }
        Ok(())
    }

    fn group(&mut self, id: GroupId, group: &Group, found: u64) {
        let Group { total, created, arrived, ended, .. } = *group;
        let name = group.shown_as();
        let lost = created.saturating_sub(arrived + ended).saturating_sub(found);
        if lost > 0 {
            self.tell(None, format!("{lost} of {total} branches of `{name}` (instance {id}) have nothing active"));
        }
        if created < total {
            match self.steps {
                StepsWaker::Known(waker) => waker.into_iter().for_each(|waker| self.count(waker)),
                StepsWaker::None => {
                    let left = total - created;
                    self.tell(None, format!("{left} of {total} branches of `{name}` (instance {id}) will never begin"));
                }
            }
        }
        if arrived + ended >= total {
            self.tell(None, format!("all branches of `{name}` (instance {id}) are over, but it was not closed"));
        }
    }

    fn token(&mut self, token: &Token) -> Result<(), TurnError> {
        let waker = match token.status {
            Status::Pending => match self.steps {
                StepsWaker::Known(waker) => Ok(waker),
                StepsWaker::None => Err("its work was not begun, and was not put off either".to_owned()),
            },
            Status::Dispatched | Status::Executing => match self.around.has_task(&token.id.to_string())? {
                true => Ok(Some(Waker::Task)),
                false => Err("it waits for a task that is not there".to_owned()),
            },
            Status::Sleeping => self.timer(&timers::sleep(token.id))?,
            Status::Retrying => self.timer(&timers::retry(token.id))?,
            Status::WaitingForSignal => match wait_of(self.storage, token.id)? {
                Some((_, true)) => Ok(Some(Waker::Signal)),
                Some((name, false)) => Err(format!("it waits for signal `{name}`, which would not find it")),
                None => Err("it waits for a signal whose name is lost".to_owned()),
            },
            Status::WaitingForSubworkflow => self.below(token)?,
            Status::WaitingForAgent => Err("it waits for an agent, which this version does not have".to_owned()),
            Status::WaitingForSiblings | Status::Completed | Status::Failed | Status::TimedOut | Status::Cancelled => {
                Ok(None)
            }
        };
        match waker {
            Ok(waker) => waker.into_iter().for_each(|waker| self.count(waker)),
            Err(missing) => self.tell(Some(token), missing),
        }
        Ok(())
    }

    fn timer(&self, name: &str) -> Result<Result<Option<Waker>, String>, TurnError> {
        Ok(match crate::timers::due(self.storage, name)? {
            Some(_) => Ok(Some(Waker::Alarm)),
            None => Err("it waits for a time that is not noted".to_owned()),
        })
    }

    /// Messages first: one is there until what it brings about is on disk.
    fn below(&self, token: &Token) -> Result<Result<Option<Waker>, String>, TurnError> {
        let run = child_of(self.id.name(), self.root, token)?;
        if self.around.has_message(&run)? {
            return Ok(Ok(Some(Waker::Message)));
        }
        let what = match self.around.below(&run)? {
            Below::Unfinished => return Ok(Ok(Some(Waker::Run))),
            Below::Missing => "does not exist",
            Below::Ended => "is over",
        };
        Ok(match self.around.has_message(self.id)? {
            true => Ok(Some(Waker::Message)),
            false => Err(format!("it waits for run `{}`, which {what}, and no word of that is on its way", run.name())),
        })
    }

    fn count(&mut self, waker: Waker) {
        *self.report.wakers.entry(waker).or_default() += 1;
    }

    fn tell(&mut self, token: Option<&Token>, missing: String) {
        if self.report.problems.len() == PROBLEMS_MAX {
            self.report.left_out += 1;
            return;
        }
        let (token, node) = (token.map(|token| token.id), token.map(|token| token.node.clone()));
        self.report.problems.push(Problem { token, node, missing });
    }
}

impl Waker {
    /// Its name, as it is shown.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Alarm => "alarm",
            Self::Task => "task",
            Self::Message => "message",
            Self::Run => "run",
            Self::Signal => "signal",
            Self::Resume => "resume",
        }
    }
}
