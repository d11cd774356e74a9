//! Starting a run: versions are fixed for its whole tree, and its input is checked, before anything is stored.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use steadfast_core::catalog;
use steadfast_core::definition::workflow::Reference;
use steadfast_core::definition::{Definition, DefinitionKind};
use steadfast_core::expression::Value;
use steadfast_core::graph::protocol::{Command, Pins, Start, Started, Tracing};
use steadfast_core::graph::source::Definitions;
use steadfast_core::json::Json;
use steadfast_core::schema::Violation;
use steadfast_core::turn::{Storage, TurnError};
use steadfast_store::StoreError;

use super::Graphs;
use crate::commit::RequestError;

/// A run to be started.
#[derive(Debug, Clone)]
pub struct Run {
    /// The workflow: `name`, or `name@3`.
    pub workflow: String,
    /// What it is given.
    pub input: Json,
    /// Its id; a new one is made when none is given.
    pub id: Option<String>,
    /// Whether its decisions become events.
    pub tracing: Tracing,
}

impl Run {
    /// A run of `workflow` with `input`.
    #[must_use]
    pub fn new(workflow: &str, input: Json) -> Self {
        Self { workflow: workflow.to_owned(), input, id: None, tracing: Tracing::Off }
    }

    /// The same, with an id of the caller's: starting it again starts nothing.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }
}

/// Why something could not be done with a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no such workflow.
    #[error("there is no workflow `{workflow}`{hint}")]
    UnknownWorkflow {
        /// As it was named.
        workflow: String,
        /// What there is.
        hint: String,
    },
    /// A workflow names something that is not in the store.
    #[error("{} `{name}`, named by `{by}`, is not in the store", kind.name())]
    UnknownReference {
        /// What it would be.
        kind: DefinitionKind,
        /// As it was named.
        name: String,
        /// The definition that names it.
        by: String,
    },
    /// There is no such run.
    #[error("there is no run `{run}`")]
    NotFound {
        /// As it was named.
        run: String,
    },
    /// The input does not fit the workflow.
    #[error("the input does not fit the workflow `{workflow}`: {}", listed(violations))]
    InvalidInput {
        /// Which.
        workflow: String,
        /// Everything that is wrong.
        violations: Vec<Violation>,
    },
    /// There is a run of this id already, and it is another one.
    #[error(
        "run `{run}` exists already, of workflow `{workflow}` and with another workflow or input; choose another id"
    )]
    Conflict {
        /// The id.
        run: String,
        /// The workflow of the run that exists.
        workflow: String,
    },
    /// It cannot be removed before it is over.
    #[error("run `{run}` cannot be removed: {}", still_active(run, by))]
    NotOver {
        /// The id.
        run: String,
        /// Which run of its tree has not ended.
        by: String,
    },
    /// A part of a tree cannot be removed alone.
    #[error("run `{run}` is a part of run `{root}` and goes with it; remove that one")]
    NotATop {
        /// The id.
        run: String,
        /// The run at the top.
        root: String,
    },
    /// The id cannot be used.
    #[error("{message}")]
    InvalidId {
        /// Why.
        message: String,
    },
    /// The engine did not answer.
    #[error(transparent)]
    Request(RequestError),
    /// The store did not answer.
    #[error(transparent)]
    Store(StoreError),
    /// What is stored cannot be read.
    #[error("{message}")]
    Unreadable {
        /// Why.
        message: String,
    },
}

impl RunError {
    pub(super) fn stored(error: TurnError) -> Self {
        match error {
            // What is stored may be well: it could not be asked for.
            TurnError::StoreUnavailable(reason) => Self::Store(StoreError::Failed(reason)),
            TurnError::Failed(_)
            | TurnError::Stored { .. }
            | TurnError::Json(_)
            | TurnError::InvalidId(_)
            | TurnError::Limit { .. } => Self::Unreadable { message: error.to_string() },
        }
    }
}

fn still_active(run: &str, by: &str) -> String {
    let own = if run == by { "it".to_owned() } else { format!("run `{by}` below it") };
    format!("{own} has not ended; wait for that, or cancel it")
}

fn listed(violations: &[Violation]) -> String {
    let shown = |Violation { pointer, message }: &Violation| {
        if pointer.is_empty() { message.clone() } else { format!("at `{pointer}`: {message}") }
    };
    violations.iter().map(shown).collect::<Vec<_>>().join("; ")
}

impl Graphs {
    /// Starts a run, unless there is one of its id. Its id, and whether it is new.
    pub async fn start(&self, run: Run) -> Result<(String, Started), RunError> {
        match self.prepare(run)? {
            Prepared::Existing { id } => Ok((id, Started::Existing)),
            Prepared::New { id, start } => self.begin(id, start).await,
        }
    }

    /// Starts a run as [`Graphs::start`] does, and waits until it has ended or `patience` has. Both are asked at once, so that a run that ends in the
    /// turn in which it begins is on disk with one commit.
    pub async fn start_and_wait(
        &self,
        run: Run,
        patience: impl Future<Output = ()>,
    ) -> Result<(String, Started), RunError> {
        let mut patience = pin!(patience);
        let (started, waited) = match self.prepare(run)? {
            Prepared::Existing { id } => ((id, Started::Existing), None),
            Prepared::New { id, start } => {
                let mut begun = pin!(self.begin(id.clone(), start));
                let mut ended = pin!(self.wait(&id));
                tokio::select! {
                    // In this order, as the run is to hear it.
                    biased;
                    begun = &mut begun => {
                        let begun = begun?;
                        tokio::select! {
                            ended = ended => (begun, Some(ended)),
                            () = &mut patience => return Ok(begun),
                        }
                    }
                    ended = &mut ended => (begun.await?, Some(ended)),
                }
            }
        };
        // It may have been asked first all the same, when there were many others, and have heard that there is no such run.
        if waited.is_none_or(|waited| waited.is_err()) {
            tokio::select! {
                // However it comes out: who wants to know looks at the run.
                ended = self.wait(&started.0) => drop(ended),
                () = patience => {}
            }
        }
        Ok(started)
    }

    async fn begin(&self, id: String, start: Start) -> Result<(String, Started), RunError> {
        match self.ask(&self.actor(&id)?, None, &Command::Start(start)).await? {
            Started::Conflict { workflow } => Err(RunError::Conflict { run: id, workflow: workflow.to_string() }),
            started @ (Started::Created { .. } | Started::Existing) => Ok((id, started)),
        }
    }

    /// Everything that comes before a run's actor is asked.
    fn prepare(&self, run: Run) -> Result<Prepared, RunError> {
        let Run { workflow, input, id, tracing } = run;
        let reference = parsed(&workflow);
        // A run keeps its versions: whether its input fits what was applied since is no question.
        if let Some(id) = &id
            && let Some(existing) = self.run(id)?
        {
            let is_same = existing.workflow == reference.name && is_equal(&existing.input, &input);
            return match is_same {
                true => Ok(Prepared::Existing { id: id.clone() }),
                false => Err(RunError::Conflict { run: id.clone(), workflow: existing.workflow.to_string() }),
            };
        }
        let Plan { version, pins } = self.plan(&workflow, &reference, &input)?;
        let id = match id {
            Some(id) => checked_id(id)?,
            None => uuid::Uuid::now_v7().to_string(),
        };
        let start = Start { workflow: reference.name, version, pins, input, parent: None, tracing };
        Ok(Prepared::New { id, start })
    }

    /// Fixes the versions of everything that the workflow names, directly or not, and checks the input.
    fn plan(&self, workflow: &str, reference: &Reference, input: &Json) -> Result<Plan, RunError> {
        let value = Value::from_json(input).map_err(|error| {
            let violation = Violation { pointer: String::new(), message: error.to_string() };
            RunError::InvalidInput { workflow: workflow.to_owned(), violations: vec![violation] }
        })?;
        let definitions = self.engine.definitions().map_err(RunError::Store)?;
        self.read(&catalog::actor(), |storage| {
            let Some(version) = version_of(storage, DefinitionKind::Workflow, reference)? else {
                let hint = hint(storage)?;
                return Ok(Err(RunError::UnknownWorkflow { workflow: workflow.to_owned(), hint }));
            };
            let mut pins = BTreeMap::new();
            let mut to_visit = vec![(DefinitionKind::Workflow, reference.clone(), version)];
            let mut visited = Vec::new();
            let mut violations = Vec::new();
            while let Some((kind, reference, version)) = to_visit.pop() {
                let this = (kind, reference.name.clone(), version);
                if visited.contains(&this) {
                    continue;
                }
                let definition = definitions.get(kind, &reference.name, version)?;
                if visited.is_empty()
                    && let Definition::Workflow(workflow) = &*definition
                    && let Some(schema) = &workflow.input
                    && let Err(found) = schema.check(&value)
                {
                    violations = found;
                }
                visited.push(this);
                for (kind, named) in definition.references() {
                    let Some(version) = version_of(storage, kind, &named)? else {
                        let (name, by) = (named.name.to_string(), reference.name.to_string());
                        return Ok(Err(RunError::UnknownReference { kind, name, by }));
                    };
                    if named.version.is_none() {
                        pins.insert(Pins::key(kind, &named.name), version);
                    }
                    to_visit.push((kind, named, version));
                }
            }
            if !violations.is_empty() {
                return Ok(Err(RunError::InvalidInput { workflow: workflow.to_owned(), violations }));
            }
            Ok(Ok(Plan { version, pins: Pins(Arc::new(pins)) }))
        })?
    }
}

/// A start that was looked at.
enum Prepared {
    /// The run is there.
    Existing { id: String },
    /// It is not, or was not a moment ago.
    New { id: String, start: Start },
}

/// What a run begins with, beside its input.
struct Plan {
    version: u32,
    pins: Pins,
}

fn parsed(workflow: &str) -> Reference {
    let versioned = workflow.rsplit_once('@').and_then(|(name, version)| Some((name, version.parse().ok()?)));
    match versioned {
        Some((name, version)) => Reference { name: name.into(), version: Some(version) },
        None => Reference { name: workflow.into(), version: None },
    }
}

/// The version that a reference means now, if there is one.
fn version_of(storage: &dyn Storage, kind: DefinitionKind, reference: &Reference) -> Result<Option<u32>, TurnError> {
    let newest: Option<Json> = storage.get(&catalog::newest_key(kind, &reference.name))?;
    let newest: Option<u32> = newest.map(|json| json.decode()).transpose()?;
    Ok(match reference.version {
        None => newest,
        Some(version) => newest.filter(|newest| (1..=*newest).contains(&version)).map(|_| version),
    })
}

/// The workflows there are, for somebody who named another.
fn hint(storage: &dyn Storage) -> Result<String, TurnError> {
    let prefix = catalog::newest_key(DefinitionKind::Workflow, "");
    let end = steadfast_core::turn::prefix_end(&prefix);
    let rows = storage.scan(std::ops::Bound::Included(&prefix), std::ops::Bound::Excluded(&end), 10)?;
    let names: Vec<String> = rows.iter().map(|(key, _)| format!("`{}`", &key[prefix.len()..])).collect();
    Ok(if names.is_empty() { "; none has been applied".to_owned() } else { format!("; there is {}", names.join(", ")) })
}

/// Whether two texts are the same value.
fn is_equal(one: &Json, other: &Json) -> bool {
    match (Value::from_json(one), Value::from_json(other)) {
        (Ok(one), Ok(other)) => one == other,
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// Ids that callers choose: as those of requests, so that a child's id has room too.
fn checked_id(id: String) -> Result<String, RunError> {
    let is_like_a_childs = id.rsplit_once('.').is_some_and(|(_, digest)| {
        digest.len() == 32 && digest.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
    });
    if is_like_a_childs {
        let message = format!("run id `{id}` ends as the ids of sub-workflows do, in a dot and 32 hexadecimal digits");
        return Err(RunError::InvalidId { message });
    }
    match steadfast_core::ids::RequestId::given(&id) {
        Ok(_) => Ok(id),
        Err(error) => Err(RunError::InvalidId { message: error.to_string().replace("request id", "run id") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_does_not_answer_is_not_taken_for_one_that_cannot_be_read() {
        let error = RunError::stored(TurnError::StoreUnavailable("gone".to_owned()));
        assert!(matches!(error, RunError::Store(StoreError::Failed(_))), "{error:?}");
        assert_eq!(error.to_string(), "the store failed: gone");
        assert!(matches!(RunError::stored(TurnError::failed("what is this?")), RunError::Unreadable { .. }));
    }
}
