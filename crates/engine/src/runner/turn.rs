//! One turn: from the front of a mailbox to the open batch.
//!
//! Owns the order of things in a turn: is the input still current, load the actor, run it, put everything it wants into
//! the batch, and only then let other actors of this process see it. A turn that errs or panics gets no further than
//! running. Never decides what follows a failure: see `failure.rs`. Start reading at [`Runner::take_turn`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use steadfast_core::ids::{ActorId, Sequence, TaskId};
use steadfast_core::time::Timestamp;
use steadfast_core::turn::{AlarmChange, Dispatch, Effects, Emit, Kind, Listing, Send, TaskChange, Turn, TurnError};
use steadfast_store::batch::{ActorWrites, ListingChange};
use steadfast_store::rows::{EventRow, MessageRow, Origin, RunRow, TaskRow};
use steadfast_store::{Reader, StoreError};

use super::Runner;
use super::delivery::RemoteMessage;
use super::mailbox::{Entry, Waiting};
use super::requests::{Answers, Known};
use super::slot::{Place, Slot, SlotStorage, Uncommitted};
use crate::commit::{Output, TaskCancel, TaskNews, TaskStart};
use crate::engine_message::RemovalOrder;
use crate::metrics::Counters;
use crate::mutation::Mutation;

/// What is to be done with an input at the front of a mailbox.
enum Next {
    Run,
    /// It has no effect any more.
    Drop,
    /// Its body is on disk once this batch is.
    Await(u64),
    /// A request that was asked before.
    Repeated(Known),
    /// The actor goes.
    Remove(RemovalOrder),
}

impl Runner {
    /// Gives an actor its next turn. On an error the input is back at the front of its mailbox.
    pub(super) fn take_turn(&mut self, place: Place, now: Timestamp) -> Result<(), StoreError> {
        let slot = &mut self.slots[place];
        slot.is_ready = false;
        if let Some(leaving) = slot.leaving {
            if leaving.batch > self.committed {
                self.awaiting_commit.push((leaving.batch, place));
                return Ok(());
            }
            self.forget_removed(place);
        }
        let slot = &mut self.slots[place];
        let Some(mut entry) = slot.mailbox.pop_front() else { return Ok(()) };
        self.mailbox_bytes -= entry.bytes();
        let done = match self.examine(place, &mut entry, now) {
            Err(error) => self.after_store_error(place, entry, error, now),
            Ok(Next::Await(batch)) => {
                self.put_back(place, entry);
                self.awaiting_commit.push((batch, place));
                return Ok(());
            }
            Ok(Next::Run) => self.run(place, entry, now),
            Ok(Next::Remove(order)) => self.remove(place, entry, &order, now),
            Ok(Next::Drop) => {
                Counters::add(&self.gather.counters.inputs_dropped, 1);
                Ok(())
            }
            Ok(Next::Repeated(known)) => {
                self.answer_repeated(place, entry, known);
                Ok(())
            }
        };
        self.make_ready(place);
        done
    }

    /// What is damaged stays so: it counts as a failed try of the input, which would hold up the others for ever. Any other fault
    /// of the store is not the input's, which waits at the front until the store is well.
    pub(super) fn after_store_error(
        &mut self,
        place: Place,
        entry: Entry,
        error: StoreError,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if let StoreError::Damaged(_) = error {
            self.after_failure(place, entry, &error.to_string(), now);
            return Ok(());
        }
        self.slots[place].actor = None;
        self.put_back(place, entry);
        Err(error)
    }

    pub(super) fn put_back(&mut self, place: Place, entry: Entry) {
        self.mailbox_bytes += entry.bytes();
        let slot = &mut self.slots[place];
        slot.is_alarm_queued |= matches!(entry.waiting, Waiting::Alarm { .. });
        slot.mailbox.push_front(entry);
    }

    /// Finds out whether the input is still current, and reads what is missing of it.
    fn examine(&mut self, place: Place, entry: &mut Entry, now: Timestamp) -> Result<Next, StoreError> {
        let slot = &mut self.slots[place];
        match &entry.waiting {
            Waiting::Message { .. } => Ok(self.of_message(place, entry)),
            Waiting::Spilled { batch, .. } if *batch > self.committed => Ok(Next::Await(*batch)),
            Waiting::Spilled { sequence, .. } => Ok(match self.reader.message(&slot.id, *sequence)? {
                None => Next::Drop,
                Some(row) => {
                    *entry = Entry::from_row(row);
                    self.of_message(place, entry)
                }
            }),
            Waiting::Alarm { .. } => {
                slot.is_alarm_queued = false;
                match slot.head(&*self.reader)?.alarm {
                    // It may have been moved since it was queued, and may be due all the same.
                    Some(due) if self.alarms.is_due(due, now) => {
                        entry.waiting = Waiting::Alarm { due };
                        Ok(Next::Run)
                    }
                    // It was moved, or the clock was set back: whatever queued it is used up, so it is noted again.
                    Some(due) => {
                        self.alarms.set(&slot.id, due);
                        Ok(Next::Drop)
                    }
                    None => Ok(Next::Drop),
                }
            }
            Waiting::Task(outcome) => {
                let is_current = match slot.uncommitted_task(&outcome.task) {
                    Some(dispatched) => dispatched == Some(outcome.sequence),
                    None => {
                        let under_way = match slot.dispatched_task(&outcome.task) {
                            Some(sequence) => Some(sequence),
                            None => self.reader.task(&slot.id, &outcome.task)?.map(|row| row.sequence),
                        };
                        under_way.is_some_and(|sequence| {
                            sequence == outcome.sequence && outcome.attempt == self.gather.attempt_of(sequence)
                        })
                    }
                };
                let is_accepted = is_current || self.gather.mutation.is(Mutation::SettledTwice);
                Ok(if is_accepted { Next::Run } else { Next::Drop })
            }
            // Nobody waits for it, and nobody can ask for its answer: it was never acknowledged.
            Waiting::Request { id, waiter: Some(waiter), .. } if !id.is_given() && waiter.is_closed() => Ok(Next::Drop),
            Waiting::Request { id, .. } => Ok(match self.known_request(place, id)? {
                Known::New => Next::Run,
                known @ (Known::Unanswered | Known::Answered(_)) => Next::Repeated(known),
            }),
        }
    }

    fn of_message(&self, place: Place, entry: &Entry) -> Next {
        match entry.waiting.removal() {
            None => Next::Run,
            // Only what is on disk can be removed.
            Some(_) if self.slots[place].newest_batch(self.committed) > self.committed => {
                Next::Await(self.slots[place].newest_batch(self.committed))
            }
            Some(order) => Next::Remove(order),
        }
    }

    fn run(&mut self, place: Place, entry: Entry, now: Timestamp) -> Result<(), StoreError> {
        let slot = &mut self.slots[place];
        slot.is_recent = true;
        if let Err(error) = slot.head(&*self.reader) {
            return self.after_store_error(place, entry, error, now);
        }
        if slot.actor.is_none() {
            Counters::add(&self.gather.counters.loads, 1);
        }
        let kind = self.kinds.of(&slot.id).expect("an input of an unknown kind is never put into a mailbox");
        // The actor is dropped after a panic and made again from its rows, so nothing broken is seen afterwards.
        let ran = catch_unwind(AssertUnwindSafe(|| run_turn(slot, &entry.waiting, kind, &*self.reader, now)));
        match ran {
            Ok(Ok((mut effects, bytes))) => {
                self.residency.resize(&mut slot.bytes, bytes);
                match self.first_replies(place, &entry.waiting, std::mem::take(&mut effects.replies)) {
                    Ok(replies) => {
                        effects.replies = replies;
                        self.apply(place, entry, effects, now);
                    }
                    Err(error) => return self.after_store_error(place, entry, error, now),
                }
            }
            Ok(Err(TurnError::StoreUnavailable(reason))) => {
                return self.after_store_error(place, entry, StoreError::Failed(reason), now);
            }
            Ok(Err(error)) => self.after_failure(place, entry, &error.to_string(), now),
            Err(panic) => self.after_failure(place, entry, &panic_message(&*panic), now),
        }
        Ok(())
    }

    /// Puts everything a turn wants into the open batch, then shows it to the actors of this process.
    fn apply(&mut self, place: Place, mut entry: Entry, effects: Effects, now: Timestamp) {
        let actor = &self.slots[place].id.clone();
        let bytes = effects.bytes() + entry.bytes();
        let Effects { writes, sends, mut alarm, tasks, events, replies, listing, root, .. } = effects;
        if matches!(entry.waiting, Waiting::Alarm { .. }) {
            Counters::add(&self.gather.counters.alarms_fired, 1);
            if alarm == AlarmChange::Keep {
                alarm = AlarmChange::Off;
            }
        } else if alarm == self.slots[place].alarm_as_it_is() {
            // Set to what it is: no row, and no second hint in memory.
            alarm = AlarmChange::Keep;
        }
        let messages = self.messages_of(actor, sends);
        let events = self.events_of(place, events, now);
        let tasks = self.tasks_of(actor, tasks);
        let listing = listing.map(|listing| self.listing_of(actor, listing));
        let Answers { released, remembered, unanswered } = self.answers_of(actor, &mut entry.waiting, replies, now);
        let gather = &self.gather;
        let appended = gather.append(self.epoch, bytes, |writing| {
            let of_actor = writing.batch.of(actor);
            if !gather.mutation.is(Mutation::MessageKept) {
                consume(&entry.waiting, of_actor);
            }
            writing.outputs.extend(told(&entry.waiting));
            of_actor.state.extend(writes.iter().map(|(key, value)| (key.clone(), value.clone())));
            if alarm != AlarmChange::Keep && !gather.mutation.is(Mutation::AlarmUnwritten) {
                of_actor.alarm = alarm;
            }
            of_actor.events.extend(events);
            if root.is_some() {
                of_actor.root = root;
            }
            if let Some(listing) = listing {
                of_actor.list(listing);
            }
            for task in &tasks {
                task.write(of_actor, gather.mutation);
                writing.outputs.extend(task.output(gather.mutation));
            }
            for row in &remembered {
                of_actor.remember_request(row.clone());
            }
            writing.outputs.extend(released);
            for row in &messages {
                writing.batch.of(&row.actor).insert_message(row.clone());
            }
            writing.number
        });
        let Ok(batch) = appended else {
            self.carry_over(actor, entry);
            return;
        };
        let is_changed = !writes.is_empty();
        let uncommitted = self.uncommitted(place, batch);
        uncommitted.state.extend(writes);
        uncommitted.requests.extend(remembered.into_iter().map(|row| (row.request, row.reply)));
        let settled = match &entry.waiting {
            Waiting::Task(outcome) => Some((outcome.task.clone(), None)),
            Waiting::Message { .. } | Waiting::Spilled { .. } | Waiting::Alarm { .. } | Waiting::Request { .. } => None,
        };
        // After the settlement: a turn may dispatch the name it has just settled.
        let changes: Vec<_> = settled.into_iter().chain(tasks.into_iter().map(NumberedTask::uncommitted)).collect();
        uncommitted.tasks.extend(changes.iter().cloned());
        for (task, change) in &changes {
            self.slots[place].note_task(task, *change);
        }
        if let Waiting::Task(outcome) = entry.waiting {
            Counters::add(&self.gather.counters.tasks_settled, 1);
            Counters::add(&self.gather.counters.tasks_failed, u64::from(outcome.outcome.is_err()));
            self.unconfirmed.push_back((batch, actor.clone(), outcome));
        }
        if let Some((id, waiter)) = unanswered {
            self.waiters.insert(actor, id, batch, waiter);
        }
        self.after_turn(place, alarm, is_changed);
        self.show(messages, batch);
    }

    /// Notes in memory what the turn did to the actor's head.
    fn after_turn(&mut self, place: Place, alarm: AlarmChange, is_changed: bool) {
        let slot = &mut self.slots[place];
        let head = slot.head.as_mut().expect("the head is read before every turn");
        head.has_state |= is_changed;
        match alarm {
            AlarmChange::Keep => {}
            AlarmChange::Off => head.alarm = None,
            AlarmChange::At(due) => {
                head.alarm = Some(due);
                self.alarms.set(&slot.id, due);
            }
        }
    }

    /// Hands messages to their receivers: here, or by way of the outbox.
    pub(super) fn show(&mut self, messages: Vec<MessageRow>, batch: u64) {
        for row in messages {
            if self.owns(&row.actor) {
                self.receive(row, batch);
            } else {
                self.outbox.push(RemoteMessage { row, batch, epoch: self.epoch });
            }
        }
    }

    fn messages_of(&self, actor: &ActorId, sends: Vec<Send>) -> Vec<MessageRow> {
        let row =
            |Send { to, body }| MessageRow::new(to, self.gather.next_sequence(), Origin::Actor(actor.clone()), body);
        sends.into_iter().map(row).collect()
    }

    fn tasks_of(&self, actor: &ActorId, changes: Vec<TaskChange>) -> Vec<NumberedTask> {
        let numbered = |change| {
            let (actor, sequence) = (actor.clone(), self.gather.next_sequence());
            match change {
                TaskChange::Dispatch(Dispatch { task, executor, input }) => {
                    NumberedTask::Dispatch(TaskRow { actor, task, sequence, executor, input })
                }
                TaskChange::Cancel(task) => NumberedTask::Cancel(TaskCancel { actor, task, sequence }),
            }
        };
        changes.into_iter().map(numbered).collect()
    }

    fn listing_of(&self, actor: &ActorId, listing: Listing) -> ListingChange {
        let Listing { workflow, version, status, was, parent, root, started_at, ended_at } = listing;
        let row = RunRow {
            actor: actor.clone(),
            number: self.gather.next_sequence(),
            workflow,
            version,
            status: status.into(),
            parent,
            root,
            started_at,
            ended_at,
        };
        ListingChange { row, was: was.map(Arc::from) }
    }

    fn events_of(&mut self, place: Place, events: Vec<Emit>, now: Timestamp) -> Vec<EventRow> {
        let slot = &mut self.slots[place];
        let head = slot.head.as_mut().expect("the head is read before every turn");
        let row = |Emit { event_type, data }| {
            head.last_event += 1;
            EventRow { actor: slot.id.clone(), sequence: head.last_event, at: now, event_type, data }
        };
        events.into_iter().map(row).collect()
    }

    /// The uncommitted writes of an actor in batch `batch`.
    pub(super) fn uncommitted(&mut self, place: Place, batch: u64) -> &mut Uncommitted {
        let layers = &mut self.slots[place].uncommitted;
        if layers.last().is_none_or(|newest| newest.batch != batch) {
            layers.push(Uncommitted { batch, ..Uncommitted::default() });
            self.dirty.push_back((batch, place));
        }
        layers.last_mut().expect("it was pushed just above")
    }
}

/// What a turn wants of a task, with its place in the order of arrival.
enum NumberedTask {
    Dispatch(TaskRow),
    Cancel(TaskCancel),
}

impl NumberedTask {
    fn write(&self, writes: &mut ActorWrites, mutation: Mutation) {
        match self {
            Self::Dispatch(row) => writes.insert_task(row.clone()),
            Self::Cancel(_) if mutation.is(Mutation::CancelledKept) => {}
            Self::Cancel(cancel) => writes.cancel_task(&cancel.task),
        }
    }

    fn output(&self, mutation: Mutation) -> Option<Output> {
        match self {
            Self::Dispatch(row) => Some(Output::Task(TaskNews::Start(TaskStart::of(row, 1)))),
            Self::Cancel(_) if mutation.is(Mutation::CancelUnheard) => None,
            Self::Cancel(cancel) => Some(Output::Task(TaskNews::Cancel(cancel.clone()))),
        }
    }

    fn uncommitted(self) -> (TaskId, Option<Sequence>) {
        match self {
            Self::Dispatch(row) => (row.task, Some(row.sequence)),
            Self::Cancel(cancel) => (cancel.task, None),
        }
    }
}

/// Runs the actor, made from its rows first if it is not in memory. Its effects, and the memory that it holds now.
fn run_turn(
    slot: &mut Slot,
    waiting: &Waiting,
    kind: &dyn Kind,
    reader: &dyn Reader,
    now: Timestamp,
) -> Result<(Effects, usize), TurnError> {
    let head = slot.head.expect("the head is read before every turn");
    let id = &slot.id;
    let storage = SlotStorage { actor: id, uncommitted: &slot.uncommitted, is_on_disk: head.has_state, reader };
    let input = waiting.input().map_err(TurnError::Failed)?;
    if slot.actor.is_none() {
        slot.actor = Some(kind.load(id, &storage)?);
    }
    let alarm = if matches!(waiting, Waiting::Alarm { .. }) { None } else { head.alarm };
    let mut turn = Turn::begin(id, now, alarm, &storage);
    let actor = slot.actor.as_mut().expect("it was loaded just above");
    actor.turn(&mut turn, &input)?;
    Ok((turn.end()?, actor.bytes()))
}

/// What whoever brought a task's result hears.
pub(super) fn told(waiting: &Waiting) -> Option<Output> {
    match waiting {
        Waiting::Task(outcome) => outcome.told.output(),
        Waiting::Request { .. } | Waiting::Message { .. } | Waiting::Spilled { .. } | Waiting::Alarm { .. } => None,
    }
}

/// Takes the input away in the same batch that holds its effects.
pub(super) fn consume(waiting: &Waiting, writes: &mut ActorWrites) {
    match waiting {
        Waiting::Message { sequence, .. } | Waiting::Spilled { sequence, .. } => writes.consume_message(*sequence),
        Waiting::Alarm { .. } => writes.alarm = AlarmChange::Off,
        Waiting::Task(outcome) => writes.settle_task(&outcome.task),
        Waiting::Request { .. } => {}
    }
}

fn panic_message(panic: &(dyn std::any::Any + std::marker::Send)) -> String {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the turn panicked: {}", message.unwrap_or("no message"))
}
