//! The histories of actors: only ever added to.

use rusqlite::Connection;
use steadfast_core::ids::ActorId;

use crate::StoreError;
use crate::batch::Batch;
use crate::number::{bound, rows_max, storable};
use crate::rows::EventRow;
use crate::sqlite::row::{Stored, Table, list};

const TABLE: Table = Table { name: "events", keys: 3 };

const INSERT: &str = "INSERT INTO events (shard, actor, sequence, at, type, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

const LIST: &str = "SELECT shard, actor, sequence, at, type, data FROM events
    WHERE shard = ?1 AND actor = ?2 AND sequence > ?3 ORDER BY sequence LIMIT ?4";

pub(in crate::sqlite) fn write(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut insert = connection.prepare_cached(INSERT)?;
    for (actor, writes) in &batch.actors {
        let (shard, actor) = (actor.shard().0, actor.as_str());
        for row in &writes.events {
            let (sequence, at) = (storable(row.sequence)?, storable(row.at.0)?);
            insert.execute((shard, actor, sequence, at, &*row.event_type, row.data.as_str()))?;
        }
    }
    Ok(())
}

pub(in crate::sqlite) fn page(
    connection: &Connection,
    actor: &ActorId,
    after: u64,
    limit: usize,
) -> Result<Vec<EventRow>, StoreError> {
    list(connection, TABLE, LIST, (actor.shard().0, actor.as_str(), bound(after), rows_max(limit)), event)
}

fn event(row: &Stored<'_>) -> Result<EventRow, StoreError> {
    Ok(EventRow {
        actor: row.owner(1)?,
        sequence: row.number(2)?,
        at: row.timestamp(3)?,
        event_type: row.shared_text(4)?,
        data: row.json(5)?,
    })
}
