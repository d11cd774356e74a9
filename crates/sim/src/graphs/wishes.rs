//! What clients of runs want: to start one, to wait for it, to signal, pause, resume or cancel it.

use std::fmt;

use steadfast::commit::Waiter;
use steadfast::runner::Delivery;
use steadfast_core::graph::protocol::{Command, Started};
use steadfast_core::ids::{ActorId, RequestId};
use steadfast_core::json::Json;

use crate::scenario::Wish;

/// A command for a run.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(super) run: ActorId,
    pub(super) command: Command,
}

impl Wish for Asked {
    fn actor(&self) -> &ActorId {
        &self.run
    }

    fn delivery(&self, id: RequestId, waiter: Waiter) -> Delivery {
        let body = Json::encode(&self.command).expect("a command is JSON");
        Delivery::Request { actor: self.run.clone(), id, body, waiter }
    }

    /// An id is forgotten after a day. Who asks again then hears how the run is now.
    fn agree(&self, one: &Json, other: &Json) -> bool {
        match &self.command {
            Command::Start(_) => is_started(one) && is_started(other),
            Command::Wait => one == other,
            Command::Cancel { .. }
            | Command::Pause
            | Command::Resume
            | Command::Recover { .. }
            | Command::Signal { .. } => true,
        }
    }
}

/// Whether there is a run now as it was asked for.
pub(super) fn is_started(answer: &Json) -> bool {
    matches!(answer.decode(), Ok(Started::Created { .. } | Started::Existing))
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, command } = self;
        match command {
            Command::Start(start) => write!(f, "{run} to start `{}` with {}", start.workflow, start.input),
            Command::Wait => write!(f, "{run} for its end"),
            Command::Cancel { .. } => write!(f, "{run} to be cancelled"),
            Command::Pause => write!(f, "{run} to pause"),
            Command::Resume => write!(f, "{run} to resume"),
            Command::Recover { .. } => write!(f, "{run} to recover"),
            Command::Signal { name, payload } => write!(f, "{run} to take the signal `{name}` with {payload}"),
        }
    }
}
