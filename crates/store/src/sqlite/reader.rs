//! A view for one thread: a connection of its own that cannot write.
//!
//! Owns nothing but the connection; what each list means is said in [`super::tables`].

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use steadfast_core::ids::{ActorId, RequestId, Sequence, Shard, TaskId};
use steadfast_core::json::Json;
use steadfast_core::time::Timestamp;
use steadfast_core::turn::Entries;

use super::connection;
use super::lock::Lock;
use super::tables::{alarms, dead_letters, events, head, messages, removal, requests, runs, state, tasks};
use crate::rows::{
    AlarmRow, DeadLetterRow, EventRow, Head, HistoryPlace, MessageRow, RequestRow, RunCount, RunFilter, RunRow, TaskRow,
};
use crate::{Reader, StoreError};

pub(super) struct SqliteReader {
    connection: Connection,
    // The file is in use as long as somebody reads it.
    _lock: Arc<Lock>,
}

impl SqliteReader {
    pub(super) fn open(file: &Path, lock: Arc<Lock>) -> Result<Self, StoreError> {
        Ok(Self { connection: connection::reader(file)?, _lock: lock })
    }
}

impl Reader for SqliteReader {
    fn head(&self, actor: &ActorId) -> Result<Head, StoreError> {
        head::read(&self.connection, actor)
    }

    fn get(&self, actor: &ActorId, key: &str) -> Result<Option<Json>, StoreError> {
        state::get(&self.connection, actor, key)
    }

    fn scan(&self, actor: &ActorId, from: Bound<&str>, to: Bound<&str>, limit: usize) -> Result<Entries, StoreError> {
        state::scan(&self.connection, actor, from, to, limit)
    }

    fn messages(
        &self,
        shard: Shard,
        after: Option<(&ActorId, Sequence)>,
        limit: usize,
    ) -> Result<Vec<MessageRow>, StoreError> {
        messages::page(&self.connection, shard, after, limit)
    }

    fn message(&self, actor: &ActorId, sequence: Sequence) -> Result<Option<MessageRow>, StoreError> {
        messages::get(&self.connection, actor, sequence)
    }

    fn alarms(
        &self,
        shard: Shard,
        after: (Timestamp, &str),
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<AlarmRow>, StoreError> {
        alarms::page(&self.connection, shard, after, until, limit)
    }

    fn tasks(&self, shard: Shard, after: Option<Sequence>, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        tasks::page(&self.connection, shard, after, limit)
    }

    fn tasks_of_workers(&self, queue: &str, after: Option<Sequence>, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        tasks::page_of_workers(&self.connection, queue, after, limit)
    }

    fn task(&self, actor: &ActorId, task: &TaskId) -> Result<Option<TaskRow>, StoreError> {
        tasks::get(&self.connection, actor, task)
    }

    fn request(&self, actor: &ActorId, request: &RequestId) -> Result<Option<RequestRow>, StoreError> {
        requests::get(&self.connection, actor, request)
    }

    fn expired_requests(&self, shard: Shard, now: Timestamp, limit: usize) -> Result<Vec<RequestRow>, StoreError> {
        requests::expired(&self.connection, shard, now, limit)
    }

    fn events(&self, actor: &ActorId, after: u64, limit: usize) -> Result<Vec<EventRow>, StoreError> {
        events::page(&self.connection, actor, after, limit)
    }

    fn history(
        &self,
        root: Option<&str>,
        after: HistoryPlace,
        limit: usize,
    ) -> Result<Vec<(HistoryPlace, EventRow)>, StoreError> {
        events::history(&self.connection, root, after, limit)
    }

    fn runs(&self, filter: RunFilter<'_>, before: Option<Sequence>, limit: usize) -> Result<Vec<RunRow>, StoreError> {
        runs::page(&self.connection, filter, before, limit)
    }

    fn run(&self, actor: &ActorId) -> Result<Option<RunRow>, StoreError> {
        runs::get(&self.connection, actor)
    }

    fn ended_runs(
        &self,
        after: (Timestamp, Sequence),
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<RunRow>, StoreError> {
        runs::ended(&self.connection, after, until, limit)
    }

    fn rows_of(&self, actor: &ActorId, limit: usize) -> Result<usize, StoreError> {
        removal::count(&self.connection, actor, limit)
    }

    fn actors_with_messages(&self, prefix: &str, limit: usize) -> Result<Vec<ActorId>, StoreError> {
        messages::actors(&self.connection, prefix, limit)
    }

    fn actors_with_dead_letters(&self, prefix: &str, limit: usize) -> Result<Vec<ActorId>, StoreError> {
        dead_letters::actors(&self.connection, prefix, limit)
    }

    fn run_counts(&self) -> Result<Vec<RunCount>, StoreError> {
        runs::counts(&self.connection)
    }

    fn dead_letters(
        &self,
        shard: Shard,
        after: Option<Sequence>,
        limit: usize,
    ) -> Result<Vec<DeadLetterRow>, StoreError> {
        dead_letters::page(&self.connection, shard, after, limit)
    }
}
