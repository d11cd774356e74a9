//! The engine as its users see it: open a store, name the kinds of actor, start, ask, stop.
//!
//! Owns the threads and their end. Everything that happens between two of them is elsewhere: turns in [`crate::runner`], the way to disk in
//! [`crate::commit`], tasks in [`crate::tasks`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast_core::catalog;
use steadfast_core::event::Event;
use steadfast_core::failure::Failure;
use steadfast_core::graph;
use steadfast_core::ids::{ActorId, RequestId, Shard};
use steadfast_core::json::Json;
use steadfast_core::limits;
use steadfast_core::turn::Kind;
use steadfast_store::rows::{EventRow, HistoryPlace};
use steadfast_store::sqlite::{OpenError, SqliteStore};
use steadfast_store::{Reader, Store, StoreError};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::commit::{Answer, Gather, Health, RequestError, TaskStart, Waiter};
use crate::dead_letters::{DeadLetterId, StoredDeadLetter};
use crate::effects::{self, FunctionContext, Functions};
use crate::engine_message::RemovalOrder;
use crate::graph::StoredDefinitions;
use crate::kinds::Kinds;
use crate::load::Load;
use crate::metrics::Metrics;
use crate::readers::Readers;
use crate::runner::{Delivery, Runner};
use crate::settings::Settings;
use crate::tasks::{Desk, Dispatcher, Executor, Executors, OutsideTask, Parked, ParkedTask, TaskEvent, TaskQueue};
use crate::threads::{Inboxes, Parcel, clock, commit_turns, run_actors, shards_of};
use crate::traces;
use crate::watch::{Watched, Watching};

/// Runs actors on a store. Cheap to clone; the last clone to go ends the engine.
#[derive(Clone)]
pub struct Engine(Arc<Running>);

/// An engine that is not started yet.
pub struct Builder {
    store: Arc<dyn Store>,
    kinds: Kinds,
    executors: Executors,
    settings: Settings,
    effects: Option<effects::Settings>,
    functions: Functions,
    graphs: Graphs,
}

struct Running {
    gather: Arc<Gather>,
    inboxes: Inboxes,
    /// Until the end: with the last reader, the store is free for others.
    readers: Arc<Readers>,
    desk: Arc<Desk>,
    tasks: UnboundedSender<TaskEvent>,
    permits: Arc<Semaphore>,
    settings: Settings,
    is_stopping: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    dispatcher: Mutex<Option<tokio::task::JoinHandle<()>>>,
    store: Mutex<Option<Arc<dyn Store>>>,
    definitions: Mutex<Option<Arc<StoredDefinitions>>>,
    parked: Arc<Parked>,
}

/// How long to wait for the dispatcher to say what runs. It answers between two things that it does, none of which takes long.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// Whether graph workflows run here.
enum Graphs {
    Off,
    On,
}

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gives no threads.
    #[error("a thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
    /// There is no async runtime to run tasks on.
    #[error("an engine starts inside a tokio runtime; call `start` from async code")]
    NoRuntime,
}

impl Engine {
    /// Opens the SQLite store at `path`, or makes it.
    pub fn open(path: impl AsRef<Path>) -> Result<Builder, OpenError> {
        Ok(Self::on(Arc::new(SqliteStore::open(path.as_ref())?)))
    }

    /// Uses a store that is open already.
    pub fn on(store: Arc<dyn Store>) -> Builder {
        Builder {
            store,
            kinds: Kinds::default(),
            executors: Executors::default(),
            settings: Settings::default(),
            effects: None,
            functions: Functions::default(),
            graphs: Graphs::Off,
        }
    }
}

impl Builder {
    /// Adds a kind of actor.
    #[must_use]
    pub fn kind(mut self, name: &str, kind: impl Kind + 'static) -> Self {
        self.kinds.insert(name, kind);
        self
    }

    /// Adds an executor for tasks. Tasks for one that is missing wait on disk: see [`Engine::parked_tasks`].
    #[must_use]
    pub fn executor(mut self, name: &str, executor: impl Executor + 'static) -> Self {
        self.executors.insert(name, executor);
        self
    }

    /// Runs graph workflows too: adds their kinds of actor and their executors, with the settings of [`Builder::effects`] if there are any. What
    /// can be done with them is in [`crate::graph::Graphs`].
    #[must_use]
    pub fn graphs(mut self) -> Self {
        self.graphs = Graphs::On;
        self.effects.get_or_insert_with(effects::Settings::default);
        self
    }

    /// Adds the executors of graphs: `http`, `command`, `mock` and `function`. One that [`Builder::executor`] adds under such a name takes its place.
    #[must_use]
    pub fn effects(mut self, settings: effects::Settings) -> Self {
        self.effects = Some(settings);
        self
    }

    /// Adds a function that graphs can call by its name. Its input and its result are JSON to the outside. Tasks that call one that is
    /// missing wait on disk: see [`Engine::parked_tasks`].
    #[must_use]
    pub fn function<T, R, F, Fut>(mut self, name: &str, function: F) -> Self
    where
        T: DeserializeOwned,
        R: Serialize,
        F: Fn(T, FunctionContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        self.functions.insert(name, function);
        self
    }

    /// Uses these settings instead of the defaults.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Starts the threads and takes up what the store holds. Costs what is waiting there, not what exists.
    pub fn start(self) -> Result<Engine, StartError> {
        let Self { store, mut kinds, mut executors, settings, effects, functions, graphs } = self;
        let definitions = match graphs {
            Graphs::Off => None,
            Graphs::On => {
                let definitions = Arc::new(StoredDefinitions::new(store.reader()?));
                kinds.insert(catalog::KIND, catalog::Catalog);
                kinds.insert(graph::KIND, graph::Run::new(definitions.clone()));
                kinds.insert(traces::KIND, traces::Places);
                Some(definitions)
            }
        };
        match effects {
            Some(effects) => effects::register(&mut executors, effects, functions),
            None => effects::register_functions(&mut executors, functions, &effects::Settings::default().secrets),
        }
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let runners = settings.runners.clamp(1, usize::from(Shard::COUNT));
        let settings = Settings { runners, ..settings };
        let boot = store.begin_boot()?;
        let gather = Arc::new(Gather::new(boot, settings.batch_turns_max));
        let kinds = Arc::new(kinds);
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..runners).map(|_| mpsc::channel()).unzip();
        let inboxes = Inboxes::new(senders);
        let (tasks, task_events) = tokio::sync::mpsc::unbounded_channel();

        let mut ready = Vec::new();
        for (number, inbox) in receivers.into_iter().enumerate() {
            let shards = shards_of(number, runners);
            let runner = Runner::start(gather.clone(), kinds.clone(), &settings, store.reader()?, shards, clock())?;
            ready.push((runner, inbox));
        }
        let readers = Arc::new(Readers::new(store.clone()));
        let desk = Arc::new(Desk::new(readers.clone(), inboxes.clone(), gather.clone()));
        let queue = TaskQueue::new(settings.tasks_running_max, settings.tasks_queued_max).without_outside_work();
        let reader = store.reader()?;
        let dispatcher =
            Dispatcher::new(queue, reader, kinds, executors, gather.clone(), inboxes.clone(), desk.clone());

        // Made before the threads, so that a thread that cannot be started ends those that were.
        let running = Running {
            gather: gather.clone(),
            inboxes: inboxes.clone(),
            readers,
            desk: desk.clone(),
            tasks: tasks.clone(),
            permits: Arc::new(Semaphore::new(settings.requests_waiting_max.clamp(1, Semaphore::MAX_PERMITS))),
            settings,
            is_stopping: AtomicBool::new(false),
            threads: Mutex::new(Vec::new()),
            dispatcher: Mutex::new(None),
            store: Mutex::new(Some(store.clone())),
            definitions: Mutex::new(definitions),
            parked: dispatcher.parked(),
        };
        for (number, (runner, inbox)) in ready.into_iter().enumerate() {
            let (inboxes, gather) = (inboxes.clone(), gather.clone());
            running.spawn(&format!("runner-{number}"), move || run_actors(runner, &inbox, &inboxes, &gather))?;
        }
        running.spawn("committer", move || commit_turns(&*store, &gather, &tasks, &inboxes))?;
        *lock(&running.dispatcher) = Some(runtime.spawn(dispatcher.run(task_events)));
        runtime.spawn(Desk::keep_time(Arc::downgrade(&desk)));
        tracing::info!(boot, runners, "the engine has started");
        Ok(Engine(Arc::new(running)))
    }
}

impl Engine {
    /// Asks an actor and waits for its answer. Nothing is remembered of the request itself: see [`Engine::request_as`].
    pub async fn request<T: Serialize + ?Sized>(&self, actor: &ActorId, body: &T) -> Answer {
        self.request_as(&self.0.gather.anonymous_request(), actor, body).await
    }

    /// Asks an actor under an id of the caller's. The same id again, also after a crash, has no further effect and gets the
    /// same answer, for as long as ids are remembered.
    pub async fn request_as<T: Serialize + ?Sized>(&self, id: &RequestId, actor: &ActorId, body: &T) -> Answer {
        let body = encoded(body)?;
        self.0
            .ask(actor.shard(), |waiter| Delivery::Request { actor: actor.clone(), id: id.clone(), body, waiter })
            .await
    }

    /// Sends a message and waits until it is on disk, not until it is processed.
    pub async fn send<T: Serialize + ?Sized>(&self, actor: &ActorId, body: &T) -> Result<(), RequestError> {
        self.send_as(&self.0.gather.anonymous_request(), actor, body).await
    }

    /// Sends a message under an id of the caller's. The same id again sends nothing.
    pub async fn send_as<T: Serialize + ?Sized>(
        &self,
        id: &RequestId,
        actor: &ActorId,
        body: &T,
    ) -> Result<(), RequestError> {
        let body = encoded(body)?;
        let sent =
            self.0.ask(actor.shard(), |waiter| Delivery::Send { actor: actor.clone(), id: id.clone(), body, waiter });
        sent.await.map(drop)
    }

    /// Gives a dead letter's input to its actor once more.
    pub async fn redrive(&self, letter: DeadLetterId) -> Result<(), RequestError> {
        self.0.ask(letter.shard, |waiter| Delivery::Redrive { letter, waiter }).await.map(drop)
    }

    /// Throws a dead letter away.
    pub async fn discard(&self, letter: DeadLetterId) -> Result<(), RequestError> {
        self.0.ask(letter.shard, |waiter| Delivery::Discard { letter, waiter }).await.map(drop)
    }

    /// Removes an actor with all that it has: storage, history, alarm, tasks, remembered requests, dead letters and its place in lists; and those below it, if the
    /// order says so. Returns when the actor itself is gone and its name is free; those below follow. What was sent to it before is processed
    /// before, what is sent meanwhile waits for whoever is of that name next.
    pub async fn remove(&self, actor: &ActorId, order: RemovalOrder) -> Result<(), RequestError> {
        self.0.ask(actor.shard(), |waiter| Delivery::Remove { actor: actor.clone(), order, waiter }).await.map(drop)
    }

    /// Dead letters after the given one, at most `limit` and at most [`limits::PAGE_ROWS_MAX`].
    pub fn dead_letters(&self, after: Option<DeadLetterId>, limit: usize) -> Result<Vec<StoredDeadLetter>, StoreError> {
        let limit = limit.min(limits::PAGE_ROWS_MAX);
        self.0.readers.with(|reader| {
            let mut letters = Vec::new();
            let first = after.map_or(Shard(0), |letter| letter.shard);
            for shard in Shard::all().filter(|shard| *shard >= first) {
                let after = after.filter(|letter| letter.shard == shard).map(|letter| letter.sequence);
                let rows = reader.dead_letters(shard, after, limit - letters.len())?;
                letters.extend(rows.into_iter().map(StoredDeadLetter::from));
                if letters.len() == limit {
                    break;
                }
            }
            Ok(letters)
        })?
    }

    /// An actor's history after the given place, at most `limit` and at most [`limits::PAGE_ROWS_MAX`] entries.
    pub fn events(&self, actor: &ActorId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        let rows = self.with_reader(|reader| reader.events(actor, after, limit.min(limits::PAGE_ROWS_MAX)))??;
        Ok(rows.into_iter().map(event_of).collect())
    }

    /// What was committed of all histories, or of those of a tree of runs, in that order after the given place; at most `limit` and at most
    /// [`limits::PAGE_ROWS_MAX`] entries. `root` is the id of the run at the top of the tree.
    pub fn history(
        &self,
        root: Option<&str>,
        after: HistoryPlace,
        limit: usize,
    ) -> Result<Vec<(HistoryPlace, Event)>, StoreError> {
        let rows = self.with_reader(|reader| reader.history(root, after, limit.min(limits::PAGE_ROWS_MAX)))??;
        Ok(rows.into_iter().map(|(place, row)| (place, event_of(row))).collect())
    }

    /// Begins to watch histories: to be told when there is more to read. Nothing is told before it is on disk.
    #[must_use]
    pub fn watch(&self, watched: Watched) -> Watching {
        self.0.gather.watchers.watch(watched)
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.0.desk
    }

    /// What this process lacks for a task, if it is known to lack something.
    pub(crate) fn lacking(&self, task: &OutsideTask) -> Option<String> {
        self.0.parked.lacking(&task.actor, &task.task)
    }

    /// Tries tasks of an actor again that this process lacked something for. How many.
    pub(crate) fn try_parked_again(&self, actor: &ActorId) -> Result<u64, StoreError> {
        let mut count = 0;
        for task in self.0.parked.take_of(actor, limits::RECOVERED_MAX) {
            // One that was called off since has no row.
            if let Some(row) = self.with_reader(|reader| reader.task(actor, &task))?? {
                let start = TaskStart::of(&row, self.0.gather.attempt_of(row.sequence));
                drop(self.0.tasks.send(TaskEvent::Again(start)));
                count += 1;
            }
        }
        Ok(count)
    }

    /// Those of these tasks that run in this process. May wait for a moment; none when the engine stops.
    pub(crate) fn running_of(&self, tasks: Vec<OutsideTask>) -> Vec<OutsideTask> {
        if tasks.is_empty() {
            return tasks;
        }
        let (tell, told) = mpsc::sync_channel(1);
        drop(self.0.tasks.send(TaskEvent::Look { tasks, tell }));
        told.recv_timeout(LOOK_MAX).unwrap_or_default()
    }

    /// Reads what is on disk.
    pub(crate) fn with_reader<T>(&self, read: impl FnOnce(&dyn Reader) -> T) -> Result<T, StoreError> {
        self.0.readers.with(read)
    }

    /// The definitions of graphs, where the engine runs them.
    pub(crate) fn definitions(&self) -> Result<Arc<StoredDefinitions>, StoreError> {
        let without = || StoreError::Failed("the engine has stopped, or was built without graphs".to_owned());
        lock(&self.0.definitions).clone().ok_or_else(without)
    }

    /// Counts of what was done since the start.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.0.gather.counters.read()
    }

    /// Tasks that wait because this process lacks something for them: an executor, a function, a secret, a permission. Each is started again after
    /// the next start on this store. At most [`limits::PAGE_ROWS_MAX`] are listed; [`Metrics::tasks_parked`] has counted all, also those that
    /// were cancelled since.
    #[must_use]
    pub fn parked_tasks(&self) -> Vec<ParkedTask> {
        self.0.parked.list()
    }

    /// How loaded it is.
    #[must_use]
    pub fn load(&self) -> Load {
        let Running { gather, permits, settings, desk, .. } = &*self.0;
        let places = settings.requests_waiting_max.clamp(1, Semaphore::MAX_PERMITS);
        Load {
            boot: gather.boot(),
            tasks_running: gather.loads.tasks_running.load(Ordering::Relaxed),
            tasks_waiting: gather.loads.tasks_waiting.load(Ordering::Relaxed),
            tasks_lent: desk.lent() as u64,
            requests_waiting: places.saturating_sub(permits.available_permits()) as u64,
            commit_us: gather.loads.commit_us(),
            commit_turns: gather.loads.commit_turns(),
        }
    }

    /// Whether turns are acknowledged, and if not, why.
    #[must_use]
    pub fn health(&self) -> Health {
        self.0.gather.health()
    }

    /// Ends the engine: no new request is taken, running tasks have `grace` to end, and what was gathered is written. Whatever
    /// is not done by then is on disk and goes on after the next start. The store is free afterwards; other clones of this engine hear that it
    /// has stopped. Dropping the last clone without a stop ends the engine too, but gives tasks no time, and may hold the store
    /// until the async runtime has dropped them.
    pub async fn stop(self, grace: Duration) {
        let running = self.0;
        running.is_stopping.store(true, Ordering::Release);
        running.permits.close();
        drop(running.tasks.send(TaskEvent::Stop { grace }));
        let dispatcher = lock(&running.dispatcher).take();
        if let Some(dispatcher) = dispatcher {
            drop(dispatcher.await);
        }
        // Joining waits for the last commit, which may take as long as the disk does.
        drop(tokio::task::spawn_blocking(move || running.end_threads()).await);
    }
}

impl Running {
    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), std::io::Error> {
        let gather = self.gather.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Half an engine that seems well would be the worst: if one thread fails, all of it says so and stops.
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                gather.fail("the engine has failed by a fault of its own; start it again");
            }
        })?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    async fn ask(&self, shard: Shard, delivery: impl FnOnce(Waiter) -> Delivery) -> Answer {
        // Held by this caller and by the request while it stands in line: a caller that gives up makes no room for the next
        // one before its request is out of the way.
        let permit = Arc::new(self.permit().await?);
        let (waiter, answer) = Waiter::new(Some(permit.clone()));
        self.inboxes.send(shard, delivery(waiter));
        answer.await.unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// Permission to be one of the requests that wait.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, RequestError> {
        if let Ok(permit) = self.permits.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let patience = Duration::from_millis(self.settings.request_patience_ms);
        match tokio::time::timeout(patience, self.permits.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_closed)) => Err(RequestError::Stopped),
            Err(_elapsed) => Err(RequestError::Busy(self.settings.requests_waiting_max)),
        }
    }

    /// Why a caller was left without an answer.
    fn unanswered(&self) -> RequestError {
        if self.is_stopping.load(Ordering::Acquire) {
            return RequestError::Stopped;
        }
        match self.gather.health() {
            Health::Unwell(reason) => RequestError::Unavailable(reason),
            Health::Well => RequestError::Unavailable("a commit failed meanwhile".to_owned()),
        }
    }

    fn end_threads(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.permits.close();
        self.inboxes.send_all(|| Parcel::Stop);
        let mut threads = std::mem::take(&mut *lock(&self.threads));
        // Started last. After a start that failed it may be a runner, which is joined all the same.
        let committer = threads.pop();
        for runner in threads {
            join(runner);
        }
        self.gather.close();
        if let Some(committer) = committer {
            join(committer);
        }
        // The store last: only without readers does SQLite tidy up its files.
        self.desk.close();
        self.readers.close();
        self.gather.watchers.close();
        drop(lock(&self.definitions).take());
        drop(lock(&self.store).take());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end_threads();
    }
}

fn join(thread: JoinHandle<()>) {
    thread.join().expect("panics of the engine's threads are caught in them");
}

fn event_of(EventRow { actor, sequence, at, event_type, data }: EventRow) -> Event {
    Event { actor, sequence, at, event_type, data }
}

fn encoded<T: Serialize + ?Sized>(body: &T) -> Result<Json, RequestError> {
    let body = Json::encode(body).map_err(|error| RequestError::Refused(error.to_string()))?;
    if body.bytes() > limits::VALUE_BYTES_MAX {
        return Err(RequestError::Refused(format!(
            "the request has {} bytes, the limit is {} (`VALUE_BYTES_MAX`)",
            body.bytes(),
            limits::VALUE_BYTES_MAX
        )));
    }
    Ok(body)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is inside stays whole whatever panics: a reader, or a list of threads.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
