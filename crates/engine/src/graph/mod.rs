//! Graph workflows in this process: definitions are applied, runs are started, asked and told.
//!
//! Owns what is done before a run's actor is asked: versions are fixed, input is checked. What a run does is in [`crate::core::graph`].
//! Start reading at [`Graphs`].

mod doctor;
mod lists;
mod purge;
mod recover;
mod source;
mod start;
pub(crate) mod storage;
mod why;

pub use doctor::{Checkup, CheckupPlace, Stuck, check_runs};
pub use lists::{DefinitionVersion, Listed, ListedRun};
pub use purge::{Purged, order_to_purge};
pub use recover::Recovery;
pub use start::{Run, RunError};

pub(crate) use source::StoredDefinitions;

use std::collections::BTreeMap;

use steadfast_core::catalog::{self, Applied, Apply, Document};
use steadfast_core::definition::{DefinitionKind, Parsed};
use steadfast_core::failure::Failure;
use steadfast_core::graph::KIND;
use steadfast_core::graph::protocol::{Command, Controlled, Outcome, Waited};
use steadfast_core::graph::view::{self, ArtifactView, EventView, RunOrigin, RunView, TokenPlace, TokenView};
use steadfast_core::ids::{ActorId, RequestId};
use steadfast_core::json::Json;
use steadfast_core::turn::TurnError;

use crate::commit::RequestError;
use crate::engine::Engine;
use storage::CommittedStorage;

/// Graph workflows on an engine that was built with [`crate::Builder::graphs`]. Cheap to clone.
#[derive(Clone)]
pub struct Graphs {
    engine: Engine,
}

impl Graphs {
    /// The graph workflows of `engine`.
    #[must_use]
    pub fn of(engine: &Engine) -> Self {
        Self { engine: engine.clone() }
    }

    /// Stores definitions, each as a new version if it differs from its newest; all of them or none. They must have been checked, by
    /// [`steadfast_core::definition::read()`] and [`steadfast_core::definition::check_references`].
    pub async fn apply(&self, definitions: &[Parsed]) -> Result<Vec<Applied>, RunError> {
        let document = |parsed: &Parsed| {
            let Parsed { kind, name, document, .. } = parsed;
            Ok(Document { kind: *kind, name: name.clone(), document: document.to_json()? })
        };
        let documents: Result<Vec<Document>, TurnError> = definitions.iter().map(document).collect();
        let apply = Apply { documents: documents.map_err(RunError::stored)? };
        let answer = self.engine.request(&catalog::actor(), &apply).await?;
        let applied: Vec<Applied> = answer.decode().map_err(|error| RunError::stored(error.into()))?;
        for Applied { kind, name, version, status } in &applied {
            tracing::info!(kind = kind.name(), name, version, ?status, "a definition was applied");
        }
        Ok(applied)
    }

    /// The newest version of a definition.
    pub fn newest(&self, kind: DefinitionKind, name: &str) -> Result<Option<u32>, RunError> {
        self.read(&catalog::actor(), |storage| {
            let stored = steadfast_core::turn::Storage::get(storage, &catalog::newest_key(kind, name))?;
            Ok(stored.map(|json| json.decode()).transpose()?)
        })
    }

    /// Waits for the end of a run.
    pub async fn wait(&self, run: &str) -> Result<Outcome, RunError> {
        let actor = self.actor(run)?;
        loop {
            match self.ask(&actor, None, &Command::Wait).await? {
                Waited::Ended(outcome) => return Ok(outcome),
                Waited::NotFound => return Err(RunError::NotFound { run: run.to_owned() }),
                Waited::AskAgain => {}
            }
        }
    }

    /// Ends a run.
    pub async fn cancel(&self, run: &str, reason: Option<&str>) -> Result<Controlled, RunError> {
        self.control(run, None, &Command::Cancel { reason: reason.map(str::to_owned) }).await
    }

    /// Lets what runs finish and begins nothing new.
    pub async fn pause(&self, run: &str) -> Result<Controlled, RunError> {
        self.control(run, None, &Command::Pause).await
    }

    /// Goes on after a pause.
    pub async fn resume(&self, run: &str) -> Result<Controlled, RunError> {
        self.control(run, None, &Command::Resume).await
    }

    /// Sends a signal. The same `id` again sends nothing.
    pub async fn signal(
        &self,
        run: &str,
        name: &str,
        payload: Json,
        id: Option<&RequestId>,
    ) -> Result<Controlled, RunError> {
        self.control(run, id, &Command::Signal { name: name.to_owned(), payload }).await
    }

    /// A run, as it is on disk.
    pub fn run(&self, run: &str) -> Result<Option<RunView>, RunError> {
        self.read(&self.actor(run)?, |storage| view::run(storage, run))
    }

    /// All tokens of a run, in the order in which they were made.
    pub fn tokens(&self, run: &str) -> Result<Vec<TokenView>, RunError> {
        self.read(&self.actor(run)?, |storage| view::tokens(storage))
    }

    /// Tokens of a run from a place on, at most `limit`, and the place behind them if there may be more. Those whose task runs in this process or is
    /// lent to a worker are shown as executing.
    pub fn tokens_page(
        &self,
        run: &str,
        from: TokenPlace,
        limit: usize,
    ) -> Result<(Vec<TokenView>, Option<TokenPlace>), RunError> {
        let (mut tokens, next) = self.read(&self.actor(run)?, |storage| view::tokens_page(storage, from, limit))?;
        self.mark_executing(run, &mut tokens)?;
        Ok((tokens, next))
    }

    /// The `state.…` and `output.…` of a run, outside of all branches.
    pub fn context(&self, run: &str) -> Result<BTreeMap<String, Json>, RunError> {
        self.read(&self.actor(run)?, |storage| view::context(storage))
    }

    /// The artifacts of a run.
    pub fn artifacts(&self, run: &str) -> Result<Vec<ArtifactView>, RunError> {
        self.read(&self.actor(run)?, |storage| view::artifacts(storage))
    }

    /// Events of a run after the given place in its history, at most `limit`.
    pub fn events(&self, run: &RunView, after: u64, limit: usize) -> Result<Vec<EventView>, RunError> {
        let events = self.engine.events(&self.actor(&run.id)?, after, limit).map_err(RunError::Store)?;
        let origin = RunOrigin::from(run);
        Ok(events.into_iter().map(|event| EventView::new(&origin, event)).collect())
    }

    /// The place of a run's last event in its history; 0 when it has none.
    pub fn last_event(&self, run: &str) -> Result<u64, RunError> {
        let actor = self.actor(run)?;
        let head = self.engine.with_reader(|reader| reader.head(&actor)).and_then(|head| head);
        head.map(|head| head.last_event).map_err(RunError::Store)
    }

    async fn control(&self, run: &str, id: Option<&RequestId>, command: &Command) -> Result<Controlled, RunError> {
        match self.ask(&self.actor(run)?, id, command).await? {
            Controlled::NotFound => Err(RunError::NotFound { run: run.to_owned() }),
            controlled @ (Controlled::Done(_) | Controlled::Ended(_)) => Ok(controlled),
        }
    }

    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        actor: &ActorId,
        id: Option<&RequestId>,
        command: &Command,
    ) -> Result<T, RunError> {
        let answer = match id {
            Some(id) => self.engine.request_as(id, actor, command).await?,
            None => self.engine.request(actor, command).await?,
        };
        answer.decode().map_err(|error| RunError::stored(error.into()))
    }

    fn actor(&self, run: &str) -> Result<ActorId, RunError> {
        ActorId::new(KIND, run)
            .map_err(|error| RunError::InvalidId { message: error.to_string().replace("actor name", "run id") })
    }

    fn read<T>(
        &self,
        actor: &ActorId,
        read: impl FnOnce(&CommittedStorage<'_>) -> Result<T, TurnError>,
    ) -> Result<T, RunError> {
        let result = self.engine.with_reader(|reader| read(&CommittedStorage { actor, reader }));
        result.map_err(RunError::Store)?.map_err(RunError::stored)
    }
}

/// What a run that has ended gave, or its failure.
pub fn result_of(outcome: Outcome) -> Result<Json, Failure> {
    use steadfast_core::failure::FailureKind;
    match outcome {
        Outcome::Completed(output) => Ok(output),
        Outcome::Failed(failure) => Err(failure),
        Outcome::Cancelled { reason } => {
            let reason = reason.unwrap_or_else(|| "the run was cancelled".to_owned());
            Err(Failure::last(FailureKind::Cancelled, &reason))
        }
    }
}

impl From<RequestError> for RunError {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}
