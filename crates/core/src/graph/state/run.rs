//! Facts of a run, which never change, and its progress, which changes with every turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::graph::protocol::{Outcome, Parent, Pins, RunStatus, Tracing};
use crate::graph::state::groups::Branch;
use crate::graph::token::{GroupId, Status, TokenId};
use crate::json::Json;
use crate::time::Timestamp;
use crate::turn::{Listing, Storage, TurnError};

/// The key of what is known of a run from its start.
pub const FACTS: &str = "run";
/// The key of the run's input.
pub(in crate::graph) const INPUT: &str = "input";
/// The key of the [`Progress`].
pub(in crate::graph) const PROGRESS: &str = "progress";
/// The key of the [`Outcome`], once there is one.
pub(in crate::graph) const OUTCOME: &str = "outcome";

/// The version of the stored forms.
const VERSION: u32 = 1;

/// What a run began with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::graph) struct Facts {
    v: u32,
    pub(in crate::graph) workflow: Arc<str>,
    pub(in crate::graph) version: u32,
    pub(in crate::graph) pins: Pins,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::graph) parent: Option<Parent>,
    #[serde(default)]
    pub(in crate::graph) tracing: Tracing,
    pub(in crate::graph) started_at: Timestamp,
    pub(in crate::graph) input_bytes: usize,
}

impl Facts {
    pub(in crate::graph) fn new(start: &crate::graph::protocol::Start, started_at: Timestamp) -> Self {
        Self {
            v: VERSION,
            workflow: start.workflow.clone(),
            version: start.version,
            pins: start.pins.clone(),
            parent: start.parent.clone(),
            tracing: start.tracing,
            started_at,
            input_bytes: start.input.bytes(),
        }
    }

    /// The run at the top of the tree that `id` is in.
    pub(in crate::graph) fn root(&self, id: &str) -> Arc<str> {
        self.parent.as_ref().map_or_else(|| id.into(), |parent| parent.root.clone())
    }
}

/// How far a run is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::graph) struct Progress {
    pub(in crate::graph) status: RunStatus,
    /// The status with which it is in the list of runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    listed: Option<RunStatus>,
    /// How many tokens were made.
    pub(in crate::graph) tokens: u64,
    /// The last number that a token has, or will have: those of branches are set aside when their group is opened.
    pub(in crate::graph) last_token: TokenId,
    /// The last group instance opened.
    pub(in crate::graph) last_group: GroupId,
    /// What is active outside of every group.
    pub(in crate::graph) root: Branch,
    /// What is to be cancelled, or tidied up, before the run can end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::graph) sweeps: Vec<Sweep>,
    /// Steps put off to a later turn: the number of the next to be done, and of the next to be put off.
    pub(in crate::graph) steps: (u64, u64),
    /// Whether the run has asked itself for another turn.
    #[serde(default)]
    pub(in crate::graph) is_continued: bool,
    /// How it will have ended once everything is swept. Nothing any more when it has: see [`OUTCOME`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::graph) ending: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::graph) ended_at: Option<Timestamp>,
    /// Signals that nobody has waited for yet, and the number of the last one received.
    pub(in crate::graph) signals: (u64, u64),
    /// Callers that wait for the end.
    pub(in crate::graph) waiters: Waiters,
    /// Artifacts staged.
    pub(in crate::graph) artifacts: u64,
}

/// Callers that wait, by the numbers of the first and of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::graph) struct Waiters {
    pub(in crate::graph) first: u64,
    pub(in crate::graph) next: u64,
}

/// A group instance whose branches are to be tidied up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::graph) struct Sweep {
    pub(in crate::graph) group: GroupId,
    pub(in crate::graph) arrivals: AfterJoin,
    /// How many branches had neither arrived nor ended, less those swept. A branch that is as it began has no row to be found by.
    pub(in crate::graph) unsettled: u64,
    /// The first tokens of branches, among which those are: the next one to be looked at, and the one to stop before.
    pub(in crate::graph) first_tokens: (TokenId, TokenId),
    /// How many branches have arrived. Those from `next_arrival` on are still to be told of.
    pub(in crate::graph) arrived: u64,
    pub(in crate::graph) next_arrival: u64,
}

/// What becomes of the tokens that wait at the join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::graph) enum AfterJoin {
    /// The join has fired: they have done what they were for.
    Complete,
    /// It never will.
    Cancel,
}

impl AfterJoin {
    /// How those tokens have ended.
    pub(in crate::graph) fn status(self) -> Status {
        match self {
            Self::Complete => Status::Completed,
            Self::Cancel => Status::Cancelled,
        }
    }
}

impl Progress {
    /// How the run is to be listed from now on, if that is to change; `root` is the top of its tree.
    pub(in crate::graph) fn relisted(&mut self, facts: &Facts, root: &Arc<str>) -> Option<Listing> {
        let was = self.listed.replace(self.status);
        (was != self.listed).then(|| Listing {
            workflow: facts.workflow.clone(),
            version: facts.version,
            status: self.status.name(),
            was: was.map(RunStatus::name),
            parent: facts.parent.as_ref().map(|parent| parent.actor.name().into()),
            root: root.clone(),
            started_at: facts.started_at,
            ended_at: self.ended_at,
        })
    }

    /// Whether it is decided how the run ends, or has ended.
    pub(in crate::graph) fn is_ending(&self) -> bool {
        self.ending.is_some() || self.ended_at.is_some()
    }

    pub(in crate::graph) fn new() -> Self {
        Self {
            status: RunStatus::Running,
            listed: None,
            tokens: 0,
            last_token: TokenId(0),
            last_group: GroupId(0),
            root: Branch::default(),
            sweeps: Vec::new(),
            steps: (0, 0),
            is_continued: false,
            ending: None,
            ended_at: None,
            signals: (0, 0),
            waiters: Waiters::default(),
            artifacts: 0,
        }
    }
}

/// Reads the facts, if there is a run at all.
pub(in crate::graph) fn facts(storage: &dyn Storage) -> Result<Option<Facts>, TurnError> {
    let Some(facts) = decoded::<Facts>(storage, FACTS)? else { return Ok(None) };
    if facts.v == VERSION {
        Ok(Some(facts))
    } else {
        Err(TurnError::failed(format!("the run is stored in form {}, this version knows form {VERSION}", facts.v)))
    }
}

/// Reads the progress of a run that has facts.
pub(in crate::graph) fn progress(storage: &dyn Storage) -> Result<Progress, TurnError> {
    decoded(storage, PROGRESS)?.ok_or_else(|| TurnError::failed("the run's progress is missing from its storage"))
}

/// Reads the input of a run that has facts.
pub(in crate::graph) fn input(storage: &dyn Storage) -> Result<Json, TurnError> {
    storage.get(INPUT)?.ok_or_else(|| TurnError::failed("the run's input is missing from its storage"))
}

/// Reads a value.
pub(in crate::graph) fn decoded<T: serde::de::DeserializeOwned>(
    storage: &dyn Storage,
    key: &str,
) -> Result<Option<T>, TurnError> {
    storage
        .get(key)?
        .map(|json| json.decode().map_err(|source| TurnError::Stored { key: key.to_owned(), source }))
        .transpose()
}
