//! Tasks for workers outside, on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Value;

/// `POST`: ask for tasks.
pub const LEASE: &str = "/v1/tasks/lease";
/// `POST`: say that the work goes on.
pub const HEARTBEAT: &str = "/v1/tasks/{id}/heartbeat";
/// `POST`: hand in a result.
pub const COMPLETE: &str = "/v1/tasks/{id}/complete";
/// `POST`: say that it has failed.
pub const FAIL: &str = "/v1/tasks/{id}/fail";

/// Which tasks a worker wants.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// Those of this queue, as `run: { worker: QUEUE }` names it.
    pub queue: String,
    /// Who asks, for people: a name of the worker's own.
    pub worker: String,
    /// At most so many, 1 to 100; 1 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<usize>,
    /// How long to wait for the first one, as `30s`; at most `5m`, not at all if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "30s")]
    pub wait: Option<String>,
    /// How long they are lent before a heartbeat is due, `1s` to `1h`; `30s` if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "30s")]
    pub visibility: Option<String>,
}

/// Tasks that are lent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Leased {
    /// The longest waiting first; none when none came in time.
    pub tasks: Vec<Task>,
}

/// A task that is lent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// Its id. The same for every attempt, so that whoever is called can tell a repetition.
    pub id: String,
    /// What proves that it is lent to this worker.
    pub lease: String,
    /// For how long, in milliseconds; a heartbeat begins anew.
    pub lease_ms: u64,
    /// The queue.
    pub queue: String,
    /// The run whose task it is.
    pub run_id: String,
    /// The node.
    pub node: String,
    /// Which attempt of the node this is, from 1.
    pub attempt: u32,
    /// What it is given.
    #[schema(value_type = serde_json::Value)]
    pub input: Value,
}

/// A sign that the work goes on.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// That of the task.
    pub lease: String,
    /// How far it is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub progress: Option<Value>,
}

/// A lease that was extended.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Extended {
    /// For how long from now, in milliseconds.
    pub lease_ms: u64,
}

/// A result.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    /// That of the task.
    pub lease: String,
    /// What came of it; `null` if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Value>,
}

/// A failure.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// That of the task.
    pub lease: String,
    /// What went wrong.
    pub error: TaskError,
}

/// What went wrong with a task.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskError {
    /// A sentence for people.
    pub message: String,
    /// Whether trying again can help; it can if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// More, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub details: Option<Value>,
}

/// What became of what a worker said. It is on disk.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Settled {
    /// The task.
    pub id: String,
}
