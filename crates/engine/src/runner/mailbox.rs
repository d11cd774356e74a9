//! What waits for an actor.
//!
//! Owns the forms that an input has while it waits. Order is the order in which entries are put in.

use steadfast_core::failure::Failure;
use steadfast_core::ids::{RequestId, Sequence, TaskId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::{DeadLetter, FailedInput, Input, Message, Request, Sender, TaskResult};
use steadfast_store::rows::{MessageRow, Origin};

use super::delivery::TaskOutcome;
use crate::commit::Waiter;
use crate::engine_message::{EngineMessage, RemovalOrder};

/// One waiting input.
pub(super) struct Entry {
    pub(super) waiting: Waiting,
    /// Tries that have failed.
    pub(super) attempts: u32,
}

/// What a message costs beside its text: the entry, and the headers of the texts it shares.
const MESSAGE_BYTES: usize = size_of::<Entry>() + 64;

pub(super) enum Waiting {
    /// A request and its caller, until the caller is answered or joins those who wait for a later turn. Not on disk: until
    /// it is answered, the caller has it.
    Request { id: RequestId, body: Json, waiter: Option<Waiter> },
    /// A message; on disk, or about to be.
    Message { sequence: Sequence, origin: Origin, body: Json },
    /// A message whose body is only on disk, because memory was full or because it waits for its next try. Readable once this
    /// batch is on disk; 0 when it is already.
    Spilled { sequence: Sequence, batch: u64 },
    /// The alarm, on disk until its turn.
    Alarm { due: Timestamp },
    /// A task's result. Its task is on disk until its turn.
    Task(TaskOutcome),
}

impl Entry {
    pub(super) fn new(waiting: Waiting) -> Self {
        Self { waiting, attempts: 0 }
    }

    pub(super) fn from_row(row: MessageRow) -> Self {
        let MessageRow { sequence, origin, body, attempts, .. } = row;
        Self { waiting: Waiting::Message { sequence, origin, body }, attempts }
    }

    /// How much memory a waiting message takes, apart from its place in line.
    pub(super) fn bytes(&self) -> usize {
        match &self.waiting {
            Waiting::Message { body, .. } => body.bytes() + MESSAGE_BYTES,
            // Bounded elsewhere: by the places of callers, and by the number of tasks that run.
            Waiting::Request { .. } | Waiting::Spilled { .. } | Waiting::Alarm { .. } | Waiting::Task(_) => 0,
        }
    }
}

impl Waiting {
    /// The input as the actor sees it. `Err` when a message of the engine's own cannot be read.
    pub(super) fn input(&self) -> Result<Input, String> {
        Ok(match self {
            Self::Request { id, body, .. } => Input::Request(Request { id: id.clone(), body: body.clone() }),
            Self::Message { sequence, origin, body } => return message_input(*sequence, origin, body),
            Self::Alarm { due } => Input::Alarm { due: *due },
            Self::Task(outcome) => task_input(&outcome.task, outcome.attempt, &outcome.outcome),
            Self::Spilled { .. } => unreachable!("a spilled message is read before its turn"),
        })
    }

    /// The order by which the actor is to go, if it is one.
    pub(super) fn removal(&self) -> Option<RemovalOrder> {
        let Self::Message { origin: Origin::Engine, body, .. } = self else { return None };
        match EngineMessage::read(body) {
            Ok(EngineMessage::Remove { order }) => Some(order),
            Ok(EngineMessage::Notice { .. } | EngineMessage::Redriven { .. }) | Err(_) => None,
        }
    }

    /// The input as a dead letter keeps it; `None` for a request, which its caller keeps.
    pub(super) fn failed_input(&self) -> Option<FailedInput> {
        Some(match self {
            Self::Request { .. } => return None,
            Self::Message { body, .. } if Json::parse(body.as_str()).is_err() => {
                FailedInput::Unreadable { body: Json::encode(body.as_str()).unwrap_or_else(|_| Json::null()) }
            }
            Self::Message { origin, body, .. } => match origin {
                Origin::Actor(from) => FailedInput::Message { from: Sender::Actor(from.clone()), body: body.clone() },
                Origin::Outside => FailedInput::Message { from: Sender::Outside, body: body.clone() },
                Origin::Engine => match EngineMessage::read(body) {
                    Ok(EngineMessage::Notice { letter }) => FailedInput::Notice { letter: Box::new(letter) },
                    Ok(EngineMessage::Redriven { input }) => input,
                    Ok(EngineMessage::Remove { .. }) | Err(_) => FailedInput::Unreadable { body: body.clone() },
                },
            },
            Self::Alarm { due } => FailedInput::Alarm { due: *due },
            Self::Task(TaskOutcome { task, attempt, outcome, .. }) => {
                FailedInput::TaskResult { task: task.clone(), attempt: *attempt, outcome: outcome.clone() }
            }
            Self::Spilled { .. } => unreachable!("a spilled message is read before its turn"),
        })
    }
}

fn message_input(sequence: Sequence, origin: &Origin, body: &Json) -> Result<Input, String> {
    let from = match origin {
        Origin::Actor(from) => Sender::Actor(from.clone()),
        Origin::Outside => Sender::Outside,
        Origin::Engine => {
            return Ok(match EngineMessage::read(body)? {
                EngineMessage::Notice { letter } => Input::DeadLetter(letter),
                EngineMessage::Redriven { input } => redriven_input(sequence, input)?,
                EngineMessage::Remove { .. } => return Err("a removal that was given up is not an input".to_owned()),
            });
        }
    };
    Ok(Input::Message(Message { sequence, from, body: body.clone() }))
}

fn redriven_input(sequence: Sequence, input: FailedInput) -> Result<Input, String> {
    Ok(match input {
        FailedInput::Message { from, body } => Input::Message(Message { sequence, from, body }),
        FailedInput::Alarm { due } => Input::Alarm { due },
        FailedInput::TaskResult { task, attempt, outcome } => task_input(&task, attempt, &outcome),
        FailedInput::Notice { letter } => Input::DeadLetter(DeadLetter::clone(&letter)),
        FailedInput::Unreadable { body } => message_input(sequence, &Origin::Engine, &body)?,
    })
}

fn task_input(task: &TaskId, attempt: u32, outcome: &Result<Json, Failure>) -> Input {
    Input::TaskResult(TaskResult { task: task.clone(), attempt, outcome: outcome.clone() })
}
