//! Decisions: what planning wants, as data.
//!
//! Owns the forms. They can be stored, shown and compared; `dispatch` applies them, and with tracing on each becomes an event
//! `decision.<layer>.<name>`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::token::{GroupId, Status, TokenId};
use crate::expression::Value;
use crate::failure::Failure;

/// Something that shall happen to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Decision {
    /// A token at `node`, in the same branch.
    CreateToken {
        /// The transition taken, by its place in the workflow.
        transition: usize,
        /// Where to.
        node: Arc<str>,
    },
    /// A group instance with a token for each of its branches.
    BatchCreateTokens {
        /// The group's name, if it has one.
        group: Option<Arc<str>>,
        /// The transitions that open it, in the order written. Branch indices run through them.
        parts: Vec<Part>,
        /// The join that closes it, by its transition's place in the workflow.
        join: Option<usize>,
    },
    /// The token arrives at a join.
    CheckSynchronization {
        /// The transition with the join.
        transition: usize,
        /// The join's node.
        node: Arc<str>,
    },
    /// The branch has arrived and waits for its siblings.
    CreateFanInToken {
        /// Of which instance.
        group: GroupId,
    },
    /// The join fires: what has arrived is merged, what still goes on is cancelled, and one token goes on.
    ActivateFanInToken {
        /// Of which instance.
        group: GroupId,
        /// How many branches have arrived.
        arrived: u64,
    },
    /// The instance is over, and nothing waits for it.
    CloseGroup {
        /// Which.
        group: GroupId,
    },
    /// A token's status changes.
    UpdateTokenStatus {
        /// Which token.
        token: TokenId,
        /// To what.
        status: Status,
    },
    /// A token's work begins.
    MarkForDispatch {
        /// Which token.
        token: TokenId,
    },
    /// A node's result goes into the context.
    ApplyNodeOutput {
        /// Which token.
        token: TokenId,
        /// What is written where.
        writes: Vec<Write>,
    },
    /// What branches gave goes into the context.
    SetContext {
        /// What is written where.
        writes: Vec<Write>,
    },
    /// The run is done.
    CompleteRun {
        /// Its output.
        output: Value,
    },
    /// The run fails.
    FailRun {
        /// Why.
        #[serde(deserialize_with = "failure")]
        failure: Failure,
    },
}

/// One of the transitions that open a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The transition, by its place in the workflow.
    pub transition: usize,
    /// How many branches it makes.
    pub count: u64,
    /// What each of them is given, for `foreach`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Value>,
}

/// A value for a place in the context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// `state.a.b`.
    pub path: String,
    /// What.
    pub value: Value,
}

/// Reads a failure by way of a value: what has a tag inside is buffered when it is read, and raw JSON, as in the details of a failure, cannot be read
/// from the buffer.
fn failure<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Failure, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    serde_json::from_value(value).map_err(serde::de::Error::custom)
}

impl Decision {
    /// Under which name it is traced: the layer that decides so, and what.
    #[must_use]
    pub fn event_type(&self) -> &'static str {
        match self {
            Self::CreateToken { .. } => "decision.routing.create_token",
            Self::BatchCreateTokens { .. } => "decision.routing.batch_create_tokens",
            Self::CheckSynchronization { .. } => "decision.routing.check_synchronization",
            Self::CreateFanInToken { .. } => "decision.sync.create_fan_in_token",
            Self::ActivateFanInToken { .. } => "decision.sync.activate_fan_in_token",
            Self::CloseGroup { .. } => "decision.sync.close_group",
            Self::UpdateTokenStatus { .. } => "decision.tokens.update_token_status",
            Self::MarkForDispatch { .. } => "decision.tokens.mark_for_dispatch",
            Self::ApplyNodeOutput { .. } => "decision.context.apply_node_output",
            Self::SetContext { .. } => "decision.context.set_context",
            Self::CompleteRun { .. } => "decision.completion.complete_run",
            Self::FailRun { .. } => "decision.completion.fail_run",
        }
    }
}
