//! What a run waits for, on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::runs::Branch;

/// `GET`: what a run waits for.
pub const WHY: &str = "/v1/runs/{id}/why";

/// A run, and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// The run.
    pub id: String,
    /// Its workflow.
    pub workflow: String,
    /// The version of it.
    pub version: u32,
    /// `running`, `paused`, `ending`, or how it has ended.
    pub status: String,
    /// The same in words.
    pub says: String,
    /// What it waits for. Of many only the first.
    pub waits: Vec<Wait>,
    /// How many more there are, at least.
    pub left_out: u64,
}

/// What a wait is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// Branches that have not all come to their join.
    Group,
    /// Work that has not begun.
    Turn,
    /// A task.
    Task,
    /// A signal.
    Signal,
    /// A point in time.
    Sleep,
    /// The next attempt.
    Retry,
    /// A run below.
    Run,
}

/// How a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It waits for a place among those that run, or for a worker.
    Waiting,
    /// It runs in the server.
    Running,
    /// A worker has it.
    Leased,
    /// The server lacks something for it.
    Parked,
    /// It is done, which the run takes notice of just now.
    Settled,
}

/// Something that a run waits for. Which fields there are depends on its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wait {
    /// What it is about.
    pub kind: WaitKind,
    /// The whole in words.
    pub says: String,
    /// The branch that it is in, the innermost one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Branch>,
    /// The token that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// The node where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Which attempt of the node this is, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Until when: a timeout, the end of a sleep or of a lease, the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// How the task is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskState>,
    /// The queue of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The worker that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The run below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The name of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// How many branches have arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived: Option<u64>,
    /// Of how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branches: Option<u64>,
    /// What the branches wait for, or the run below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub waits: Vec<Wait>,
    /// How many more of those there are, at least.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
