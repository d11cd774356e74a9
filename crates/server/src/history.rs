//! Reading a history piece by piece: that of a run, of a tree, of everything.
//!
//! Owns the place up to which was read, and how places are written. Both the pages of `routes/events.rs` and the streams of `stream.rs` are
//! made of this. Never waits. Start reading at [`History::next`].

use std::sync::Arc;

use steadfast::Watched;
use steadfast::graph::{Graphs, RunError};
use steadfast_api::v1::events::Event;
use steadfast_core::graph::KIND;
use steadfast_core::graph::protocol::RunStatus;
use steadfast_core::graph::view::RunView;
use steadfast_core::ids::ActorId;
use steadfast_store::rows::{HistoryPlace, RunFilter};

use crate::error::Refusal;
use crate::request::{place_number, wrong_cursor};
use crate::{limits, wire};

/// A history, and how far it was read.
pub(crate) enum History {
    /// That of one run, after the event of this number.
    Run { run: Box<RunView>, after: u64 },
    /// Those of a tree, or all.
    Many { root: Option<Arc<str>>, after: HistoryPlace },
}

/// A piece of a history.
pub(crate) struct Piece {
    pub(crate) events: Vec<Event>,
    pub(crate) rest: Rest,
}

/// What is behind a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    Perhaps,
}

impl History {
    /// The history of a run after a place, or from its beginning.
    pub(crate) fn of_run(run: RunView, after: Option<&str>) -> Result<Self, Refusal> {
        let read = |text: &str| place_number(text, 10).ok_or_else(|| wrong_cursor("after", text));
        Ok(Self::Run { run: Box::new(run), after: after.map(read).transpose()?.unwrap_or(0) })
    }

    /// The history of a tree, or of everything, after a place or from its beginning.
    pub(crate) fn of_many(root: Option<Arc<str>>, after: Option<&str>) -> Result<Self, Refusal> {
        let read = |text: &str| {
            let parts = text.split_once('.');
            let place = parts.and_then(|(part, index)| Some((place_number(part, 10)?, place_number(index, 10)?)));
            place.map(|(part, index)| HistoryPlace { part, index }).ok_or_else(|| wrong_cursor("after", text))
        };
        Ok(Self::Many { root, after: after.map(read).transpose()?.unwrap_or_default() })
    }

    /// What to watch to learn of more.
    pub(crate) fn watched(&self) -> Result<Watched, Refusal> {
        Ok(match self {
            Self::Run { run, .. } => {
                Watched::Actor(ActorId::new(KIND, &run.id).map_err(|error| Refusal::internal(&error))?)
            }
            Self::Many { root: Some(root), .. } => Watched::Tree(root.clone()),
            Self::Many { root: None, .. } => Watched::Everything,
        })
    }

    /// The place up to which was read, as it is written.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Run { after, .. } => after.to_string(),
            Self::Many { after, .. } => wire::place(*after),
        }
    }

    /// The next events that `is_wanted`, at most `limit`.
    pub(crate) fn next(
        &mut self,
        graphs: &Graphs,
        limit: usize,
        is_wanted: fn(&Event) -> bool,
    ) -> Result<Piece, Refusal> {
        let mut events = Vec::new();
        for _ in 0..limits::PAGES_READ_MAX {
            let before = self.place();
            let found = self.read(graphs, limit - events.len())?;
            events.extend(found.into_iter().filter(is_wanted));
            if self.place() == before {
                return Ok(Piece { events, rest: Rest::Nothing });
            }
            if events.len() == limit {
                break;
            }
        }
        Ok(Piece { events, rest: Rest::Perhaps })
    }

    fn read(&mut self, graphs: &Graphs, limit: usize) -> Result<Vec<Event>, Refusal> {
        match self {
            Self::Run { run, after } => {
                let found = graphs.events(run, *after, limit)?;
                *after = found.last().map_or(*after, |event| event.sequence);
                found.into_iter().map(|event| wire::event(None, event)).collect()
            }
            Self::Many { root, after } => {
                let (found, last) = graphs.history(root.as_deref(), *after, limit)?;
                *after = last;
                found.into_iter().map(|(place, event)| wire::event(Some(place), event)).collect()
            }
        }
    }

    /// Whether nothing is behind the place up to which was read.
    pub(crate) fn has_nothing_more(&self, graphs: &Graphs) -> Result<bool, RunError> {
        match self {
            Self::Run { run, after } => graphs.events(run, *after, 1).map(|found| found.is_empty()),
            Self::Many { root, after } => graphs.history(root.as_deref(), *after, 1).map(|(_, last)| last == *after),
        }
    }

    /// Whether nothing will be added any more.
    pub(crate) fn is_over(&self, graphs: &Graphs) -> Result<bool, RunError> {
        match self {
            Self::Run { run, .. } => is_over(graphs, run.status, &run.id),
            Self::Many { root: Some(root), .. } => {
                // What is below a run that has ended is called off by messages, and ends after it.
                let is_under_way = |status: RunStatus| {
                    let filter = RunFilter { root: Some(root), status: Some(status.name()), ..RunFilter::default() };
                    graphs.list(filter, None, 1).map(|listed| !listed.runs.is_empty())
                };
                Ok(is_over(graphs, RunStatus::Running, root)?
                    && !is_under_way(RunStatus::Running)?
                    && !is_under_way(RunStatus::Paused)?)
            }
            Self::Many { root: None, .. } => Ok(false),
        }
    }
}

/// Whether a run is over, which was once in status `known`.
fn is_over(graphs: &Graphs, known: RunStatus, run: &str) -> Result<bool, RunError> {
    Ok(known.is_over() || graphs.run(run)?.is_none_or(|run| run.status.is_over()))
}
