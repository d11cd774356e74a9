//! Looking through all runs that are not over for what nothing will wake.
//!
//! Owns the paging, along the lists of runs by status: what is over is never looked at. Reads a store, whether an engine runs on it or not; what a running
//! one changes meanwhile is not taken for a fault. Start reading at [`check_runs`].

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_core::graph::doctor::{self, Below, Problem, Report, Surroundings, Waker};
use steadfast_core::graph::protocol::RunStatus;
use steadfast_core::ids::{ActorId, Sequence, TaskId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::TurnError;
use steadfast_store::rows::{Head, RunFilter, RunRow};
use steadfast_store::{Reader, StoreError};

use super::storage::{CommittedStorage, unavailable};
use super::{Graphs, RunError};

/// What was found in a part of the runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkup {
    /// How many were looked at.
    pub runs: u64,
    /// How many things in them each of these wakes.
    pub wakers: BTreeMap<Waker, u64>,
    /// Those with something that nothing will wake.
    pub stuck: Vec<Stuck>,
    /// Where the next part begins, if there is one.
    pub next: Option<CheckupPlace>,
}

/// A run with something that nothing will wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// Its id.
    pub run: String,
    /// Its workflow.
    pub workflow: Arc<str>,
    /// What it is, as far as it is told.
    pub problems: Vec<Problem>,
    /// How much more there is.
    pub left_out: u64,
}

/// A place among the runs that are not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckupPlace {
    status: RunStatus,
    before: Option<Sequence>,
}

/// Runs that are not over are in these, one list after the other.
const STATUSES: [RunStatus; 2] = [RunStatus::Running, RunStatus::Paused];

/// Runs that are read from their list at once.
const RUNS_PER_READ: usize = 100;

/// A part ends behind the run with which so many things were looked at. A run is looked at as a whole: it has at most a million.
const THINGS_MAX: u64 = 100_000;

/// How often a run is looked at that goes on meanwhile, before that is proof enough.
const TRIES: usize = 5;

impl Graphs {
    /// Looks at runs that are not over, at most `limit`, from the given place on.
    pub fn check_runs(&self, from: Option<CheckupPlace>, limit: usize) -> Result<Checkup, RunError> {
        let checked = self.engine.with_reader(|reader| check_runs(reader, from, limit));
        checked.and_then(|checked| checked).map_err(RunError::Store)
    }
}

/// Looks at runs of a store that are not over, at most `limit`, from the given place on.
pub fn check_runs(reader: &dyn Reader, from: Option<CheckupPlace>, limit: usize) -> Result<Checkup, StoreError> {
    let mut checkup = Checkup::default();
    let mut place = from.unwrap_or(CheckupPlace { status: STATUSES[0], before: None });
    let mut things = 0;
    loop {
        let room = limit.saturating_sub(checkup.runs as usize).min(RUNS_PER_READ);
        if room == 0 || things >= THINGS_MAX {
            return Ok(Checkup { next: Some(place), ..checkup });
        }
        let filter = RunFilter { status: Some(place.status.name()), ..RunFilter::default() };
        let rows = reader.runs(filter, place.before, room)?;
        let is_last = rows.len() < room;
        for row in &rows {
            things += checkup.take(row, checked(reader, &row.actor)?);
            place.before = Some(row.number);
            if things >= THINGS_MAX {
                break;
            }
        }
        if is_last && things < THINGS_MAX {
            let Some(next) = STATUSES.iter().skip_while(|status| **status != place.status).nth(1) else {
                return Ok(checkup);
            };
            place = CheckupPlace { status: *next, before: None };
        }
    }
}

impl Checkup {
    /// Adds what was found in a run. How much was looked at.
    fn take(&mut self, row: &RunRow, report: Report) -> u64 {
        let Report { wakers, problems, left_out } = report;
        self.runs += 1;
        let mut things = 1;
        for (waker, count) in wakers {
            *self.wakers.entry(waker).or_default() += count;
            things += count;
        }
        if !problems.is_empty() {
            let (run, workflow) = (row.actor.name().to_owned(), row.workflow.clone());
            self.stuck.push(Stuck { run, workflow, problems, left_out });
        }
        things
    }
}

/// Looks at a run until nothing has happened in it meanwhile: rows are read one by one.
fn checked(reader: &dyn Reader, actor: &ActorId) -> Result<Report, StoreError> {
    let storage = CommittedStorage { actor, reader };
    for _ in 0..TRIES {
        let before = Moment::of(reader, actor)?;
        let around = Around { reader, actor, alarm: before.head.alarm };
        let report = match doctor::check(&storage, actor, &around) {
            Ok(report) => report,
            Err(TurnError::StoreUnavailable(reason)) => return Err(StoreError::Failed(reason)),
            Err(error) => {
                let missing = format!("its rows cannot be read: {error}");
                Report { problems: vec![Problem { token: None, node: None, missing }], ..Report::default() }
            }
        };
        if report.problems.is_empty() || Moment::of(reader, actor)? == before {
            return Ok(report);
        }
    }
    // It goes on faster than it can be looked at.
    Ok(Report::default())
}

/// A run at a point of its history.
#[derive(PartialEq)]
struct Moment {
    head: Head,
    progress: Option<Json>,
}

impl Moment {
    fn of(reader: &dyn Reader, actor: &ActorId) -> Result<Self, StoreError> {
        let progress = doctor::moment(&CommittedStorage { actor, reader });
        let progress = progress.map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Self { head: reader.head(actor)?, progress })
    }
}

/// What is around a run.
struct Around<'r> {
    reader: &'r dyn Reader,
    actor: &'r ActorId,
    alarm: Option<Timestamp>,
}

impl Surroundings for Around<'_> {
    fn alarm(&self) -> Option<Timestamp> {
        self.alarm
    }

    fn has_task(&self, name: &str) -> Result<bool, TurnError> {
        let task = TaskId::new(name)?;
        Ok(self.reader.task(self.actor, &task).map_err(unavailable)?.is_some())
    }

    fn has_message(&self, to: &ActorId) -> Result<bool, TurnError> {
        let found = self.reader.messages(to.shard(), Some((to, Sequence(0))), 1).map_err(unavailable)?;
        Ok(found.first().is_some_and(|message| message.actor == *to))
    }

    fn below(&self, run: &ActorId) -> Result<Below, TurnError> {
        doctor::below(&CommittedStorage { actor: run, reader: self.reader })
    }
}

impl std::fmt::Display for CheckupPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let before = self.before.map(|number| format!("{:x}", number.0)).unwrap_or_default();
        write!(f, "{}.{before}", self.status.name())
    }
}

impl std::str::FromStr for CheckupPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (status, before) = text.split_once('.').ok_or(())?;
        let status = STATUSES.into_iter().find(|known| known.name() == status).ok_or(())?;
        let number =
            |digits: &str| u64::from_str_radix(digits, 16).ok().filter(|number| i64::try_from(*number).is_ok());
        let before = match before {
            "" => None,
            digits => Some(Sequence(number(digits).ok_or(())?)),
        };
        Ok(Self { status, before })
    }
}
