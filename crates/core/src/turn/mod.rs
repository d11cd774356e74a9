//! The model of a turn: one input goes in, effects come out.
//!
//! Owns what an actor may see ([`Input`], [`Storage`], the time) and what it may want ([`Effects`]). A turn is a
//! synchronous function over data: given the same storage, input and time it gives the same effects. It never waits, and
//! nothing it asks for happens before all of it is on disk. Start reading at [`Actor`].

mod effects;
mod input;
mod storage;

pub use effects::{AlarmChange, Dispatch, Effects, Emit, Listing, Reply, Send, TaskChange};
pub use input::{DeadLetter, FailedInput, Input, Message, Request, Sender, TaskResult};
pub use storage::{Entries, Storage, Writes, prefix_end, scan_over};

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ids::{ActorId, InvalidId, RequestId, TaskId};
use crate::json::{Json, JsonError};
use crate::time::Timestamp;

/// An actor in memory, between two turns.
///
/// What it holds is a reading of its storage, kept so that the next turn is quick. It may be dropped between any two turns and
/// made anew by [`Kind::load`]; nothing may depend on it having been there.
pub trait Actor: std::marker::Send {
    /// Takes one input. An error (or a panic) leaves no trace: the actor is dropped, none of the effects happen, and the
    /// input is retried or kept as a dead letter.
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError>;

    /// About how much memory it holds beyond its own size, for the bound on resident actors.
    fn bytes(&self) -> usize {
        0
    }
}

/// A kind of actor, such as `run` or `pool`: how one of them is read from its storage.
pub trait Kind: std::marker::Send + Sync {
    /// Makes the actor from what is stored; a new one when nothing is.
    fn load(&self, id: &ActorId, storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError>;
}

/// Why a turn ended without effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    /// The actor refuses the input.
    #[error("{0}")]
    Failed(String),
    /// A stored value cannot be read, for instance because a newer version wrote it.
    #[error("stored value at key `{key}` cannot be read: {source}")]
    Stored {
        /// Where it is.
        key: String,
        /// What is wrong with it.
        source: JsonError,
    },
    /// A value cannot be expressed as JSON, or an input is not what was expected.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A name is not allowed.
    #[error(transparent)]
    InvalidId(#[from] InvalidId),
    /// A bound was reached.
    #[error("the {what} is {found}, the limit is {max} (`{limit}`)")]
    Limit {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        found: usize,
        /// How large it may be.
        max: usize,
        /// The limit's name in [`crate::limits`].
        limit: &'static str,
    },
    /// The store did not answer a read. Not the input's fault: it does not count as a try.
    #[error("store cannot be read: {0}")]
    StoreUnavailable(String),
}

impl TurnError {
    /// A refusal with a reason.
    #[must_use]
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }
}

/// One turn in progress: reads, and collects what the actor wants.
pub struct Turn<'a> {
    actor: &'a ActorId,
    now: Timestamp,
    alarm: Option<Timestamp>,
    storage: &'a dyn Storage,
    effects: Effects,
}

impl<'a> Turn<'a> {
    /// Begins a turn of `actor`, whose alarm is at `alarm`.
    #[must_use]
    pub fn begin(actor: &'a ActorId, now: Timestamp, alarm: Option<Timestamp>, storage: &'a dyn Storage) -> Self {
        Self { actor, now, alarm, storage, effects: Effects::default() }
    }

    /// Everything the actor asked for, or the bound that it exceeded.
    pub fn end(self) -> Result<Effects, TurnError> {
        self.effects.check()?;
        Ok(self.effects)
    }

    /// Whose turn it is.
    #[must_use]
    pub fn actor(&self) -> &ActorId {
        self.actor
    }

    /// The time of this turn; it does not move while the turn runs.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// When the alarm will fire, as this turn has left it so far.
    #[must_use]
    pub fn alarm(&self) -> Option<Timestamp> {
        match self.effects.alarm {
            AlarmChange::Keep => self.alarm,
            AlarmChange::Off => None,
            AlarmChange::At(due) => Some(due),
        }
    }

    /// About how much this turn writes so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.effects.bytes()
    }

    /// Reads a value, this turn's own writes included.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, TurnError> {
        Storage::get(self, key)?
            .map(|json| json.decode().map_err(|source| TurnError::Stored { key: key.to_owned(), source }))
            .transpose()
    }

    /// Up to `limit` entries whose keys are within the bounds, in order, this turn's own writes included.
    pub fn scan(&self, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, TurnError> {
        Storage::scan(self, from, to, limit)
    }

    /// Writes a value.
    pub fn put<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), TurnError> {
        self.put_json(key, Json::encode(value)?)
    }

    /// Writes a value that is JSON already.
    pub fn put_json(&mut self, key: &str, value: Json) -> Result<(), TurnError> {
        self.effects.put(key, value)
    }

    /// Removes a value.
    pub fn delete(&mut self, key: &str) {
        self.effects.delete(key);
    }

    /// Sends a message, to this actor itself if need be. It arrives after everything sent to `to` before it by this actor.
    pub fn send<T: Serialize + ?Sized>(&mut self, to: &ActorId, body: &T) -> Result<(), TurnError> {
        self.effects.send(to.clone(), Json::encode(body)?)
    }

    /// Sets the actor's one alarm, in place of what was set before.
    pub fn set_alarm(&mut self, due: Timestamp) {
        self.effects.alarm = AlarmChange::At(due.min(Timestamp::MAX));
    }

    /// Takes the alarm back.
    pub fn clear_alarm(&mut self) {
        self.effects.alarm = AlarmChange::Off;
    }

    /// Starts a task once this turn is on disk. Its result comes back as [`Input::TaskResult`].
    pub fn dispatch<T: Serialize + ?Sized>(&mut self, task: &str, executor: &str, input: &T) -> Result<(), TurnError> {
        self.effects.dispatch(Dispatch {
            task: TaskId::new(task)?,
            executor: executor.into(),
            input: Json::encode(input)?,
        })
    }

    /// Calls a task off, by its name: its result will not come. One that waits never starts, one that runs is dropped once this turn is
    /// on disk. A name that is unknown or settled is no fault. Dispatched after this, also in this turn, the name is a new task.
    pub fn cancel(&mut self, task: &str) -> Result<(), TurnError> {
        self.effects.cancel(TaskId::new(task)?);
        Ok(())
    }

    /// Adds an event to the actor's history.
    pub fn emit<T: Serialize + ?Sized>(
        &mut self,
        event_type: impl Into<Cow<'static, str>>,
        data: &T,
    ) -> Result<(), TurnError> {
        self.effects.emit(event_type.into(), Json::encode(data)?)
    }

    /// Shows the actor in the list of runs, in place of how it was shown before.
    pub fn list(&mut self, listing: Listing) {
        self.effects.listing = Some(listing);
    }

    /// Says that the events of this turn are part of the history of a tree, whose top is `root`.
    pub fn belong_to(&mut self, root: Arc<str>) {
        self.effects.root = Some(root);
    }

    /// Answers a request, of this turn or of an earlier one.
    pub fn reply<T: Serialize + ?Sized>(&mut self, to: &RequestId, body: &T) -> Result<(), TurnError> {
        self.effects.reply(to.clone(), Json::encode(body)?)
    }
}

/// The storage as this turn sees it: its own writes over what was there before.
impl Storage for Turn<'_> {
    fn get(&self, key: &str) -> Result<Option<Json>, TurnError> {
        match self.effects.writes.get(key) {
            Some(written) => Ok(written.clone()),
            None => self.storage.get(key),
        }
    }

    fn scan(&self, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, TurnError> {
        scan_over(&self.effects.writes, from, to, limit, |from, limit| self.storage.scan(from, to, limit))
    }
}

fn within(what: &'static str, found: usize, max: usize, limit: &'static str) -> Result<(), TurnError> {
    if found <= max { Ok(()) } else { Err(TurnError::Limit { what, found, max, limit }) }
}

#[cfg(test)]
mod tests;
