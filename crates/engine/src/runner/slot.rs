//! Actors in memory, each in its slot.
//!
//! Owns the actor between turns, its mailbox, and those of its writes that are not on disk yet. A slot without the actor is as good as one
//! with it: the actor is made again from the writes here over the rows on disk.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::{Bound, Index, IndexMut};

use steadfast_core::ids::{ActorId, RequestId, Sequence, TaskId};
use steadfast_core::json::Json;
use steadfast_core::turn::{Actor, AlarmChange, Entries, Storage, TurnError, Writes, scan_over};
use steadfast_store::rows::Head;
use steadfast_store::{Reader, StoreError};

use super::mailbox::Entry;

/// The slots of a runner. A name is looked up once, when something comes for it; from then on its place is enough.
#[derive(Default)]
pub(super) struct Slots {
    places: HashMap<ActorId, Place>,
    slots: Vec<Slot>,
    free: Vec<Place>,
}

/// Where a slot is. Good for as long as the slot holds anything that is not on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Slots {
    pub(super) fn find(&self, actor: &ActorId) -> Option<Place> {
        self.places.get(actor).copied()
    }

    /// The place of `actor`, and whether it is new there.
    pub(super) fn find_or_enter(&mut self, actor: &ActorId) -> (Place, bool) {
        if let Some(place) = self.find(actor) {
            return (place, false);
        }
        let slot = Slot::new(actor.clone());
        let place = match self.free.pop() {
            Some(place) => {
                self[place] = slot;
                place
            }
            None => {
                self.slots.push(slot);
                Place(u32::try_from(self.slots.len() - 1).expect("memory ends before four billion slots"))
            }
        };
        self.places.insert(actor.clone(), place);
        (place, true)
    }

    pub(super) fn remove(&mut self, place: Place) {
        let slot = std::mem::replace(&mut self[place], Slot::new(nobody()));
        self.places.remove(&slot.id);
        self.free.push(place);
    }

    /// All slots in order of their actors' ids, which does not depend on how they came to be where they are.
    pub(super) fn take_all(&mut self) -> Vec<Slot> {
        let Self { places, mut slots, .. } = std::mem::take(self);
        slots.retain(|slot| places.contains_key(&slot.id));
        slots.sort_by(|left, right| left.id.cmp(&right.id));
        slots
    }

    /// The actors in memory, in order of their ids.
    pub(super) fn actors(&self) -> Vec<ActorId> {
        let mut actors: Vec<ActorId> = self.places.keys().cloned().collect();
        actors.sort();
        actors
    }
}

impl Index<Place> for Slots {
    type Output = Slot;

    fn index(&self, Place(place): Place) -> &Slot {
        &self.slots[place as usize]
    }
}

impl IndexMut<Place> for Slots {
    fn index_mut(&mut self, Place(place): Place) -> &mut Slot {
        &mut self.slots[place as usize]
    }
}

/// Tasks under way that a slot remembers, about 100 bytes each.
const DISPATCHED_KNOWN_MAX: usize = 20_000;

pub(super) struct Slot {
    pub(super) id: ActorId,
    pub(super) actor: Option<Box<dyn Actor>>,
    /// What is known of the actor's rows, this process's writes included. Read when first needed.
    pub(super) head: Option<Head>,
    pub(super) mailbox: VecDeque<Entry>,
    /// Writes that are not on disk, one layer a batch, the newest last: two or three at most, since only one batch is written while
    /// the next one gathers. So a busy actor's layers go with their batches, however busy it is.
    pub(super) uncommitted: Vec<Uncommitted>,
    /// Tasks that are under way, as far as they were dispatched by this process and fit: what is here need not be looked for on disk.
    dispatched: BTreeMap<TaskId, Sequence>,
    /// About how much memory the actor holds.
    pub(super) bytes: usize,
    pub(super) is_ready: bool,
    pub(super) is_alarm_queued: bool,
    /// Inputs that failed and wait for their next try.
    pub(super) set_aside: u32,
    /// How far its removal is, if it is being removed.
    pub(super) leaving: Option<Leaving>,
    /// Whether it had a turn since the residency last looked.
    pub(super) is_recent: bool,
}

/// How far the removal of an actor is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    /// The batch with the last part of it. Before it is on disk, rows are there that should not be.
    pub(super) batch: u64,
    /// What is still to be done.
    pub(super) next: NextLeaving,
}

/// What a removal does next.
#[derive(Debug, Clone, Copy)]
pub(super) enum NextLeaving {
    /// Tell those below it that they go too, from this number on.
    Below(Option<Sequence>),
    /// Remove rows.
    Rows,
}

/// Writes of an actor in one batch that is not on disk yet.
#[derive(Default)]
pub(super) struct Uncommitted {
    pub(super) batch: u64,
    pub(super) state: Writes,
    pub(super) requests: BTreeMap<RequestId, Option<Json>>,
    /// Tasks dispatched (with their number), or settled or cancelled.
    pub(super) tasks: BTreeMap<TaskId, Option<Sequence>>,
}

impl Slot {
    fn new(id: ActorId) -> Self {
        Self {
            id,
            actor: None,
            head: None,
            mailbox: VecDeque::new(),
            uncommitted: Vec::new(),
            dispatched: BTreeMap::new(),
            bytes: 0,
            is_ready: false,
            is_alarm_queued: false,
            set_aside: 0,
            leaving: None,
            is_recent: false,
        }
    }

    /// Forgets what was known of rows that are gone.
    pub(super) fn begin_anew(&mut self) {
        self.leaving = None;
        self.head = None;
        self.dispatched = BTreeMap::new();
    }

    /// What is known of the actor's rows, read now if it was not before.
    pub(super) fn head(&mut self, reader: &dyn Reader) -> Result<&mut Head, StoreError> {
        if self.head.is_none() {
            self.head = Some(reader.head(&self.id)?);
        }
        Ok(self.head.as_mut().expect("it was read on the line above"))
    }

    /// Forgets writes that are on disk.
    pub(super) fn forget_up_to(&mut self, committed: u64) {
        self.uncommitted.retain(|layer| layer.batch > committed);
        // The buffers of an idle actor would be the largest part of its slot.
        if self.uncommitted.is_empty() && self.mailbox.is_empty() {
            self.uncommitted = Vec::new();
            self.mailbox = VecDeque::new();
        }
    }

    /// What an uncommitted turn did to a task: dispatched it under a number, or settled or cancelled it (`None`).
    pub(super) fn uncommitted_task(&self, task: &TaskId) -> Option<Option<Sequence>> {
        self.uncommitted.iter().rev().find_map(|layer| layer.tasks.get(task).copied())
    }

    /// The number of a task that is known to be under way.
    pub(super) fn dispatched_task(&self, task: &TaskId) -> Option<Sequence> {
        self.dispatched.get(task).copied()
    }

    /// Notes that a task was dispatched under a number, or settled or cancelled (`None`).
    pub(super) fn note_task(&mut self, task: &TaskId, change: Option<Sequence>) {
        match change {
            Some(sequence) if self.dispatched.len() < DISPATCHED_KNOWN_MAX => {
                self.dispatched.insert(task.clone(), sequence);
            }
            Some(_) | None => {
                self.dispatched.remove(task);
            }
        }
    }

    /// What an uncommitted turn left of a request: its answer, or none yet.
    pub(super) fn uncommitted_request(&self, request: &RequestId) -> Option<&Option<Json>> {
        self.uncommitted.iter().rev().find_map(|layer| layer.requests.get(request))
    }

    /// The newest batch that holds something of it; `committed` when all is on disk.
    pub(super) fn newest_batch(&self, committed: u64) -> u64 {
        self.uncommitted.last().map_or(committed, |layer| layer.batch)
    }

    /// The change of the alarm that would change nothing.
    pub(super) fn alarm_as_it_is(&self) -> AlarmChange {
        match self.head.and_then(|head| head.alarm) {
            Some(due) => AlarmChange::At(due),
            None => AlarmChange::Off,
        }
    }

    /// Whether the slot holds nothing that is not on disk.
    pub(super) fn is_droppable(&self) -> bool {
        self.mailbox.is_empty()
            && self.uncommitted.is_empty()
            && self.set_aside == 0
            && !self.is_alarm_queued
            && !self.is_ready
    }
}

/// An actor's storage: uncommitted writes over rows on disk.
pub(super) struct SlotStorage<'a> {
    pub(super) actor: &'a ActorId,
    pub(super) uncommitted: &'a [Uncommitted],
    /// Whether there is anything on disk to look for: a new actor is not searched for at every read.
    pub(super) is_on_disk: bool,
    pub(super) reader: &'a dyn Reader,
}

impl Storage for SlotStorage<'_> {
    fn get(&self, key: &str) -> Result<Option<Json>, TurnError> {
        if let Some(written) = self.uncommitted.iter().rev().find_map(|layer| layer.state.get(key)) {
            return Ok(written.clone());
        }
        if !self.is_on_disk {
            return Ok(None);
        }
        self.reader.get(self.actor, key).map_err(unavailable)
    }

    fn scan(&self, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, TurnError> {
        match self.uncommitted.split_last() {
            Some((newest, older)) => scan_over(&newest.state, from, to, limit, |from, limit| {
                SlotStorage { uncommitted: older, ..*self }.scan(from, to, limit)
            }),
            None if self.is_on_disk => self.reader.scan(self.actor, from, to, limit).map_err(unavailable),
            None => Ok(Entries::new()),
        }
    }
}

/// The id of a slot that is free.
fn nobody() -> ActorId {
    ActorId::new("nobody", "-").expect("written in code")
}

fn unavailable(error: StoreError) -> TurnError {
    match error {
        // It will be no better at the next try, so the input is refused, or kept as a dead letter.
        StoreError::Damaged(_) => TurnError::Failed(error.to_string()),
        StoreError::Full(_)
        | StoreError::ReadOnly(_)
        | StoreError::Busy(_)
        | StoreError::TakenOver(_)
        | StoreError::Failed(_) => TurnError::StoreUnavailable(error.to_string()),
    }
}
