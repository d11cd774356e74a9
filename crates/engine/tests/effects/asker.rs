//! An actor that runs one task per request and answers with what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use steadfast::core::expression::{SecretPart, SecretPlace};
use steadfast::core::failure::Failure;
use steadfast::core::graph::task_input::TaskInput;
use steadfast::core::ids::{ActorId, RequestId};
use steadfast::core::json::Json;
use steadfast::core::turn::{Actor, Input, Kind, Storage, Turn, TurnError};
use steadfast::effects::{Commands, Settings};
use steadfast::store::memory::MemoryStore;
use steadfast::{Builder, Engine};

use crate::support::{actor, eventually};

struct Asker;

impl Kind for Asker {
    fn load(&self, _id: &ActorId, _storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        Ok(Box::new(Self))
    }
}

impl Actor for Asker {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        match input {
            Input::Request(request) => {
                turn.put("asked", &request.id)?;
                let (executor, input): (String, Json) = request.body.decode()?;
                turn.dispatch("node", &executor, &input)
            }
            Input::TaskResult(result) => {
                let asked: RequestId = turn.get("asked")?.unwrap();
                turn.reply(&asked, &result.outcome)
            }
            Input::Message(_) | Input::Alarm { .. } | Input::DeadLetter(_) => Err(TurnError::failed("what is this?")),
        }
    }
}

/// An engine with the executors of graphs, and the secrets `TOKEN` and `PIN`.
pub(crate) fn engine() -> Engine {
    started(|builder| builder.effects(settings()))
}

pub(crate) fn started(with: impl FnOnce(Builder) -> Builder) -> Engine {
    with(Engine::on(Arc::new(MemoryStore::default())).kind("asker", Asker)).start().unwrap()
}

pub(crate) fn settings() -> Settings {
    let secrets = [("TOKEN", "s3cr3t token/+"), ("PIN", "123")].map(|(name, text)| (name.to_owned(), text.to_owned()));
    Settings { secrets: Arc::new(BTreeMap::from(secrets)), commands: Commands::Allowed, ..Settings::default() }
}

pub(crate) fn task(specification: Value) -> TaskInput {
    TaskInput {
        node: "x".to_owned(),
        attempt: 1,
        timeout_ms: None,
        specification: Json::encode(&specification).unwrap(),
        secrets: Vec::new(),
        input: Json::null(),
    }
}

/// A place of `Bearer ${secret.NAME}`.
pub(crate) fn bearer(pointer: &str, name: &str) -> SecretPlace {
    let parts = vec![SecretPart::Text("Bearer ".to_owned()), SecretPart::Secret(name.to_owned())];
    SecretPlace { pointer: pointer.to_owned(), parts }
}

/// Runs a task with an executor. Its key is `asker:a/node`.
pub(crate) async fn run(engine: &Engine, executor: &str, input: &TaskInput) -> Result<Value, Failure> {
    let answer = engine.request(&actor("asker", "a"), &(executor, input)).await.unwrap();
    let outcome: Result<Json, Failure> = answer.decode().unwrap();
    outcome.map(|result| result.decode().unwrap())
}

/// What the engine lacks for a task, which therefore has no end.
pub(crate) async fn lacking(engine: &Engine, executor: &str, input: &TaskInput) -> String {
    tokio::select! {
        outcome = run(engine, executor, input) => panic!("the task was settled: {outcome:?}"),
        tasks = eventually(async || engine.parked_tasks(), |tasks| !tasks.is_empty()) => tasks[0].lacking.clone(),
    }
}

/// The failure's type, whether it may be tried again, and its message.
pub(crate) fn told(outcome: Result<Value, Failure>) -> (String, bool, String) {
    let failure = outcome.unwrap_err();
    (Json::encode(&failure.kind).unwrap().decode().unwrap(), failure.retryable, failure.message)
}

pub(crate) fn details(outcome: Result<Value, Failure>) -> Value {
    outcome.unwrap_err().details.unwrap().decode().unwrap()
}
