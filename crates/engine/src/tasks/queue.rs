//! Which task runs next.
//!
//! Owns the bounds: so many run, so many more wait in memory, all others wait on disk, from where they are read in the order of
//! their dispatch. For each shard a *cursor* tells them apart: every task up to it has been taken into memory, later ones have
//! not. A plain state machine, so that the simulator runs it too.

use std::collections::{BTreeMap, HashMap};

use steadfast_core::ids::{ActorId, Sequence, Shard, TaskId};
use steadfast_core::limits::{TASKS_QUEUED_BYTES_MAX, WAITING_ROWS_PER_READ};
use steadfast_store::rows::TaskRow;
use steadfast_store::{Reader, StoreError};

use super::desk::outside_queue;
use crate::commit::{Gather, TaskCancel, TaskStart};
use crate::kinds::Kinds;

/// Tasks that are to run.
pub struct TaskQueue {
    waiting: Line,
    waiting_max: usize,
    running: usize,
    running_max: usize,
    cursors: BTreeMap<Shard, Cursor>,
    has_desk: bool,
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
            waiting: Line::default(),
            waiting_max: waiting_max.max(1),
            running: 0,
            running_max: running_max.max(1),
            cursors: Shard::all().map(|shard| (shard, cursor())).collect(),
            has_desk: false,
        }
    }

    /// How many run, and how many wait in memory.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.running, self.waiting.len())
    }

    /// Takes a task whose dispatch is on disk; leaves it there when memory is full.
    pub fn push(&mut self, task: TaskStart) {
        let Some(cursor) = self.cursors.get_mut(&task.actor.shard()) else { return };
        if cursor.last.is_some_and(|last| task.sequence <= last) {
            // It was on disk, and was read from there, before this news of it came.
        } else if cursor.is_behind
            || self.waiting.len() >= self.waiting_max
            || self.waiting.bytes >= TASKS_QUEUED_BYTES_MAX
        {
            cursor.is_behind = true;
        } else {
            cursor.last = Some(task.sequence);
            if is_ours(self.has_desk, &task.executor) {
                self.waiting.push(task);
            }
        }
    }

    /// Takes a task that was taken before, and put aside. Waits in memory, whatever waits there already.
    pub(super) fn push_again(&mut self, task: TaskStart) {
        self.waiting.push(task);
    }

    /// Leaves tasks for outside workers on disk, where their desk finds them.
    #[must_use]
    pub fn without_outside_work(self) -> Self {
        Self { has_desk: true, ..self }
    }

    /// Takes a task out of the line, if it is there. One that waits on disk needs no word: its row is gone, and it cannot have been read since.
    pub fn cancel(&mut self, cancel: &TaskCancel) -> bool {
        self.waiting.remove(cancel)
    }

    /// The next task to run, if one may. It counts as running until [`TaskQueue::finished`].
    pub fn start_next(&mut self) -> Option<TaskStart> {
        if self.running >= self.running_max {
            return None;
        }
        let task = self.waiting.pop()?;
        self.running += 1;
        Some(task)
    }

    /// A task that was running has ended, or was dropped.
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
            && self.waiting.bytes <= TASKS_QUEUED_BYTES_MAX / 2
            && self.cursors.values().any(|cursor| cursor.is_behind)
    }

    /// Reads tasks from disk while there is room in memory.
    pub fn refill(&mut self, reader: &dyn Reader, kinds: &Kinds, gather: &Gather) -> Result<(), StoreError> {
        for (shard, cursor) in &mut self.cursors {
            while cursor.is_behind {
                let room = self.waiting_max.saturating_sub(self.waiting.len()).min(WAITING_ROWS_PER_READ);
                if room == 0 || self.waiting.bytes >= TASKS_QUEUED_BYTES_MAX {
                    return Ok(());
                }
                let rows = reader.tasks(*shard, cursor.last, room)?;
                cursor.is_behind = rows.len() == room;
                cursor.last = rows.last().map(|row| row.sequence).or(cursor.last);
                // A task of an unknown kind of actor stays on disk: nobody could take its result.
                let is_wanted = |row: &&TaskRow| kinds.knows(&row.actor) && is_ours(self.has_desk, &row.executor);
                for row in rows.iter().filter(is_wanted) {
                    self.waiting.push(TaskStart::of(row, gather.attempt_of(row.sequence)));
                }
            }
        }
        Ok(())
    }
}

/// Whether a task is run from here, and not lent to a worker outside.
fn is_ours(has_desk: bool, executor: &str) -> bool {
    !(has_desk && outside_queue(executor).is_some())
}

/// Tasks in line, first in, first out, each of which can leave the line at any place: ten thousands may be cancelled in one turn.
#[derive(Default)]
struct Line {
    tasks: BTreeMap<u64, TaskStart>,
    /// Where in line a name is. One place each: a name dispatched again replaces the task that waits under it.
    places: HashMap<(ActorId, TaskId), u64>,
    next_place: u64,
    bytes: usize,
}

impl Line {
    fn len(&self) -> usize {
        self.tasks.len()
    }

    fn push(&mut self, task: TaskStart) {
        let place = self.next_place;
        self.next_place += 1;
        self.bytes += task.input.bytes();
        if let Some(replaced) = self.places.insert((task.actor.clone(), task.task.clone()), place) {
            self.take(replaced);
        }
        self.tasks.insert(place, task);
    }

    fn pop(&mut self) -> Option<TaskStart> {
        let (_, task) = self.tasks.pop_first()?;
        self.bytes -= task.input.bytes();
        self.places.remove(&(task.actor.clone(), task.task.clone()));
        Some(task)
    }

    /// Whether it was there.
    fn remove(&mut self, cancel: &TaskCancel) -> bool {
        let name = (cancel.actor.clone(), cancel.task.clone());
        let Some(place) = self.places.get(&name).copied() else { return false };
        let is_meant = self.tasks.get(&place).is_some_and(|task| cancel.is_of(task));
        if is_meant {
            self.places.remove(&name);
            self.take(place);
        }
        is_meant
    }

    fn take(&mut self, place: u64) {
        if let Some(task) = self.tasks.remove(&place) {
            self.bytes -= task.input.bytes();
        }
    }
}
