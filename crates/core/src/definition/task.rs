//! A task as it runs: a leaf that never calls back into the system.

use std::sync::Arc;

use crate::expression::Template;
use crate::retry::Retry;
use crate::schema::Schema;

/// A task that has a name.
#[derive(Debug)]
pub struct Task {
    /// Its name.
    pub name: Arc<str>,
    /// What it is for.
    pub description: Option<String>,
    /// What its input must look like.
    pub input: Option<Schema>,
    /// What its result must look like.
    pub output: Option<Schema>,
    /// How long one attempt may take.
    pub timeout_ms: Option<u64>,
    /// How often it is tried.
    pub retry: Option<Retry>,
    /// What it does.
    pub run: TaskRun,
}

/// What a task does.
#[derive(Debug)]
pub enum TaskRun {
    /// Computed in place, by expressions alone.
    Value(Template),
    /// `http`, `command`, `mock`: the executor is given what the template renders to.
    Executor {
        /// Which.
        executor: OutsideExecutor,
        /// What it is told. Its fields are those of the `run` block, checked when the definition was read.
        specification: Template,
    },
    /// A function of the program that embeds the engine. It is given the node's input.
    Function(Arc<str>),
    /// Done by a worker outside, that asks for tasks of this queue. It is given the node's input.
    Worker(Arc<str>),
}

/// The executors that a definition can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutsideExecutor {
    /// An HTTP request.
    Http,
    /// A program on this machine.
    Command,
    /// Something that stands in for one of the others.
    Mock,
}

impl OutsideExecutor {
    /// Its name, in definitions and as an executor of the engine.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Command => "command",
            Self::Mock => "mock",
        }
    }
}
