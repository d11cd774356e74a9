//! What was asked for: which workflow, with which input and signals.
//!
//! Owns the reading of arguments, and what is wrong with them. Never opens a store.

use std::collections::BTreeMap;
use std::path::Path;

use steadfast::graph::Run;
use steadfast_core::definition::Definition;
use steadfast_core::definition::workflow::{Work, Workflow};
use steadfast_core::graph::protocol::Tracing;
use steadfast_core::ids::{RequestId, stable_hash};
use steadfast_core::json::Json;

use super::Arguments;
use crate::definitions::{Files, STDIN};
use crate::usage::WrongUsage;
use crate::value;

/// A run to be started, and what it is told at once.
pub(super) struct Asked {
    pub(super) run: Run,
    pub(super) signals: Vec<Signal>,
}

/// A signal.
pub(super) struct Signal {
    pub(super) name: String,
    pub(super) payload: Json,
    /// The same for the same command, so that going on with a run does not send it again.
    pub(super) id: RequestId,
}

impl Asked {
    pub(super) fn new(arguments: &Arguments, files: &Files) -> Result<Self, WrongUsage> {
        let input = value::given("input", "--input", arguments.input.as_deref().unwrap_or("{}"))?;
        let signals = signals(&arguments.signals)?;
        let workflow = workflow(arguments, files)?;
        let tracing = if arguments.trace { Tracing::On } else { Tracing::Off };
        Ok(Self { run: Run { workflow, input, id: arguments.id.clone(), tracing }, signals })
    }
}

/// Whether a run of this workflow may wait for somebody.
pub(super) fn waits_for_signals(workflow: &Workflow) -> bool {
    workflow.nodes.iter().any(|node| matches!(node.work, Work::Wait(_)))
}

/// What comes from stdin is one thing. Looked at before anything is read from there.
pub(super) fn check_stdin(arguments: &Arguments) -> Result<(), WrongUsage> {
    let is_input = arguments.input.as_deref().and_then(|given| given.strip_prefix('@')) == Some(STDIN);
    if is_input && arguments.file == Path::new(STDIN) {
        return Err(WrongUsage("the definitions and the input cannot both come from stdin".to_owned()));
    }
    Ok(())
}

fn signals(given: &[String]) -> Result<Vec<Signal>, WrongUsage> {
    let mut times: BTreeMap<u64, u32> = BTreeMap::new();
    let mut signals = Vec::with_capacity(given.len());
    for text in given {
        let (name, payload) = text.split_once('=').unwrap_or((text, "null"));
        let payload = value::parsed(&format!("the signal `{name}`"), payload)?;
        if let Err(error) = RequestId::given(name) {
            return Err(WrongUsage(error.to_string().replace("request id", "signal")));
        }
        let hash = stable_hash(text.as_bytes());
        let time = times.entry(hash).and_modify(|time| *time += 1).or_insert(1);
        let id = RequestId::given(&format!("run-signal:{hash:016x}:{time}"));
        let id = id.expect("digits and letters are allowed in ids");
        signals.push(Signal { name: name.to_owned(), payload, id });
    }
    Ok(signals)
}

/// The workflow that is meant.
fn workflow(arguments: &Arguments, files: &Files) -> Result<String, WrongUsage> {
    let file = arguments.file.display();
    let workflows: Vec<&Workflow> = files
        .definitions()
        .filter_map(|parsed| match &parsed.definition {
            Definition::Workflow(workflow) => Some(workflow),
            Definition::Task(_) => None,
        })
        .collect();
    let names = |of: &[&Workflow]| of.iter().map(|found| format!("`{}`", found.name)).collect::<Vec<_>>().join(", ");
    if workflows.is_empty() {
        return Err(WrongUsage(format!("there is no workflow in `{file}`")));
    }
    if let Some(wanted) = &arguments.workflow {
        let name = wanted.split_once('@').map_or(&**wanted, |(name, _version)| name);
        return match workflows.iter().any(|found| &*found.name == name) {
            true => Ok(wanted.clone()),
            false => {
                Err(WrongUsage(format!("there is no workflow `{name}` in `{file}`; there is {}", names(&workflows))))
            }
        };
    }
    let tops: Vec<&Workflow> =
        workflows.iter().filter(|found| !is_run_by_another(found, &workflows)).copied().collect();
    match (&workflows[..], &tops[..]) {
        ([only], _) | (_, [only]) => Ok(only.name.to_string()),
        (several, []) | (_, several) => {
            let several = names(several);
            Err(WrongUsage(format!(
                "several workflows of `{file}` could be meant; choose one with `--workflow`: {several}"
            )))
        }
    }
}

fn is_run_by_another(workflow: &Workflow, all: &[&Workflow]) -> bool {
    let runs_it = |work: &Work| match work {
        Work::Workflow(reference) => reference.name == workflow.name,
        Work::Pass | Work::Task(_) | Work::Run(_) | Work::Wait(_) | Work::Sleep(_) => false,
    };
    let others = all.iter().filter(|other| other.name != workflow.name);
    others.flat_map(|other| &other.nodes).any(|node| runs_it(&node.work))
}
