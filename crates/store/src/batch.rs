//! The unit of writing: what many turns change, joined into one commit.
//!
//! Owns the coalescing: of several writes to one key the last remains, and a message that is sent and consumed within one
//! batch leaves no trace at all. Sorted by shard and actor, so that the rows reach the disk in its own order and the
//! same turns always give the same batch. Never touches a disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_core::ids::{ActorId, RequestId, Sequence, TaskId};
use steadfast_core::time::Timestamp;
use steadfast_core::turn::{AlarmChange, Writes};

use crate::rows::{DeadLetterRow, EventRow, MessageRow, RequestRow, RunRow, TaskRow};

/// Changes of any number of actors.
#[derive(Debug, Default, Clone)]
pub struct Batch {
    /// By actor.
    pub actors: BTreeMap<ActorId, ActorWrites>,
}

/// Changes of one actor's rows.
#[derive(Debug, Default, Clone)]
pub struct ActorWrites {
    /// Its storage.
    pub state: Writes,
    /// Its alarm.
    pub alarm: AlarmChange,
    /// Messages to it.
    pub messages: BTreeMap<Sequence, MessageChange>,
    /// Its tasks.
    pub tasks: BTreeMap<TaskId, RowChange<TaskRow>>,
    /// Requests to it; `None` forgets one.
    pub requests: BTreeMap<RequestId, Option<RequestRow>>,
    /// New entries of its history.
    pub events: Vec<EventRow>,
    /// How it is listed.
    pub listing: Option<ListingChange>,
    /// The run at the top of the tree that its history is part of, if it is part of one.
    pub root: Option<Arc<str>>,
    /// Inputs of it that were given up.
    pub dead_letters: BTreeMap<Sequence, RowChange<DeadLetterRow>>,
    /// Rows on disk that go before all this is written.
    pub removal: Option<Removal>,
}

/// A part of an actor that goes, of those rows that are on disk before the batch. Its listing and its alarm go with the first part. Messages to it
/// stay: whoever is of its name next gets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The key of its storage that goes with the first part too: without it the actor is as good as gone.
    pub first: Option<Arc<str>>,
    /// How many other rows go at most: tasks, remembered requests, dead letters, its history, its storage.
    pub rows_max: usize,
}

/// What becomes of a message row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageChange {
    /// It is new.
    Insert(MessageRow),
    /// A try has failed.
    Retry {
        /// Tries that have failed.
        attempts: u32,
        /// When it may be tried again.
        not_before: Timestamp,
    },
    /// It is consumed.
    Delete,
}

/// How a run is listed from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingChange {
    /// Its row. Of one that is there already only the status and the end change.
    pub row: RunRow,
    /// Its status on disk, if it is listed there.
    pub was: Option<Arc<str>>,
}

/// What becomes of a row that is only ever added and removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange<T> {
    /// It is new.
    Insert(T),
    /// It goes.
    Delete,
}

impl Batch {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actors.is_empty()
    }

    /// Whether a task's row is new in this batch, under this number.
    #[must_use]
    pub fn inserts_task(&self, actor: &ActorId, task: &TaskId, sequence: Sequence) -> bool {
        match self.actors.get(actor).and_then(|writes| writes.tasks.get(task)) {
            Some(RowChange::Insert(row)) => row.sequence == sequence,
            Some(RowChange::Delete) | None => false,
        }
    }

    /// The changes of one actor.
    pub fn of(&mut self, actor: &ActorId) -> &mut ActorWrites {
        self.actors.entry(actor.clone()).or_default()
    }
}

impl ActorWrites {
    /// Lists the run. Of several changes the last stands, and what was before the first.
    pub fn list(&mut self, change: ListingChange) {
        let ListingChange { mut row, mut was } = change;
        if let Some(before) = self.listing.take() {
            (row.number, was) = (before.row.number, before.was);
        }
        self.listing = Some(ListingChange { row, was });
    }

    /// Adds a message.
    pub fn insert_message(&mut self, row: MessageRow) {
        self.messages.insert(row.sequence, MessageChange::Insert(row));
    }

    /// Takes a message away; one that is new in this batch is never written.
    pub fn consume_message(&mut self, sequence: Sequence) {
        if let Some(MessageChange::Insert(_)) = self.messages.get(&sequence) {
            self.messages.remove(&sequence);
        } else {
            self.messages.insert(sequence, MessageChange::Delete);
        }
    }

    /// Notes a failed try of a message.
    pub fn retry_message(&mut self, sequence: Sequence, attempts: u32, not_before: Timestamp) {
        if let Some(MessageChange::Insert(row)) = self.messages.get_mut(&sequence) {
            row.attempts = attempts;
            row.not_before = not_before;
        } else {
            self.messages.insert(sequence, MessageChange::Retry { attempts, not_before });
        }
    }

    /// Adds a task.
    pub fn insert_task(&mut self, row: TaskRow) {
        self.tasks.insert(row.task.clone(), RowChange::Insert(row));
    }

    /// Takes a settled task away.
    pub fn settle_task(&mut self, task: &TaskId) {
        // Not elided like a message: a task that has a result was started, so its row is on disk already, and an
        // insert found here is a new task of the same name, dispatched after that settlement.
        self.tasks.insert(task.clone(), RowChange::Delete);
    }

    /// Takes a task away that is not to run any more, also one that is new in this batch. Unlike a message's row, one of that name may be on disk
    /// from before.
    pub fn cancel_task(&mut self, task: &TaskId) {
        self.tasks.insert(task.clone(), RowChange::Delete);
    }

    /// Remembers a request.
    pub fn remember_request(&mut self, row: RequestRow) {
        self.requests.insert(row.request.clone(), Some(row));
    }

    /// Forgets a request.
    pub fn forget_request(&mut self, request: &RequestId) {
        self.requests.insert(request.clone(), None);
    }

    /// Adds a dead letter.
    pub fn insert_dead_letter(&mut self, row: DeadLetterRow) {
        self.dead_letters.insert(row.id, RowChange::Insert(row));
    }

    /// Takes a dead letter away; one that is new in this batch is never written.
    pub fn delete_dead_letter(&mut self, id: Sequence) {
        if let Some(RowChange::Insert(_)) = self.dead_letters.get(&id) {
            self.dead_letters.remove(&id);
        } else {
            self.dead_letters.insert(id, RowChange::Delete);
        }
    }
}
