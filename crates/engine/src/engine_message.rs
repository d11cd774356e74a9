//! Messages that the engine itself sends to an actor, as they are stored.
//!
//! Owns their JSON form and its version. Never decides when one is sent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steadfast_core::ids::Sequence;
use steadfast_core::json::Json;
use steadfast_core::turn::{DeadLetter, FailedInput};

/// What the engine has to say to an actor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EngineMessage {
    /// An input was given up.
    Notice {
        /// It.
        letter: DeadLetter,
    },
    /// An input that was given up is to be tried again.
    Redriven {
        /// It.
        input: FailedInput,
    },
    /// The actor is to go, with all its rows. The engine does it: the actor itself never hears of it.
    Remove {
        /// How.
        order: RemovalOrder,
    },
}

/// How an actor is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovalOrder {
    /// The number under which it is listed. One that is listed under another is another, of the same name, and stays; one that has not ended stays too.
    pub number: Option<Sequence>,
    /// The key of its storage that goes first: without it, it is as good as gone.
    pub first: Option<Arc<str>>,
    /// Those that go with it.
    pub below: Option<Below>,
}

/// The actors of the tree that a removed actor is the top of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// What those that are listed have as their root.
    pub root: Arc<str>,
    /// How the ids of all begin: of some that never began there is nothing but dead letters.
    pub prefix: Arc<str>,
}

/// A form of the engine's with the version of the engine that wrote it.
#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    v: u32,
    // Not flattened, and enums inside not tagged within: serde would buffer them, and cannot buffer raw JSON.
    form: T,
}

/// The version that this engine writes, and the newest that it reads.
const VERSION: u32 = 1;

impl EngineMessage {
    pub(crate) fn write(self) -> Json {
        write(self)
    }

    pub(crate) fn read(body: &Json) -> Result<Self, String> {
        read(body)
    }
}

/// A failed input as a dead letter's row keeps it.
pub(crate) fn write_failed_input(input: &FailedInput) -> Json {
    write(input)
}

/// Reads what [`write_failed_input`] wrote.
pub(crate) fn read_failed_input(stored: &Json) -> Result<FailedInput, String> {
    read(stored)
}

fn write<T: Serialize>(form: T) -> Json {
    Json::encode(&Versioned { v: VERSION, form }).expect("bodies are checked before they become part of a form")
}

fn read<T: serde::de::DeserializeOwned>(stored: &Json) -> Result<T, String> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let Version { v } = stored.decode().map_err(|error| format!("stored form has no version: {error}"))?;
    if v > VERSION {
        return Err(format!("stored form has version {v}, this engine reads up to {VERSION}; start the newer engine"));
    }
    stored.decode::<Versioned<T>>().map(|versioned| versioned.form).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use steadfast_core::failure::{Failure, FailureKind};
    use steadfast_core::ids::{ActorId, TaskId};
    use steadfast_core::time::Timestamp;
    use steadfast_core::turn::Sender;

    use super::*;

    /// Every form that the engine stores, as it is on disk. A line that changes needs a new version and a reader for the old one.
    #[test]
    fn stored_forms_are_the_ones_of_version_1() {
        let body = Json::parse(r#"{"a":[1.50]}"#).unwrap();
        let from = Sender::Actor(ActorId::parse("run:a").unwrap());
        let task = TaskId::new("t").unwrap();
        let failure = Failure::last(FailureKind::Timeout, "late");
        let letter = DeadLetter {
            id: Sequence(7),
            input: FailedInput::Message { from: Sender::Outside, body: body.clone() },
            error: "boom".to_owned(),
            attempts: 3,
        };
        let inputs = [
            FailedInput::Message { from, body: body.clone() },
            FailedInput::Alarm { due: Timestamp(5) },
            FailedInput::TaskResult { task: task.clone(), attempt: 2, outcome: Ok(body.clone()) },
            FailedInput::TaskResult { task, attempt: 2, outcome: Err(failure) },
            FailedInput::Notice { letter: Box::new(letter.clone()) },
            FailedInput::Unreadable { body },
        ];
        let mut stored: Vec<String> = inputs.iter().map(|input| write_failed_input(input).to_string()).collect();
        stored.push(EngineMessage::Notice { letter: letter.clone() }.write().to_string());
        stored.push(EngineMessage::Redriven { input: letter.input }.write().to_string());
        let below = Some(Below { root: "a".into(), prefix: "run:a.".into() });
        let order = RemovalOrder { number: Some(Sequence(8)), first: Some("run".into()), below };
        stored.push(EngineMessage::Remove { order }.write().to_string());
        let expected = [
            r#"{"v":1,"form":{"message":{"from":{"actor":"run:a"},"body":{"a":[1.50]}}}}"#,
            r#"{"v":1,"form":{"alarm":{"due":5}}}"#,
            r#"{"v":1,"form":{"task_result":{"task":"t","attempt":2,"outcome":{"Ok":{"a":[1.50]}}}}}"#,
            r#"{"v":1,"form":{"task_result":{"task":"t","attempt":2,"outcome":{"Err":{"type":"timeout","message":"late","retryable":false}}}}}"#,
            r#"{"v":1,"form":{"notice":{"letter":{"id":7,"input":{"message":{"from":"outside","body":{"a":[1.50]}}},"error":"boom","attempts":3}}}}"#,
            r#"{"v":1,"form":{"unreadable":{"body":{"a":[1.50]}}}}"#,
            r#"{"v":1,"form":{"notice":{"letter":{"id":7,"input":{"message":{"from":"outside","body":{"a":[1.50]}}},"error":"boom","attempts":3}}}}"#,
            r#"{"v":1,"form":{"redriven":{"input":{"message":{"from":"outside","body":{"a":[1.50]}}}}}}"#,
            r#"{"v":1,"form":{"remove":{"order":{"number":8,"first":"run","below":{"root":"a","prefix":"run:a."}}}}}"#,
        ];
        assert_eq!(stored, expected);
        for (input, text) in inputs.iter().zip(expected) {
            assert_eq!(read_failed_input(&Json::from_stored(text)).as_ref(), Ok(input));
        }
        for text in &expected[6..] {
            assert!(EngineMessage::read(&Json::from_stored(text)).is_ok());
        }
    }

    #[test]
    fn a_form_of_a_newer_engine_is_refused_with_its_version() {
        let error = read_failed_input(&Json::from_stored(r#"{"v":2,"form":{"riddle":{}}}"#)).unwrap_err();
        assert_eq!(error, "stored form has version 2, this engine reads up to 1; start the newer engine");
    }
}
