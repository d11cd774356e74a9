//! Runs that are over, removed: one by name, or all that ended long enough ago.
//!
//! Owns when a tree of runs is over, and the pace of the second. The removing itself is in [`crate::runner`].

use std::sync::Arc;
use std::time::Duration;

use steadfast_core::graph::{KIND, RUN_KEY};
use steadfast_core::ids::{ActorId, Sequence};
use steadfast_core::limits;
use steadfast_core::time::Timestamp;
use steadfast_store::rows::{RunFilter, RunRow};
use steadfast_store::{Reader, StoreError};
use tokio::task::JoinSet;

use super::{Graphs, RunError};
use crate::engine_message::{Below, RemovalOrder};
use crate::threads::clock;

/// What became of a run that was to be purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purged {
    /// It is gone. Runs below it follow.
    Now,
    /// There is none of this id, or not any more.
    Before,
}

/// Trees that are removed at the same time.
const AT_ONCE: usize = 16;

/// How often it is looked for runs whose time is over: a tenth of that time, within these.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(100);
const LOOK_EVERY_MAX: Duration = Duration::from_secs(60);

impl Graphs {
    /// Removes a run that is over, with its whole tree: histories, artifacts, dead letters, remembered ids of requests. Its id is free afterwards.
    /// Once it has begun it goes on by itself, also after a crash.
    pub async fn purge(&self, run: &str) -> Result<Purged, RunError> {
        let actor = self.actor(run)?;
        let (engine, of) = (self.engine.clone(), actor.clone());
        let found = tokio::task::spawn_blocking(move || engine.with_reader(|reader| order_to_purge(reader, &of))).await;
        let found = found.map_err(|fault| RunError::Unreadable { message: fault.to_string() })?;
        let Some(order) = found.map_err(RunError::Store)?? else { return Ok(Purged::Before) };
        self.engine.remove(&actor, order).await?;
        Ok(Purged::Now)
    }

    /// Removes every run that has ended longer ago than `kept`, for as long as it is polled.
    pub async fn retain(&self, kept: Duration) {
        let every = (kept / 10).clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX);
        loop {
            match self.purge_ended_before(kept).await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "runs were removed, because their time was over"),
                Err(error) => tracing::warn!(%error, "runs whose time is over cannot be removed now"),
            }
            tokio::time::sleep(every).await;
        }
    }

    async fn purge_ended_before(&self, kept: Duration) -> Result<usize, RunError> {
        let kept_ms = u64::try_from(kept.as_millis()).unwrap_or(u64::MAX);
        let Some(until) = clock().0.checked_sub(kept_ms).map(Timestamp) else { return Ok(0) };
        let (mut after, mut count) = ((Timestamp(0), Sequence(0)), 0);
        loop {
            let page = self.read_off(move |reader| reader.ended_runs(after, until, AT_ONCE)).await?;
            let Some(last) = page.last() else { return Ok(count) };
            after = (last.ended_at.unwrap_or(until), last.number);
            let mut purging = JoinSet::new();
            for row in page {
                let this = self.clone();
                purging.spawn(async move { this.purge(row.actor.name()).await });
            }
            for purged in purging.join_all().await {
                match purged {
                    Ok(Purged::Now) => count += 1,
                    // Looked at again next time.
                    Ok(Purged::Before) | Err(RunError::NotOver { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    async fn read_off<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, RunError> {
        let engine = self.engine.clone();
        let read = tokio::task::spawn_blocking(move || engine.with_reader(read).and_then(|read| read)).await;
        read.map_err(|fault| RunError::Unreadable { message: fault.to_string() })?.map_err(RunError::Store)
    }
}

/// The order by which a run goes with its whole tree, if there is one and all of it is over.
pub fn order_to_purge(reader: &dyn Reader, run: &ActorId) -> Result<Option<RemovalOrder>, RunError> {
    let named = run.name();
    match over(reader, run, named).map_err(RunError::Store)? {
        Over::Gone => Ok(None),
        Over::Yes(number) => {
            let below = Below { root: named.into(), prefix: prefix_of(named) };
            Ok(Some(RemovalOrder { number: Some(number), first: Some(RUN_KEY.into()), below: Some(below) }))
        }
        Over::Not { by } => Err(RunError::NotOver { run: named.to_owned(), by }),
        Over::Part { root } => Err(RunError::NotATop { run: named.to_owned(), root: root.to_string() }),
    }
}

/// Whether a tree of runs is over.
enum Over {
    /// There is none.
    Gone,
    /// It is; the number of its top.
    Yes(Sequence),
    /// This one of it is not.
    Not { by: String },
    /// It is no tree, but a part of this one.
    Part { root: Arc<str> },
}

/// Looks at a tree as it is on disk. What has happened there was caused by what is there too; so in a tree in which every run has ended, and for which no message
/// waits that would begin one, nothing happens any more.
fn over(reader: &dyn Reader, actor: &ActorId, run: &str) -> Result<Over, StoreError> {
    let Some(top) = reader.run(actor)? else { return Ok(Over::Gone) };
    if top.parent.is_some() {
        return Ok(Over::Part { root: top.root });
    }
    let not = |row: &RunRow| Over::Not { by: row.actor.name().to_owned() };
    if top.ended_at.is_none() {
        return Ok(not(&top));
    }
    // Messages first: one that is consumed in between has left its run in the list.
    let waiting = reader.actors_with_messages(&prefix_of(run), limits::PAGE_ROWS_MAX)?;
    for child in waiting {
        if reader.run(&child)?.is_none() {
            return Ok(Over::Not { by: child.name().to_owned() });
        }
    }
    let (filter, mut before) = (RunFilter { root: Some(run), ..RunFilter::default() }, None);
    loop {
        let page = reader.runs(filter, before, limits::PAGE_ROWS_MAX)?;
        if let Some(active) = page.iter().find(|row| row.ended_at.is_none()) {
            return Ok(not(active));
        }
        match page.last() {
            Some(last) if page.len() == limits::PAGE_ROWS_MAX => before = Some(last.number),
            Some(_) | None => return Ok(Over::Yes(top.number)),
        }
    }
}

/// How the ids of all runs below a run begin.
fn prefix_of(run: &str) -> Arc<str> {
    format!("{KIND}:{run}.").into()
}
