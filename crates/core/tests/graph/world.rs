//! A small world in which runs run: storage in memory, a clock that is set by hand, mocks for tasks.
//!
//! Owns the order of things: everything that can happen at a time happens before the clock moves. Every actor is made anew from its
//! storage before every turn, so that nothing can depend on what is kept in memory; unless a test asks for the opposite.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use crate::at_rest::check_at_rest;
use serde_json::Value as JsonValue;
use steadfast_core::definition::{self, Definition, DefinitionKind};
use steadfast_core::event::Event;
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::graph::protocol::{Command, Controlled, Outcome, Pins, Start, Started, Tracing, Waited};
use steadfast_core::graph::source::{Definitions, SharedWorkflow};
use steadfast_core::graph::task_input::TaskInput;
use steadfast_core::graph::view::{self, RunView, TokenView};
use steadfast_core::graph::{KIND, Run, mock};
use steadfast_core::ids::{ActorId, RequestId, Sequence};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::{
    Actor, AlarmChange, DeadLetter, Dispatch, Effects, Entries, FailedInput, Input, Kind, Message, Request, Sender,
    Storage, TaskChange, TaskResult, Turn, TurnError,
};

/// Turns after which a world that is not at rest never will be.
const TURNS_MAX: usize = 3_000_000;

/// Definitions of some texts: those of the first are version 1, those of the second version 2.
pub(crate) struct Book(BTreeMap<(DefinitionKind, String, u32), Arc<Definition>>);

impl Book {
    #[track_caller]
    fn of(texts: &[&str]) -> Arc<Self> {
        let mut all = BTreeMap::new();
        for (version, text) in (1..).zip(texts) {
            let mut read = definition::read("test.yaml", text);
            definition::check_references(std::slice::from_mut(&mut read), &|_, _| texts.len() > 1);
            let errors: Vec<String> = read
                .problems
                .iter()
                .filter(|problem| problem.severity == definition::Severity::Error)
                .map(ToString::to_string)
                .collect();
            assert!(errors.is_empty(), "{}", errors.join("\n"));
            all.extend(read.definitions.into_iter().map(|parsed| {
                let key = (parsed.kind, parsed.name, version);
                (key, Arc::new(parsed.definition))
            }));
        }
        Arc::new(Self(all))
    }

    /// The newest versions.
    fn pins(&self) -> Pins {
        Pins(Arc::new(self.0.keys().map(|(kind, name, version)| (Pins::key(*kind, name), *version)).collect()))
    }
}

impl Definitions for Book {
    fn get(&self, kind: DefinitionKind, name: &str, version: u32) -> Result<Arc<Definition>, TurnError> {
        let found = self.0.get(&(kind, name.to_owned(), version)).cloned();
        found.ok_or_else(|| TurnError::failed(format!("no definition `{name}@{version}`")))
    }
}

/// What one actor has on disk.
#[derive(Default, Clone)]
pub(crate) struct Stored {
    pub(crate) values: BTreeMap<Arc<str>, Json>,
    pub(crate) alarm: Option<Timestamp>,
    pub(crate) events: Vec<Event>,
}

impl Storage for Stored {
    fn get(&self, key: &str) -> Result<Option<Json>, TurnError> {
        Ok(self.values.get(key).cloned())
    }

    fn scan(&self, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, TurnError> {
        Ok(self.values.range::<str, _>((from, to)).take(limit).map(|(k, v)| (k.clone(), v.clone())).collect())
    }
}

/// A task that was dispatched and has not ended.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) actor: ActorId,
    pub(crate) task: String,
    pub(crate) executor: Arc<str>,
    pub(crate) input: TaskInput,
    due: Due,
}

/// When a task ends.
#[derive(Debug, Clone, Copy)]
enum Due {
    /// By itself.
    At(Timestamp),
    /// By itself, because it took too long.
    TimedOut(Timestamp),
    /// When the test says so.
    Held,
}

impl Due {
    fn at(self) -> Option<Timestamp> {
        match self {
            Self::At(at) | Self::TimedOut(at) => Some(at),
            Self::Held => None,
        }
    }
}

/// What an executor gives, by the task it is asked for.
type Outcomes = Box<dyn FnMut(&Pending) -> Result<Json, Failure>>;

/// Which of so many tasks that are due ends first.
type Choice = Box<dyn FnMut(usize) -> usize>;

/// How often an input comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Once,
    Twice,
}

/// Whether an actor is made anew from its storage before every turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    Lost,
    Kept,
}

/// Every run, and everything that is under way. What must hold of any world is checked when it is dropped, so that no test can forget it.
pub(crate) struct World {
    kind: Run,
    book: Arc<Book>,
    pins: Pins,
    pub(crate) actors: BTreeMap<ActorId, Stored>,
    pub(crate) messages: VecDeque<(ActorId, Sender, Json)>,
    /// In the order in which they were dispatched.
    tasks: BTreeMap<u64, Pending>,
    task_numbers: BTreeMap<(ActorId, String), u64>,
    pub(crate) replies: BTreeMap<RequestId, Json>,
    pub(crate) clock: Timestamp,
    pub(crate) turns: usize,
    /// What the last turn wrote.
    pub(crate) rows_written: usize,
    pub(crate) rows_written_in_all: usize,
    sequence: u64,
    outcomes: Option<Outcomes>,
    choice: Option<Choice>,
    delivery: Delivery,
    memory: Memory,
    loaded: BTreeMap<ActorId, Box<dyn Actor>>,
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            check_at_rest(self);
        }
    }
}

impl World {
    #[track_caller]
    pub(crate) fn of(definitions: &str) -> Self {
        Self::of_versions(&[definitions])
    }

    /// A world with one workflow, called `w`.
    #[track_caller]
    pub(crate) fn with(workflow: &str) -> Self {
        Self::of(&format!("kind: workflow\nname: w\n{workflow}"))
    }

    /// A world in which definitions were applied again.
    #[track_caller]
    pub(crate) fn of_versions(definitions: &[&str]) -> Self {
        let book = Book::of(definitions);
        Self {
            pins: book.pins(),
            kind: Run::new(book.clone()),
            book,
            actors: BTreeMap::new(),
            messages: VecDeque::new(),
            tasks: BTreeMap::new(),
            task_numbers: BTreeMap::new(),
            replies: BTreeMap::new(),
            clock: Timestamp(1_000_000),
            turns: 0,
            rows_written: 0,
            rows_written_in_all: 0,
            sequence: 0,
            outcomes: None,
            choice: None,
            delivery: Delivery::Once,
            memory: Memory::Lost,
            loaded: BTreeMap::new(),
        }
    }

    /// Answers functions. Without it they end when the test says so.
    pub(crate) fn answer_with(mut self, outcomes: impl FnMut(&Pending) -> Result<Json, Failure> + 'static) -> Self {
        self.outcomes = Some(Box::new(outcomes));
        self
    }

    /// Chooses which of the tasks that are due ends next.
    pub(crate) fn choosing(mut self, choice: impl FnMut(usize) -> usize + 'static) -> Self {
        self.choice = Some(Box::new(choice));
        self
    }

    /// Delivers every message and every task's result twice.
    pub(crate) fn repeating(mut self) -> Self {
        self.delivery = Delivery::Twice;
        self
    }

    /// Keeps actors in memory between their turns, as the engine does while there is room.
    pub(crate) fn remembering(mut self) -> Self {
        self.memory = Memory::Kept;
        self
    }

    /// Starts runs with an older version of something.
    pub(crate) fn pin(&mut self, kind: DefinitionKind, name: &str, version: u32) {
        let mut pins = (*self.pins.0).clone();
        pins.insert(Pins::key(kind, name), version);
        self.pins = Pins(Arc::new(pins));
    }

    /// Starts a run and lets everything happen. How it ended.
    #[track_caller]
    pub(crate) fn run(&mut self, workflow: &str, input: JsonValue) -> Outcome {
        self.start("r", workflow, input);
        self.finish();
        self.outcome("r")
    }

    #[track_caller]
    pub(crate) fn start(&mut self, id: &str, workflow: &str, input: JsonValue) -> Started {
        self.start_with(id, workflow, input, Tracing::Off)
    }

    #[track_caller]
    pub(crate) fn start_with(&mut self, id: &str, workflow: &str, input: JsonValue, tracing: Tracing) -> Started {
        let start = Start {
            workflow: workflow.into(),
            version: self.pins.0[&Pins::key(DefinitionKind::Workflow, workflow)],
            pins: self.pins.clone(),
            input: json(&input),
            parent: None,
            tracing,
        };
        self.ask(id, &Command::Start(start)).decode().unwrap()
    }

    /// Asks a run something, and gives back what it answers in that turn.
    #[track_caller]
    pub(crate) fn ask(&mut self, id: &str, command: &Command) -> Json {
        self.try_ask(id, command).unwrap()
    }

    /// Asks a run something that it may refuse.
    pub(crate) fn try_ask(&mut self, id: &str, command: &Command) -> Result<Json, TurnError> {
        let request = self.send_request(id, command)?;
        Ok(self.reply(&request).unwrap_or_else(Json::null))
    }

    /// Asks a run something that it may answer later.
    pub(crate) fn send_request(&mut self, id: &str, command: &Command) -> Result<RequestId, TurnError> {
        self.sequence += 1;
        let request = RequestId::anonymous(self.sequence);
        let input = Input::Request(Request { id: request.clone(), body: Json::encode(command).unwrap() });
        self.turn(&run_id(id), input)?;
        Ok(request)
    }

    /// What was answered so far.
    pub(crate) fn reply(&self, request: &RequestId) -> Option<Json> {
        self.replies.get(request).cloned()
    }

    #[track_caller]
    pub(crate) fn control(&mut self, id: &str, command: &Command) -> Controlled {
        self.ask(id, command).decode().unwrap()
    }

    #[track_caller]
    pub(crate) fn signal(&mut self, id: &str, name: &str, payload: JsonValue) -> Controlled {
        self.control(id, &Command::Signal { name: name.to_owned(), payload: json(&payload) })
    }

    #[track_caller]
    pub(crate) fn cancel(&mut self, id: &str, reason: &str) -> Controlled {
        self.control(id, &Command::Cancel { reason: Some(reason.to_owned()) })
    }

    /// Lets everything happen until nothing is left to.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        while let Some(next) = self.settle() {
            self.clock = self.clock.max(next);
        }
    }

    /// Lets everything happen that happens within `ms`.
    #[track_caller]
    pub(crate) fn pass(&mut self, ms: u64) {
        let until = self.clock.plus_ms(ms);
        while let Some(next) = self.settle().filter(|next| *next <= until) {
            self.clock = self.clock.max(next);
        }
        self.clock = until;
        self.settle();
    }

    /// Does everything that can be done now. When there will be something to do again.
    #[track_caller]
    pub(crate) fn settle(&mut self) -> Option<Timestamp> {
        while self.step() {}
        let alarms = self.actors.values().filter_map(|stored| stored.alarm);
        alarms.chain(self.tasks.values().filter_map(|task| task.due.at())).min()
    }

    /// Does the next thing that can be done now. `false` when there is none.
    #[track_caller]
    pub(crate) fn step(&mut self) -> bool {
        if let Some((to, from, body)) = self.messages.pop_front() {
            self.sequence += 1;
            let message = Message { sequence: Sequence(self.sequence), from, body };
            self.deliver(&to, Input::Message(message));
        } else if let Some(number) = self.due_task() {
            let task = self.tasks[&number].clone();
            let outcome = self.outcome_of(&task);
            self.settle_task(&task, outcome);
        } else if let Some(actor) = self.due_alarm() {
            let due = self.actors.get_mut(&actor).and_then(|stored| stored.alarm.take()).unwrap();
            self.deliver(&actor, Input::Alarm { due });
        } else {
            return false;
        }
        true
    }

    /// The tasks of a run that have not ended, in the order in which they were dispatched.
    pub(crate) fn pending(&self, id: &str) -> Vec<Pending> {
        self.tasks.values().filter(|task| task.actor == run_id(id)).cloned().collect()
    }

    /// Ends the first task that is pending at a node, well.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: &str, node: &str, result: JsonValue) {
        let task = self.pending(id).into_iter().find(|task| task.input.node == node);
        let task = task.unwrap_or_else(|| panic!("no task is pending at {node}: {:#?}", self.token_lines(id)));
        self.settle_task(&task, Ok(json(&result)));
        self.settle();
    }

    /// Ends the first task that is pending at a node, badly.
    #[track_caller]
    pub(crate) fn fail(&mut self, id: &str, node: &str, failure: Failure) {
        let task = self.pending(id).into_iter().find(|task| task.input.node == node).unwrap();
        self.settle_task(&task, Err(failure));
        self.settle();
    }

    /// Gives a run the result of a task, whether it waits for one or not.
    #[track_caller]
    pub(crate) fn settle_task(&mut self, task: &Pending, outcome: Result<Json, Failure>) {
        self.remove_task(&task.actor, &task.task);
        let result = TaskResult { task: steadfast_core::ids::TaskId::new(&task.task).unwrap(), attempt: 1, outcome };
        self.deliver(&task.actor.clone(), Input::TaskResult(result));
    }

    /// Loses the row of a task, as no engine does.
    pub(crate) fn lose_task(&mut self, task: &Pending) {
        self.remove_task(&task.actor, &task.task);
    }

    /// The first version of a workflow.
    pub(crate) fn workflow(&self, name: &str) -> Option<SharedWorkflow> {
        SharedWorkflow::find(&*self.book, name, 1).ok()
    }

    fn remove_task(&mut self, actor: &ActorId, task: &str) {
        if let Some(number) = self.task_numbers.remove(&(actor.clone(), task.to_owned())) {
            self.tasks.remove(&number);
        }
    }

    fn due_task(&mut self) -> Option<u64> {
        let clock = self.clock;
        let is_due = |(_, task): &(&u64, &Pending)| task.due.at().is_some_and(|at| at <= clock);
        match &mut self.choice {
            None => self.tasks.iter().find(is_due).map(|(number, _)| *number),
            Some(choice) => {
                let due: Vec<u64> = self.tasks.iter().filter(is_due).map(|(number, _)| *number).collect();
                (!due.is_empty()).then(|| due[choice(due.len()) % due.len()])
            }
        }
    }

    #[track_caller]
    fn outcome_of(&mut self, task: &Pending) -> Result<Json, Failure> {
        if let Due::TimedOut(_) = task.due {
            return Err(Failure::retryable(FailureKind::Timeout, "the attempt took too long"));
        }
        if &*task.executor == "mock" {
            let key = format!("{}/{}", task.actor, task.task);
            return mocked(&task.input, &key).outcome;
        }
        match &mut self.outcomes {
            Some(outcomes) => outcomes(task),
            None => panic!("nobody answers task {} of {}", task.task, task.actor),
        }
    }

    fn due_alarm(&self) -> Option<ActorId> {
        let due = |(_, stored): &(&ActorId, &Stored)| stored.alarm.is_some_and(|at| at <= self.clock);
        self.actors.iter().find(due).map(|(actor, _)| actor.clone())
    }

    /// A turn that may fail: then the actor is told so, as the engine does.
    #[track_caller]
    fn deliver(&mut self, actor: &ActorId, input: Input) {
        self.turns += 1;
        assert!(self.turns < TURNS_MAX, "the world never comes to rest");
        let failed = match &input {
            Input::Message(message) => FailedInput::Message { from: message.from.clone(), body: message.body.clone() },
            Input::Alarm { due } => FailedInput::Alarm { due: *due },
            Input::TaskResult(result) => FailedInput::TaskResult {
                task: result.task.clone(),
                attempt: result.attempt,
                outcome: result.outcome.clone(),
            },
            Input::Request(_) | Input::DeadLetter(_) => panic!("not delivered here"),
        };
        if self.delivery == Delivery::Twice && !matches!(input, Input::Alarm { .. }) {
            self.turn(actor, input.clone()).unwrap();
        }
        if let Err(error) = self.turn(actor, input) {
            let letter = DeadLetter { id: Sequence(0), input: failed, error: error.to_string(), attempts: 3 };
            self.turn(actor, Input::DeadLetter(letter)).unwrap();
        }
    }

    fn turn(&mut self, actor: &ActorId, input: Input) -> Result<(), TurnError> {
        let stored = self.actors.entry(actor.clone()).or_default();
        // Taken out: an actor whose turn fails is not to be trusted any more.
        let mut loaded = match self.loaded.remove(actor) {
            Some(loaded) => loaded,
            None => self.kind.load(actor, stored)?,
        };
        let mut turn = Turn::begin(actor, self.clock, stored.alarm, stored);
        loaded.turn(&mut turn, &input)?;
        let effects = turn.end()?;
        if self.memory == Memory::Kept {
            self.loaded.insert(actor.clone(), loaded);
        }
        self.apply(actor, effects);
        Ok(())
    }

    fn apply(&mut self, actor: &ActorId, effects: Effects) {
        let Effects { writes, sends, alarm, tasks, events, replies, .. } = effects;
        let now = self.clock;
        let stored = self.actors.get_mut(actor).unwrap();
        self.rows_written = writes.len();
        self.rows_written_in_all += writes.len();
        for (key, value) in writes {
            match value {
                Some(value) => stored.values.insert(key, value),
                None => stored.values.remove(&key),
            };
        }
        match alarm {
            AlarmChange::Keep => {}
            AlarmChange::Off => stored.alarm = None,
            AlarmChange::At(due) => stored.alarm = Some(due),
        }
        for event in events {
            let sequence = stored.events.len() as u64 + 1;
            let (event_type, data) = (event.event_type, event.data);
            stored.events.push(Event { actor: actor.clone(), sequence, at: now, event_type, data });
        }
        for send in sends {
            self.messages.push_back((send.to, Sender::Actor(actor.clone()), send.body));
        }
        for task in tasks {
            match task {
                TaskChange::Cancel(name) => self.remove_task(actor, name.as_str()),
                TaskChange::Dispatch(dispatch) => self.dispatch(actor, &dispatch),
            }
        }
        self.replies.extend(replies.into_iter().map(|reply| (reply.to, reply.body)));
    }

    /// A task that is dispatched again takes the place of what it was before.
    fn dispatch(&mut self, actor: &ActorId, dispatch: &Dispatch) {
        let (name, executor) = (dispatch.task.as_str().to_owned(), dispatch.executor.clone());
        let input: TaskInput = dispatch.input.decode().unwrap();
        let due = match (&*executor, &self.outcomes) {
            ("mock", _) => {
                let takes_ms = mocked(&input, &format!("{actor}/{name}")).delay_ms;
                match input.timeout_ms {
                    Some(timeout_ms) if timeout_ms < takes_ms => Due::TimedOut(self.clock.plus_ms(timeout_ms)),
                    Some(_) | None => Due::At(self.clock.plus_ms(takes_ms)),
                }
            }
            (_, Some(_)) => Due::At(self.clock),
            (_, None) => Due::Held,
        };
        self.remove_task(actor, &name);
        self.sequence += 1;
        self.task_numbers.insert((actor.clone(), name.clone()), self.sequence);
        self.tasks.insert(self.sequence, Pending { actor: actor.clone(), task: name, executor, input, due });
    }

    #[track_caller]
    pub(crate) fn outcome(&mut self, id: &str) -> Outcome {
        match self.ask(id, &Command::Wait).decode::<Option<Waited>>().unwrap() {
            Some(Waited::Ended(outcome)) => outcome,
            other => panic!("run {id} has not ended: {other:?}; {:#?}", self.tokens(id)),
        }
    }

    #[track_caller]
    pub(crate) fn view(&self, id: &str) -> RunView {
        view::run(&self.actors[&run_id(id)], id).unwrap().unwrap()
    }

    #[track_caller]
    pub(crate) fn tokens(&self, id: &str) -> Vec<TokenView> {
        view::tokens(&self.actors[&run_id(id)]).unwrap()
    }

    /// `node status` of every token, in the order in which they were made.
    #[track_caller]
    pub(crate) fn token_lines(&self, id: &str) -> Vec<String> {
        self.tokens(id).iter().map(|token| format!("{} {}", token.node, token.status)).collect()
    }

    #[track_caller]
    pub(crate) fn events(&self, id: &str) -> &[Event] {
        &self.actors[&run_id(id)].events
    }

    pub(crate) fn event_types(&self, id: &str) -> Vec<String> {
        self.events(id).iter().map(|event| event.event_type.to_string()).collect()
    }

    /// The facts of every event of a type.
    #[track_caller]
    pub(crate) fn told(&self, id: &str, event_type: &str) -> Vec<JsonValue> {
        let events = self.events(id).iter().filter(|event| &*event.event_type == event_type);
        events.map(|event| event.data.decode().unwrap()).collect()
    }

    /// How long after the world began an event of a type came first, in milliseconds.
    #[track_caller]
    pub(crate) fn told_at(&self, id: &str, event_type: &str) -> u64 {
        let event = self.events(id).iter().find(|event| &*event.event_type == event_type);
        event.unwrap_or_else(|| panic!("no {event_type}: {:?}", self.event_types(id))).at.0 - 1_000_000
    }

    /// The keys of a run's storage that begin so.
    #[track_caller]
    pub(crate) fn keys(&self, id: &str, prefix: &str) -> Vec<String> {
        let keys = self.actors[&run_id(id)].values.keys();
        keys.filter(|key| key.starts_with(prefix)).map(ToString::to_string).collect()
    }

    /// The status of the tokens at a node, in the order in which they were made.
    #[track_caller]
    pub(crate) fn at(&self, id: &str, node: &str) -> Vec<&'static str> {
        self.tokens(id).iter().filter(|token| &*token.node == node).map(|token| token.status.name()).collect()
    }

    /// The nodes of all tokens, in the order in which they were made.
    #[track_caller]
    pub(crate) fn nodes(&self, id: &str) -> Vec<String> {
        self.tokens(id).iter().map(|token| token.node.to_string()).collect()
    }

    /// The runs that a run has started, in no order that means anything.
    pub(crate) fn children(&self, id: &str) -> Vec<String> {
        let runs = self.actors.iter().filter_map(|(actor, stored)| view::run(stored, actor.name()).unwrap());
        runs.filter(|run| run.parent.as_deref() == Some(id)).map(|run| run.id).collect()
    }
}

fn mocked(input: &TaskInput, key: &str) -> mock::Mocked {
    mock::outcome(&input.specification.decode().unwrap(), key, input.attempt)
}

pub(crate) fn run_id(id: &str) -> ActorId {
    ActorId::new(KIND, id).unwrap()
}

/// The output of a run that completed.
#[track_caller]
pub(crate) fn output(outcome: Outcome) -> JsonValue {
    match &outcome {
        Outcome::Completed(output) => output.decode().unwrap(),
        Outcome::Failed(_) | Outcome::Cancelled { .. } => panic!("{outcome:?}"),
    }
}

/// The failure of a run that failed.
#[track_caller]
pub(crate) fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        Outcome::Completed(_) | Outcome::Cancelled { .. } => panic!("{outcome:?}"),
    }
}

/// A value as it is stored.
pub(crate) fn json(value: &JsonValue) -> Json {
    Json::encode(value).unwrap()
}
