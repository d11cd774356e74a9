//! Actors that go, with all their rows.
//!
//! Owns the course of it. The order to go is a message like others: on disk until it is done, behind what came before it, and before what comes later.
//! So a crash loses nothing of it, and whoever is of that name next begins after the last row is gone. It goes a part at a time, a batch each; those below
//! are told in the same way before the actor itself goes, so that none is left without an order. Start reading at [`Runner::remove`].

use steadfast_core::ids::{ActorId, Sequence};
use steadfast_core::json::Json;
use steadfast_core::limits;
use steadfast_core::time::Timestamp;
use steadfast_store::StoreError;
use steadfast_store::batch::Removal;
use steadfast_store::rows::{MessageRow, Origin, RunFilter};

use super::Runner;
use super::mailbox::Entry;
use super::slot::{Leaving, NextLeaving, Place};
use super::turn::consume;
use crate::commit::{Output, RequestError, Waiter};
use crate::engine_message::{Below, EngineMessage, RemovalOrder};
use crate::metrics::Counters;
use crate::mutation::Mutation;

/// Those below that are told in one batch.
const TOLD_AT_ONCE: usize = 200;

/// What a removed row counts in a batch: so one holds 4,000 of them, and other turns never wait for more.
const ROW_BYTES: usize = limits::BATCH_BYTES_MAX / 4_000;

impl Runner {
    /// Puts the order into the actor's mailbox.
    pub(super) fn begin_removal(&mut self, actor: &ActorId, order: RemovalOrder, waiter: Waiter) {
        let row = self.order_to(actor.clone(), order);
        let appended = self.gather.append(self.epoch, row.body.bytes(), |writing| {
            writing.batch.of(actor).insert_message(row.clone());
            writing.number
        });
        // After a failed commit the caller hears of it, because its waiter is dropped.
        let Ok(batch) = appended else { return };
        self.leave_taking.entry(actor.clone()).or_default().push(waiter);
        self.receive(row, batch);
    }

    /// Does the next part of a removal. Everything of the actor is on disk.
    pub(super) fn remove(
        &mut self,
        place: Place,
        entry: Entry,
        order: &RemovalOrder,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        match self.next_part(place, order) {
            Ok(part) => {
                self.take_part(place, entry, order, part);
                Ok(())
            }
            Err(error) => {
                // It is tried again, but whoever waits need not wait for a row that somebody must mend.
                if let StoreError::Damaged(_) = error {
                    for waiter in self.leave_taking.remove(&self.slots[place].id).unwrap_or_default() {
                        waiter.send(Err(RequestError::Refused(error.to_string())));
                    }
                }
                self.after_store_error(place, entry, error, now)
            }
        }
    }

    fn next_part(&mut self, place: Place, order: &RemovalOrder) -> Result<Part, StoreError> {
        let slot = &self.slots[place];
        let listed = self.reader.run(&slot.id)?;
        if listed.is_some_and(|row| Some(row.number) != order.number || row.ended_at.is_none()) {
            return Ok(Part::Nothing);
        }
        let next = slot.leaving.map_or(NextLeaving::Below(None), |leaving| leaving.next);
        if let (Some(below), NextLeaving::Below(before)) = (&order.below, next)
            && !self.gather.mutation.is(Mutation::BelowForgotten)
        {
            let told = self.below(below, order, before)?;
            if !told.messages.is_empty() {
                return Ok(Part::Tell(told));
            }
        }
        let rows_max = self.settings.removed_rows_max.max(1);
        let rows = self.reader.rows_of(&slot.id, rows_max + 1)?;
        Ok(Part::Rows { count: rows.min(rows_max), is_last: rows <= rows_max })
    }

    /// The next orders to those below.
    fn below(&self, below: &Below, order: &RemovalOrder, before: Option<Sequence>) -> Result<Told, StoreError> {
        let filter = RunFilter { root: Some(&below.root), ..RunFilter::default() };
        let listed = self.reader.runs(filter, before, TOLD_AT_ONCE)?;
        let next = match listed.last() {
            Some(last) if listed.len() == TOLD_AT_ONCE => NextLeaving::Below(Some(last.number)),
            Some(_) | None => NextLeaving::Rows,
        };
        let order_for = |number| RemovalOrder { number, first: order.first.clone(), below: None };
        let mut messages: Vec<MessageRow> =
            listed.into_iter().map(|row| self.order_to(row.actor, order_for(Some(row.number)))).collect();
        if before.is_none() {
            for actor in self.reader.actors_with_dead_letters(&below.prefix, limits::PAGE_ROWS_MAX)? {
                if self.reader.run(&actor)?.is_none() {
                    messages.push(self.order_to(actor, order_for(None)));
                }
            }
        }
        Ok(Told { messages, next })
    }

    fn take_part(&mut self, place: Place, entry: Entry, order: &RemovalOrder, part: Part) {
        let actor = self.slots[place].id.clone();
        let waiting = match part {
            Part::Nothing | Part::Rows { is_last: true, .. } => self.leave_taking.remove(&actor).unwrap_or_default(),
            Part::Tell(_) | Part::Rows { is_last: false, .. } => Vec::new(),
        };
        let bytes = match &part {
            Part::Rows { count, .. } => count * ROW_BYTES,
            Part::Tell(told) => told.messages.iter().map(|row| row.body.bytes()).sum(),
            Part::Nothing => 0,
        };
        let is_done = part.is_last() || self.gather.mutation.is(Mutation::RemovalForgotten);
        let rows_max = self.settings.removed_rows_max.max(1);
        let appended = self.gather.append(self.epoch, bytes, |writing| {
            let writes = writing.batch.of(&actor);
            if let Part::Rows { .. } = part {
                writes.removal = Some(Removal { first: order.first.clone(), rows_max });
            }
            if is_done {
                consume(&entry.waiting, writes);
            }
            if let Part::Tell(told) = &part {
                for row in &told.messages {
                    writing.batch.of(&row.actor).insert_message(row.clone());
                }
            }
            writing.outputs.extend(waiting.into_iter().map(|waiter| Output::Answer(waiter, Ok(Json::null()))));
            writing.number
        });
        // After a failed commit the order is read again from disk.
        let Ok(batch) = appended else { return };
        if !part.is_last() {
            self.put_back(place, entry);
        }
        // So that the slot stays until it is on disk.
        self.uncommitted(place, batch);
        self.evict(&actor);
        match part {
            Part::Nothing => {}
            Part::Rows { is_last, .. } => {
                self.slots[place].leaving = Some(Leaving { batch, next: NextLeaving::Rows });
                Counters::add(&self.gather.counters.actors_removed, u64::from(is_last));
            }
            Part::Tell(told) => {
                self.slots[place].leaving = Some(Leaving { batch, next: told.next });
                self.show(told.messages, batch);
            }
        }
    }

    /// The last part is on disk: what comes now comes to somebody new, unless there is more to remove.
    pub(super) fn forget_removed(&mut self, place: Place) {
        let slot = &mut self.slots[place];
        let is_going_on = slot.mailbox.front().is_some_and(|entry| entry.waiting.removal().is_some());
        if !is_going_on {
            slot.begin_anew();
        }
    }

    fn order_to(&self, actor: ActorId, order: RemovalOrder) -> MessageRow {
        let body = EngineMessage::Remove { order }.write();
        MessageRow::new(actor, self.gather.next_sequence(), Origin::Engine, body)
    }
}

/// A part of a removal.
enum Part {
    /// There is nothing to do: somebody else has this name by now.
    Nothing,
    /// Those below are told.
    Tell(Told),
    /// Rows go.
    Rows { count: usize, is_last: bool },
}

/// Orders to those below.
struct Told {
    messages: Vec<MessageRow>,
    next: NextLeaving,
}

impl Part {
    fn is_last(&self) -> bool {
        match self {
            Self::Nothing | Self::Rows { is_last: true, .. } => true,
            Self::Tell(_) | Self::Rows { is_last: false, .. } => false,
        }
    }
}
