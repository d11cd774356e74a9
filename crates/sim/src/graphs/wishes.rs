//! What clients of runs want: to start one, to wait for it, to signal, pause, resume or cancel it, and to have it removed.

use std::fmt;

use steadfast::RemovalOrder;
use steadfast::commit::Waiter;
use steadfast::runner::Delivery;
use steadfast_core::graph::protocol::{Command, Started};
use steadfast_core::ids::{ActorId, RequestId};
use steadfast_core::json::Json;

use crate::scenario::Wish;

/// Something that is wanted of a run.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(super) run: ActorId,
    pub(super) what: What,
}

/// What is wanted.
#[derive(Clone, PartialEq)]
pub(super) enum What {
    /// That it does something.
    Told(Command),
    /// That it goes.
    Purged(RemovalOrder),
}

impl Asked {
    /// A command for a run.
    pub(super) fn told(run: ActorId, command: Command) -> Self {
        Self { run, what: What::Told(command) }
    }

    /// What it is told, if anything.
    pub(super) fn command(&self) -> Option<&Command> {
        match &self.what {
            What::Told(command) => Some(command),
            What::Purged(_) => None,
        }
    }

    /// Whether it is to begin.
    pub(super) fn is_start(&self) -> bool {
        matches!(self.what, What::Told(Command::Start(_)))
    }

    /// Whether its end is waited for.
    pub(super) fn is_wait(&self) -> bool {
        matches!(self.what, What::Told(Command::Wait))
    }

    /// Whether it is to go.
    pub(super) fn is_purge(&self) -> bool {
        matches!(self.what, What::Purged(_))
    }
}

impl Wish for Asked {
    fn actor(&self) -> &ActorId {
        &self.run
    }

    fn delivery(&self, id: RequestId, waiter: Waiter) -> Delivery {
        let actor = self.run.clone();
        match &self.what {
            What::Told(command) => {
                let body = Json::encode(command).expect("a command is JSON");
                Delivery::Request { actor, id, body, waiter }
            }
            // It has no id: once more is no mistake.
            What::Purged(order) => Delivery::Remove { actor, order: order.clone(), waiter },
        }
    }

    /// An id is forgotten after a day. Who asks again then hears how the run is now.
    fn agree(&self, one: &Json, other: &Json) -> bool {
        match &self.what {
            What::Told(Command::Start(_)) => is_started(one) && is_started(other),
            What::Told(Command::Wait) | What::Purged(_) => one == other,
            What::Told(
                Command::Cancel { .. }
                | Command::Pause
                | Command::Resume
                | Command::Recover { .. }
                | Command::Signal { .. },
            ) => true,
        }
    }
}

/// Whether there is a run now as it was asked for.
pub(super) fn is_started(answer: &Json) -> bool {
    matches!(answer.decode(), Ok(Started::Created { .. } | Started::Existing))
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, what } = self;
        let command = match what {
            What::Told(command) => command,
            What::Purged(order) => return write!(f, "{run} to go, as number {:?}", order.number),
        };
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
