//! Tokens: where a run is.
//!
//! Owns what a token is and which status may follow which. Never stores one: see `state`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::time::Timestamp;

/// A token's number within its run, from 1. Those of a group's branches follow each other; some may stay unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenId(pub u64);

/// A group instance's number within its run: 1, 2, 3, … Every firing of a fan-out has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupId(pub u64);

/// One level of a lineage: a branch of a group instance, as `[instance, index, total]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(GroupId, u64, u64)", into = "(GroupId, u64, u64)")]
pub struct Place {
    /// The group instance.
    pub group: GroupId,
    /// Which of its branches, from 0.
    pub index: u64,
    /// How many branches it has.
    pub total: u64,
}

/// Something at a node of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// Its number.
    pub id: TokenId,
    /// Where it is.
    pub node: Arc<str>,
    /// How it is.
    pub status: Status,
    /// The token that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TokenId>,
    /// The branches it is inside, for people: `root/answers:0`.
    pub path: Arc<str>,
    /// The branches it is inside, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lineage: Vec<Place>,
    /// How often it and those before it took each transition that has a bound.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub iterations: Iterations,
    /// Which attempt of the node's work this is, from 1.
    pub attempt: u32,
    /// What went wrong before, on an error path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<NodeError>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its status changed last.
    pub updated_at: Timestamp,
    /// When it arrived at a join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived_at: Option<Timestamp>,
    /// Whether it has no row of its own, as the first token of a branch.
    #[serde(skip)]
    pub(in crate::graph) shares_row: bool,
}

/// How often transitions were taken, by their place in the workflow.
pub type Iterations = BTreeMap<usize, u32>;

/// A failure, and where it happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeError {
    /// What went wrong.
    pub failure: Failure,
    /// At which node.
    pub node: Arc<str>,
}

/// How a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing has been done yet.
    Pending,
    /// A task was handed to its executor.
    Dispatched,
    /// A worker has said that it is at it.
    Executing,
    /// It has arrived at a join.
    WaitingForSiblings,
    /// A run of another workflow is under way.
    WaitingForSubworkflow,
    /// An agent is at it.
    WaitingForAgent,
    /// Nobody has sent the signal yet.
    WaitingForSignal,
    /// Until a point in time.
    Sleeping,
    /// An attempt failed; the next one is due later.
    Retrying,
    /// Done.
    Completed,
    /// Gave up.
    Failed,
    /// Took too long.
    TimedOut,
    /// Called off.
    Cancelled,
}

/// A status that may not follow another. A fault in our code, never a user's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("token {token} cannot go from {from} to {to}")]
pub struct IllegalStatus {
    token: TokenId,
    from: Status,
    to: Status,
}

impl Status {
    /// Whether nothing can happen to the token any more.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::TimedOut | Self::Cancelled => true,
            Self::Pending
            | Self::Dispatched
            | Self::Executing
            | Self::WaitingForSiblings
            | Self::WaitingForSubworkflow
            | Self::WaitingForAgent
            | Self::WaitingForSignal
            | Self::Sleeping
            | Self::Retrying => false,
        }
    }

    /// The table of what may follow what.
    fn may_become(self, next: Self) -> bool {
        match self {
            Self::Pending => next != Self::Pending && next != Self::Executing && next != Self::Retrying,
            Self::Dispatched => next == Self::Executing || next == Self::Retrying || next.is_terminal(),
            Self::Executing => next == Self::Dispatched || next == Self::Retrying || next.is_terminal(),
            Self::WaitingForSubworkflow | Self::WaitingForAgent | Self::WaitingForSignal => {
                next == Self::Retrying || next.is_terminal()
            }
            Self::Retrying => next == Self::Pending || next.is_terminal(),
            Self::Sleeping => next.is_terminal(),
            Self::WaitingForSiblings => next == Self::Completed || next == Self::Cancelled,
            Self::Completed | Self::Failed | Self::TimedOut | Self::Cancelled => false,
        }
    }

    /// Its name, as stored and shown.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Dispatched => "dispatched",
            Self::Executing => "executing",
            Self::WaitingForSiblings => "waiting_for_siblings",
            Self::WaitingForSubworkflow => "waiting_for_subworkflow",
            Self::WaitingForAgent => "waiting_for_agent",
            Self::WaitingForSignal => "waiting_for_signal",
            Self::Sleeping => "sleeping",
            Self::Retrying => "retrying",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Token {
    /// Changes its status, if that may be.
    pub fn change(&mut self, next: Status, now: Timestamp) -> Result<(), IllegalStatus> {
        if !self.status.may_become(next) {
            return Err(IllegalStatus { token: self.id, from: self.status, to: next });
        }
        self.status = next;
        self.updated_at = now;
        Ok(())
    }

    /// The branch that it is in, the innermost one.
    #[must_use]
    pub fn branch(&self) -> Option<Place> {
        self.lineage.last().copied()
    }
}

impl From<(GroupId, u64, u64)> for Place {
    fn from((group, index, total): (GroupId, u64, u64)) -> Self {
        Self { group, index, total }
    }
}

impl From<Place> for (GroupId, u64, u64) {
    fn from(place: Place) -> Self {
        (place.group, place.index, place.total)
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Status; 13] = [
        Status::Pending,
        Status::Dispatched,
        Status::Executing,
        Status::WaitingForSiblings,
        Status::WaitingForSubworkflow,
        Status::WaitingForAgent,
        Status::WaitingForSignal,
        Status::Sleeping,
        Status::Retrying,
        Status::Completed,
        Status::Failed,
        Status::TimedOut,
        Status::Cancelled,
    ];

    #[test]
    fn terminal_is_final() {
        for from in ALL.into_iter().filter(|status| status.is_terminal()) {
            for to in ALL {
                assert!(!from.may_become(to), "{from} to {to}");
            }
        }
    }

    #[test]
    fn every_active_status_can_be_cancelled() {
        for from in ALL.into_iter().filter(|status| !status.is_terminal()) {
            assert!(from.may_become(Status::Cancelled), "{from}");
        }
    }

    #[test]
    fn an_illegal_change_is_an_error_and_changes_nothing() {
        let mut token = Token {
            id: TokenId(1),
            node: "a".into(),
            status: Status::Completed,
            parent: None,
            path: "root".into(),
            lineage: Vec::new(),
            iterations: Iterations::new(),
            attempt: 1,
            error: None,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
            arrived_at: None,
            shares_row: false,
        };
        let refused = token.change(Status::Pending, Timestamp(5)).unwrap_err();
        assert_eq!(refused.to_string(), "token 1 cannot go from completed to pending");
        assert_eq!((token.status, token.updated_at), (Status::Completed, Timestamp(0)));
    }

    #[test]
    fn its_name_is_its_stored_form() {
        for status in ALL {
            assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{status}\""));
        }
    }
}
