//! A run as outsiders see it.
//!
//! Owns the form in which a run, its tokens and its events are shown. Reads rows that are on disk; never takes part in a turn.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::protocol::{Outcome, Parent, Pins, RunStatus};
use super::state::artifacts::{ARTIFACTS, Artifact};
use super::state::groups::{ARRIVALS, CLOSED, Closed};
use super::state::tokens::{ALIKE, Alike, TOKENS, after_arrival};
use super::state::{context, run};
use super::token::{Status, Token, TokenId};
use crate::event::Event;
use crate::failure::Failure;
use crate::json::Json;
use crate::limits;
use crate::time::Timestamp;
use crate::turn::{Storage, TurnError, prefix_end};

pub use super::state::artifacts::ArtifactStatus;

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunView {
    /// Its id.
    pub id: String,
    /// Its workflow.
    pub workflow: Arc<str>,
    /// The version of it.
    pub version: u32,
    /// How it is.
    pub status: RunStatus,
    /// What it was given.
    pub input: Json,
    /// What it gave.
    pub output: Option<Json>,
    /// Why it failed.
    pub error: Option<Failure>,
    /// Why it was cancelled, if whoever did so said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it began.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// The run that started it.
    pub parent: Option<String>,
    /// The run at the top of its tree.
    pub root: Arc<str>,
    /// The versions of all that it names, directly or not, by `kind/name`.
    pub versions: Pins,
    /// How many tokens it has made.
    pub token_count: u64,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenView {
    /// Its number.
    pub id: TokenId,
    /// Where it is.
    pub node: Arc<str>,
    /// How it is.
    pub status: Status,
    /// The token that it comes from.
    pub parent: Option<TokenId>,
    /// The branches it is inside: `root/answers:0`.
    pub path: Arc<str>,
    /// The innermost of them.
    pub branch: Option<BranchView>,
    /// Which attempt of its node this is, from 1.
    pub attempt: u32,
    /// When it was made.
    pub created_at: String,
    /// When its status changed last.
    pub updated_at: String,
}

/// A token's branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BranchView {
    /// Which, from 0.
    pub index: u64,
    /// Of how many.
    pub total: u64,
}

/// An artifact.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArtifactView {
    /// Its name.
    pub name: String,
    /// Whether it is final.
    pub status: ArtifactStatus,
    /// The node whose task handed it over.
    pub node: Arc<str>,
    /// What it is.
    pub content: Json,
}

/// An event of a run, together with what all events of a run have in common.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventView {
    /// Its place in the run's history: 1, 2, 3, …
    pub sequence: u64,
    /// When it happened.
    pub at: String,
    /// What happened.
    #[serde(rename = "type")]
    pub event_type: Cow<'static, str>,
    /// The run.
    pub run_id: String,
    /// The run at the top of its tree.
    pub root_id: Arc<str>,
    /// The run's workflow.
    pub workflow: Arc<str>,
    /// The version of it.
    pub version: u32,
    /// The facts.
    pub data: Json,
}

/// What all events of a run have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOrigin {
    /// The run.
    pub id: String,
    /// The run at the top of its tree.
    pub root: Arc<str>,
    /// Its workflow.
    pub workflow: Arc<str>,
    /// The version of it.
    pub version: u32,
}

/// What all events of a run have in common, if there is one of this id.
pub fn origin(storage: &dyn Storage, id: &str) -> Result<Option<RunOrigin>, TurnError> {
    let of = |facts: run::Facts| RunOrigin {
        id: id.to_owned(),
        root: facts.root(id),
        workflow: facts.workflow,
        version: facts.version,
    };
    Ok(run::facts(storage)?.map(of))
}

/// Who asked for a run, if a run did.
pub fn caller(storage: &dyn Storage) -> Result<Option<Parent>, TurnError> {
    Ok(run::facts(storage)?.and_then(|facts| facts.parent))
}

/// A run, if there is one of this id.
pub fn run(storage: &dyn Storage, id: &str) -> Result<Option<RunView>, TurnError> {
    let Some(facts) = run::facts(storage)? else { return Ok(None) };
    let progress = run::progress(storage)?;
    // Rows are read one by one: an outcome that came after the progress was read is not yet part of it.
    let outcome = match progress.ended_at {
        Some(_) => run::decoded::<Outcome>(storage, run::OUTCOME)?,
        None => None,
    };
    let (output, error, reason) = match outcome {
        None => (None, None, None),
        Some(Outcome::Completed(output)) => (Some(output), None, None),
        Some(Outcome::Failed(error)) => (None, Some(error), None),
        Some(Outcome::Cancelled { reason }) => (None, None, reason),
    };
    Ok(Some(RunView {
        id: id.to_owned(),
        version: facts.version,
        status: progress.status,
        input: run::input(storage)?,
        output,
        error,
        reason,
        started_at: facts.started_at.rfc3339(),
        ended_at: progress.ended_at.map(Timestamp::rfc3339),
        parent: facts.parent.as_ref().map(|parent| parent.actor.name().to_owned()),
        root: facts.root(id),
        workflow: facts.workflow,
        versions: facts.pins,
        token_count: progress.tokens,
    }))
}

/// All tokens of a run that are written so far, by their numbers. Those of branches are set aside when their group is opened.
pub fn tokens(storage: &dyn Storage) -> Result<Vec<TokenView>, TurnError> {
    let alike: Vec<(String, Alike)> = all(storage, ALIKE)?;
    let mut tokens: Vec<Token> = all(storage, TOKENS)?.into_iter().map(|(_, token)| token).collect();
    /// What of an arrival is shown: what it brings may be large.
    #[derive(Deserialize)]
    struct Arrived {
        token: Token,
    }
    let at_joins: Vec<(String, Arrived)> = all(storage, ARRIVALS)?;
    // Rows are read one by one, so how a group instance was closed is read after those that have arrived in it.
    let closed: BTreeMap<String, Closed> = all(storage, CLOSED)?.into_iter().collect();
    let shared = sharing_rows(&alike, &tokens, at_joins.iter().map(|(_, arrived)| &arrived.token));
    tokens.extend(shared);
    for (key, Arrived { mut token }) in at_joins {
        let closed = key.split_once('/').and_then(|(group, _)| closed.get(group));
        if let Some(Closed { arrivals, at }) = closed {
            token.change(arrivals.status(), *at)?;
        }
        tokens.push(token);
    }
    tokens.sort_unstable_by_key(|token| token.id);
    Ok(tokens.into_iter().map(TokenView::from).collect())
}

/// Tokens that have no row of their own, as they are with these in their own rows and these at joins.
fn sharing_rows<'a>(
    alike: &[(String, Alike)],
    with_rows: &[Token],
    at_joins: impl Iterator<Item = &'a Token>,
) -> Vec<Token> {
    let with_rows: BTreeSet<TokenId> = with_rows.iter().map(|token| token.id).collect();
    let arrived: BTreeMap<TokenId, &Token> =
        at_joins.filter_map(|token| token.parent.map(|parent| (parent, token))).collect();
    let all = alike.iter().flat_map(|(_, alike)| alike.all()).filter(|token| !with_rows.contains(&token.id));
    let as_it_is = |token: Token| {
        let arrived = arrived.get(&token.id).copied();
        after_arrival(token, arrived)
    };
    all.map(as_it_is).collect()
}

/// The run's `state` and `output`, outside of all branches, by their full names.
pub fn context(storage: &dyn Storage) -> Result<BTreeMap<String, Json>, TurnError> {
    Ok(all(storage, context::CONTEXT)?.into_iter().collect())
}

/// The run's artifacts.
pub fn artifacts(storage: &dyn Storage) -> Result<Vec<ArtifactView>, TurnError> {
    let is_completed = matches!(run::decoded::<Outcome>(storage, run::OUTCOME)?, Some(Outcome::Completed(_)));
    let status = if is_completed { ArtifactStatus::Committed } else { ArtifactStatus::Staged };
    let view = |(name, artifact): (String, Artifact)| {
        let Artifact { node, content, .. } = artifact;
        Ok(ArtifactView { name, status, node, content: content.to_json()? })
    };
    all(storage, ARTIFACTS)?.into_iter().map(view).collect()
}

impl EventView {
    /// An event of `run`.
    #[must_use]
    pub fn new(run: &RunOrigin, event: Event) -> Self {
        Self {
            sequence: event.sequence,
            at: event.at.rfc3339(),
            event_type: event.event_type,
            run_id: run.id.clone(),
            root_id: run.root.clone(),
            workflow: run.workflow.clone(),
            version: run.version,
            data: event.data,
        }
    }
}

impl From<&RunView> for RunOrigin {
    fn from(run: &RunView) -> Self {
        Self { id: run.id.clone(), root: run.root.clone(), workflow: run.workflow.clone(), version: run.version }
    }
}

impl From<Token> for TokenView {
    fn from(token: Token) -> Self {
        let branch = token.branch().map(|place| BranchView { index: place.index, total: place.total });
        let Token { id, node, status, parent, path, attempt, created_at, updated_at, .. } = token;
        let (created_at, updated_at) = (created_at.rfc3339(), updated_at.rfc3339());
        Self { id, node, status, parent, path, branch, attempt, created_at, updated_at }
    }
}

/// Every row whose key begins with `prefix`, under the rest of its key.
fn all<T: serde::de::DeserializeOwned>(storage: &dyn Storage, prefix: &str) -> Result<Vec<(String, T)>, TurnError> {
    let end = prefix_end(prefix);
    let mut found = Vec::new();
    let mut from: Bound<Arc<str>> = Bound::Included(prefix.into());
    loop {
        let rows = storage.scan(from.as_ref().map(|key| &**key), Bound::Excluded(&end), limits::SCAN_ROWS_MAX)?;
        let is_last = rows.len() < limits::SCAN_ROWS_MAX;
        for (key, stored) in rows {
            let value = stored.decode().map_err(|source| TurnError::Stored { key: key.to_string(), source })?;
            found.push((key[prefix.len()..].to_owned(), value));
            from = Bound::Excluded(key);
        }
        if is_last {
            return Ok(found);
        }
    }
}
