//! Dispatch: applies decisions to a run's state and turns them into effects.
//!
//! Owns the order in which a turn does things: steps until none is ready or the turn is full, then tidying up, then the question whether
//! the run is over. What does not fit into a turn is put off to the next one, which the run asks itself for. Start reading at
//! [`Coordinator::finish`].

mod arrive;
mod branches;
mod children;
mod controls;
mod ending;
mod enter;
mod events;
mod fan_out;
mod scope;
mod settle;
mod signals;
mod steps;
mod sweep;
pub(super) mod timers;

use super::decision::Decision;
use super::protocol::Tracing;
use super::source::{Definitions, SharedWorkflow};
use super::state::{Kept, Rows};
use super::token::{GroupId, IllegalStatus, NodeError, Token};
use crate::definition::workflow::NodeIndex;
use crate::failure::Failure;
use crate::json::JsonError;
use crate::turn::{Turn, TurnError};

pub(super) use children::child_of;
pub(super) use ending::tell_parent_of_failed_start;
pub(super) use signals::wait_of;
pub(super) use timers::RUN_TIMER;

/// A run in one turn.
pub(super) struct Coordinator<'c, 't> {
    rows: Rows<'c, 't>,
    definitions: &'c dyn Definitions,
    workflow: SharedWorkflow,
    /// What can be done at once; the last one first, so that a branch goes as far as it can before the next one begins.
    ready: Vec<Ready>,
    entered: usize,
    handed_over: usize,
    /// Whether the alarm must be looked at: once a turn, however many timers it moves.
    has_moved_timers: bool,
}

/// Something that can be done at once.
enum Ready {
    /// A token's work begins. What it is now may not be on disk yet.
    Enter(Box<Token>),
    /// A group instance has branches without a token.
    Open(GroupId),
}

/// Why something could not be done.
pub(super) enum Trouble {
    /// The turn cannot be. It leaves no trace.
    Turn(TurnError),
    /// The token fails, and nothing mends it; `on: error` may catch it.
    Token(Failure),
    /// The run fails.
    Run(Failure),
}

impl<'c, 't> Coordinator<'c, 't> {
    pub(super) fn new(
        turn: &'c mut Turn<'t>,
        kept: &'c mut Kept,
        definitions: &'c dyn Definitions,
        workflow: SharedWorkflow,
    ) -> Self {
        Self {
            rows: Rows::new(turn, kept),
            definitions,
            workflow,
            ready: Vec::new(),
            entered: 0,
            handed_over: 0,
            has_moved_timers: false,
        }
    }

    /// Tidies up, does what is ready, and ends the run if it is over. Tidying comes first: what a fired join has left behind must not go on while a large
    /// run goes ahead.
    pub(super) fn finish(mut self) -> Result<(), TurnError> {
        while !self.is_full() {
            let has_swept = self.sweep_some()?;
            self.take_steps()?;
            if !has_swept && self.rows.kept.progress.sweeps.is_empty() {
                break;
            }
        }
        self.put_off()?;
        self.end_if_over()?;
        self.answer_waiters()?;
        if self.has_moved_timers {
            crate::timers::arm_earliest(self.rows.turn)?;
        }
        if self.wants_another_turn() && !self.rows.kept.progress.is_continued {
            self.rows.kept.progress.is_continued = true;
            let myself = self.rows.turn.actor().clone();
            self.rows.turn.send(&myself, &super::protocol::Letter::Continue.versioned())?;
        }
        self.rows.end()
    }

    /// Does something of which a failure fails the run.
    pub(super) fn attempt(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Trouble>) -> Result<(), TurnError> {
        match work(self) {
            Ok(()) => Ok(()),
            Err(Trouble::Turn(error)) => Err(error),
            Err(Trouble::Token(failure) | Trouble::Run(failure)) => self.fail_run(failure),
        }
    }

    /// Does something with a token that is active. A failure is the token's first, and then maybe the run's.
    fn attempt_with(
        &mut self,
        mut token: Token,
        work: impl FnOnce(&mut Self, &mut Token) -> Result<(), Trouble>,
    ) -> Result<(), TurnError> {
        match work(self, &mut token) {
            Ok(()) => Ok(()),
            Err(Trouble::Turn(error)) => Err(error),
            Err(Trouble::Token(failure)) => self.attempt(|this| this.give_up(token, failure)),
            Err(Trouble::Run(failure)) => {
                if !token.status.is_terminal() {
                    self.end_token(&mut token, &failure)?;
                    self.forget(&token)?;
                }
                self.fail_run(named_after(failure, &token))
            }
        }
    }

    /// Makes the first token.
    pub(super) fn begin(&mut self) -> Result<(), TurnError> {
        let node = self.workflow.node(self.workflow.start).name.clone();
        self.attempt(|this| {
            let new = fan_out::NewToken {
                node,
                parent: None,
                path: "root".into(),
                lineage: Vec::new(),
                iterations: super::token::Iterations::new(),
                error: None,
                status: super::token::Status::Pending,
            };
            let token = this.create(new)?;
            this.rows.kept.progress.root.tokens.push(token.id);
            this.ready.push(Ready::Enter(Box::new(token)));
            Ok(())
        })
    }

    fn node_of(&self, token: &Token) -> Result<NodeIndex, TurnError> {
        let found = self.workflow.find(&token.node);
        found
            .ok_or_else(|| TurnError::failed(format!("workflow `{}` has no node `{}`", self.workflow.name, token.node)))
    }

    fn trace(&mut self, decision: &Decision) -> Result<(), TurnError> {
        match self.rows.kept.facts.tracing {
            Tracing::Off => Ok(()),
            Tracing::On => self.rows.turn.emit(decision.event_type(), decision),
        }
    }

    /// The same for a decision that is made up only to be told.
    fn trace_with(&mut self, decision: impl FnOnce() -> Decision) -> Result<(), TurnError> {
        match self.rows.kept.facts.tracing {
            Tracing::Off => Ok(()),
            Tracing::On => self.trace(&decision()),
        }
    }
}

/// A failure that says, beside what it says already, at which node it happened and in which attempt.
fn named_after(mut failure: Failure, token: &Token) -> Failure {
    let said = failure.details.as_ref().map_or(Ok(serde_json::json!({})), crate::json::Json::decode);
    if let Ok(serde_json::Value::Object(mut details)) = said {
        details.entry("node").or_insert_with(|| serde_json::json!(token.node));
        details.entry("attempt").or_insert_with(|| serde_json::json!(token.attempt));
        failure.details = crate::json::Json::encode(&details).ok();
    }
    failure
}

/// The failure of a token, for those that come after it.
fn error_of(failure: &Failure, token: &Token) -> NodeError {
    NodeError { failure: failure.clone(), node: token.node.clone() }
}

impl From<TurnError> for Trouble {
    fn from(error: TurnError) -> Self {
        Self::Turn(error)
    }
}

impl From<JsonError> for Trouble {
    fn from(error: JsonError) -> Self {
        Self::Turn(error.into())
    }
}

impl From<IllegalStatus> for Trouble {
    fn from(error: IllegalStatus) -> Self {
        Self::Turn(error.into())
    }
}

impl From<IllegalStatus> for TurnError {
    fn from(error: IllegalStatus) -> Self {
        Self::failed(error.to_string())
    }
}
