//! From the engine's types to those on the wire.
//!
//! Owns the translation, field by field, so that neither side changes by accident when the other does.

use serde::Serialize;
use serde_json::value::RawValue;
use steadfast::StoredDeadLetter;
use steadfast::graph::{DefinitionVersion, ListedRun};
use steadfast_api::problem::DefinitionProblem;
use steadfast_api::v1::{Value, dead_letters, definitions, events, runs};
use steadfast_core::catalog;
use steadfast_core::definition::Problem;
use steadfast_core::failure::Failure;
use steadfast_core::graph::protocol::RunStatus;
use steadfast_core::graph::view::{ArtifactStatus, ArtifactView, EventView, RunView, TokenView};
use steadfast_core::json::Json;
use steadfast_store::rows::HistoryPlace;

use crate::error::Refusal;

/// A user's value, as it is stored.
pub(crate) fn value(json: &Json) -> Result<Value, Refusal> {
    RawValue::from_string(json.as_str().to_owned()).map_err(|error| Refusal::internal(&error))
}

pub(crate) fn status(status: RunStatus) -> runs::RunStatus {
    match status {
        RunStatus::Running => runs::RunStatus::Running,
        RunStatus::Paused => runs::RunStatus::Paused,
        RunStatus::Completed => runs::RunStatus::Completed,
        RunStatus::Failed => runs::RunStatus::Failed,
        RunStatus::Cancelled => runs::RunStatus::Cancelled,
    }
}

pub(crate) fn run(view: RunView) -> Result<runs::Run, Refusal> {
    Ok(runs::Run {
        id: view.id,
        workflow: view.workflow.to_string(),
        version: view.version,
        status: status(view.status),
        input: value(&view.input)?,
        output: view.output.as_ref().map(value).transpose()?,
        error: view.error.map(failure).transpose()?,
        reason: view.reason,
        started_at: view.started_at,
        ended_at: view.ended_at,
        parent: view.parent,
        root: view.root.to_string(),
        versions: (*view.versions.0).clone(),
        token_count: view.token_count,
    })
}

fn failure(failure: Failure) -> Result<runs::Failure, Refusal> {
    let Failure { kind, message, retryable, details } = failure;
    let details = details.as_ref().map(value).transpose()?;
    Ok(runs::Failure { failure_type: kind.name().to_owned(), message, retryable, details })
}

pub(crate) fn listed(run: ListedRun) -> runs::ListedRun {
    let ListedRun { id, workflow, version, status, parent, root, started_at, ended_at } = run;
    runs::ListedRun {
        id,
        workflow: workflow.to_string(),
        version,
        status: status.to_string(),
        parent: parent.map(|parent| parent.to_string()),
        root: root.to_string(),
        started_at,
        ended_at,
    }
}

pub(crate) fn token(token: TokenView) -> Result<runs::Token, Refusal> {
    let TokenView { id, node, status, parent, path, branch, attempt, created_at, updated_at } = token;
    Ok(runs::Token {
        id: id.0,
        node: node.to_string(),
        status: word(&status)?,
        parent: parent.map(|parent| parent.0),
        path: path.to_string(),
        branch: branch.map(|branch| runs::Branch { index: branch.index, total: branch.total }),
        attempt,
        created_at,
        updated_at,
    })
}

pub(crate) fn artifact(artifact: ArtifactView) -> Result<runs::Artifact, Refusal> {
    let ArtifactView { name, status, node, content } = artifact;
    let status = match status {
        ArtifactStatus::Staged => "staged",
        ArtifactStatus::Committed => "committed",
    };
    Ok(runs::Artifact { name, status: status.to_owned(), node: node.to_string(), content: value(&content)? })
}

pub(crate) fn event(place: Option<HistoryPlace>, event: EventView) -> Result<events::Event, Refusal> {
    Ok(events::Event {
        sequence: event.sequence,
        place: place.map(self::place),
        at: event.at,
        event_type: event.event_type.to_string(),
        run_id: event.run_id,
        root_id: event.root_id.to_string(),
        workflow: event.workflow.to_string(),
        version: event.version,
        data: value(&event.data)?,
    })
}

/// A place in the history of everything, as it is written.
pub(crate) fn place(place: HistoryPlace) -> String {
    let HistoryPlace { part, index } = place;
    format!("{part}.{index}")
}

pub(crate) fn definition(version: &DefinitionVersion) -> Result<definitions::Definition, Refusal> {
    let DefinitionVersion { kind, name, version, document } = version;
    let document = document.as_ref().map(value).transpose()?;
    Ok(definitions::Definition { kind: kind.name().to_owned(), name: name.clone(), version: *version, document })
}

pub(crate) fn applied(applied: catalog::Applied) -> definitions::AppliedDefinition {
    let catalog::Applied { kind, name, version, status } = applied;
    let status = match status {
        catalog::AppliedStatus::Created => definitions::AppliedStatus::Created,
        catalog::AppliedStatus::Unchanged => definitions::AppliedStatus::Unchanged,
    };
    definitions::AppliedDefinition { kind: kind.name().to_owned(), name, version, status }
}

pub(crate) fn problem(problem: Problem) -> DefinitionProblem {
    let Problem { severity, file, line, column, message, hint, .. } = problem;
    DefinitionProblem { severity: severity.name().to_owned(), file, line, column, message, hint }
}

pub(crate) fn dead_letter(letter: StoredDeadLetter) -> Result<dead_letters::DeadLetter, Refusal> {
    let StoredDeadLetter { id, actor, input, error, attempts, at } = letter;
    let (input, unreadable) = match input {
        Ok(input) => {
            let input = Json::encode(&input).map_err(|error| Refusal::internal(&error))?;
            (Some(value(&input)?), None)
        }
        Err(reason) => (None, Some(reason)),
    };
    let (id, actor, at) = (id.to_string(), actor.to_string(), at.rfc3339());
    Ok(dead_letters::DeadLetter { id, actor, input, unreadable, error, attempts, at })
}

/// The word as which a value without fields is stored.
fn word(value: &impl Serialize) -> Result<String, Refusal> {
    let word = Json::encode(value).and_then(|json| json.decode());
    word.map_err(|error| Refusal::internal(&error))
}
