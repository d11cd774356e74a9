//! What a run can be told and asked, and what it answers.
//!
//! Owns the forms of requests and messages. They are stored while they wait, so they carry a version: [`Letter`] is wrapped in [`Versioned`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::token::TokenId;
use crate::definition::DefinitionKind;
use crate::failure::Failure;
use crate::ids::ActorId;
use crate::json::{Json, JsonError};
use crate::time::Timestamp;

/// The versions of definitions that a whole tree of runs uses, by `kind/name`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pins(pub Arc<BTreeMap<String, u32>>);

impl Pins {
    /// Under which a definition is kept.
    #[must_use]
    pub fn key(kind: DefinitionKind, name: &str) -> String {
        format!("{}/{name}", kind.name())
    }
}

/// A request from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Begin. The input was checked before.
    Start(Start),
    /// Answer when the run has ended: an [`Outcome`].
    Wait,
    /// End it.
    Cancel {
        /// Why.
        reason: Option<String>,
    },
    /// Start nothing new.
    Pause,
    /// Go on.
    Resume,
    /// Take up again what is stuck: an answer of the form [`Recovered`].
    Recover {
        /// Tokens, each with its attempt, whose tasks are not there.
        lost: Vec<(TokenId, u32)>,
    },
    /// A signal.
    Signal {
        /// Its name.
        name: String,
        /// What it brings.
        payload: Json,
    },
}

/// A message between runs, or of a run to itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Letter {
    /// Begin, as part of another run.
    Start(Start),
    /// A child has ended.
    ChildEnded {
        /// The parent's token that waits for it.
        token: TokenId,
        /// Of which attempt.
        attempt: u32,
        /// How it ended.
        outcome: Outcome,
    },
    /// The parent has no use for this run any more.
    Cancel {
        /// Why.
        reason: Option<String>,
    },
    /// There is more to do than one turn may.
    Continue,
}

/// A message with the version of its form.
#[derive(Debug, Serialize, Deserialize)]
pub struct Versioned {
    v: u32,
    letter: Letter,
}

/// What a run begins with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Which workflow.
    pub workflow: Arc<str>,
    /// Which version of it.
    pub version: u32,
    /// The versions of all that it names, directly or not.
    pub pins: Pins,
    /// What it is given.
    pub input: Json,
    /// The run that asked for it; nobody's when it came from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Whether its decisions become events.
    #[serde(default)]
    pub tracing: Tracing,
}

/// Whether decisions become events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tracing {
    /// No.
    #[default]
    Off,
    /// Yes.
    On,
}

/// The run that waits for another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// Who.
    pub actor: ActorId,
    /// Which of its tokens.
    pub token: TokenId,
    /// In which attempt.
    pub attempt: u32,
    /// The run at the top of the tree.
    pub root: Arc<str>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With this output.
    Completed(Json),
    /// With this error.
    Failed(Failure),
    /// It was called off.
    Cancelled {
        /// Why.
        reason: Option<String>,
    },
}

/// How a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Under way.
    Running,
    /// Under way, but nothing new is begun.
    Paused,
    /// Over.
    Completed,
    /// Over, with an error.
    Failed,
    /// Over, because somebody wanted it so.
    Cancelled,
}

/// The answer to [`Command::Start`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Started {
    /// It has begun.
    Created {
        /// When.
        started_at: Timestamp,
    },
    /// There is a run of this id with the same workflow and input.
    Existing,
    /// There is a run of this id with another workflow or input.
    Conflict {
        /// Its workflow.
        workflow: Arc<str>,
    },
}

/// The answer to [`Command::Wait`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waited {
    /// The run has ended.
    Ended(Outcome),
    /// It has not, and others want to wait too.
    AskAgain,
    /// There is no such run.
    NotFound,
}

/// The answer to [`Command::Recover`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recovered {
    /// How the run is.
    pub controlled: Controlled,
    /// Retries that were begun before their time.
    pub retried: u64,
    /// Tasks that were dispatched again because they were lost.
    pub dispatched: u64,
}

/// The answer to a control: what the run was asked to be, and what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controlled {
    /// It is so now, or was before.
    Done(RunStatus),
    /// There is no such run.
    NotFound,
    /// It is over.
    Ended(RunStatus),
}

/// The version of the forms that are written now.
const VERSION: u32 = 1;

impl Letter {
    /// As it is sent.
    #[must_use]
    pub fn versioned(self) -> Versioned {
        Versioned { v: VERSION, letter: self }
    }

    /// As it arrives.
    pub fn read(body: &Json) -> Result<Self, JsonError> {
        let Versioned { v, letter } = body.decode()?;
        if v == VERSION {
            Ok(letter)
        } else {
            Err(JsonError::new(format!("a message to a run has form {v}, known is {VERSION}")))
        }
    }
}

impl RunStatus {
    /// Whether nothing happens to the run any more.
    #[must_use]
    pub fn is_over(self) -> bool {
        match self {
            Self::Running | Self::Paused => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }

    /// Its name, as stored and shown.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Outcome {
    /// The status of a run that ended so.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        match self {
            Self::Completed(_) => RunStatus::Completed,
            Self::Failed(_) => RunStatus::Failed,
            Self::Cancelled { .. } => RunStatus::Cancelled,
        }
    }
}
