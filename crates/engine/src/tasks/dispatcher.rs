//! The async edge of tasks: takes them from the gate, runs them, gives their results to the runners, parks what cannot be run here.
//!
//! Owns the running futures. Everything about which task is next is in [`super::TaskQueue`].

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use steadfast_core::expression::Value;
use steadfast_core::failure::{self, Failure, FailureKind};
use steadfast_core::ids::{ActorId, TaskId};
use steadfast_core::json::Json;
use steadfast_core::limits;
use steadfast_store::Reader;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::desk::{Desk, OutsideTask};
use super::{Executors, NotDone, Parked, Task, TaskQueue};
use crate::commit::{Gather, TaskCancel, TaskNews, TaskStart};
use crate::kinds::Kinds;
use crate::log::run_of;
use crate::metrics::Counters;
use crate::runner::{Delivery, TaskOutcome, Told};
use crate::threads::Inboxes;

/// What the dispatcher is told.
pub(crate) enum TaskEvent {
    /// These are on disk.
    News(Vec<TaskNews>),
    /// A task that was parked is to be tried again.
    Again(TaskStart),
    /// Somebody wants to know which of these run.
    Look { tasks: Vec<OutsideTask>, tell: SyncSender<Vec<OutsideTask>> },
    /// No further task is to be started; what runs has this long.
    Stop { grace: Duration },
}

/// Runs tasks.
pub(crate) struct Dispatcher {
    queue: TaskQueue,
    /// Has the tasks of workers outside.
    desk: Arc<Desk>,
    reader: Box<dyn Reader>,
    kinds: Arc<Kinds>,
    executors: Executors,
    gather: Arc<Gather>,
    inboxes: Inboxes,
    running: JoinSet<Result<Json, NotDone>>,
    started: HashMap<Id, TaskStart>,
    /// How running tasks are dropped, by name. More than one when a name was dispatched again while its task ran.
    handles: HashMap<(ActorId, TaskId), Vec<AbortHandle>>,
    /// Those that were cancelled while they ran. Whatever comes of them now is void, also when it was there before the cancel.
    called_off: HashSet<Id>,
    parked: Arc<Parked>,
}

/// How long to wait before reading tasks from a store that failed to read.
const READ_AGAIN: Duration = Duration::from_millis(100);

/// Tasks started before looking for results.
const STARTS_AT_ONCE: usize = 64;

/// What became of those that may run.
#[derive(PartialEq, Eq)]
enum Started {
    /// There were none.
    None,
    /// There may be more.
    Some,
    /// The store could not be read.
    Unreadable,
}

impl Dispatcher {
    pub(crate) fn new(
        queue: TaskQueue,
        reader: Box<dyn Reader>,
        kinds: Arc<Kinds>,
        executors: Executors,
        gather: Arc<Gather>,
        inboxes: Inboxes,
        desk: Arc<Desk>,
    ) -> Self {
        Self {
            desk,
            queue,
            reader,
            kinds,
            executors,
            gather,
            inboxes,
            running: JoinSet::new(),
            started: HashMap::new(),
            handles: HashMap::new(),
            called_off: HashSet::new(),
            parked: Arc::default(),
        }
    }

    /// What it cannot do, for others to look at.
    pub(crate) fn parked(&self) -> Arc<Parked> {
        self.parked.clone()
    }

    /// Runs until told to stop, then until what runs has ended or its grace is over.
    pub(crate) async fn run(mut self, mut events: UnboundedReceiver<TaskEvent>) {
        let grace = loop {
            let started = self.start_some();
            self.tell_load();
            tokio::select! {
                // News first: a place that has come free must not go to a task that is cancelled already.
                biased;
                event = events.recv() => match event {
                    Some(TaskEvent::News(news)) => self.take_in(news),
                    Some(TaskEvent::Again(start)) => self.queue.push_again(start),
                    Some(TaskEvent::Look { tasks, tell }) => self.tell_running(tasks, &tell),
                    Some(TaskEvent::Stop { grace }) => break grace,
                    None => break Duration::ZERO,
                },
                Some(ended) = self.running.join_next_with_id() => self.finish(ended),
                () = tokio::time::sleep(READ_AGAIN), if started == Started::Unreadable => {}
                () = tokio::task::yield_now(), if started == Started::Some => {}
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

    fn tell_load(&self) {
        let (running, waiting) = self.queue.counts();
        self.gather.loads.tasks_running.store(running as u64, Ordering::Relaxed);
        self.gather.loads.tasks_waiting.store(waiting as u64, Ordering::Relaxed);
    }

    fn tell_running(&self, mut tasks: Vec<OutsideTask>, tell: &SyncSender<Vec<OutsideTask>>) {
        tasks.retain(|id| self.handles.contains_key(&(id.actor.clone(), id.task.clone())));
        // Who asked may have stopped waiting.
        drop(tell.try_send(tasks));
    }

    fn take_in(&mut self, news: Vec<TaskNews>) {
        for task in news {
            match task {
                TaskNews::Start(start) => {
                    self.desk.tell_of(&start);
                    self.queue.push(start);
                }
                TaskNews::Cancel(cancel) => {
                    self.desk.cancel(&cancel);
                    self.cancel(&cancel);
                }
            }
        }
    }

    /// Its row is gone. What runs is only asked to end here: its place is free when its future is dropped.
    fn cancel(&mut self, cancel: &TaskCancel) {
        if self.queue.cancel(cancel) {
            Counters::add(&self.gather.counters.tasks_cancelled, 1);
        }
        let name = (cancel.actor.clone(), cancel.task.clone());
        self.parked.remove(&name, cancel.sequence);
        let running = self.handles.get(&name).into_iter().flatten();
        // A later dispatch of the name may run already: it was read from disk before this news came.
        for handle in running.filter(|handle| self.started.get(&handle.id()).is_some_and(|start| cancel.is_of(start))) {
            Counters::add(&self.gather.counters.tasks_cancelled, 1);
            handle.abort();
            self.called_off.insert(handle.id());
        }
    }

    /// Starts tasks that may run, a few at a time: the first results of a thousand need not wait until the last was started.
    fn start_some(&mut self) -> Started {
        if self.queue.wants_refill()
            && let Err(error) = self.queue.refill(&*self.reader, &self.kinds, &self.gather)
        {
            tracing::error!(%error, "waiting tasks cannot be read");
            return Started::Unreadable;
        }
        let mut started = Started::None;
        for _ in 0..STARTS_AT_ONCE {
            let Some(start) = self.queue.start_next() else { break };
            started = Started::Some;
            Counters::add(&self.gather.counters.tasks_started, 1);
            let executor = self.executors.get(&start.executor);
            let name = start.executor.clone();
            let task = Task::from(&start);
            let handle = self.running.spawn(async move {
                match executor {
                    Some(executor) => may_be_kept(executor.execute(task).await),
                    None => Err(unknown_executor(&name)),
                }
            });
            let name = (start.actor.clone(), start.task.clone());
            self.parked.remove(&name, start.sequence);
            self.started.insert(handle.id(), start);
            self.handles.entry(name).or_default().push(handle);
        }
        started
    }

    fn finish(&mut self, ended: Result<(Id, Result<Json, NotDone>), JoinError>) {
        self.queue.finished();
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let start = self.started.remove(&id).expect("every spawned task was noted as started");
        self.forget_handle(&start, id);
        if self.called_off.remove(&id) {
            return;
        }
        let outcome = match ended {
            Ok((_, Ok(result))) => Ok(result),
            Ok((_, Err(NotDone::Failed(failure)))) => Err(failure),
            Ok((_, Err(NotDone::Lacking(lacking)))) => return self.park(start, &lacking),
            // Dropped with the async runtime: its row is on disk.
            Err(error) if error.is_cancelled() => return,
            Err(error) => Err(Failure::retryable(FailureKind::Internal, &format!("the executor failed: {error}"))),
        };
        let TaskStart { actor, task, sequence, attempt, .. } = start;
        if let Err(failure) = &outcome {
            let (kind, message) = (failure.kind, &failure.message);
            tracing::info!(run = run_of(&actor), %actor, %task, attempt, ?kind, "a task failed: {message}");
        }
        let outcome = TaskOutcome { task, sequence, attempt, outcome, told: Told::default() };
        self.inboxes.send(actor.shard(), Delivery::Task { actor, outcome });
    }

    /// Leaves a task on disk as it is. Nothing is delivered, so its actor goes on waiting for it. Told of those that are listed: a large
    /// fan-out would say the same a hundred thousand times.
    fn park(&self, start: TaskStart, lacking: &str) {
        Counters::add(&self.gather.counters.tasks_parked, 1);
        let (actor, task) = (start.actor.clone(), start.task.clone());
        if self.parked.insert(start, lacking) {
            tracing::warn!(run = run_of(&actor), %actor, %task, "a task waits for a process that can do it: {lacking}; then start again");
        }
    }

    fn forget_handle(&mut self, start: &TaskStart, id: Id) {
        if let Entry::Occupied(mut handles) = self.handles.entry((start.actor.clone(), start.task.clone())) {
            handles.get_mut().retain(|handle| handle.id() != id);
            if handles.get().is_empty() {
                handles.remove();
            }
        }
    }
}

/// What an executor gave, if it may be kept.
fn may_be_kept(outcome: Result<Json, NotDone>) -> Result<Json, NotDone> {
    match outcome {
        Ok(result) => Ok(bounded(Ok(result))?),
        Err(NotDone::Failed(failure)) => Ok(bounded(Err(failure))?),
        Err(NotDone::Lacking(lacking)) => Err(NotDone::Lacking(failure::bounded(&lacking))),
    }
}

/// The outcome of a task, if it may be kept; otherwise a failure that says why not.
pub(super) fn bounded(outcome: Result<Json, Failure>) -> Result<Json, Failure> {
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
    // Deeper than values may be, it would fail the turn that takes it, again and again.
    Value::from_json(value).err().map(|error| format!("the task's result cannot be used: {error}"))
}

fn unknown_executor(name: &str) -> NotDone {
    NotDone::Lacking(format!("this process has no executor `{name}`: add it with `Builder::executor`"))
}
