//! What a run waits for, down the chain.
//!
//! Owns what the run's rows do not tell: how its tasks are in this process, and the runs below. How much is said is bounded, however large a run is and however
//! many are below it. Start reading at [`Graphs::why`].

use std::collections::HashSet;

use steadfast_core::graph::source::SharedWorkflow;
use steadfast_core::graph::token::Status;
use steadfast_core::graph::view::{self, TokenView};
use steadfast_core::graph::why::{self, Bounds, Cause, TaskStanding, Wait, Why};
use steadfast_core::ids::{ActorId, TaskId};
use steadfast_core::limits;

use super::{Graphs, RunError};
use crate::tasks::{OutsideTask, outside_queue};

/// How much is said about one run.
struct Left {
    bounds: Bounds,
    /// Runs below that are still looked into.
    runs: usize,
}

impl Graphs {
    /// What a run waits for, and what the runs wait for that it waits for. Bounded by [`limits::WHY_WIDTH_MAX`], [`limits::WHY_WAITS_MAX`] and
    /// [`limits::WHY_RUNS_MAX`].
    pub fn why(&self, run: &str) -> Result<Why, RunError> {
        let bounds = Bounds { width_max: limits::WHY_WIDTH_MAX, waits_left: limits::WHY_WAITS_MAX };
        let mut left = Left { bounds, runs: limits::WHY_RUNS_MAX };
        self.explained(&self.actor(run)?, &mut left)?.ok_or_else(|| RunError::NotFound { run: run.to_owned() })
    }

    /// Shows as executing those tokens of a run whose tasks run in this process or are lent to a worker. Only memory knows: nothing is written.
    pub(super) fn mark_executing(&self, run: &str, tokens: &mut [TokenView]) -> Result<(), RunError> {
        let actor = self.actor(run)?;
        let dispatched = tokens.iter().filter(|token| token.status == Status::Dispatched);
        let ids = dispatched.filter_map(|token| TaskId::new(&token.id.to_string()).ok());
        let tasks: Vec<OutsideTask> = ids.map(|task| OutsideTask { actor: actor.clone(), task }).collect();
        let lent = self.engine.desk().lent_of(&tasks);
        let running = self.engine.running_of(tasks);
        let executing: HashSet<&str> = lent.iter().chain(&running).map(|id| id.task.as_str()).collect();
        for token in tokens.iter_mut().filter(|token| token.status == Status::Dispatched) {
            if executing.contains(&*token.id.to_string()) {
                token.status = Status::Executing;
            }
        }
        Ok(())
    }

    fn explained(&self, run: &ActorId, left: &mut Left) -> Result<Option<Why>, RunError> {
        let Some(origin) = self.read(run, |storage| view::origin(storage, run.name()))? else { return Ok(None) };
        let definitions = self.engine.definitions().map_err(RunError::Store)?;
        // Without it, all is said but when joins fire.
        let workflow = SharedWorkflow::find(&*definitions, &origin.workflow, origin.version).ok();
        let bounds = &mut left.bounds;
        let why = self.read(run, |storage| why::explain(storage, run.name(), workflow.as_deref(), bounds))?;
        let Some(mut why) = why else { return Ok(None) };
        self.fill(run, &mut why.waits, left)?;
        Ok(Some(why))
    }

    fn fill(&self, run: &ActorId, waits: &mut [Wait], left: &mut Left) -> Result<(), RunError> {
        for wait in waits {
            let wait = match wait {
                Wait::Group(group) => {
                    self.fill(run, &mut group.waits, left)?;
                    continue;
                }
                Wait::Token(wait) => wait,
            };
            match &mut wait.cause {
                Cause::Task(standing) => *standing = self.standing(run, &wait.token.to_string())?,
                Cause::Run { run: below, why, .. } if left.runs > 0 => {
                    left.runs -= 1;
                    *why = self.explained(below, left)?.map(Box::new);
                }
                Cause::Run { .. } | Cause::Turn | Cause::Signal { .. } | Cause::Sleep { .. } | Cause::Retry { .. } => {}
            }
        }
        Ok(())
    }

    /// How a task is, as far as this process knows.
    fn standing(&self, run: &ActorId, name: &str) -> Result<TaskStanding, RunError> {
        let Ok(task) = TaskId::new(name) else { return Ok(TaskStanding::Dispatched) };
        let row = self.engine.with_reader(|reader| reader.task(run, &task)).and_then(|row| row);
        let Some(row) = row.map_err(RunError::Store)? else { return Ok(TaskStanding::Settled) };
        let id = OutsideTask { actor: run.clone(), task };
        if let Some(queue) = outside_queue(&row.executor) {
            return Ok(self.engine.desk().standing(&id, queue));
        }
        if let Some(lacking) = self.engine.lacking(&id) {
            return Ok(TaskStanding::Parked { lacking });
        }
        let is_running = !self.engine.running_of(vec![id]).is_empty();
        Ok(if is_running { TaskStanding::Running } else { TaskStanding::Queued })
    }
}
