//! Many runs at once: lists, counts, and the histories of trees; and the definitions that there are.
//!
//! Owns the paging. Everything is read from what is on disk, along an index in its order.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use serde::Serialize;
use steadfast_core::catalog;
use steadfast_core::definition::DefinitionKind;
use steadfast_core::graph::KIND;
use steadfast_core::graph::view::{self, EventView, RunOrigin};
use steadfast_core::ids::{ActorId, Sequence};
use steadfast_core::json::Json;
use steadfast_core::limits;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::{Storage, prefix_end};
use steadfast_store::rows::{HistoryPlace, RunCount, RunFilter, RunRow};

use super::storage::CommittedStorage;
use super::{Graphs, RunError};

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedRun {
    /// Its id.
    pub id: String,
    /// Its workflow.
    pub workflow: Arc<str>,
    /// The version of it.
    pub version: u32,
    /// How it is.
    pub status: Arc<str>,
    /// The run that started it.
    pub parent: Option<Arc<str>>,
    /// The run at the top of its tree.
    pub root: Arc<str>,
    /// When it began.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The newest first.
    pub runs: Vec<ListedRun>,
    /// Where the next part begins, if there may be one.
    pub next: Option<Sequence>,
}

/// A version of a definition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DefinitionVersion {
    /// Its kind.
    pub kind: DefinitionKind,
    /// Its name.
    pub name: String,
    /// Which version.
    pub version: u32,
    /// The document, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<Json>,
}

impl Graphs {
    /// Runs that fit, the newest first, before the given place; at most `limit` and at most [`limits::PAGE_ROWS_MAX`].
    pub fn list(&self, filter: RunFilter<'_>, before: Option<Sequence>, limit: usize) -> Result<Listed, RunError> {
        let limit = limit.clamp(1, limits::PAGE_ROWS_MAX);
        let found = self.engine.with_reader(|reader| reader.runs(filter, before, limit + 1)).and_then(|found| found);
        let mut rows = found.map_err(RunError::Store)?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|row| row.number);
        Ok(Listed { runs: rows.into_iter().map(ListedRun::from).collect(), next })
    }

    /// How many runs there are, by workflow and status.
    pub fn counts(&self) -> Result<Vec<RunCount>, RunError> {
        let counts = self.engine.with_reader(|reader| reader.run_counts()).and_then(|counts| counts);
        counts.map_err(RunError::Store)
    }

    /// Events of all runs, or of a tree, in the order in which they were committed, after the given place; at most `limit`. Also the last place
    /// looked at: entries of actors that are no runs are passed by.
    pub fn history(
        &self,
        root: Option<&str>,
        after: HistoryPlace,
        limit: usize,
    ) -> Result<(Vec<(HistoryPlace, EventView)>, HistoryPlace), RunError> {
        let events = self.engine.history(root, after, limit).map_err(RunError::Store)?;
        let last = events.last().map_or(after, |(place, _)| *place);
        let mut origins: HashMap<ActorId, Option<RunOrigin>> = HashMap::new();
        let mut found = Vec::with_capacity(events.len());
        for (place, event) in events.into_iter().filter(|(_, event)| event.actor.kind() == KIND) {
            if !origins.contains_key(&event.actor) {
                let origin = self.read(&event.actor, |storage| view::origin(storage, event.actor.name()))?;
                origins.insert(event.actor.clone(), origin);
            }
            if let Some(origin) = &origins[&event.actor] {
                found.push((place, EventView::new(origin, event)));
            }
        }
        Ok((found, last))
    }

    /// The newest versions of definitions of a kind, or of all, by name after the given one; at most `limit`.
    pub fn definitions(
        &self,
        kind: Option<DefinitionKind>,
        after: Option<(DefinitionKind, &str)>,
        limit: usize,
    ) -> Result<Vec<DefinitionVersion>, RunError> {
        let prefix = kind.map_or_else(|| catalog::NEWEST.to_owned(), |kind| catalog::newest_key(kind, ""));
        let end = prefix_end(&prefix);
        let after = after.map(|(kind, name)| catalog::newest_key(kind, name));
        self.read(&catalog::actor(), |storage: &CommittedStorage<'_>| {
            let from = after.as_deref().map_or(Bound::Included(&*prefix), Bound::Excluded);
            let rows = storage.scan(from, Bound::Excluded(&end), limit.min(limits::PAGE_ROWS_MAX))?;
            let mut found = Vec::with_capacity(rows.len());
            for (key, stored) in rows {
                let named = key[catalog::NEWEST.len()..].split_once('/');
                if let Some((kind, name)) = named.and_then(|(kind, name)| Some((DefinitionKind::named(kind)?, name))) {
                    let (name, version) = (name.to_owned(), stored.decode()?);
                    found.push(DefinitionVersion { kind, name, version, document: None });
                }
            }
            Ok(found)
        })
    }

    /// A definition in a version, or in its newest; with its document.
    pub fn definition(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: Option<u32>,
    ) -> Result<Option<DefinitionVersion>, RunError> {
        let Some(version) = version.map_or_else(|| self.newest(kind, name), |version| Ok(Some(version)))? else {
            return Ok(None);
        };
        self.read(&catalog::actor(), |storage| {
            let Some(stored) = storage.get(&catalog::version_key(kind, name, version))? else { return Ok(None) };
            let document = Some(catalog::document(&stored)?);
            Ok(Some(DefinitionVersion { kind, name: name.to_owned(), version, document }))
        })
    }
}

impl From<RunRow> for ListedRun {
    fn from(row: RunRow) -> Self {
        let RunRow { actor, workflow, version, status, parent, root, started_at, ended_at, .. } = row;
        let id = actor.name().to_owned();
        let (started_at, ended_at) = (started_at.rfc3339(), ended_at.map(Timestamp::rfc3339));
        Self { id, workflow, version, status, parent, root, started_at, ended_at }
    }
}
