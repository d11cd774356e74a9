//! What an executor is given to run a node's task.
//!
//! Owns the form that lies on disk between the turn that dispatches a task and the executor that runs it. Secrets are never in it: only where they
//! belong.

use serde::{Deserialize, Serialize};

use crate::expression::SecretPlace;
use crate::json::Json;

/// What an executor is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskInput {
    /// The node, for messages.
    pub node: String,
    /// The policy's attempt, from 1. Not the engine's count of possible starts.
    pub attempt: u32,
    /// How long this attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What the `run` block rendered to, with `null` wherever a secret belongs.
    pub specification: Json,
    /// Where secrets belong in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretPlace>,
    /// The node's input; `null` for a mock, which takes none.
    pub input: Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::SecretPart;

    #[test]
    fn its_stored_form_is_the_documented_one() {
        let input = TaskInput {
            node: "plan".to_owned(),
            attempt: 2,
            timeout_ms: Some(30_000),
            specification: Json::parse(r#"{"headers":{"authorization":null},"url":"https://example.org"}"#).unwrap(),
            secrets: vec![SecretPlace {
                pointer: "/headers/authorization".to_owned(),
                parts: vec![SecretPart::Text("Bearer ".to_owned()), SecretPart::Secret("TOKEN".to_owned())],
            }],
            input: Json::null(),
        };
        let stored = Json::encode(&input).unwrap();
        assert_eq!(
            stored.as_str(),
            r#"{"node":"plan","attempt":2,"timeout_ms":30000,"specification":{"headers":{"authorization":null},"url":"https://example.org"},"secrets":[{"pointer":"/headers/authorization","parts":[{"text":"Bearer "},{"secret":"TOKEN"}]}],"input":null}"#
        );
        assert_eq!(stored.decode::<TaskInput>().unwrap(), input);
    }

    #[test]
    fn what_is_not_there_is_left_out() {
        let text = r#"{"node":"a","attempt":1,"specification":{"value":1},"input":{"x":1.50}}"#;
        let input: TaskInput = Json::parse(text).unwrap().decode().unwrap();
        assert_eq!(Json::encode(&input).unwrap().as_str(), text);
    }
}
