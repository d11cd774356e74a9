//! What goes into a turn.
//!
//! Owns the inputs as actors see them; how they travel and are kept is the engine's business.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::ids::{ActorId, RequestId, Sequence, TaskId};
use crate::json::Json;
use crate::time::Timestamp;

/// One thing that happens to an actor.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Somebody outside asks and waits for the answer.
    Request(Request),
    /// A durable message.
    Message(Message),
    /// The alarm is due. It is off now, unless this turn sets it again.
    Alarm {
        /// When it was to fire; never after the time of the turn.
        due: Timestamp,
    },
    /// A task has ended.
    TaskResult(TaskResult),
    /// An input of this actor could not be processed and was put aside for good.
    DeadLetter(DeadLetter),
}

/// A question from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// By which it is answered.
    pub id: RequestId,
    /// What is asked.
    pub body: Json,
}

/// A message, once it has arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its place in the order of arrival, and its id.
    pub sequence: Sequence,
    /// Who sent it.
    pub from: Sender,
    /// What it says.
    pub body: Json,
}

/// Where a message comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// Another actor, or the actor itself.
    Actor(ActorId),
    /// Somebody outside.
    Outside,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskResult {
    /// Which task.
    pub task: TaskId,
    /// How many times it may have been started, this time included.
    pub attempt: u32,
    /// What it gave.
    pub outcome: Result<Json, Failure>,
}

/// An input that failed as often as it may, and is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Its number in the order of arrival.
    pub id: Sequence,
    /// What could not be processed.
    pub input: FailedInput,
    /// Why the last try failed.
    pub error: String,
    /// How often it was tried.
    pub attempts: u32,
}

/// An input as a dead letter keeps it: everything needed to try it once more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedInput {
    /// A message.
    Message {
        /// Who sent it.
        from: Sender,
        /// What it says.
        body: Json,
    },
    /// The alarm.
    Alarm {
        /// When it was to fire.
        due: Timestamp,
    },
    /// A task's result.
    TaskResult {
        /// Which task.
        task: TaskId,
        /// Of which attempt.
        attempt: u32,
        /// What it gave.
        outcome: Result<Json, Failure>,
    },
    /// The notice of an earlier dead letter.
    Notice {
        /// That dead letter.
        letter: Box<DeadLetter>,
    },
    /// A message of the engine's own that it cannot read, for instance because a newer engine wrote it.
    Unreadable {
        /// What is stored.
        body: Json,
    },
}
