//! Actors that go: their rows in every table, a part at a time.
//!
//! Owns which tables there are to look through. What is removed is found along each table's own key, so that it costs what goes. Messages stay:
//! they are for whoever is of that name next.

use rusqlite::Connection;
use steadfast_core::ids::ActorId;

use super::runs;
use crate::StoreError;
use crate::batch::{Batch, Removal};
use crate::number::rows_max;

/// A part of one table. The order is that of the key, which is along the tree.
macro_rules! remove {
    ($table:literal, $order:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE rowid IN (SELECT rowid FROM ",
            $table,
            " WHERE shard = ?1 AND actor = ?2 ORDER BY ",
            $order,
            " LIMIT ?3)"
        )
    };
}

const TASKS: &str = remove!("tasks", "task");
const REQUESTS: &str = remove!("requests", "request");
const DEAD_LETTERS: &str = remove!("dead_letters", "id");
const HISTORY: &str = remove!("history", "last");
const STATE: &str = remove!("state", "key");

const KEY: &str = "DELETE FROM state WHERE shard = ?1 AND actor = ?2 AND key = ?3";

const ALARM: &str = "DELETE FROM alarms WHERE shard = ?1 AND actor = ?2";

/// Places in the whole history are row ids, and SQLite gives the last one again when its row is gone: a reader who has seen it would never be told of
/// what comes next. So the last row of all becomes one of nobody, until there is a later one.
const KEEP_LAST_PLACE: &str =
    "UPDATE history SET shard = 0, actor = '', last = rowid, first = rowid, root = NULL, events = '[]'
    WHERE rowid = (SELECT max(rowid) FROM history) AND shard = ?1 AND actor = ?2";

const DROP_EARLIER_PLACES: &str =
    "DELETE FROM history WHERE shard = 0 AND actor = '' AND rowid < (SELECT max(rowid) FROM history)";

/// The tables are counted one after the other, each as far as is of interest.
const COUNT: &str = "SELECT count(*) FROM (
    SELECT 1 FROM (SELECT 1 FROM tasks WHERE shard = ?1 AND actor = ?2 LIMIT ?3)
    UNION ALL SELECT 1 FROM (SELECT 1 FROM requests WHERE shard = ?1 AND actor = ?2 LIMIT ?3)
    UNION ALL SELECT 1 FROM (SELECT 1 FROM dead_letters WHERE shard = ?1 AND actor = ?2 LIMIT ?3)
    UNION ALL SELECT 1 FROM (SELECT 1 FROM history WHERE shard = ?1 AND actor = ?2 LIMIT ?3)
    UNION ALL SELECT 1 FROM (SELECT 1 FROM state WHERE shard = ?1 AND actor = ?2 LIMIT ?3))";

pub(in crate::sqlite) fn write(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    for (actor, writes) in &batch.actors {
        if let Some(removal) = &writes.removal {
            remove(connection, actor, removal)?;
        }
    }
    Ok(())
}

fn remove(connection: &Connection, actor: &ActorId, removal: &Removal) -> Result<(), StoreError> {
    let (shard, name) = (actor.shard().0, actor.as_str());
    runs::remove(connection, actor)?;
    connection.prepare_cached(ALARM)?.execute((shard, name))?;
    if let Some(first) = &removal.first {
        connection.prepare_cached(KEY)?.execute((shard, name, &**first))?;
    }
    let mut left = removal.rows_max;
    for sql in [TASKS, REQUESTS, DEAD_LETTERS] {
        left -= connection.prepare_cached(sql)?.execute((shard, name, rows_max(left)))?;
    }
    if left > 0 {
        left -= connection.prepare_cached(KEEP_LAST_PLACE)?.execute((shard, name))?;
        left -= connection.prepare_cached(HISTORY)?.execute((shard, name, rows_max(left)))?;
        connection.prepare_cached(DROP_EARLIER_PLACES)?.execute(())?;
    }
    connection.prepare_cached(STATE)?.execute((shard, name, rows_max(left)))?;
    Ok(())
}

pub(in crate::sqlite) fn count(connection: &Connection, actor: &ActorId, limit: usize) -> Result<usize, StoreError> {
    let params = (actor.shard().0, actor.as_str(), rows_max(limit));
    let rows: i64 = connection.prepare_cached(COUNT)?.query_row(params, |row| row.get(0))?;
    Ok(usize::try_from(rows).unwrap_or(0).min(limit))
}
