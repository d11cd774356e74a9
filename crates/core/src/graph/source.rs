//! Where a run finds definitions.
//!
//! Owns the trait. A definition of a given version never changes, so finding one is a pure function of its name and version; how it is read
//! and kept in memory is the engine's business.

use std::sync::Arc;

use crate::definition::task::Task;
use crate::definition::workflow::{Reference, Workflow};
use crate::definition::{Definition, DefinitionKind};
use crate::graph::protocol::Pins;
use crate::turn::TurnError;

/// Definitions by name and version.
pub trait Definitions: Send + Sync {
    /// A definition, or why there is none.
    fn get(&self, kind: DefinitionKind, name: &str, version: u32) -> Result<Arc<Definition>, TurnError>;
}

/// A workflow of a [`Definition`], shared.
#[derive(Debug, Clone)]
pub struct SharedWorkflow(Arc<Definition>);

/// A task of a [`Definition`], shared.
#[derive(Debug, Clone)]
pub struct SharedTask(Arc<Definition>);

impl SharedWorkflow {
    /// Finds a workflow.
    pub fn find(definitions: &dyn Definitions, name: &str, version: u32) -> Result<Self, TurnError> {
        let found = definitions.get(DefinitionKind::Workflow, name, version)?;
        match &*found {
            Definition::Workflow(_) => Ok(Self(found)),
            Definition::Task(_) => Err(TurnError::failed(format!("`{name}@{version}` is a task, not a workflow"))),
        }
    }
}

impl SharedTask {
    /// Finds a task.
    pub fn find(definitions: &dyn Definitions, name: &str, version: u32) -> Result<Self, TurnError> {
        let found = definitions.get(DefinitionKind::Task, name, version)?;
        match &*found {
            Definition::Task(_) => Ok(Self(found)),
            Definition::Workflow(_) => Err(TurnError::failed(format!("`{name}@{version}` is a workflow, not a task"))),
        }
    }
}

impl std::ops::Deref for SharedWorkflow {
    type Target = Workflow;

    fn deref(&self) -> &Workflow {
        match &*self.0 {
            Definition::Workflow(workflow) => workflow,
            Definition::Task(_) => unreachable!("`find` gives out workflows only"),
        }
    }
}

impl std::ops::Deref for SharedTask {
    type Target = Task;

    fn deref(&self) -> &Task {
        match &*self.0 {
            Definition::Task(task) => task,
            Definition::Workflow(_) => unreachable!("`find` gives out tasks only"),
        }
    }
}

/// The version that a run uses of what it names.
pub fn pinned(pins: &Pins, kind: DefinitionKind, reference: &Reference) -> Result<u32, TurnError> {
    let pinned = || pins.0.get(&Pins::key(kind, &reference.name)).copied();
    reference.version.or_else(pinned).ok_or_else(|| {
        TurnError::failed(format!("no version of {} `{}` was fixed when the run started", kind.name(), reference.name))
    })
}
