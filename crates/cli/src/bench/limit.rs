//! The limit: what SQLite does on this disk when nothing is on top of it.
//!
//! Owns a file of its own with the tables and the settings of a store, and writes the rows that the engine would write, in batches of
//! the size that the engine reached. Never weaker than the store: WAL, `synchronous=FULL`, one fsync a batch. No threads, no answers, no
//! encoding: whatever the engine needs beyond this is what the ratio shows.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};
use steadfast_core::ids::ActorId;
use steadfast_store::sqlite::SqliteStore;

use super::turns::Amount;

/// The statement of the store.
const PUT: &str = "INSERT INTO state (shard, actor, key, value) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (shard, actor, key) DO UPDATE SET value = excluded.value";

/// Of the store as well: what a batch may need in memory, and how often the `-wal` file is moved into the main one.
const CACHE_KIB: i64 = 16 * 1024;
const CHECKPOINT_PAGES: i64 = 4_000;
const WAL_BYTES_KEPT: i64 = 64 * 1024 * 1024;

/// Batches chosen ahead of the measuring, and then used again and again.
const BATCHES_PREPARED: usize = 64;

/// SQLite itself.
pub(crate) struct RawSqlite {
    connection: Connection,
    /// The last value written to a counter. It never comes again: SQLite does not write a row that stays the same, nor sync for it.
    counted: u64,
}

/// How much was written in which time.
pub(crate) struct Written {
    pub(crate) rows: u64,
    pub(crate) took: Duration,
}

impl Written {
    pub(crate) fn rows_per_s(&self) -> f64 {
        self.rows as f64 / self.took.as_secs_f64()
    }
}

impl RawSqlite {
    /// Makes a file like a store's.
    pub(crate) fn make(file: &Path) -> anyhow::Result<Self> {
        // The store makes it, so that the tables are the same whatever becomes of them.
        drop(SqliteStore::open(file)?);
        let connection = Connection::open(file)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
        Ok(Self { connection, counted: 1 })
    }

    /// Writes one value for each of these actors, in one commit.
    fn commit<'a>(
        &mut self,
        actors: impl Iterator<Item = &'a ActorId>,
        key: &str,
        mut value: impl FnMut(&ActorId, &mut String),
    ) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut put = transaction.prepare_cached(PUT)?;
        let mut text = String::new();
        for actor in actors {
            text.clear();
            value(actor, &mut text);
            put.execute((actor.shard().0, actor.as_str(), key, text.as_str()))?;
        }
        drop(put);
        transaction.commit()
    }

    /// Writes the count of each counter once, so that all rows are there.
    pub(crate) fn insert_counters(&mut self, counters: &[ActorId]) -> rusqlite::Result<()> {
        self.commit(counters.iter(), "count", |_, text| text.push('1'))
    }

    /// Counts on, over all counters in turn, `batch` of them a commit.
    pub(crate) fn count_on(&mut self, counters: &[ActorId], batch: usize, amount: Amount) -> rusqlite::Result<Written> {
        let batch = batch.clamp(1, counters.len());
        let batches = batches_of(counters, batch);
        let mut rows = 0;
        let began = Instant::now();
        for actors in batches.iter().cycle() {
            self.counted += 1;
            let counted = self.counted;
            self.commit(actors.iter().copied(), "count", |_, text| _ = write!(text, "{counted}"))?;
            rows += batch as u64;
            if amount.is_reached(rows, began.elapsed()) {
                break;
            }
        }
        Ok(Written { rows, took: began.elapsed() })
    }

    /// Writes so many rows of one actor, a thousand a commit.
    pub(crate) fn write_rows(&mut self, actor: &ActorId, rows: u64) -> rusqlite::Result<Written> {
        let began = Instant::now();
        let (shard, mut key, mut next) = (actor.shard().0, String::new(), 0_u64);
        let value = r#"{"id":1,"node":"branch","status":"completed","parent":1,"path":"root/branches:1","lineage":[[1,1,1000]],"attempt":1,"created_at":1,"updated_at":1}"#;
        while next < rows {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut put = transaction.prepare_cached(PUT)?;
            for number in next..rows.min(next + 1_000) {
                key.clear();
                _ = write!(key, "token/{number:010}");
                put.execute((shard, actor.as_str(), key.as_str(), value))?;
            }
            drop(put);
            transaction.commit()?;
            next += 1_000;
        }
        Ok(Written { rows, took: began.elapsed() })
    }

    /// Writes a chain's rows: down, where each level begins to wait, and up, where each has its answer.
    pub(crate) fn write_chain(&mut self, levels: &[ActorId], batch: usize) -> rusqlite::Result<Written> {
        let batches: Vec<Vec<&ActorId>> = levels.chunks(batch.max(1)).map(in_order).collect();
        let mut answered = 0_u64;
        let began = Instant::now();
        for actors in &batches {
            self.commit(actors.iter().copied(), "phase", |_, text| text.push_str(r#"{"phase":"waiting"}"#))?;
        }
        for actors in batches.iter().rev() {
            self.commit(actors.iter().copied(), "phase", |_, text| {
                answered += 1;
                _ = write!(text, r#"{{"phase":"done","levels":{answered}}}"#);
            })?;
        }
        Ok(Written { rows: 2 * levels.len() as u64, took: began.elapsed() })
    }
}

/// Which counters go into which batch. Each batch is in the order of the tree, as the engine writes it; chosen ahead, because sorting
/// is no work of SQLite's.
fn batches_of(counters: &[ActorId], batch: usize) -> Vec<Vec<&ActorId>> {
    let mut next = counters.iter().cycle();
    let one = |_| {
        let mut actors: Vec<&ActorId> = next.by_ref().take(batch).collect();
        sort(&mut actors);
        actors
    };
    (0..BATCHES_PREPARED).map(one).collect()
}

fn in_order(actors: &[ActorId]) -> Vec<&ActorId> {
    let mut actors: Vec<&ActorId> = actors.iter().collect();
    sort(&mut actors);
    actors
}

fn sort(actors: &mut [&ActorId]) {
    actors.sort_by(|one, other| (one.shard(), one.as_str()).cmp(&(other.shard(), other.as_str())));
}
