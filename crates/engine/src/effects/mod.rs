//! What graphs do to the outside world: HTTP requests, programs, functions of this program, and mocks of them.
//!
//! Owns the executors `http`, `command`, `function` and `mock`, one file each, and what they have in common: the form of their
//! input, the time an attempt may take, and secrets, which are filled in last and taken out of whatever comes back. Never decides what
//! follows: a result, a failure that says whether trying again can help, or what this process lacks is all that leaves here. Start reading at
//! `Guarded`.

mod command;
mod excerpt;
mod function;
mod http;
mod mock;
mod secrets;

pub use command::Commands;
pub use function::{FunctionContext, Functions};
pub use http::LinkLocal;
pub use secrets::{EnvironmentSecrets, Secrets};

pub(crate) use http::chain;

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use steadfast_core::duration::format_ms;
use steadfast_core::failure::{Failure, FailureKind};
use steadfast_core::graph::task_input::TaskInput;
use steadfast_core::json::Json;

use crate::tasks::{Executor, Executors, NotDone, Task, TaskFuture};
use secrets::Used;

/// What graphs may do to the outside world.
#[derive(Clone)]
pub struct Settings {
    /// Where secrets come from; the environment, unless something else is given.
    pub secrets: Arc<dyn Secrets>,
    /// Whether programs may be run.
    pub commands: Commands,
    /// Whether HTTP requests may go to addresses of the local link, where clouds keep the keys of a machine.
    pub link_local: LinkLocal,
}

impl Default for Settings {
    fn default() -> Self {
        Self { secrets: Arc::new(EnvironmentSecrets), commands: Commands::Refused, link_local: LinkLocal::Refused }
    }
}

/// Adds the executors of graphs, except those that the program has put its own in place of.
pub(crate) fn register(executors: &mut Executors, settings: Settings, functions: Functions) {
    let Settings { secrets, commands, link_local } = settings;
    executors.insert_missing("http", Guarded::new(http::Http::new(link_local), &secrets));
    executors.insert_missing("command", Guarded::new(command::Command::new(commands), &secrets));
    executors.insert_missing("mock", Guarded::new(mock::Mock, &secrets));
    register_functions(executors, functions, &secrets);
}

/// Adds the executor of functions alone.
pub(crate) fn register_functions(executors: &mut Executors, functions: Functions, secrets: &Arc<dyn Secrets>) {
    executors.insert_missing("function", Guarded::new(functions, secrets));
}

/// One way to do something outside.
trait Effect: Send + Sync + 'static {
    /// How long an attempt may take when its input does not say.
    const TIMEOUT_MS: Option<u64>;

    /// Does it, once; nothing of it when this process lacks something for it.
    fn run(&self, call: Call) -> impl Future<Output = Result<Json, NotDone>> + Send;
}

/// An attempt, ready to be made.
struct Call {
    /// The same for every attempt, for whoever must recognise a repeated one.
    key: String,
    /// The policy's attempt, from 1.
    attempt: u32,
    /// What is to be done, secrets filled in.
    specification: Value,
    /// The node's input.
    input: Json,
    /// Whether there are secrets in it.
    carries: Carries,
    /// Those secrets, for whoever cuts a text: a part of one is not found afterwards.
    used: Arc<Used>,
}

/// What goes out with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carries {
    Nothing,
    Secrets,
}

impl Call {
    /// What is to be done, as the executor reads it.
    fn specification<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        serde_json::from_value(self.specification.take())
            .map_err(|error| Failure::last(FailureKind::InvalidInput, &format!("the task cannot be read: {error}")))
    }
}

/// An effect with what all of them have in common around it.
struct Guarded<E> {
    effect: Arc<E>,
    secrets: Arc<dyn Secrets>,
}

impl<E> Guarded<E> {
    fn new(effect: E, secrets: &Arc<dyn Secrets>) -> Self {
        Self { effect: Arc::new(effect), secrets: secrets.clone() }
    }
}

impl<E: Effect> Executor for Guarded<E> {
    fn execute(&self, task: Task) -> TaskFuture {
        let (effect, secrets) = (self.effect.clone(), self.secrets.clone());
        Box::pin(async move {
            let input: TaskInput = task.input.decode().map_err(|error| {
                Failure::last(FailureKind::InvalidInput, &format!("the task's input cannot be read: {error}"))
            })?;
            let used = Arc::new(Used::find(&input.secrets, &*secrets)?);
            let call = Call {
                key: task.idempotency_key(),
                attempt: input.attempt,
                specification: used.fill_in(&input.specification, &input.secrets)?,
                input: input.input,
                carries: if input.secrets.is_empty() { Carries::Nothing } else { Carries::Secrets },
                used: used.clone(),
            };
            let ran = effect.run(call);
            let outcome = match input.timeout_ms.or(E::TIMEOUT_MS) {
                None => ran.await,
                Some(ms) => tokio::time::timeout(Duration::from_millis(ms), ran)
                    .await
                    .unwrap_or_else(|_elapsed| Err(too_slow(&input.node, input.attempt, ms).into())),
            };
            let outcome = match outcome {
                Ok(result) => used.take_out(Ok(result)),
                Err(NotDone::Failed(failure)) => used.take_out(Err(failure)),
                Err(lacking @ NotDone::Lacking(_)) => return Err(lacking),
            };
            outcome.map_err(NotDone::Failed)
        })
    }
}

fn too_slow(node: &str, attempt: u32, ms: u64) -> Failure {
    let message = format!("attempt {attempt} of node `{node}` took longer than {}", format_ms(ms));
    Failure::retryable(FailureKind::Timeout, &message)
}
