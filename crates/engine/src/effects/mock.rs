//! The executor `mock`: something that stands in for a task.
//!
//! Owns the waiting. What a mock gives is decided in [`steadfast_core::graph::mock`].

use std::time::Duration;

use steadfast_core::graph::mock::{Mocked, Specification, outcome};
use steadfast_core::json::Json;

use super::{Call, Effect};
use crate::tasks::NotDone;

pub(super) struct Mock;

impl Effect for Mock {
    const TIMEOUT_MS: Option<u64> = None;

    async fn run(&self, mut call: Call) -> Result<Json, NotDone> {
        let specification: Specification = call.specification()?;
        let Mocked { delay_ms, outcome } = outcome(&specification, &call.key, call.attempt);
        // A sleep of nothing would still wait for the next tick of the timer, a millisecond.
        if delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        }
        outcome.map_err(NotDone::Failed)
    }
}
