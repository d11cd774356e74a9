//! A run as outsiders see it.
//!
//! Owns the form in which a run, its tokens and its events are shown. Reads rows that are on disk; never takes part in a turn.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::protocol::{Outcome, Parent, Pins, RunStatus};
use super::state::artifacts::{ARTIFACTS, Artifact};
use super::state::groups::{ARRIVALS, Closed, arrival_key, closed_key};
use super::state::walk::{read, window};
use super::state::{TOKEN_NUMBER_MAX, context, run};
use super::token::{GroupId, Status, Token, TokenId};
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

/// A place among the tokens of a run. Those at joins come behind all others, by group instance and branch: there is no way to them by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenPlace {
    /// Behind the token of this number.
    After(TokenId),
    /// Before all tokens at joins.
    Joins,
    /// Behind the token with which a branch has arrived at its join.
    AfterArrival(GroupId, u64),
}

/// Numbers of tokens that are looked at together. Some may be unused, or those of tokens at joins.
const TOKENS_PER_LOOK: u64 = 1_000;

/// All tokens of a run that are written so far, by their numbers. Those of branches are set aside when their group is opened.
pub fn tokens(storage: &dyn Storage) -> Result<Vec<TokenView>, TurnError> {
    let (mut tokens, mut place) = (Vec::new(), Some(TokenPlace::default()));
    while let Some(from) = place {
        let (page, next) = tokens_page(storage, from, limits::SCAN_ROWS_MAX)?;
        tokens.extend(page);
        place = next;
    }
    tokens.sort_unstable_by_key(|token: &TokenView| token.id);
    Ok(tokens)
}

/// Tokens of a run from a place on, at most `limit`, and the place behind them if there may be more.
pub fn tokens_page(
    storage: &dyn Storage,
    from: TokenPlace,
    limit: usize,
) -> Result<(Vec<TokenView>, Option<TokenPlace>), TurnError> {
    let mut tokens = Vec::new();
    let mut after_arrival = None;
    match from {
        TokenPlace::After(TokenId(mut after)) => {
            let last = run::progress(storage)?.last_token.0;
            while after < last && tokens.len() < limit {
                let until = last.min(after.saturating_add(TOKENS_PER_LOOK));
                tokens.extend(window(storage, TokenId(after + 1), TokenId(until))?);
                after = until;
            }
            tokens.truncate(limit);
            let shown = tokens.last().map(|token: &Token| token.id).filter(|_| tokens.len() == limit);
            if let Some(shown) = shown.filter(|shown| shown.0 < last) {
                let page = tokens.into_iter().map(TokenView::from).collect();
                return Ok((page, Some(TokenPlace::After(shown))));
            }
        }
        TokenPlace::Joins => {}
        TokenPlace::AfterArrival(group, index) => after_arrival = Some(arrival_key(group, index)),
    }
    let room = limit.saturating_sub(tokens.len());
    let (arrived, next) = at_joins(storage, after_arrival.as_deref(), room)?;
    tokens.extend(arrived);
    Ok((tokens.into_iter().map(TokenView::from).collect(), next))
}

/// Tokens at joins behind a key, and the place behind them if there may be more.
fn at_joins(
    storage: &dyn Storage,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Token>, Option<TokenPlace>), TurnError> {
    if limit == 0 {
        return Ok((Vec::new(), Some(TokenPlace::Joins)));
    }
    /// What of an arrival is shown: what it brings may be large.
    #[derive(Deserialize)]
    struct Arrived {
        token: Token,
    }
    let (from, end) = (after.map_or(Bound::Included(ARRIVALS), Bound::Excluded), prefix_end(ARRIVALS));
    let rows: Vec<(Arc<str>, Arrived)> = read(storage.scan(from, Bound::Excluded(&end), limit)?)?;
    let has_more = rows.len() == limit;
    // Rows are read one by one, so how a group instance was closed is read after those that have arrived in it.
    let mut closed: BTreeMap<GroupId, Option<Closed>> = BTreeMap::new();
    let (mut tokens, mut place) = (Vec::with_capacity(rows.len()), TokenPlace::Joins);
    for (key, Arrived { mut token }) in rows {
        let numbers = key[ARRIVALS.len()..].split_once('/');
        let numbers = numbers.and_then(|(group, index)| Some((GroupId(group.parse().ok()?), index.parse().ok()?)));
        let Some((group, index)) = numbers else { continue };
        if let Entry::Vacant(unknown) = closed.entry(group) {
            unknown.insert(run::decoded(storage, &closed_key(group))?);
        }
        if let Some(Some(Closed { arrivals, at })) = closed.get(&group) {
            token.change(arrivals.status(), *at)?;
        }
        tokens.push(token);
        place = TokenPlace::AfterArrival(group, index);
    }
    Ok((tokens, has_more.then_some(place)))
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

impl Default for TokenPlace {
    fn default() -> Self {
        Self::After(TokenId(0))
    }
}

impl std::fmt::Display for TokenPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::After(token) => write!(f, "{token}"),
            Self::Joins => f.write_str("joins"),
            Self::AfterArrival(group, index) => write!(f, "joins.{group}.{index}"),
        }
    }
}

impl std::str::FromStr for TokenPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let number = |digits: &str| digits.parse().ok().filter(|number| *number <= TOKEN_NUMBER_MAX).ok_or(());
        match text.split('.').collect::<Vec<_>>()[..] {
            ["joins"] => Ok(Self::Joins),
            ["joins", group, index] => Ok(Self::AfterArrival(GroupId(number(group)?), number(index)?)),
            [token] => number(token).map(|token| Self::After(TokenId(token))),
            _ => Err(()),
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
