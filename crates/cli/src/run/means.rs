//! What the definitions need of this process: the permission to run programs, secrets, functions, workers.
//!
//! Owns the refusal of a file that needs what is not here. The engine would park such tasks until a process starts that has it, and this command would wait
//! in vain for its own run. Looks only at what is written: a run that exists keeps its own versions. Never opens a store. Start reading
//! at [`check`].

use std::collections::{BTreeMap, BTreeSet};

use steadfast::effects::{EnvironmentSecrets, Secrets};
use steadfast_core::definition::task::{OutsideExecutor, TaskRun};
use steadfast_core::definition::workflow::{Reference, Work};
use steadfast_core::definition::{Definition, DefinitionKind, Parsed};

use super::Arguments;
use crate::definitions::{Files, counted};
use crate::usage::WrongUsage;

/// Refuses the files if a run of `workflow` could have to wait for what this process lacks.
pub(super) fn check(arguments: &Arguments, files: &Files, workflow: &str) -> Result<(), WrongUsage> {
    if !arguments.allow_command {
        refuse_commands(files)?;
    }
    refuse_what_is_elsewhere(files, workflow)?;
    refuse_missing_secrets(files, &EnvironmentSecrets)
}

fn refuse_commands(files: &Files) -> Result<(), WrongUsage> {
    let runs_commands = |parsed: &&Parsed| tasks_of(parsed).iter().any(|task| task.is_command());
    let Some(parsed) = files.definitions().find(runs_commands) else { return Ok(()) };
    let (kind, name) = (parsed.kind.name(), &parsed.name);
    Err(WrongUsage(format!("{kind} `{name}` runs programs on this machine; allow it with `--allow-command`")))
}

/// Only those that the run can come to: nothing can be done here about the others, which may be for another process.
fn refuse_what_is_elsewhere(files: &Files, workflow: &str) -> Result<(), WrongUsage> {
    let mut tasks = reached(files, workflow).into_iter().flat_map(tasks_of);
    match tasks.find_map(|task| task.elsewhere()) {
        None => Ok(()),
        Some(message) => Err(WrongUsage(message)),
    }
}

/// Places of one secret that are named. Whoever looks there finds the others.
const PLACES_SHOWN_MAX: usize = 3;

fn refuse_missing_secrets(files: &Files, secrets: &dyn Secrets) -> Result<(), WrongUsage> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for task in files.definitions().flat_map(tasks_of) {
        for name in task.secrets() {
            places.entry(name).or_default().push(task.place());
        }
    }
    places.retain(|name, _| secrets.get(name).is_none());
    if places.is_empty() {
        return Ok(());
    }
    let told = |(name, places): (&&str, &Vec<String>)| {
        let shown = places.iter().take(PLACES_SHOWN_MAX).cloned().collect::<Vec<_>>().join(", ");
        let more = match places.len().saturating_sub(PLACES_SHOWN_MAX) {
            0 => String::new(),
            more => format!(" and {}", counted(more as u64, "more place")),
        };
        format!("\n  `{name}`, used by {shown}{more}: {}", secrets.advice(name))
    };
    let are_missing = if places.len() == 1 { "a secret is" } else { "secrets are" };
    let missing: String = places.iter().map(told).collect();
    Err(WrongUsage(format!("{are_missing} not set:{missing}")))
}

/// A task as it is written somewhere.
struct Written<'d> {
    definition: &'d Parsed,
    /// Of a workflow, the node at which it is written.
    node: Option<&'d str>,
    run: &'d TaskRun,
}

impl<'d> Written<'d> {
    fn place(&self) -> String {
        let (kind, name) = (self.definition.kind.name(), &self.definition.name);
        match self.node {
            Some(node) => format!("node `{node}` of {kind} `{name}`"),
            None => format!("{kind} `{name}`"),
        }
    }

    fn is_command(&self) -> bool {
        matches!(self.run, TaskRun::Executor { executor: OutsideExecutor::Command, .. })
    }

    /// Why it can never be done by this command, if it cannot.
    fn elsewhere(&self) -> Option<String> {
        let place = self.place();
        match self.run {
            TaskRun::Function(name) => Some(format!(
                "{place} calls the function `{name}`, which is not here: only a program that embeds the engine has functions"
            )),
            TaskRun::Worker(queue) => Some(format!(
                "{place} is done by a worker outside, which asks for tasks of the queue `{queue}`; nobody can ask here"
            )),
            TaskRun::Value(_) | TaskRun::Executor { .. } => None,
        }
    }

    fn secrets(&self) -> BTreeSet<&'d str> {
        match self.run {
            TaskRun::Executor { specification, .. } => specification.secrets(),
            TaskRun::Value(_) | TaskRun::Function(_) | TaskRun::Worker(_) => BTreeSet::new(),
        }
    }
}

fn tasks_of(definition: &Parsed) -> Vec<Written<'_>> {
    match &definition.definition {
        Definition::Task(task) => vec![Written { definition, node: None, run: &task.run }],
        Definition::Workflow(workflow) => {
            let tasks = workflow.nodes.iter().filter_map(|node| match &node.work {
                Work::Run(run) => Some(Written { definition, node: Some(&node.name), run }),
                Work::Pass | Work::Task(_) | Work::Workflow(_) | Work::Wait(_) | Work::Sleep(_) => None,
            });
            tasks.collect()
        }
    }
}

/// The definitions of the files that a run of `workflow` may use.
fn reached<'d>(files: &'d Files, workflow: &str) -> Vec<&'d Parsed> {
    let mut left: BTreeMap<(DefinitionKind, String), &Parsed> =
        files.definitions().map(|parsed| ((parsed.kind, parsed.name.clone()), parsed)).collect();
    let mut found = Vec::new();
    let mut open: Vec<&Parsed> = left.remove(&(DefinitionKind::Workflow, workflow.to_owned())).into_iter().collect();
    while let Some(parsed) = open.pop() {
        found.push(parsed);
        for (kind, Reference { name, version }) in parsed.definition.references() {
            // One of a certain version is in the store: what is in the files has no number yet.
            if version.is_none() {
                open.extend(left.remove(&(kind, name.to_string())));
            }
        }
    }
    found
}
