//! Dead letters on the wire.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Value;

/// `GET`: list.
pub const DEAD_LETTERS: &str = "/v1/dead-letters";
/// `GET`: one. `DELETE`: throw it away.
pub const DEAD_LETTER: &str = "/v1/dead-letters/{id}";
/// `POST`: try one again.
pub const REDRIVE: &str = "/v1/dead-letters/{id}/redrive";

/// Which dead letters are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParameters {
    /// Those of this actor, as `kind:name`. A run is `run:ID`; an id without a colon will do.
    pub source: Option<String>,
    /// At most so many: 1 to 1000; 50 if nothing is said.
    pub limit: Option<usize>,
    /// The `next_cursor` of the part before.
    pub cursor: Option<String>,
}

/// A part of the list of dead letters.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeadLetters {
    /// By shard, the oldest first.
    pub items: Vec<DeadLetter>,
    /// Where the next part begins, if there is one.
    pub next_cursor: Option<String>,
}

/// An input that was given up.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeadLetter {
    /// Its id.
    #[schema(example = "16-3-42")]
    pub id: String,
    /// Whose input it was: `kind:name`.
    pub actor: String,
    /// The input; `null` when it cannot be read.
    #[schema(value_type = Option<serde_json::Value>)]
    pub input: Option<Value>,
    /// Why it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// Why the last try failed.
    pub error: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was given up.
    pub at: String,
}
