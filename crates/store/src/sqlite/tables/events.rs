//! The histories of actors: only ever added to.

use rusqlite::{Connection, Statement};
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

/// Rows of one statement, where an actor has so many: a row costs a third less than in a statement of its own. Histories are most of what is
/// written.
const ROWS_AT_ONCE: usize = 16;

pub(in crate::sqlite) fn write(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut insert = connection.prepare_cached(INSERT)?;
    let mut insert_many = connection.prepare_cached(&insert_many())?;
    for (actor, writes) in &batch.actors {
        let chunks = writes.events.chunks_exact(ROWS_AT_ONCE);
        for row in chunks.remainder() {
            bind(&mut insert, actor, row, 0)?;
            insert.raw_execute()?;
        }
        for rows in chunks {
            for (number, row) in rows.iter().enumerate() {
                bind(&mut insert_many, actor, row, number)?;
            }
            insert_many.raw_execute()?;
        }
    }
    Ok(())
}

/// [`INSERT`] with more rows.
fn insert_many() -> String {
    let (head, row) = INSERT.split_once("VALUES ").expect("it is written above");
    let rows: Vec<String> = (0..ROWS_AT_ONCE).map(|_| row.replace(|c: char| c.is_ascii_digit(), "")).collect();
    format!("{head}VALUES {}", rows.join(", "))
}

/// Binds row `number` of a statement.
fn bind(statement: &mut Statement<'_>, actor: &ActorId, row: &EventRow, number: usize) -> Result<(), StoreError> {
    let first = number * 6;
    statement.raw_bind_parameter(first + 1, actor.shard().0)?;
    statement.raw_bind_parameter(first + 2, actor.as_str())?;
    statement.raw_bind_parameter(first + 3, storable(row.sequence)?)?;
    statement.raw_bind_parameter(first + 4, storable(row.at.0)?)?;
    statement.raw_bind_parameter(first + 5, &*row.event_type)?;
    statement.raw_bind_parameter(first + 6, row.data.as_str())?;
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
