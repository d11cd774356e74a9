//! Definitions: what people write, read and checked.
//!
//! Owns the language: documents with positions, what each field may be, every problem at once, and the form in which a
//! definition runs. Never stores one. Start reading at [`read()`].

mod check;
mod decode;
mod names;
mod problem;
mod problems;
mod read;
mod references;
mod settings;
mod syntax;
pub mod task;
mod tree;
pub mod workflow;
mod yaml;

#[cfg(test)]
mod tests;

pub use problem::{Problem, Severity};
pub use read::{Compiled, Parsed, Read, compile, read};
pub use references::check_references;
pub use settings::{Setting, settings};

use task::Task;
use workflow::{Reference, Work, Workflow};

/// A definition as it runs.
#[derive(Debug)]
pub enum Definition {
    /// A workflow.
    Workflow(Workflow),
    /// A task.
    Task(Task),
}

/// The kinds of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefinitionKind {
    /// `kind: workflow`.
    Workflow,
    /// `kind: task`.
    Task,
}

impl DefinitionKind {
    /// Its name in definitions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Task => "task",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Workflow, Self::Task].into_iter().find(|kind| kind.name() == name)
    }
}

impl Definition {
    /// Every task and workflow that it names, each once.
    #[must_use]
    pub fn references(&self) -> Vec<(DefinitionKind, Reference)> {
        let nodes = match self {
            Self::Workflow(workflow) => &workflow.nodes[..],
            Self::Task(_) => &[],
        };
        let mut found: Vec<(DefinitionKind, Reference)> = nodes
            .iter()
            .filter_map(|node| match &node.work {
                Work::Task(reference) => Some((DefinitionKind::Task, reference.clone())),
                Work::Workflow(reference) => Some((DefinitionKind::Workflow, reference.clone())),
                Work::Pass | Work::Run(_) | Work::Wait(_) | Work::Sleep(_) => None,
            })
            .collect();
        found.sort();
        found.dedup();
        found
    }
}
