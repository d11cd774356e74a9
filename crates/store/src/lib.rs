//! Bytes on disk: one narrow trait, and the stores behind it.
//!
//! Owns the rows ([`rows`]), the unit of writing ([`batch::Batch`]) and what every store must do ([`Store`], proved by
//! [`conformance`]). Never knows what an actor does with its rows. Start reading at [`Store`].

pub mod batch;
pub mod conformance;
pub mod memory;
mod number;
pub mod rows;
pub mod sqlite;

use std::ops::Bound;

use steadfast_core::ids::{ActorId, RequestId, Sequence, Shard, TaskId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::Entries;

use batch::Batch;
use rows::{
    AlarmRow, DeadLetterRow, EventRow, Head, HistoryPlace, MessageRow, RequestRow, RunCount, RunFilter, RunRow, TaskRow,
};

/// A place that keeps rows through crashes and power loss.
///
/// One committer writes; any number of readers read what is committed.
pub trait Store: Send + Sync {
    /// Begins a life of the engine on this store and returns its number, which is durable and was never given before.
    fn begin_boot(&self) -> Result<u32, StoreError>;

    /// Writes all of the batch, durably, or nothing of it.
    ///
    /// After an error the caller must assume nothing: the batch is not visible now, but after a crash it may turn out to be
    /// there (an fsync that failed may have reached the disk).
    fn commit(&self, batch: &Batch) -> Result<(), StoreError>;

    /// Writes something durable and without meaning: whether the store is well again.
    fn probe(&self) -> Result<(), StoreError>;

    /// A view for one thread. Each call on it sees every commit that ended before the call began.
    fn reader(&self) -> Result<Box<dyn Reader>, StoreError>;
}

/// Reads committed rows. Every list is bounded by `limit` and costs what it returns, not what exists.
pub trait Reader: Send {
    /// What is known of an actor before its storage is read.
    fn head(&self, actor: &ActorId) -> Result<Head, StoreError>;

    /// One value of an actor's storage.
    fn get(&self, actor: &ActorId, key: &str) -> Result<Option<Json>, StoreError>;

    /// Entries of an actor's storage within the bounds, in order of their keys.
    fn scan(&self, actor: &ActorId, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, StoreError>;

    /// Messages waiting in a shard, ordered by actor and arrival, after the given one.
    fn messages(
        &self,
        shard: Shard,
        after: Option<(&ActorId, Sequence)>,
        limit: usize,
    ) -> Result<Vec<MessageRow>, StoreError>;

    /// One waiting message.
    fn message(&self, actor: &ActorId, sequence: Sequence) -> Result<Option<MessageRow>, StoreError>;

    /// Alarms of a shard up to and including `until`, ordered by time and the text of the actor's id, after the given
    /// time and text (which need not be an actor's).
    fn alarms(
        &self,
        shard: Shard,
        after: (Timestamp, &str),
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<AlarmRow>, StoreError>;

    /// Unsettled tasks of a shard in order of their dispatch, after the given one.
    fn tasks(&self, shard: Shard, after: Option<Sequence>, limit: usize) -> Result<Vec<TaskRow>, StoreError>;

    /// Unsettled tasks whose executor is `worker:<queue>`, of all shards, in order of their dispatch, after the given one.
    fn tasks_of_workers(&self, queue: &str, after: Option<Sequence>, limit: usize) -> Result<Vec<TaskRow>, StoreError>;

    /// One unsettled task.
    fn task(&self, actor: &ActorId, task: &TaskId) -> Result<Option<TaskRow>, StoreError>;

    /// A remembered request.
    fn request(&self, actor: &ActorId, request: &RequestId) -> Result<Option<RequestRow>, StoreError>;

    /// Requests of a shard whose memory ended before `now`, earliest first.
    fn expired_requests(&self, shard: Shard, now: Timestamp, limit: usize) -> Result<Vec<RequestRow>, StoreError>;

    /// An actor's history after the given place.
    fn events(&self, actor: &ActorId, after: u64, limit: usize) -> Result<Vec<EventRow>, StoreError>;

    /// What was committed of all histories, or of those of one tree, in that order after the given place. `root` is the run at the top
    /// of the tree.
    fn history(
        &self,
        root: Option<&str>,
        after: HistoryPlace,
        limit: usize,
    ) -> Result<Vec<(HistoryPlace, EventRow)>, StoreError>;

    /// Runs, the newest first, before the one of the given number.
    fn runs(&self, filter: RunFilter<'_>, before: Option<Sequence>, limit: usize) -> Result<Vec<RunRow>, StoreError>;

    /// How an actor is listed.
    fn run(&self, actor: &ActorId) -> Result<Option<RunRow>, StoreError>;

    /// Runs at the top of a tree that ended up to and including `until`, ordered by their end and number, after the given ones.
    fn ended_runs(
        &self,
        after: (Timestamp, Sequence),
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<RunRow>, StoreError>;

    /// How many rows of an actor a [`batch::Removal`] would take, as far as `limit`.
    fn rows_of(&self, actor: &ActorId, limit: usize) -> Result<usize, StoreError>;

    /// Actors whose ids begin with `prefix` and for whom messages wait.
    fn actors_with_messages(&self, prefix: &str, limit: usize) -> Result<Vec<ActorId>, StoreError>;

    /// Actors whose ids begin with `prefix` and who have dead letters.
    fn actors_with_dead_letters(&self, prefix: &str, limit: usize) -> Result<Vec<ActorId>, StoreError>;

    /// How many runs there are, by workflow and status.
    fn run_counts(&self) -> Result<Vec<RunCount>, StoreError>;

    /// Dead letters of a shard in order of their ids, after the given one.
    fn dead_letters(
        &self,
        shard: Shard,
        after: Option<Sequence>,
        limit: usize,
    ) -> Result<Vec<DeadLetterRow>, StoreError>;
}

/// Why a store did not do what was asked. Says what a person can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no room.
    #[error("no space left for the store: {0}; free some space, the engine goes on by itself")]
    Full(String),
    /// It may not be written.
    #[error("the store cannot be written: {0}; make the file and its folder writable, the engine goes on by itself")]
    ReadOnly(String),
    /// Somebody else holds it longer than we wait.
    #[error("the store is held by another program: {0}; close it, the engine goes on by itself")]
    Busy(String),
    /// Another process runs on it, as after its lock file was deleted. Whoever came last goes on.
    #[error("another process has opened the store since ({0}); stop this one")]
    TakenOver(String),
    /// What it holds is not what was written.
    #[error("the store is damaged: {0}; stop, keep a copy of the file, and restore the last backup")]
    Damaged(String),
    /// The disk or the system failed.
    #[error("the store failed: {0}")]
    Failed(String),
}
