//! Events on the wire: as pages of JSON, and as server-sent events.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Value;

/// `GET`: the history of a run, or of its tree.
pub const RUN_EVENTS: &str = "/v1/runs/{id}/events";
/// `GET`: those events of a run that tell a decision.
pub const RUN_DECISIONS: &str = "/v1/runs/{id}/decisions";
/// `GET`: the history of everything.
pub const EVENTS: &str = "/v1/events";
/// The header in which a reader of a stream says what it has seen.
pub const LAST_EVENT_ID: &str = "last-event-id";
/// The media type of a stream.
pub const STREAM: &str = "text/event-stream";

/// Which events of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunEventsParameters {
    /// Those after this place: a `sequence`, or with `tree` a `place`; also a `next_cursor`.
    pub after: Option<String>,
    /// At most so many on a page: 1 to 1000; 50 if nothing is said. A stream has no end of this kind.
    pub limit: Option<usize>,
    /// Those of all runs of the tree that the run is part of.
    #[serde(default)]
    pub tree: bool,
}

/// Which events.
#[derive(Debug, Clone, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsParameters {
    /// Those after this place: a `place`, or a `next_cursor`.
    pub after: Option<String>,
    /// At most so many on a page: 1 to 1000; 50 if nothing is said. A stream has no end of this kind.
    pub limit: Option<usize>,
}

/// A part of a history.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Events {
    /// In the order in which they were committed.
    pub items: Vec<Event>,
    /// Where the next part begins, if there is more now.
    pub next_cursor: Option<String>,
}

/// An event of a run.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its place in the run's history: 1, 2, 3, …
    pub sequence: u64,
    /// Its place in the history of everything, where more than one run is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "17.0")]
    pub place: Option<String>,
    /// When it happened.
    pub at: String,
    /// What happened.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The run.
    pub run_id: String,
    /// The run at the top of its tree.
    pub root_id: String,
    /// The run's workflow.
    pub workflow: String,
    /// The version of it.
    pub version: u32,
    /// The facts.
    #[schema(value_type = serde_json::Value)]
    pub data: Value,
}
