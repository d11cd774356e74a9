//! Errors on the wire: problem documents as RFC 9457 has them.
//!
//! Owns their form and their stable types. Which occasion has which is the server's.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a problem document.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was not done, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// What kind of problem it is. Stable: programs match on it.
    #[serde(rename = "type")]
    #[schema(example = "/problems/run-not-found")]
    pub problem_type: String,
    /// The kind in words.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// What happened here, and what to do.
    pub detail: String,
    /// Everything that is wrong with definitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<DefinitionProblem>,
    /// Everything that is wrong with an input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
}

/// Something wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DefinitionProblem {
    /// `error` or `warning`.
    pub severity: String,
    /// What was read.
    pub file: String,
    /// The line, from 1; 0 for what is about no line.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub hint: Option<String>,
}

/// Something wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Violation {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

/// A kind of problem: its type, and its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The stable type.
    pub problem_type: &'static str,
    /// The kind in words.
    pub title: &'static str,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $type:literal, $title:literal;)*) => {
        $($(#[$doc])* pub const $name: Kind = Kind { problem_type: concat!("/problems/", $type), title: $title };)*

        /// Every kind there is.
        pub const KINDS: &[Kind] = &[$($name),*];
    };
}

kinds! {
    /// The request cannot be understood.
    BAD_REQUEST = "bad-request", "the request cannot be understood";
    /// The body is not JSON of the expected form.
    INVALID_BODY = "invalid-body", "the body cannot be read";
    /// A parameter of the query is wrong.
    INVALID_PARAMETER = "invalid-parameter", "a parameter is wrong";
    /// An id has characters or a length that ids do not have.
    INVALID_ID = "invalid-id", "this cannot be an id";
    /// No key was given, or one that is not known.
    UNAUTHORIZED = "unauthorized", "a key is needed";
    /// The key does not allow it.
    FORBIDDEN = "forbidden", "this is not allowed";
    /// There is no such path.
    PATH_NOT_FOUND = "path-not-found", "there is no such path";
    /// There is no such run.
    RUN_NOT_FOUND = "run-not-found", "there is no such run";
    /// There is no such workflow.
    WORKFLOW_NOT_FOUND = "workflow-not-found", "there is no such workflow";
    /// There is no such definition.
    DEFINITION_NOT_FOUND = "definition-not-found", "there is no such definition";
    /// There is no such dead letter.
    DEAD_LETTER_NOT_FOUND = "dead-letter-not-found", "there is no such dead letter";
    /// The path has other methods.
    METHOD_NOT_ALLOWED = "method-not-allowed", "the path does not have this method";
    /// The request did not arrive in time.
    TIMEOUT = "timeout", "the request took too long to arrive";
    /// The id is taken by another run.
    RUN_EXISTS = "run-exists", "another run has this id";
    /// The task is not lent to this worker any more.
    LEASE_LOST = "lease-lost", "the lease is lost";
    /// The run is over.
    RUN_ENDED = "run-ended", "the run is over";
    /// The run cannot be removed, because it or something of its tree is not over, or because it is only a part of a tree.
    RUN_NOT_OVER = "run-not-over", "the run is not over";
    /// The body is larger than bodies may be.
    TOO_LARGE = "too-large", "the body is too large";
    /// The body is of another type than expected.
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type", "the body is of the wrong type";
    /// Definitions have errors.
    INVALID_DEFINITIONS = "invalid-definitions", "the definitions have errors";
    /// The input does not fit the workflow.
    INVALID_INPUT = "invalid-input", "the input does not fit the workflow";
    /// A workflow names what is not in the store.
    MISSING_DEFINITION = "missing-definition", "a definition is missing";
    /// The engine has refused it.
    REFUSED = "refused", "the request was refused";
    /// The store or the engine does not answer now.
    UNAVAILABLE = "unavailable", "not available now";
    /// A fault of the server.
    INTERNAL = "internal", "the server has a fault";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_kinds_have_the_same_type() {
        let types: std::collections::BTreeSet<&str> = KINDS.iter().map(|kind| kind.problem_type).collect();
        assert_eq!(types.len(), KINDS.len());
    }
}
