//! The async edge of tasks: takes them from the gate, runs them, gives their results to the runners.
//!
//! Owns the running futures. Everything about which task is next is in [`super::TaskQueue`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use steadfast_core::failure::{self, Failure, FailureKind};
use steadfast_core::json::Json;
use steadfast_core::limits;
use steadfast_store::Reader;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{Id, JoinError, JoinSet};

use super::{Executors, Task, TaskQueue};
use crate::commit::{Gather, TaskStart};
use crate::kinds::Kinds;
use crate::metrics::Counters;
use crate::runner::{Delivery, TaskOutcome};
use crate::threads::Inboxes;

/// What the dispatcher is told.
pub(crate) enum TaskEvent {
    /// A dispatch is on disk.
    Start(TaskStart),
    /// No further task is to be started; what runs has this long.
    Stop { grace: Duration },
}

/// Runs tasks.
pub(crate) struct Dispatcher {
    queue: TaskQueue,
    reader: Box<dyn Reader>,
    kinds: Arc<Kinds>,
    executors: Executors,
    gather: Arc<Gather>,
    inboxes: Inboxes,
    running: JoinSet<Result<Json, Failure>>,
    started: HashMap<Id, TaskStart>,
}

/// How long to wait before reading tasks from a store that failed to read.
const READ_AGAIN: Duration = Duration::from_millis(100);

impl Dispatcher {
    pub(crate) fn new(
        queue: TaskQueue,
        reader: Box<dyn Reader>,
        kinds: Arc<Kinds>,
        executors: Executors,
        gather: Arc<Gather>,
        inboxes: Inboxes,
    ) -> Self {
        let (running, started) = (JoinSet::new(), HashMap::new());
        Self { queue, reader, kinds, executors, gather, inboxes, running, started }
    }

    /// Runs until told to stop, then until what runs has ended or its grace is over.
    pub(crate) async fn run(mut self, mut events: UnboundedReceiver<TaskEvent>) {
        let grace = loop {
            let is_refilled = self.start_all_that_may_run();
            tokio::select! {
                event = events.recv() => match event {
                    Some(TaskEvent::Start(task)) => self.queue.push(task),
                    Some(TaskEvent::Stop { grace }) => break grace,
                    None => break Duration::ZERO,
                },
                Some(ended) = self.running.join_next_with_id() => self.finish(ended),
                () = tokio::time::sleep(READ_AGAIN), if !is_refilled => {}
            }
        };
        let finish_all = async {
            while let Some(ended) = self.running.join_next_with_id().await {
                self.finish(ended);
            }
        };
        if tokio::time::timeout(grace, finish_all).await.is_err() {
            // Their rows are on disk: they run again after the next start.
            self.running.shutdown().await;
        }
    }

    /// `false` when the store could not be read.
    fn start_all_that_may_run(&mut self) -> bool {
        loop {
            if self.queue.wants_refill()
                && let Err(error) = self.queue.refill(&*self.reader, &self.kinds, &self.gather)
            {
                tracing::error!(%error, "waiting tasks cannot be read");
                return false;
            }
            if !self.start_waiting() {
                return true;
            }
        }
    }

    /// Whether any was started.
    fn start_waiting(&mut self) -> bool {
        let before = self.queue.running();
        while let Some(start) = self.queue.start_next() {
            Counters::add(&self.gather.counters.tasks_started, 1);
            let executor = self.executors.get(&start.executor);
            let name = start.executor.clone();
            let task = Task::from(&start);
            let handle = self.running.spawn(async move {
                match executor {
                    Some(executor) => bounded(executor.execute(task).await),
                    None => Err(unknown_executor(&name)),
                }
            });
            self.started.insert(handle.id(), start);
        }
        self.queue.running() > before
    }

    fn finish(&mut self, ended: Result<(Id, Result<Json, Failure>), JoinError>) {
        self.queue.finished();
        let (id, outcome) = match ended {
            Ok((id, outcome)) => (id, outcome),
            Err(error) => {
                let message = format!("the executor failed: {error}");
                (error.id(), Err(Failure::retryable(FailureKind::Internal, &message)))
            }
        };
        let start = self.started.remove(&id).expect("every spawned task was noted as started");
        let TaskStart { actor, task, sequence, attempt, .. } = start;
        let outcome = TaskOutcome { task, sequence, attempt, outcome };
        self.inboxes.send(actor.shard(), Delivery::Task { actor, outcome });
    }
}

/// What an executor gave, if it may be kept.
fn bounded(outcome: Result<Json, Failure>) -> Result<Json, Failure> {
    match outcome {
        Ok(result) => match refusal_of(&result) {
            None => Ok(result),
            Some(message) => Err(Failure::last(FailureKind::InvalidOutput, &message)),
        },
        Err(failure) => {
            let details = failure.details.filter(|details| refusal_of(details).is_none());
            Err(Failure { message: failure::bounded(&failure.message), details, ..failure })
        }
    }
}

fn refusal_of(value: &Json) -> Option<String> {
    if value.bytes() > limits::VALUE_BYTES_MAX {
        let (found, max) = (value.bytes(), limits::VALUE_BYTES_MAX);
        return Some(format!("the task's result has {found} bytes, the limit is {max} (`VALUE_BYTES_MAX`)"));
    }
    Json::parse(value.as_str()).err().map(|error| format!("the task's result is not JSON: {error}"))
}

fn unknown_executor(name: &str) -> Failure {
    Failure::last(FailureKind::NotFound, &format!("this process has no executor `{name}`"))
}
