//! The rows of a store, as they are read.
//!
//! Owns their fields. These are not the types that actors see: a row keeps what a store must, in the version that it has.

use std::borrow::Cow;
use std::sync::Arc;

use steadfast_core::ids::{ActorId, RequestId, Sequence, TaskId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;

/// What is known of an actor before its storage is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// When its alarm is due.
    pub alarm: Option<Timestamp>,
    /// The place of its last event; 0 when it has none.
    pub last_event: u64,
    /// Whether it has anything in its storage.
    pub has_state: bool,
}

/// A message that was sent and is not consumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// The receiver.
    pub actor: ActorId,
    /// Its place in the order of arrival.
    pub sequence: Sequence,
    /// Whether an actor, the outside or the engine sent it.
    pub origin: Origin,
    /// What it says.
    pub body: Json,
    /// Tries that have failed.
    pub attempts: u32,
    /// When it may be tried again; 0 for at once.
    pub not_before: Timestamp,
}

impl MessageRow {
    /// A message that was not tried yet.
    #[must_use]
    pub fn new(actor: ActorId, sequence: Sequence, origin: Origin, body: Json) -> Self {
        Self { actor, sequence, origin, body, attempts: 0, not_before: Timestamp(0) }
    }
}

/// Who sent a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An actor.
    Actor(ActorId),
    /// Somebody outside.
    Outside,
    /// The engine itself; the body is a form of its own.
    Engine,
}

/// An alarm that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlarmRow {
    /// Whose it is.
    pub actor: ActorId,
    /// When it is due.
    pub due: Timestamp,
}

/// A task that was dispatched and is not settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// Whose task.
    pub actor: ActorId,
    /// Its name within the actor.
    pub task: TaskId,
    /// Its place in the order of dispatch. Its boot tells how many restarts it has seen.
    pub sequence: Sequence,
    /// Which executor runs it.
    pub executor: Arc<str>,
    /// What it is given.
    pub input: Json,
}

/// A request whose id is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRow {
    /// Who was asked.
    pub actor: ActorId,
    /// The caller's id.
    pub request: RequestId,
    /// The answer, once there is one.
    pub reply: Option<Json>,
    /// Until when it is remembered.
    pub expires_at: Timestamp,
}

/// An entry of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// Whose history.
    pub actor: ActorId,
    /// Its place there.
    pub sequence: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub event_type: Cow<'static, str>,
    /// The facts.
    pub data: Json,
}

/// A run, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The actor.
    pub actor: ActorId,
    /// Its place in the order in which runs began.
    pub number: Sequence,
    /// What it is a run of.
    pub workflow: Arc<str>,
    /// The version of that.
    pub version: u32,
    /// How it is.
    pub status: Arc<str>,
    /// The run that started it.
    pub parent: Option<Arc<str>>,
    /// The run at the top of its tree.
    pub root: Arc<str>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// Which runs are listed. Nothing given, all are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunFilter<'a> {
    /// Those of this workflow.
    pub workflow: Option<&'a str>,
    /// Those that are so.
    pub status: Option<&'a str>,
    /// Those of this tree, without its top.
    pub root: Option<&'a str>,
    /// Those that this run started.
    pub parent: Option<&'a str>,
}

/// How many runs of a workflow are in a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCount {
    /// The workflow.
    pub workflow: Arc<str>,
    /// The status.
    pub status: Arc<str>,
    /// How many; never 0.
    pub count: u64,
}

/// A place in the order in which events were committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct HistoryPlace {
    /// Which part of the whole history.
    pub part: u64,
    /// Which event of that, from 0.
    pub index: u64,
}

/// An input that could not be processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterRow {
    /// Its number.
    pub id: Sequence,
    /// Whose input it was.
    pub actor: ActorId,
    /// The input, as JSON of the form that the engine gives it.
    pub input: Json,
    /// Why the last try failed.
    pub error: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was given up.
    pub at: Timestamp,
}
