//! Tasks that were dispatched and are not settled.

use rusqlite::Connection;
use steadfast_core::ids::{ActorId, Sequence, Shard, TaskId};

use crate::StoreError;
use crate::batch::{Batch, RowChange};
use crate::number::{bound, storable};
use crate::rows::TaskRow;
use crate::sqlite::row::{Stored, Table, list_sound, one};

const TABLE: Table = Table { name: "tasks", keys: 3 };

// A name that was settled may be dispatched again in the same batch, and then the old row is still here.
const PUT: &str = "INSERT INTO tasks (shard, actor, task, sequence, executor, input) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (shard, actor, task)
    DO UPDATE SET sequence = excluded.sequence, executor = excluded.executor, input = excluded.input";

const DELETE: &str = "DELETE FROM tasks WHERE shard = ?1 AND actor = ?2 AND task = ?3";

const LIST: &str = "SELECT shard, actor, task, sequence, executor, input FROM tasks
    WHERE shard = ?1 AND sequence > ?2 ORDER BY sequence, actor, task";

// The bounds are those of the index, in its own words: only so is it used.
const LIST_OF_WORKERS: &str = "SELECT shard, actor, task, sequence, executor, input FROM tasks
    WHERE executor = ?1 AND sequence > ?2 AND executor >= 'worker:' AND executor < 'worker;' ORDER BY sequence";

const ONE: &str = "SELECT shard, actor, task, sequence, executor, input FROM tasks
    WHERE shard = ?1 AND actor = ?2 AND task = ?3";

pub(in crate::sqlite) fn write(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut put = connection.prepare_cached(PUT)?;
    let mut delete = connection.prepare_cached(DELETE)?;
    for (actor, writes) in &batch.actors {
        let (shard, actor) = (actor.shard().0, actor.as_str());
        for (task, change) in &writes.tasks {
            let task = task.as_str();
            match change {
                RowChange::Insert(row) => {
                    let (sequence, input) = (storable(row.sequence.0)?, row.input.as_str());
                    put.execute((shard, actor, task, sequence, &*row.executor, input))?
                }
                RowChange::Delete => delete.execute((shard, actor, task))?,
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
) -> Result<Vec<TaskRow>, StoreError> {
    let after = after.map_or(-1, |sequence| bound(sequence.0));
    list_sound(connection, TABLE, LIST, (shard.0, after), limit, task)
}

pub(in crate::sqlite) fn page_of_workers(
    connection: &Connection,
    queue: &str,
    after: Option<Sequence>,
    limit: usize,
) -> Result<Vec<TaskRow>, StoreError> {
    let after = after.map_or(-1, |sequence| bound(sequence.0));
    list_sound(connection, TABLE, LIST_OF_WORKERS, (format!("worker:{queue}"), after), limit, task)
}

pub(in crate::sqlite) fn get(
    connection: &Connection,
    actor: &ActorId,
    id: &TaskId,
) -> Result<Option<TaskRow>, StoreError> {
    one(connection, TABLE, ONE, (actor.shard().0, actor.as_str(), id.as_str()), task)
}

fn task(row: &Stored<'_>) -> Result<TaskRow, StoreError> {
    Ok(TaskRow {
        actor: row.owner(1)?,
        task: row.id(2, TaskId::new)?,
        sequence: row.sequence(3)?,
        executor: row.shared_text(4)?,
        input: row.json(5)?,
    })
}
