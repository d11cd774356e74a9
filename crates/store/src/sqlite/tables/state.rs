//! What actors keep: ordered keys with JSON values.

use std::ops::Bound;

use rusqlite::Connection;
use steadfast_core::ids::ActorId;
use steadfast_core::json::Json;
use steadfast_core::turn::Entries;

use crate::StoreError;
use crate::batch::Batch;
use crate::number::rows_max;
use crate::sqlite::row::{Stored, Table, list, one};

const TABLE: Table = Table { name: "state", keys: 3 };

const PUT: &str = "INSERT INTO state (shard, actor, key, value) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (shard, actor, key) DO UPDATE SET value = excluded.value";

const DELETE: &str = "DELETE FROM state WHERE shard = ?1 AND actor = ?2 AND key = ?3";

const GET: &str = "SELECT shard, actor, key, value FROM state WHERE shard = ?1 AND actor = ?2 AND key = ?3";

/// A scan, by how its two ends are compared. Without an end the fourth parameter is still named, so that all take the same.
macro_rules! scan {
    ($from:literal, $to:literal) => {
        concat!(
            "SELECT shard, actor, key, value FROM state WHERE shard = ?1 AND actor = ?2 AND key ",
            $from,
            " ?3 AND ",
            $to,
            " ORDER BY key LIMIT ?5"
        )
    };
}

pub(in crate::sqlite) fn write(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut put = connection.prepare_cached(PUT)?;
    let mut delete = connection.prepare_cached(DELETE)?;
    for (actor, writes) in &batch.actors {
        let shard = actor.shard().0;
        for (key, value) in &writes.state {
            match value {
                Some(value) => put.execute((shard, actor.as_str(), &**key, value.as_str()))?,
                None => delete.execute((shard, actor.as_str(), &**key))?,
            };
        }
    }
    Ok(())
}

pub(in crate::sqlite) fn get(connection: &Connection, actor: &ActorId, key: &str) -> Result<Option<Json>, StoreError> {
    one(connection, TABLE, GET, (actor.shard().0, actor.as_str(), key), |row| row.json(3))
}

pub(in crate::sqlite) fn scan(
    connection: &Connection,
    actor: &ActorId,
    from: Bound<&str>,
    to: Bound<&str>,
    limit: usize,
) -> Result<Entries, StoreError> {
    // No key sorts before the empty one, so a scan without a beginning is one from there.
    let (from, is_after) = match from {
        Bound::Unbounded => ("", false),
        Bound::Included(key) => (key, false),
        Bound::Excluded(key) => (key, true),
    };
    let (sql, to) = match (is_after, to) {
        (false, Bound::Unbounded) => (scan!(">=", "?4 = ''"), ""),
        (false, Bound::Included(key)) => (scan!(">=", "key <= ?4"), key),
        (false, Bound::Excluded(key)) => (scan!(">=", "key < ?4"), key),
        (true, Bound::Unbounded) => (scan!(">", "?4 = ''"), ""),
        (true, Bound::Included(key)) => (scan!(">", "key <= ?4"), key),
        (true, Bound::Excluded(key)) => (scan!(">", "key < ?4"), key),
    };
    let entry = |row: &Stored<'_>| Ok((row.shared_text(2)?, row.json(3)?));
    list(connection, TABLE, sql, (actor.shard().0, actor.as_str(), from, to, rows_max(limit)), entry)
}
