//! Back to what is on disk: at the start, and after a failed commit.
//!
//! Owns both, because they are one thing: forget everything in memory, then read what waits. What cannot be read again (results
//! of tasks that have run) is carried over; callers whose requests are lost are told. Costs what is waiting, not what exists.

use steadfast_core::ids::{ActorId, Sequence, Shard};
use steadfast_core::limits;
use steadfast_core::time::Timestamp;
use steadfast_store::StoreError;
use steadfast_store::rows::MessageRow;

use super::alarms::Alarms;
use super::delivery::TaskOutcome;
use super::mailbox::{Entry, Waiting};
use super::{Runner, housekeeping};
use crate::commit::{Health, RequestError};
use crate::mutation::Mutation;

impl Runner {
    /// Forgets everything that is not on disk.
    pub(super) fn roll_back(&mut self) {
        let committed = self.gather.end_of_epoch(self.epoch);
        self.epoch = self.gather.epoch();
        let reason = match self.gather.health() {
            Health::Unwell(reason) => reason,
            Health::Well => "a commit failed".to_owned(),
        };
        if self.gather.mutation.is(Mutation::RollbackSkipped) {
            return;
        }
        self.waiters.call_off_after(committed, &reason);
        let lost = std::mem::take(&mut self.unconfirmed).into_iter().filter(|(batch, ..)| *batch > committed);
        self.carried.extend(lost.map(|(_, actor, outcome)| (actor, outcome)));
        self.forget(&reason);
    }

    /// Empties memory, except for what cannot be read again.
    fn forget(&mut self, reason: &str) {
        for (actor, entry) in self.waiting_entries() {
            match entry.waiting {
                Waiting::Task(outcome) => self.carried.push((actor, outcome)),
                Waiting::Request { waiter: Some(waiter), .. } => {
                    waiter.send(Err(RequestError::Unavailable(reason.to_owned())));
                }
                // These are on disk, or were lost with the batch that held them.
                Waiting::Request { .. } | Waiting::Message { .. } | Waiting::Spilled { .. } | Waiting::Alarm { .. } => {
                }
            }
        }
        for waiter in self.leave_taking.drain().flat_map(|(_, waiters)| waiters) {
            waiter.send(Err(RequestError::Unavailable(reason.to_owned())));
        }
        self.ready.clear();
        self.alarms = Alarms::new(&self.shards);
        self.residency = super::Residency::default();
        self.dirty.clear();
        self.awaiting_commit.clear();
        self.taken_letters.clear();
        self.outbox.clear();
        self.mailbox_bytes = 0;
        self.housekeeping = housekeeping::Schedule::default();
    }

    /// Everything that waits, taken out of memory with everything else.
    fn waiting_entries(&mut self) -> Vec<(ActorId, Entry)> {
        let set_aside: Vec<_> =
            self.retries.drain().map(|(place, entry)| (self.slots[place].id.clone(), entry)).collect();
        let slots = self.slots.take_all().into_iter();
        let waiting = slots.flat_map(|slot| slot.mailbox.into_iter().map(move |entry| (slot.id.clone(), entry)));
        waiting.chain(set_aside).collect()
    }

    /// Keeps a task's result whose turn came too late for its batch.
    pub(super) fn carry_over(&mut self, actor: &ActorId, entry: Entry) {
        if let Waiting::Task(outcome) = entry.waiting {
            self.carried.push((actor.clone(), outcome));
        }
    }

    /// Reads what waits on disk, then takes in what came meanwhile.
    pub(super) fn recover(&mut self, now: Timestamp) -> Result<(), StoreError> {
        for shard in &*self.shards.clone() {
            if let Err(error) = self.read_messages(*shard, now) {
                // Half of what waits must not get ahead of the other half: the next try begins anew.
                self.forget(&error.to_string());
                return Err(error);
            }
        }
        if self.gather.mutation.is(Mutation::AlarmEarly) {
            self.alarms.fire_early(1_000);
        }
        self.housekeeping.is_recovered = true;
        tracing::debug!(
            shards = self.shards.len(),
            waiting = self.ready.len(),
            "a runner has taken up what is on disk"
        );
        let carried: Vec<(ActorId, TaskOutcome)> = std::mem::take(&mut self.carried);
        for (actor, outcome) in carried {
            self.deliver_task(&actor, outcome);
        }
        for delivery in std::mem::take(&mut self.held) {
            self.deliver(delivery, now);
        }
        Ok(())
    }

    /// Page by page, so that bodies beyond the bound never are in memory all at once.
    fn read_messages(&mut self, shard: Shard, now: Timestamp) -> Result<(), StoreError> {
        let mut after: Option<(ActorId, Sequence)> = None;
        loop {
            let from = after.as_ref().map(|(actor, sequence)| (actor, *sequence));
            let page = self.reader.messages(shard, from, limits::WAITING_ROWS_PER_READ)?;
            let is_last = page.len() < limits::WAITING_ROWS_PER_READ;
            after = page.last().map(|row| (row.actor.clone(), row.sequence));
            for row in page {
                // Those sent since this epoch began come by memory, and may be on disk already.
                if row.sequence < self.gather.epoch_begins_at() {
                    self.take_up(row, now);
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn take_up(&mut self, row: MessageRow, now: Timestamp) {
        if row.not_before <= now || !self.kinds.knows(&row.actor) {
            return self.receive(row, 0);
        }
        let place = self.place_of(&row.actor);
        let waiting = Waiting::Spilled { sequence: row.sequence, batch: 0 };
        self.hold_until(place, Entry { waiting, attempts: row.attempts }, row.not_before);
    }

    pub(super) fn owns(&self, actor: &ActorId) -> bool {
        self.shards.binary_search(&actor.shard()).is_ok()
    }
}
