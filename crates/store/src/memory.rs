//! A store that forgets with the process, for tests and simulation.
//!
//! Owns maps behind a mutex. A clone is the same store, so that a simulator can drop an engine in the middle of its work and
//! open the store again. Gives the same answers as [`crate::sqlite`], which the conformance suite and a property test
//! prove. Start reading at `ShardRows::apply`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_core::ids::{ActorId, RequestId, Sequence, Shard, TaskId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::{AlarmChange, Entries};

use crate::batch::{ActorWrites, Batch, ListingChange, MessageChange, Removal, RowChange};
use crate::number::{boot_after, storable};
use crate::rows::{
    AlarmRow, DeadLetterRow, EventRow, Head, HistoryPlace, MessageRow, RequestRow, RunCount, RunFilter, RunRow, TaskRow,
};
use crate::{Reader, Store, StoreError};

/// A store in memory. A clone is the same store.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    rows: Arc<Mutex<Rows>>,
}

#[derive(Debug, Default)]
struct Rows {
    boot: u32,
    shards: BTreeMap<Shard, ShardRows>,
    runs: BTreeMap<Sequence, RunRow>,
    run_numbers: BTreeMap<ActorId, Sequence>,
    /// Every event in the order of commits, with the top of its tree.
    history: BTreeMap<HistoryPlace, (Option<Arc<str>>, EventRow)>,
    /// How many parts the history has had.
    parts: u64,
}

/// The rows of one shard, each kind in the orders in which it is read.
#[derive(Debug, Default)]
struct ShardRows {
    state: BTreeMap<ActorId, BTreeMap<Arc<str>, Json>>,
    messages: BTreeMap<(ActorId, Sequence), MessageRow>,
    alarms: BTreeMap<ActorId, Timestamp>,
    alarms_by_due: BTreeMap<(Timestamp, Box<str>), ActorId>,
    tasks: BTreeMap<(ActorId, TaskId), TaskRow>,
    tasks_by_sequence: BTreeMap<Sequence, BTreeSet<(ActorId, TaskId)>>,
    requests: BTreeMap<(ActorId, RequestId), RequestRow>,
    requests_by_expiry: BTreeSet<(Timestamp, ActorId, RequestId)>,
    events: BTreeMap<(ActorId, u64), EventRow>,
    dead_letters: BTreeMap<Sequence, DeadLetterRow>,
}

/// A row that a removal takes.
enum Removable {
    Task(TaskId),
    Request(RequestId),
    DeadLetter(Sequence),
    Event(u64),
    State(Arc<str>),
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        // Everything that can fail is checked before the first row changes, so a panic leaves no half of a batch.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from a shard, which is empty when nothing was ever written to it.
    fn of<T>(&self, shard: Shard, read: impl FnOnce(&ShardRows) -> T) -> T {
        match self.rows().shards.get(&shard) {
            Some(rows) => read(rows),
            None => read(&ShardRows::default()),
        }
    }
}

impl Store for MemoryStore {
    fn begin_boot(&self) -> Result<u32, StoreError> {
        let mut rows = self.rows();
        rows.boot = boot_after(rows.boot)?;
        Ok(rows.boot)
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut rows = self.rows();
        let mut letters = BTreeMap::new();
        for (actor, writes) in &batch.actors {
            let shard = rows.shards.entry(actor.shard()).or_default();
            shard.check(actor, writes, &mut letters)?;
        }
        for (actor, writes) in &batch.actors {
            if let Some(removal) = &writes.removal {
                rows.remove(actor, removal);
            }
            rows.shards.entry(actor.shard()).or_default().apply(actor, writes);
            rows.list(actor, writes);
        }
        Ok(())
    }

    fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(self.clone()))
    }
}

impl Rows {
    /// What is in the order of commits, whatever the shard.
    fn list(&mut self, actor: &ActorId, writes: &ActorWrites) {
        if let Some(ListingChange { row, .. }) = &writes.listing {
            let number = *self.run_numbers.entry(actor.clone()).or_insert(row.number);
            let listed = self.runs.entry(number).or_insert_with(|| row.clone());
            (listed.status, listed.ended_at) = (row.status.clone(), row.ended_at);
        }
        if !writes.events.is_empty() {
            self.parts += 1;
            let places = (0..).map(|index| HistoryPlace { part: self.parts, index });
            let events = writes.events.iter().map(|event| (writes.root.clone(), event.clone()));
            self.history.extend(places.zip(events));
        }
    }

    fn remove(&mut self, actor: &ActorId, removal: &Removal) {
        if let Some(number) = self.run_numbers.remove(actor) {
            self.runs.remove(&number);
        }
        let events = self.shards.entry(actor.shard()).or_default().remove(actor, removal);
        if !events.is_empty() {
            self.history.retain(|_, (_, event)| event.actor != *actor || !events.contains(&event.sequence));
        }
    }
}

impl ShardRows {
    /// Refuses what no store accepts: a new row where there is one, and a number that is too large.
    fn check(
        &self,
        actor: &ActorId,
        writes: &ActorWrites,
        letters: &mut BTreeMap<(Shard, Sequence), Option<ActorId>>,
    ) -> Result<(), StoreError> {
        for (sequence, change) in &writes.messages {
            storable(sequence.0)?;
            match change {
                MessageChange::Insert(row) => {
                    storable(row.not_before.0)?;
                    unless(self.messages.contains_key(&(actor.clone(), *sequence)), "message", actor, sequence.0)?;
                }
                MessageChange::Retry { not_before, .. } => {
                    storable(not_before.0)?;
                }
                MessageChange::Delete => {}
            }
        }
        if let AlarmChange::At(due) = writes.alarm {
            storable(due.0)?;
        }
        for change in writes.tasks.values() {
            if let RowChange::Insert(row) = change {
                storable(row.sequence.0)?;
            }
        }
        for row in writes.requests.values().flatten() {
            storable(row.expires_at.0)?;
        }
        let mut last_event = last_event(&self.events, actor);
        for row in &writes.events {
            storable(row.sequence)?;
            storable(row.at.0)?;
            unless(row.sequence <= last_event, "event", actor, row.sequence)?;
            last_event = row.sequence;
        }
        for (id, change) in &writes.dead_letters {
            storable(id.0)?;
            // Letters of several actors share one order, so this batch may have changed this one already.
            let key = (actor.shard(), *id);
            let owner = letters.entry(key).or_insert_with(|| self.dead_letters.get(id).map(|row| row.actor.clone()));
            match change {
                RowChange::Insert(row) => {
                    storable(row.at.0)?;
                    unless(owner.is_some(), "dead letter", actor, id.0)?;
                    *owner = Some(actor.clone());
                }
                RowChange::Delete => *owner = owner.take().filter(|owner| owner != actor),
            }
        }
        Ok(())
    }

    /// The rows that a removal takes, except for the first key and the alarm.
    fn removable(&self, actor: &ActorId) -> Vec<Removable> {
        let tasks =
            self.tasks.keys().filter(|(owner, _)| owner == actor).map(|(_, task)| Removable::Task(task.clone()));
        let requests = self.requests.keys().filter(|(owner, _)| owner == actor);
        let requests = requests.map(|(_, request)| Removable::Request(request.clone()));
        let letters = self.dead_letters.iter().filter(|(_, row)| row.actor == *actor);
        let letters = letters.map(|(id, _)| Removable::DeadLetter(*id));
        let events = self.events.keys().filter(|(owner, _)| owner == actor);
        let events = events.map(|(_, sequence)| Removable::Event(*sequence));
        let state = self.state.get(actor).into_iter().flat_map(BTreeMap::keys).map(|key| Removable::State(key.clone()));
        tasks.chain(requests).chain(letters).chain(events).chain(state).collect()
    }

    /// Removes a part of an actor. The numbers of its events that are gone.
    fn remove(&mut self, actor: &ActorId, removal: &Removal) -> BTreeSet<u64> {
        self.set_alarm(actor, None);
        let (first, mut events) = (removal.first.clone().map(Removable::State), BTreeSet::new());
        for row in first.into_iter().chain(self.removable(actor).into_iter().take(removal.rows_max)) {
            match row {
                Removable::Task(task) => self.set_task(actor, &task, &RowChange::Delete),
                Removable::Request(request) => self.set_request(actor, &request, None),
                Removable::DeadLetter(id) => drop(self.dead_letters.remove(&id)),
                Removable::Event(sequence) => {
                    self.events.remove(&(actor.clone(), sequence));
                    events.insert(sequence);
                }
                Removable::State(key) => {
                    if let Some(state) = self.state.get_mut(actor) {
                        state.remove(&key);
                    }
                }
            }
        }
        self.state.retain(|_, state| !state.is_empty());
        events
    }

    fn apply(&mut self, actor: &ActorId, writes: &ActorWrites) {
        if !writes.state.is_empty() {
            self.apply_state(actor, writes);
        }
        for (sequence, change) in &writes.messages {
            let key = (actor.clone(), *sequence);
            match change {
                MessageChange::Insert(row) => {
                    self.messages.insert(key, row.clone());
                }
                MessageChange::Retry { attempts, not_before } => {
                    if let Some(row) = self.messages.get_mut(&key) {
                        row.attempts = *attempts;
                        row.not_before = *not_before;
                    }
                }
                MessageChange::Delete => {
                    self.messages.remove(&key);
                }
            }
        }
        match writes.alarm {
            AlarmChange::Keep => {}
            AlarmChange::Off => self.set_alarm(actor, None),
            AlarmChange::At(due) => self.set_alarm(actor, Some(due)),
        }
        for (task, change) in &writes.tasks {
            self.set_task(actor, task, change);
        }
        for (request, row) in &writes.requests {
            self.set_request(actor, request, row.as_ref());
        }
        for row in &writes.events {
            self.events.insert((actor.clone(), row.sequence), row.clone());
        }
        for (id, change) in &writes.dead_letters {
            match change {
                RowChange::Insert(row) => drop(self.dead_letters.insert(*id, row.clone())),
                RowChange::Delete => {
                    if let Entry::Occupied(letter) = self.dead_letters.entry(*id)
                        && letter.get().actor == *actor
                    {
                        letter.remove();
                    }
                }
            }
        }
    }

    fn apply_state(&mut self, actor: &ActorId, writes: &ActorWrites) {
        let state = self.state.entry(actor.clone()).or_default();
        for (key, value) in &writes.state {
            match value {
                Some(value) => state.insert(key.clone(), value.clone()),
                None => state.remove(key),
            };
        }
        if state.is_empty() {
            self.state.remove(actor);
        }
    }

    fn set_alarm(&mut self, actor: &ActorId, due: Option<Timestamp>) {
        if let Some(before) = self.alarms.remove(actor) {
            self.alarms_by_due.remove(&(before, actor.as_str().into()));
        }
        if let Some(due) = due {
            self.alarms.insert(actor.clone(), due);
            self.alarms_by_due.insert((due, actor.as_str().into()), actor.clone());
        }
    }

    fn set_task(&mut self, actor: &ActorId, task: &TaskId, change: &RowChange<TaskRow>) {
        let key = (actor.clone(), task.clone());
        if let Some(before) = self.tasks.remove(&key)
            && let Entry::Occupied(mut place) = self.tasks_by_sequence.entry(before.sequence)
        {
            place.get_mut().remove(&key);
            if place.get().is_empty() {
                place.remove();
            }
        }
        match change {
            RowChange::Insert(row) => {
                self.tasks_by_sequence.entry(row.sequence).or_default().insert(key.clone());
                self.tasks.insert(key, row.clone());
            }
            RowChange::Delete => {}
        }
    }

    fn set_request(&mut self, actor: &ActorId, request: &RequestId, row: Option<&RequestRow>) {
        let key = (actor.clone(), request.clone());
        if let Some(before) = self.requests.remove(&key) {
            self.requests_by_expiry.remove(&(before.expires_at, actor.clone(), request.clone()));
        }
        if let Some(row) = row {
            self.requests.insert(key, row.clone());
            self.requests_by_expiry.insert((row.expires_at, actor.clone(), request.clone()));
        }
    }
}

impl Reader for MemoryStore {
    fn head(&self, actor: &ActorId) -> Result<Head, StoreError> {
        Ok(self.of(actor.shard(), |rows| Head {
            alarm: rows.alarms.get(actor).copied(),
            last_event: last_event(&rows.events, actor),
            has_state: rows.state.contains_key(actor),
        }))
    }

    fn get(&self, actor: &ActorId, key: &str) -> Result<Option<Json>, StoreError> {
        Ok(self.of(actor.shard(), |rows| rows.state.get(actor)?.get(key).cloned()))
    }

    fn scan(&self, actor: &ActorId, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, StoreError> {
        Ok(self.of(actor.shard(), |rows| {
            let Some(state) = rows.state.get(actor) else {
                return Entries::new();
            };
            // The end is looked for row by row: `range` panics when it lies before the beginning.
            let is_before_end = |key: &str| match to {
                Bound::Unbounded => true,
                Bound::Included(end) => key <= end,
                Bound::Excluded(end) => key < end,
            };
            let entries = state.range::<str, _>((from, Bound::Unbounded)).take_while(|(key, _)| is_before_end(key));
            entries.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect()
        }))
    }

    fn messages(
        &self,
        shard: Shard,
        after: Option<(&ActorId, Sequence)>,
        limit: usize,
    ) -> Result<Vec<MessageRow>, StoreError> {
        let from = after_or_all(after.map(|(actor, sequence)| (actor.clone(), sequence)));
        Ok(self.of(shard, |rows| rows.messages.range(from).take(limit).map(|(_, row)| row.clone()).collect()))
    }

    fn message(&self, actor: &ActorId, sequence: Sequence) -> Result<Option<MessageRow>, StoreError> {
        Ok(self.of(actor.shard(), |rows| rows.messages.get(&(actor.clone(), sequence)).cloned()))
    }

    fn alarms(
        &self,
        shard: Shard,
        after: (Timestamp, &str),
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<AlarmRow>, StoreError> {
        let from = after_or_all(Some((after.0, after.1.into())));
        Ok(self.of(shard, |rows| {
            let due = rows.alarms_by_due.range(from).take_while(|((due, _), _)| *due <= until);
            due.take(limit).map(|((due, _), actor)| AlarmRow { actor: actor.clone(), due: *due }).collect()
        }))
    }

    fn tasks(&self, shard: Shard, after: Option<Sequence>, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        // Compared by the sequence alone, as the others are: several tasks of one would be passed over together.
        let from = after_or_all(after);
        Ok(self.of(shard, |rows| {
            let tasks = rows.tasks_by_sequence.range(from).flat_map(|(_, tasks)| tasks);
            tasks.take(limit).filter_map(|task| rows.tasks.get(task).cloned()).collect()
        }))
    }

    fn tasks_of_workers(&self, queue: &str, after: Option<Sequence>, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        let executor = format!("worker:{queue}");
        let rows = self.rows();
        let all = rows.shards.values().flat_map(|shard| shard.tasks.values());
        let is_wanted = |row: &&TaskRow| *row.executor == *executor && after.is_none_or(|after| row.sequence > after);
        let mut found: Vec<TaskRow> = all.filter(is_wanted).cloned().collect();
        found.sort_by_key(|row| row.sequence);
        found.truncate(limit);
        Ok(found)
    }

    fn task(&self, actor: &ActorId, task: &TaskId) -> Result<Option<TaskRow>, StoreError> {
        Ok(self.of(actor.shard(), |rows| rows.tasks.get(&(actor.clone(), task.clone())).cloned()))
    }

    fn request(&self, actor: &ActorId, request: &RequestId) -> Result<Option<RequestRow>, StoreError> {
        Ok(self.of(actor.shard(), |rows| rows.requests.get(&(actor.clone(), request.clone())).cloned()))
    }

    fn expired_requests(&self, shard: Shard, now: Timestamp, limit: usize) -> Result<Vec<RequestRow>, StoreError> {
        Ok(self.of(shard, |rows| {
            let expired = rows.requests_by_expiry.iter().take_while(|(expires_at, ..)| *expires_at < now).take(limit);
            expired.filter_map(|(_, actor, id)| rows.requests.get(&(actor.clone(), id.clone())).cloned()).collect()
        }))
    }

    fn events(&self, actor: &ActorId, after: u64, limit: usize) -> Result<Vec<EventRow>, StoreError> {
        // No stored number is as large as this, so the end never lies before the beginning.
        let (from, end) = ((actor.clone(), after.min(u64::MAX - 1)), (actor.clone(), u64::MAX));
        let from = (Bound::Excluded(from), Bound::Excluded(end));
        Ok(self.of(actor.shard(), |rows| rows.events.range(from).take(limit).map(|(_, row)| row.clone()).collect()))
    }

    fn history(
        &self,
        root: Option<&str>,
        after: HistoryPlace,
        limit: usize,
    ) -> Result<Vec<(HistoryPlace, EventRow)>, StoreError> {
        let rows = self.rows();
        let behind = rows.history.range(after_or_all(Some(after)));
        let wanted = behind.filter(|(_, (top, _))| root.is_none_or(|root| top.as_deref() == Some(root)));
        Ok(wanted.take(limit).map(|(place, (_, event))| (*place, event.clone())).collect())
    }

    fn runs(&self, filter: RunFilter<'_>, before: Option<Sequence>, limit: usize) -> Result<Vec<RunRow>, StoreError> {
        let fits = |row: &&RunRow| {
            before.is_none_or(|before| row.number < before)
                && filter.workflow.is_none_or(|workflow| *row.workflow == *workflow)
                && filter.status.is_none_or(|status| *row.status == *status)
                && filter.root.is_none_or(|root| *row.root == *root && row.parent.is_some())
                && filter.parent.is_none_or(|parent| row.parent.as_deref() == Some(parent))
        };
        Ok(self.rows().runs.values().rev().filter(fits).take(limit).cloned().collect())
    }

    fn run(&self, actor: &ActorId) -> Result<Option<RunRow>, StoreError> {
        let rows = self.rows();
        Ok(rows.run_numbers.get(actor).and_then(|number| rows.runs.get(number)).cloned())
    }

    fn ended_runs(
        &self,
        after: (Timestamp, Sequence),
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<RunRow>, StoreError> {
        let rows = self.rows();
        let tops = rows.runs.values().filter(|row| row.parent.is_none());
        let place = |row: &RunRow| row.ended_at.map(|ended_at| (ended_at, row.number));
        let is_wanted = |place: &(Timestamp, Sequence)| *place > after && place.0 <= until;
        let mut found: Vec<RunRow> = tops.filter(|row| place(row).is_some_and(|at| is_wanted(&at))).cloned().collect();
        found.sort_by_key(place);
        found.truncate(limit);
        Ok(found)
    }

    fn rows_of(&self, actor: &ActorId, limit: usize) -> Result<usize, StoreError> {
        Ok(self.of(actor.shard(), |rows| rows.removable(actor).len().min(limit)))
    }

    fn actors_with_messages(&self, prefix: &str, limit: usize) -> Result<Vec<ActorId>, StoreError> {
        let rows = self.rows();
        let actors = rows.shards.values().flat_map(|shard| shard.messages.keys().map(|(actor, _)| actor));
        Ok(beginning_with(prefix, actors, limit))
    }

    fn actors_with_dead_letters(&self, prefix: &str, limit: usize) -> Result<Vec<ActorId>, StoreError> {
        let rows = self.rows();
        let actors = rows.shards.values().flat_map(|shard| shard.dead_letters.values().map(|row| &row.actor));
        Ok(beginning_with(prefix, actors, limit))
    }

    fn run_counts(&self) -> Result<Vec<RunCount>, StoreError> {
        let mut counts: BTreeMap<(Arc<str>, Arc<str>), u64> = BTreeMap::new();
        for row in self.rows().runs.values() {
            *counts.entry((row.workflow.clone(), row.status.clone())).or_default() += 1;
        }
        let count = |((workflow, status), count)| RunCount { workflow, status, count };
        Ok(counts.into_iter().map(count).collect())
    }

    fn dead_letters(
        &self,
        shard: Shard,
        after: Option<Sequence>,
        limit: usize,
    ) -> Result<Vec<DeadLetterRow>, StoreError> {
        let from = after_or_all(after);
        Ok(self.of(shard, |rows| rows.dead_letters.range(from).take(limit).map(|(_, row)| row.clone()).collect()))
    }
}

/// Each of the actors whose ids begin so, once.
fn beginning_with<'a>(prefix: &str, actors: impl Iterator<Item = &'a ActorId>, limit: usize) -> Vec<ActorId> {
    let found: BTreeSet<&ActorId> = actors.filter(|actor| actor.as_str().starts_with(prefix)).collect();
    found.into_iter().take(limit).cloned().collect()
}

fn after_or_all<K>(after: Option<K>) -> (Bound<K>, Bound<K>) {
    (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

fn last_event(events: &BTreeMap<(ActorId, u64), EventRow>, actor: &ActorId) -> u64 {
    let own = (actor.clone(), 0)..=(actor.clone(), u64::MAX);
    events.range(own).next_back().map_or(0, |((_, sequence), _)| *sequence)
}

fn unless(is_there: bool, what: &str, actor: &ActorId, number: u64) -> Result<(), StoreError> {
    if is_there {
        Err(StoreError::Failed(format!("{what} {number} of `{actor}` is there already, or a later one")))
    } else {
        Ok(())
    }
}
