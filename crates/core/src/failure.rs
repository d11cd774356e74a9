//! The one shape of an error that is stored, told to an actor or shown to a user.
//!
//! Owns the shape and its kinds; never decides whether to retry: see [`crate::retry`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::limits;

/// What went wrong: `{ type, message, retryable, details? }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure, by which it is matched.
    #[serde(rename = "type")]
    pub kind: FailureKind,
    /// A sentence for the user.
    pub message: String,
    /// Whether trying again can help.
    pub retryable: bool,
    /// More, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The task said no.
    TaskFailed,
    /// It took too long.
    Timeout,
    /// What it was given does not fit.
    InvalidInput,
    /// What it gave does not fit.
    InvalidOutput,
    /// What it names does not exist.
    NotFound,
    /// Somebody called it off.
    Cancelled,
    /// An expression could not be evaluated.
    Expression,
    /// A loop went round too often.
    LoopLimit,
    /// A join can no longer be met.
    JoinImpossible,
    /// It was cut off too often without getting further.
    RecoveryExhausted,
    /// A fault of our own.
    Internal,
}

impl FailureKind {
    /// Its name, as stored and shown.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TaskFailed => "task_failed",
            Self::Timeout => "timeout",
            Self::InvalidInput => "invalid_input",
            Self::InvalidOutput => "invalid_output",
            Self::NotFound => "not_found",
            Self::Cancelled => "cancelled",
            Self::Expression => "expression",
            Self::LoopLimit => "loop_limit",
            Self::JoinImpossible => "join_impossible",
            Self::RecoveryExhausted => "recovery_exhausted",
            Self::Internal => "internal",
        }
    }
}

impl Failure {
    /// A failure that a retry may mend.
    #[must_use]
    pub fn retryable(kind: FailureKind, message: &str) -> Self {
        Self { kind, message: bounded(message), retryable: true, details: None }
    }

    /// A failure that no retry mends.
    #[must_use]
    pub fn last(kind: FailureKind, message: &str) -> Self {
        Self { kind, message: bounded(message), retryable: false, details: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Cuts a message to what is kept of it, at a character boundary.
#[must_use]
pub fn bounded(message: &str) -> String {
    let mut end = message.len().min(limits::FAILURE_MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_stored_form_is_the_documented_one() {
        let failure = Failure::retryable(FailureKind::TaskFailed, "boom");
        let stored = Json::encode(&failure).unwrap();
        assert_eq!(stored.as_str(), r#"{"type":"task_failed","message":"boom","retryable":true}"#);
        assert_eq!(stored.decode::<Failure>().unwrap(), failure);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let kept = bounded(&"ä".repeat(limits::FAILURE_MESSAGE_BYTES_MAX));
        assert_eq!(kept.len(), limits::FAILURE_MESSAGE_BYTES_MAX);
    }
}
