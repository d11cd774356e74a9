//! The envelope of an event: what every entry of a history has in common.
//!
//! Owns the envelope; what happened (`data`) belongs to the actor that says so.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ids::ActorId;
use crate::json::Json;
use crate::time::Timestamp;

/// Something that happened, as history, streams and metrics see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Whose history this is in.
    pub actor: ActorId,
    /// Its place there: 1, 2, 3, … without gaps.
    pub sequence: u64,
    /// When the turn ran.
    pub at: Timestamp,
    /// What happened, as `noun.verb`.
    #[serde(rename = "type")]
    pub event_type: Cow<'static, str>,
    /// The facts.
    pub data: Json,
}
