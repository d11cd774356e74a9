//! Inputs that were given up, kept until somebody drives or deletes them.

use rusqlite::Connection;
use steadfast_core::ids::{ActorId, Sequence, Shard};

use crate::StoreError;
use crate::batch::{Batch, RowChange};
use crate::number::{bound, storable};
use crate::rows::DeadLetterRow;
use crate::sqlite::row::{self, Stored, Table, list_sound};

const TABLE: Table = Table { name: "dead_letters", keys: 2 };

const INSERT: &str = "INSERT INTO dead_letters (shard, id, actor, input, error, attempts, at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

const DELETE: &str = "DELETE FROM dead_letters WHERE shard = ?1 AND id = ?2 AND actor = ?3";

const LIST: &str = "SELECT shard, id, actor, input, error, attempts, at FROM dead_letters
    WHERE shard = ?1 AND id > ?2 ORDER BY id";

const ACTORS: &str =
    "SELECT DISTINCT shard, actor FROM dead_letters WHERE shard = ?1 AND actor >= ?2 AND actor < ?3 LIMIT ?4";

pub(in crate::sqlite) fn write(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut insert = connection.prepare_cached(INSERT)?;
    let mut delete = connection.prepare_cached(DELETE)?;
    for (actor, writes) in &batch.actors {
        let (shard, actor) = (actor.shard().0, actor.as_str());
        for (id, change) in &writes.dead_letters {
            let id = storable(id.0)?;
            match change {
                RowChange::Insert(row) => {
                    let (input, error, at) = (row.input.as_str(), row.error.as_str(), storable(row.at.0)?);
                    insert.execute((shard, id, actor, input, error, row.attempts, at))?
                }
                RowChange::Delete => delete.execute((shard, id, actor))?,
            };
        }
    }
    Ok(())
}

pub(in crate::sqlite) fn page(
    connection: &Connection,
    shard: Shard,
    after: Option<Sequence>,
    limit: usize,
) -> Result<Vec<DeadLetterRow>, StoreError> {
    let after = after.map_or(-1, |id| bound(id.0));
    list_sound(connection, TABLE, LIST, (shard.0, after), limit, dead_letter)
}

pub(in crate::sqlite) fn actors(
    connection: &Connection,
    prefix: &str,
    limit: usize,
) -> Result<Vec<ActorId>, StoreError> {
    row::actors(connection, TABLE, ACTORS, prefix, limit)
}

fn dead_letter(row: &Stored<'_>) -> Result<DeadLetterRow, StoreError> {
    Ok(DeadLetterRow {
        id: row.sequence(1)?,
        actor: row.owner(2)?,
        input: row.json(3)?,
        error: row.text(4)?.to_owned(),
        attempts: row.small_number(5)?,
        at: row.timestamp(6)?,
    })
}
