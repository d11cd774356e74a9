//! The actor of a run.
//!
//! Owns which input leads where. What happens then is in `dispatch`; what it means is in `planning`.

use std::sync::Arc;

use super::dispatch::{Coordinator, RUN_TIMER, tell_parent_of_failed_start};
use super::protocol::{Command, Controlled, Letter, Outcome, Recovered, Start, Started, Waited};
use super::source::{Definitions, SharedWorkflow};
use super::state::Kept;
use super::state::run::{self, Facts, Progress};
use crate::expression::Value;
use crate::failure::{Failure, FailureKind};
use crate::ids::ActorId;
use crate::turn::{Actor, DeadLetter, FailedInput, Input, Kind, Request, Storage, Turn, TurnError};

/// The kind of actors that are runs.
pub const KIND: &str = "run";

/// The kind `run`.
pub struct Run {
    definitions: Arc<dyn Definitions>,
}

impl Run {
    /// Runs of these definitions.
    #[must_use]
    pub fn new(definitions: Arc<dyn Definitions>) -> Self {
        Self { definitions }
    }
}

impl Kind for Run {
    fn load(&self, _id: &ActorId, storage: &dyn Storage) -> Result<Box<dyn Actor>, TurnError> {
        let kept = match run::facts(storage)? {
            None => None,
            Some(facts) => {
                let input = Value::from_json(&run::input(storage)?)?;
                Some(Kept::new(facts, run::progress(storage)?, input))
            }
        };
        Ok(Box::new(Loaded { definitions: self.definitions.clone(), kept, workflow: None }))
    }
}

/// A run in memory.
struct Loaded {
    definitions: Arc<dyn Definitions>,
    kept: Option<Kept>,
    workflow: Option<SharedWorkflow>,
}

impl Actor for Loaded {
    fn turn(&mut self, turn: &mut Turn<'_>, input: &Input) -> Result<(), TurnError> {
        match input {
            Input::Request(request) => self.on_request(turn, request),
            Input::Message(message) => self.on_letter(turn, Letter::read(&message.body)?),
            Input::Alarm { .. } => self.coordinate(turn, |run| run.on_alarm()),
            Input::TaskResult(result) => self.coordinate(turn, |run| run.on_task_result(result)),
            Input::DeadLetter(letter) => self.on_dead_letter(turn, letter),
        }
    }

    fn bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, Kept::bytes)
    }
}

impl Loaded {
    fn on_request(&mut self, turn: &mut Turn<'_>, request: &Request) -> Result<(), TurnError> {
        let reply = match request.body.decode()? {
            Command::Start(start) => {
                let started = self.on_start(turn, &start)?;
                return turn.reply(&request.id, &started);
            }
            Command::Wait => return self.on_wait(turn, request),
            Command::Cancel { reason } => self.control(turn, |run| run.cancel(reason).map(|()| None))?,
            Command::Pause => self.control(turn, |run| run.pause().map(Some))?,
            Command::Resume => self.control(turn, |run| run.resume().map(Some))?,
            Command::Recover { lost } => {
                let (mut retried, mut dispatched) = (0, 0);
                let controlled = self.control(turn, |run| {
                    (retried, dispatched) = run.recover(&lost)?;
                    Ok(None)
                })?;
                return turn.reply(&request.id, &Recovered { controlled, retried, dispatched });
            }
            Command::Signal { name, payload } => {
                self.control(turn, |run| run.on_signal(&name, &payload).map(|()| None))?
            }
        };
        turn.reply(&request.id, &reply)
    }

    fn on_letter(&mut self, turn: &mut Turn<'_>, letter: Letter) -> Result<(), TurnError> {
        match letter {
            Letter::Start(start) => self.on_start(turn, &start).map(drop),
            Letter::ChildEnded { token, attempt, outcome } => {
                self.coordinate(turn, |run| run.on_child_ended(token, attempt, &outcome))
            }
            Letter::Cancel { reason } => self.coordinate(turn, |run| run.cancel(reason)),
            Letter::Continue => self.coordinate(turn, |run| run.take_up()),
        }
    }

    /// Begins the run, unless there is one.
    fn on_start(&mut self, turn: &mut Turn<'_>, start: &Start) -> Result<Started, TurnError> {
        let input = Value::from_json(&start.input)?;
        if let Some(kept) = &self.kept {
            let is_same = kept.facts.workflow == start.workflow && kept.input == input;
            let workflow = kept.facts.workflow.clone();
            return Ok(if is_same { Started::Existing } else { Started::Conflict { workflow } });
        }
        let workflow = SharedWorkflow::find(&*self.definitions, &start.workflow, start.version)?;
        let started_at = turn.now();
        let facts = Facts::new(start, started_at);
        turn.put(run::FACTS, &facts)?;
        turn.put_json(run::INPUT, start.input.clone())?;
        turn.emit("workflow.started", &serde_json::json!({ "input": input }))?;
        if let Some(timeout_ms) = workflow.timeout_ms {
            crate::timers::set(turn, RUN_TIMER, started_at.plus_ms(timeout_ms))?;
        }
        self.kept = Some(Kept::new(facts, Progress::new(), input));
        self.workflow = Some(workflow);
        self.coordinate(turn, |run| run.begin())?;
        Ok(Started::Created { started_at })
    }

    /// Answers at once when the run is over, otherwise at its end.
    fn on_wait(&mut self, turn: &mut Turn<'_>, request: &Request) -> Result<(), TurnError> {
        match &self.kept {
            None => turn.reply(&request.id, &Waited::NotFound),
            Some(kept) if kept.progress.ended_at.is_some() => {
                let outcome: Option<Outcome> = turn.get(run::OUTCOME)?;
                let outcome =
                    outcome.ok_or_else(|| TurnError::failed("the run's outcome is missing from its storage"))?;
                turn.reply(&request.id, &Waited::Ended(outcome))
            }
            Some(_) => self.coordinate(turn, |run| run.add_waiter(&request.id)),
        }
    }

    /// Does something to a run that is not over. What it is asked to be is what it is afterwards, unless `control` says more.
    fn control(
        &mut self,
        turn: &mut Turn<'_>,
        control: impl FnOnce(&mut Coordinator<'_, '_>) -> Result<Option<Controlled>, TurnError>,
    ) -> Result<Controlled, TurnError> {
        let Some(kept) = &self.kept else { return Ok(Controlled::NotFound) };
        if kept.progress.ended_at.is_some() {
            return Ok(Controlled::Ended(kept.progress.status));
        }
        let mut said = None;
        self.coordinate(turn, |run| {
            said = control(run)?;
            Ok(())
        })?;
        let status = self.kept.as_ref().map(|kept| kept.progress.status);
        Ok(said.or(status.map(Controlled::Done)).unwrap_or(Controlled::NotFound))
    }

    /// An input could not be processed. What it stood for will not happen, so the run ends, visibly.
    fn on_dead_letter(&mut self, turn: &mut Turn<'_>, letter: &DeadLetter) -> Result<(), TurnError> {
        let message = format!("an input of the run could not be processed: {}", letter.error);
        let failure = Failure::last(FailureKind::Internal, &message);
        if self.kept.is_some() {
            return self.coordinate(turn, |run| run.fail_after_dead_letter(failure));
        }
        match &letter.input {
            FailedInput::Message { body, .. } => match Letter::read(body) {
                Ok(Letter::Start(start)) => tell_parent_of_failed_start(turn, &start, failure),
                Ok(Letter::ChildEnded { .. } | Letter::Cancel { .. } | Letter::Continue) | Err(_) => Ok(()),
            },
            FailedInput::Alarm { .. }
            | FailedInput::TaskResult { .. }
            | FailedInput::Notice { .. }
            | FailedInput::Unreadable { .. } => Ok(()),
        }
    }

    /// Does something in the run, and everything that follows from it. Nothing when there is no run.
    fn coordinate(
        &mut self,
        turn: &mut Turn<'_>,
        work: impl FnOnce(&mut Coordinator<'_, '_>) -> Result<(), TurnError>,
    ) -> Result<(), TurnError> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        let workflow = match &self.workflow {
            Some(workflow) => workflow.clone(),
            None => SharedWorkflow::find(&*self.definitions, &kept.facts.workflow, kept.facts.version)?,
        };
        self.workflow = Some(workflow.clone());
        let mut coordinator = Coordinator::new(turn, kept, &*self.definitions, workflow);
        work(&mut coordinator)?;
        coordinator.finish()
    }
}
