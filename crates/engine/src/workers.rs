//! Workers outside this process, in any language: they ask for tasks, do them, and say what came of it.
//!
//! Owns the way in. What is lent to whom is known in [`crate::tasks`].

use std::time::Duration;

use steadfast_core::failure::Failure;
use steadfast_core::json::Json;

use crate::engine::Engine;
use crate::tasks::{Ask, DeskError, LeaseView, Lent, OutsideTask};

/// The desk of an engine, where workers outside get their tasks. Cheap to clone.
#[derive(Clone)]
pub struct Workers {
    engine: Engine,
}

impl Workers {
    /// The desk of `engine`.
    #[must_use]
    pub fn of(engine: &Engine) -> Self {
        Self { engine: engine.clone() }
    }

    /// Asks for tasks, and waits for the first if there is none. A task that is lent goes to nobody else until its lease is over.
    pub async fn lease(&self, ask: &Ask) -> Result<Vec<Lent>, DeskError> {
        self.engine.desk().lease(ask).await
    }

    /// Says that the work goes on, and maybe how far it is. For how long the task is lent from now.
    pub fn heartbeat(&self, id: &OutsideTask, lease: &str, progress: Option<Json>) -> Result<Duration, DeskError> {
        self.engine.desk().heartbeat(id, lease, progress)
    }

    /// Hands in a result. It is on disk when this returns; said again under the same lease, it changes nothing.
    pub async fn complete(&self, id: &OutsideTask, lease: &str, result: Json) -> Result<(), DeskError> {
        self.engine.desk().settle(id, lease, Ok(result)).await
    }

    /// Says that the task has failed; whether it is tried again is up to the node's retry policy and `retryable`.
    pub async fn fail(&self, id: &OutsideTask, lease: &str, failure: Failure) -> Result<(), DeskError> {
        self.engine.desk().settle(id, lease, Err(failure)).await
    }

    /// What is lent now, at most [`steadfast_core::limits::PAGE_ROWS_MAX`].
    #[must_use]
    pub fn leases(&self) -> Vec<LeaseView> {
        self.engine.desk().leases()
    }
}
