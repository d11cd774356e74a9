//! What runs a task.
//!
//! Owns the trait, what may come of a task, and the simplest executor: an async function in this process. An executor may run a task more than
//! once (after a crash), so it passes the task's key on to whatever it calls.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use steadfast_core::failure::Failure;
use steadfast_core::ids::{ActorId, TaskId};
use steadfast_core::json::Json;

use crate::commit::TaskStart;

/// A task, as its executor sees it.
#[derive(Debug, Clone)]
pub struct Task {
    /// Whose task.
    pub actor: ActorId,
    /// Its name within the actor.
    pub task: TaskId,
    /// How many times it may have been started, this time included.
    pub attempt: u32,
    /// What it is given.
    pub input: Json,
}

impl Task {
    /// The same for every attempt of this task, for whoever must recognise a repeated call. It is made of the actor and the task's name:
    /// an actor that dispatches a name again gives it again, so each piece of work should have a name of its own.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.actor, self.task)
    }
}

/// A running task.
pub type TaskFuture = Pin<Box<dyn Future<Output = Result<Json, NotDone>> + Send>>;

/// Why a task has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotDone {
    /// It failed. Its actor is told.
    Failed(Failure),
    /// It was not tried, because this process lacks something for it: what, and what to do about it. Nobody is told but the operator; the task
    /// is parked, and started again after the next start on its store, by a process that may have what it takes.
    Lacking(String),
}

impl From<Failure> for NotDone {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Runs tasks of one kind. A panic is a failed task.
pub trait Executor: Send + Sync {
    /// Starts a task.
    fn execute(&self, task: Task) -> TaskFuture;
}

/// An async function as an executor.
pub struct Function<F>(pub F);

impl<F, R> Executor for Function<F>
where
    F: Fn(Task) -> R + Send + Sync,
    R: Future<Output = Result<Json, Failure>> + Send + 'static,
{
    fn execute(&self, task: Task) -> TaskFuture {
        let running = (self.0)(task);
        Box::pin(async move { Ok(running.await?) })
    }
}

/// Executors by name.
#[derive(Default, Clone)]
pub struct Executors(BTreeMap<String, Arc<dyn Executor>>);

impl Executors {
    /// Adds one; the last of a name counts.
    pub fn insert(&mut self, name: &str, executor: impl Executor + 'static) {
        self.0.insert(name.to_owned(), Arc::new(executor));
    }

    /// Adds one unless there is one of that name.
    pub(crate) fn insert_missing(&mut self, name: &str, executor: impl Executor + 'static) {
        self.0.entry(name.to_owned()).or_insert_with(|| Arc::new(executor));
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Executor>> {
        self.0.get(name).cloned()
    }
}

impl From<&TaskStart> for Task {
    fn from(start: &TaskStart) -> Self {
        Self {
            actor: start.actor.clone(),
            task: start.task.clone(),
            attempt: start.attempt,
            input: start.input.clone(),
        }
    }
}
