//! Taking up again what is stuck of a run.
//!
//! Owns which parts of the engine are told: the run itself, the tasks that this process had put aside, the workers that are silent. Start reading at
//! [`Graphs::recover`].

use std::time::Duration;

use steadfast_core::graph::doctor;
use steadfast_core::graph::protocol::{Command, Controlled, Recovered, RunStatus};
use steadfast_core::ids::TaskId;
use steadfast_core::limits;

use super::storage::unavailable;
use super::{Graphs, RunError};

/// What was taken up again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// How the run is.
    pub status: RunStatus,
    /// Retries that were begun before their time.
    pub retried: u64,
    /// Tasks that were lost and are dispatched again.
    pub dispatched: u64,
    /// Tasks that were parked and are tried again.
    pub unparked: u64,
    /// Tasks taken back from workers that are silent.
    pub taken_back: u64,
}

impl Graphs {
    /// Takes up again what is stuck of a run, up to [`limits::RECOVERED_MAX`] of each kind: begins retries that wait for their time, dispatches tasks that
    /// are lost, tries parked ones again, takes back those of workers that were not heard of for `silent_for`. Does nothing to runs below. For a run that is over:
    /// `Err` with its status.
    pub async fn recover(&self, run: &str, silent_for: Duration) -> Result<Result<Recovery, RunStatus>, RunError> {
        let actor = self.actor(run)?;
        let lost = self.read(&actor, |storage| {
            let has_task = |name: &str| {
                let task = TaskId::new(name)?;
                Ok(storage.reader.task(&actor, &task).map_err(unavailable)?.is_some())
            };
            doctor::lost_tasks(storage, limits::RECOVERED_MAX, &has_task)
        })?;
        let Recovered { controlled, retried, dispatched } = self.ask(&actor, None, &Command::Recover { lost }).await?;
        let status = match controlled {
            Controlled::Done(status) => status,
            Controlled::Ended(status) => return Ok(Err(status)),
            Controlled::NotFound => return Err(RunError::NotFound { run: run.to_owned() }),
        };
        let unparked = self.engine.try_parked_again(&actor).map_err(RunError::Store)?;
        let taken_back = self.engine.desk().take_back_from_silent(&actor, silent_for);
        Ok(Ok(Recovery { status, retried, dispatched, unparked, taken_back }))
    }
}
