//! What leaves the process, and waits for the disk before it does.
//!
//! Owns the outputs and how each is let go or called off. Never decides when: see [`super::Gather`].

use std::sync::Arc;

use steadfast_core::ids::{ActorId, Sequence, TaskId};
use steadfast_core::json::Json;
use steadfast_store::rows::TaskRow;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// What a caller outside gets.
pub type Answer = Result<Json, RequestError>;

/// Where a caller outside waits.
pub struct Waiter {
    answer: oneshot::Sender<Answer>,
    /// Permission to be one of the requests that wait. Shared with the caller, so that a request whose caller has left
    /// still counts while it stands in line.
    permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl Waiter {
    /// A waiter and where its answer will come.
    #[must_use]
    pub fn new(permit: Option<Arc<OwnedSemaphorePermit>>) -> (Self, oneshot::Receiver<Answer>) {
        let (answer, receiver) = oneshot::channel();
        (Self { answer, permit }, receiver)
    }

    /// Answers. A caller that has left is no fault.
    pub(crate) fn send(self, answer: Answer) {
        drop(self.answer.send(answer));
    }

    /// Whether the caller has left.
    pub(crate) fn is_closed(&self) -> bool {
        self.answer.is_closed()
    }

    /// The request has had its turn: only its caller holds the permit now.
    pub(crate) fn leave_line(&mut self) {
        self.permit = None;
    }
}

/// Why a request has no answer from its actor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Nobody here can run the actor.
    #[error("this process does not know actors of kind `{0}`")]
    UnknownKind(String),
    /// The turn failed and left no trace.
    #[error("{0}")]
    Refused(String),
    /// The store does not take writes now.
    #[error("not acknowledged: {0}; ask again with the same id")]
    Unavailable(String),
    /// As many requests are waiting as may.
    #[error("{0} requests are waiting already (`requests_waiting_max`); ask again later")]
    Busy(usize),
    /// The engine stops or has stopped.
    #[error("the engine has stopped; ask again with the same id after it has started")]
    Stopped,
}

/// Something that may leave once the turn that caused it is on disk.
pub enum Output {
    /// An answer for a caller.
    Answer(Waiter, Answer),
    /// Something about a task.
    Task(TaskNews),
}

/// What those who run tasks are told, once it is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskNews {
    /// One is to run.
    Start(TaskStart),
    /// One is not to run any more.
    Cancel(TaskCancel),
}

/// A task as an executor gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStart {
    /// Whose task.
    pub actor: ActorId,
    /// Its name within the actor.
    pub task: TaskId,
    /// Which dispatch of that name this is.
    pub sequence: Sequence,
    /// How many times it may have been started, this time included.
    pub attempt: u32,
    /// Which executor runs it.
    pub executor: Arc<str>,
    /// What it is given.
    pub input: Json,
}

/// A task that was called off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCancel {
    /// Whose task.
    pub actor: ActorId,
    /// Its name within the actor.
    pub task: TaskId,
    /// The place of the cancel in the order of arrival. What was dispatched under the name before it is called off; what comes later is another task.
    /// So nobody has to look up which dispatch there was.
    pub sequence: Sequence,
}

impl TaskCancel {
    /// Whether this start is called off.
    #[must_use]
    pub fn is_of(&self, start: &TaskStart) -> bool {
        start.sequence < self.sequence && start.task == self.task && start.actor == self.actor
    }
}

impl TaskStart {
    pub(crate) fn of(row: &TaskRow, attempt: u32) -> Self {
        let TaskRow { actor, task, sequence, executor, input } = row.clone();
        Self { actor, task, sequence, attempt, executor, input }
    }
}

impl Output {
    /// Lets it go. A caller that has left is no fault.
    pub fn release(self, tell: &mut dyn FnMut(TaskNews)) {
        match self {
            Self::Answer(waiter, answer) => waiter.send(answer),
            Self::Task(news) => tell(news),
        }
    }

    /// Calls it off, because its turn never happened.
    pub fn call_off(self, reason: &str) {
        match self {
            Self::Answer(waiter, _) => waiter.send(Err(RequestError::Unavailable(reason.to_owned()))),
            Self::Task(_) => {}
        }
    }
}
