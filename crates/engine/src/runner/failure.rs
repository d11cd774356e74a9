//! Failing inputs: tried again with backoff, then kept as dead letters.
//!
//! Owns what follows a failed turn. A failing input steps aside, so that the others of its actor go on; when it has used up its
//! tries it is kept, and the actor is told by a message of its own. Never loses one: each step is a batch.

use std::collections::BTreeMap;

use steadfast_core::failure::bounded;
use steadfast_core::retry::{AfterFailure, Retry};
use steadfast_core::time::Timestamp;
use steadfast_core::turn::{DeadLetter, FailedInput};
use steadfast_store::rows::{DeadLetterRow, MessageRow, Origin};

use super::Runner;
use super::mailbox::{Entry, Waiting};
use super::slot::Place;
use super::turn::{consume, told};
use crate::commit::RequestError;
use crate::dead_letters::DeadLetterId;
use crate::engine_message::{EngineMessage, write_failed_input};
use crate::log::run_of;
use crate::metrics::Counters;

/// Inputs that wait for their next try.
#[derive(Default)]
pub(super) struct Retries {
    /// By time; the number keeps those of one millisecond in the order in which they failed.
    by_time: BTreeMap<(Timestamp, u64), (Place, Entry)>,
    next_number: u64,
}

impl Retries {
    fn push(&mut self, due: Timestamp, place: Place, entry: Entry) {
        self.next_number += 1;
        self.by_time.insert((due, self.next_number), (place, entry));
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.by_time.first_key_value().map(|((due, _), _)| *due)
    }

    fn pop_due(&mut self, now: Timestamp) -> Option<(Place, Entry)> {
        let first = self.by_time.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (Place, Entry)> {
        std::mem::take(&mut self.by_time).into_values()
    }
}

impl Runner {
    /// Decides what becomes of an input whose turn failed.
    pub(super) fn after_failure(&mut self, place: Place, mut entry: Entry, error: &str, now: Timestamp) {
        Counters::add(&self.gather.counters.turns_failed, 1);
        entry.attempts = entry.attempts.saturating_add(1);
        let slot = &mut self.slots[place];
        slot.actor = None;
        let Some(input) = entry.waiting.failed_input() else {
            // Its caller still has it and is told; nothing was acknowledged, so there is nothing to keep.
            self.refuse(entry.waiting, error);
            return;
        };
        tracing::warn!(run = run_of(&slot.id), actor = %slot.id, attempt = entry.attempts, error, "a turn failed");
        match Retry::of_messages().after_failure(slot.id.as_str(), entry.attempts, now) {
            AfterFailure::RetryAt(due) => self.set_aside(place, entry, due),
            AfterFailure::GiveUp => self.give_up(place, entry, input, error, now),
        }
    }

    fn refuse(&mut self, waiting: Waiting, error: &str) {
        if let Waiting::Request { waiter: Some(waiter), .. } = waiting {
            self.answer_when_durable(waiter, Err(RequestError::Refused(bounded(error))));
        }
    }

    fn set_aside(&mut self, place: Place, entry: Entry, due: Timestamp) {
        let Entry { waiting, attempts } = entry;
        let waiting = if let Waiting::Message { sequence, .. } = waiting {
            let appended = self.gather.append(self.epoch, 0, |writing| {
                writing.batch.of(&self.slots[place].id).retry_message(sequence, attempts, due);
                writing.number
            });
            let Ok(batch) = appended else { return };
            // The body waits on disk: any number of failing messages costs little memory.
            Waiting::Spilled { sequence, batch }
        } else {
            waiting
        };
        self.hold_until(place, Entry { waiting, attempts }, due);
    }

    /// Holds an input until `due`.
    pub(super) fn hold_until(&mut self, place: Place, entry: Entry, due: Timestamp) {
        let slot = &mut self.slots[place];
        slot.set_aside += 1;
        slot.is_alarm_queued |= matches!(entry.waiting, Waiting::Alarm { .. });
        self.retries.push(due, place, entry);
    }

    fn give_up(&mut self, place: Place, entry: Entry, input: FailedInput, error: &str, now: Timestamp) {
        let actor = &self.slots[place].id.clone();
        Counters::add(&self.gather.counters.dead_letters, 1);
        let id = self.gather.next_sequence();
        tracing::error!(run = run_of(actor), %actor, letter = %DeadLetterId { shard: actor.shard(), sequence: id }, attempts = entry.attempts, error, "an input was given up and is kept as a dead letter");
        let letter = DeadLetter { id, input, error: bounded(error), attempts: entry.attempts };
        let row = DeadLetterRow {
            id,
            actor: actor.clone(),
            input: write_failed_input(&letter.input),
            error: letter.error.clone(),
            attempts: letter.attempts,
            at: now,
        };
        // The notice of a dead letter that itself fails is kept too, but not announced again: that would never end. So is
        // whatever of the engine's own it cannot read, which may be such a notice.
        let is_announced = !matches!(letter.input, FailedInput::Notice { .. } | FailedInput::Unreadable { .. });
        let notice = is_announced.then(|| {
            let body = EngineMessage::Notice { letter }.write();
            MessageRow::new(actor.clone(), self.gather.next_sequence(), Origin::Engine, body)
        });
        let appended = self.gather.append(self.epoch, row.input.bytes(), |writing| {
            let writes = writing.batch.of(actor);
            consume(&entry.waiting, writes);
            writes.insert_dead_letter(row);
            writing.outputs.extend(told(&entry.waiting));
            if let Some(notice) = &notice {
                writes.insert_message(notice.clone());
            }
            writing.number
        });
        let Ok(batch) = appended else {
            self.carry_over(actor, entry);
            return;
        };
        self.after_giving_up(place, entry.waiting, batch);
        self.show(notice.into_iter().collect(), batch);
    }

    fn after_giving_up(&mut self, place: Place, waiting: Waiting, batch: u64) {
        let uncommitted = self.uncommitted(place, batch);
        match waiting {
            Waiting::Task(outcome) => {
                uncommitted.tasks.insert(outcome.task.clone(), None);
                // The same result may come once more, and be no news then.
                self.slots[place].note_task(&outcome.task, None);
                self.unconfirmed.push_back((batch, self.slots[place].id.clone(), outcome));
            }
            Waiting::Alarm { .. } => {
                if let Some(head) = &mut self.slots[place].head {
                    head.alarm = None;
                }
            }
            Waiting::Message { .. } | Waiting::Spilled { .. } | Waiting::Request { .. } => {}
        }
    }

    /// Puts inputs whose time has come back into their mailboxes.
    pub(super) fn release_retries(&mut self, now: Timestamp) {
        while let Some((place, entry)) = self.retries.pop_due(now) {
            self.slots[place].set_aside -= 1;
            self.enqueue(place, entry);
        }
    }
}
