//! What a run tells its history.
//!
//! Owns the facts of each event. What all events of a run have in common (run, root, workflow, version) is kept once, with the run, and
//! put together with them when they are read.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::Coordinator;
use crate::definition::workflow::ContextPath;
use crate::expression::Value;
use crate::failure::Failure;
use crate::graph::token::{GroupId, Place, Status, Token, TokenId};
use crate::json::Json;
use crate::time::Timestamp;
use crate::turn::TurnError;

/// About a token.
#[derive(Serialize)]
struct TokenFacts<'a> {
    token: TokenId,
    node: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

/// About a new token.
#[derive(Serialize)]
struct NewToken<'a> {
    token: TokenId,
    node: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<TokenId>,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<Place>,
}

/// About a token that waits.
#[derive(Serialize)]
struct Waiting<'a> {
    token: TokenId,
    node: &'a str,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

/// About an attempt of a task.
#[derive(Serialize)]
struct Attempt<'a> {
    token: TokenId,
    node: &'a str,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    executor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<String>,
}

/// About a run of another workflow.
#[derive(Serialize)]
struct Child<'a> {
    token: TokenId,
    node: &'a str,
    run: &'a str,
    workflow: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

/// About a group instance.
#[derive(Serialize)]
struct GroupFacts<'a> {
    group: &'a str,
    instance: GroupId,
    branches: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrived: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
}

/// About the context.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<TokenId>,
    paths: Paths<'a>,
}

/// Where in the context.
struct Paths<'a>(&'a [(&'a ContextPath, Value)]);

/// How a run of another workflow stands.
#[derive(Clone, Copy)]
pub(super) enum ChildEvent {
    Started,
    Completed,
    Failed,
    Cancelled,
}

impl Serialize for Paths<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(path, _)| path.to_string()))
    }
}

impl Coordinator<'_, '_> {
    pub(super) fn emit<T: Serialize>(&mut self, event_type: &'static str, data: &T) -> Result<(), TurnError> {
        self.rows.turn.emit(event_type, data)
    }

    pub(super) fn emit_created(&mut self, token: &Token) -> Result<(), TurnError> {
        let Token { id, node, parent, path, .. } = token;
        let created = NewToken { token: *id, node, parent: *parent, path, branch: token.branch() };
        self.emit("token.created", &created)
    }

    pub(super) fn emit_ended(&mut self, token: &Token, error: Option<&Failure>) -> Result<(), TurnError> {
        self.emit_end_of(token.id, &token.node, token.status, error)
    }

    pub(super) fn emit_end_of(
        &mut self,
        token: TokenId,
        node: &str,
        status: Status,
        error: Option<&Failure>,
    ) -> Result<(), TurnError> {
        let event_type = match status {
            Status::Completed => "token.completed",
            Status::Failed => "token.failed",
            Status::TimedOut => "token.timed_out",
            Status::Cancelled => "token.cancelled",
            Status::Pending
            | Status::Dispatched
            | Status::Executing
            | Status::WaitingForSiblings
            | Status::WaitingForSubworkflow
            | Status::WaitingForAgent
            | Status::WaitingForSignal
            | Status::Sleeping
            | Status::Retrying => return Ok(()),
        };
        self.emit(event_type, &TokenFacts { token, node, error })
    }

    pub(super) fn emit_waiting(
        &mut self,
        token: &Token,
        signal: Option<&str>,
        until: Option<Timestamp>,
    ) -> Result<(), TurnError> {
        let Token { id, node, status, .. } = token;
        self.emit(
            "token.waiting",
            &Waiting { token: *id, node, status: *status, signal, until: until.map(Timestamp::rfc3339) },
        )
    }

    pub(super) fn emit_dispatched(&mut self, token: &Token, executor: &str) -> Result<(), TurnError> {
        let Token { id, node, attempt, .. } = token;
        let executor = Some(executor);
        self.emit("task.dispatched", &Attempt { token: *id, node, attempt: *attempt, executor, error: None, due: None })
    }

    pub(super) fn emit_task_completed(&mut self, token: &Token) -> Result<(), TurnError> {
        let Token { id, node, attempt, .. } = token;
        let executor = None;
        self.emit("task.completed", &Attempt { token: *id, node, attempt: *attempt, executor, error: None, due: None })
    }

    pub(super) fn emit_task_failed(&mut self, token: &Token, error: &Failure) -> Result<(), TurnError> {
        let Token { id, node, attempt, .. } = token;
        let (executor, error) = (None, Some(error));
        self.emit("task.failed", &Attempt { token: *id, node, attempt: *attempt, executor, error, due: None })
    }

    pub(super) fn emit_retry(&mut self, token: &Token, due: Timestamp) -> Result<(), TurnError> {
        let Token { id, node, attempt, .. } = token;
        let (executor, due) = (None, Some(due.rfc3339()));
        self.emit("task.retry_scheduled", &Attempt { token: *id, node, attempt: *attempt, executor, error: None, due })
    }

    pub(super) fn emit_child(
        &mut self,
        event: ChildEvent,
        token: &Token,
        run: &str,
        workflow: &str,
        error: Option<&Failure>,
    ) -> Result<(), TurnError> {
        let event_type = match event {
            ChildEvent::Started => "subworkflow.started",
            ChildEvent::Completed => "subworkflow.completed",
            ChildEvent::Failed => "subworkflow.failed",
            ChildEvent::Cancelled => "subworkflow.cancelled",
        };
        self.emit(event_type, &Child { token: token.id, node: &token.node, run, workflow, error })
    }

    pub(super) fn emit_opened(&mut self, group: &str, instance: GroupId, branches: u64) -> Result<(), TurnError> {
        self.emit("fan_out.started", &GroupFacts { group, instance, branches, arrived: None, node: None })
    }

    pub(super) fn emit_fired(
        &mut self,
        group: &str,
        instance: GroupId,
        branches: u64,
        arrived: u64,
        node: &Arc<str>,
    ) -> Result<(), TurnError> {
        let arrived = Some(arrived);
        self.emit("fan_in.completed", &GroupFacts { group, instance, branches, arrived, node: Some(node) })
    }

    pub(super) fn emit_written(
        &mut self,
        token: Option<TokenId>,
        writes: &[(&ContextPath, Value)],
    ) -> Result<(), TurnError> {
        let event_type = if token.is_some() { "context.updated" } else { "branches.merged" };
        self.emit(event_type, &Written { token, paths: Paths(writes) })
    }

    pub(super) fn emit_signal(&mut self, name: &str, payload: &Json) -> Result<(), TurnError> {
        #[derive(Serialize)]
        struct Signal<'a> {
            signal: &'a str,
            payload: &'a Json,
        }
        self.emit("signal.received", &Signal { signal: name, payload })
    }
}
