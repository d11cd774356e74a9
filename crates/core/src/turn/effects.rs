//! What comes out of a turn.
//!
//! Owns the collection of effects and their bounds; never carries one out.

use std::borrow::Cow;
use std::sync::Arc;

use super::{TurnError, Writes, within};
use crate::ids::{ActorId, RequestId, TaskId};
use crate::json::Json;
use crate::limits;
use crate::time::Timestamp;

/// Everything a turn wants to happen. All of it is committed together, or none of it.
#[derive(Debug, Default)]
pub struct Effects {
    /// Changed keys of the actor's storage.
    pub writes: Writes,
    /// Messages, in the order in which they were sent.
    pub sends: Vec<Send>,
    /// The alarm.
    pub alarm: AlarmChange,
    /// Tasks to start and to call off, in the order in which the turn said so: of what it said of one name the last stands.
    pub tasks: Vec<TaskChange>,
    /// Events, in the order in which they were emitted.
    pub events: Vec<Emit>,
    /// Answers.
    pub replies: Vec<Reply>,
    /// How the actor shows up in lists from now on, if that changes.
    pub listing: Option<Listing>,
    /// The run at the top of the tree that the actor's history is part of, if it is part of one.
    pub root: Option<Arc<str>>,
    bytes: usize,
    count: usize,
}

/// What a turn does to the alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AlarmChange {
    /// Nothing; an alarm that fired in this turn stays off.
    #[default]
    Keep,
    /// Turn it off.
    Off,
    /// Set it.
    At(Timestamp),
}

/// A message to be sent.
#[derive(Debug)]
pub struct Send {
    /// The receiver.
    pub to: ActorId,
    /// What it says.
    pub body: Json,
}

/// What a turn wants of a task.
#[derive(Debug)]
pub enum TaskChange {
    /// It is to run.
    Dispatch(Dispatch),
    /// It is called off, whether it waits or runs.
    Cancel(TaskId),
}

/// A leaf task for an executor.
#[derive(Debug)]
pub struct Dispatch {
    /// Its name within the actor; with the actor's id, its idempotency key. Dispatching a name again whose task is not settled replaces that task:
    /// the result of the earlier start is dropped.
    pub task: TaskId,
    /// Which executor runs it.
    pub executor: Arc<str>,
    /// What it is given.
    pub input: Json,
}

/// An event to be recorded.
#[derive(Debug)]
pub struct Emit {
    /// What happened, as `noun.verb`.
    pub event_type: Cow<'static, str>,
    /// The facts.
    pub data: Json,
}

/// How a run shows up in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// What it is a run of.
    pub workflow: Arc<str>,
    /// The version of that.
    pub version: u32,
    /// How it is.
    pub status: &'static str,
    /// How it was listed before, if it was. Counts are kept by this.
    pub was: Option<&'static str>,
    /// The run that started it.
    pub parent: Option<Arc<str>>,
    /// The run at the top of its tree: itself, or one further up.
    pub root: Arc<str>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// An answer to a request.
#[derive(Debug)]
pub struct Reply {
    /// Which request.
    pub to: RequestId,
    /// The answer.
    pub body: Json,
}

impl Effects {
    pub(super) fn put(&mut self, key: &str, value: Json) -> Result<(), TurnError> {
        within("number of bytes of a storage key", key.len(), limits::KEY_BYTES_MAX, "KEY_BYTES_MAX")?;
        self.account("number of bytes of a stored value", &value)?;
        self.bytes += key.len();
        self.writes.insert(key.into(), Some(value));
        Ok(())
    }

    pub(super) fn delete(&mut self, key: &str) {
        self.count += 1;
        self.bytes += key.len();
        self.writes.insert(key.into(), None);
    }

    pub(super) fn send(&mut self, to: ActorId, body: Json) -> Result<(), TurnError> {
        self.account("number of bytes of a message", &body)?;
        self.sends.push(Send { to, body });
        Ok(())
    }

    pub(super) fn dispatch(&mut self, dispatch: Dispatch) -> Result<(), TurnError> {
        self.account("number of bytes of a task's input", &dispatch.input)?;
        within("number of bytes of an executor's name", dispatch.executor.len(), limits::ID_BYTES_MAX, "ID_BYTES_MAX")?;
        self.tasks.push(TaskChange::Dispatch(dispatch));
        Ok(())
    }

    pub(super) fn cancel(&mut self, task: TaskId) {
        self.count += 1;
        self.bytes += task.as_str().len();
        self.tasks.push(TaskChange::Cancel(task));
    }

    pub(super) fn emit(&mut self, event_type: Cow<'static, str>, data: Json) -> Result<(), TurnError> {
        self.account("number of bytes of an event", &data)?;
        within("number of bytes of an event's type", event_type.len(), limits::ID_BYTES_MAX, "ID_BYTES_MAX")?;
        self.events.push(Emit { event_type, data });
        Ok(())
    }

    pub(super) fn reply(&mut self, to: RequestId, body: Json) -> Result<(), TurnError> {
        self.account("number of bytes of a reply", &body)?;
        self.replies.push(Reply { to, body });
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), TurnError> {
        within("number of effects of one turn", self.count, limits::TURN_EFFECTS_MAX, "TURN_EFFECTS_MAX")?;
        within("number of bytes of all effects of one turn", self.bytes, limits::TURN_BYTES_MAX, "TURN_BYTES_MAX")
    }

    /// The tasks to start, those that the turn called off again included.
    pub fn dispatches(&self) -> impl Iterator<Item = &Dispatch> {
        self.tasks.iter().filter_map(|change| match change {
            TaskChange::Dispatch(dispatch) => Some(dispatch),
            TaskChange::Cancel(_) => None,
        })
    }

    /// The tasks to call off.
    pub fn cancels(&self) -> impl Iterator<Item = &TaskId> {
        self.tasks.iter().filter_map(|change| match change {
            TaskChange::Cancel(task) => Some(task),
            TaskChange::Dispatch(_) => None,
        })
    }

    /// About how much this turn writes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn account(&mut self, what: &'static str, value: &Json) -> Result<(), TurnError> {
        within(what, value.bytes(), limits::VALUE_BYTES_MAX, "VALUE_BYTES_MAX")?;
        self.bytes += value.bytes();
        self.count += 1;
        Ok(())
    }
}
