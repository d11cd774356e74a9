//! Runs on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Value;

/// `POST`: start a run.
pub const WORKFLOW_RUNS: &str = "/v1/workflows/{name}/runs";
/// `GET`: list.
pub const RUNS: &str = "/v1/runs";
/// `GET`: one.
pub const RUN: &str = "/v1/runs/{id}";
/// `GET`: the tokens of a run.
pub const TOKENS: &str = "/v1/runs/{id}/tokens";
/// `GET`: the state and the output of a run.
pub const CONTEXT: &str = "/v1/runs/{id}/context";
/// `GET`: the artifacts of a run.
pub const ARTIFACTS: &str = "/v1/runs/{id}/artifacts";
/// `GET`: the runs that a run has started.
pub const CHILDREN: &str = "/v1/runs/{id}/children";
/// `POST`: end a run.
pub const CANCEL: &str = "/v1/runs/{id}/cancel";
/// `POST`: begin nothing new.
pub const PAUSE: &str = "/v1/runs/{id}/pause";
/// `POST`: go on.
pub const RESUME: &str = "/v1/runs/{id}/resume";
/// `POST`: remove a run that is over, with its whole tree.
pub const PURGE: &str = "/v1/runs/{id}/purge";
/// `POST`: send a signal.
pub const SIGNAL: &str = "/v1/runs/{id}/signals/{name}";
/// The header that makes a signal one that is sent once.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A run to be started.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// What the run is given; `{}` if nothing is said.
    #[serde(default, deserialize_with = "super::given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub input: Option<Value>,
    /// Its id: 1 to 200 of letters, digits, `.`, `_`, `-`, `:`. Starting it again starts nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How long the answer may wait for the end of the run, as `30s`; at most `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "30s")]
    pub wait: Option<String>,
    /// Whether its decisions become events.
    #[serde(default)]
    pub trace: bool,
}

/// How a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Under way.
    Running,
    /// Under way, but nothing new is begun.
    Paused,
    /// Over.
    Completed,
    /// Over, with an error.
    Failed,
    /// Over, because somebody wanted it so.
    Cancelled,
}

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// Its workflow.
    pub workflow: String,
    /// The version of it.
    pub version: u32,
    /// How it is.
    pub status: RunStatus,
    /// What it was given.
    #[schema(value_type = serde_json::Value)]
    pub input: Value,
    /// What it gave.
    #[schema(value_type = Option<serde_json::Value>)]
    pub output: Option<Value>,
    /// Why it failed.
    pub error: Option<Failure>,
    /// Why it was cancelled, if whoever did so said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it began.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// The run that started it.
    pub parent: Option<String>,
    /// The run at the top of its tree.
    pub root: String,
    /// The versions of all that it names, directly or not, by `kind/name`.
    pub versions: BTreeMap<String, u32>,
    /// How many tokens it has made.
    pub token_count: u64,
}

/// What went wrong.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// The kind of failure, by which it is matched.
    #[serde(rename = "type")]
    pub failure_type: String,
    /// A sentence for the user.
    pub message: String,
    /// Whether trying again can help.
    pub retryable: bool,
    /// More, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub details: Option<Value>,
}

/// Which runs are listed. Nothing given, all are.
#[derive(Debug, Clone, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParameters {
    /// Those of this workflow.
    pub workflow: Option<String>,
    /// Those that are so: `running`, `paused`, `completed`, `failed` or `cancelled`.
    pub status: Option<String>,
    /// Those of the tree below this run.
    pub root: Option<String>,
    /// At most so many: 1 to 1000; 50 if nothing is said.
    pub limit: Option<usize>,
    /// The `next_cursor` of the part before.
    pub cursor: Option<String>,
}

/// Which part of a list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageParameters {
    /// At most so many: 1 to 1000; 50 if nothing is said.
    pub limit: Option<usize>,
    /// The `next_cursor` of the part before.
    pub cursor: Option<String>,
}

/// A part of a list of runs.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Runs {
    /// The newest first.
    pub items: Vec<ListedRun>,
    /// Where the next part begins, if there is one.
    pub next_cursor: Option<String>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListedRun {
    /// Its id.
    pub id: String,
    /// Its workflow.
    pub workflow: String,
    /// The version of it.
    pub version: u32,
    /// How it is: one of the words of `RunStatus`.
    pub status: String,
    /// The run that started it.
    pub parent: Option<String>,
    /// The run at the top of its tree.
    pub root: String,
    /// When it began.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
}

/// A part of the tokens of a run.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Tokens {
    /// In the order in which they were made; those that are or were at joins behind all others.
    pub items: Vec<Token>,
    /// Where the next part begins, if there is one.
    pub next_cursor: Option<String>,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its number.
    pub id: u64,
    /// The node where it is.
    pub node: String,
    /// How it is.
    #[schema(example = "waiting_for_signal")]
    pub status: String,
    /// The token that it comes from.
    pub parent: Option<u64>,
    /// The branches it is inside: `root/answers:0`.
    pub path: String,
    /// The innermost of them.
    pub branch: Option<Branch>,
    /// Which attempt of its node this is, from 1.
    pub attempt: u32,
    /// When it was made.
    pub created_at: String,
    /// When its status changed last.
    pub updated_at: String,
}

/// A token's branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Branch {
    /// Which, from 0.
    pub index: u64,
    /// Of how many.
    pub total: u64,
}

/// The state and the output of a run, outside of all branches, by their full names.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = BTreeMap<String, serde_json::Value>)]
pub struct Context(pub BTreeMap<String, Value>);

/// The artifacts of a run.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Artifacts {
    /// All of them.
    pub items: Vec<Artifact>,
    /// Always `null`: there is one part.
    pub next_cursor: Option<String>,
}

/// An artifact.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    /// Its name.
    pub name: String,
    /// `committed` when the run has completed, `staged` before.
    pub status: String,
    /// The node whose task handed it over.
    pub node: String,
    /// What it is.
    #[schema(value_type = serde_json::Value)]
    pub content: Value,
}

/// Why a run is told something.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// The reason, kept with a run that is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of a run that was to be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Purged {
    /// The run.
    pub id: String,
    /// Whether there was one; `false` when it had gone before, or was never there.
    pub purged: bool,
}

/// How a run is after it was told something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Controlled {
    /// The run.
    pub id: String,
    /// How it is.
    pub status: RunStatus,
}
