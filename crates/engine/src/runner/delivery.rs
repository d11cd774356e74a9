//! What comes to a runner from outside of it.
//!
//! Owns the forms and the way in. Nothing here is a turn: a delivery is put into a mailbox, or answered at once.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_core::failure::Failure;
use steadfast_core::ids::{ActorId, RequestId, Sequence, TaskId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_store::rows::{MessageRow, Origin};

use super::Runner;
use super::mailbox::{Entry, Waiting};
use super::requests::Known;
use super::slot::Place;
use crate::commit::{Answer, Output, RequestError, Waiter};
use crate::dead_letters::DeadLetterId;
use crate::engine_message::RemovalOrder;
use crate::metrics::Counters;

/// Something for a runner.
pub enum Delivery {
    /// A message from an actor of another runner.
    Remote(RemoteMessage),
    /// A request from outside.
    Request {
        /// Who is asked.
        actor: ActorId,
        /// The caller's id, or one made for it.
        id: RequestId,
        /// What is asked.
        body: Json,
        /// Where the caller waits.
        waiter: Waiter,
    },
    /// A message from outside. The caller waits only until it is on disk.
    Send {
        /// The receiver.
        actor: ActorId,
        /// The caller's id, or one made for it.
        id: RequestId,
        /// What it says.
        body: Json,
        /// Where the caller waits.
        waiter: Waiter,
    },
    /// A task has ended.
    Task {
        /// Whose task.
        actor: ActorId,
        /// How it ended.
        outcome: TaskOutcome,
    },
    /// A dead letter is to be tried again.
    Redrive {
        /// Which.
        letter: DeadLetterId,
        /// Where the caller waits.
        waiter: Waiter,
    },
    /// A dead letter is to be removed.
    Discard {
        /// Which.
        letter: DeadLetterId,
        /// Where the caller waits.
        waiter: Waiter,
    },
    /// An actor is to go, behind everything that waits for it. The caller waits until it is gone.
    Remove {
        /// Which.
        actor: ActorId,
        /// How.
        order: RemovalOrder,
        /// Where the caller waits.
        waiter: Waiter,
    },
}

/// A message on its way between two runners.
#[derive(Debug, Clone)]
pub struct RemoteMessage {
    /// The message, as it is in the batch.
    pub row: MessageRow,
    /// The batch that holds it.
    pub batch: u64,
    /// The epoch in which it was sent.
    pub epoch: u64,
}

/// How a task ended, with what proves which start of it this was.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskOutcome {
    /// Which task.
    pub task: TaskId,
    /// Which dispatch of that name.
    pub sequence: Sequence,
    /// Which attempt.
    pub attempt: u32,
    /// What it gave.
    pub outcome: Result<Json, Failure>,
    /// Who waits until it is taken and on disk.
    pub told: Told,
}

/// Somebody who waits until a task's result is on disk, if anybody does. Whose result is not taken hears nothing more.
#[derive(Clone, Default)]
pub struct Told(Option<Arc<Mutex<Option<Waiter>>>>);

impl Told {
    /// Tells this one.
    #[must_use]
    pub fn waiter(waiter: Waiter) -> Self {
        Self(Some(Arc::new(Mutex::new(Some(waiter)))))
    }

    /// The answer that leaves once the result is on disk.
    pub(super) fn output(&self) -> Option<Output> {
        let waiter = self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(Output::Answer(waiter, Ok(Json::null())))
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "somebody" } else { "nobody" })
    }
}

/// Who waits makes no difference to a result.
impl PartialEq for Told {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Runner {
    /// Takes something in. Costs no turn.
    pub fn deliver(&mut self, delivery: Delivery, now: Timestamp) {
        if self.gather.epoch() != self.epoch {
            self.roll_back();
        }
        let Some(delivery) = self.refuse_unless_possible(delivery) else { return };
        // What is on disk comes first: a message sent later must not overtake it.
        if !self.housekeeping.is_recovered {
            self.held.push(delivery);
            return;
        }
        match delivery {
            Delivery::Remote(message) => self.deliver_remote(message),
            Delivery::Task { actor, outcome } => self.deliver_task(&actor, outcome),
            Delivery::Request { actor, id, body, waiter } => {
                let place = self.place_of(&actor);
                self.enqueue(place, Entry::new(Waiting::Request { id, body, waiter: Some(waiter) }));
            }
            Delivery::Send { actor, id, body, waiter } => self.deliver_send(&actor, id, body, waiter, now),
            Delivery::Redrive { letter, waiter } => self.redrive(letter, waiter),
            Delivery::Discard { letter, waiter } => self.discard(letter, waiter),
            Delivery::Remove { actor, order, waiter } => self.begin_removal(&actor, order, waiter),
        }
    }

    /// Gives back what can be taken in. A caller that cannot be served now is told so at once.
    fn refuse_unless_possible(&self, delivery: Delivery) -> Option<Delivery> {
        let error = match &delivery {
            Delivery::Remote(_) | Delivery::Task { .. } => return Some(delivery),
            Delivery::Request { actor, .. } | Delivery::Send { actor, .. } | Delivery::Remove { actor, .. }
                if !self.kinds.knows(actor) =>
            {
                RequestError::UnknownKind(actor.kind().to_owned())
            }
            Delivery::Request { .. }
            | Delivery::Send { .. }
            | Delivery::Redrive { .. }
            | Delivery::Discard { .. }
            | Delivery::Remove { .. } => match self.gather.health_when_unwell() {
                Some(reason) => RequestError::Unavailable(reason),
                None => return Some(delivery),
            },
        };
        match delivery {
            Delivery::Request { waiter, .. }
            | Delivery::Send { waiter, .. }
            | Delivery::Redrive { waiter, .. }
            | Delivery::Discard { waiter, .. }
            | Delivery::Remove { waiter, .. } => waiter.send(Err(error)),
            Delivery::Remote(_) | Delivery::Task { .. } => {}
        }
        None
    }

    fn deliver_remote(&mut self, message: RemoteMessage) {
        // One of an older epoch was lost with the batch that held it.
        if message.epoch == self.epoch {
            self.receive(message.row, message.batch);
        }
    }

    /// Puts a message that is in batch `batch` into its mailbox, or leaves it on disk when memory is full.
    pub(super) fn receive(&mut self, row: MessageRow, batch: u64) {
        if !self.kinds.knows(&row.actor) {
            Counters::add(&self.gather.counters.messages_parked, 1);
            return;
        }
        let place = self.place_of(&row.actor);
        let sequence = row.sequence;
        let entry = Entry::from_row(row);
        if self.mailbox_bytes + entry.bytes() <= self.settings.per_runner(self.settings.mailbox_bytes_max) {
            self.enqueue(place, entry);
        } else {
            Counters::add(&self.gather.counters.messages_spilled, 1);
            self.enqueue(place, Entry::new(Waiting::Spilled { sequence, batch }));
        }
    }

    pub(super) fn deliver_task(&mut self, actor: &ActorId, outcome: TaskOutcome) {
        // The task of an unknown kind stays on disk like everything else of it.
        if self.kinds.knows(actor) {
            let place = self.place_of(actor);
            self.enqueue(place, Entry::new(Waiting::Task(outcome)));
        }
    }

    fn deliver_send(&mut self, actor: &ActorId, id: RequestId, body: Json, waiter: Waiter, now: Timestamp) {
        let id = id.of_message();
        let place = self.place_of(actor);
        match self.known_request(place, &id) {
            Err(error) => waiter.send(Err(RequestError::Unavailable(error.to_string()))),
            Ok(Known::Answered(_) | Known::Unanswered) => {
                Counters::add(&self.gather.counters.inputs_dropped, 1);
                self.answer_when_durable(waiter, Ok(Json::null()));
            }
            Ok(Known::New) => self.store_send(place, &id, body, waiter, now),
        }
    }

    fn store_send(&mut self, place: Place, id: &RequestId, body: Json, waiter: Waiter, now: Timestamp) {
        let actor = &self.slots[place].id.clone();
        let row = MessageRow::new(actor.clone(), self.gather.next_sequence(), Origin::Outside, body);
        let remembered = self.remembered(actor, id, Some(Json::null()), now);
        let appended = self.gather.append(self.epoch, row.body.bytes(), |writing| {
            let writes = writing.batch.of(actor);
            writes.insert_message(row.clone());
            if let Some(request) = &remembered {
                writes.remember_request(request.clone());
            }
            writing.outputs.push(Output::Answer(waiter, Ok(Json::null())));
            writing.number
        });
        // A failed commit since the check above has called the waiter off with the rest of the batch, or dropped it here.
        let Ok(batch) = appended else { return };
        if let Some(request) = remembered {
            self.uncommitted(place, batch).requests.insert(request.request, request.reply);
        }
        self.receive(row, batch);
    }

    /// Answers once everything that was gathered until now is on disk.
    pub(super) fn answer_when_durable(&mut self, waiter: Waiter, answer: Answer) {
        drop(self.gather.append(self.epoch, 0, |writing| writing.outputs.push(Output::Answer(waiter, answer))));
    }
}
