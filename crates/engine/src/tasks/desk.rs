//! Tasks for workers outside this process: lent for a time, taken back when the time is up.
//!
//! Owns the leases, which are in memory: a process that ends lets go of them all, and its tasks are lent anew by the next one. The tasks themselves wait
//! on disk, however many, and are read as they are asked for. A lease is a fence: what comes under one that is over changes nothing.
//! Never runs a task. Start reading at [`Desk::lease`].

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::graph::task_input::TaskInput;
use steadfast_core::graph::why::{LastAsked, TaskStanding};
use steadfast_core::ids::{ActorId, Sequence, TaskId};
use steadfast_core::json::Json;
use steadfast_core::limits;
use steadfast_core::time::Timestamp;
use steadfast_store::rows::TaskRow;
use steadfast_store::{Reader, StoreError};
use tokio::sync::Notify;

use super::dispatcher::bounded;
use crate::commit::{Gather, RequestError, TaskCancel, TaskStart, Waiter};
use crate::readers::Readers;
use crate::runner::{Delivery, TaskOutcome, Told};
use crate::threads::{Inboxes, clock};

/// What tasks for workers have in common: their executor is this and the name of a queue.
const PREFIX: &str = "worker:";

/// How often leases are looked at that nobody asks for.
const TICK: Duration = Duration::from_millis(200);

/// Queues of which is known when they were asked for last. Anybody may ask for any name; of more than these the longest unasked are forgotten.
const ASKED_KNOWN_MAX: usize = 1_000;

/// Leases remembered after they have done their work, so that a worker that heard no answer may say it again.
const SETTLED_KNOWN_MAX: usize = 10_000;

/// The queue that a task of this executor waits in, if it waits for a worker outside.
pub(crate) fn outside_queue(executor: &str) -> Option<&str> {
    executor.strip_prefix(PREFIX)
}

/// Which tasks a worker wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Of which queue.
    pub queue: String,
    /// Who asks, for people.
    pub worker: String,
    /// How many at most.
    pub max: usize,
    /// How long they are lent.
    pub lease: Duration,
    /// How long to wait for the first one.
    pub wait: Duration,
}

/// A task that is lent.
#[derive(Debug, Clone, PartialEq)]
pub struct Lent {
    /// Which task.
    pub id: OutsideTask,
    /// What proves that it is lent to this worker.
    pub lease: String,
    /// How long it is lent.
    pub lent_for: Duration,
    /// The queue.
    pub queue: String,
    /// The node whose task it is.
    pub node: String,
    /// The policy's attempt, from 1.
    pub attempt: u32,
    /// What it is given.
    pub input: Json,
}

/// The name of a task outside of the process: `run:order-42:7`. The same for every attempt, for whoever must recognise a repetition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OutsideTask {
    /// Whose task.
    pub actor: ActorId,
    /// Its name there.
    pub task: TaskId,
}

/// A lease, as people see it.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseView {
    /// Which task.
    pub id: OutsideTask,
    /// Its queue.
    pub queue: String,
    /// Who has it.
    pub worker: String,
    /// How long it still has it.
    pub left: Duration,
    /// What it last said of how far it is.
    pub progress: Option<Json>,
}

/// Why a worker is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeskError {
    /// The lease is over, or was never given.
    #[error(
        "the lease of task `{0}` is lost: its time is up, or the task was cancelled or done; leave it alone and ask for another"
    )]
    LeaseLost(String),
    /// Nothing was acknowledged.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Lends tasks.
pub(crate) struct Desk {
    readers: Arc<Readers>,
    inboxes: Inboxes,
    gather: Arc<Gather>,
    began_at: Timestamp,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queues: HashMap<String, Queue>,
    leases: HashMap<OutsideTask, Lease>,
    /// When leases end, in that order.
    ends: BTreeMap<(Instant, Sequence), OutsideTask>,
    settled: Settled,
    /// When each queue was asked for last.
    asked: HashMap<String, Timestamp>,
    is_closed: bool,
}

struct Queue {
    /// The last task read from disk. All up to it are lent, returned or done.
    last: Option<Sequence>,
    may_have_more: bool,
    /// Those that came back undone.
    returned: BTreeMap<Sequence, OutsideTask>,
    /// How many are lent.
    lent: usize,
    news: Arc<Notify>,
}

struct Lease {
    number: Sequence,
    queue: String,
    worker: String,
    /// Which dispatch of the name it is.
    sequence: Sequence,
    length: Duration,
    ends: Instant,
    /// When the worker was heard of last.
    heard: Instant,
    /// When the attempt has taken too long, whatever the worker says.
    deadline: Option<Instant>,
    progress: Option<Json>,
}

#[derive(Default)]
struct Settled {
    known: HashSet<String>,
    oldest_first: VecDeque<String>,
}

impl Desk {
    pub(crate) fn new(readers: Arc<Readers>, inboxes: Inboxes, gather: Arc<Gather>) -> Self {
        Self { readers, inboxes, gather, began_at: clock(), state: Mutex::default() }
    }

    /// Takes leases back whose time is up, for as long as the desk is there.
    pub(crate) async fn keep_time(desk: Weak<Self>) {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            let Some(desk) = desk.upgrade() else { return };
            let mut state = desk.lock();
            if state.is_closed {
                return;
            }
            desk.take_back(&mut state);
            state.queues.retain(|_, queue| !queue.is_idle());
        }
    }

    /// A task is on disk. Those who wait for one of its queue are woken.
    pub(super) fn tell_of(&self, start: &TaskStart) {
        let Some(queue) = outside_queue(&start.executor) else { return };
        let mut state = self.lock();
        let State { queues, leases, .. } = &mut *state;
        // A queue that nobody asked for yet is read from its beginning.
        let Some(queue) = queues.get_mut(queue) else { return };
        if queue.last.is_some_and(|last| start.sequence <= last) {
            // It was read from disk before this news of it came; or its runner was overtaken by another, and it is on disk only now.
            let id = OutsideTask { actor: start.actor.clone(), task: start.task.clone() };
            if leases.get(&id).is_none_or(|lease| lease.sequence != start.sequence) {
                queue.returned.insert(start.sequence, id);
            }
        } else {
            queue.may_have_more = true;
        }
        queue.news.notify_waiters();
    }

    /// A task was called off: its worker has lost it.
    pub(super) fn cancel(&self, cancel: &TaskCancel) {
        let id = OutsideTask { actor: cancel.actor.clone(), task: cancel.task.clone() };
        let mut state = self.lock();
        if state.leases.get(&id).is_some_and(|lease| lease.sequence < cancel.sequence) {
            state.end(&id);
        }
    }

    /// Lends tasks, the longest waiting first. Nothing when none came in time.
    pub(crate) async fn lease(&self, ask: &Ask) -> Result<Vec<Lent>, DeskError> {
        let until = Instant::now() + ask.wait;
        loop {
            let news = self.lock().queue(&ask.queue).news.clone();
            // Before looking, so that what comes right after is not missed.
            let mut told = std::pin::pin!(news.notified());
            told.as_mut().enable();
            let (lent, next_end) = self.lend(ask)?;
            let now = Instant::now();
            if !lent.is_empty() || now >= until {
                return Ok(lent);
            }
            let wake = next_end.map_or(until, |end| end.min(until));
            tokio::select! {
                () = told => {}
                () = tokio::time::sleep_until(wake.into()) => {}
            }
        }
    }

    /// Lends what there is now. Also when the next lease ends, after which there may be more.
    fn lend(&self, ask: &Ask) -> Result<(Vec<Lent>, Option<Instant>), DeskError> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(RequestError::Stopped.into());
        }
        self.take_back(&mut state);
        state.note_asked(&ask.queue);
        let queue = state.queue(&ask.queue);
        let max = ask.max.clamp(1, limits::WAITING_ROWS_PER_READ);
        // Read under the lock: two who ask at once must not get the same task. It is at most a page.
        let rows = self.readers.with(|reader| queue.take(reader, &ask.queue, max))??;
        let lent = rows.into_iter().filter_map(|row| self.lend_one(&mut state, ask, row)).collect();
        Ok((lent, state.ends.first_key_value().map(|((end, _), _)| *end)))
    }

    fn lend_one(&self, state: &mut State, ask: &Ask, row: TaskRow) -> Option<Lent> {
        let id = OutsideTask { actor: row.actor.clone(), task: row.task.clone() };
        let input: TaskInput = match row.input.decode() {
            Ok(input) => input,
            Err(error) => {
                let message = format!("the task's input cannot be read: {error}");
                self.deliver(
                    &id,
                    row.sequence,
                    Err(Failure::last(FailureKind::InvalidInput, &message)),
                    Told::default(),
                );
                return None;
            }
        };
        let (number, now) = (self.gather.next_sequence(), Instant::now());
        let deadline = input.timeout_ms.map(|ms| now + Duration::from_millis(ms));
        let ends = deadline.map_or(now + ask.lease, |deadline| deadline.min(now + ask.lease));
        state.end(&id);
        state.ends.insert((ends, number), id.clone());
        let lease = Lease {
            number,
            queue: ask.queue.clone(),
            worker: ask.worker.clone(),
            sequence: row.sequence,
            length: ask.lease,
            ends,
            heard: now,
            deadline,
            progress: None,
        };
        state.leases.insert(id.clone(), lease);
        state.queue(&ask.queue).lent += 1;
        let TaskInput { node, attempt, input, .. } = input;
        let (lease, lent_for) = (token(number), ends - now);
        Some(Lent { id, lease, lent_for, queue: ask.queue.clone(), node, attempt, input })
    }

    /// Lends a task for as long again, from now. For how long that is.
    pub(crate) fn heartbeat(
        &self,
        id: &OutsideTask,
        lease: &str,
        progress: Option<Json>,
    ) -> Result<Duration, DeskError> {
        let mut state = self.lock();
        self.take_back(&mut state);
        let State { leases, ends, .. } = &mut *state;
        let held = leases.get_mut(id).filter(|held| token(held.number) == lease).ok_or_else(|| lost(id))?;
        let now = Instant::now();
        held.heard = now;
        ends.remove(&(held.ends, held.number));
        held.ends = held.deadline.map_or(now + held.length, |deadline| deadline.min(now + held.length));
        ends.insert((held.ends, held.number), id.clone());
        if progress.is_some() {
            held.progress = progress;
        }
        Ok(held.ends - now)
    }

    /// Takes the outcome of a task that is lent, and waits until it is on disk. The same lease again changes nothing.
    /// How many tasks are lent.
    pub(crate) fn lent(&self) -> usize {
        self.lock().leases.len()
    }

    pub(crate) async fn settle(
        &self,
        id: &OutsideTask,
        lease: &str,
        outcome: Result<Json, Failure>,
    ) -> Result<(), DeskError> {
        let sequence = {
            let mut state = self.lock();
            self.take_back(&mut state);
            if state.settled.known.contains(lease) {
                return Ok(());
            }
            let held = state.leases.get(id).filter(|held| token(held.number) == lease);
            held.ok_or_else(|| lost(id))?.sequence
        };
        let (waiter, answer) = Waiter::new(None);
        self.deliver(id, sequence, outcome, Told::waiter(waiter));
        match answer.await {
            Ok(Ok(_)) => {
                let mut state = self.lock();
                if state.leases.get(id).is_some_and(|held| token(held.number) == lease) {
                    state.end(id);
                }
                state.settled.insert(lease);
                Ok(())
            }
            Ok(Err(error)) => Err(error.into()),
            // Nobody took it: another result of this task has been, or its actor did not want it any more.
            Err(_) => Err(lost(id)),
        }
    }

    /// What is lent now.
    pub(crate) fn leases(&self) -> Vec<LeaseView> {
        let (state, now) = (self.lock(), Instant::now());
        let view = |(id, lease): (&OutsideTask, &Lease)| LeaseView {
            id: id.clone(),
            queue: lease.queue.clone(),
            worker: lease.worker.clone(),
            left: lease.ends.saturating_duration_since(now),
            progress: lease.progress.clone(),
        };
        state.leases.iter().take(limits::PAGE_ROWS_MAX).map(view).collect()
    }

    /// How a task of a queue is.
    pub(crate) fn standing(&self, id: &OutsideTask, queue: &str) -> TaskStanding {
        let (state, now, queue) = (self.lock(), Instant::now(), queue.to_owned());
        if let Some(lease) = state.leases.get(id).filter(|lease| lease.ends > now) {
            let left_ms = (lease.ends - now).as_millis().try_into().unwrap_or(u64::MAX);
            return TaskStanding::Leased { queue, worker: lease.worker.clone(), until: clock().plus_ms(left_ms) };
        }
        let is_asked_for = state.queues.get(&queue).is_some_and(Queue::is_asked_for);
        let asked = match state.asked.get(&queue) {
            _ if is_asked_for => LastAsked::Now,
            Some(at) => LastAsked::At(*at),
            None => LastAsked::NotSince(self.began_at),
        };
        TaskStanding::Unleased { queue, asked }
    }

    /// Takes back the tasks of an actor from workers that were not heard of for so long: the next who asks gets them. How many those were.
    pub(crate) fn take_back_from_silent(&self, actor: &ActorId, silent_for: Duration) -> u64 {
        let (mut state, now) = (self.lock(), Instant::now());
        let is_silent = |(id, lease): &(&OutsideTask, &Lease)| id.actor == *actor && now - lease.heard >= silent_for;
        let silent: Vec<OutsideTask> = state.leases.iter().filter(is_silent).map(|(id, _)| id.clone()).collect();
        for id in &silent {
            let Some((queue, sequence)) = state.leases.get(id).map(|lease| (lease.queue.clone(), lease.sequence))
            else {
                continue;
            };
            state.end(id);
            let queue = state.queue(&queue);
            queue.returned.insert(sequence, id.clone());
            queue.news.notify_waiters();
        }
        silent.len() as u64
    }

    /// Those of these tasks that are lent.
    pub(crate) fn lent_of(&self, tasks: &[OutsideTask]) -> Vec<OutsideTask> {
        let (state, now) = (self.lock(), Instant::now());
        let is_lent = |id: &&OutsideTask| state.leases.get(id).is_some_and(|lease| lease.ends > now);
        tasks.iter().filter(is_lent).cloned().collect()
    }

    /// Lets all who wait go.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        for queue in state.queues.values() {
            queue.news.notify_waiters();
        }
    }

    fn deliver(&self, id: &OutsideTask, sequence: Sequence, outcome: Result<Json, Failure>, told: Told) {
        let attempt = self.gather.attempt_of(sequence);
        let outcome = TaskOutcome { task: id.task.clone(), sequence, attempt, outcome: bounded(outcome), told };
        self.inboxes.send(id.actor.shard(), Delivery::Task { actor: id.actor.clone(), outcome });
    }

    /// Leases whose time is up: their tasks go to the next who asks, or have failed because the attempt took too long.
    fn take_back(&self, state: &mut State) {
        let now = Instant::now();
        while let Some((&(ends, _), _)) = state.ends.first_key_value()
            && ends <= now
            && let Some((_, id)) = state.ends.pop_first()
        {
            let Some(lease) = state.leases.remove(&id) else { continue };
            state.queue(&lease.queue).lent -= 1;
            if lease.deadline.is_some_and(|deadline| deadline <= now) {
                let message = format!("worker `{}` was not done with the task in time", lease.worker);
                let failure = Failure::retryable(FailureKind::Timeout, &message);
                self.deliver(&id, lease.sequence, Err(failure), Told::default());
            } else {
                let queue = state.queue(&lease.queue);
                queue.returned.insert(lease.sequence, id);
                queue.news.notify_waiters();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is made whole before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn queue(&mut self, name: &str) -> &mut Queue {
        if !self.queues.contains_key(name) {
            let (returned, news) = (BTreeMap::new(), Arc::new(Notify::new()));
            let queue = Queue { last: None, may_have_more: true, returned, lent: 0, news };
            self.queues.insert(name.to_owned(), queue);
        }
        self.queues.get_mut(name).expect("it was put there just above")
    }

    fn note_asked(&mut self, queue: &str) {
        let is_new = self.asked.insert(queue.to_owned(), clock()).is_none();
        if is_new && self.asked.len() > ASKED_KNOWN_MAX {
            let oldest = self.asked.iter().min_by_key(|(_, at)| **at).map(|(name, _)| name.clone());
            oldest.map(|name| self.asked.remove(&name));
        }
    }

    /// Ends the lease of a task, if there is one.
    fn end(&mut self, id: &OutsideTask) {
        if let Some(lease) = self.leases.remove(id) {
            self.ends.remove(&(lease.ends, lease.number));
            self.queue(&lease.queue).lent -= 1;
        }
    }
}

impl Queue {
    /// The next tasks, at most `max`: those that came back first. When the store fails, nothing is taken.
    fn take(&mut self, reader: &dyn Reader, name: &str, max: usize) -> Result<Vec<TaskRow>, StoreError> {
        let (mut rows, mut looked_at) = (Vec::new(), 0);
        for (sequence, id) in &self.returned {
            if rows.len() == max {
                break;
            }
            rows.extend(reader.task(&id.actor, &id.task)?.filter(|row| row.sequence == *sequence));
            looked_at += 1;
        }
        if self.may_have_more && rows.len() < max {
            let room = max - rows.len();
            let more = reader.tasks_of_workers(name, self.last, room)?;
            self.may_have_more = more.len() == room;
            self.last = more.last().map(|row| row.sequence).or(self.last);
            rows.extend(more);
        }
        for _ in 0..looked_at {
            self.returned.pop_first();
        }
        Ok(rows)
    }

    /// Whether nothing is known of it that is not on disk, and nobody waits: anybody may ask for any name, so it is forgotten then, and read from its
    /// beginning when it is asked for again.
    fn is_idle(&self) -> bool {
        self.lent == 0 && self.returned.is_empty() && !self.is_asked_for()
    }

    /// Whether somebody waits for a task of it.
    fn is_asked_for(&self) -> bool {
        Arc::strong_count(&self.news) > 1
    }
}

impl Settled {
    fn insert(&mut self, lease: &str) {
        if self.oldest_first.len() == SETTLED_KNOWN_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.known.insert(lease.to_owned());
        self.oldest_first.push_back(lease.to_owned());
    }
}

impl OutsideTask {
    /// Reads a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (actor, task) = text.rsplit_once(':')?;
        Some(Self { actor: ActorId::parse(actor).ok()?, task: TaskId::new(task).ok()? })
    }
}

impl std::fmt::Display for OutsideTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.actor, self.task)
    }
}

/// No other lease has it, of this process or another one on this store.
fn token(number: Sequence) -> String {
    format!("{:x}", number.0)
}

fn lost(id: &OutsideTask) -> DeskError {
    DeskError::LeaseLost(id.to_string())
}
