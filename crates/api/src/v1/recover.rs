//! Taking up again what is stuck of a run, on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::runs::RunStatus;

/// `POST`: take up again what is stuck.
pub const RECOVER: &str = "/v1/runs/{id}/recover";

/// How a run is taken up again.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Recover {
    /// Why, for whoever reads the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Workers that were not heard of for so long lose their tasks of the run; `30s` if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "30s")]
    pub silent_for: Option<String>,
}

/// What was taken up again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Recovered {
    /// The run.
    pub id: String,
    /// How it is.
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
