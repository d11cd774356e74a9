//! Which task runs next.
//!
//! Owns the bounds: so many run, so many more wait in memory, all others wait on disk, from where they are read in the order of
//! their dispatch. For each shard a *cursor* tells them apart: every task up to it has been taken into memory, later ones have
//! not. A plain state machine, so that the simulator runs it too.

use std::collections::{BTreeMap, VecDeque};

use steadfast_core::ids::{Sequence, Shard};
use steadfast_core::limits::{TASKS_QUEUED_BYTES_MAX, WAITING_ROWS_PER_READ};
use steadfast_store::{Reader, StoreError};

use crate::commit::{Gather, TaskStart};
use crate::kinds::Kinds;

/// Tasks that are to run.
pub struct TaskQueue {
    waiting: VecDeque<TaskStart>,
    waiting_bytes: usize,
    waiting_max: usize,
    running: usize,
    running_max: usize,
    cursors: BTreeMap<Shard, Cursor>,
}

struct Cursor {
    /// The last task taken into memory.
    last: Option<Sequence>,
    /// Whether there may be more on disk.
    is_behind: bool,
}

impl TaskQueue {
    /// A queue over everything that the store holds.
    #[must_use]
    pub fn new(running_max: usize, waiting_max: usize) -> Self {
        let cursor = || Cursor { last: None, is_behind: true };
        Self {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            waiting_max: waiting_max.max(1),
            running: 0,
            running_max: running_max.max(1),
            cursors: Shard::all().map(|shard| (shard, cursor())).collect(),
        }
    }

    /// Takes a task whose dispatch is on disk; leaves it there when memory is full.
    pub fn push(&mut self, task: TaskStart) {
        let Some(cursor) = self.cursors.get_mut(&task.actor.shard()) else { return };
        if cursor.last.is_some_and(|last| task.sequence <= last) {
            // It was on disk, and was read from there, before this news of it came.
        } else if cursor.is_behind
            || self.waiting.len() >= self.waiting_max
            || self.waiting_bytes >= TASKS_QUEUED_BYTES_MAX
        {
            cursor.is_behind = true;
        } else {
            cursor.last = Some(task.sequence);
            self.waiting_bytes += task.input.bytes();
            self.waiting.push_back(task);
        }
    }

    /// The next task to run, if one may. It counts as running until [`TaskQueue::finished`].
    pub fn start_next(&mut self) -> Option<TaskStart> {
        if self.running >= self.running_max {
            return None;
        }
        let task = self.waiting.pop_front()?;
        self.waiting_bytes -= task.input.bytes();
        self.running += 1;
        Some(task)
    }

    /// A task that was running has ended.
    pub fn finished(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// How many run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// Whether [`TaskQueue::refill`] would find something to do.
    #[must_use]
    pub fn wants_refill(&self) -> bool {
        self.waiting.len() <= self.waiting_max / 2
            && self.waiting_bytes <= TASKS_QUEUED_BYTES_MAX / 2
            && self.cursors.values().any(|cursor| cursor.is_behind)
    }

    /// Reads tasks from disk while there is room in memory.
    pub fn refill(&mut self, reader: &dyn Reader, kinds: &Kinds, gather: &Gather) -> Result<(), StoreError> {
        for (shard, cursor) in &mut self.cursors {
            while cursor.is_behind {
                let room = self.waiting_max.saturating_sub(self.waiting.len()).min(WAITING_ROWS_PER_READ);
                if room == 0 || self.waiting_bytes >= TASKS_QUEUED_BYTES_MAX {
                    return Ok(());
                }
                let rows = reader.tasks(*shard, cursor.last, room)?;
                cursor.is_behind = rows.len() == room;
                cursor.last = rows.last().map(|row| row.sequence).or(cursor.last);
                // A task of an unknown kind of actor stays on disk: nobody could take its result.
                for row in rows.iter().filter(|row| kinds.knows(&row.actor)) {
                    self.waiting_bytes += row.input.bytes();
                    self.waiting.push_back(TaskStart::of(row, gather.attempt_of(row.sequence)));
                }
            }
        }
        Ok(())
    }
}
