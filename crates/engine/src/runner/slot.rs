//! An actor's place in memory.
//!
//! Owns the actor between turns, its mailbox, and those of its writes that are not on disk yet. A slot without the actor is as good as one
//! with it: the actor is made again from the writes here over the rows on disk.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use steadfast_core::ids::{ActorId, RequestId, Sequence, TaskId};
use steadfast_core::json::Json;
use steadfast_core::turn::{Actor, Entries, Storage, TurnError, Writes, scan_over};
use steadfast_store::rows::Head;
use steadfast_store::{Reader, StoreError};

use super::mailbox::Entry;

#[derive(Default)]
pub(super) struct Slot {
    pub(super) actor: Option<Box<dyn Actor>>,
    /// What is known of the actor's rows, this process's writes included. Read when first needed.
    pub(super) head: Option<Head>,
    pub(super) mailbox: VecDeque<Entry>,
    /// `None` when everything is on disk.
    pub(super) uncommitted: Option<Box<Uncommitted>>,
    /// About how much memory the actor holds.
    pub(super) bytes: usize,
    pub(super) is_ready: bool,
    pub(super) is_alarm_queued: bool,
    /// Inputs that failed and wait for their next try.
    pub(super) set_aside: u32,
    /// Whether it had a turn since the residency last looked.
    pub(super) is_recent: bool,
}

/// Writes of an actor that are not on disk yet.
#[derive(Default)]
pub(super) struct Uncommitted {
    /// The newest batch that holds any of them.
    pub(super) batch: u64,
    pub(super) state: Writes,
    pub(super) requests: BTreeMap<RequestId, Option<Json>>,
    /// Tasks dispatched (with their number) or settled.
    pub(super) tasks: BTreeMap<TaskId, Option<Sequence>>,
}

impl Slot {
    /// What is known of the actor's rows, read now if it was not before.
    pub(super) fn head(&mut self, id: &ActorId, reader: &dyn Reader) -> Result<&mut Head, StoreError> {
        if self.head.is_none() {
            self.head = Some(reader.head(id)?);
        }
        Ok(self.head.as_mut().expect("it was read on the line above"))
    }

    /// Forgets writes that are on disk.
    pub(super) fn settle_up_to(&mut self, committed: u64) {
        if self.uncommitted.as_ref().is_some_and(|writes| writes.batch <= committed) {
            self.uncommitted = None;
        }
    }

    /// What an uncommitted turn did to a task: dispatched it under a number, or settled it (`None`).
    pub(super) fn uncommitted_task(&self, task: &TaskId) -> Option<Option<Sequence>> {
        self.uncommitted.as_ref()?.tasks.get(task).copied()
    }

    /// Whether the slot holds nothing that is not on disk.
    pub(super) fn is_droppable(&self) -> bool {
        self.mailbox.is_empty()
            && self.uncommitted.is_none()
            && self.set_aside == 0
            && !self.is_alarm_queued
            && !self.is_ready
    }
}

/// An actor's storage: uncommitted writes over rows on disk.
pub(super) struct SlotStorage<'a> {
    pub(super) actor: &'a ActorId,
    pub(super) uncommitted: Option<&'a Writes>,
    /// Whether there is anything on disk to look for: a new actor is not searched for at every read.
    pub(super) is_on_disk: bool,
    pub(super) reader: &'a dyn Reader,
}

impl Storage for SlotStorage<'_> {
    fn get(&self, key: &str) -> Result<Option<Json>, TurnError> {
        if let Some(written) = self.uncommitted.and_then(|writes| writes.get(key)) {
            return Ok(written.clone());
        }
        if !self.is_on_disk {
            return Ok(None);
        }
        self.reader.get(self.actor, key).map_err(unavailable)
    }

    fn scan(&self, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, TurnError> {
        let below = |from: Bound<&str>, limit: usize| {
            if self.is_on_disk {
                self.reader.scan(self.actor, from, to, limit).map_err(unavailable)
            } else {
                Ok(Entries::new())
            }
        };
        static NOTHING: Writes = Writes::new();
        scan_over(self.uncommitted.unwrap_or(&NOTHING), from, to, limit, below)
    }
}

fn unavailable(error: StoreError) -> TurnError {
    TurnError::StoreUnavailable(error.to_string())
}
