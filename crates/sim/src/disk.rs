//! What is on disk, for those who only look.
//!
//! Owns the questions that every scenario has: whether a task may run, whether anything waits, when the next alarm is.

use std::ops::Bound;

use steadfast::commit::TaskStart;
use steadfast_core::ids::{ActorId, Shard};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::{Entries, Storage, TurnError};
use steadfast_store::{Reader, Store};

use crate::store::FaultyStore;

/// A task may only leave, start and run while its dispatch is on disk.
pub(crate) fn holds_task(store: &FaultyStore, task: &TaskStart) -> Result<(), String> {
    let reader = store.reader().map_err(text)?;
    match reader.task(&task.actor, &task.task).map_err(text)? {
        Some(row) if row.sequence == task.sequence => Ok(()),
        Some(_) | None => Err(format!("task `{}` is to run or runs, but its dispatch is not on disk", task.task)),
    }
}

/// Whether nothing waits on disk.
pub(crate) fn is_at_rest(store: &FaultyStore) -> Result<bool, String> {
    let reader = store.reader().map_err(text)?;
    for shard in Shard::all() {
        let has_messages = !reader.messages(shard, None, 1).map_err(text)?.is_empty();
        let has_tasks = !reader.tasks(shard, None, 1).map_err(text)?.is_empty();
        let has_alarms = !reader.alarms(shard, (Timestamp(0), ""), Timestamp::MAX, 1).map_err(text)?.is_empty();
        if has_messages || has_tasks || has_alarms {
            return Ok(false);
        }
    }
    Ok(true)
}

/// When the earliest alarm is due.
pub(crate) fn next_alarm(reader: &dyn Reader) -> Result<Option<Timestamp>, String> {
    let mut next = None;
    for shard in Shard::all() {
        let first = reader.alarms(shard, (Timestamp(0), ""), Timestamp::MAX, 1).map_err(text)?;
        next = first.into_iter().map(|alarm| alarm.due).chain(next).min();
    }
    Ok(next)
}

/// What waits, for the message of a world that never ends.
pub(crate) fn what_is_left(reader: &dyn Reader) -> String {
    let mut left = Vec::new();
    for shard in Shard::all() {
        left.extend(reader.messages(shard, None, 3).into_iter().flatten().map(|row| format!("{row:?}")));
        left.extend(reader.tasks(shard, None, 3).into_iter().flatten().map(|row| format!("{row:?}")));
        let alarms = reader.alarms(shard, (Timestamp(0), ""), Timestamp::MAX, 3);
        left.extend(alarms.into_iter().flatten().map(|row| format!("{row:?}")));
        left.extend(reader.dead_letters(shard, None, 3).into_iter().flatten().map(|row| format!("{row:?}")));
    }
    left.join("; ").chars().take(4_000).collect()
}

/// An actor's storage.
pub(crate) struct OnDisk<'r> {
    pub(crate) actor: &'r ActorId,
    pub(crate) reader: &'r dyn Reader,
}

impl Storage for OnDisk<'_> {
    fn get(&self, key: &str) -> Result<Option<Json>, TurnError> {
        self.reader.get(self.actor, key).map_err(|error| TurnError::failed(error.to_string()))
    }

    fn scan(&self, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, TurnError> {
        self.reader.scan(self.actor, from, to, limit).map_err(|error| TurnError::failed(error.to_string()))
    }
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
