//! Tasks that this process cannot do, because it lacks something for them.
//!
//! Owns what is known of them in memory, for whoever asks why nothing happens: not their rows, which stay on disk as they are. They need no
//! place in [`super::TaskQueue`]: its cursor has passed them, so they are read again by the next process and not by this one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use steadfast_core::ids::{ActorId, Sequence, TaskId};
use steadfast_core::limits;

use crate::commit::TaskStart;

/// A task that waits on disk for a process that has what it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedTask {
    /// Whose task.
    pub actor: ActorId,
    /// Its name within the actor.
    pub task: TaskId,
    /// What this process lacks, and what to do about it.
    pub lacking: String,
}

/// The parked tasks, as far as they are listed.
#[derive(Default)]
pub(crate) struct Parked(Mutex<HashMap<(ActorId, TaskId), Entry>>);

struct Entry {
    /// Which dispatch of the name it is.
    sequence: Sequence,
    lacking: String,
}

impl Parked {
    /// Notes a task. Those beyond the bound are not listed: `false`.
    pub(super) fn insert(&self, start: TaskStart, lacking: &str) -> bool {
        let mut listed = self.lock();
        let has_room = listed.len() < limits::PAGE_ROWS_MAX;
        if has_room {
            let entry = Entry { sequence: start.sequence, lacking: lacking.to_owned() };
            listed.insert((start.actor, start.task), entry);
        }
        has_room
    }

    /// Strikes out what was dispatched under the name before: it was called off or replaced.
    pub(super) fn remove(&self, name: &(ActorId, TaskId), before: Sequence) {
        let mut listed = self.lock();
        if listed.get(name).is_some_and(|entry| entry.sequence < before) {
            listed.remove(name);
        }
    }

    /// Strikes out up to `limit` tasks of an actor, which are to be tried again. Which they were.
    pub(crate) fn take_of(&self, actor: &ActorId, limit: usize) -> Vec<TaskId> {
        let mut listed = self.lock();
        let of_actor = listed.keys().filter(|(owner, _)| owner == actor).take(limit);
        let tasks: Vec<TaskId> = of_actor.map(|(_, task)| task.clone()).collect();
        for task in &tasks {
            listed.remove(&(actor.clone(), task.clone()));
        }
        tasks
    }

    /// What this process lacks for a task, if it is listed.
    pub(crate) fn lacking(&self, actor: &ActorId, task: &TaskId) -> Option<String> {
        self.lock().get(&(actor.clone(), task.clone())).map(|entry| entry.lacking.clone())
    }

    /// All that are listed, in the order of their dispatch.
    pub(crate) fn list(&self) -> Vec<ParkedTask> {
        let listed = self.lock();
        let mut entries: Vec<_> = listed.iter().collect();
        entries.sort_unstable_by_key(|(_, entry)| entry.sequence);
        let task = |((actor, task), Entry { lacking, .. }): (&(ActorId, TaskId), &Entry)| ParkedTask {
            actor: actor.clone(),
            task: task.clone(),
            lacking: lacking.clone(),
        };
        entries.into_iter().map(task).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(ActorId, TaskId), Entry>> {
        // Nothing in here panics half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
